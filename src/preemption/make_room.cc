#include "tessera/preemption/make_room.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/preemption/room_planner.h"
#include "tessera/base/status.h"
#include "tessera/preemption/room_memory.h"
#include "tessera/share/book_pod.h"
#include "tessera/share/usage.h"

namespace tessera {
namespace {

using PlanOnDesk = RoomPlan (*)(const RoomDesk&, WorkloadId, const RoomRules&, VictimCost);

// The desk of a snapshot of which nothing has been planned yet.
RoomPlan PlanOn(const Snapshot& snapshot, const FairShares& shares, WorkloadId w,
                const RoomRules& rules, PlanOnDesk plan) {
  const auto tables = std::make_shared<const StateTables>(snapshot);
  const bool nominated = rules.honour_nominations;
  ClusterState now(tables, {.nominated = nominated, .releasing = true});
  ClusterState later(tables, {.nominated = nominated, .releasing = false});
  const std::vector<QueueUsage> usage = MeasureUsage(
      snapshot, {rules.victims.mig_charge, rules.honour_nominations, /*count_unschedulable=*/true});
  QuotaLedger ledger(snapshot.queues(), usage, shares.capacity);
  const VictimWeights weights;
  const auto cost = [&weights](const Victim& victim) { return weights.Cost(victim); };
  return plan({&now, &later, &ledger, &shares}, w, rules, cost);
}

// The cheaper of two plans, or the only one; ties: the first.
RoomPlan CheaperOf(RoomPlan a, RoomPlan b) {
  if (!a.found() || !b.found()) return a.found() ? a : b;
  return b.certificate.cost < a.certificate.cost ? b : a;
}

// None of the steps makes room: proven if that is proven of all. `refusals` in their order.
RoomPlan RefuseAll(const std::vector<RoomPlan>& refusals) {
  RoomPlan plan = refusals.front();
  plan.certificate.step = RoomStep::kEvict;
  plan.certificate.refusal.clear();
  for (const RoomPlan& refused : refusals) {
    const Certificate& why = refused.certificate;
    if (!why.proven) {
      plan.outcome = RoomOutcome::kBudgetExhausted;
      plan.certificate.proven = false;
      plan.certificate.reason = PendingReason::kBudgetExhausted;
    }
    // The same reason counts once: a quota refuses whoever yields.
    if (plan.certificate.refusal.find(why.refusal) != std::string::npos) continue;
    absl::StrAppend(&plan.certificate.refusal, plan.certificate.refusal.empty() ? "" : "; ",
                    ToAbsl(ToString(why.step)), ": ", why.refusal);
  }
  return plan;
}

// The cheapest of the steps in which others yield; `refusals`: of the steps before.
RoomPlan YieldWith(RoomPlanner planner, std::vector<RoomPlan> refusals) {
  RoomPlan best;
  const auto consider = [&](RoomPlan plan) {
    if (!plan.found()) refusals.push_back(plan);
    best = CheaperOf(std::move(best), std::move(plan));
  };
  const YieldRights possible = planner.Possible();
  const auto consider_right = [&](RoomStep step, bool any, YieldRights rights) {
    consider(any ? planner.Yield(step, rights) : planner.RefuseNobody(step));
  };
  consider(planner.Yield(RoomStep::kConsolidate, {.move = true}));
  consider_right(RoomStep::kReclaim, possible.reclaim, {.reclaim = true});
  consider_right(RoomStep::kPreempt, possible.preempt, {.preempt = true});
  // By all together where none alone suffices; moves alone have been tried.
  const bool any = possible.reclaim || possible.preempt;
  if (!best.found() && any) consider(planner.Yield(RoomStep::kEvict, possible));
  return best.found() ? best : RefuseAll(refusals);
}

}  // namespace

bool HasStoodLong(const ClusterState& later, PodId p, const VictimRules& rules) {
  const Snapshot& snapshot = later.snapshot();
  const PodPhase phase = snapshot.pod_phase(p);
  const bool up = phase == PodPhase::kRunning || phase == PodPhase::kNominated;
  if (!up || later.placement(p) != snapshot.pod_placement(p)) return false;
  const int64_t start = snapshot.pod_started(p);
  return start == INT64_MAX || snapshot.now() - start >= rules.min_pod_runtime;
}

RoomPlan PlanReclaim(const RoomDesk& desk, WorkloadId w, const RoomRules& rules, VictimCost cost) {
  RoomPlanner planner(desk, w, rules, cost);
  RoomPlan plan = planner.Yield(RoomStep::kReclaim, {.reclaim = true});
  // Only who may reclaim may have others moved instead.
  const bool gated = !plan.found() && plan.certificate.reason == PendingReason::kQuota;
  if (!rules.victims.replace_victims || gated) return plan;
  RoomPlan moves = planner.Yield(RoomStep::kConsolidate, {.move = true});
  if (moves.found()) return CheaperOf(std::move(plan), std::move(moves));
  if (plan.found()) return plan;
  moves = planner.Yield(RoomStep::kReclaim, {.reclaim = true, .move = true});
  return moves.found() ? moves : plan;
}

RoomPlan PlanPreemption(const RoomDesk& desk, WorkloadId w, const RoomRules& rules,
                        VictimCost cost) {
  return RoomPlanner(desk, w, rules, cost).Yield(RoomStep::kPreempt, {.preempt = true});
}

RoomPlan PlanConsolidation(const RoomDesk& desk, WorkloadId w, const RoomRules& rules,
                           VictimCost cost) {
  return RoomPlanner(desk, w, rules, cost).Yield(RoomStep::kConsolidate, {.move = true});
}

RoomPlan PlanYielding(const RoomDesk& desk, WorkloadId w, const RoomRules& rules, VictimCost cost) {
  return YieldWith(RoomPlanner(desk, w, rules, cost), {});
}

bool MightMakeRoom(const RoomDesk& desk, WorkloadId w, const RoomRules& rules,
                   std::span<const int> among) {
  const auto no_cost = [](const Victim&) { return int64_t{0}; };
  return RoomPlanner(desk, w, rules, no_cost).MightMakeRoom(among);
}

RoomPlan PlanMakeRoom(const RoomDesk& desk, WorkloadId w, const RoomRules& rules, VictimCost cost) {
  RoomPlanner planner(desk, w, rules, cost);
  RoomPlan free = planner.Free();
  if (free.found()) return free;
  return YieldWith(std::move(planner), {std::move(free)});
}

RoomPlan PlanReclaim(const Snapshot& snapshot, const FairShares& shares, WorkloadId w,
                     const RoomRules& rules) {
  return PlanOn(snapshot, shares, w, rules, PlanReclaim);
}

RoomPlan PlanPreemption(const Snapshot& snapshot, const FairShares& shares, WorkloadId w,
                        const RoomRules& rules) {
  return PlanOn(snapshot, shares, w, rules, PlanPreemption);
}

RoomPlan PlanConsolidation(const Snapshot& snapshot, const FairShares& shares, WorkloadId w,
                           const RoomRules& rules) {
  return PlanOn(snapshot, shares, w, rules, PlanConsolidation);
}

RoomPlan PlanMakeRoom(const Snapshot& snapshot, const FairShares& shares, WorkloadId w,
                      const RoomRules& rules) {
  return PlanOn(snapshot, shares, w, rules, PlanMakeRoom);
}

void CarryOut(const RoomPlan& plan, const RoomRules& rules, const RoomDesk& desk) {
  const auto book = [&](PodId p, const PodPlacement& placement, int count) {
    BookPod(desk.later->snapshot(), rules.victims.mig_charge, *desk.ledger, p, placement, count);
    if (desk.memory != nullptr) desk.memory->Note(p, placement.node);
  };
  for (PodId p : plan.evicted) {
    book(p, desk.later->placement(p), -1);
    desk.later->Remove(p);
  }
  for (const PodTarget& move : plan.moved) {
    book(move.pod, desk.later->placement(move.pod), -1);
    desk.later->Remove(move.pod);
    desk.later->Place(move.pod, move.placement);
    book(move.pod, move.placement, 1);
  }
  for (const PodTarget& target : plan.placed) {
    desk.later->Place(target.pod, target.placement);
    book(target.pod, target.placement, 1);
    if (desk.now == nullptr) continue;
    if (plan.binds) {
      desk.now->Place(target.pod, target.placement);
    } else {
      desk.now->Reserve(target.pod, target.placement);
    }
  }
}

}  // namespace tessera
