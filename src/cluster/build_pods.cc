#include <algorithm>
#include <bit>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "src/cluster/snapshot_builder.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

uint16_t UnitsOf(const MigProfile& profile, int start) {
  return static_cast<uint16_t>(((1u << profile.size) - 1u) << start);
}

// The entry of the list that names `gpu` wins; a fraction may be listed under
// `gpus`, its share then comes from the request.
std::vector<int> GpusNamed(const Devices& devices) {
  std::vector<int> gpus = devices.gpus;
  for (const GpuShare& share : devices.shares) gpus.push_back(share.gpu);
  for (const GpuSlice& slice : devices.slices) gpus.push_back(slice.gpu);
  return gpus;
}

}  // namespace

absl::Status SnapshotBuilder::PlacePods() {
  for (size_t i = 0; i < data_->spec.workloads.size(); ++i) {
    const WorkloadId w(static_cast<int32_t>(i));
    if (!data_->spec.workloads[i].pods.empty()) TESSERA_RETURN_IF_ERROR(SortPods(w));
  }
  return absl::OkStatus();
}

// The id of the pod that entry `i` of the pods of `w` speaks of.
absl::StatusOr<PodId> SnapshotBuilder::FindEntry(WorkloadId w, size_t i) const {
  const Pod& pod = data_->spec.workloads[static_cast<size_t>(w.value())].pods[i];
  const WorkloadInfo& info = data_->workload_infos[static_cast<size_t>(w.value())];
  const auto path = [&] { return absl::StrCat(WorkloadPath(w), ".pods[", i, "]"); };
  std::vector<std::string_view> known;
  for (int s = info.first_pod_set; s < info.first_pod_set + info.num_pod_sets; ++s) {
    known.push_back(data_->pod_set_specs[static_cast<size_t>(s)]->name);
    if (known.back() != pod.pod_set) continue;
    const PodSetInfo& set = data_->pod_sets[static_cast<size_t>(s)];
    if (pod.index >= 0 && pod.index < set.count) return set.pod(pod.index);
    return InvalidAt(path() + ".index", absl::StrCat("is ", pod.index, ", but \"", pod.pod_set,
                                                     "\" has ", set.count, " pods"));
  }
  return InvalidAt(path() + ".pod_set", absl::StrCat("the gang has no pod set \"", pod.pod_set,
                                                     "\"", DidYouMean(pod.pod_set, known)));
}

// Resolves the pods of `w` and puts them in the order of their ids. A pod that
// moves has two entries: releasing, and nominated elsewhere.
absl::Status SnapshotBuilder::SortPods(WorkloadId w) {
  std::vector<Pod>& pods = data_->spec.workloads[static_cast<size_t>(w.value())].pods;
  struct Entry {
    PodId id;
    bool stays;
    int given;
    auto operator<=>(const Entry&) const = default;
  };
  std::vector<Entry> order;
  for (size_t i = 0; i < pods.size(); ++i) {
    TESSERA_ASSIGN_OR_RETURN(const PodId id, FindEntry(w, i));
    order.push_back({id, pods[i].phase != PodPhase::kReleasing, static_cast<int>(i)});
  }
  std::ranges::sort(order);
  std::vector<Pod> sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t given = static_cast<size_t>(order[i].given);
    if (i > 0 && order[i - 1].id == order[i].id) {
      const bool moves = !order[i - 1].stays && pods[given].phase == PodPhase::kNominated;
      if (!moves) {
        return InvalidAt(absl::StrCat(WorkloadPath(w), ".pods[", given, "]"),
                         "is listed twice (same pod_set and index)");
      }
    }
    sorted.push_back(std::move(pods[given]));
    TESSERA_RETURN_IF_ERROR(PlacePod(w, sorted.back(), order[i].given, order[i].id));
  }
  pods = std::move(sorted);
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::PlacePod(WorkloadId w, const Pod& pod, int given, PodId id) {
  const size_t at = static_cast<size_t>(id.value());
  const std::string path = absl::StrCat(WorkloadPath(w), ".pods[", given, "]");
  const bool nominated = pod.phase == PodPhase::kNominated;
  if (nominated && pod.expires && *pod.expires <= data_->spec.now) return absl::OkStatus();
  data_->pod_phases[at] = pod.phase;
  const bool ended = pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
  if (ended || pod.phase == PodPhase::kPending) return absl::OkStatus();
  if (pod.node.empty()) return InvalidAt(path + ".node", "is needed by a pod of this phase");
  const auto name_of = [this](NodeId n) -> const std::string& {
    return data_->spec.nodes[static_cast<size_t>(n.value())].name;
  };
  const auto it = std::ranges::lower_bound(data_->nodes_by_name, pod.node, {}, name_of);
  if (it == data_->nodes_by_name.end() || name_of(*it) != pod.node) {
    return InvalidAt(path + ".node", absl::StrCat("no node is named \"", pod.node, "\""));
  }
  const PodSetId s = data_->pod_set_of[at];
  const RequestClassId c = data_->pod_sets[static_cast<size_t>(s.value())].request_class;
  const RequestClass& request = data_->request_classes[static_cast<size_t>(c.value())];
  TESSERA_ASSIGN_OR_RETURN(const PodPlacement placement, ResolveDevices(pod, request, *it, path));
  data_->pod_placements[at] = placement;
  if (pod.phase == PodPhase::kRunning && pod.started) data_->pod_starts[at] = *pod.started;
  if (pod.phase == PodPhase::kReleasing) data_->releasing.push_back({id, placement});
  return OccupyGpus(placement, request, pod.phase, path);
}

