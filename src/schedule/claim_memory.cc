#include "src/schedule/claim_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/schedule/job_facts.h"
#include "tessera/placement/gang_placement.h"

namespace tessera {

ClaimMemory::Claim ClaimMemory::Describe(const ClusterState& state, WorkloadId w) {
  const Snapshot& snapshot = state.snapshot();
  const WorkloadInfo& info = snapshot.info(w);
  const Workload& workload = snapshot.workload(w);
  const std::span<const GangNode> gang = snapshot.gang(w);
  const int64_t waited = std::max<int64_t>(snapshot.now() - workload.submitted, 0);
  const bool delayed = waited < workload.preemption_delay;
  Claim claim;
  claim.key = absl::StrCat("q", info.queue.value(), "t", info.tenant, "i",
                           static_cast<int>(workload.isolation), "p", workload.is_preemptible(),
                           "d", delayed, "g", IsWhole(state, w));
  const bool one_set = info.num_pod_sets == 1 && gang.size() <= 2;
  bool stands_alone = true;
  for (const GangNode& node : gang) {
    absl::StrAppend(&claim.key, ";", node.parent, "L", node.required_level, "P",
                    node.preferred_level, "A", node.after, "k", node.min_children);
    if (!node.is_pod_set()) continue;
    const PodSetId s(info.first_pod_set + node.pod_set);
    const PodSetInfo& set = snapshot.pod_set(s);
    const int lacking = Lacking(state, s);
    absl::StrAppend(&claim.key, "c", set.request_class.value(), "m", set.max_per_node);
    if (one_set) {
      claim.pods = lacking;
    } else {
      absl::StrAppend(&claim.key, "n", lacking, "u", state.placeable(s));
    }
    stands_alone = stands_alone && state.placed(s) == 0;
  }
  // Where its pods are decides where others of it may go.
  if (!stands_alone) absl::StrAppend(&claim.key, "w", w.value());
  return claim;
}

bool ClaimMemory::IsHopeless(const ClusterState& state, WorkloadId w, int64_t round,
                             int64_t version) {
  if (failures_.empty()) return false;
  const Claim claim = Describe(state, w);
  const auto it = failures_.find(claim.key);
  if (it == failures_.end()) return false;
  const int priority = state.snapshot().workload(w).priority;
  return std::ranges::any_of(it->second, [&](const Failure& failure) {
    const bool holds = failure.round == round || failure.version == version;
    return holds && failure.pods <= claim.pods && failure.priority >= priority;
  });
}

void ClaimMemory::Note(const ClusterState& state, WorkloadId w, int64_t round, int64_t version) {
  Claim claim = Describe(state, w);
  const int priority = state.snapshot().workload(w).priority;
  std::vector<Failure>& failures = failures_[std::move(claim.key)];
  // What this one implies need not be remembered.
  std::erase_if(failures, [&](const Failure& failure) {
    const bool holds = failure.round == round || failure.version == version;
    return !holds || (failure.pods >= claim.pods && failure.priority <= priority);
  });
  failures.push_back({claim.pods, priority, round, version});
}

}  // namespace tessera
