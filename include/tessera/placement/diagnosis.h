#ifndef TESSERA_PLACEMENT_DIAGNOSIS_H_
#define TESSERA_PLACEMENT_DIAGNOSIS_H_

// Why does a gang not fit? Counted over all nodes.

#include <optional>
#include <string>

#include "tessera/base/ids.h"
#include "tessera/cluster/diagnosis.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/placement/near_miss.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// What keeps one more pod of a pod set out, node by node.
struct NodeCensus {
  ReasonCounts counts;  // each node once, under the first thing that excludes it
  int nodes = 0;
  int nodes_with_room = 0;  // would take one pod
  // Of the excluded nodes, the reason that excludes most; ties: the more basic.
  PendingReason main_reason = PendingReason::kNoMatchingNode;
};

// Looks at every node, in the order: schedulable, selector, taints, GPU model,
// GPUs, CPU, memory, pods, extended resources, isolation, `max_per_node`,
// `max_per_domain`.
// O(nodes + GPUs).
NodeCensus CountNodes(const ClusterState& state, PodSetId pod_set);

// The diagnosis of workload `w`, whose search ended as `result` says:
// "1,523 nodes: 840 too few free GPUs, 620 wrong GPU model, 63 taints".
// `census` is that of `result.stuck_at`. With `nearest`, of a gang that finds no place,
// the text ends with it.
PendingWorkload Diagnose(const ClusterState& state, WorkloadId w, const GangPlacement& result,
                         const NodeCensus& census,
                         const std::optional<NearMiss>& nearest = std::nullopt);

// "1,523".
std::string WithThousands(int64_t number);

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_DIAGNOSIS_H_
