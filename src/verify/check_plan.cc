#include "tessera/verify/check_plan.h"

#include "src/verify/judge_outcome.h"
#include "src/verify/plan_replay.h"

namespace tessera {

std::vector<PlanViolation> CheckPlan(const Snapshot& snapshot, const Plan& plan,
                                     const CheckPlanOptions& options) {
  ViolationList violations(options.max_violations);
  PlanReplay replay(snapshot, options, violations);
  replay.Run(plan.actions);
  JudgeGangs(replay, violations);
  JudgeTopology(replay, violations);
  JudgeQueues(replay, violations);
  JudgePending(replay, plan.pending, violations);
  return std::move(violations).Take();
}

}  // namespace tessera
