#ifndef TESSERA_SRC_PREEMPTION_ROOM_MOVES_H_
#define TESSERA_SRC_PREEMPTION_ROOM_MOVES_H_

// New places for pods that have to leave theirs.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/preemption/make_room.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// The nodes where `p` may go from `home`: those of its domain on every level that is required
// of a part of the gang around it.
NodeRange MoveRange(const Snapshot& snapshot, PodId p, NodeId home);

// Whether the gang of `p` lets it stand on `n`, given where its other pods are in `state`: of each
// part that requires a level all must be in one domain. O(pods of the gang * depth).
bool KeepsTogether(const ClusterState& state, PodId p, NodeId n);

// Whether a plan may move `p` at all: it runs, and its workload is movable.
bool MayMove(const Snapshot& snapshot, PodId p);

// `pods`, none of which holds a place in `state`, each put where it fits on GPUs of the model that
// it had: whole GPUs before slices, fractions and the rest, the larger first. Those for which there
// is no room are left out. `homes[i]` is where `pods[i]` comes from.
std::vector<PodTarget> FindNewPlaces(ClusterState& state, std::span<const PodId> pods,
                                     std::span<const PodPlacement> homes);

// `moves` in an order in which each finds its target free, starting from `state`, where all
// pods are in their old places and what is evicted is gone. Nothing if they go in circles.
//
// Whoever can moves first. Where one takes room of a node, not its very GPUs, that another should
// have had first that may fail although there is an order. With a `budget` all are tried then,
// each step taken from it.
std::optional<std::vector<PodTarget>> InOrder(ClusterState& state, std::vector<PodTarget> moves,
                                              int64_t* budget = nullptr);

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_ROOM_MOVES_H_
