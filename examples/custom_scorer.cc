// A scorer of the host's own: keep pods away from the nodes with the most free
// memory, so that these stay ready for memory-hungry work.

#include <cstdio>
#include <string>
#include <variant>

#include "tessera/placement/finders.h"
#include "tessera/schedule/schedule.h"

namespace {

struct KeepMemory {
  int64_t Score(const tessera::ClusterState&, const tessera::RequestClass&,
                const tessera::Candidate& candidate) const {
    // Amounts are in the order of `StateTables::node_resources()`.
    return -candidate.free[tessera::kMemory];
  }
};

}  // namespace

int main() {
  tessera::SnapshotSpec spec;
  for (int gib : {512, 64, 256}) {
    tessera::Node& node = spec.nodes.emplace_back();
    node.name = "node-" + std::to_string(gib);
    node.capacity.memory = gib * tessera::kBytesPerGiB;
    node.gpu_model = "H100-80GB";
    node.gpus.resize(1);
  }
  tessera::Workload& workload = spec.workloads.emplace_back();
  workload.name = "small";
  tessera::PodSet& pods = workload.gang.pod_sets.emplace_back();
  pods.name = "pod";
  pods.request.memory = 16 * tessera::kBytesPerGiB;
  pods.request.gpu = tessera::GpuRequest::Whole(1);
  const auto snapshot = tessera::Snapshot::Create(spec);
  if (!snapshot.ok()) return 1;

  const auto find = [](const tessera::ClusterState& state, const tessera::PodQuery& query) {
    return tessera::FindBest(state, query, KeepMemory());
  };
  const tessera::Plan plan = tessera::Schedule(*snapshot, tessera::Strict(), find).plan;
  const auto& bind = std::get<tessera::BindAction>(plan.actions.front());
  std::printf("%s goes to %s\n", bind.pod.workload.c_str(), bind.node.c_str());
  return bind.node == "node-64" ? 0 : 1;
}
