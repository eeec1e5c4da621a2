#ifndef TESSERA_SCHEDULE_ROOM_STEP_H_
#define TESSERA_SCHEDULE_ROOM_STEP_H_

// One step of a cycle by itself: others yield for each workload that waits, in order.
//
//   const RoomStepResult result = RunRoomStep(snapshot, RoomStep::kReclaim, KaiCompatible(),
//                                             KaiRoomRules(), KaiVictimOrder());

#include <vector>

#include "tessera/preemption/make_room.h"
#include "tessera/schedule/schedule.h"

namespace tessera {

struct RoomStepResult {
  Plan plan;                              // without `pending`
  std::vector<Certificate> certificates;  // of every workload that was tried, in order
  FairShares shares;
};

// The step with its policy as functions; hosts call the template below.
RoomStepResult RunRoomStep(const Snapshot& snapshot, RoomStep step, const CycleRules& cycle,
                           const RoomRules& rules, VictimCost cost, DivideFunction divide,
                           MakeQueueServer serve, JobComparison before);

// kConsolidate, kReclaim, kPreempt, or, for any other step, `PlanMakeRoom`. Queues and their
// jobs are served as in `Schedule`; each workload has one turn and gets its minimum or one more
// unit; what it gets is nominated. `rules.honour_nominations` and the MIG charge must agree with
// `policy.rules.usage`.
template <typename Policy, VictimOrder Order = VictimWeights>
RoomStepResult RunRoomStep(const Snapshot& snapshot, RoomStep step, const Policy& policy,
                           const RoomRules& rules = {}, const Order& order = Order()) {
  const auto cost = [&order](const Victim& victim) { return order.Cost(victim); };
  return WithFunctionsOf(
      policy, [&](DivideFunction divide, MakeQueueServer serve, JobComparison before) {
        return RunRoomStep(snapshot, step, policy.rules, rules, cost, divide, serve, before);
      });
}

// With `KaiCompatible()`: the rules, and the order in which KAI-Scheduler picks victims as far
// as costs can say it: the queue furthest above its share, then the lowest priority, then the
// youngest.
inline RoomRules KaiRoomRules() {
  RoomRules rules;
  rules.victims = KaiVictimRules();
  rules.honour_nominations = false;
  rules.costs.share = 1000000;
  return rules;
}

inline VictimWeights KaiVictimOrder() {
  VictimWeights weights;
  weights.gpu_hour = weights.core_hour = 0;
  return weights;
}

}  // namespace tessera

#endif  // TESSERA_SCHEDULE_ROOM_STEP_H_
