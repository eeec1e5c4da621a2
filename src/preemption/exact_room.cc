#include "src/preemption/exact_room.h"

#include <algorithm>

#include "src/preemption/claim_account.h"
#include "src/preemption/room_moves.h"

namespace tessera {

ExactRoom::ExactRoom(ClusterState& state, QuotaLedger& ledger, YieldBook& book,
                     MigCharge mig_charge, WorkloadId w, bool grows, const Limits& limits)
    : state_(state),
      snapshot_(state.snapshot()),
      ledger_(ledger),
      book_(book),
      mig_charge_(mig_charge),
      w_(w),
      grows_(grows),
      gang_budget_(limits.gang_budget),
      budget_(limits.exact_budget),
      items_(book.candidates().rbegin(), book.candidates().rend()),
      stays_(static_cast<size_t>(snapshot_.num_pods())) {
  std::ranges::stable_sort(
      items_, [&book](PodId a, PodId b) { return book.pod_cost(a) < book.pod_cost(b); });
  FindTwins();
}

void ExactRoom::FindTwins() {
  twins_.assign(items_.size(), -1);
  for (size_t i = 1; i < items_.size(); ++i) {
    for (size_t j = i; j-- > 0 && twins_[i] < 0;) {
      if (AreTwins(items_[j], items_[i])) twins_[i] = static_cast<int>(j);
    }
  }
}

// Whether it makes no difference but to the cost which of them leaves: they free the same on
// one node, and are of one pod set or each a gang of its own under the same rules.
bool ExactRoom::AreTwins(PodId a, PodId b) const {
  const PodPlacement &left = book_.home(a), &right = book_.home(b);
  const PodSetId s = snapshot_.pod_set_of(a), t = snapshot_.pod_set_of(b);
  if (left.node != right.node || left.share > 0 || left.profile >= 0 || right.profile >= 0 ||
      right.share > 0 || snapshot_.pod_set(s).request_class != snapshot_.pod_set(t).request_class) {
    return false;
  }
  for (int g = 1; g < state_.tables().num_gpus(left.node); ++g) {
    if (state_.gpu(left.node, g).mig != state_.gpu(left.node, 0).mig) return false;
  }
  return s == t || book_.AreInterchangeable(a, b);
}

// Of twins the earlier ones leave first.
bool ExactRoom::MayLeave(size_t item) const {
  return twins_[item] < 0 ||
         !stays_[static_cast<size_t>(items_[static_cast<size_t>(twins_[item])].value())];
}

std::optional<RoomSolution> ExactRoom::Run(RoomCost best) {
  best_ = best;
  solution_.reset();
  if (CouldSuffice()) Branch(0);
  return solution_;
}

// The pods before `next` are decided; they leave or stay.
void ExactRoom::Branch(size_t next) {
  if (book_.total() >= best_ || budget_ <= 0) return;
  // Whoever leaves besides makes it dearer, unless more have to move to let all move, or to
  // leave so that queues permit it.
  if (TryLeaving()) return;
  while (next < items_.size() && book_.leaves(items_[next])) ++next;
  if (next == items_.size()) return;
  const PodId p = items_[next];
  // What is still undecided costs no less.
  if (book_.total() + book_.pod_cost(p) >= best_) return;
  const YieldBook::Mark mark = book_.GetMark();
  if (MayLeave(next) && book_.Displace({&p, 1}) && IsCoherent(mark)) Branch(next + 1);
  book_.RollBack(mark);
  stays_[static_cast<size_t>(p.value())] = 1;
  if (CouldSuffice()) Branch(next + 1);
  stays_[static_cast<size_t>(p.value())] = 0;
}

// Whether nothing left since `mark` that was decided to stay.
bool ExactRoom::IsCoherent(YieldBook::Mark mark) const {
  return std::ranges::none_of(book_.LeavingSince(mark), [this](PodId p) {
    return stays_[static_cast<size_t>(p.value())] != 0;
  });
}

// Whether the claimant would fit if everything left that is not decided to stay.
bool ExactRoom::CouldSuffice() {
  const ClusterState::Mark mark = state_.GetMark();
  for (PodId p : items_) {
    if (!stays_[static_cast<size_t>(p.value())]) state_.Remove(p);
  }
  const GangOptions options{nullptr, gang_budget_};
  const GangPlacement found = grows_ ? GrowGang(state_, w_, FindPacked, options)
                                     : PlaceGang(state_, w_, FindPacked, options);
  state_.RollBack(mark);
  budget_ -= static_cast<int64_t>(items_.size() + found.pods.size());
  return found.placed();
}

// Whether it suffices that exactly those leave that do; then it is the best so far.
bool ExactRoom::TryLeaving() {
  const ClusterState::Mark mark = state_.GetMark();
  RoomSolution solution;
  bool moves = false;
  for (PodId p : items_) {
    if (!book_.leaves(p)) continue;
    state_.Remove(p);
    solution.leaving.push_back(p);
    moves |= book_.rule(p) == YieldRule::kMoved;
  }
  // Both may want the same places, and either may be the harder to place.
  bool suffices = PlaceClaimant(solution) && MoveAll(solution);
  if (!suffices && moves) {
    state_.RollBack(mark);
    for (PodId p : solution.leaving) state_.Remove(p);
    suffices = MoveAll(solution) && PlaceClaimant(solution);
  }
  for (PodTarget& target : solution.placed) target.placement = state_.placement(target.pod);
  state_.RollBack(mark);
  if (!suffices || !IsInOrder(solution)) return false;
  solution.cost = book_.total();
  best_ = solution.cost;
  std::ranges::sort(solution.leaving);
  solution_ = std::move(solution);
  return true;
}

bool ExactRoom::PlaceClaimant(RoomSolution& solution) {
  ClaimAccount account(snapshot_, ledger_, mig_charge_, w_,
                       book_.asks_entitlement() ? &book_.entitlements() : nullptr);
  const GangOptions options{&account, gang_budget_};
  const GangPlacement found = grows_ ? GrowGang(state_, w_, FindPacked, options)
                                     : PlaceGang(state_, w_, FindPacked, options);
  budget_ -= static_cast<int64_t>(1 + solution.leaving.size() + found.pods.size());
  solution.placed.clear();
  for (PodId p : found.pods) solution.placed.push_back({p, PodPlacement()});
  if (!found.placed() || found.pods.empty()) return false;
  return !book_.asks_entitlement() || book_.entitlements().IsBalanced(account.charged());
}

// Finds new places for those that may leave only to such.
bool ExactRoom::MoveAll(RoomSolution& solution) {
  std::vector<PodId> pods;
  std::vector<PodPlacement> homes;
  for (PodId p : solution.leaving) {
    if (book_.rule(p) != YieldRule::kMoved) continue;
    pods.push_back(p);
    homes.push_back(book_.home(p));
  }
  if (pods.empty()) return true;
  solution.moved = FindNewPlaces(state_, pods, homes);
  return solution.moved.size() == pods.size();
}

bool ExactRoom::IsInOrder(const RoomSolution& solution) {
  if (solution.moved.empty()) return true;
  const ClusterState::Mark mark = state_.GetMark();
  for (PodId p : solution.leaving) {
    if (book_.rule(p) != YieldRule::kMoved) state_.Remove(p);
  }
  const bool in_order = InOrder(state_, solution.moved).has_value();
  state_.RollBack(mark);
  return in_order;
}

}  // namespace tessera
