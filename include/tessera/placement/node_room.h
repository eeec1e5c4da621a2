#ifndef TESSERA_PLACEMENT_NODE_ROOM_H_
#define TESSERA_PLACEMENT_NODE_ROOM_H_

// What a node can still take, without coordinates: scorers compare the room before a
// placement with the room after it.

#include <array>
#include <cstdint>
#include <span>

#include "tessera/placement/node_scorer.h"

namespace tessera {

// What one GPU can still take, whatever holds the rest of it.
struct DeviceRoom {
  int32_t left;       // 1/7000 device that nobody holds and somebody could; of a GPU
                      // with slices: by placement units, rounded down
  bool whole;         // it can be given whole
  bool shares;        // it can be given in fractions, up to `left`
  LayoutKey held;     // of the instances that are held
  uint32_t profiles;  // bit p: a slice of profile p can be had
};

// A node: free CPU in millicores (0 if over-committed), and its GPUs.
struct NodeRoom {
  ModelId model;
  int64_t cpu = 0;
  int num_devices = 0;
  std::array<DeviceRoom, kMaxGpusPerNode> device;  // the first `num_devices` are set

  std::span<const DeviceRoom> devices() const {
    return std::span(device).first(static_cast<size_t>(num_devices));
  }
  // What is left of all devices, 1/7000 device.
  int64_t left() const {
    int64_t sum = 0;
    for (const DeviceRoom& d : devices()) sum += d.left;
    return sum;
  }
};

// What slices that hold `held` leave of a device, 1/7000 device, rounded down.
int32_t PartLeft(LayoutKey held, const MigTables& mig);

// The room of node `n` as it is. O(GPUs of the node).
NodeRoom RoomOf(const ClusterState& state, NodeId n);

// The room after a pod of `request` has taken the candidate's place, which must be
// free. `before` is `RoomOf` its node. O(GPUs of the placement).
NodeRoom RoomAfter(const ClusterState& state, const NodeRoom& before, const RequestClass& request,
                   const Candidate& candidate);

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_NODE_ROOM_H_
