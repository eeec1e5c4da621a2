#include "src/preemption/move_writer.h"

#include <algorithm>

#include "src/preemption/move_rules.h"

namespace tessera {

MoveWriter::MoveWriter(const Snapshot& snapshot, const SliceView& view)
    : snapshot_(snapshot), view_(view), tables_(snapshot.mig(view.model)) {
  for (const SlicedGpu& gpu : view.gpus) {
    Device& device = devices_.emplace_back();
    device.mig_enabled = gpu.mig_enabled;
    for (const BusyInstance& busy : gpu.busy) device.standing.push_back({busy.instance, true});
    for (const Instance& idle : gpu.idle) device.standing.push_back({idle, false});
    std::ranges::sort(device.standing, {}, [](const Standing& s) { return s.instance.start; });
  }
}

MoveWriter::Standing* MoveWriter::Find(Device& device, const Instance& instance) {
  const auto it = std::ranges::find(device.standing, instance, &Standing::instance);
  return it == device.standing.end() ? nullptr : &*it;
}

void MoveWriter::Move(const InstanceMove& move) {
  const Instance target = {move.from.profile, move.to_start};
  Device& device = devices_[static_cast<size_t>(move.to_gpu)];
  MakeRoom(move.to_gpu, target);
  // The source stands, held, until the pod has left.
  Standing* standing = Find(device, target);
  if (standing != nullptr) {
    standing->is_held = true;
  } else {
    device.awaited.push_back(target);
  }
  const GpuSpot& spot = view_.spots[static_cast<size_t>(move.to_gpu)];
  const PodId p = HolderOf(view_, move.from_gpu, move.from);
  Devices devices;
  devices.slices = {{spot.gpu, NameOf(target), target.start}};
  actions_.push_back(MoveAction{snapshot_.pod_ref(p), snapshot_.node(spot.node).name, devices});
}

bool MoveWriter::Make(const InstancePlace& place) { return MakeRoom(place.gpu, place.instance); }

// The idle instances that must go before `wanted` can be created; it fits beside `held`.
std::vector<Instance> MoveWriter::InTheWay(const Device& device, LayoutKey held,
                                           const Instance& wanted) const {
  std::vector<Instance> in_the_way;
  LayoutKey kept = held;
  for (const Standing& standing : device.standing) {
    if (standing.is_held) continue;
    const auto& [profile, start] = standing.instance;
    const LayoutKey with = tables_.Add(kept, profile, start);
    if (tables_.CanPlace(with, wanted.profile, wanted.start)) {
      kept = with;
    } else {
      in_the_way.push_back(standing.instance);
    }
  }
  return in_the_way;
}

// Sees to it that `wanted` exists and is idle. False, without an action, if it cannot be
// made yet: it is held, or pods are leaving what is in its way.
bool MoveWriter::MakeRoom(int gpu, const Instance& wanted) {
  Device& device = devices_[static_cast<size_t>(gpu)];
  if (const Standing* standing = Find(device, wanted)) return !standing->is_held;
  LayoutKey held = tables_.empty();
  for (const auto& [instance, is_held] : device.standing) {
    if (is_held) held = tables_.Add(held, instance.profile, instance.start);
  }
  if (!tables_.CanPlace(held, wanted.profile, wanted.start)) return false;
  const std::vector<Instance> in_the_way = InTheWay(device, held, wanted);
  // What stands in for a pod to come is left to whoever makes its place.
  const auto is_awaited = [&](const Instance& instance) {
    return std::ranges::any_of(
        device.awaited, [&](const Instance& a) { return Overlap(tables_.model(), a, instance); });
  };
  if (is_awaited(wanted) || std::ranges::any_of(in_the_way, is_awaited)) return false;
  Replace(gpu, in_the_way, wanted);
  return true;
}

void MoveWriter::Replace(int gpu, const std::vector<Instance>& gone, const Instance& wanted) {
  Device& device = devices_[static_cast<size_t>(gpu)];
  const GpuSpot& spot = view_.spots[static_cast<size_t>(gpu)];
  const std::string& node = snapshot_.node(spot.node).name;
  for (const Instance& instance : gone) {
    actions_.push_back(DestroyAction{node, spot.gpu, NameOf(instance), instance.start});
    std::erase_if(device.standing, [&](const Standing& s) { return s.instance == instance; });
  }
  if (!device.mig_enabled) actions_.push_back(SetMigAction{node, spot.gpu, true});
  device.mig_enabled = true;
  actions_.push_back(CreateAction{node, spot.gpu, NameOf(wanted), wanted.start});
  device.standing.push_back({wanted, false});
}

}  // namespace tessera
