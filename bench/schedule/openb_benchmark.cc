// A public trace, whole and ten times over: the cluster of openb (1,523 nodes, 6,212
// GPUs) and its 8,152 pods, each copied so many times. Places the whole load by the
// index and by Foresight, and plans it in one cycle. Reads ../shared/data/openb_*.csv, or
// $TESSERA_SHARED/data/...; is skipped where they are not there.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tessera/io/openb.h"
#include "tessera/placement/foresight.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/placement/ranked_finder.h"
#include "tessera/schedule/schedule.h"
#include "tessera/state/cluster_state.h"

namespace tessera {
namespace {

std::string ReadShared(const std::string& name) {
  const char* shared = std::getenv("TESSERA_SHARED");
  std::ifstream in(absl::StrCat(shared != nullptr ? shared : "../shared", "/data/", name),
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// `copies` clusters of the trace in one, with as many of each pod, in order of arrival.
// Nothing, and the benchmark skipped, without the trace.
std::optional<Snapshot> Openb(benchmark::State& bench) {
  const int copies = static_cast<int>(bench.range(0));
  const absl::StatusOr<SnapshotSpec> once = ImportOpenb(ReadShared("openb_node_list_all_node.csv"),
                                                        ReadShared("openb_pod_list_default.csv"));
  if (!once.ok()) {
    bench.SkipWithError("no trace: set TESSERA_SHARED to the folder that has data/openb_*.csv");
    return std::nullopt;
  }
  SnapshotSpec spec = *once;
  spec.nodes.clear();
  spec.workloads.clear();
  for (const Node& node : once->nodes) {
    for (int i = 0; i < copies; ++i) {
      spec.nodes.push_back(node);
      absl::StrAppend(&spec.nodes.back().name, "-", i);
    }
  }
  for (const Workload& workload : once->workloads) {
    for (int i = 0; i < copies; ++i) {
      spec.workloads.push_back(workload);
      absl::StrAppend(&spec.workloads.back().name, "-", i);
    }
  }
  return *Snapshot::Create(std::move(spec));
}

void Report(benchmark::State& bench, size_t placed, const Snapshot& snapshot) {
  bench.counters["pods"] = snapshot.num_pods();
  bench.counters["placed"] = static_cast<double>(placed);
  bench.counters["s_per_pod"] =
      benchmark::Counter(snapshot.num_pods(), benchmark::Counter::kIsIterationInvariantRate |
                                                  benchmark::Counter::kInvert);
}

void PlaceAll(benchmark::State& bench, const Snapshot& snapshot, ClusterState& state,
              PodFinder find) {
  std::vector<WorkloadId> all;
  for (int w = 0; w < snapshot.num_workloads(); ++w) all.emplace_back(w);
  size_t placed = 0;
  for (auto _ : bench) {
    placed = 0;
    for (const GangPlacement& gang : PlaceMany(state, all, find)) placed += gang.pods.size();
    state.RollBack(0);
  }
  Report(bench, placed, snapshot);
}

void OpenbPacked(benchmark::State& bench) {
  const std::optional<Snapshot> snapshot = Openb(bench);
  if (!snapshot) return;
  ClusterState state(std::make_shared<const StateTables>(*snapshot), {});
  PlaceAll(bench, *snapshot, state, FindPacked);
}
BENCHMARK(OpenbPacked)->Arg(1)->Arg(10)->Unit(benchmark::kMillisecond);

void OpenbForesight(benchmark::State& bench) {
  const std::optional<Snapshot> snapshot = Openb(bench);
  if (!snapshot) return;
  ClusterState state(std::make_shared<const StateTables>(*snapshot), {});
  RankedFinder<Foresight> find{Foresight(*snapshot, MixOf(*snapshot))};
  PlaceAll(bench, *snapshot, state, find.AsFinder());
}
BENCHMARK(OpenbForesight)->Arg(1)->Arg(10)->Unit(benchmark::kMillisecond);

// State, order of jobs, placement, diagnoses and plan.
void OpenbCycle(benchmark::State& bench) {
  const std::optional<Snapshot> snapshot = Openb(bench);
  if (!snapshot) return;
  size_t bound = 0;
  for (auto _ : bench) {
    const CycleResult cycle = Schedule(*snapshot);
    bound = 0;
    for (const Action& action : cycle.plan.actions) {
      bound += std::holds_alternative<BindAction>(action) ? 1 : 0;
    }
  }
  Report(bench, bound, *snapshot);
}
BENCHMARK(OpenbCycle)->Arg(1)->Arg(10)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tessera
