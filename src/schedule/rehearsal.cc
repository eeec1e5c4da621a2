// A cycle is planned, the next one is rehearsed, and what that would undo is planned anew.

#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/schedule/cycle_draft.h"
#include "src/schedule/cycle_rooms.h"
#include "tessera/cluster/plan.h"
#include "tessera/schedule/schedule.h"

namespace tessera {
namespace {

enum class Change : char { kNone, kStarted, kMoved };

// By pod: what `plan` does with it.
std::vector<Change> ChangesBy(const Snapshot& snapshot, const Plan& plan) {
  std::vector<Change> changes(static_cast<size_t>(snapshot.num_pods()), Change::kNone);
  const auto note = [&](const PodRef& pod, Change change) {
    changes[static_cast<size_t>(snapshot.FindPod(pod)->value())] = change;
  };
  for (const Action& action : plan.actions) {
    if (const PodRef* pod = StartedBy(action)) note(*pod, Change::kStarted);
    if (const auto* move = std::get_if<MoveAction>(&action)) note(move->pod, Change::kMoved);
  }
  return changes;
}

// Learns what of a draft the cycle after it would undo, if what it starts could be made to
// yield like work that has run for long; false: nothing that is not known. `in_vain`: the lessons
// of the last time have changed nothing.
bool Rehearse(const Snapshot& snapshot, const CycleDraft& draft, const CycleRules& rules,
              const CycleFunctions& functions, bool in_vain, Lessons& lessons) {
  const Plan& plan = draft.result.plan;
  const absl::StatusOr<Snapshot> next = ApplyAndSettleUndated(snapshot, plan);
  if (!next.ok()) return false;
  Lessons same(*next);
  same.asked = draft.suspects;
  for (size_t w = 0; w < same.turns.size(); ++w) {
    // The next cycle would find out the same.
    if (lessons.turns[w] == Lessons::kNoClaim) same.turns[w] = Lessons::kNoClaim;
  }
  const CycleDraft then = DraftCycle(*next, rules, functions, same);
  const std::vector<Change> changes = ChangesBy(snapshot, plan);
  const Lessons known = lessons;
  const auto note = [&](const PodRef& ref) {
    const PodId p = *snapshot.FindPod(ref);
    const size_t at = static_cast<size_t>(p.value());
    if (changes[at] == Change::kMoved) lessons.unmoved[at] = 1;
    if (changes[at] != Change::kStarted) return;
    const size_t w = static_cast<size_t>(snapshot.pod_set(snapshot.pod_set_of(p)).workload.value());
    const int next_turn = std::min(known.turns[w] + 1, Lessons::kNoClaim);
    const bool waited = in_vain && known.turns[w] > 0;
    lessons.turns[w] = static_cast<char>(waited ? Lessons::kNoClaim : next_turn);
  };
  for (const Action& action : then.result.plan.actions) {
    if (const auto* evict = std::get_if<EvictAction>(&action)) note(evict->pod);
    if (const auto* move = std::get_if<MoveAction>(&action)) note(move->pod);
  }
  return lessons.turns != known.turns || lessons.unmoved != known.unmoved;
}

// Plans, and rehearses what comes of it, until nothing is undone or nothing more is learnt.
CycleDraft PlanAndRehearse(const Snapshot& snapshot, const CycleRules& rules,
                           const CycleFunctions& functions, Lessons& lessons) {
  std::vector<Action> last;
  for (int left = rules.rehearsals;; --left) {
    CycleDraft draft = DraftCycle(snapshot, rules, functions, lessons);
    const bool in_vain = draft.result.plan.actions == last;
    const bool done = left <= 0 || draft.suspects.empty();
    if (done || !Rehearse(snapshot, draft, rules, functions, in_vain, lessons)) return draft;
    last = std::move(draft.result.plan.actions);
  }
}

// The workloads of which `plan` starts something.
std::set<std::string> WhoStarts(const Plan& plan) {
  std::set<std::string> starts;
  for (const Action& action : plan.actions) {
    if (const PodRef* pod = StartedBy(action)) starts.insert(pod->workload);
  }
  return starts;
}

// What the next cycle starts, as soon as it may make yield what the draft starts.
std::set<std::string> WhoStartsNext(const Snapshot& snapshot, const Plan& plan,
                                    const CycleRules& rules, const CycleFunctions& functions) {
  const absl::StatusOr<Snapshot> settled = ApplyAndSettle(snapshot, plan);
  if (!settled.ok()) return {};
  SnapshotSpec spec = settled->spec();
  spec.now += rules.room.victims.min_pod_runtime;
  const absl::StatusOr<Snapshot> next = Snapshot::Create(std::move(spec));
  if (!next.ok()) return {};
  return WhoStarts(DraftCycle(*next, rules, functions, Lessons(*next)).result.plan);
}

// Forbids the claims for which somebody yields who is back in the next cycle; false: none that was
// not forbidden.
bool ForbidClaimsInVain(const Snapshot& snapshot, const CycleDraft& draft, const CycleRules& rules,
                        const CycleFunctions& functions, Lessons& lessons) {
  const Plan& plan = draft.result.plan;
  const bool any_yields = !draft.result.certificates.empty();
  if (!any_yields || (draft.suspects.empty() && !draft.losers_may_return)) return false;
  const std::set<std::string> starts = WhoStartsNext(snapshot, plan, rules, functions);
  bool any = false;
  for (const Action& action : plan.actions) {
    const auto* evict = std::get_if<EvictAction>(&action);
    if (evict == nullptr || evict->on_behalf_of.empty()) continue;
    if (!starts.contains(evict->pod.workload)) continue;
    any |= lessons.ForbidClaims(*snapshot.FindWorkload(evict->on_behalf_of));
  }
  return any;
}

// A cycle, and the cycles at the same time after it by which it is judged.
class CycleSeries {
 public:
  CycleSeries(const CycleRules& rules, const CycleFunctions& functions)
      : rules_(rules), functions_(functions) {}

