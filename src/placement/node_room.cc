#include "tessera/placement/node_room.h"

#include <algorithm>
#include <bit>

namespace tessera {
namespace {

constexpr int32_t kAll = static_cast<int32_t>(kGpuUnitsPerDevice);

// A part of the placement units as a part of the device.
int32_t PartOf(const MigTables& mig, int units) { return kAll * units / mig.model().units; }

// The slices that a GPU serves whose instances `busy_starts` are held under `held`.
void SetSlices(const MigTables& mig, const GpuState& gpu, const InstanceRow& row, LayoutKey held,
               uint32_t busy_starts, DeviceRoom& room) {
  room.held = held;
  if (gpu.mig == MigMode::kDynamic) {
    room.profiles = mig.Placeable(held);
    room.left = PartLeft(held, mig);
    return;
  }
  int units = 0;
  for (uint32_t idle = gpu.exist_starts & ~busy_starts; idle != 0; idle &= idle - 1) {
    const int8_t profile = row[static_cast<size_t>(std::countr_zero(idle))];
    room.profiles |= uint32_t{1} << profile;
    units += mig.model().profiles[static_cast<size_t>(profile)].size;
  }
  room.left = PartOf(mig, units);
}

DeviceRoom RoomOfDevice(const ClusterState& state, NodeId n, int g) {
  const GpuState& gpu = state.gpu(n, g);
  DeviceRoom room{};
  if (gpu.serves_slices()) {
    const MigTables& mig = state.snapshot().mig(state.snapshot().node_model(n));
    SetSlices(mig, gpu, state.instances(n, g), gpu.busy, gpu.busy_starts, room);
  }
  room.whole = gpu.is_free();
  const int64_t share = gpu.RoomForShare();
  room.shares = share > 0;
  if (room.shares) room.left = static_cast<int32_t>(share);
  return room;
}

}  // namespace

int32_t PartLeft(LayoutKey held, const MigTables& mig) {
  return PartOf(mig, mig.model().units - std::popcount(held.mask));
}

NodeRoom RoomOf(const ClusterState& state, NodeId n) {
  NodeRoom room;
  room.model = state.snapshot().node_model(n);
  room.cpu = std::max<int64_t>(0, state.free_amount(n, kCpu));
  room.num_devices = state.tables().num_gpus(n);
  for (int g = 0; g < room.num_devices; ++g) {
    room.device[static_cast<size_t>(g)] = RoomOfDevice(state, n, g);
  }
  return room;
}

NodeRoom RoomAfter(const ClusterState& state, const NodeRoom& before, const RequestClass& request,
                   const Candidate& candidate) {
  NodeRoom room;
  room.model = before.model;
  room.cpu = before.cpu - request.need[kCpu];
  room.num_devices = before.num_devices;
  std::ranges::copy(before.devices(), room.device.begin());
  const PodPlacement& place = candidate.placement;
  for (uint64_t rest = place.gpus; rest != 0; rest &= rest - 1) {
    const int g = std::countr_zero(rest);
    DeviceRoom& device = room.device[static_cast<size_t>(g)];
    const int32_t left = place.share > 0 ? device.left - place.share : 0;
    const LayoutKey held = device.held;
    device = DeviceRoom{left, false, left > 0, held, 0};
    if (place.profile < 0) continue;
    const GpuState& gpu = state.gpu(candidate.node, g);
    const MigTables& mig = state.snapshot().mig(before.model);
    const uint32_t busy = gpu.busy_starts | (uint32_t{1} << place.start);
    device.shares = false;
    SetSlices(mig, gpu, state.instances(candidate.node, g),
              mig.Add(held, place.profile, place.start), busy, device);
  }
  return room;
}

}  // namespace tessera
