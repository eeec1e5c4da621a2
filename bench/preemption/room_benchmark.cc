// Who yields on large clusters. `ReclaimLargeGang`: N nodes of 8 GPUs full of one-GPU jobs of
// one queue, a gang of N/2 pods of 8 GPUs of another reclaims. `HopelessGang`: the same with a
// gang that no eviction can help. `Consolidate`: 500 nodes, every other GPU held, 41 gangs of
// 8 GPUs for which others are moved. The state is at hand, as it is in a cycle.

#include <benchmark/benchmark.h>

#include <memory>

#include "absl/strings/str_format.h"
#include "bench/support/clusters.h"
#include "tessera/preemption/make_room.h"
#include "tessera/share/fair_shares.h"

namespace tessera {
namespace {

Workload RunningJob(int index, const std::string& node, int gpu, std::string queue) {
  Workload job = PendingGang(absl::StrFormat("job-%07d", index), 1, GpuRequest::Whole(1));
  job.queue = std::move(queue);
  job.submitted = index;
  Pod pod;
  pod.pod_set = "workers";
  pod.node = node;
  pod.devices.gpus = {gpu};
  pod.started = 0;
  job.pods.push_back(std::move(pod));
  return job;
}

Queue HalfQueue(std::string name, int gpus) {
  Queue queue;
  queue.name = std::move(name);
  queue.quota.by_name["gpu"] = gpus * kGpuUnitsPerDevice;
  return queue;
}

// Every `step`-th GPU holds a job of queue "a".
SnapshotSpec Crowded(int nodes, int step) {
  SnapshotSpec spec = H100Cluster(nodes);
  for (Node& node : spec.nodes) {
    for (Gpu& gpu : node.gpus) gpu.mig = MigMode::kOff;
  }
  spec.now = 3600;
  spec.queues = {HalfQueue("a", 4 * nodes), HalfQueue("b", 4 * nodes)};
  int index = 0;
  for (const Node& node : spec.nodes) {
    for (int g = 0; g < 8; g += step)
      spec.workloads.push_back(RunningJob(index++, node.name, g, "a"));
  }
  return spec;
}

// What a cycle has at hand.
struct Desk {
  explicit Desk(SnapshotSpec spec)
      : snapshot(*Snapshot::Create(std::move(spec))),
        usage(MeasureUsage(snapshot, {})),
        shares(DivideFairShares(snapshot)),
        ledger(snapshot.queues(), usage, shares.capacity),
        later(std::make_shared<const StateTables>(snapshot), {}) {}

  RoomDesk on() { return {nullptr, &later, &ledger, &shares}; }
  WorkloadId Find(const char* name) const { return *snapshot.FindWorkload(name); }

  Snapshot snapshot;
  std::vector<QueueUsage> usage;
  FairShares shares;
  QuotaLedger ledger;
  ClusterState later;
};

int64_t Cost(const Victim& victim) { return VictimWeights().Cost(victim); }

void ReclaimLargeGang(benchmark::State& bench) {
  const int nodes = static_cast<int>(bench.range(0));
  SnapshotSpec spec = Crowded(nodes, 1);
  spec.workloads.push_back(PendingGang("gang", nodes / 2, GpuRequest::Whole(8)));
  spec.workloads.back().queue = "b";
  Desk desk(std::move(spec));
  size_t victims = 0;
  for (auto _ : bench) {
    const RoomPlan plan = PlanReclaim(desk.on(), desk.Find("gang"), {}, Cost);
    victims = plan.evicted.size();
  }
  bench.counters["victims"] = static_cast<double>(victims);
}
BENCHMARK(ReclaimLargeGang)
    ->Arg(100)
    ->Arg(500)
    ->Arg(1000)
    ->Arg(5000)
    ->Unit(benchmark::kMillisecond);

void HopelessGang(benchmark::State& bench) {
  const int nodes = static_cast<int>(bench.range(0));
  SnapshotSpec spec = Crowded(nodes, 1);
  for (int i = 0; i < 8 * nodes; i += 8) spec.workloads[static_cast<size_t>(i)].preemptible = false;
  spec.workloads.push_back(PendingGang("gang", 10, GpuRequest::Whole(8)));
  spec.workloads.back().queue = "b";
  Desk desk(std::move(spec));
  for (auto _ : bench) {
    const RoomPlan plan = PlanReclaim(desk.on(), desk.Find("gang"), {}, Cost);
    if (plan.outcome != RoomOutcome::kNoRoom) bench.SkipWithError("not proven");
  }
}
BENCHMARK(HopelessGang)->Arg(1000)->Arg(5000)->Unit(benchmark::kMillisecond);

void Consolidate(benchmark::State& bench) {
  SnapshotSpec spec = Crowded(500, 2);
  for (int i = 0; i < 41; ++i) {
    spec.workloads.push_back(PendingGang(absl::StrFormat("gang-%02d", i), 1, GpuRequest::Whole(8)));
    spec.workloads.back().queue = "b";
  }
  Desk desk(std::move(spec));
  size_t moved = 0;
  for (auto _ : bench) {
    moved = 0;
    const ClusterState::Mark mark = desk.later.GetMark();
    const size_t charges = desk.ledger.GetMark();
    for (int i = 0; i < 41; ++i) {
      const WorkloadId w = desk.Find(absl::StrFormat("gang-%02d", i).c_str());
      const RoomPlan plan = PlanConsolidation(desk.on(), w, {}, Cost);
      moved += plan.moved.size();
      if (plan.found()) CarryOut(plan, {}, desk.on());
    }
    desk.later.RollBack(mark);
    desk.ledger.RollBack(charges);
  }
  bench.counters["moved"] = static_cast<double>(moved);
}
BENCHMARK(Consolidate)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tessera
