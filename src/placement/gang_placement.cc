#include "tessera/placement/gang_placement.h"

#include <algorithm>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "src/placement/exact_search.h"
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
        options_(options),
        account_(options.account),
        budget_(options.budget) {}

  GangPlacement PlaceMinimum() {
    if (IsKnownHopeless(0)) return Hopeless(FindHopeless(0));
    if (Constrained(0, AllNodes(), [this](NodeRange range) { return Meet(0, range); })) {
      return Placed();
    }
    if (options_.finder_withholds) return Failed(false);
    const PodSetId hopeless = FindHopeless(0);
    if (hopeless.valid()) return Hopeless(hopeless);
    return budget_ <= 0 ? Failed(false) : PlaceExactly();
  }

  GangPlacement Grow() {
    growing_ = true;
    const auto grow = [this](NodeRange range) { return GrowNode(0, range); };
    if (Constrained(0, AllNodes(), grow)) return Placed();
    // Pods in several domains of a level that all of it requires: nothing was looked at.
    const bool disagrees = failure_ == SearchOutcome::kDisagreement && HasMore();
    if (!wanted_more_ && disagrees) return Failed(true);
    if (!wanted_more_) return {};
    if (!stuck_at_.valid()) failure_ = SearchOutcome::kDependency;
    if (options_.finder_withholds || budget_ <= 0) return Failed(false);
    if (missed_part_ && options_.exact_budget > 0) {
      exactly_ = true;
      const SearchOutcome failure = failure_;
      const PodSetId stuck_at = stuck_at_;
      if (Constrained(0, AllNodes(), grow)) return Placed();
      Fail(undecided_ ? SearchOutcome::kBudgetExhausted : failure, stuck_at);
    }
    return Failed(!undecided_ && (exactly_ || !missed_part_));
  }

 private:
  using TryRange = absl::FunctionRef<bool(NodeRange)>;

  NodeRange AllNodes() const { return {0, snapshot_.num_nodes()}; }

  bool HasMore() const {
    for (int g = 0; g < view_.size(); ++g) {
      if (view_.at(g).is_pod_set() && state_.placeable(view_.set_id(g)) > 0) return true;
    }
    return false;
  }

  GangPlacement Placed() { return {SearchOutcome::kPlaced, std::move(placed_), PodSetId(), false}; }

  GangPlacement Failed(bool proven) const {
    if (budget_ <= 0) return {SearchOutcome::kBudgetExhausted, {}, stuck_at_, false};
    return {failure_, {}, stuck_at_, proven && failure_ != SearchOutcome::kBudgetExhausted};
  }

  static GangPlacement Hopeless(PodSetId stuck_at) {
    return {SearchOutcome::kNoRoom, {}, stuck_at, true};
  }

  // The second gear, for the whole minimum.
  GangPlacement PlaceExactly() {
    if (options_.exact_budget <= 0) return Failed(false);
    const auto [key, pods] = WhatIsLacking();
    if (options_.memory != nullptr && !key.empty()) {
      const auto known = options_.memory->gangs.find(key);
      if (known != options_.memory->gangs.end()) {
        if (pods >= known->second.none_from) return Failed(true);
        if (pods >= known->second.unknown_from) return Undecided();
      }
    }
    const PodSetId refused = FindRefused();
    if (refused.valid()) {
      Fail(SearchOutcome::kRefused, refused);
      return Failed(true);
    }
    ExactSearch search(state_, view_, account_, options_.exact_budget);
    const Verdict verdict = search.Place(0, AllNodes(), /*tied=*/true);
    if (verdict == Verdict::kYes) {
      placed_ = search.pods();
      return Placed();
    }
    const bool proven = verdict == Verdict::kNo;
    if (search.refused().valid()) {
      if (proven) Fail(SearchOutcome::kRefused, search.refused());
    } else if (options_.memory != nullptr && !key.empty()) {
      SearchMemory::InVain& known = options_.memory->gangs[key];
      int64_t& from = proven ? known.none_from : known.unknown_from;
      from = std::min(from, pods);
    }
    return proven ? Failed(true) : Undecided();
  }

  GangPlacement Undecided() {
    failure_ = SearchOutcome::kBudgetExhausted;
    return Failed(false);
  }

  // A pod set that the minimum cannot do without and whose pods the account refuses
  // wherever there is room: they have but one GPU model to choose from, or need none.
  PodSetId FindRefused() {
    if (account_ == nullptr) return PodSetId();
    const size_t mark = account_->GetMark();
    const int leaf = AnyNecessary(0, [this](int at) { return IsRefused(at); });
    account_->RollBack(mark);
    return leaf >= 0 ? view_.set_id(leaf) : PodSetId();
  }

  bool IsRefused(int leaf) {
    const PodSetInfo& set = view_.set(leaf);
    std::optional<NodeId> example;
    for (int s : state_.tables().eligible(set.request_class)) {
      const NodeSignature& signature = state_.tables().signatures()[static_cast<size_t>(s)];
      const bool other = example && snapshot_.node_model(*example) != signature.model;
      if (other && view_.gpu(leaf).kind != GpuRequestKind::kNone) return false;
      if (!example) example = signature.example;
    }
    if (!example) return false;
    const RequestClass& request = snapshot_.request_class(set.request_class);
    const PodPlacement place =
        ExamplePlacement(*example, NeedOn(snapshot_, request, snapshot_.node_model(*example)));
    int lacking = set.min_count - view_.Standing(leaf);
    for (int i = 0; i < set.count && lacking > 0; ++i) {
      if (!MayPlace(state_, set.pod(i))) continue;
      if (!account_->Charge(set.pod(i), place)) return true;
      --lacking;
    }
    return false;
  }

  // What the gang lacks, as far as it decides whether there is room for it; empty
  // if more than that decides. A gang of one pod set is one key for all counts.
  std::pair<std::string, int64_t> WhatIsLacking() const {
    if (state_.tables().tracks_tenants() || !view_.Occupied(0).empty()) return {};
    std::string key;
    int64_t pods = 0;
    int sets = 0;
    for (int g = 0; g < view_.size(); ++g) {
      const GangNode& node = view_.at(g);
      absl::StrAppend(&key, node.parent, "L", node.required_level, "A", node.after >= 0);
      if (!node.is_pod_set()) {
        absl::StrAppend(&key, "k", node.min_children, ";");
        continue;
      }
      const PodSetInfo& set = view_.set(g);
      if (set.max_per_domain > 0) return {};
      if (set.max_per_node > 0 && !snapshot_.releasing().empty()) return {};
      const int lacking = std::max(set.min_count - view_.Standing(g), 0);
      if (state_.placeable(view_.set_id(g)) < lacking) return {};
      absl::StrAppend(&key, "c", set.request_class.value(), "m", set.max_per_node);
      if (view_.size() > 2) absl::StrAppend(&key, "n", lacking);
      key += ';';
      pods += lacking;
      ++sets;
    }
    return {std::move(key), sets > 1 ? 0 : pods};
  }

  // Whether the minimum below `g` cannot do without a request that `memory` knows to
  // fit nowhere.
  bool IsKnownHopeless(int g) const {
    if (options_.memory == nullptr) return false;
    return AnyNecessary(g, [this](int leaf) {
             return options_.memory->is_hopeless(view_.set(leaf).request_class);
           }) >= 0;
  }

  // A pod set that the minimum below `g` cannot do without and that fits nowhere by
  // itself; the first in order of the gang.
  PodSetId FindHopeless(int g) const {
    const int leaf = AnyNecessary(g, [this](int at) { return FitsNowhere(at); });
    return leaf >= 0 ? view_.set_id(leaf) : PodSetId();
  }

  bool FitsNowhere(int leaf) const {
    const PodSetInfo& set = view_.set(leaf);
    SearchMemory* const memory = options_.memory;
    if (memory != nullptr && memory->is_hopeless(set.request_class)) return true;
    if (leaf != nowhere_ && find_(state_, {view_.set_id(leaf), AllNodes(), 0})) return false;
    // Remembered where the request alone decides.
    const bool alone =
        !options_.finder_withholds && !state_.tables().tracks_tenants() && !set.is_spread();
    if (memory != nullptr && alone) memory->NoteHopeless(set.request_class);
    return true;
  }

  // The first leaf of which `test` holds, of those that lack pods and without which
  // the minimum below `g` cannot be; -1: none.
  int AnyNecessary(int g, absl::FunctionRef<bool(int)> test) const {
    if (view_.Holds(g)) return -1;
    if (view_.at(g).is_pod_set()) return test(g) ? g : -1;
    int found = -1, independent = 0;
    for (int c = view_.first_child(g); c < view_.end_child(g); ++c) {
      if (view_.at(c).after >= 0) continue;
      ++independent;
    }
    if (independent > view_.at(g).min_children) return -1;
    for (int c = view_.first_child(g); found < 0 && c < view_.end_child(g); ++c) {
      if (view_.at(c).after < 0) found = AnyNecessary(c, test);
    }
    return found;
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
      const NodeRange tied = topology.NodesOf(required, d);
      if (occupied.end > tied.end) return Fail(SearchOutcome::kDisagreement, view_.FirstSet(g));
      return Preferring(g, Intersect(range, tied), attempt);
    }
    // A part may require a wider level than the domain that it is already in.
    if (IsInOneDomain(required, range) && Preferring(g, range, attempt)) return true;
    for (NodeRange domain : DomainsOf(required, range, view_.GpusLacking(g))) {
      if (budget_ <= 0) return false;
      if (Preferring(g, domain, attempt)) return true;
    }
    return Fail(SearchOutcome::kTopology, stuck_at_.valid() ? stuck_at_ : view_.FirstSet(g));
  }

  // Whether `range` is a part, and not all, of one domain of `level`.
  bool IsInOneDomain(int level, NodeRange range) const {
    const Topology& topology = snapshot_.topology();
    const DomainId d = range.empty() ? DomainId() : topology.domain_of(NodeId(range.begin), level);
    if (!d.valid()) return false;
    const NodeRange all = topology.NodesOf(level, d);
    return all != range && Intersect(all, range) == range;
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
        if (!refused && placed_.empty() && range == AllNodes()) nowhere_ = g;
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
      if (exactly_ || state_.placeable(view_.set_id(g)) == 0) return false;
      wanted_more_ = true;
      const PodSetInfo& set = view_.set(g);
      int next = 0;
      while (!MayPlace(state_, set.pod(next))) ++next;
      return PlaceOne(g, set.pod(next), range);
    }
    for (std::vector<Need> needs = NeedsOf(g); !needs.empty(); needs.pop_back()) {
      std::ranges::pop_heap(needs, std::greater<>());
      const int c = needs.back().child;
      const bool holds = view_.Holds(c);
      wanted_more_ |= !holds;
      const int after = view_.at(c).after;
      if (after >= 0 && !view_.Holds(after)) continue;
      const auto grow = [this, c, holds](NodeRange within) {
        if (holds) return GrowNode(c, within);
        return exactly_ ? MeetExactly(c, within) : Meet(c, within);
      };
      if (Constrained(c, range, grow)) return true;
      missed_part_ |= !holds;
    }
    return false;
  }

  // Places the minimum below `g` by the second gear.
  bool MeetExactly(int g, NodeRange range) {
    ExactSearch search(state_, view_, account_, options_.exact_budget);
    const Verdict verdict = search.Place(g, range, /*tied=*/false);
    undecided_ |= verdict == Verdict::kUndecided;
    placed_.insert(placed_.end(), search.pods().begin(), search.pods().end());
    return verdict == Verdict::kYes;
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

  // A child that may grow. Those that wait for another grow last; the part of its pods that
  // stands decides, then the order of the gang.
  struct Need {
    bool waits;
    std::pair<int64_t, int64_t> filled;
    int child;

    friend bool operator>(const Need& a, const Need& b) {
      if (a.waits != b.waits) return a.waits;
      const int64_t up_a = a.filled.first * b.filled.second;
      const int64_t up_b = b.filled.first * a.filled.second;
      return up_a != up_b ? up_a > up_b : a.child > b.child;
    }
  };

  // The children of `g`, as a heap of which the first to grow is the front: mostly that one
  // grows, and the order of the others is of no use.
  std::vector<Need> NeedsOf(int g) const {
    std::vector<Need> needs;
    needs.reserve(At(view_.at(g).num_children));
    for (int c = view_.first_child(g); c < view_.end_child(g); ++c) {
      needs.push_back({view_.at(c).after >= 0, view_.Filled(c), c});
    }
    std::ranges::make_heap(needs, std::greater<>());
    return needs;
  }

  ClusterState& state_;
  const Snapshot& snapshot_;
  const GangView view_;
  const PodFinder find_;
  const GangOptions& options_;
  Account* const account_;
  int64_t budget_;
  bool growing_ = false;
  bool wanted_more_ = false;
  bool missed_part_ = false;  // of several pods, perhaps: it found no place
  bool exactly_ = false;      // what grows is left to the second gear
  bool undecided_ = false;
  int nowhere_ = -1;  // a leaf of which not even one pod fits
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

std::vector<GangPlacement> PlaceMany(ClusterState& state, std::span<const WorkloadId> workloads,
                                     PodFinder find, const GangOptions& options) {
  SearchMemory memory;
  GangOptions shared = options;
  if (shared.memory == nullptr) shared.memory = &memory;
  std::vector<GangPlacement> results;
  for (WorkloadId w : workloads) results.push_back(PlaceGang(state, w, find, shared));
  return results;
}

bool IsWhole(const ClusterState& state, WorkloadId w) { return GangView(state, w).Holds(0); }

bool MayPlace(const ClusterState& state, PodId p) {
  const PodPhase phase = state.snapshot().pod_phase(p);
  return !state.is_placed(p) && phase != PodPhase::kReleasing && !IsOver(phase);
}

}  // namespace tessera
