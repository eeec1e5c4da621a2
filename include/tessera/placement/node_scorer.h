#ifndef TESSERA_PLACEMENT_NODE_SCORER_H_
#define TESSERA_PLACEMENT_NODE_SCORER_H_

// What a scorer is: the one thing that a host writes to have pods placed its own way.

#include <concepts>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"
#include "tessera/base/ids.h"
#include "tessera/cluster/request_class.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// A node where the pod fits, and the place it would get there.
struct Candidate {
  NodeId node;
  PodPlacement placement;
  int free_gpus = 0;              // before
  std::span<const int64_t> free;  // of `StateTables::node_resources()`, before
};

// Ranks places for a pod; higher is better, ties fall to the lowest node. A host
// writes one as a struct of ten lines (`examples/custom_scorer.cc`).
//
// The score of a place may depend on the pod's request, on the place and on what its
// node holds, and on nothing else of the state: then `RankedFinder` need not ask again
// until the node changes. (`FindBest` asks every time and allows anything.)
template <typename T>
concept NodeScorer = requires(const T& scorer, const ClusterState& state,
                              const RequestClass& request, const Candidate& candidate) {
  { scorer.Score(state, request, candidate) } -> std::same_as<int64_t>;
};

// A scorer that also chooses among the devices of a node says so with
// `static constexpr bool kEveryDevice = true;`. It is then asked about each device
// that a fraction or a slice could get, in order of index; others are asked once a
// node, about what `ChooseDevices` gives when packing.
template <NodeScorer Scorer>
constexpr bool ScoresEveryDevice() {
  if constexpr (requires {
                  { Scorer::kEveryDevice } -> std::convertible_to<bool>;
                }) {
    return Scorer::kEveryDevice;
  } else {
    return false;
  }
}

// Scores a batch of candidates: `scores[i]` of `candidates[i]`.
using BatchScorer =
    absl::FunctionRef<void(std::span<const Candidate> candidates, std::span<int64_t> scores)>;

// A scorer times a constant.
template <int64_t kWeight, NodeScorer Scorer>
struct Weighted {
  static constexpr bool kEveryDevice = ScoresEveryDevice<Scorer>();
  Scorer scorer;

  int64_t Score(const ClusterState& state, const RequestClass& request,
                const Candidate& candidate) const {
    return kWeight * scorer.Score(state, request, candidate);
  }
};

// The sum of scorers: `ScoreSum<Weighted<3, Packing>, Weighted<1, Headroom>>`. The
// caller sees to it that sums stay within 64 bits.
template <NodeScorer... Scorers>
struct ScoreSum {
  static constexpr bool kEveryDevice = (ScoresEveryDevice<Scorers>() || ...);
  std::tuple<Scorers...> scorers;

  int64_t Score(const ClusterState& state, const RequestClass& request,
                const Candidate& candidate) const {
    return std::apply(
        [&](const Scorers&... s) { return (s.Score(state, request, candidate) + ... + 0); },
        scorers);
  }
};

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_NODE_SCORER_H_
