#ifndef TESSERA_VERIFY_CHECK_VICTIMS_H_
#define TESSERA_VERIFY_CHECK_VICTIMS_H_

// May these pods be made to yield?

#include <vector>

#include "tessera/cluster/fair_shares.h"
#include "tessera/cluster/plan.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/cluster/victim_rules.h"
#include "tessera/verify/check_plan.h"

namespace tessera {

struct CheckVictimsOptions {
  bool honour_nominations = true;  // as `CheckPlanOptions`
  int max_violations = 100;
};

// What `plan` breaks of `rules` by its evictions and moves, given the `shares` of the snapshot;
// empty: it is fair. Judges rights alone, and shares no code with the planners: whether the
// actions can be carried out is asked of `CheckPlan`, and actions that name nothing are left
// to it.
//
// A plan is read as deals, one after the other: evictions and moves, then the binds and
// nominations of the one workload that they are for, until it has all its minimums; what it gets
// beyond that is free for anybody. In each:
// - "stale" evicts for nobody and is no part of a deal: the workload is below its minimum for as
//   long as `rules.stale_grace` or its own says, no pod of it succeeded, and all of it leaves.
// - Evictions name that workload. Its preemption delay is over. Others are moved for it only if
//   the rules say so; what moves is movable.
// - "preempt": the victim is preemptible, of the same queue, and of lower priority. "reclaim":
//   preemptible, of another queue. No other reason evicts for somebody.
// - What is evicted or moved has run for `rules.min_pod_runtime`.
// - A workload that runs for less than its min-runtime loses only pods above the minimum of
//   their sets. One with `max_disrupted` has at most so many pods evicted, moved or already
//   releasing by the plan as a whole.
// - What stays of a victim is legal: nothing, or a gang whose minimum holds, without parts that
//   are below theirs or that wait for one that is.
// - What is reclaimed passes `rules.reclaim`, by units: pods above the minimum of their set,
//   parts above that of their group, and the rest of a gang that ends. What queues hold is
//   counted as it is when the deal begins.
//
// O(size of the snapshot + actions + distinct charges of units^2 per queue).
std::vector<PlanViolation> CheckVictims(const Snapshot& snapshot, const Plan& plan,
                                        const FairShares& shares, const VictimRules& rules,
                                        const CheckVictimsOptions& options = {});

}  // namespace tessera

#endif  // TESSERA_VERIFY_CHECK_VICTIMS_H_
