#ifndef TESSERA_SRC_SCHEDULE_CYCLE_ROOMS_H_
#define TESSERA_SRC_SCHEDULE_CYCLE_ROOMS_H_

// What a cycle has planned so far: the cluster as it is now, as it will be once all have left
// that leave, and the actions that lead there.

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/schedule/held_places.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/preemption/make_room.h"
#include "tessera/preemption/room_memory.h"
#include "tessera/schedule/schedule.h"

namespace tessera {

// `RoomDesk::lowest` after a cycle: of all that is there then, and of what has started or moved.
struct LowestAfter {
  std::vector<int> all, changed;
  bool any_changed = false;
};

// The pod that an action of a plan starts, now or later; null: none.
const PodRef* StartedBy(const Action& action);

class CycleRooms {
 public:
  CycleRooms(const Snapshot& snapshot, const CycleRules& rules, const RoomRules& room_rules,
             PodFinder find, std::span<const char> unmoved);

  // Once all have left that leave.
  ClusterState& latest() { return later_ ? later_->state : now_.state; }
  const ClusterState& latest() const { return later_ ? later_->state : now_.state; }
  // To say why a workload waits: where nobody was made to leave, as it is now.
  const ClusterState& reported() const { return anyone_leaves_ ? latest() : now_.state; }

  // Changes with every change that is planned.
  int64_t version() const { return version_; }
  // Changes with that, with what is held, and with what may move.
  int64_t holding_version() const { return version_ + holding_; }
  // Whether something of `w` was made to leave in this cycle.
  bool has_lost(WorkloadId w) const { return has_lost_[at(w)] != 0; }
  // By pod: it was started in this cycle on what was free, and no deal since rests on it, so that
  // it may still be taken back.
  std::span<const char> open() const { return open_; }
  bool has_open() const { return !opened_.empty(); }
  // What was not to be moved may be; false: there is none.
  bool LetAllMove();

  // Looks anew at what stood before and may yield.
  void CountLowest();
  // `RoomDesk::lowest` of open pods; of these and what stood before, together; and after the cycle.
  std::span<const int> lowest_open() const { return lowest_open_; }
  std::vector<int> LowestOfAll() const;
  LowestAfter FindLowestAfter() const;

  // Whether all that yields or moves by `plan` is open.
  bool IsAllOpen(const RoomPlan& plan) const;

  // What planners of room have at hand.
  RoomDesk Desk(QuotaLedger& ledger, const FairShares& shares) {
    return {nullptr, &latest(), &ledger, &shares, spared_, {}, unmoved_, lowest_, &memory_};
  }

  // Binds nominated pods whose place is free of releasing ones, all of a workload or none; the
  // others keep their reservation.
  void BindNominated();

  // Places the next unit of `w`: what its minimum lacks or, if that holds, one unit more. Bound
  // if what is free now suffices, else nominated, with all that its gang gets in this cycle.
  GangPlacement PlaceUnit(WorkloadId w, Account& account);

  // Those yield whom `plan` names, the claimant is nominated. `ledger` is charged.
  void CarryOut(const RoomPlan& plan, QuotaLedger& ledger);

  // Others leave these places alone from now on, but for those that `PlaceUnit` lets use them.
  void Hold(HeldPlaces held);
  // No longer so for `w`; for anybody.
  void Lift(WorkloadId w);
  void LiftAll();
  std::span<const HeldPlaces> held() const { return held_; }
  bool holds(WorkloadId w) const {
    return std::ranges::find(held_, w, &HeldPlaces::workload) != held_.end();
  }

  // `PlaceUnit`, and if that fails at the places of those gangs for which `may` is true.
  GangPlacement PlaceUnit(WorkloadId w, Account& account,
                          absl::FunctionRef<bool(const HeldPlaces&)> may);

  // Whether the next unit of `w` fits into what there is, whatever queues say.
  bool WouldFit(WorkloadId w, SearchMemory& memory);

  // All pods of `w` leave, a gang below its minimum. `ledger` is charged.
  void EndStale(WorkloadId w, QuotaLedger& ledger);

  // Of `w` what may be taken back; and takes it back. `ledger` is charged.
  std::vector<PodId> OpenOf(WorkloadId w) const;
  void Withdraw(WorkloadId w, QuotaLedger& ledger);

  // Starts pods of `w` at places that are free once all have left that leave. `ledger` is
  // charged.
  void Start(WorkloadId w, std::span<const PodTarget> pods, QuotaLedger& ledger);

  std::vector<Action> TakeActions();

 private:
  // A state, and what searches found out about it: it only fills, or the memory is lost.
  struct Room {
    ClusterState state;
    SearchMemory memory;
  };

  template <typename Tag>
  static size_t at(Id<Tag> id) {
    return static_cast<size_t>(id.value());
  }
  WorkloadId WorkloadOf(PodId p) const {
    return snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
  }
  QueueId QueueOf(PodId p) const { return snapshot_.info(WorkloadOf(p)).queue; }
  GangPlacement SearchIn(Room& room, WorkloadId w, Account& account, bool on_shared_gpu) const;
  void Accept(Room& room, WorkloadId w, std::span<const PodId> pods);
  void Reserve(const HeldPlaces& held);
  void Release(const HeldPlaces& held);
  void Open(WorkloadId w, std::span<const PodId> pods);
  void Close(const RoomPlan& plan);
  void NoteLowest(WorkloadId w, std::vector<int>& lowest) const;
  bool IsChanged(PodId p) const;
  void NoteActions(size_t first);
  bool BindIfFree(std::span<const PodId> pods);
  void ReserveNow(std::span<const PodId> pods);
  void Commit();

  const Snapshot& snapshot_;
  const CycleRules& rules_;
  const RoomRules& room_rules_;
  const PodFinder find_;
  const std::shared_ptr<const StateTables> tables_;
  Room now_;                   // those who leave still hold their places
  std::optional<Room> later_;  // they are gone; none: nobody leaves
  // Places that pods will get which still hold another: `now_` lacks them, and tells what is free
  // at best.
  std::vector<PodPlacement> unreserved_;
  int unreserved_holds_ = 0;    // the same of places that are held
  bool anyone_leaves_ = false;  // by this plan
  // By workload: some of it is nominated, and what comes later may depend on that.
  std::vector<char> waits_;
  std::vector<char> has_lost_, was_withdrawn_;
  std::vector<char> open_, spared_;        // by pod
  std::span<const char> unmoved_;          // `RoomDesk`
  std::vector<int> lowest_, lowest_open_;  // `RoomDesk::lowest`: of what stood before, of open pods
  std::vector<PodId> opened_;              // those that are open
  std::vector<size_t> action_of_;          // by open pod: which one starts it
  std::vector<size_t> dropped_;            // actions that are taken back
  std::vector<HeldPlaces> held_;
  RoomMemory memory_;
  int64_t version_ = 0, holding_ = 0;
  std::vector<Action> actions_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_SCHEDULE_CYCLE_ROOMS_H_
