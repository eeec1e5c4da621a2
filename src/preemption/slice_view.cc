#include "src/preemption/slice_view.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace tessera {
namespace {

std::vector<Instance> InstancesOf(const GpuModel& model, const Gpu& gpu) {
  std::vector<Instance> instances;
  for (const GpuInstance& instance : gpu.instances) {
    instances.push_back({*model.FindProfile(instance.profile), instance.start});
  }
  // The order in which a host lists them means nothing.
  std::ranges::sort(instances, {}, &Instance::start);
  return instances;
}

std::optional<GpuBar> BarOf(const Node& node, const Gpu& gpu, const GpuHolds& holds,
                            const std::vector<Instance>& instances) {
  if (!node.schedulable) return GpuBar::kUnschedulable;
  if (!gpu.healthy) return GpuBar::kUnhealthy;
  if (gpu.mig == MigMode::kOff) return GpuBar::kMigOff;
  if (holds.in_use) return GpuBar::kInUse;
  // Until a nominated pod has what it waits for, the GPU takes nothing else
  // (`ClusterState::Reserve`).
  const bool exist = std::ranges::all_of(holds.slices, [&](const SliceHold& hold) {
    return std::ranges::find(instances, hold.instance) != instances.end();
  });
  if (!exist) return GpuBar::kReserved;
  if (holds.alone) return GpuBar::kAlone;
  if (gpu.mig == MigMode::kStatic) return GpuBar::kStatic;
  return std::nullopt;
}

// Adds a GPU that is not barred, or merely static.
void AddGpu(const GpuModel& model, const Gpu& gpu, const GpuHolds& holds,
            const std::vector<Instance>& instances, GpuSpot spot, SliceView& view) {
  SlicedGpu sliced;
  sliced.mig_enabled = gpu.is_mig_enabled();
  sliced.may_change = gpu.mig == MigMode::kDynamic;
  std::vector<PodId> holders;
  for (const Instance& instance : instances) {
    int count = 0;
    PodId holder;
    for (const SliceHold& hold : holds.slices) {
      if (!Overlap(model, hold.instance, instance)) continue;
      ++count;
      if (hold.runs) holder = hold.pod;
    }
    if (count == 0) {
      sliced.idle.push_back(instance);
    } else {
      sliced.busy.push_back({instance, false, 1});
      holders.push_back(count == 1 ? holder : PodId());
    }
  }
  view.spots.push_back(spot);
  view.gpus.push_back(std::move(sliced));
  view.holders.push_back(std::move(holders));
}

void AddNode(const Snapshot& snapshot, const ClusterHolds& holds, NodeId n, SliceView& view) {
  const Node& node = snapshot.node(n);
  const GpuModel& model = snapshot.model(view.model);
  for (int g = 0; g < static_cast<int>(node.gpus.size()); ++g) {
    const Gpu& gpu = node.gpus[static_cast<size_t>(g)];
    const std::vector<Instance> instances = InstancesOf(model, gpu);
    const std::optional<GpuBar> bar = BarOf(node, gpu, holds.at(n, g), instances);
    ++view.num_gpus;
    if (bar) view.barred.push_back({node.name, g, *bar});
    if (bar && *bar != GpuBar::kStatic) continue;
    AddGpu(model, gpu, holds.at(n, g), instances, {n, g}, view);
  }
}

}  // namespace

ClusterHolds::ClusterHolds(const Snapshot& snapshot) {
  first_gpu_.push_back(0);
  for (int i = 0; i < snapshot.num_nodes(); ++i) {
    first_gpu_.push_back(first_gpu_.back() + snapshot.node(NodeId(i)).gpus.size());
  }
  gpus_.resize(first_gpu_.back());
  for (int i = 0; i < snapshot.num_pods(); ++i) {
    const PodId p(i);
    const PodPhase phase = snapshot.pod_phase(p);
    if (phase != PodPhase::kRunning && phase != PodPhase::kNominated) continue;
    Add(snapshot, p, snapshot.pod_placement(p), phase == PodPhase::kRunning);
  }
  for (const ReleasingPod& leaving : snapshot.releasing()) {
    Add(snapshot, leaving.pod, leaving.placement, false);
  }
}

void ClusterHolds::Add(const Snapshot& snapshot, PodId p, const PodPlacement& placement,
                       bool runs) {
  const size_t n = static_cast<size_t>(placement.node.value());
  const Isolation isolation =
      snapshot.workload(snapshot.pod_set(snapshot.pod_set_of(p)).workload).isolation;
  if (isolation == Isolation::kNodeAlone) {
    for (size_t g = first_gpu_[n]; g < first_gpu_[n + 1]; ++g) gpus_[g].alone = true;
  }
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    GpuHolds& gpu = gpus_[first_gpu_[n] + static_cast<size_t>(std::countr_zero(rest))];
    if (isolation == Isolation::kGpuAlone) gpu.alone = true;
    if (placement.profile < 0) {
      gpu.in_use = true;
    } else {
      gpu.slices.push_back({p, {placement.profile, placement.start}, runs});
    }
  }
}

SliceView ViewOf(const Snapshot& snapshot, const ClusterHolds& holds, ModelId model, NodeId node) {
  SliceView view;
  view.model = model;
  if (node.valid()) {
    AddNode(snapshot, holds, node, view);
    return view;
  }
  for (int i = 0; i < snapshot.num_nodes(); ++i) {
    if (snapshot.node_model(NodeId(i)) == model) AddNode(snapshot, holds, NodeId(i), view);
  }
  return view;
}

SliceView PartOf(const SliceView& view, NodeId n) {
  SliceView part;
  part.model = view.model;
  const auto first = std::ranges::lower_bound(view.spots, n, {}, &GpuSpot::node);
  for (size_t i = static_cast<size_t>(first - view.spots.begin());
       i < view.spots.size() && view.spots[i].node == n; ++i) {
    part.spots.push_back(view.spots[i]);
    part.gpus.push_back(view.gpus[i]);
    part.holders.push_back(view.holders[i]);
  }
  part.num_gpus = static_cast<int>(part.gpus.size());
  return part;
}

}  // namespace tessera
