#ifndef TESSERA_CLUSTER_GANG_TREE_H_
#define TESSERA_CLUSTER_GANG_TREE_H_

// A gang as a flat tree: names resolved, defaults filled in.

#include <cstdint>

#include "tessera/base/ids.h"
#include "tessera/cluster/request_class.h"

namespace tessera {

// One node of a gang tree. Nodes are numbered breadth first from the root 0, so
// that the children of a node are consecutive: pod sets first, then groups.
struct GangNode {
  int parent = -1;
  int first_child = 0;
  int num_children = 0;
  int min_children = 0;     // of the children without `after`
  int required_level = -1;  // topology level index, -1: none
  int preferred_level = -1;
  int after = -1;    // a sibling, -1: none
  int pod_set = -1;  // index within the workload, -1: a group

  bool is_pod_set() const { return pod_set >= 0; }

  friend bool operator==(const GangNode&, const GangNode&) = default;
};

// One pod set of the snapshot. Its pods have consecutive ids.
struct PodSetInfo {
  WorkloadId workload;
  int gang_node = 0;  // in the workload's tree
  RequestClassId request_class;
  int first_pod = 0;
  int count = 0;
  int min_count = 0;
  int max_per_node = 0;    // 0: no bound
  int max_per_domain = 0;  // of `domain_level`; 0: no bound
  int domain_level = -1;

  // Whether pods of the set keep each other from places that are free.
  bool is_spread() const { return max_per_node > 0 || max_per_domain > 0; }

  PodId pod(int index) const { return PodId(first_pod + index); }

  friend bool operator==(const PodSetInfo&, const PodSetInfo&) = default;
};

// Where a workload's parts are in the snapshot's flat arrays.
struct WorkloadInfo {
  QueueId queue;
  int tenant = 0;  // dense id; equal names, equal tenants
  int first_gang_node = 0;
  int num_gang_nodes = 0;
  int first_pod_set = 0;
  int num_pod_sets = 0;
  int first_pod = 0;
  int num_pods = 0;

  friend bool operator==(const WorkloadInfo&, const WorkloadInfo&) = default;
};

}  // namespace tessera

#endif  // TESSERA_CLUSTER_GANG_TREE_H_