  CycleResult Run(const Snapshot& snapshot) const {
    CycleDraft draft = PlanCycle(snapshot, 0);
    draft.result.plan.pending = draft.report_pending();
    return std::move(draft.result);
  }

 private:
  static constexpr int kMostForbidden = 5, kDeepest = 2;

  // `depth`: cycles before it.
  CycleDraft PlanCycle(const Snapshot& snapshot, int depth) const {
    Lessons lessons(snapshot);
    CycleDraft draft = PlanAndRehearse(snapshot, rules_, functions_, lessons);
    if (lessons.forbids_claims() && !IsFixedPoint(snapshot, draft.result.plan, depth)) {
      // Without claims that are forbidden it is one.
      lessons.AllowClaims();
      draft = DraftCycle(snapshot, rules_, functions_, lessons);
    }
    Lessons in_vain(snapshot);
    for (int left = rules_.rehearsals > 0 ? kMostForbidden : 0; left > 0; --left) {
      if (!ForbidClaimsInVain(snapshot, draft, rules_, functions_, in_vain)) break;
      lessons = in_vain;
      CycleDraft other = PlanAndRehearse(snapshot, rules_, functions_, lessons);
      if (!IsFixedPoint(snapshot, other.result.plan, depth)) break;
      draft = std::move(other);
    }
    return draft;
  }

  // Whether the next cycle at the same time certainly plans nothing.
  bool IsFixedPoint(const Snapshot& snapshot, const Plan& plan, int depth) const {
    if (plan.actions.empty()) return true;
    if (depth == kDeepest) return false;
    const absl::StatusOr<Snapshot> next = ApplyAndSettle(snapshot, plan);
    return next.ok() && PlanCycle(*next, depth + 1).result.plan.actions.empty();
  }

  const CycleRules& rules_;
  const CycleFunctions& functions_;
};

}  // namespace

CycleResult RunCycle(const Snapshot& snapshot, const CycleRules& rules,
                     const CycleFunctions& functions) {
  return CycleSeries(rules, functions).Run(snapshot);
}

}  // namespace tessera
