#include "src/verify/plan_target.h"

#include <bit>

#include "absl/strings/str_cat.h"

namespace tessera {
namespace {

class TargetResolver {
 public:
  TargetResolver(const Snapshot& snapshot, const PlanLayouts& layouts, PodId p, NodeId node,
                 bool now, std::vector<std::string>& problems)
      : snapshot_(snapshot),
        layouts_(layouts),
        request_(snapshot.request_class(snapshot.pod_set(snapshot.pod_set_of(p)).request_class)),
        node_(snapshot.node(node)),
        now_(now),
        problems_(problems) {
    placement_.node = node;
  }

  std::optional<PodPlacement> Resolve(const Devices& devices) {
    JudgeNode();
    if (!ResolveGpus(devices)) return std::nullopt;
    if (request_.gpu.is_shared() && !ResolveShares(devices)) return std::nullopt;
    if (request_.gpu.is_slice() && !ResolveSlice(devices.slices.front())) return std::nullopt;
    JudgeGpus();
    return placement_;
  }

 private:
  void Report(std::string text) { problems_.push_back(std::move(text)); }
  ModelId model() const { return snapshot_.node_model(placement_.node); }
  const ModelFit& fit() const { return request_.models[static_cast<size_t>(model().value())]; }

  void JudgeNode() {
    if (!node_.schedulable) Report(node_.name + " is not schedulable");
    if (!Matches(request_.selector, node_.labels)) {
      Report(node_.name + " does not match the selector");
    }
    if (!Tolerates(request_.tolerations, node_.taints)) {
      Report(node_.name + " has a taint that is not tolerated");
    }
    if (request_.gpu.kind == GpuRequestKind::kNone || !model().valid() || fit().fits) return;
    Report(absl::StrCat("a ", snapshot_.model(model()).name, " cannot serve the request"));
  }

  // Fills in the devices. False: they are not as many as asked for, not distinct,
  // not there, or listed under the wrong heading.
  bool ResolveGpus(const Devices& devices) {
    std::vector<int> gpus = devices.gpus;
    for (const GpuShare& share : devices.shares) gpus.push_back(share.gpu);
    for (const GpuSlice& slice : devices.slices) gpus.push_back(slice.gpu);
    const GpuRequest& gpu = request_.gpu;
    const bool as_shares = gpu.is_shared() && devices.gpus.empty();
    const size_t listed = gpu.is_slice() ? devices.slices.size()
                          : as_shares    ? devices.shares.size()
                                         : devices.gpus.size();
    if (listed != gpus.size() || listed != static_cast<size_t>(gpu.devices)) {
      Report(absl::StrCat("names ", gpus.size(), " devices instead of ", gpu.devices, " under ",
                          gpu.is_slice()    ? "slices"
                          : gpu.is_shared() ? "shares"
                                            : "gpus"));
      return false;
    }
    for (int g : gpus) {
      if (g < 0 || g >= static_cast<int>(node_.gpus.size())) {
        Report(absl::StrCat(node_.name, " has no GPU ", g));
        return false;
      }
      if (((placement_.gpus >> g) & 1) != 0) {
        Report(absl::StrCat("names GPU ", g, " of ", node_.name, " twice"));
        return false;
      }
      placement_.gpus |= uint64_t{1} << g;
    }
    return true;
  }

  bool ResolveShares(const Devices& devices) {
    const int64_t asked = fit().share;
    // A fraction named as a GPU takes its share from the request.
    int64_t share = devices.shares.empty() ? asked : devices.shares.front().share;
    for (const GpuShare& entry : devices.shares) {
      if (entry.share == asked) continue;
      Report(absl::StrCat("takes ", entry.share, "/", kGpuUnitsPerDevice, " of GPU ", entry.gpu,
                          " of ", node_.name, ", the request is for ", asked, "/",
                          kGpuUnitsPerDevice));
      share = entry.share;
    }
    if (share < 1 || share > kGpuUnitsPerDevice) return false;
    placement_.share = static_cast<int32_t>(share);
    return true;
  }

  bool ResolveSlice(const GpuSlice& slice) {
    const GpuModel& gpu_model = snapshot_.model(model());
    const std::optional<int> profile = gpu_model.FindProfile(slice.profile);
    const Instance instance = {profile.value_or(0), slice.start};
    const std::string name = absl::StrCat(slice.profile, " at slice ", slice.start, " of GPU ",
                                          slice.gpu, " of ", node_.name);
    const MigTables& mig = snapshot_.mig(model());
    const bool can_be_carved = profile && !now_ && MayChange(slice.gpu) &&
                               mig.CanPlace(mig.empty(), *profile, slice.start);
    if (!profile || (!can_be_carved && !layouts_.at(placement_.node, slice.gpu).has(instance))) {
      Report(absl::StrCat("there is no instance ", name));
      return false;
    }
    if (fit().fits && !fit().Accepts(*profile)) {
      Report(absl::StrCat("takes ", name, ", the request is for ",
                          gpu_model.profiles[static_cast<size_t>(fit().profile)].name));
    }
    placement_.profile = static_cast<int16_t>(instance.profile);
    placement_.start = static_cast<int16_t>(instance.start);
    return true;
  }

  bool MayChange(int gpu) const {
    return node_.gpus[static_cast<size_t>(gpu)].mig == MigMode::kDynamic;
  }

  void JudgeGpus() {
    for (uint64_t rest = placement_.gpus; rest != 0; rest &= rest - 1) {
      const int g = std::countr_zero(rest);
      const std::string name = absl::StrCat("GPU ", g, " of ", node_.name);
      if (!node_.gpus[static_cast<size_t>(g)].healthy) Report(name + " is not healthy");
      const bool in_mig_mode = layouts_.at(placement_.node, g).mig_enabled;
      if (!request_.gpu.is_slice() && in_mig_mode && (now_ || !MayChange(g))) {
        Report(name + " is in MIG mode");
      }
    }
  }

  const Snapshot& snapshot_;
  const PlanLayouts& layouts_;
  const RequestClass& request_;
  const Node& node_;
  const bool now_;
  std::vector<std::string>& problems_;
  PodPlacement placement_;
};

}  // namespace

std::optional<PodPlacement> ResolveTarget(const Snapshot& snapshot, const PlanLayouts& layouts,
                                          PodId p, const std::string& node, const Devices& devices,
                                          bool now, std::vector<std::string>& problems) {
  const std::optional<NodeId> n = snapshot.FindNode(node);
  if (!n) {
    problems.push_back(absl::StrCat("no node is named \"", node, "\""));
    return std::nullopt;
  }
  return TargetResolver(snapshot, layouts, p, *n, now, problems).Resolve(devices);
}

}  // namespace tessera
