#include "src/preemption/exact_room.h"

#include <algorithm>

#include "src/preemption/claim_account.h"
#include "src/preemption/exact_places.h"
#include "src/preemption/room_moves.h"
#include "src/preemption/room_writer.h"

namespace tessera {

ExactRoom::ExactRoom(ClusterState& state, QuotaLedger& ledger, YieldBook& book,
                     const RoomRules& rules, const RoomClaim& claim)
    : state_(state),
      snapshot_(state.snapshot()),
      ledger_(ledger),
      book_(book),
      rules_(rules),
      claim_(claim),
      budget_(rules.exact_budget),
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
  if (!CouldSuffice()) return solution_;
  Branch(0, /*is_new=*/true);
  const bool moves =
      std::ranges::any_of(items_, [this](PodId p) { return book_.rule(p) == YieldRule::kMoved; });
  if ((!moves && !carves_ && !misses_) || budget_ <= 0) return solution_;
  // Of what a gang grows by only the first unit that fits is known.
  is_exact_ = !claim_.grows;
  every_place_ = true;
  budget_ = rules_.exact_budget;
  if (is_exact_) Branch(0, /*is_new=*/true);
  return solution_;
}

// The pods before `next` are decided; they leave or stay. `is_new`: whether what leaves has not
// been tried yet.
void ExactRoom::Branch(size_t next, bool is_new) {
  if (book_.total() >= best_ || budget_ <= 0) return;
  // Whoever leaves besides makes it dearer, unless more have to move to let all move, or to
  // leave so that queues permit it.
  if (is_new && TryLeaving()) return;
  while (next < items_.size() && book_.leaves(items_[next])) ++next;
  if (next == items_.size()) return;
  const PodId p = items_[next];
  // What is still undecided costs no less.
  if (book_.total() + book_.pod_cost(p) >= best_) return;
  const YieldBook::Mark mark = book_.GetMark();
  if (MayLeave(next) && book_.Displace({&p, 1}) && IsCoherent(mark)) Branch(next + 1, true);
  book_.RollBack(mark);
  stays_[static_cast<size_t>(p.value())] = 1;
  if (budget_ > 0 && CouldSuffice()) Branch(next + 1, false);
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
  const GangPlacement found = FindPlace(nullptr);
  state_.RollBack(mark);
  budget_ -= static_cast<int64_t>(items_.size() + found.pods.size());
  return found.placed() || found.outcome == SearchOutcome::kBudgetExhausted;
}

// Whether it suffices that exactly those leave that do, and nothing that leaves besides can
// make it cheaper. What suffices is the best so far if it is.
bool ExactRoom::TryLeaving() {
  const ClusterState::Mark mark = state_.GetMark();
  RoomSolution solution;
  for (PodId p : items_) {
    if (!book_.leaves(p)) continue;
    state_.Remove(p);
    solution.leaving.push_back(p);
  }
  const bool suffices = every_place_ ? TryEveryPlace(solution) : PlaceAll(solution);
  state_.RollBack(mark);
  if (!suffices || (!every_place_ && !IsInOrder(solution))) return false;
  const bool is_bare = solution.cost == book_.total();
  if (solution.cost >= best_) return is_bare;
  best_ = solution.cost;
  std::ranges::sort(solution.leaving);
  solution_ = std::move(solution);
  return is_bare;
}

// By the usual places: the claimant's, then those of who moves.
bool ExactRoom::PlaceAll(RoomSolution& solution) {
  const ClusterState::Mark mark = state_.GetMark();
  if (!PlaceClaimant(solution) || !MoveAll(solution)) return false;
  for (PodTarget& target : solution.placed) target.placement = state_.placement(target.pod);
  const int64_t operations = MigOperations(state_, mark);
  carves_ |= operations > 0 && rules_.costs.mig_operation > 0;
  solution.cost = book_.total() + RoomCost{operations * rules_.costs.mig_operation, 0};
  return true;
}

ClaimAccount ExactRoom::MakeAccount() const {
  return {snapshot_,
          ledger_,
          rules_.victims.mig_charge,
          claim_.workload,
          book_.asks_entitlement() ? &book_.entitlements() : nullptr,
          claim_.barred};
}

GangPlacement ExactRoom::FindPlace(Account* account) {
  const GangOptions options{account, rules_.gang_budget};
  return claim_.grows ? GrowGang(state_, claim_.workload, FindPacked, options)
                      : PlaceGang(state_, claim_.workload, FindPacked, options);
}

bool ExactRoom::PlaceClaimant(RoomSolution& solution) {
  ClaimAccount account = MakeAccount();
  const GangPlacement found = FindPlace(&account);
  budget_ -= static_cast<int64_t>(1 + solution.leaving.size() + found.pods.size());
  solution.placed.clear();
  for (PodId p : found.pods) solution.placed.push_back({p, PodPlacement()});
  if (!found.placed() || found.pods.empty()) {  // a gang that wants nothing more is placed, too
    misses_ |= found.outcome == SearchOutcome::kBudgetExhausted;
    return false;
  }
  if (!book_.asks_entitlement() || book_.entitlements().IsBalanced(account.charged())) return true;
  misses_ = true;  // on other GPUs it might be charged another amount
  return false;
}

// By whatever places there are, if they cost less than the best so far.
bool ExactRoom::TryEveryPlace(RoomSolution& solution) {
  const int64_t price = rules_.costs.mig_operation;
  const ClusterState::Mark mark = state_.GetMark();
  misses_ = false;
  const bool fits = PlaceClaimant(solution);
  state_.RollBack(mark);
  if (!fits && !misses_) return false;
  std::vector<PodTarget> homes;
  for (PodId p : solution.leaving) {
    if (book_.rule(p) != YieldRule::kMoved) continue;
    if (!MayMove(snapshot_, p)) return false;
    homes.push_back({p, book_.home(p)});
  }
  ClaimAccount account = MakeAccount();
  const auto permits = [&] {
    return !book_.asks_entitlement() || book_.entitlements().IsBalanced(account.charged());
  };
  ExactPlaces places(state_, claim_.workload, homes, account, permits, budget_);
  const int64_t most = best_.points - book_.total().points;
  const int64_t below = price > 0 ? most / price + 1 : INT64_MAX;
  std::optional<ExactPlaces::Result> found = places.Run(below);
  budget_ = places.budget();
  if (!found || found->placed.empty()) return false;
  if (found->operations > 0 && price > 0 && !places.is_least()) is_exact_ = false;
  solution.placed = std::move(found->placed);
  solution.moved = std::move(found->moved);
  solution.cost = book_.total() + RoomCost{found->operations * price, 0};
  return true;
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
  budget_ -= static_cast<int64_t>(pods.size());
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
