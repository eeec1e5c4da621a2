#ifndef TESSERA_GPU_SLICED_GPU_H_
#define TESSERA_GPU_SLICED_GPU_H_

// One GPU with its instances, as the planners of this room see it.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tessera/gpu/layout.h"

namespace tessera {

// The largest cost of a move.
inline constexpr int64_t kMaxMoveCost = int64_t{1} << 40;

// An instance that somebody uses.
struct BusyInstance {
  Instance instance;
  bool movable = false;  // whether its occupant may be moved to another instance
  int64_t cost = 1;      // of doing so, in any unit; 0..`kMaxMoveCost`

  bool operator==(const BusyInstance&) const = default;
};

struct SlicedGpu {
  std::vector<BusyInstance> busy;
  std::vector<Instance> idle;  // created, used by nobody
  bool mig_enabled = true;     // must hold if there are instances
  // Whether instances may be created, idle ones destroyed, and MIG mode changed. A GPU
  // that runs something without MIG must not be given as one that may change.
  bool may_change = true;

  bool operator==(const SlicedGpu&) const = default;
};

// Whether each of `gpus`, all of the model of `tables`, can be. kInvalidArgument else,
// with the path of the first offence: `gpus[3].idle[0]: 3g.40gb cannot start at slice 2`;
// idle instances are judged beside the busy ones. O(instances).
absl::Status CheckSlicedGpus(const MigTables& tables, std::span<const SlicedGpu> gpus,
                             std::string_view path);

}  // namespace tessera

#endif  // TESSERA_GPU_SLICED_GPU_H_
