#ifndef TESSERA_PLACEMENT_POD_QUERY_H_
#define TESSERA_PLACEMENT_POD_QUERY_H_

// Where a single pod may go: the question that every search asks again and again.

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "tessera/base/ids.h"
#include "tessera/cluster/request_class.h"
#include "tessera/cluster/topology.h"
#include "tessera/placement/device_preference.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// One more pod of `pod_set`, on the nodes of `range`.
struct PodQuery {
  PodSetId pod_set;
  NodeRange range;
  uint64_t excluded_models = 0;  // bit m: not on GPU model m
};

// A placement that is free in the state, or nothing if there is none in range.
// Finders decide which of several it is, and never fail to find one.
using PodFinder =
    absl::FunctionRef<std::optional<PodPlacement>(const ClusterState&, const PodQuery&)>;

// The devices of node `n` that a pod of the query would get, or nothing if the
// node cannot take it: isolation, `max_per_node`, `max_per_domain` and every amount are
// checked. The node must be eligible for the pod's request class.
//
// Whole GPUs: those that are not in MIG mode first. Fractions: by preference; a
// shared device before a free one when packing. Slices: the cheapest
// (`ClusterState::CheapestSlice`), whatever the preference. Ties:
// the lowest GPU.
// O(GPUs of the node).
std::optional<PodPlacement> ChooseDevices(const ClusterState& state, const PodQuery& query,
                                          NodeId n, DevicePreference preference);

// Calls `visit` with every placement of the query on node `n` that a scorer may want to
// tell apart: one for each device that a fraction of one device or a slice could get,
// ascending, without those that hold just what a lower one holds; for everything else
// the one of `ChooseDevices`. The node must be eligible. O(GPUs of the node ^ 2).
void ForEachPlacement(const ClusterState& state, const PodQuery& query, NodeId n,
                      absl::FunctionRef<void(const PodPlacement&)> visit);

// Whether exactly `placement` is free for a pod of `pod_set`.
bool IsFree(const ClusterState& state, PodSetId pod_set, const PodPlacement& placement);

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_POD_QUERY_H_