absl::StatusOr<PodPlacement> SnapshotBuilder::ResolveDevices(const Pod& pod,
                                                             const RequestClass& request,
                                                             NodeId node,
                                                             const std::string& path) const {
  const Node& on = data_->spec.nodes[static_cast<size_t>(node.value())];
  PodPlacement placement;
  placement.node = node;
  const Devices& devices = pod.devices;
  const GpuRequest& gpu = request.gpu;
  const std::string_view field = gpu.is_slice()                            ? "slices"
                                 : gpu.is_shared() && devices.gpus.empty() ? "shares"
                                                                           : "gpus";
  const std::string where = absl::StrCat(path, ".", std::string(field));
  const size_t expected = gpu.is_slice()      ? devices.slices.size()
                          : field == "shares" ? devices.shares.size()
                                              : devices.gpus.size();
  const std::vector<int> named = GpusNamed(devices);
  if (named.size() != expected || named.size() != static_cast<size_t>(gpu.devices)) {
    return InvalidAt(
        where, absl::StrCat("must name the ", gpu.devices,
                            " devices that the request asks for; the pod names ", named.size()));
  }
  for (size_t i = 0; i < named.size(); ++i) {
    const std::string entry = absl::StrCat(where, "[", i, "]");
    if (named[i] < 0 || named[i] >= static_cast<int>(on.gpus.size())) {
      return InvalidAt(entry, absl::StrCat("node ", on.name, " has no GPU ", named[i]));
    }
    const uint64_t bit = uint64_t{1} << named[i];
    if ((placement.gpus & bit) != 0) {
      return InvalidAt(entry, absl::StrCat("GPU ", named[i], " is named twice"));
    }
    placement.gpus |= bit;
  }
  if (gpu.kind == GpuRequestKind::kNone) return placement;
  const ModelId m = data_->node_models[static_cast<size_t>(node.value())];
  if (gpu.is_shared()) {
    const int64_t asked = FitModel(gpu, {}, m).share;
    placement.share = static_cast<int32_t>(devices.shares.empty() ? std::max<int64_t>(asked, 1)
                                                                  : devices.shares[0].share);
    for (size_t i = 0; i < devices.shares.size(); ++i) {
      const int64_t share = devices.shares[i].share;
      const std::string entry = absl::StrCat(where, "[", i, "].fraction");
      if (share < 1 || share > kGpuUnitsPerDevice) {
        return InvalidAt(entry, "is not above 0 and at most 1");
      }
      if (share != placement.share) return InvalidAt(entry, "differs from the pod's others");
    }
  }
  if (gpu.is_slice()) TESSERA_RETURN_IF_ERROR(ResolveSlice(pod, node, where + "[0]", placement));
  return placement;
}

