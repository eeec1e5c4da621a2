#ifndef TESSERA_SRC_PREEMPTION_EXACT_ROOM_H_
#define TESSERA_SRC_PREEMPTION_EXACT_ROOM_H_

// The cheapest victims, by branch and bound over the pods that may yield.

#include <cstdint>
#include <optional>
#include <vector>

#include "src/preemption/claim_account.h"
#include "src/preemption/room_search.h"
#include "src/preemption/yield_book.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/preemption/make_room.h"

namespace tessera {

// Pods that leave, where those go that move, and where the claimant is then.
struct RoomSolution {
  std::vector<PodId> leaving;
  std::vector<PodTarget> moved;  // of `leaving`
  std::vector<PodTarget> placed;
  RoomCost cost;  // of the victims and, where it was searched for, of MIG operations
};

class ExactRoom {
 public:
  ExactRoom(ClusterState& state, QuotaLedger& ledger, YieldBook& book, const RoomRules& rules,
            const RoomClaim& claim);

  // The cheapest solution that costs less than `best`, MIG operations included, or nothing.
  // State, ledger and book are as before.
  //
  // First places are looked for as `PlaceGang` and `FindNewPlaces` do. Where that may miss some,
  // for pods that move or for the sake of fewer MIG operations, all is searched once more, with
  // as many steps, and every place is tried.
  std::optional<RoomSolution> Run(RoomCost best);

  // Whether the search was not cut short: there is no cheaper solution.
  bool is_complete() const { return budget_ > 0 && is_exact_; }

 private:
  void FindTwins();
  bool AreTwins(PodId a, PodId b) const;
  bool MayLeave(size_t item) const;
  void Branch(size_t next, bool is_new);
  bool IsCoherent(YieldBook::Mark mark) const;
  bool CouldSuffice();
  bool TryLeaving();
  bool PlaceAll(RoomSolution& solution);
  ClaimAccount MakeAccount() const;
  GangPlacement FindPlace(Account* account);
  bool PlaceClaimant(RoomSolution& solution);
  bool TryEveryPlace(RoomSolution& solution);
  bool MoveAll(RoomSolution& solution);
  bool IsInOrder(const RoomSolution& solution);

  ClusterState& state_;
  const Snapshot& snapshot_;
  QuotaLedger& ledger_;
  YieldBook& book_;
  const RoomRules& rules_;
  const RoomClaim claim_;
  int64_t budget_;
  bool is_exact_ = true;      // the search was for all there is
  bool misses_ = false;       // there may be a place for the claimant where none was found
  bool carves_ = false;       // MIG operations were needed where the claimant was placed
  bool every_place_ = false;  // is tried
  std::vector<PodId> items_;  // the cheapest first, of equal ones the last
  std::vector<int> twins_;    // by item: an earlier one that does as well; -1: none
  std::vector<char> stays_;   // by pod
  RoomCost best_;
  std::optional<RoomSolution> solution_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_EXACT_ROOM_H_
