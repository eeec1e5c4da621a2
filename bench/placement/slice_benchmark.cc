// Finding the cheapest place for one slice, and taking it, against the number of GPUs.
// The cluster is as a day leaves it: filled to 70 % with slices of all sizes by the
// same policy, then every third pod gone, so that GPUs of many layouts stand open.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "bench/support/clusters.h"
#include "tessera/placement/finders.h"
#include "tessera/state/cluster_state.h"

namespace tessera {
namespace {

struct Share {
  const char* profile;
  int percent;  // of the memory slices
};
constexpr Share kMix[] = {{"1g.10gb", 20}, {"2g.20gb", 20}, {"3g.40gb", 20}, {"4g.40gb", 10}};

ClusterState Sliced(int gpus, const char* asked, const SlicePolicy& policy) {
  SnapshotSpec spec = H100Cluster(gpus / 8);
  for (const Share& share : kMix) {
    const int size = share.profile[0] - '0' + (share.profile[0] == '3' ? 1 : 0);
    spec.workloads.push_back(PendingGang(absl::StrCat("mix-", share.profile),
                                         gpus * 8 * share.percent / 100 / size,
                                         GpuRequest::Profile(share.profile)));
  }
  spec.workloads.push_back(PendingGang("asked", 1, GpuRequest::Profile(asked)));
  // So many small pods that cores would run out before slices.
  for (Workload& w : spec.workloads) w.gang.pod_sets[0].request.cpu = kMillisPerCore;
  const Snapshot snapshot = *Snapshot::Create(std::move(spec));
  ClusterState state(std::make_shared<const StateTables>(snapshot, policy), {});
  const PodId last = PodId(snapshot.info(*snapshot.FindWorkload("asked")).first_pod);
  for (int stride = 0; stride < 7; ++stride) {
    // Sizes come mixed, as they would arrive.
    for (int p = stride; p < snapshot.num_pods(); p += 7) {
      if (PodId(p) == last) continue;
      const PodQuery query{snapshot.pod_set_of(PodId(p)), {0, snapshot.num_nodes()}, 0};
      if (const auto place = FindPacked(state, query)) state.Place(PodId(p), *place);
    }
  }
  for (int p = 0; p < snapshot.num_pods(); p += 3) {
    if (state.is_placed(PodId(p))) state.Remove(PodId(p));
  }
  state.Commit();
  return state;
}

void PlaceSlice(benchmark::State& bench, const char* profile, const SlicePolicy& policy) {
  const int gpus = static_cast<int>(bench.range(0));
  ClusterState state = Sliced(gpus, profile, policy);
  const PodId p(state.snapshot().info(*state.snapshot().FindWorkload("asked")).first_pod);
  const PodQuery query{state.snapshot().pod_set_of(p), {0, gpus / 8}, 0};
  for (auto _ : bench) {
    state.Place(p, *FindPacked(state, query));
    state.RollBack(0);
  }
  bench.counters["state_bytes_per_gpu"] = static_cast<double>(state.MemoryBytes()) / gpus;
}

#define TESSERA_SIZES ->RangeMultiplier(10)->Range(1000, 100000)->Unit(benchmark::kNanosecond)
BENCHMARK_CAPTURE(PlaceSlice, gradient_1g, "1g.10gb", SlicePolicy()) TESSERA_SIZES;
BENCHMARK_CAPTURE(PlaceSlice, gradient_3g, "3g.40gb", SlicePolicy()) TESSERA_SIZES;
BENCHMARK_CAPTURE(PlaceSlice, gradient_7g, "7g.80gb", SlicePolicy()) TESSERA_SIZES;
BENCHMARK_CAPTURE(PlaceSlice, best_fit_1g, "1g.10gb", ScoreSlicesBy(BestFitSlice())) TESSERA_SIZES;

}  // namespace
}  // namespace tessera
