#include "tessera/placement/diagnosis.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tessera/placement/pod_query.h"

namespace tessera {
namespace {

// What excludes a node, in the order of the checks. Resources follow from
// `kResource` on, one cause each.
enum Cause {
  kCauseRoom,
  kCauseUnschedulable,
  kCauseSelector,
  kCauseTaint,
  kCauseModel,
  kCauseGpus,
  kCauseShare,
  kCauseSlice,
  kCauseIsolation,
  kCauseMaxPerNode,
  kCauseMaxPerDomain,
  kCauseResource,
  kNumCauses = kCauseResource + kMaxResources,
};

constexpr std::array<std::pair<std::string_view, PendingReason>, kCauseResource> kCauses = {{
    {"room for a pod", PendingReason::kGang},
    {"unschedulable", PendingReason::kNoMatchingNode},
    {"selector", PendingReason::kNoMatchingNode},
    {"taints", PendingReason::kNoMatchingNode},
    {"wrong GPU model", PendingReason::kNoMatchingNode},
    {"too few free GPUs", PendingReason::kInsufficientGpus},
    {"too little free GPU share", PendingReason::kInsufficientGpuShare},
    {"no free slice", PendingReason::kInsufficientSlices},
    {"isolation", PendingReason::kIsolation},
    {"max_per_node reached", PendingReason::kGang},
    {"max_per_domain reached", PendingReason::kGang},
}};

int CauseOf(Eligibility eligibility) {
  switch (eligibility) {
    case Eligibility::kEligible:
      return kCauseRoom;
    case Eligibility::kUnschedulable:
      return kCauseUnschedulable;
    case Eligibility::kSelector:
      return kCauseSelector;
    case Eligibility::kTaint:
      return kCauseTaint;
    case Eligibility::kGpuModel:
      return kCauseModel;
  }
  return kCauseRoom;
}

// Counts nodes by cause. Reads a node's row of the index, and its GPUs only
// where the row does not tell.
class Census {
 public:
  Census(const ClusterState& state, PodSetId pod_set)
      : state_(state),
        tables_(state.tables()),
        pod_set_(pod_set),
        set_(state.snapshot().pod_set(pod_set)),
        request_(state.snapshot().request_class(set_.request_class)),
        need_(tables_.need(set_.request_class)),
        exact_(!tables_.tracks_tenants() && !set_.is_spread()) {}

  std::array<int64_t, kNumCauses> Count() {
    for (size_t s = 0; s < tables_.signatures().size(); ++s) {
      const NodeSignature& signature = tables_.signatures()[s];
      const int cause = CauseOf(tables_.eligibility(set_.request_class, static_cast<int>(s)));
      if (cause != kCauseRoom) {
        counts_[static_cast<size_t>(cause)] += static_cast<int64_t>(signature.nodes.size());
        continue;
      }
      if (signature.model.valid() && !request_.models.empty()) {
        fit_ = request_.models[static_cast<size_t>(signature.model.value())];
      }
      for (int32_t n : signature.nodes) ++counts_[static_cast<size_t>(CauseAt(NodeId(n)))];
    }
    return counts_;
  }

 private:
  int CauseAt(NodeId n) const {
    const GpuRequest& gpu = request_.gpu;
    const std::span<const int64_t> room = state_.room(n);
    if (gpu.kind == GpuRequestKind::kWhole && state_.free_gpus(n) < gpu.devices) {
      return kCauseGpus;
    }
    if (gpu.is_shared() && !HasShares(n, room)) return kCauseShare;
    if (gpu.is_slice() && room[tables_.slice_column(set_.request_class)] == INT64_MIN) {
      return kCauseSlice;
    }
    for (size_t i = 0; i < tables_.node_resources().size(); ++i) {
      if (need_[i] > room[i]) return kCauseResource + static_cast<int>(i);
    }
    if (exact_) return kCauseRoom;
    const PodQuery query{pod_set_, {n.value(), n.value() + 1}, 0};
    if (ChooseDevices(state_, query, n, DevicePreference::kPack)) return kCauseRoom;
    if (!set_.is_spread() || state_.LeftOn(n, pod_set_) > 0) return kCauseIsolation;
    const int level = set_.domain_level;
    const bool in_domain =
        level >= 0 &&
        state_.LeftIn(state_.snapshot().topology().domain_of(n, level), pod_set_) == 0;
    return in_domain ? kCauseMaxPerDomain : kCauseMaxPerNode;
  }

  bool HasShares(NodeId n, std::span<const int64_t> room) const {
    if (request_.gpu.devices == 1) {
      return state_.free_gpus(n) > 0 || room[tables_.share_column()] >= fit_.share;
    }
    int serving = 0;
    for (int g = 0; g < tables_.num_gpus(n); ++g) {
      const GpuState& at = state_.gpu(n, g);
      serving += (at.is_free() ? kGpuUnitsPerDevice : at.partial_share()) >= fit_.share ? 1 : 0;
    }
    return serving >= request_.gpu.devices;
  }

  const ClusterState& state_;
  const StateTables& tables_;
  const PodSetId pod_set_;
  const PodSetInfo& set_;
  const RequestClass& request_;
  const std::span<const int64_t> need_;
  const bool exact_;  // the checks of the row decide
  ModelFit fit_;
  std::array<int64_t, kNumCauses> counts_{};
};

std::string Summary(const NodeCensus& census) {
  std::vector<std::pair<int64_t, std::string>> parts;
  for (const auto& [label, count] : census.counts) parts.emplace_back(-count, label);
  std::ranges::sort(parts);
  std::vector<std::string> texts;
  for (const auto& [count, label] : parts) {
    texts.push_back(absl::StrCat(WithThousands(-count), " ", label));
  }
  return absl::StrCat(WithThousands(census.nodes),
                      census.nodes == 1 ? " node: " : " nodes: ", absl::StrJoin(texts, ", "));
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
  if (census.nodes == 0) census.counts["no nodes"] = 1;
  std::map<PendingReason, int64_t> by_reason;
  const std::array<int64_t, kNumCauses> counts = Census(state, pod_set).Count();
  for (size_t cause = 0; cause < counts.size(); ++cause) {
    if (counts[cause] == 0) continue;
    std::string label;
    PendingReason reason = PendingReason::kInsufficientResources;
    if (cause < kCauseResource) {
      label = kCauses[cause].first;
      reason = kCauses[cause].second;
    } else {
      const int r = state.tables().node_resources()[cause - kCauseResource];
      label = absl::StrCat("too little ", state.snapshot().resources().name(r));
    }
    census.counts[label] = counts[cause];
    if (cause != kCauseRoom) by_reason[reason] += counts[cause];
  }
  census.nodes_with_room = static_cast<int>(counts[kCauseRoom]);
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
                         const NodeCensus& census, const std::optional<NearMiss>& nearest) {
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
    case SearchOutcome::kRefused:
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
    case SearchOutcome::kAwaitsItsPlace:
      pending.reason = PendingReason::kReleasing;
      pending.text = "its minimum waits for the place that it is nominated to";
      return pending;
    case SearchOutcome::kBudgetExhausted:
      pending.reason = PendingReason::kBudgetExhausted;
      pending.text = "the search budget ran out before an answer was found";
      if (nearest) absl::StrAppend(&pending.text, "; nearest: ", Describe(state, *nearest));
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
  if (nearest) absl::StrAppend(&pending.text, "; nearest: ", Describe(state, *nearest));
  return pending;
}

}  // namespace tessera
