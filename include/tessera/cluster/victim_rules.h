#ifndef TESSERA_CLUSTER_VICTIM_RULES_H_
#define TESSERA_CLUSTER_VICTIM_RULES_H_

// Who may be asked to yield, as plain data: planners follow it and `CheckVictims` judges by it.

#include <cstdint>

#include "tessera/cluster/charge.h"

namespace tessera {

// When a queue has so much that another may reclaim of it.
enum class ReclaimTest {
  // On every queue below the lowest common ancestor with the claimant, from the leaf up, the
  // units taken can be put in an order in which each, before it leaves, finds the queue above
  // its fair share in a resource that the unit holds and the claimant needs, and only the last
  // may leave it below. The claimant's queues below the highest such ancestor end within their
  // fair share of what it needs. Neither `pods` nor, unless some queue has a quota of them, the
  // resources that repeat `gpu` (`gpu_memory`, `gpu:MODEL`) count.
  kEntitlement,
  // KAI-Scheduler v0.17: cpu, memory and gpu; only at the level where the paths part, in any
  // resource, above the larger of quota and fair share (or above the quota, if the claimant's
  // side stays within its own); the claimant's leaf ends within its fair share; no ancestor of it
  // ends at a larger part of its fair share than a sibling that lost something.
  kKai,
};

// Whose `reclaim_min_runtime` protects a workload, inherited from above where not stated.
enum class RuntimeScope {
  kCommonAncestor,  // the child, on the victim's side, of the lowest common ancestor
  kQueue,           // the victim's own queue
};

// The initializers let a designated initializer leave fields out without a warning.
struct VictimRules {
  ReclaimTest reclaim = ReclaimTest::kEntitlement;
  RuntimeScope reclaim_runtime = RuntimeScope::kCommonAncestor;
  MigCharge mig_charge = MigCharge::kByComputeSlices;
  // False: only preemptible workloads have others moved for them.
  bool move_for_all = true;
  // A victim that fits elsewhere at once is moved there, and loses nothing then: whether it had
  // to yield is not asked.
  bool replace_victims = false;
  // Where a queue makes its own lower priorities yield it ends within its entitlement, or with no
  // more than it had: else others would reclaim what it gains, and it would preempt again. A
  // single plan may leave that to its caller, cycle after cycle may not.
  bool preempt_within_share = false;
  // A gang that holds its minimum and grows makes of its own queue only pods yield that others have
  // above theirs: minimums come first, so growth would evict what the cycle before has started.
  bool growth_spares_minimums = false;
  // Seconds that a pod has run at least before it yields to anybody or moves. One suffices so
  // that cycles at one instant do not undo each other.
  int64_t min_pod_runtime = 1;
  // Seconds that a gang may run below its minimum; kUnlimited: for ever. A workload may
  // state its own.
  int64_t stale_grace = 60;

  friend bool operator==(const VictimRules&, const VictimRules&) = default;
};

// What KAI-Scheduler does.
inline VictimRules KaiVictimRules() {
  return {.reclaim = ReclaimTest::kKai,
          .reclaim_runtime = RuntimeScope::kCommonAncestor,
          .mig_charge = MigCharge::kWholeG,
          .move_for_all = false,
          .replace_victims = true,
          .min_pod_runtime = 0};
}

}  // namespace tessera

#endif  // TESSERA_CLUSTER_VICTIM_RULES_H_
