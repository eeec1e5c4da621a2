#ifndef TESSERA_SRC_SCHEDULE_HELD_PLACES_H_
#define TESSERA_SRC_SCHEDULE_HELD_PLACES_H_

// Where a gang that waits for long could start first, so that others leave these places alone.

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/preemption/make_room.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

struct HeldPlaces {
  WorkloadId workload;
  std::vector<PodTarget> places;  // of what its minimum lacks
  std::vector<PodId> in_the_way;  // of others, there or on the same node where no GPU is asked for
  // All that is in the way there has ended by then, if it keeps to its `max_runtime`;
  // kUnlimited: something may run on.
  int64_t free_by = 0;
  int64_t idle_gpu_units = 0;  // free there now
};

// Places for what the minimum of `w` lacks, as if whatever runs where least is in the way had
// ended: in the domain of its required level where the GPUs that it lacks are held least, on the
// nodes that are held least. What `yields` says may be made to yield is not in the way.
// Nothing if there is none. `state` is left as it is. Ties: the lower node.
// O(pods + nodes + taken nodes * log nodes + pods placed), for at most 8 domains.
std::optional<HeldPlaces> FindPlacesToHold(ClusterState& state, WorkloadId w,
                                           absl::FunctionRef<bool(WorkloadId)> yields);

}  // namespace tessera

#endif  // TESSERA_SRC_SCHEDULE_HELD_PLACES_H_
