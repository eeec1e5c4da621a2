// Placing a load, and one whole cycle, on the mixed cluster at 1, 10 and 100 times
// 1,523 nodes; memory per pod and per GPU of the search state. `PlaceLoad` is the
// search alone and should not grow with the cluster; `Cycle` also prepares the
// state, which it must, and writes the plan.

#include <benchmark/benchmark.h>

#include <memory>
#include <variant>

#include "bench/support/clusters.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/schedule/schedule.h"
#include "tessera/state/cluster_state.h"

namespace tessera {
namespace {

constexpr int kNodes = 1523;
constexpr int kPods = 8152;

benchmark::Counter PerPlacement(size_t placements) {
  return benchmark::Counter(
      static_cast<double>(placements),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void PlaceLoad(benchmark::State& bench) {
  const int nodes = kNodes * static_cast<int>(bench.range(0));
  const Snapshot snapshot = *Snapshot::Create(MixedCluster(nodes, kPods));
  ClusterState state(std::make_shared<const StateTables>(snapshot), {});
  size_t placed = 0;
  for (auto _ : bench) {
    placed = 0;
    for (int w = 0; w < snapshot.num_workloads(); ++w) {
      placed += PlaceGang(state, WorkloadId(w)).pods.size();
    }
    state.RollBack(0);
  }
  bench.counters["s_per_placement"] = PerPlacement(placed);
}
BENCHMARK(PlaceLoad)->Arg(1)->Arg(10)->Arg(100)->Unit(benchmark::kMillisecond);

void Cycle(benchmark::State& bench) {
  const int nodes = kNodes * static_cast<int>(bench.range(0));
  const int pods = kPods * static_cast<int>(bench.range(1));
  const Snapshot snapshot = *Snapshot::Create(MixedCluster(nodes, pods));
  size_t bound = 0;
  for (auto _ : bench) {
    const CycleResult cycle = Schedule(snapshot);
    bound = 0;
    for (const Action& action : cycle.plan.actions) {
      bound += std::holds_alternative<BindAction>(action) ? 1 : 0;
    }
  }
  bench.counters["pods_bound"] = static_cast<double>(bound);
  bench.counters["s_per_placement"] = PerPlacement(bound);
  const auto tables = std::make_shared<const StateTables>(snapshot);
  const size_t bytes = ClusterState(tables, {}).MemoryBytes();
  bench.counters["state_bytes_per_gpu"] =
      static_cast<double>(bytes - sizeof(PodPlacement) * static_cast<size_t>(pods)) /
      tables->num_gpus();
  bench.counters["state_bytes_per_pod"] = sizeof(PodPlacement);
}
BENCHMARK(Cycle)->Args({1, 1})->Args({10, 1})->Args({100, 1})->Args({10, 10})->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace tessera
