#ifndef TESSERA_SRC_VERIFY_JUDGE_OUTCOME_H_
#define TESSERA_SRC_VERIFY_JUDGE_OUTCOME_H_

// What a plan as a whole must not break: each looks at the pods as the replay
// left them.

#include <vector>

#include "src/verify/plan_replay.h"

namespace tessera {

// How a gang stands after the plan, by node of its tree.
struct GangStanding {
  int up = 0;                  // running, bound and nominated pods below
  int started = 0;             // those that do not merely have a nomination
  int succeeded = 0;           // pods
  int lost = 0;                // pods that the plan evicts
  bool gained = false;         // a pod below was bound or nominated
  bool gained_bound = false;   // a pod below was bound
  bool holds = false;          // its minimum, counting all that are up
  bool holds_started = false;  // its minimum, counting those that started
};
std::vector<GangStanding> StandingOf(const PlanReplay& replay, WorkloadId w);

// Minimums and `after`.
void JudgeGangs(const PlanReplay& replay, ViolationList& violations);

// Required topology levels.
void JudgeTopology(const PlanReplay& replay, ViolationList& violations);

// Limits, and quotas of work that is not preemptible.
void JudgeQueues(const PlanReplay& replay, ViolationList& violations);

// The list of workloads that are not complete.
void JudgePending(const PlanReplay& replay, const std::vector<PendingWorkload>& pending,
                  ViolationList& violations);

}  // namespace tessera

#endif  // TESSERA_SRC_VERIFY_JUDGE_OUTCOME_H_
