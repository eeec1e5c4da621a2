// Whole gangs, and proofs that there is no room for one, against the size of the
// cluster. A peer takes 249.5 s to find 10 pods of 8 GPUs unschedulable on 500
// fragmented nodes (KAI-Scheduler's own figure, end to end).

#include <benchmark/benchmark.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/support/clusters.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/state/cluster_state.h"

namespace tessera {
namespace {

// A state in which the first `free` nodes are empty and the others have `taken` of
// their 8 GPUs taken; racks of 64 nodes.
ClusterState Fragmented(int nodes, int taken, int free, std::vector<Workload> workloads) {
  SnapshotSpec spec = H100Cluster(nodes);
  for (int i = 0; i < nodes; ++i) {
    spec.nodes[static_cast<size_t>(i)].topology["rack"] = absl::StrFormat("rack-%06d", i / 64);
  }
  spec.workloads = std::move(workloads);
  if (taken > 0) {
    Workload& old =
        spec.workloads.emplace_back(PendingGang("old", nodes - free, GpuRequest::Whole(taken)));
    for (int i = free; i < nodes; ++i) {
      Pod& pod = old.pods.emplace_back();
      pod.pod_set = "workers";
      pod.index = i - free;
      pod.node = spec.nodes[static_cast<size_t>(i)].name;
      for (int g = 0; g < taken; ++g) pod.devices.gpus.push_back(g);
    }
  }
  return {std::make_shared<const StateTables>(*Snapshot::Create(std::move(spec))), {}};
}

void Place(benchmark::State& bench, ClusterState& state, int pods, SearchOutcome expected) {
  const WorkloadId w = *state.snapshot().FindWorkload("gang");
  for (auto _ : bench) {
    const GangPlacement result = PlaceGang(state, w);
    if (result.outcome != expected || (!result.placed() && !result.proven)) {
      bench.SkipWithError("another outcome");
      return;
    }
    state.RollBack(0);
  }
  bench.counters["ns_per_pod"] = benchmark::Counter(
      pods, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

#define TESSERA_SIZES ->RangeMultiplier(10)->Range(1000, 100000)->Unit(benchmark::kMicrosecond)

// 512 one-GPU pods that fill a rack of 64 nodes.
void RackOf512Pods(benchmark::State& bench) {
  Workload gang = PendingGang("gang", 512, GpuRequest::Whole(1));
  gang.gang.topology.required = "rack";
  ClusterState state = Fragmented(static_cast<int>(bench.range(0)), 0, 0, {std::move(gang)});
  Place(bench, state, 512, SearchOutcome::kPlaced);
}
BENCHMARK(RackOf512Pods) TESSERA_SIZES;

// 512 one-GPU pods, one to a node; and at most 32 to a rack.
void Apart512Pods(benchmark::State& bench, bool by_rack) {
  Workload gang = PendingGang("gang", 512, GpuRequest::Whole(1));
  PodSet& set = gang.gang.pod_sets[0];
  if (by_rack) {
    set.max_per_domain = DomainLimit{"rack", 32};
  } else {
    set.max_per_node = 1;
  }
  ClusterState state = Fragmented(static_cast<int>(bench.range(0)), 0, 0, {std::move(gang)});
  Place(bench, state, 512, SearchOutcome::kPlaced);
}
BENCHMARK_CAPTURE(Apart512Pods, by_node, false) TESSERA_SIZES;
BENCHMARK_CAPTURE(Apart512Pods, by_rack, true) TESSERA_SIZES;

// 512 pods in a rack, where all racks but one have a GPU too few.
void LastRackOf512Pods(benchmark::State& bench) {
  Workload gang = PendingGang("gang", 512, GpuRequest::Whole(1));
  gang.gang.topology.required = "rack";
  const int nodes = static_cast<int>(bench.range(0));
  ClusterState state = Fragmented(nodes, 1, 64, {std::move(gang)});
  Place(bench, state, 512, SearchOutcome::kPlaced);
}
BENCHMARK(LastRackOf512Pods) TESSERA_SIZES;

void Nodes64(benchmark::State& bench) {
  const int nodes = static_cast<int>(bench.range(0));
  ClusterState state =
      Fragmented(nodes, 4, nodes / 10, {PendingGang("gang", 64, GpuRequest::Whole(8))});
  Place(bench, state, 64, SearchOutcome::kPlaced);
}
BENCHMARK(Nodes64) TESSERA_SIZES;

// 10 pods of 8 GPUs where every node has 4 free.
void ProveHopeless(benchmark::State& bench) {
  ClusterState state = Fragmented(static_cast<int>(bench.range(0)), 4, 0,
                                  {PendingGang("gang", 10, GpuRequest::Whole(8))});
  Place(bench, state, 10, SearchOutcome::kNoRoom);
}
BENCHMARK(ProveHopeless) TESSERA_SIZES;

// The same with 9 free nodes: one too few.
void ProveOneNodeShort(benchmark::State& bench) {
  ClusterState state = Fragmented(static_cast<int>(bench.range(0)), 4, 9,
                                  {PendingGang("gang", 10, GpuRequest::Whole(8))});
  Place(bench, state, 10, SearchOutcome::kNoRoom);
}
BENCHMARK(ProveOneNodeShort) TESSERA_SIZES;

// The same in one rack: every rack has the 80 GPUs.
void ProveNoRack(benchmark::State& bench) {
  Workload gang = PendingGang("gang", 10, GpuRequest::Whole(8));
  gang.gang.topology.required = "rack";
  ClusterState state = Fragmented(static_cast<int>(bench.range(0)), 4, 9, {std::move(gang)});
  Place(bench, state, 10, SearchOutcome::kTopology);
}
BENCHMARK(ProveNoRack) TESSERA_SIZES;

// Half of the nodes fit a 5 and a 3, and a quarter more of each than that is asked: no
// count alone tells, the sum of GPUs does.
void ProveMixtureShort(benchmark::State& bench) {
  const int nodes = static_cast<int>(bench.range(0));
  Workload gang = PendingGang("gang", nodes / 2, GpuRequest::Whole(5));
  gang.gang.pod_sets.push_back(gang.gang.pod_sets[0]);
  gang.gang.pod_sets[1].name = "threes";
  gang.gang.pod_sets[1].count = nodes / 2 + nodes / 8;
  gang.gang.pod_sets[1].request.gpu = GpuRequest::Whole(3);
  ClusterState state = Fragmented(nodes, 6, nodes / 2, {std::move(gang)});
  Place(bench, state, nodes + nodes / 8, SearchOutcome::kNoRoom);
}
BENCHMARK(ProveMixtureShort) TESSERA_SIZES;

// A gang that the greedy search misses: two 4-GPU pods a node leave too few nodes for
// the pods that need most of a node's memory.
void FindByExactSearch(benchmark::State& bench) {
  const int nodes = static_cast<int>(bench.range(0));
  Workload gang = PendingGang("gang", 16, GpuRequest::Whole(4));
  gang.gang.pod_sets[0].request.memory = 64 * kBytesPerGiB;
  gang.gang.pod_sets.push_back(gang.gang.pod_sets[0]);
  gang.gang.pod_sets[1].name = "large";
  gang.gang.pod_sets[1].request.gpu = GpuRequest::Whole(3);
  gang.gang.pod_sets[1].request.memory = 1900 * kBytesPerGiB;
  ClusterState state = Fragmented(nodes, 6, 16, {std::move(gang)});
  Place(bench, state, 32, SearchOutcome::kPlaced);
}
BENCHMARK(FindByExactSearch) TESSERA_SIZES;

// 1,000 gangs of one node more than there is, each of its own size.
void ManyHopeless(benchmark::State& bench) {
  std::vector<Workload> gangs;
  for (int i = 0; i < 1000; ++i) {
    gangs.push_back(
        PendingGang(absl::StrFormat("gang-%04d", i), 10 + i % 50, GpuRequest::Whole(8)));
  }
  ClusterState state = Fragmented(static_cast<int>(bench.range(0)), 4, 9, std::move(gangs));
  std::vector<WorkloadId> all;
  for (int i = 0; i < 1000; ++i) all.emplace_back(i);
  for (auto _ : bench) {
    const std::vector<GangPlacement> results = PlaceMany(state, all);
    if (!results.back().proven) bench.SkipWithError("not proven");
  }
}
BENCHMARK(ManyHopeless) TESSERA_SIZES;

}  // namespace
}  // namespace tessera
