#ifndef TESSERA_PLACEMENT_SLICE_PLACEMENT_H_
#define TESSERA_PLACEMENT_SLICE_PLACEMENT_H_

// Which GPU and start does a MIG instance get?

#include <cstdint>
#include <optional>

#include "tessera/base/ids.h"
#include "tessera/placement/device_preference.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// A place for an instance, and what taking it costs.
struct SlicePlacement {
  int gpu = 0;
  int start = 0;
  SliceSource source = SliceSource::kIdle;
  int loss = 0;  // `MigTables::Loss` beside the instances that are held

  friend bool operator==(const SlicePlacement&, const SlicePlacement&) = default;
};

// The place on node `n` for an instance of `profile` (of the node's model), or
// nothing if no GPU of the set `gpus` has one. Geometry and engines are exact:
// what is returned can be created beside what is held, idle instances in its way
// being destroyed.
//
// An idle instance of the profile comes first (nothing to carve); then, packing,
// a GPU that holds slices, a free one in MIG mode, a free one to be switched;
// spreading, free ones first. Among equals the place that costs the least room
// for other profiles; ties: the lowest GPU, then start. O(GPUs * 16).
std::optional<SlicePlacement> PlaceSlice(const ClusterState& state, NodeId n, int profile,
                                         DevicePreference preference = DevicePreference::kPack,
                                         uint64_t gpus = ~uint64_t{0});

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_SLICE_PLACEMENT_H_
