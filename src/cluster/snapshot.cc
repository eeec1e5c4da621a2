#include "tessera/cluster/snapshot.h"

#include <algorithm>
#include <bit>

#include "src/cluster/snapshot_builder.h"
#include "tessera/base/status.h"

namespace tessera {

absl::StatusOr<Snapshot> Snapshot::Create(SnapshotSpec spec) {
  return SnapshotBuilder(std::move(spec)).Build();
}

absl::StatusOr<Snapshot> SnapshotBuilder::Build() {
  TESSERA_RETURN_IF_ERROR(CheckLevels());
  TESSERA_RETURN_IF_ERROR(CheckGpuModels());
  TESSERA_RETURN_IF_ERROR(CollectResources());
  TESSERA_RETURN_IF_ERROR(SortNodes());
  TESSERA_RETURN_IF_ERROR(ResolveNodes());
  std::vector<Queue>& queues = data_->spec.queues;
  TESSERA_ASSIGN_OR_RETURN(data_->queues, QueueTree::Create(queues, data_->resources));
  std::ranges::sort(queues, {}, &Queue::name);
  TESSERA_RETURN_IF_ERROR(SortWorkloads());
  TESSERA_RETURN_IF_ERROR(ResolveWorkloads());
  TESSERA_RETURN_IF_ERROR(PlacePods());
  TESSERA_RETURN_IF_ERROR(CheckTotals());
  return Snapshot(std::move(data_));
}

std::optional<NodeId> Snapshot::FindNode(std::string_view name) const {
  const auto name_of = [this](NodeId n) -> const std::string& { return node(n).name; };
  const auto it = std::ranges::lower_bound(data_->nodes_by_name, name, {}, name_of);
  if (it == data_->nodes_by_name.end() || name_of(*it) != name) return std::nullopt;
  return *it;
}

std::optional<WorkloadId> Snapshot::FindWorkload(std::string_view name) const {
  const std::vector<Workload>& all = data_->spec.workloads;
  const auto it = std::ranges::lower_bound(all, name, {}, &Workload::name);
  if (it == all.end() || it->name != name) return std::nullopt;
  return WorkloadId(static_cast<int32_t>(it - all.begin()));
}

std::span<const GangNode> Snapshot::gang(WorkloadId w) const {
  return std::span(data_->gang_nodes)
      .subspan(static_cast<size_t>(info(w).first_gang_node),
               static_cast<size_t>(info(w).num_gang_nodes));
}

std::span<const PodSetInfo> Snapshot::pod_sets(WorkloadId w) const {
  return std::span(data_->pod_sets)
      .subspan(static_cast<size_t>(info(w).first_pod_set),
               static_cast<size_t>(info(w).num_pod_sets));
}

PodRef Snapshot::pod_ref(PodId p) const {
  const PodSetId s = pod_set_of(p);
  const PodSetInfo& set = pod_set(s);
  return {workload(set.workload).name, pod_set_spec(s).name, p.value() - set.first_pod};
}

std::optional<PodId> Snapshot::FindPod(const PodRef& ref) const {
  const std::optional<WorkloadId> w = FindWorkload(ref.workload);
  if (!w) return std::nullopt;
  for (int i = 0; i < info(*w).num_pod_sets; ++i) {
    const PodSetId s(info(*w).first_pod_set + i);
    if (pod_set_spec(s).name != ref.pod_set) continue;
    if (ref.index < 0 || ref.index >= pod_set(s).count) return std::nullopt;
    return pod_set(s).pod(ref.index);
  }
  return std::nullopt;
}

Devices DevicesOf(const Snapshot& snapshot, const PodPlacement& placement) {
  Devices devices;
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    const int gpu = std::countr_zero(rest);
    if (placement.profile >= 0) {
      const GpuModel& model = snapshot.model(snapshot.node_model(placement.node));
      devices.slices.push_back(
          {gpu, model.profiles[static_cast<size_t>(placement.profile)].name, placement.start});
    } else if (placement.share > 0) {
      devices.shares.push_back({gpu, placement.share});
    } else {
      devices.gpus.push_back(gpu);
    }
  }
  return devices;
}

}  // namespace tessera
