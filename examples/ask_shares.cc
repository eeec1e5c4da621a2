// What does each queue deserve? Two teams share ten GPUs 2:1; one has a quota.

#include <cstdio>

#include "tessera/schedule/schedule.h"

namespace {

tessera::Queue Team(const char* name, int64_t quota_gpus, int64_t weight) {
  tessera::Queue queue;
  queue.name = name;
  queue.quota.by_name["gpu"] = quota_gpus * tessera::kGpuUnitsPerDevice;
  queue.weight.all = weight * tessera::kWeightOne;
  return queue;
}

tessera::Workload Demand(const char* name, const char* queue, int gpus) {
  tessera::Workload workload;
  workload.name = name;
  workload.queue = queue;
  tessera::PodSet& pods = workload.gang.pod_sets.emplace_back();
  pods.name = "pods";
  pods.count = gpus;
  pods.request.gpu = tessera::GpuRequest::Whole(1);
  return workload;
}

}  // namespace

int main() {
  tessera::SnapshotSpec spec;
  tessera::Node& node = spec.nodes.emplace_back();
  node.name = "node";
  node.gpu_model = "H100-80GB";
  node.gpus.resize(10);
  spec.queues = {Team("blue", 1, 1), Team("green", 0, 2)};
  spec.workloads = {Demand("many", "blue", 20), Demand("more", "green", 20)};
  const auto snapshot = tessera::Snapshot::Create(spec);
  if (!snapshot.ok()) return 1;

  // Each resource alone: blue gets its quota of 1, the other 9 are shared 1:2.
  const tessera::FairShares shares =
      tessera::DivideFairShares(*snapshot, tessera::UsagePolicy(), tessera::PerResourceDivision());
  for (const char* name : {"blue", "green"}) {
    const tessera::QueueShare& share = shares.of(*snapshot->queues().Find(name));
    std::printf(
        "%s deserves %lld of 10 GPUs\n", name,
        static_cast<long long>(share.fair_share[tessera::kGpu] / tessera::kGpuUnitsPerDevice));
  }
  return 0;
}
