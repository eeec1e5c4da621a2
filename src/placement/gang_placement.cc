#include "tessera/placement/gang_placement.h"

#include <algorithm>
#include <numeric>

#include "absl/functional/function_ref.h"
#include "src/placement/gang_view.h"

namespace tessera {
namespace {

// One search for one gang.
class GangSearch {
 public:
  GangSearch(ClusterState& state, WorkloadId w, PodFinder find, const GangOptions& options)
      : state_(state),
        snapshot_(state.snapshot()),
        view_(state, w),
        find_(find),
        account_(options.account),
        budget_(options.budget) {}

  GangPlacement PlaceMinimum() {
    return Finish(Constrained(0, AllNodes(), [this](NodeRange range) { return Meet(0, range); }));
  }

  GangPlacement Grow() {
    growing_ = true;
    const bool grown =
        Constrained(0, AllNodes(), [this](NodeRange range) { return GrowNode(0, range); });
    if (!grown && !wanted_more_) return {};
    if (!grown && !stuck_at_.valid()) failure_ = SearchOutcome::kDependency;
    return Finish(grown);
  }

 private:
  using TryRange = absl::FunctionRef<bool(NodeRange)>;

  NodeRange AllNodes() const { return {0, snapshot_.num_nodes()}; }

  GangPlacement Finish(bool placed) {
    if (placed) return {SearchOutcome::kPlaced, std::move(placed_), PodSetId()};
    if (budget_ <= 0) failure_ = SearchOutcome::kBudgetExhausted;
    return {failure_, {}, stuck_at_};
  }

  bool Fail(SearchOutcome why, PodSetId stuck_at) {
    failure_ = why;
    stuck_at_ = stuck_at;
    return false;
  }

  // Runs `attempt`, and takes back what it placed if it fails.
  bool Undoably(TryRange attempt, NodeRange range) {
    const ClusterState::Mark mark = state_.GetMark();
    const size_t charges = account_ != nullptr ? account_->GetMark() : 0;
    const size_t pods = placed_.size();
    if (attempt(range)) return true;
    state_.RollBack(mark);
    if (account_ != nullptr) account_->RollBack(charges);
    placed_.resize(pods);
    return false;
  }

  // Domains of `level` within `range` that can suffice, fewest free GPUs first.
  std::vector<NodeRange> DomainsOf(int level, NodeRange range, int64_t gpus_needed) const {
    const std::span<const TopologyDomain> all = snapshot_.topology().domains(level);
    const NodeRange within = snapshot_.topology().DomainsWithin(level, range);
    std::vector<std::pair<int64_t, int>> order;
    for (int d = within.begin; d < within.end; ++d) {
      const int64_t free = state_.free_gpus(level, DomainId(d));
      if (free >= gpus_needed) order.emplace_back(free, d);
    }
    std::ranges::sort(order);
    std::vector<NodeRange> ranges;
    for (const auto& entry : order) {
      ranges.push_back(all[static_cast<size_t>(entry.second)].nodes);
    }
    return ranges;
  }

  // Tries `attempt` on the ranges that the constraints of `g` allow, in order.
  bool Constrained(int g, NodeRange range, TryRange attempt) {
    const int required = view_.at(g).required_level;
    if (required < 0) return Preferring(g, range, attempt);
    const NodeRange occupied = view_.Occupied(g);
    if (!occupied.empty()) {
      const Topology& topology = snapshot_.topology();
      const DomainId d = topology.domain_of(NodeId(occupied.begin), required);
      NodeRange tied;
      if (d.valid()) tied = topology.domains(required)[static_cast<size_t>(d.value())].nodes;
      if (occupied.end > tied.end) return Fail(SearchOutcome::kDisagreement, view_.FirstSet(g));
      return Preferring(g, Intersect(range, tied), attempt);
    }
    for (NodeRange domain : DomainsOf(required, range, view_.GpusLacking(g))) {
      if (budget_ <= 0) return false;
      if (Preferring(g, domain, attempt)) return true;
    }
    return Fail(SearchOutcome::kTopology, stuck_at_.valid() ? stuck_at_ : view_.FirstSet(g));
  }

  // A preference is for the minimum; what grows later takes what there is.
  bool Preferring(int g, NodeRange range, TryRange attempt) {
    const int outermost = std::max(view_.at(g).required_level + 1, 0);
    for (int level = view_.at(g).preferred_level; !growing_ && level >= outermost; --level) {
      for (NodeRange domain : DomainsOf(level, range, view_.GpusLacking(g))) {
        if (budget_ <= 0) return false;
        if (Undoably(attempt, domain)) return true;
      }
    }
    return Undoably(attempt, range);
  }

  // Places what the minimum below `g` lacks, within `range`.
  bool Meet(int g, NodeRange range) {
    if (view_.Holds(g)) return true;
    if (view_.at(g).is_pod_set()) return MeetPodSet(g, range);
    int holding = 0;
    for (int c : ByDifficulty(g)) {
      if (holding == view_.at(g).min_children) break;
      const auto meet = [this, c](NodeRange within) { return Meet(c, within); };
      if (view_.Holds(c) || Constrained(c, range, meet)) ++holding;
    }
    return holding >= view_.at(g).min_children;
  }

