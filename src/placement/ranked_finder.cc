#include "tessera/placement/ranked_finder.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "src/placement/candidates.h"

namespace tessera {
namespace {

constexpr int64_t kUnfit = std::numeric_limits<int64_t>::min();

// So many are searched for the one to drop.
constexpr size_t kMostRankings = 1024;

// The number of entrants that the tree has room for: a power of two.
size_t LeavesFor(size_t nodes) { return std::bit_ceil(std::max<size_t>(nodes, 2)); }

size_t BytesFor(size_t nodes) {
  return nodes * sizeof(int64_t) + LeavesFor(nodes) * sizeof(int32_t);
}

}  // namespace

std::vector<int32_t> SeededOrder(int n, uint64_t seed) {
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) {
    // SplitMix64; the remainder's bias is below 2^-40 for any cluster.
    uint64_t z = (seed += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    std::swap(order[i - 1], order[(z ^ (z >> 31)) % i]);
  }
  return order;
}

std::optional<PodPlacement> NodeRankings::Find(const ClusterState& state, const PodQuery& query,
                                               BatchScorer score, bool every_device) {
  ++clock_;
  Ranking& ranking = Fetch(state, query);
  CatchUp(state, query, score, every_device, ranking);
  const int32_t best = BestIn(ranking, query.range);
  if (best < 0) return std::nullopt;
  // Placements are not kept: the winner shows its candidates once more.
  candidates_.clear();
  placement_internal::AddCandidates(state, query, NodeId(best), every_device, candidates_);
  scores_.resize(candidates_.size());
  score(candidates_, scores_);
  return candidates_[static_cast<size_t>(std::ranges::max_element(scores_) - scores_.begin())]
      .placement;
}

NodeRankings::Ranking& NodeRankings::Fetch(const ClusterState& state, const PodQuery& query) {
  const PodSetInfo& set = state.snapshot().pod_set(query.pod_set);
  const bool own = set.is_spread() || state.tables().tracks_tenants();
  const Key key{state.journal().history().get(),
                own ? query.pod_set.value() : -1 - set.request_class.value(),
                query.excluded_models};
  const int nodes = state.snapshot().num_nodes();
  if (!rankings_.contains(key)) MakeRoom(nodes);
  Ranking& ranking = rankings_[key];
  ranking.history = state.journal().history();
  ranking.last_used = clock_;
  return ranking;
}

void NodeRankings::MakeRoom(int nodes) {
  // Nobody else holds the history of a state that is gone.
  absl::erase_if(rankings_,
                 [](const auto& entry) { return entry.second.history.use_count() == 1; });
  while (!rankings_.empty() &&
         (rankings_.size() >= kMostRankings ||
          MemoryBytes() + BytesFor(static_cast<size_t>(nodes)) > options_.max_bytes)) {
    // `last_used` differs between rankings, so which one goes does not depend on
    // the order of the map.
    auto oldest = rankings_.begin();
    for (auto it = rankings_.begin(); it != rankings_.end(); ++it) {
      if (it->second.last_used < oldest->second.last_used) oldest = it;
    }
    rankings_.erase(oldest);
  }
}

void NodeRankings::CatchUp(const ClusterState& state, const PodQuery& query, BatchScorer score,
                           bool every_device, Ranking& ranking) {
  const StateTables& tables = state.tables();
  const PodSetInfo& set = state.snapshot().pod_set(query.pod_set);
  const RequestClassId c = set.request_class;
  const size_t nodes = static_cast<size_t>(state.snapshot().num_nodes());
  const ChangeJournal& journal = state.journal();
  const auto may_serve = [&](int signature) {
    const ModelId m = tables.signatures()[static_cast<size_t>(signature)].model;
    return tables.eligibility(c, signature) == Eligibility::kEligible &&
           !(m.valid() && ((query.excluded_models >> m.value()) & 1) != 0);
  };
  changed_.clear();
  if (ranking.scores.empty() || !journal.remembers(ranking.seen)) {
    ranking.scores.assign(nodes, kUnfit);
    const Topology& topology = state.snapshot().topology();
    if (set.max_per_domain > 0) ranking.full.resize(topology.domains(set.domain_level).size());
    ranking.winners.assign(LeavesFor(nodes), -1);
    for (size_t d = 0; d < ranking.full.size(); ++d) {
      NoteFull(state, query.pod_set, DomainId(static_cast<int32_t>(d)), ranking);
    }
    for (int s = 0; s < static_cast<int>(tables.signatures().size()); ++s) {
      const std::vector<int32_t>& of = tables.signatures()[static_cast<size_t>(s)].nodes;
      if (may_serve(s)) changed_.insert(changed_.end(), of.begin(), of.end());
    }
  } else {
    stamp_.resize(std::max(stamp_.size(), nodes));
    const auto add = [&](NodeId n) {
      uint64_t& stamp = stamp_[static_cast<size_t>(n.value())];
      if (stamp == clock_ || !may_serve(tables.signature_of(n))) return;
      stamp = clock_;
      changed_.push_back(n.value());
    };
    for (size_t i = ranking.seen; i < journal.count(); ++i) {
      add(journal.at(i));
      if (set.max_per_domain == 0) continue;
      const DomainId d = state.snapshot().topology().domain_of(journal.at(i), set.domain_level);
      const NodeRange flipped = NoteFull(state, query.pod_set, d, ranking);
      for (int n = flipped.begin; n < flipped.end; ++n) add(NodeId(n));
    }
  }
  ranking.seen = journal.count();
  Rescore(state, query, score, every_device, changed_, ranking);
}

NodeRange NodeRankings::NoteFull(const ClusterState& state, PodSetId s, DomainId d,
                                 Ranking& ranking) {
  if (!d.valid()) return {};
  const bool full = state.LeftIn(d, s) == 0;
  if (ranking.full[static_cast<size_t>(d.value())] == full) return {};
  ranking.full[static_cast<size_t>(d.value())] = full;
  return state.snapshot().topology().NodesOf(state.snapshot().pod_set(s).domain_level, d);
}

void NodeRankings::Rescore(const ClusterState& state, const PodQuery& query, BatchScorer score,
                           bool every_device, std::span<const int32_t> nodes, Ranking& ranking) {
  // 1. The candidates of all nodes, one after the other.
  candidates_.clear();
  for (int32_t n : nodes) {
    placement_internal::AddCandidates(state, query, NodeId(n), every_device, candidates_);
    ranking.scores[static_cast<size_t>(n)] = kUnfit;
  }
  scores_.resize(candidates_.size());
  score(candidates_, scores_);
  // 2. A node is worth its best candidate; the lowest score still fits.
  for (size_t i = 0; i < candidates_.size(); ++i) {
    int64_t& best = ranking.scores[static_cast<size_t>(candidates_[i].node.value())];
    best = std::max({best, scores_[i], kUnfit + 1});
  }
  // 3. Matches: all of them where many nodes changed, else those on the way up.
  const size_t leaves = ranking.winners.size();
  const auto replay = [&](size_t at) {
    ranking.winners[at] = Match(ranking, Entrant(ranking, 2 * at), Entrant(ranking, 2 * at + 1));
  };
  if (nodes.size() * 8 > leaves) {
    for (size_t at = leaves - 1; at > 0; --at) replay(at);
    return;
  }
  for (int32_t n : nodes) {
    for (size_t at = (leaves + static_cast<size_t>(n)) / 2; at > 0; at /= 2) replay(at);
  }
}

// Who enters a match from below: position `at` of the tree, leaves after inner nodes.
int32_t NodeRankings::Entrant(const Ranking& ranking, size_t at) const {
  const size_t leaves = ranking.winners.size();
  if (at < leaves) return ranking.winners[at];
  const size_t n = at - leaves;
  return n < ranking.scores.size() && ranking.scores[n] != kUnfit ? static_cast<int32_t>(n) : -1;
}

int32_t NodeRankings::Match(const Ranking& ranking, int32_t a, int32_t b) const {
  if (a < 0 || b < 0) return std::max(a, b);
  const int64_t score_a = ranking.scores[static_cast<size_t>(a)];
  const int64_t score_b = ranking.scores[static_cast<size_t>(b)];
  if (score_a != score_b) return score_a > score_b ? a : b;
  if (options_.order.empty()) return std::min(a, b);
  const std::vector<int32_t>& order = options_.order;
  return order[static_cast<size_t>(a)] < order[static_cast<size_t>(b)] ? a : b;
}

int32_t NodeRankings::BestIn(const Ranking& ranking, NodeRange range) const {
  const size_t leaves = ranking.winners.size();
  const int32_t nodes = static_cast<int32_t>(ranking.scores.size());
  if (range.begin <= 0 && range.end >= nodes) return ranking.winners[1];
  int32_t best = -1;
  size_t from = leaves + static_cast<size_t>(std::clamp(range.begin, 0, nodes));
  size_t to = leaves + static_cast<size_t>(std::clamp(range.end, 0, nodes));
  for (; from < to; from /= 2, to /= 2) {
    if (from % 2 == 1) best = Match(ranking, best, Entrant(ranking, from++));
    if (to % 2 == 1) best = Match(ranking, best, Entrant(ranking, --to));
  }
  return best;
}

size_t NodeRankings::MemoryBytes() const {
  size_t bytes = 0;
  for (const auto& [key, ranking] : rankings_) {
    bytes +=
        ranking.scores.capacity() * sizeof(int64_t) + ranking.winners.capacity() * sizeof(int32_t);
  }
  return bytes;
}

}  // namespace tessera
