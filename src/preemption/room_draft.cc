// How a planner of room turns a search into a draft: who leaves, why, and where to.

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "src/preemption/room_moves.h"
#include "src/preemption/room_planner.h"
#include "src/preemption/room_writer.h"

namespace tessera {

std::optional<RoomPlanner::Draft> RoomPlanner::TryGreedy(YieldBook& book, const RoomClaim& claim,
                                                         ClaimRow* row) {
  if (row != nullptr) return TryGreedy(book, row->search());
  RoomSearch search(state_, ledger_, book, claim);
  return TryGreedy(book, search);
}

std::optional<RoomPlanner::Draft> RoomPlanner::TryGreedy(YieldBook& book, RoomSearch& search) {
  const ClusterState::Mark mark = state_.GetMark();
  const size_t charges = ledger_.GetMark();
  const YieldBook::Mark yielded = book.GetMark();
  const GangPlacement found = search.Run();
  std::optional<Draft> draft;
  // A gang that wants nothing more is placed, too.
  if (found.placed() && !found.pods.empty()) {
    std::vector<PodTarget> placed;
    for (PodId p : found.pods) placed.push_back({p, state_.placement(p)});
    draft = Elaborate(book, search, std::move(placed), {});
    PriceCarving(mark, draft);
  }
  search.Forget();
  book.RollBack(yielded);
  ledger_.RollBack(charges);
  state_.RollBack(mark);
  return draft;
}

// The same for victims and a placement that were found elsewhere.
std::optional<RoomPlanner::Draft> RoomPlanner::Adopt(YieldBook& book,
                                                     const RoomSolution& solution) {
  const ClusterState::Mark mark = state_.GetMark();
  const size_t charges = ledger_.GetMark();
  const YieldBook::Mark yielded = book.GetMark();
  RoomSearch search(state_, ledger_, book, ClaimAnywhere());
  std::optional<Draft> draft;
  if (book.Displace(solution.leaving)) {
    for (PodId p : solution.leaving) state_.Remove(p);
    search.Adopt(solution.placed);
    std::vector<PodTarget> moved = solution.moved;
    for (const PodTarget& move : moved) {
      state_.Place(move.pod, move.placement);
      search.Keep(move.pod);
    }
    const auto stays = [&](const PodTarget& move) { return StaysAtHome(book, search, move.pod); };
    // Whoever stays may leave room for another to stay.
    while (std::erase_if(moved, stays) > 0) {
    }
    // The search may have been cut short before it left out what can stay. What moves may
    // have to make way for what moves, too.
    search.RestoreWhatCanStay();
    draft = Elaborate(book, search, solution.placed, std::move(moved));
    PriceCarving(mark, draft);
  }
  book.RollBack(yielded);
  ledger_.RollBack(charges);
  state_.RollBack(mark);
  return draft;
}

// The state stands as drafted; at `mark` nobody had left.
void RoomPlanner::PriceCarving(ClusterState::Mark mark, std::optional<Draft>& draft) const {
  if (draft) draft->carving.points = MigOperations(state_, mark) * rules_.costs.mig_operation;
}

// Puts a pod that was moved back if nothing is in its way.
bool RoomPlanner::StaysAtHome(YieldBook& book, RoomSearch& search, PodId p) {
  const ClusterState::Mark mark = state_.GetMark();
  state_.Remove(p);
  const bool ties = KeepsTogether(state_, p, book.home(p).node);
  state_.Place(p, book.home(p));
  if (!ties || !search.Coexists(book.home(p).node)) {
    state_.RollBack(mark);
    return false;
  }
  book.Restore({&p, 1});
  return true;
}

// The search stands as it found the claimant a place.
std::optional<RoomPlanner::Draft> RoomPlanner::Elaborate(YieldBook& book, RoomSearch& search,
                                                         std::vector<PodTarget> placed,
                                                         std::vector<PodTarget> moved) {
  Draft draft;
  draft.solution.placed = std::move(placed);
  draft.solution.moved = std::move(moved);
  for (WorkloadId w : book.Yielding()) {
    draft.solution.leaving.insert(draft.solution.leaving.end(), book.leaving(w).begin(),
                                  book.leaving(w).end());
  }
  draft.needs = NeedsOf(book, search);
  draft.victims_cost = book.total();
  if (!FindPlacesForVictims(book, search, draft)) return std::nullopt;
  return draft;
}

std::vector<RoomPlanner::Need> RoomPlanner::NeedsOf(YieldBook& book, RoomSearch& search) const {
  std::vector<Need> needs;
  for (WorkloadId w : book.Yielding()) {
    const std::vector<PodId> leaving(book.leaving(w).begin(), book.leaving(w).end());
    std::vector<PodId> fitting;
    for (PodId p : leaving) {
      const bool moves = book.rule(p) == YieldRule::kMoved;
      const ClusterState::Mark mark = state_.GetMark();
      if (state_.is_placed(p)) state_.Remove(p);
      const bool follows = moves && !KeepsTogether(state_, p, book.home(p).node);
      state_.Place(p, book.home(p));
      const bool fits = search.Coexists(book.home(p).node);
      state_.RollBack(mark);
      if (fits && !moves) fitting.push_back(p);
      const YieldNeed need = moves && !follows ? YieldNeed::kMove : YieldNeed::kGang;
      needs.push_back({p, fits ? need : YieldNeed::kRoom});
    }
    if (fitting.empty()) continue;
    // What could stay beside the rest of its gang is kept from it by a queue.
    const YieldNeed by_queue =
        book.asks_entitlement() ? YieldNeed::kEntitlement : YieldNeed::kLimit;
    const std::vector<PodId> restorable = book.Restorable(fitting);
    for (Need& need : needs) {
      if (std::ranges::binary_search(restorable, need.pod)) need.need = by_queue;
    }
  }
  return needs;
}

bool RoomPlanner::FindPlacesForVictims(YieldBook& book, RoomSearch& search, Draft& draft) {
  RoomSolution& solution = draft.solution;
  solution.cost = book.total();
  std::vector<PodId> must_move;
  std::vector<PodPlacement> homes;
  for (PodId p : solution.leaving) {
    if (book.rule(p) != YieldRule::kMoved || state_.is_placed(p)) continue;
    must_move.push_back(p);
    homes.push_back(book.home(p));
  }
  const std::vector<PodTarget> moves = FindNewPlaces(state_, must_move, homes);
  if (moves.size() < must_move.size()) return false;
  solution.moved.insert(solution.moved.end(), moves.begin(), moves.end());
  DropIdleMoves(book, draft);
  if (!rules_.victims.replace_victims) return true;
  for (WorkloadId w : book.Yielding()) {
    if (book.rule(book.leaving(w).front()) != YieldRule::kMoved) {
      MoveWhatFits(book, search, w, draft);
    }
  }
  DropWhatStays(book, search, draft);
  solution.cost = book.total();
  for (const PodTarget& moved : solution.moved) {
    if (book.rule(moved.pod) == YieldRule::kMoved) continue;
    solution.cost.points += book.moved_cost(moved.pod);
  }
  return true;
}

// Who finds its own place again, once others are elsewhere, stays.
void RoomPlanner::DropIdleMoves(YieldBook& book, Draft& draft) const {
  for (const PodTarget& move : draft.solution.moved) {
    const bool idle =
        book.rule(move.pod) == YieldRule::kMoved && move.placement == book.home(move.pod);
    if (!idle) continue;
    book.Restore({&move.pod, 1});
    std::erase(draft.solution.leaving, move.pod);
    std::erase_if(draft.needs, [&move](const Need& need) { return need.pod == move.pod; });
  }
  std::erase_if(draft.solution.moved, [&book](const PodTarget& move) {
    return book.rule(move.pod) == YieldRule::kMoved && move.placement == book.home(move.pod);
  });
  draft.solution.cost = book.total();
}

// Where a victim was moved, others that yielded on its account may stay.
void RoomPlanner::DropWhatStays(YieldBook& book, RoomSearch& search, Draft& draft) {
  if (draft.solution.moved.empty()) return;
  for (const PodTarget& move : draft.solution.moved) search.Keep(move.pod);
  search.RestoreWhatCanStay();
  const auto stays = [&](PodId p) {
    return !book.leaves(p) && std::ranges::find(draft.solution.moved, p, &PodTarget::pod) ==
                                  draft.solution.moved.end();
  };
  std::erase_if(draft.solution.leaving, stays);
  std::erase_if(draft.needs, [&](const Need& need) { return stays(need.pod); });
}

// Those pods of `w` that find a place are moved there if its gang can go on with them; what was
// not in the way itself stays where it is.
void RoomPlanner::MoveWhatFits(YieldBook& book, RoomSearch& search, WorkloadId w, Draft& draft) {
  const std::vector<PodId> leaving(book.leaving(w).begin(), book.leaving(w).end());
  const ClusterState::Mark mark = state_.GetMark();
  const YieldBook::Mark yielded = book.GetMark();
  std::vector<PodTarget> targets;
  std::vector<PodId> away;
  std::vector<PodPlacement> homes;
  for (PodId p : leaving) {
    const ClusterState::Mark before = state_.GetMark();
    state_.Place(p, book.home(p));
    if (search.Coexists(book.home(p).node)) {
      targets.push_back({p, book.home(p)});
      continue;
    }
    state_.RollBack(before);
    away.push_back(p);
    homes.push_back(book.home(p));
  }
  const std::vector<PodTarget> moves = FindNewPlaces(state_, away, homes);
  state_.RollBack(mark);
  if (moves.empty()) return;
  targets.insert(targets.end(), moves.begin(), moves.end());
  std::ranges::sort(targets, {}, &PodTarget::pod);
  std::vector<PodId> pods;
  for (const PodTarget& target : targets) pods.push_back(target.pod);
  const std::vector<PodId> staying = book.Restorable(pods);
  if (staying.empty()) return;
  book.Restore(staying);
  if (!search.IsPermitted()) return book.RollBack(yielded);
  for (const PodTarget& target : targets) {
    const PodId p = target.pod;
    if (!std::ranges::binary_search(staying, p)) continue;
    state_.Place(p, target.placement);
    if (target.placement != book.home(p)) draft.solution.moved.push_back(target);
  }
}

// Whether so many victims are needed at least, by the GPUs that each can free.
bool RoomPlanner::IsFewest(const YieldBook& book, size_t victims) const {
  if (victims <= 1) return true;
  int64_t lacking = GpusLacking();
  for (int i = 0; i < snapshot_.num_nodes(); ++i) lacking -= state_.free_gpus(NodeId(i));
  std::array<int64_t, 65> holders{};  // candidates by number of devices
  for (PodId p : book.candidates()) {
    ++holders[static_cast<size_t>(std::popcount(book.home(p).gpus))];
  }
  int64_t least = 0;
  for (int64_t devices = 64; devices > 0 && lacking > 0; --devices) {
    const int64_t needed = (lacking + devices - 1) / devices;
    const int64_t taken = std::min(needed, holders[static_cast<size_t>(devices)]);
    lacking -= taken * devices;
    least += taken;
  }
  return least >= static_cast<int64_t>(victims);
}

}  // namespace tessera
