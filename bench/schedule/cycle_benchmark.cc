// One whole cycle. The mixed cluster at 1, 10 and 100 times 1,523 nodes, with
// the load of one (time per placement should stay flat) and with ten times the
// load; memory per pod and per GPU of the search state.

#include <benchmark/benchmark.h>

#include <memory>
#include <variant>

#include "bench/support/clusters.h"
#include "tessera/schedule/schedule.h"
#include "tessera/state/cluster_state.h"

namespace tessera {
namespace {

constexpr int kNodes = 1523;
constexpr int kPods = 8152;

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
  bench.counters["s_per_placement"] =
      benchmark::Counter(static_cast<double>(bound), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
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
