// A first gang placed: four pods of two GPUs each, all or none.

#include <cstdio>
#include <memory>

#include "tessera/placement/gang_placement.h"

int main() {
  tessera::SnapshotSpec cluster;
  for (const char* name : {"node-a", "node-b"}) {
    tessera::Node& node = cluster.nodes.emplace_back();
    node.name = name;
    node.capacity.cpu = 64 * tessera::kMillisPerCore;
    node.gpu_model = "H100-80GB";
    node.gpus.resize(6);
  }
  tessera::Workload& service = cluster.workloads.emplace_back();
  service.name = "service";
  tessera::PodSet& workers = service.gang.pod_sets.emplace_back();
  workers.name = "workers";
  workers.count = 4;
  workers.request.gpu = tessera::GpuRequest::Whole(2);

  const auto snapshot = tessera::Snapshot::Create(cluster);
  if (!snapshot.ok()) return 1;
  tessera::ClusterState state(std::make_shared<tessera::StateTables>(*snapshot), {});
  const auto result = tessera::PlaceGang(state, *snapshot->FindWorkload("service"));
  for (tessera::PodId pod : result.pods) {
    std::printf("pod %d goes to %s\n", snapshot->pod_ref(pod).index,
                snapshot->node(state.placement(pod).node).name.c_str());
  }
  return result.placed() ? 0 : 1;
}
