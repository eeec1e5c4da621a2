#include <algorithm>
#include <bit>
#include <tuple>
#include <vector>

#include "tessera/placement/pod_query.h"

namespace tessera {
namespace {

// The pod that asks, with what its checks need at hand.
class Asker {
 public:
  Asker(const ClusterState& state, PodSetId pod_set)
      : state_(state),
        pod_set_(pod_set),
        set_(state.snapshot().pod_set(pod_set)),
        request_(state.snapshot().request_class(set_.request_class)) {}

  const RequestClass& request() const { return request_; }
  // How the node's model answers; only for pods that ask for GPUs, on nodes with some.
  const ModelFit& FitOn(NodeId n) const {
    return request_.models[static_cast<size_t>(state_.snapshot().node_model(n).value())];
  }

  // Amounts, tenants and the pod set's own bounds; devices apart.
  bool NodeHasRoom(NodeId n) const {
    const std::span<const int64_t> need = state_.tables().need(set_.request_class);
    const std::span<const int64_t> room = state_.room(n);
    for (size_t i = 0; i < need.size(); ++i) {
      if (need[i] > room[i]) return false;
    }
    if (state_.tables().tracks_tenants() &&
        !state_.tenancy().NodeAccepts(n.value(), tenant(), isolation())) {
      return false;
    }
    return !set_.is_spread() || state_.LeftOn(n, pod_set_) > 0;
  }

  bool GpuAccepts(NodeId n, int g) const {
    return !state_.tables().tracks_tenants() ||
           state_.tenancy().GpuAccepts(state_.tables().first_gpu(n) + g, tenant(), isolation(),
                                       request_.gpu.is_shared());
  }

