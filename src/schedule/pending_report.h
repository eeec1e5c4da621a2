#ifndef TESSERA_SRC_SCHEDULE_PENDING_REPORT_H_
#define TESSERA_SRC_SCHEDULE_PENDING_REPORT_H_

// Why each workload that is not complete after a cycle waits.

#include <optional>
#include <string>
#include <vector>

#include "tessera/cluster/diagnosis.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/share/quota_ledger.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// "queue "a" holds 2 GPU; 1 GPU more would exceed its limit of 2 GPU".
std::string Describe(const Snapshot& snapshot, const QuotaRefusal& refusal);

// How the last attempt to place a workload failed.
struct Attempt {
  GangPlacement search;
  std::optional<QuotaRefusal> refusal;  // a queue said no
  std::string kept_from = {};           // the workload for which its place is held
  bool may_not_claim = false;           // nobody yields for it, as the next cycle would undo that
};

// One entry for every workload with a pod that neither holds a place in `state`
// nor has ended, and for those whose failed pods leave too few for the minimum.
// `attempts` by workload id. Near misses and proofs are found once for equal gangs, for
// the first by id that a bounded number of nodes read suffices for.
// O(workloads + distinct requests * nodes).
std::vector<PendingWorkload> ReportPending(const ClusterState& state,
                                           const std::vector<std::optional<Attempt>>& attempts);

}  // namespace tessera

#endif  // TESSERA_SRC_SCHEDULE_PENDING_REPORT_H_
