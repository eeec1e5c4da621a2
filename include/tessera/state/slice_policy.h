#ifndef TESSERA_STATE_SLICE_POLICY_H_
#define TESSERA_STATE_SLICE_POLICY_H_

// How the places for MIG instances are judged throughout a cluster.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tessera/cluster/snapshot.h"
#include "tessera/gpu/slice_costs.h"
#include "tessera/gpu/slice_scorer.h"

namespace tessera {

// What is expected to be asked of one GPU model. Only the proportions matter.
struct SliceDemand {
  std::map<std::string, int64_t, std::less<>> profiles;  // weight by profile name
  int64_t whole = 0;                                     // of requests for a whole GPU

  friend bool operator==(const SliceDemand&, const SliceDemand&) = default;
};

// What the pods of `snapshot` ask of GPU model `m`, or hold of it: the number of pods that
// are pending, nominated or running, under the profile that they want first, and of the
// devices that they want whole. A pod that several models suit counts on each. Fractions
// count as nothing: they share one opened GPU. O(pod sets).
SliceDemand EstimateSliceDemand(const Snapshot& snapshot, ModelId m);

// One millionth of what an empty GPU is worth, whole or sliced.
inline constexpr int64_t kWorthOfEmptyGpu = 1000000;

// The default: the fragmentation gradient (`FragmentationGradient`) with the whole GPU as
// one more thing that can be asked for, in `kWorthOfEmptyGpu`s of a GPU. An idle instance
// of a static GPU costs what its own room is worth. Carving and destroying cost 1 % of a
// GPU each, switching MIG mode 2 %: enough to decide between like places, and to use an
// idle instance unless a new one would keep clearly more room.
struct SlicePolicy {
  using Score = std::function<int64_t(const MigTables&, LayoutKey before, int profile, int start)>;

  // By GPU model; where a model is missing, `EstimateSliceDemand`. Unknown models and
  // profiles are ignored, weights below 0 count as 0, large ones as `kMaxDemandWeight`.
  std::map<std::string, SliceDemand, std::less<>> demand;
  // None: by the gradient, what the whole GPU is worth under the demand.
  std::optional<int64_t> open;
  int64_t set_mig = kWorthOfEmptyGpu / 50;
  int64_t create = kWorthOfEmptyGpu / 100;
  int64_t destroy = kWorthOfEmptyGpu / 100;
  // Instead of the gradient: any `SliceScorer`, see `ScoreSlicesBy`. Then all idle
  // instances of static GPUs cost nothing, `open` is 0 unless stated, and the costs are
  // in the unit of the score.
  Score score;
};

// A policy that asks `scorer`, with no costs but those given: with `WorstFitSlice` and
// `open` below zero it spreads.
template <SliceScorer Scorer>
SlicePolicy ScoreSlicesBy(const Scorer& scorer, const SliceCosts& costs = {}) {
  return {{},
          costs.open,
          costs.set_mig,
          costs.create,
          costs.destroy,
          [scorer](const MigTables& tables, LayoutKey before, int profile, int start) {
            return scorer.Score(tables, before, profile, start);
          }};
}

// The costs of `policy` on GPU model `m`. See `SliceCostTable` for what that takes.
SliceCostTable MakeSliceCostTable(const Snapshot& snapshot, ModelId m, const SlicePolicy& policy);

}  // namespace tessera

#endif  // TESSERA_STATE_SLICE_POLICY_H_
