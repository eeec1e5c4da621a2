#ifndef TESSERA_PLACEMENT_FINDERS_H_
#define TESSERA_PLACEMENT_FINDERS_H_

// Finders: which of the places where a pod fits it should get.
//
// `FindPacked` and `FindSpread` ask the index and cost the same on a cluster of
// any size. `FindBest` ranks every node that fits by a scorer of the host, and
// costs a scan of them.

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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

// A node where the pod fits, and the place it would get there.
struct Candidate {
  NodeId node;
  PodPlacement placement;
  int free_gpus = 0;              // before
  std::span<const int64_t> free;  // of `StateTables::node_resources()`, before
};

// Ranks nodes for a pod; higher is better, ties fall to the lowest node. A host
// writes one as a struct of ten lines (`examples/custom_scorer.cc`).
template <typename T>
concept NodeScorer = requires(const T& scorer, const ClusterState& state,
                              const RequestClass& request, const Candidate& candidate) {
  { scorer.Score(state, request, candidate) } -> std::same_as<int64_t>;
};

// Scores a batch of candidates: `scores[i]` of `candidates[i]`.
using BatchScorer =
    absl::FunctionRef<void(std::span<const Candidate> candidates, std::span<int64_t> scores)>;

// The candidate of the highest score, over all nodes that fit. O(nodes).
std::optional<PodPlacement> FindBest(const ClusterState& state, const PodQuery& query,
                                     BatchScorer score);

template <NodeScorer Scorer>
std::optional<PodPlacement> FindBest(const ClusterState& state, const PodQuery& query,
                                     const Scorer& scorer) {
  const RequestClass& request =
      state.snapshot().request_class(state.snapshot().pod_set(query.pod_set).request_class);
  return FindBest(state, query,
                  [&](std::span<const Candidate> candidates, std::span<int64_t> scores) {
                    for (size_t i = 0; i < candidates.size(); ++i) {
                      scores[i] = scorer.Score(state, request, candidates[i]);
                    }
                  });
}

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_FINDERS_H_
