// Who has to yield, or would have to for a workload that waits.

#include <algorithm>
#include <cstdio>
#include <set>
#include <variant>

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

// The certificate as far as it is about workload `name`, if it is.
void PrintPartOf(const Certificate& certificate, const std::string& name) {
  Certificate own = certificate;
  std::erase_if(own.victims,
                [&name](const VictimReport& victim) { return victim.pod.workload != name; });
  if (own.victims.empty()) return;
  // The heading counts all that yield.
  const std::string all = ToText(certificate), part = ToText(own);
  PrintIndented(all.substr(0, all.find('\n')) + part.substr(part.find('\n')));
}

// Pods of workload `name` that the plan evicts or moves.
std::set<PodRef> LeavingOf(const Plan& plan, const std::string& name) {
  std::set<PodRef> pods;
  for (const Action& action : plan.actions) {
    if (const auto* evict = std::get_if<EvictAction>(&action)) pods.insert(evict->pod);
    if (const auto* move = std::get_if<MoveAction>(&action)) pods.insert(move->pod);
  }
  std::erase_if(pods, [&name](const PodRef& pod) { return pod.workload != name; });
  return pods;
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

void ExplainYielding(const CycleResult& cycle, const std::string& name) {
  const std::set<PodRef> leaving = LeavingOf(cycle.plan, name);
  if (leaving.empty()) return;
  std::puts("\nWhy it yields");
  for (Certificate certificate : cycle.certificates) {
    // What the cycle took back later did not have to leave.
    std::erase_if(certificate.victims, [&](const VictimReport& victim) {
      return victim.pod.workload == name && !leaving.contains(victim.pod);
    });
    PrintPartOf(certificate, name);
  }
  for (const Action& action : cycle.plan.actions) {
    const auto* evict = std::get_if<EvictAction>(&action);
    if (evict == nullptr || evict->pod.workload != name || !evict->on_behalf_of.empty()) continue;
    std::printf(
        "  %s/%d is evicted for nobody's sake: its gang has been below its minimum for too "
        "long\n",
        evict->pod.pod_set.c_str(), evict->pod.index);
  }
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
    const auto certificate = RoomFor(*after, cycle, pending.workload, preset);
    if (!certificate.ok()) return Reject("the plan", certificate.status());
    if (own) {
      std::puts("\nWhat would have to yield for it");
      PrintIndented(ToText(*certificate));
      continue;
    }
    const auto is_own = [&name](const VictimReport& v) { return v.pod.workload == name; };
    if (std::ranges::none_of(certificate->victims, is_own)) continue;
    if (!has_heading) std::puts("\nFor whom it would have to yield");
    has_heading = true;
    PrintPartOf(*certificate, name);
  }
  return kPlanned;
}

}  // namespace tessera::cli