absl::Status SnapshotBuilder::ResolveSlice(const Pod& pod, NodeId node, const std::string& path,
                                           PodPlacement& placement) const {
  const GpuSlice& slice = pod.devices.slices.front();
  const ModelId m = data_->node_models[static_cast<size_t>(node.value())];
  const MigTables& tables = data_->models[static_cast<size_t>(m.value())];
  const std::optional<int> profile = tables.model().FindProfile(slice.profile);
  if (!profile) {
    return InvalidAt(path + ".profile", absl::StrCat("a ", tables.model().name,
                                                     " has no profile \"", slice.profile, "\""));
  }
  const bool in_range = slice.start >= 0 && slice.start < 16;
  if (!in_range || !tables.CanPlace(tables.empty(), *profile, slice.start)) {
    return InvalidAt(path + ".start",
                     absl::StrCat(slice.profile, " cannot start at slice ", slice.start));
  }
  placement.profile = static_cast<int16_t>(*profile);
  placement.start = static_cast<int16_t>(slice.start);
  return absl::OkStatus();
}

// A pod that is there must be on a GPU in the mode it needs, on an instance that
// exists. (A nomination may wait for both.)
absl::Status SnapshotBuilder::CheckPhysical(NodeId node, int gpu, const PodPlacement& placement,
                                            const std::string& path) const {
  const Node& on = data_->spec.nodes[static_cast<size_t>(node.value())];
  const Gpu& device = on.gpus[static_cast<size_t>(gpu)];
  if (placement.profile < 0) {
    if (!device.is_mig_enabled()) return absl::OkStatus();
    return InvalidAt(path, absl::StrCat("GPU ", gpu, " of ", on.name, " is in MIG mode"));
  }
  const ModelId m = data_->node_models[static_cast<size_t>(node.value())];
  const GpuModel& model = data_->models[static_cast<size_t>(m.value())].model();
  const std::string& name = model.profiles[static_cast<size_t>(placement.profile)].name;
  const bool exists = std::ranges::any_of(device.instances, [&](const GpuInstance& instance) {
    return instance.profile == name && instance.start == placement.start;
  });
  if (exists) return absl::OkStatus();
  return InvalidAt(path, absl::StrCat("GPU ", gpu, " of ", on.name, " has no instance ", name,
                                      " at slice ", placement.start));
}

absl::Status SnapshotBuilder::OccupyGpus(const PodPlacement& placement, const RequestClass& request,
                                         PodPhase phase, const std::string& path) {
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    const int gpu = std::countr_zero(rest);
    if (phase != PodPhase::kNominated) {
      TESSERA_RETURN_IF_ERROR(CheckPhysical(placement.node, gpu, placement, path));
    }
    GpuUse use;
    use.kind = request.gpu.is_slice()    ? GpuUse::kSliced
               : request.gpu.is_shared() ? GpuUse::kShared
                                         : GpuUse::kWhole;
    if (placement.profile >= 0) {
      const ModelId m = data_->node_models[static_cast<size_t>(placement.node.value())];
      const GpuModel& model = data_->models[static_cast<size_t>(m.value())].model();
      use.units = UnitsOf(model.profiles[static_cast<size_t>(placement.profile)], placement.start);
    }
    const size_t at =
        static_cast<size_t>(first_gpu_[static_cast<size_t>(placement.node.value())] + gpu);
    for (std::vector<GpuUse>* uses : {&present_, &coming_}) {
      if (uses == &present_ && phase == PodPhase::kNominated) continue;
      if (uses == &coming_ && phase == PodPhase::kReleasing) continue;
      GpuUse& held = (*uses)[at];
      const bool clash =
          held.kind != GpuUse::kFree &&
          (held.kind != use.kind || use.kind == GpuUse::kWhole || (held.units & use.units) != 0);
      if (clash) {
        const std::string& node =
            data_->spec.nodes[static_cast<size_t>(placement.node.value())].name;
        return InvalidAt(path,
                         absl::StrCat("GPU ", gpu, " of ", node,
                                      use.units != 0 ? ", or this slice of it, is already held"
                                                     : " is already held by another pod"));
      }
      held.kind = use.kind;
      held.units |= use.units;
    }
  }
  return absl::OkStatus();
}

}  // namespace tessera
