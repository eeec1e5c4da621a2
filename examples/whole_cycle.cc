// One scheduling cycle, as a host would run it: plan, referee, carry out, and
// see that a second cycle has nothing left to do.

#include <cstdio>
#include <variant>

#include "tessera/cluster/plan.h"
#include "tessera/schedule/schedule.h"
#include "tessera/verify/check_plan.h"

namespace {

tessera::Workload Slices(const char* name, int count, const char* profile) {
  tessera::Workload workload;
  workload.name = name;
  tessera::PodSet& pods = workload.gang.pod_sets.emplace_back();
  pods.name = "server";
  pods.count = count;
  pods.request.gpu = tessera::GpuRequest::Profile(profile);
  return workload;
}

}  // namespace

int main() {
  tessera::SnapshotSpec spec;
  tessera::Node& node = spec.nodes.emplace_back();
  node.name = "node";
  node.gpu_model = "H100-80GB";
  node.gpus.resize(2);
  for (tessera::Gpu& gpu : node.gpus) gpu.mig = tessera::MigMode::kDynamic;
  spec.workloads = {Slices("embed", 4, "1g.10gb"), Slices("rerank", 1, "3g.40gb")};
  const auto snapshot = tessera::Snapshot::Create(spec);
  if (!snapshot.ok()) return 1;

  const tessera::Plan plan = tessera::Schedule(*snapshot).plan;
  for (const tessera::Action& action : plan.actions) {
    if (const auto* create = std::get_if<tessera::CreateAction>(&action)) {
      std::printf("create %s at slice %d of GPU %d\n", create->profile.c_str(), create->start,
                  create->gpu);
    } else if (const auto* bind = std::get_if<tessera::BindAction>(&action)) {
      std::printf("bind %s/%d\n", bind->pod.workload.c_str(), bind->pod.index);
    }
  }
  if (!tessera::CheckPlan(*snapshot, plan).empty()) return 1;

  const auto next = tessera::ApplyAndSettle(*snapshot, plan);
  if (!next.ok()) return 1;
  return tessera::Schedule(*next).plan.actions.empty() ? 0 : 1;
}
