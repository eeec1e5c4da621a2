#include "src/schedule/job_facts.h"

#include <algorithm>

#include "tessera/placement/gang_placement.h"

namespace tessera {

bool HasPlaceable(const ClusterState& state, WorkloadId w) {
  const WorkloadInfo& info = state.snapshot().info(w);
  for (int s = info.first_pod_set; s < info.first_pod_set + info.num_pod_sets; ++s) {
    if (state.placeable(PodSetId(s)) > 0) return true;
  }
  return false;
}

GangStage StageOf(const ClusterState& state, WorkloadId w) {
  if (!IsWhole(state, w)) return GangStage::kBelowMinimum;
  const WorkloadInfo& info = state.snapshot().info(w);
  for (int s = info.first_pod_set; s < info.first_pod_set + info.num_pod_sets; ++s) {
    const PodSetId id(s);
    if (state.placed(id) > state.snapshot().pod_set(id).min_count) {
      return GangStage::kAboveMinimum;
    }
  }
  return GangStage::kAtMinimum;
}

int Lacking(const ClusterState& state, PodSetId s) {
  return std::max(state.snapshot().pod_set(s).min_count - state.standing(s), 0);
}

LeastCharges::LeastCharges(const Snapshot& snapshot, MigCharge rule) : snapshot_(snapshot) {
  for (int c = 0; c < snapshot.num_request_classes(); ++c) {
    expected_.push_back(ExpectedCharge(snapshot, RequestClassId(c), rule));
  }
}

ResourceVector LeastCharges::Of(const ClusterState& state, WorkloadId w) const {
  if (!IsWhole(state, w)) return OfMinimum(state, w);
  const WorkloadInfo& info = snapshot_.info(w);
  for (int s = info.first_pod_set; s < info.first_pod_set + info.num_pod_sets; ++s) {
    if (state.placeable(PodSetId(s)) > 0) return Expected(PodSetId(s));
  }
  return ResourceVector();
}

ResourceVector LeastCharges::OfMinimum(const ClusterState& state, WorkloadId w, int g) const {
  const std::span<const GangNode> gang = snapshot_.gang(w);
  const GangNode& node = gang[static_cast<size_t>(g)];
  if (node.is_pod_set()) {
    const PodSetId s(snapshot_.info(w).first_pod_set + node.pod_set);
    return Expected(s) * Lacking(state, s);
  }
  ResourceVector sum;
  int independent = 0;
  for (int c = node.first_child; c < node.first_child + node.num_children; ++c) {
    if (gang[static_cast<size_t>(c)].after >= 0) continue;
    ++independent;
    sum += OfMinimum(state, w, c);
  }
  return independent == node.min_children ? sum : ResourceVector();
}

}  // namespace tessera