 private:
  int tenant() const { return state_.snapshot().info(set_.workload).tenant; }
  Isolation isolation() const { return state_.snapshot().workload(set_.workload).isolation; }
  const ClusterState& state_;
  const PodSetId pod_set_;
  const PodSetInfo& set_;
  const RequestClass& request_;
};

using Choice = std::optional<PodPlacement>;

// Takes the `count` GPUs of the lowest rank.
template <typename Rank>
Choice TakeBest(std::vector<std::pair<Rank, int>>& ranked, NodeId n, int count) {
  if (static_cast<int>(ranked.size()) < count) return std::nullopt;
  std::ranges::sort(ranked);
  PodPlacement placement;
  placement.node = n;
  for (int i = 0; i < count; ++i) {
    placement.gpus |= uint64_t{1} << ranked[static_cast<size_t>(i)].second;
  }
  return placement;
}

Choice ChooseWhole(const ClusterState& state, const Asker& asker, NodeId n) {
  std::vector<std::pair<bool, int>> ranked;
  for (int g = 0; g < state.tables().num_gpus(n); ++g) {
    const GpuState& gpu = state.gpu(n, g);
    if (gpu.is_free() && asker.GpuAccepts(n, g)) ranked.emplace_back(gpu.mig_enabled, g);
  }
  return TakeBest(ranked, n, asker.request().gpu.devices);
}

Choice ChooseShares(const ClusterState& state, const Asker& asker, NodeId n,
                    DevicePreference preference) {
  const int64_t share = asker.FitOn(n).share;
  const bool pack = preference == DevicePreference::kPack;
  std::vector<std::pair<std::tuple<bool, bool, int64_t>, int>> ranked;
  for (int g = 0; g < state.tables().num_gpus(n); ++g) {
    const GpuState& gpu = state.gpu(n, g);
    const bool free = gpu.is_free();
    const int64_t room = gpu.RoomForShare();
    if (room < share || !asker.GpuAccepts(n, g)) continue;
    ranked.push_back({{free == pack, gpu.mig_enabled, pack ? room : -room}, g});
  }
  Choice choice = TakeBest(ranked, n, asker.request().gpu.devices);
  if (choice) choice->share = static_cast<int32_t>(share);
  return choice;
}

// The GPUs that accept the pod beside what they hold.
uint64_t AcceptingGpus(const ClusterState& state, const Asker& asker, NodeId n) {
  uint64_t gpus = 0;
  for (int g = 0; g < state.tables().num_gpus(n); ++g) {
    if (asker.GpuAccepts(n, g)) gpus |= uint64_t{1} << g;
  }
  return gpus;
}

// Whether GPU `a` of node `n` holds just what `b` holds.
bool HoldTheSame(const ClusterState& state, NodeId n, int a, int b) {
  const GpuState& gpu = state.gpu(n, a);
  if (gpu != state.gpu(n, b)) return false;
  return gpu.exist_starts == 0 || state.instances(n, a) == state.instances(n, b);
}

Choice ChooseSlice(const ClusterState& state, const Asker& asker, NodeId n, uint64_t gpus) {
  const std::optional<SlicePlacement> slice = state.CheapestSlice(n, asker.FitOn(n), gpus);
  if (!slice) return std::nullopt;
  PodPlacement placement;
  placement.node = n;
  placement.gpus = uint64_t{1} << slice->gpu;
  placement.profile = static_cast<int16_t>(slice->profile);
  placement.start = static_cast<int16_t>(slice->start);
  return placement;
}

}  // namespace

std::optional<PodPlacement> ChooseDevices(const ClusterState& state, const PodQuery& query,
                                          NodeId n, DevicePreference preference) {
  const Asker asker(state, query.pod_set);
  if (!asker.NodeHasRoom(n)) return std::nullopt;
  switch (asker.request().gpu.kind) {
    case GpuRequestKind::kNone:
      break;
    case GpuRequestKind::kWhole:
      return ChooseWhole(state, asker, n);
    case GpuRequestKind::kFraction:
    case GpuRequestKind::kDeviceMemory:
      return ChooseShares(state, asker, n, preference);
    case GpuRequestKind::kProfile:
    case GpuRequestKind::kRequirement:
      return ChooseSlice(state, asker, n, AcceptingGpus(state, asker, n));
  }
  PodPlacement placement;
  placement.node = n;
  return placement;
}

void ForEachPlacement(const ClusterState& state, const PodQuery& query, NodeId n,
                      absl::FunctionRef<void(const PodPlacement&)> visit) {
  const Asker asker(state, query.pod_set);
  const GpuRequest& gpu = asker.request().gpu;
  if (!gpu.is_slice() && !(gpu.is_shared() && gpu.devices == 1)) {
    const Choice choice = ChooseDevices(state, query, n, DevicePreference::kPack);
    if (choice) visit(*choice);
    return;
  }
  if (!asker.NodeHasRoom(n)) return;
  const int64_t share = asker.FitOn(n).share;
  const uint64_t accepting = AcceptingGpus(state, asker, n);
  for (uint64_t rest = accepting; rest != 0; rest &= rest - 1) {
    const int g = std::countr_zero(rest);
    bool seen = false;
    for (uint64_t lower = accepting & ((uint64_t{1} << g) - 1); lower != 0; lower &= lower - 1) {
      seen = seen || HoldTheSame(state, n, std::countr_zero(lower), g);
    }
    if (seen) continue;
    Choice choice;
    if (gpu.is_slice()) {
      choice = ChooseSlice(state, asker, n, uint64_t{1} << g);
    } else if (state.gpu(n, g).RoomForShare() >= share) {
      choice.emplace();
      choice->node = n;
      choice->share = static_cast<int32_t>(share);
      choice->gpus = uint64_t{1} << g;
    }
    if (choice) visit(*choice);
  }
}

bool IsFree(const ClusterState& state, PodSetId pod_set, const PodPlacement& placement) {
  const Asker asker(state, pod_set);
  const NodeId n = placement.node;
  if (!asker.NodeHasRoom(n)) return false;
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    const int g = std::countr_zero(rest);
    const GpuState& gpu = state.gpu(n, g);
    if (!asker.GpuAccepts(n, g)) return false;
    if (placement.profile >= 0) {
      const MigTables& mig = state.snapshot().mig(state.snapshot().node_model(n));
      const bool exists =
          state.instances(n, g)[static_cast<size_t>(placement.start)] == placement.profile &&
          ((gpu.busy_starts >> placement.start) & 1) == 0;
      const bool carved = gpu.mig == MigMode::kDynamic &&
                          mig.CanPlace(gpu.busy, placement.profile, placement.start);
      if (!gpu.serves_slices() || !(exists || carved)) return false;
    } else if (placement.share > 0) {
      if (gpu.RoomForShare() < placement.share) return false;
    } else if (!gpu.is_free()) {
      return false;
    }
  }
  return true;
}

}  // namespace tessera
