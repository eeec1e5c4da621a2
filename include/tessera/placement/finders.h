#ifndef TESSERA_PLACEMENT_FINDERS_H_
#define TESSERA_PLACEMENT_FINDERS_H_

// Finders: which of the places where a pod fits it should get.
//
// `FindPacked` and `FindSpread` ask the index and cost the same on a cluster of
// any size. `FindBest` ranks every node that fits by a scorer of the host, and
// costs a scan of them; `RankedFinder` (ranked_finder.h) remembers the ranking.

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/placement/node_scorer.h"
#include "tessera/placement/pod_query.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// Keeps free GPUs together. GPU pods: the node with the fewest free GPUs that
// suffices; fractions fill opened GPUs before they open another. Slices: the cheapest
// place of all by the state's `SlicePolicy`, at equal cost on the node with the fewest
// free GPUs. Pods without GPU: nodes without GPUs first, then those with the fewest
// free ones. Ties: the lowest node.
std::optional<PodPlacement> FindPacked(const ClusterState& state, const PodQuery& query);

// Spreads load. The node with the most free GPUs; fractions open a free GPU before they
// share one. Slices: as `FindPacked`, but at equal cost on the node with the most free
// GPUs; to spread them, give the state a `SlicePolicy` that does. Ties: the lowest node.
std::optional<PodPlacement> FindSpread(const ClusterState& state, const PodQuery& query);

// `FindPacked`, but a fraction of one device goes to a shared GPU or nowhere.
std::optional<PodPlacement> FindOnSharedGpu(const ClusterState& state, const PodQuery& query);

// The candidate of the highest score, over all nodes that fit, and over all devices
// that differ if `every_device`. Ties: the lowest node, then device. O(nodes).
std::optional<PodPlacement> FindBest(const ClusterState& state, const PodQuery& query,
                                     BatchScorer score, bool every_device = false);

// Calls `scorer` for a batch.
template <NodeScorer Scorer>
void ScoreBatch(const Scorer& scorer, const ClusterState& state, PodSetId pod_set,
                std::span<const Candidate> candidates, std::span<int64_t> scores) {
  const RequestClass& request =
      state.snapshot().request_class(state.snapshot().pod_set(pod_set).request_class);
  for (size_t i = 0; i < candidates.size(); ++i) {
    scores[i] = scorer.Score(state, request, candidates[i]);
  }
}

template <NodeScorer Scorer>
std::optional<PodPlacement> FindBest(const ClusterState& state, const PodQuery& query,
                                     const Scorer& scorer) {
  return FindBest(
      state, query,
      [&](std::span<const Candidate> candidates, std::span<int64_t> scores) {
        ScoreBatch(scorer, state, query.pod_set, candidates, scores);
      },
      ScoresEveryDevice<Scorer>());
}

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_FINDERS_H_
