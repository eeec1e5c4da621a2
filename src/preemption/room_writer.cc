#include "src/preemption/room_writer.h"

#include <algorithm>

#include "src/preemption/room_moves.h"
#include "src/preemption/room_planner.h"
#include "tessera/state/plan_writer.h"

namespace tessera {

int64_t MigOperations(const ClusterState& state, ClusterState::Mark mark) {
  int64_t operations = 0;
  for (const MigChange& change : state.MigChangesSince(mark)) {
    for (size_t s = 0; s < change.before.size(); ++s) {
      if (change.before[s] == change.after[s]) continue;
      operations += (change.before[s] >= 0 ? 1 : 0) + (change.after[s] >= 0 ? 1 : 0);
    }
  }
  return operations;
}

RoomPlan WriteFree(const ClusterState& state, ClusterState::Mark mark, std::span<const PodId> pods,
                   bool binds) {
  RoomPlan plan;
  plan.outcome = RoomOutcome::kRoom;
  plan.binds = binds;
  for (PodId p : pods) plan.placed.push_back({p, state.placement(p)});
  if (binds) {
    WriteBinds(state, mark, pods, plan.actions);
  } else {
    WriteNominations(state, pods, plan.actions);
  }
  plan.certificate.mig_operations = MigOperations(state, mark);
  if (plan.certificate.mig_operations > 0) plan.certificate.step = RoomStep::kRepartition;
  return plan;
}

// Carries the draft out on the state as it is without the search, to see that it can be.
RoomPlan RoomPlanner::Write(RoomStep step, YieldBook& book, const Draft& draft) {
  const RoomSolution& solution = draft.solution;
  RoomPlan plan;
  plan.certificate.claimant = snapshot_.workload(w_).name;
  plan.certificate.step = step;
  for (PodId p : solution.leaving) {
    const bool moves =
        std::ranges::find(solution.moved, p, &PodTarget::pod) != solution.moved.end();
    if (!moves) plan.evicted.push_back(p);
  }
  const ClusterState::Mark mark = state_.GetMark();
  for (PodId p : plan.evicted) state_.Remove(p);
  int64_t budget = rules_.exact_budget;
  const auto ordered = InOrder(state_, solution.moved, &budget);
  if (!ordered) {
    state_.RollBack(mark);
    return Refuse(step, false, PendingReason::kBudgetExhausted,
                  "moves were found that would wait for each other in a circle");
  }
  plan.outcome = RoomOutcome::kRoom;
  plan.moved = *ordered;
  for (PodId p : plan.evicted) {
    const bool reclaimed = book.rule(p) == YieldRule::kReclaimed;
    plan.actions.push_back(EvictAction{snapshot_.pod_ref(p), reclaimed ? "reclaim" : "preempt",
                                       snapshot_.workload(w_).name});
  }
  const ClusterState::Mark placing = state_.GetMark();
  for (const PodTarget& move : plan.moved) {
    state_.Remove(move.pod);
    state_.Place(move.pod, move.placement);
    plan.actions.push_back(MoveAction{snapshot_.pod_ref(move.pod),
                                      snapshot_.node(move.placement.node).name,
                                      DevicesOf(snapshot_, move.placement)});
  }
  std::vector<PodId> pods;
  for (const PodTarget& target : solution.placed) {
    state_.Place(target.pod, target.placement);
    pods.push_back(target.pod);
  }
  plan.placed = solution.placed;
  WriteNominations(state_, pods, plan.actions);
  plan.certificate.mig_operations = MigOperations(state_, placing);
  plan.certificate.cost =
      solution.cost.points + plan.certificate.mig_operations * rules_.costs.mig_operation;
  state_.RollBack(mark);
  WriteVictims(book, draft, plan.certificate);
  return plan;
}

void RoomPlanner::WriteVictims(const YieldBook& book, const Draft& draft,
                               Certificate& certificate) const {
  const Entitlements& entitlements = book.entitlements();
  // What each queue keeps, by the queue where the paths part.
  std::vector<std::pair<QueueId, ResourceVector>> taken;
  const auto taken_of = [&taken](QueueId q) -> ResourceVector& {
    for (auto& [queue, amount] : taken) {
      if (queue == q) return amount;
    }
    return taken.emplace_back(q, ResourceVector()).second;
  };
  const auto is_moved = [&draft](PodId p) {
    const auto& moved = draft.solution.moved;
    return std::ranges::find(moved, p, &PodTarget::pod) != moved.end();
  };
  const auto queue_of = [this](PodId p) {
    return snapshot_.info(snapshot_.pod_set(snapshot_.pod_set_of(p)).workload).queue;
  };
  for (const Need& need : draft.needs) {
    if (book.rule(need.pod) != YieldRule::kReclaimed || is_moved(need.pod)) continue;
    const RequestClassId c = snapshot_.pod_set(snapshot_.pod_set_of(need.pod)).request_class;
    taken_of(entitlements.Branch(queue_of(need.pod))) +=
        ChargeOf(snapshot_, c, book.home(need.pod), rules_.victims.mig_charge);
  }
  for (const Need& need : draft.needs) {
    VictimReport report;
    const PodId p = need.pod;
    report.pod = snapshot_.pod_ref(p);
    report.rule = is_moved(p) ? YieldRule::kMoved : book.rule(p);
    report.need = need.need;
    report.node = snapshot_.node(book.home(p).node).name;
    report.priority =
        snapshot_.workload(snapshot_.pod_set(snapshot_.pod_set_of(p)).workload).priority;
    report.cost = is_moved(p) ? book.moved_cost(p) : book.pod_cost(p).points;
    if (report.rule == YieldRule::kReclaimed) {
      const Excess excess = entitlements.ExcessOf(queue_of(p));
      report.queue = snapshot_.queues().queue(excess.queue).name;
      report.resource = snapshot_.resources().name(excess.resource);
      report.held = entitlements.held(excess.queue, excess.resource);
      report.entitled = entitlements.entitled(excess.queue, excess.resource);
      report.left = report.held - taken_of(excess.queue)[excess.resource];
    }
    certificate.victims.push_back(std::move(report));
  }
  std::ranges::sort(certificate.victims, {}, &VictimReport::pod);
}

}  // namespace tessera
