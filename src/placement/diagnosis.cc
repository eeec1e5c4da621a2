#include "tessera/placement/diagnosis.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tessera/placement/pod_query.h"

namespace tessera {
namespace {

constexpr std::string_view kRoom = "room for a pod";

// One reason a node is out: its label, and what it means for the workload.
struct Exclusion {
  std::string label;
  PendingReason reason;
};

std::optional<Exclusion> ExcludedForever(Eligibility eligibility) {
  switch (eligibility) {
    case Eligibility::kEligible:
      return std::nullopt;
    case Eligibility::kUnschedulable:
      return Exclusion{"unschedulable", PendingReason::kNoMatchingNode};
    case Eligibility::kSelector:
      return Exclusion{"selector", PendingReason::kNoMatchingNode};
    case Eligibility::kTaint:
      return Exclusion{"taints", PendingReason::kNoMatchingNode};
    case Eligibility::kGpuModel:
      return Exclusion{"wrong GPU model", PendingReason::kNoMatchingNode};
  }
  return std::nullopt;
}

// Whether node `n` could give the GPU part of the request.
bool HasDevices(const ClusterState& state, const RequestClass& request, NodeId n) {
  const GpuRequest& gpu = request.gpu;
  if (gpu.kind == GpuRequestKind::kNone) return true;
  if (gpu.kind == GpuRequestKind::kWhole) return state.free_gpus(n) >= gpu.devices;
  const ModelId m = state.snapshot().node_model(n);
  const ModelFit& fit = request.models[static_cast<size_t>(m.value())];
  int serving = 0;
  for (int g = 0; g < state.tables().num_gpus(n); ++g) {
    const GpuState& at = state.gpu(n, g);
    if (gpu.is_shared()) {
      serving += (at.is_free() ? kGpuUnitsPerDevice : at.partial_share()) >= fit.share ? 1 : 0;
      continue;
    }
    if (!at.serves_slices()) continue;
    const MigTables& mig = state.snapshot().mig(m);
    const bool carves =
        at.mig == MigMode::kDynamic && mig.Capacity(at.busy, fit.profile) > 0;
    bool idle = false;
    for (int s = 0; s < 16; ++s) {
      idle |= ((at.exist_starts & ~at.busy_starts) >> s & 1) != 0 &&
              state.instances(n, g)[static_cast<size_t>(s)] == fit.profile;
    }
    serving += carves || idle ? 1 : 0;
  }
  return serving >= gpu.devices;
}

Exclusion DeviceExclusion(const ClusterState& state, const RequestClass& request, NodeId n) {
  const GpuRequest& gpu = request.gpu;
  if (gpu.is_slice()) return {"no free slice", PendingReason::kInsufficientSlices};
  if (gpu.is_shared()) return {"too little free GPU share", PendingReason::kInsufficientGpuShare};
  if (state.tables().num_gpus(n) < gpu.devices) {
    return {"too few GPUs", PendingReason::kInsufficientGpus};
  }
  return {"too few free GPUs", PendingReason::kInsufficientGpus};
}

std::optional<Exclusion> Exclude(const ClusterState& state, PodSetId pod_set, NodeId n) {
  const PodSetInfo& set = state.snapshot().pod_set(pod_set);
  const RequestClass& request = state.snapshot().request_class(set.request_class);
  const StateTables& tables = state.tables();
  const std::optional<Exclusion> forever =
      ExcludedForever(tables.eligibility(set.request_class, tables.signature_of(n)));
  if (forever) return forever;
  if (!HasDevices(state, request, n)) return DeviceExclusion(state, request, n);
  const std::span<const int> resources = tables.node_resources();
  const std::span<const int64_t> need = tables.need(set.request_class);
  for (size_t i = 0; i < resources.size(); ++i) {
    if (need[i] <= state.free_amount(n, static_cast<int>(i))) continue;
    return Exclusion{
        absl::StrCat("too little ", state.snapshot().resources().name(resources[i])),
        PendingReason::kInsufficientResources};
  }
  const PodQuery query{pod_set, {n.value(), n.value() + 1}, 0};
  if (ChooseDevices(state, query, n, DevicePreference::kPack)) return std::nullopt;
  if (set.max_per_node > 0 && !tables.tracks_tenants()) {
    return Exclusion{"max_per_node reached", PendingReason::kGang};
  }
  return Exclusion{"isolation", PendingReason::kIsolation};
}

std::string Summary(const NodeCensus& census) {
  std::vector<std::pair<int64_t, std::string>> parts;
  for (const auto& [label, count] : census.counts) parts.emplace_back(-count, label);
  std::ranges::sort(parts);
  std::vector<std::string> texts;
  for (const auto& [count, label] : parts) {
    texts.push_back(absl::StrCat(WithThousands(-count), " ", label));
  }
  return absl::StrCat(WithThousands(census.nodes), census.nodes == 1 ? " node: " : " nodes: ",
                      absl::StrJoin(texts, ", "));
}

std::string PodSetName(const ClusterState& state, PodSetId s) {
  return state.snapshot().pod_set_spec(s).name;
}

}  // namespace

std::string WithThousands(int64_t number) {
  std::string text = absl::StrCat(number);
  const size_t first = text[0] == '-' ? 1 : 0;
  for (size_t at = text.size(); at > first + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

NodeCensus CountNodes(const ClusterState& state, PodSetId pod_set) {
  NodeCensus census;
  census.nodes = state.snapshot().num_nodes();
  std::map<PendingReason, int64_t> by_reason;
  for (int i = 0; i < census.nodes; ++i) {
    const std::optional<Exclusion> excluded = Exclude(state, pod_set, NodeId(i));
    if (excluded) {
      ++census.counts[excluded->label];
      ++by_reason[excluded->reason];
    } else {
      ++census.counts[std::string(kRoom)];
      ++census.nodes_with_room;
    }
  }
  if (census.nodes == 0) census.counts["no nodes"] = 1;
  // What excludes matching nodes says more than how many do not match.
  const bool none_match =
      by_reason.size() == 1 && by_reason.contains(PendingReason::kNoMatchingNode);
  int64_t most = 0;
  for (const auto& [reason, count] : by_reason) {
    if (reason == PendingReason::kNoMatchingNode && !none_match) continue;
    if (count > most) census.main_reason = reason;
    most = std::max(most, count);
  }
  return census;
}

PendingWorkload Diagnose(const ClusterState& state, WorkloadId w, const GangPlacement& result,
                         const NodeCensus& census) {
  PendingWorkload pending;
  pending.workload = state.snapshot().workload(w).name;
  pending.below_minimum = !IsWhole(state, w);
  pending.counts = census.counts;
  const std::string name =
      result.stuck_at.valid() ? PodSetName(state, result.stuck_at) : std::string();
  switch (result.outcome) {
    case SearchOutcome::kPlaced:
    case SearchOutcome::kNoRoom:
    case SearchOutcome::kTopology:
      break;
    case SearchOutcome::kDisagreement:
      pending.reason = PendingReason::kTopology;
      pending.text = absl::StrCat("pods of \"", name,
                                  "\" already run in different domains of a required level");
      return pending;
    case SearchOutcome::kFailedPods:
      pending.reason = PendingReason::kFailedPods;
      pending.text = absl::StrCat("\"", name, "\" has too few pods left for its minimum");
      return pending;
    case SearchOutcome::kDependency:
      pending.reason = PendingReason::kDependency;
      pending.text = "waits for the group named by `after`";
      return pending;
    case SearchOutcome::kBudgetExhausted:
      pending.reason = PendingReason::kBudgetExhausted;
      pending.text = "the search budget ran out before an answer was found";
      return pending;
  }
  const std::string summary = Summary(census);
  if (census.nodes_with_room == 0) {
    pending.reason = census.main_reason;
    pending.text = absl::StrCat("\"", name, "\" fits no node; ", summary);
  } else if (result.outcome == SearchOutcome::kTopology) {
    pending.reason = PendingReason::kTopology;
    pending.text = absl::StrCat("no domain of the required level takes all minimums; one pod of \"",
                                name, "\": ", summary);
  } else {
    pending.reason = PendingReason::kGang;
    pending.text = absl::StrCat("all minimums do not fit together, stuck at \"", name,
                                "\"; one pod of it: ", summary);
  }
  return pending;
}

}  // namespace tessera
