#include <string_view>

#include "absl/strings/str_cat.h"
#include "src/verify/judge_outcome.h"

namespace tessera {
namespace {

enum class Completeness { kComplete, kPending, kBelowMinimum };

Completeness Judge(const PlanReplay& replay, WorkloadId w) {
  const WorkloadInfo& info = replay.snapshot().info(w);
  bool to_come = false, failed = false;
  for (int i = 0; i < info.num_pods; ++i) {
    const PodId p(info.first_pod + i);
    const PodPhase phase = replay.phase(p);
    failed |= phase == PodPhase::kFailed;
    to_come |= phase == PodPhase::kPending || phase == PodPhase::kReleasing;
  }
  if (!to_come && !failed) return Completeness::kComplete;
  if (!StandingOf(replay, w).front().holds) return Completeness::kBelowMinimum;
  return to_come ? Completeness::kPending : Completeness::kComplete;
}

}  // namespace

void JudgePending(const PlanReplay& replay, const std::vector<PendingWorkload>& pending,
                  ViolationList& violations) {
  const Snapshot& snapshot = replay.snapshot();
  const auto report = [&violations](const std::string& workload, std::string_view text) {
    violations.Add(-1, absl::StrCat("pending workload ", workload, ": ", std::string(text)));
  };
  std::vector<const PendingWorkload*> listed(static_cast<size_t>(snapshot.num_workloads()));
  for (size_t i = 0; i < pending.size() && !violations.full(); ++i) {
    const PendingWorkload& entry = pending[i];
    const std::optional<WorkloadId> w = snapshot.FindWorkload(entry.workload);
    if (!w) {
      report(entry.workload, "there is no such workload");
      continue;
    }
    const PendingWorkload*& slot = listed[static_cast<size_t>(w->value())];
    if (slot != nullptr) {
      report(entry.workload, "is listed twice");
    } else if (i > 0 && entry.workload < pending[i - 1].workload) {
      report(entry.workload, "is not listed in order of name");
    }
    slot = &entry;
  }
  for (int i = 0; i < snapshot.num_workloads() && !violations.full(); ++i) {
    const WorkloadId w(i);
    const std::string& name = snapshot.workload(w).name;
    const PendingWorkload* entry = listed[static_cast<size_t>(i)];
    const Completeness completeness = Judge(replay, w);
    if (completeness == Completeness::kComplete) {
      if (entry != nullptr) report(name, "is complete");
      continue;
    }
    if (entry == nullptr) {
      report(name, "is not listed");
      continue;
    }
    const bool below = completeness == Completeness::kBelowMinimum;
    if (entry->below_minimum != below) {
      report(name, below ? "is below its minimum" : "is not below its minimum");
    }
    if (entry->text.empty()) report(name, "has no text");
    if (entry->counts.empty()) report(name, "has no counts");
  }
}

}  // namespace tessera
