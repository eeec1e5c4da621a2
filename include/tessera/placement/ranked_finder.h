#ifndef TESSERA_PLACEMENT_RANKED_FINDER_H_
#define TESSERA_PLACEMENT_RANKED_FINDER_H_

// `FindBest` for hosts that ask again and again: remembers, for each kind of pod, how
// all nodes rank, and asks the scorer only about nodes that changed since.
//
//   RankedFinder find{MyScorer()};
//   Plan plan = Schedule(snapshot, Strict(), find.AsFinder()).plan;

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tessera/placement/finders.h"
#include "tessera/placement/node_scorer.h"
#include "tessera/placement/pod_query.h"
#include "tessera/state/change_journal.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

struct RankingOptions {
  // Which of equal scores goes first, as `order[node]`, a permutation; empty: the
  // lowest node. See `SeededOrder`.
  std::vector<int32_t> order;
  // Rankings are dropped, those of states that are gone and then the least recently used
  // first, when there are 1024 or all together exceed this. A ranking takes 12 to 16
  // bytes a node; one is always kept.
  size_t max_bytes = size_t{64} << 20;
};

// A permutation of 0 .. n-1 that depends on the seed alone, equal on every machine.
std::vector<int32_t> SeededOrder(int n, uint64_t seed);

// For each kind of pod a tournament of (score, order) over all nodes: the root is the
// best node, a range of nodes is answered from O(log) inner matches. A ranking catches
// up from the state's journal.
//
// A kind is a request class; pod sets that bound their pods per node or domain are kinds
// of their own, and so is every pod set where tenants isolate themselves. Rankings of
// several states are kept apart.
class NodeRankings {
 public:
  explicit NodeRankings(RankingOptions options = {}) : options_(std::move(options)) {}

  // What `FindBest(state, query, score, every_device)` finds, with ties by `order`, if
  // `score` depends on its candidate's node alone and always was the same function.
  // O(log nodes), plus O(log nodes) and a score for each node changed since the last
  // such query; O(nodes) for the first one or when the journal has forgotten. Where a
  // domain gets or loses the last pod that its bound allows, all its nodes have changed.
  std::optional<PodPlacement> Find(const ClusterState& state, const PodQuery& query,
                                   BatchScorer score, bool every_device);

  // Bytes of all rankings, for reports.
  size_t MemoryBytes() const;

 private:
  // Which ranking: of this history, this pod set (or class: below zero).
  struct Key {
    const void* history = nullptr;
    int32_t kind = 0;
    uint64_t excluded_models = 0;

    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.history, key.kind, key.excluded_models);
    }
  };

  struct Ranking {
    ChangeJournal::History history;  // keeps `Key::history` from being used again
    size_t seen = 0;                 // changes taken in
    uint64_t last_used = 0;
    std::vector<int64_t> scores;   // by node; `kUnfit` where the pod does not fit
    std::vector<int32_t> winners;  // inner nodes of the tree, 1 is the root; -1: none fits
    std::vector<bool> full;        // by domain, of a pod set that bounds its pods in each
  };

  Ranking& Fetch(const ClusterState& state, const PodQuery& query);
  void MakeRoom(int nodes);
  // Notes whether domain `d` is full of pods of `s`; the nodes that this changes.
  static NodeRange NoteFull(const ClusterState& state, PodSetId s, DomainId d, Ranking& ranking);
  // Scores `nodes`, which are distinct, and replays their matches.
  void Rescore(const ClusterState& state, const PodQuery& query, BatchScorer score,
               bool every_device, std::span<const int32_t> nodes, Ranking& ranking);
  void CatchUp(const ClusterState& state, const PodQuery& query, BatchScorer score,
               bool every_device, Ranking& ranking);
  int32_t Match(const Ranking& ranking, int32_t a, int32_t b) const;
  int32_t Entrant(const Ranking& ranking, size_t at) const;
  int32_t BestIn(const Ranking& ranking, NodeRange range) const;

  RankingOptions options_;
  absl::flat_hash_map<Key, Ranking> rankings_;
  uint64_t clock_ = 0;           // counts queries
  std::vector<uint64_t> stamp_;  // by node: the last catching up that met it
  std::vector<Candidate> candidates_;
  std::vector<int64_t> scores_;
  std::vector<int32_t> changed_;
};

// A finder by a node-local scorer. It remembers, so it is not to be shared between
// threads; what it finds does not depend on what it was used for before.
template <NodeScorer Scorer>
class RankedFinder {
 public:
  explicit RankedFinder(Scorer scorer, RankingOptions options = {})
      : scorer_(std::move(scorer)), rankings_(std::move(options)) {}

  std::optional<PodPlacement> operator()(const ClusterState& state, const PodQuery& query) {
    return rankings_.Find(
        state, query,
        [&](std::span<const Candidate> candidates, std::span<int64_t> scores) {
          ScoreBatch(scorer_, state, query.pod_set, candidates, scores);
        },
        ScoresEveryDevice<Scorer>());
  }

  // As a `PodFinder`, which takes only what can be called when const.
  auto AsFinder() {
    return
        [this](const ClusterState& state, const PodQuery& query) { return (*this)(state, query); };
  }

  const Scorer& scorer() const { return scorer_; }
  const NodeRankings& rankings() const { return rankings_; }

 private:
  Scorer scorer_;
  NodeRankings rankings_;
};

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_RANKED_FINDER_H_
