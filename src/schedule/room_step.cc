#include "tessera/schedule/room_step.h"

#include <iterator>
#include <utility>

#include "src/schedule/job_facts.h"
#include "src/schedule/job_queue.h"

namespace tessera {
namespace {

class StepRun {
 public:
  StepRun(const Snapshot& snapshot, RoomStep step, const CycleRules& cycle, const RoomRules& rules,
          VictimCost cost, DivideFunction divide, MakeQueueServer serve, JobComparison before)
      : snapshot_(snapshot),
        step_(step),
        rules_(rules),
        cost_(cost),
        usage_(MeasureUsage(snapshot, cycle.usage)),
        shares_(DivideFairShares(snapshot, cycle.usage, usage_, divide, cycle.division)),
        ledger_(snapshot.queues(), usage_, shares_.capacity),
        order_(
            serve(snapshot.queues(), shares_, ledger_, {&snapshot.resources(), shares_.capacity})),
        least_(snapshot, cycle.usage.mig_charge),
        later_(std::make_shared<const StateTables>(snapshot),
               {.nominated = cycle.usage.honour_nominations, .releasing = false}),
        jobs_(static_cast<size_t>(snapshot.queues().size()), JobQueue(ServedLater{before})),
        is_victim_(static_cast<size_t>(snapshot.num_workloads())) {}

  RoomStepResult Run() {
    for (int i = 0; i < snapshot_.num_workloads(); ++i) {
      const WorkloadId w(i);
      const Workload& workload = snapshot_.workload(w);
      if (!HasPlaceable(later_, w)) continue;
      jobs(snapshot_.info(w).queue)
          .push({workload.priority, StageOf(later_, w), workload.submitted, w});
    }
    for (int q = 0; q < snapshot_.queues().size(); ++q) Rank(QueueId(q));
    for (QueueId q = order_->Next(); q.valid(); q = order_->Next()) {
      const WorkloadId w = jobs(q).top().workload;
      jobs(q).pop();
      Try(w);
      for (int other = 0; other < snapshot_.queues().size(); ++other) {
        if (changed_ || QueueId(other) == q) Rank(QueueId(other));
      }
    }
    result_.shares = std::move(shares_);
    return std::move(result_);
  }

 private:
  JobQueue& jobs(QueueId q) { return jobs_[static_cast<size_t>(q.value())]; }

  void Rank(QueueId q) {
    if (!snapshot_.queues().is_leaf(q)) return;
    std::optional<ResourceVector> job;
    if (!jobs(q).empty()) job = least_.Of(later_, jobs(q).top().workload);
    order_->SetJob(q, job);
  }

  RoomPlan PlanFor(WorkloadId w, const RoomDesk& desk) const {
    switch (step_) {
      case RoomStep::kConsolidate:
        return PlanConsolidation(desk, w, rules_, cost_);
      case RoomStep::kReclaim:
        return PlanReclaim(desk, w, rules_, cost_);
      case RoomStep::kPreempt:
        return PlanPreemption(desk, w, rules_, cost_);
      case RoomStep::kFree:
      case RoomStep::kRepartition:
      case RoomStep::kEvict:
        break;
    }
    return PlanMakeRoom(desk, w, rules_, cost_);
  }

  void Try(WorkloadId w) {
    changed_ = false;
    // A victim of this step starts again in a later one.
    if (is_victim_[static_cast<size_t>(w.value())]) return;
    const RoomDesk desk{nullptr, &later_, &ledger_, &shares_};
    RoomPlan plan = PlanFor(w, desk);
    result_.certificates.push_back(plan.certificate);
    if (!plan.found()) return;
    for (PodId p : plan.evicted) {
      const WorkloadId victim = snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
      is_victim_[static_cast<size_t>(victim.value())] = true;
    }
    CarryOut(plan, rules_, desk);
    later_.Commit();
    ledger_.Commit();
    changed_ = true;
    std::move(plan.actions.begin(), plan.actions.end(), std::back_inserter(result_.plan.actions));
  }

  const Snapshot& snapshot_;
  const RoomStep step_;
  const RoomRules& rules_;
  const VictimCost cost_;
  const std::vector<QueueUsage> usage_;
  FairShares shares_;
  QuotaLedger ledger_;
  const std::unique_ptr<QueueServer> order_;
  const LeastCharges least_;
  ClusterState later_;
  std::vector<JobQueue> jobs_;   // by queue
  std::vector<bool> is_victim_;  // by workload: something of it was evicted
  bool changed_ = false;
  RoomStepResult result_;
};

}  // namespace

RoomStepResult RunRoomStep(const Snapshot& snapshot, RoomStep step, const CycleRules& cycle,
                           const RoomRules& rules, VictimCost cost, DivideFunction divide,
                           MakeQueueServer serve, JobComparison before) {
  return StepRun(snapshot, step, cycle, rules, cost, divide, serve, before).Run();
}

}  // namespace tessera
