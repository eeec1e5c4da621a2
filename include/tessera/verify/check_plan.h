#ifndef TESSERA_VERIFY_CHECK_PLAN_H_
#define TESSERA_VERIFY_CHECK_PLAN_H_

// Is this plan legal on this snapshot?

#include <string>
#include <vector>

#include "tessera/cluster/charge.h"
#include "tessera/cluster/plan.h"
#include "tessera/cluster/snapshot.h"

namespace tessera {

// One rule that a plan breaks, as a sentence with names and numbers.
struct PlanViolation {
  int action = -1;  // index in `Plan::actions`; -1: the plan as a whole
  std::string text;

  friend bool operator==(const PlanViolation&, const PlanViolation&) = default;
};

struct CheckPlanOptions {
  MigCharge mig_charge = MigCharge::kByComputeSlices;
  // False: pods that the snapshot nominates hold nothing and are pending. Evicting
  // one is then a mere withdrawal.
  bool honour_nominations = true;
  int max_violations = 100;  // the check ends when it has found this many; at least 1
};

// What `plan` breaks when its actions are carried out in order on `snapshot`;
// empty: it is legal. Shares no code with the policies that make plans. Any plan
// is answered, however wrong: what does not exist is a violation. After an action
// that breaks a rule the check goes on as if it had been allowed, where that means
// anything. Actions come first, in order; then gangs, queues, `pending`.
//
// Every action:
// - evict: the pod runs or is nominated, its workload is preemptible or, where the reason is
//   "stale", was below its minimum before the plan. move: the pod runs, its workload is movable,
//   the target is fit for a nomination.
// - destroy, set_mig, create: the GPU is `dynamic`. The instance to destroy exists
//   and is idle. The GPU to switch is healthy, without pods and instances, and
//   really changes. The instance to create finds MIG on and the GPU healthy, starts
//   where the layout at that moment lets it, and covers no slice that is reserved
//   as another instance.
// - bind, nominate: the pod is pending, nominated, or evicted by the plan; to bind, it holds no
//   old place. The node is schedulable, passes selector, taints and models. The devices exist, are
//   distinct, healthy, and what the request asks of that model. A whole GPU or a
//   fraction needs MIG mode off, a slice an existing instance. Nothing else is on a
//   whole GPU, fractions sum to at most the device, an instance has one pod, kinds
//   do not mix. Every amount asked for is free; so are `max_per_node` and `max_per_domain`. Tenants
//   accept each other (`Isolation`). A bind must fit twice: beside what is there, releasing pods
//   included; and beside what will be there, where releasing pods have left and nominated pods have
//   come. A nomination, and the target of a move, must fit the latter.
//
// The plan as a whole:
// - A workload that got a pod (bind, nominate) is whole afterwards, and so is each
//   of its groups and pod sets that got one. Running, bound, nominated and succeeded
//   pods count. A part with `after` has pods only while its sibling's minimum holds;
//   a newly bound one only where that minimum runs or is bound, not merely
//   nominated. (Also checked where the plan evicts from that sibling.)
// - Where a plan puts a pod below a required topology level, all pods that hold a
//   place there are in one domain of it.
// - On every queue above a workload that came to hold more of a resource, what
//   running, bound and nominated pods are charged of it is within the limit; for
//   work that is not preemptible, what such work is charged is within the quota.
// - `pending` lists, by name, each once, the workloads that are not complete: with
//   a pod still to come, or below their minimum. Failed pods never come. Text and
//   counts are given, `below_minimum` is right.
//
// O(size of the snapshot + actions * (log + pods per GPU)).
std::vector<PlanViolation> CheckPlan(const Snapshot& snapshot, const Plan& plan,
                                     const CheckPlanOptions& options = {});

}  // namespace tessera

#endif  // TESSERA_VERIFY_CHECK_PLAN_H_
