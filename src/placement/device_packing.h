#ifndef TESSERA_SRC_PLACEMENT_DEVICE_PACKING_H_
#define TESSERA_SRC_PLACEMENT_DEVICE_PACKING_H_

// Do these pods fit the GPUs of one node together? Decided exactly: greedy choices
// of devices may fail where others succeed.

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/ids.h"
#include "tessera/gpu/layout.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// What one GPU can still take from pods of one tenant. Equal devices are
// interchangeable, whatever their idle instances: those may be destroyed.
struct Device {
  bool free = false;      // may be taken whole
  bool carvable = false;  // slices may be created beside those of `key`
  int32_t room = 0;       // for fractions, 1/7000 device
  LayoutKey key;          // of held instances

  friend bool operator==(const Device&, const Device&) = default;
  // Any total order will do; it decides nothing but the order of the search.
  friend bool operator<(const Device& a, const Device& b) {
    const auto rank = [](const Device& d) {
      return (uint64_t{d.free} << 63) | (uint64_t{d.carvable} << 62) |
             (static_cast<uint64_t>(d.room) << 32) | (uint64_t{d.key.engines} << 16) | d.key.mask;
    };
    return rank(a) < rank(b);
  }
};

// The GPUs of a node as pods of one tenant find them.
struct DevicePool {
  std::vector<Device> devices;  // those that take anything at all, ascending
  std::vector<int> gpus;        // their numbers on the node
  // Idle instances of static GPUs, which stay what they are.
  std::vector<Instance> idle;  // by profile
  std::vector<int> idle_gpus;
};

// The pool of node `n` for pods of `tenant` that ask for `isolation`.
DevicePool PoolOf(const ClusterState& state, NodeId n, int tenant, Isolation isolation);

// What one pod asks of the devices of a given GPU model.
struct DeviceNeed {
  enum Kind : uint8_t { kNothing, kWhole, kShare, kSlice };
  Kind kind = kNothing;
  int devices = 0;
  int32_t share = 0;
  uint32_t profiles = 0;  // of a slice, whichever serves: bit p = profile p
  int least = -1;         // of these the one with the fewest compute, then memory slices

  friend bool operator==(const DeviceNeed&, const DeviceNeed&) = default;
};

// What a pod of `request` asks of a GPU of `model`, which must fit it; of no GPU if
// the model is invalid. The order of acceptable profiles does not count here.
DeviceNeed NeedOn(const Snapshot& snapshot, const RequestClass& request, ModelId model);

// A place on node `n`, free or not, as an account sees it: of slices the least.
PodPlacement ExamplePlacement(NodeId n, const DeviceNeed& need);

// `count` pods of one need.
struct DeviceDemand {
  DeviceNeed need;
  int count = 0;
};

enum class Verdict { kYes, kNo, kUndecided };

// The devices of one pod: a bit set of GPUs, and for a slice its place.
struct DeviceChoice {
  uint64_t gpus = 0;
  Instance slice = {-1, 0};
};

// Whether all of `demands` fit `pool` together, and where: `choices[d][i]` for pod
// i of demand d (left alone if null). Takes its steps from `budget`; kUndecided
// when they run out. Fills opened devices first and prefers places where idle
// instances of `state` need not be destroyed, if given (`n` is then the node).
Verdict PackDevices(const DevicePool& pool, const MigTables* mig,
                    std::span<const DeviceDemand> demands, int64_t& budget,
                    std::vector<std::vector<DeviceChoice>>* choices = nullptr,
                    const ClusterState* state = nullptr, NodeId n = NodeId());

}  // namespace tessera

#endif  // TESSERA_SRC_PLACEMENT_DEVICE_PACKING_H_
