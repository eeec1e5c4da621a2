// Finding a place for one pod and taking it, against the size of the cluster:
// half of the GPUs are taken, so that the index has something to skip.

#include <benchmark/benchmark.h>

#include <memory>

#include "bench/support/clusters.h"
#include "tessera/placement/finders.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/placement/ranked_finder.h"
#include "tessera/placement/simple_scorers.h"
#include "tessera/state/cluster_state.h"

namespace tessera {
namespace {

// A half full cluster of `nodes` nodes with one pending workload per request.
ClusterState HalfFull(int nodes, const GpuRequest& asked) {
  SnapshotSpec spec = H100Cluster(nodes);
  spec.workloads.push_back(PendingGang("asked", 1, asked));
  spec.workloads.push_back(PendingGang("filler", nodes * 4, GpuRequest::Whole(1)));
  const Snapshot snapshot = *Snapshot::Create(std::move(spec));
  ClusterState state(std::make_shared<const StateTables>(snapshot), {});
  PlaceGang(state, *snapshot.FindWorkload("filler"));
  state.Commit();
  return state;
}

void PlaceAndUndo(benchmark::State& bench, PodFinder find, const GpuRequest& asked) {
  const int nodes = static_cast<int>(bench.range(0));
  ClusterState state = HalfFull(nodes, asked);
  const PodId p(0);
  const PodQuery query{state.snapshot().pod_set_of(p), {0, nodes}, 0};
  for (auto _ : bench) {
    state.Place(p, *find(state, query));
    state.RollBack(0);
  }
  bench.counters["state_bytes_per_gpu"] = static_cast<double>(state.MemoryBytes()) / (8.0 * nodes);
}

constexpr int64_t kHalf = kGpuUnitsPerDevice / 2;

#define TESSERA_SIZES ->RangeMultiplier(10)->Range(1000, 100000)->Unit(benchmark::kNanosecond)
BENCHMARK_CAPTURE(PlaceAndUndo, pack_whole, FindPacked, GpuRequest::Whole(1)) TESSERA_SIZES;
BENCHMARK_CAPTURE(PlaceAndUndo, pack_node, FindPacked, GpuRequest::Whole(8)) TESSERA_SIZES;
BENCHMARK_CAPTURE(PlaceAndUndo, pack_fraction, FindPacked, GpuRequest::Fraction(kHalf))
TESSERA_SIZES;
BENCHMARK_CAPTURE(PlaceAndUndo, pack_slice, FindPacked, GpuRequest::Profile("1g.10gb"))
TESSERA_SIZES;
BENCHMARK_CAPTURE(PlaceAndUndo, spread_whole, FindSpread, GpuRequest::Whole(1)) TESSERA_SIZES;
BENCHMARK_CAPTURE(PlaceAndUndo, spread_slice, FindSpread, GpuRequest::Profile("3g.40gb"))
TESSERA_SIZES;

// A scorer of the host: by scan, and remembered. Between two questions one node changes
// twice, so the ranking scores that node, and the winner.
void ScanAndUndo(benchmark::State& bench) {
  PlaceAndUndo(
      bench,
      [](const ClusterState& state, const PodQuery& query) {
        return FindBest(state, query, PackGpus());
      },
      GpuRequest::Whole(1));
}
void RankAndUndo(benchmark::State& bench) {
  RankedFinder<PackGpus> find{PackGpus()};
  PlaceAndUndo(bench, find.AsFinder(), GpuRequest::Whole(1));
}
BENCHMARK(ScanAndUndo) TESSERA_SIZES;
BENCHMARK(RankAndUndo) TESSERA_SIZES;

// 128 one-GPU pods that must share a rack of 16 nodes.
void GangInRack(benchmark::State& bench) {
  const int nodes = static_cast<int>(bench.range(0));
  SnapshotSpec spec = H100Cluster(nodes);
  spec.workloads.push_back(PendingGang("gang", 128, GpuRequest::Whole(1)));
  spec.workloads[0].gang.topology.required = "rack";
  const Snapshot snapshot = *Snapshot::Create(std::move(spec));
  ClusterState state(std::make_shared<const StateTables>(snapshot), {});
  for (auto _ : bench) {
    benchmark::DoNotOptimize(PlaceGang(state, WorkloadId(0)).pods.size());
    state.RollBack(0);
  }
  bench.counters["ns_per_pod"] = benchmark::Counter(
      128.0, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(GangInRack)->RangeMultiplier(10)->Range(1000, 100000)->Unit(benchmark::kMicrosecond);

void CopyState(benchmark::State& bench) {
  const ClusterState state = HalfFull(static_cast<int>(bench.range(0)), GpuRequest::Whole(1));
  for (auto _ : bench) {
    ClusterState copy = state;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(CopyState)->RangeMultiplier(10)->Range(1000, 100000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tessera