  bool MeetPodSet(int g, NodeRange range) {
    const PodSetInfo& set = view_.set(g);
    int lacking = set.min_count - view_.Standing(g);
    for (int i = 0; i < set.count && lacking > 0; ++i) {
      if (!MayPlace(state_, set.pod(i))) continue;
      if (!PlaceOne(g, set.pod(i), range)) return false;
      --lacking;
    }
    return lacking <= 0 || Fail(SearchOutcome::kFailedPods, view_.set_id(g));
  }

  // Where the account refuses the place found, other GPU models are tried: what
  // a slice or device memory costs depends on the model.
  bool PlaceOne(int g, PodId p, NodeRange range) {
    PodQuery query{view_.set_id(g), range, 0};
    while (true) {
      if (--budget_ < 0) return Fail(SearchOutcome::kBudgetExhausted, query.pod_set);
      const std::optional<PodPlacement> place = find_(state_, query);
      if (!place) {
        const bool refused = query.excluded_models != 0;
        return Fail(refused ? SearchOutcome::kRefused : SearchOutcome::kNoRoom, query.pod_set);
      }
      if (account_ == nullptr || account_->Charge(p, *place)) {
        state_.Place(p, *place);
        placed_.push_back(p);
        return true;
      }
      if (place->gpus == 0) return Fail(SearchOutcome::kRefused, query.pod_set);
      query.excluded_models |= uint64_t{1} << snapshot_.node_model(place->node).value();
    }
  }

  // Places one more unit below `g`, whose minimum holds.
  bool GrowNode(int g, NodeRange range) {
    if (view_.at(g).is_pod_set()) {
      if (state_.placeable(view_.set_id(g)) == 0) return false;
      wanted_more_ = true;
      const PodSetInfo& set = view_.set(g);
      int next = 0;
      while (!MayPlace(state_, set.pod(next))) ++next;
      return PlaceOne(g, set.pod(next), range);
    }
    for (int c : ByNeed(g)) {
      const bool holds = view_.Holds(c);
      wanted_more_ |= !holds;
      const int after = view_.at(c).after;
      if (after >= 0 && !view_.Holds(after)) continue;
      const auto grow = [this, c, holds](NodeRange within) {
        return holds ? GrowNode(c, within) : Meet(c, within);
      };
      if (Constrained(c, range, grow)) return true;
    }
    return false;
  }

  // Children without `after`: those that stand, then the hardest to place.
  std::vector<int> ByDifficulty(int g) const {
    std::vector<int> children;
    for (int c = view_.first_child(g); c < view_.end_child(g); ++c) {
      if (view_.at(c).after < 0) children.push_back(c);
    }
    std::ranges::stable_sort(
        children, {}, [this](int c) { return std::pair(!view_.Holds(c), -view_.Difficulty(c)); });
    return children;
  }

  // Children in the order in which they grow: those that wait for another last,
  // then by the part of their pods that stands.
  std::vector<int> ByNeed(int g) const {
    std::vector<int> children(static_cast<size_t>(view_.at(g).num_children));
    std::iota(children.begin(), children.end(), view_.first_child(g));
    std::ranges::stable_sort(children, [this](int a, int b) {
      const bool a_waits = view_.at(a).after >= 0, b_waits = view_.at(b).after >= 0;
      if (a_waits != b_waits) return b_waits;
      const std::pair<int64_t, int64_t> up_a = view_.Filled(a), up_b = view_.Filled(b);
      return up_a.first * up_b.second < up_b.first * up_a.second;
    });
    return children;
  }

  ClusterState& state_;
  const Snapshot& snapshot_;
  const GangView view_;
  const PodFinder find_;
  Account* const account_;
  int64_t budget_;
  bool growing_ = false;
  bool wanted_more_ = false;
  std::vector<PodId> placed_;
  SearchOutcome failure_ = SearchOutcome::kNoRoom;
  PodSetId stuck_at_;
};

}  // namespace

GangPlacement PlaceGang(ClusterState& state, WorkloadId w, PodFinder find,
                        const GangOptions& options) {
  return GangSearch(state, w, find, options).PlaceMinimum();
}

GangPlacement GrowGang(ClusterState& state, WorkloadId w, PodFinder find,
                       const GangOptions& options) {
  return GangSearch(state, w, find, options).Grow();
}

bool IsWhole(const ClusterState& state, WorkloadId w) { return GangView(state, w).Holds(0); }

bool MayPlace(const ClusterState& state, PodId p) {
  const PodPhase phase = state.snapshot().pod_phase(p);
  return !state.is_placed(p) && (phase == PodPhase::kPending || phase == PodPhase::kNominated);
}

}  // namespace tessera
