#ifndef TESSERA_STATE_GPU_STATE_H_
#define TESSERA_STATE_GPU_STATE_H_

// What one GPU holds during a search.

#include <array>
#include <cstdint>

#include "tessera/cluster/node.h"
#include "tessera/gpu/layout.h"
#include "tessera/resources/units.h"

namespace tessera {

// The instances of one GPU by the unit they start at; -1: none starts there.
using InstanceRow = std::array<int8_t, 16>;

// Occupancy of one GPU. Counters rather than flags: a nomination may wait for a
// releasing pod on the same device, and both hold it meanwhile.
struct GpuState {
  int32_t share = 0;          // sum of the fractions held, 1/7000 device
  uint16_t wholes = 0;        // pods that hold all of it
  uint16_t blocks = 0;        // pods that wait for the device to change
  LayoutKey busy;             // of the held instances
  uint16_t busy_starts = 0;   // bit s: the instance at s is held
  uint16_t exist_starts = 0;  // bit s: an instance starts at s
  bool healthy = true;
  bool mig_enabled = false;
  MigMode mig = MigMode::kOff;

  bool is_held() const { return share > 0 || wholes > 0 || blocks > 0 || busy_starts != 0; }
  // Can be given to a pod whole, or opened for fractions, now or after its idle
  // instances are gone and MIG mode is off.
  bool is_free() const {
    return healthy && !is_held() && (!mig_enabled || mig == MigMode::kDynamic);
  }
  // Free, and may be opened for slices.
  bool is_fresh() const { return is_free() && mig == MigMode::kDynamic; }
  // Instances may be held here, given that the GPU holds nothing else.
  bool serves_slices() const {
    return healthy && share == 0 && wholes == 0 && blocks == 0 && mig != MigMode::kOff;
  }
  // What a fraction may still take here without opening a free GPU.
  int64_t partial_share() const {
    const bool shared = healthy && share > 0 && wholes == 0 && blocks == 0 && busy_starts == 0;
    return shared && share < kGpuUnitsPerDevice ? kGpuUnitsPerDevice - share : 0;
  }
  // What a fraction may still take here.
  int64_t RoomForShare() const { return is_free() ? kGpuUnitsPerDevice : partial_share(); }

  friend bool operator==(const GpuState&, const GpuState&) = default;
};

}  // namespace tessera

#endif  // TESSERA_STATE_GPU_STATE_H_
