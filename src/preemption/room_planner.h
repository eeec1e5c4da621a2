#ifndef TESSERA_SRC_PREEMPTION_ROOM_PLANNER_H_
#define TESSERA_SRC_PREEMPTION_ROOM_PLANNER_H_

// Steps to make room for one claimant, and their comparison.

#include <optional>
#include <string>
#include <vector>

#include "src/preemption/claim_rows.h"
#include "src/preemption/exact_room.h"
#include "src/preemption/room_search.h"
#include "src/preemption/yield_book.h"
#include "tessera/preemption/make_room.h"

namespace tessera {

class RoomPlanner {
 public:
  RoomPlanner(const RoomDesk& desk, WorkloadId w, const RoomRules& rules, VictimCost cost);

  // What is free, idle instances carved anew included. It nominates if `desk.now` is null.
  RoomPlan Free();
  // The rights by which anybody could yield, as far as the desk tells at once.
  YieldRights Possible() const { return PossibleOf(desk_.lowest); }
  // Whether anybody could yield or move, as far as the desk tells at once; `among` as for the
  // public function.
  bool MightMakeRoom(std::span<const int> among);
  // What is said of a step by which nobody may yield.
  RoomPlan RefuseNobody(RoomStep step) const {
    return Refuse(step, true, PendingReason::kInsufficientGpus, "nothing may yield");
  }
  // Where others yield by these rights; what is free counts, too.
  RoomPlan Yield(RoomStep step, YieldRights rights);

 private:
  // Pod sets of which the claimant places pods, by their index in the gang.
  using Choice = std::vector<int>;
  // Choices beyond this number are not told apart.
  static constexpr size_t kMostChoices = 16;

  // One victim's part in the certificate, told while the search still stands.
  struct Need {
    PodId pod;
    YieldNeed need = YieldNeed::kRoom;
  };
  struct Draft {
    RoomSolution solution;
    RoomCost victims_cost;  // before any of them found a new place
    RoomCost carving;       // of MIG operations
    std::vector<Need> needs;

    RoomCost cost() const { return solution.cost + carving; }
  };

  // The same by another `RoomDesk::lowest`.
  YieldRights PossibleOf(std::span<const int> lowest) const;
  RoomPlan Refuse(RoomStep step, bool proven, PendingReason reason, std::string text) const;
  RoomPlan RefuseSearch(RoomStep step, bool proven, const GangPlacement& found, size_t yielding);
  RoomPlan RefuseVictims(RoomStep step, bool proven, YieldRights rights) const;
  RoomPlan RefuseCharge(RoomStep step, const QuotaRefusal& refusal) const;
  RoomPlan Yield(RoomStep step, YieldRights rights, const ClaimantNeed& need, bool again);
  RoomPlan Yield(RoomStep step, YieldRights rights, const ClaimantNeed& need, bool again,
                 std::span<const RoomClaim> attempts, YieldBook& book, ClaimRow* row);
  ClaimRow* RowFor(YieldRights rights, const ClaimantNeed& need, const YieldPolicy& policy,
                   const RoomClaim& claim) const;
  std::optional<RoomPlan> Gate(RoomStep step, YieldRights rights, const ClaimantNeed& need);
  std::optional<QuotaRefusal> FindRefusal(const YieldBook& book, const ClaimantNeed& need);
  std::optional<RoomPlan> RefuseHopeless(RoomStep step, YieldBook& book, const ClaimantNeed& need);
  RoomClaim ClaimAnywhere() const;
  std::vector<RoomClaim> Attempts() const;
  std::optional<Draft> TryGreedy(YieldBook& book, RoomSearch& search);
  std::optional<Draft> TryGreedy(YieldBook& book, const RoomClaim& claim, ClaimRow* row);
  bool ImproveExactly(YieldBook& book, YieldRights rights, std::optional<Draft>& best);
  std::optional<Draft> Adopt(YieldBook& book, const RoomSolution& solution);
  void PriceCarving(ClusterState::Mark mark, std::optional<Draft>& draft) const;
  std::optional<Draft> Elaborate(YieldBook& book, RoomSearch& search, std::vector<PodTarget> placed,
                                 std::vector<PodTarget> moved);
  bool FindPlacesForVictims(YieldBook& book, RoomSearch& search, Draft& draft);
  bool StaysAtHome(YieldBook& book, RoomSearch& search, PodId p);
  void DropIdleMoves(YieldBook& book, Draft& draft) const;
  void DropWhatStays(YieldBook& book, RoomSearch& search, Draft& draft);
  void MoveWhatFits(YieldBook& book, RoomSearch& search, WorkloadId w, Draft& draft);
  std::vector<Need> NeedsOf(YieldBook& book, RoomSearch& search) const;
  bool IsFewest(const YieldBook& book, size_t victims) const;
  RoomPlan Write(RoomStep step, YieldBook& book, const Draft& draft);
  void WriteVictims(const YieldBook& book, const Draft& draft, Certificate& certificate) const;
  ClaimantNeed NeedOfClaimant() const;
  ClaimantNeed NeedOf(const Choice& choice) const;
  bool Holds(int g) const;
  std::vector<Choice> ChoicesBelow(int g) const;
  void AddChoices(int g, int child, int missing, const Choice& chosen,
                  std::vector<Choice>& choices) const;
  std::vector<Choice> ChoicesThatMatter() const;
  bool IsCertain(const ClaimantNeed& need) const;
  ResourceVector LeastNeedBelow(int g) const;
  void AddResources(PodSetId s, std::vector<char>& resources) const;
  std::vector<char> ResourcesOf(const Draft& draft) const;
  int64_t GpusLacking() const;
  bool IsCapable() const;
  int64_t FreeUnits() const;

  const RoomDesk& desk_;
  ClusterState& state_;
  const Snapshot& snapshot_;
  QuotaLedger& ledger_;
  const WorkloadId w_;
  const RoomRules& rules_;
  const VictimCost cost_;
  const bool grows_;
  ClaimantNeed need_;
  std::vector<char> barred_;  // by pod set of the claimant: not to be placed; empty: none
};

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_ROOM_PLANNER_H_
