// Who would have to yield for a workload that waits.

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "examples/tessera/commands.h"
#include "tessera/preemption/make_room.h"
#include "tessera/schedule/schedule.h"
#include "tessera/verify/check_victims.h"

namespace tessera::cli {
namespace {

// Workloads for which room is looked for, at most.
constexpr size_t kMaxClaimants = 40;

RoomRules RulesOf(const std::string& preset) {
  return RoomRulesOf(preset == "kai" ? KaiCompatible().rules : Strict().rules);
}

void PrintIndented(const std::string& text) {
  for (const auto line : absl::StrSplit(text, '\n')) {
    std::printf("  %s\n", std::string(line).c_str());
  }
}

// Room for `w` once `cycle` has been carried out; a plan that the referee refuses is told as
// such, not shown.
absl::StatusOr<Certificate> RoomFor(const Snapshot& after, const CycleResult& cycle,
                                    const std::string& name, const std::string& preset) {
  const RoomRules rules = RulesOf(preset);
  const RoomPlan plan = PlanMakeRoom(after, cycle.shares, *after.FindWorkload(name), rules);
  const std::vector<PlanViolation> violations =
      CheckVictims(after, {plan.actions, {}}, cycle.shares, rules.victims,
                   {.honour_nominations = rules.honour_nominations});
  if (violations.empty()) return plan.certificate;
  return absl::InternalError(
      absl::StrCat("the referee refuses the victims for ", name, ": ", violations.front().text));
}

}  // namespace

int PrintRoom(const Snapshot& snapshot, const CycleResult& cycle, const std::string& preset) {
  const absl::StatusOr<Snapshot> after = Apply(snapshot, cycle.plan);
  if (!after.ok()) return Reject("the plan", after.status());
  std::puts("\nRoom for what waits, each by itself");
  size_t printed = 0;
  for (const PendingWorkload& pending : cycle.plan.pending) {
    if (printed++ == kMaxClaimants) {
      std::printf("  and %zu more\n", cycle.plan.pending.size() - kMaxClaimants);
      break;
    }
    const auto certificate = RoomFor(*after, cycle, pending.workload, preset);
    if (!certificate.ok()) return Reject("the plan", certificate.status());
    PrintIndented(ToText(*certificate));
  }
  return kPlanned;
}

int ExplainRoom(const Snapshot& snapshot, const CycleResult& cycle, const std::string& name,
                const std::string& preset) {
  const absl::StatusOr<Snapshot> after = Apply(snapshot, cycle.plan);
  if (!after.ok()) return Reject("the plan", after.status());
  bool has_heading = false;
  size_t tried = 0;
  for (const PendingWorkload& pending : cycle.plan.pending) {
    const bool own = pending.workload == name;
    if (!own && tried++ >= kMaxClaimants) continue;
    auto certificate = RoomFor(*after, cycle, pending.workload, preset);
    if (!certificate.ok()) return Reject("the plan", certificate.status());
    if (own) {
      std::puts("\nWhat would have to yield for it");
      PrintIndented(ToText(*certificate));
      continue;
    }
    std::erase_if(certificate->victims,
                  [&name](const VictimReport& victim) { return victim.pod.workload != name; });
    if (certificate->victims.empty()) continue;
    if (!has_heading) std::puts("\nFor whom it would have to yield");
    has_heading = true;
    PrintIndented(ToText(*certificate));
  }
  return kPlanned;
}

}  // namespace tessera::cli
