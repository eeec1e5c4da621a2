#ifndef TESSERA_PREEMPTION_MAKE_ROOM_H_
#define TESSERA_PREEMPTION_MAKE_ROOM_H_

// Who yields, so that a gang that does not fit can start?
//
//   const RoomPlan plan = PlanMakeRoom(snapshot, shares, *snapshot.FindWorkload("llama"));
//   if (plan.found()) Carry out plan.actions; ToText(plan.certificate) says why.

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/cluster/certificate.h"
#include "tessera/cluster/fair_shares.h"
#include "tessera/cluster/plan.h"
#include "tessera/cluster/victim_rules.h"
#include "tessera/preemption/victim_order.h"
#include "tessera/share/quota_ledger.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// The initializers let a designated initializer leave fields out without a warning.
struct RoomRules {
  VictimRules victims = {};
  RoomCosts costs = {};
  bool honour_nominations = true;  // `UsagePolicy::honour_nominations`
  // Pods looked for in one search for a placement; and, together with pods taken away, in the
  // search for the cheapest victims, which is made for at most `exact_candidates` pods that may
  // yield.
  int64_t gang_budget = 10000000;
  int64_t exact_budget = 50000;
  int exact_candidates = 40;

  friend bool operator==(const RoomRules&, const RoomRules&) = default;
};

class RoomMemory;

// What a cycle has at hand. Planners leave all of it as they find it.
struct RoomDesk {
  ClusterState* now = nullptr;    // releasing pods hold their places; null: nothing is bound
  ClusterState* later = nullptr;  // they are gone
  QuotaLedger* ledger = nullptr;
  const FairShares* shares = nullptr;
  // By pod; empty: none. What may have to yield is where the snapshot says, has been for long
  // enough (`VictimRules::min_pod_runtime`), and is not `spared`; what is `open` may as well, and
  // costs nothing; what is `unmoved` does not move.
  std::span<const char> spared = {};
  std::span<const char> open = {};
  std::span<const char> unmoved = {};
  // By queue: what may yield of a leaf has at least this priority; INT_MAX: nothing may. Not
  // empty, it spares planners to look for victims where there are none, and them only then say
  // so in short.
  std::span<const int> lowest = {};
  // What planners found out for earlier claims of the cycle; null: nothing.
  RoomMemory* memory = nullptr;
};

// A pod, and where it gets its place.
struct PodTarget {
  PodId pod;
  PodPlacement placement;

  friend bool operator==(const PodTarget&, const PodTarget&) = default;
};

// Whether `p` is in `later` where the snapshot says, and has been for `min_pod_runtime`.
bool HasStoodLong(const ClusterState& later, PodId p, const VictimRules& rules);

enum class RoomOutcome {
  kRoom,             // the claimant fits after the actions
  kNoRoom,           // no plan of these steps exists
  kBudgetExhausted,  // none was found, and none was ruled out
};

struct RoomPlan {
  RoomOutcome outcome = RoomOutcome::kNoRoom;
  bool binds = false;             // what is placed can start now; else it is nominated
  std::vector<PodId> evicted;     // ascending
  std::vector<PodTarget> moved;   // in the order to carry out
  std::vector<PodTarget> placed;  // pods of the claimant
  std::vector<Action> actions;    // the same for a host, MIG operations of binds included
  Certificate certificate;

  bool found() const { return outcome == RoomOutcome::kRoom; }
  friend bool operator==(const RoomPlan&, const RoomPlan&) = default;
};

// Room for what workload `w` lacks of its minimum or, if that holds, for one more unit of it.
// Victims are chosen where the claimant can use them; nothing is evicted that could stay.
//
// Guarantees: `CheckPlan` and `CheckVictims` accept the actions. A plan leaves every gang whole
// or gone. With the claimant's placement fixed no unit of eviction can stay; where the
// certificate says kCheapest, no plan of that step costs less; where it says `proven`, none exists:
// every place of the claimant and of those who move was tried, or need not be. Neither is said
// where `exact_budget` ends before that, for more than `exact_candidates`, for moves of others on
// behalf of a gang that grows, and of kEvict, which does not ask whether who may be evicted could
// move instead.
// What starts on free resources alone is bound, all else nominated.
// Deterministic; ties: the younger workload yields, then the higher id; the lower node.
//
// Cost: what may yield is released, and each pod of the claimant asks a tournament of nodes:
// O(pods that may yield + nodes * pods per node + pods placed * log nodes) without topology
// constraints; once per domain for a required level of the whole gang.

// By entitlement: work of other queues that have more than their share.
RoomPlan PlanReclaim(const RoomDesk& desk, WorkloadId w, const RoomRules& rules, VictimCost cost);
// By priority: preemptible work of the same queue and of strictly lower priority.
RoomPlan PlanPreemption(const RoomDesk& desk, WorkloadId w, const RoomRules& rules,
                        VictimCost cost);
// By moves alone: every pod that leaves gets another place in the same plan, on GPUs of the same
// model. What a gang requires to be in one domain stays together, there or in another.
RoomPlan PlanConsolidation(const RoomDesk& desk, WorkloadId w, const RoomRules& rules,
                           VictimCost cost);
// By whichever of these costs least or, where none suffices, all of them together.
RoomPlan PlanYielding(const RoomDesk& desk, WorkloadId w, const RoomRules& rules, VictimCost cost);
// The same, but first by what is free, idle MIG instances carved anew.
RoomPlan PlanMakeRoom(const RoomDesk& desk, WorkloadId w, const RoomRules& rules, VictimCost cost);

// Whether somebody might yield for `w`, by what `desk.lowest` and the queues say; false is certain
// where nothing below what `lowest` says may yield. `among`, if not empty: the same of pods one of
// which has to be evicted, or others moved. O(queues + GPUs).
bool MightMakeRoom(const RoomDesk& desk, WorkloadId w, const RoomRules& rules,
                   std::span<const int> among = {});

// The same with a host's `VictimOrder`.
template <VictimOrder Order = VictimWeights>
RoomPlan PlanMakeRoom(const RoomDesk& desk, WorkloadId w, const RoomRules& rules = {},
                      const Order& order = Order()) {
  const auto cost = [&order](const Victim& victim) { return order.Cost(victim); };
  return PlanMakeRoom(desk, w, rules, VictimCost(cost));
}

// The same for a snapshot and its shares alone. O(size of the snapshot) more.
RoomPlan PlanReclaim(const Snapshot& snapshot, const FairShares& shares, WorkloadId w,
                     const RoomRules& rules = {});
RoomPlan PlanPreemption(const Snapshot& snapshot, const FairShares& shares, WorkloadId w,
                        const RoomRules& rules = {});
RoomPlan PlanConsolidation(const Snapshot& snapshot, const FairShares& shares, WorkloadId w,
                           const RoomRules& rules = {});
RoomPlan PlanMakeRoom(const Snapshot& snapshot, const FairShares& shares, WorkloadId w,
                      const RoomRules& rules = {});

// Does to the desk what the plan says: victims leave, moved pods and the claimant hold their
// new places, the ledger is charged, and the memory is told. Nothing is committed.
void CarryOut(const RoomPlan& plan, const RoomRules& rules, const RoomDesk& desk);

}  // namespace tessera

#endif  // TESSERA_PREEMPTION_MAKE_ROOM_H_
