#ifndef TESSERA_SRC_PREEMPTION_ROOM_WRITER_H_
#define TESSERA_SRC_PREEMPTION_ROOM_WRITER_H_

// Turns what was found into a plan.

#include <span>

#include "tessera/preemption/make_room.h"

namespace tessera {

// Nobody yields: `pods` were placed in `state` since `mark`, to be bound or to be nominated.
RoomPlan WriteFree(const ClusterState& state, ClusterState::Mark mark, std::span<const PodId> pods,
                   bool binds);

// MIG instances that are created or destroyed by what was placed in `state` since `mark`.
int64_t MigOperations(const ClusterState& state, ClusterState::Mark mark);

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_ROOM_WRITER_H_
