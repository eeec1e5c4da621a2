// What must hold of a step in which others yield for all that waits, on any cluster.

#include "tessera/schedule/room_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/io/plan_json.h"
#include "tessera/io/snapshot_json.h"
#include "tessera/verify/check_plan.h"
#include "tessera/verify/check_victims.h"
#include "tests/support/random_cluster.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

// A cluster that has been filled, disturbed, and given more work of any priority.
SnapshotSpec Crowded(RandomCluster& random) {
  const Snapshot empty = CreateOrDie(random.Draw());
  SnapshotSpec spec = ApplyAndSettle(empty, Schedule(empty).plan)->spec();
  if (random.Chance(50)) random.Disturb(spec);
  for (Workload& workload : spec.workloads) {
    if (random.Chance(10)) workload.max_disrupted = random.Below(3);
    for (Pod& pod : workload.pods) {
      if (pod.phase == PodPhase::kRunning) pod.started = spec.now - random.Below(500);
      if (pod.phase == PodPhase::kRunning && random.Chance(5)) pod.phase = PodPhase::kNominated;
    }
  }
  for (Queue& queue : spec.queues) {
    if (random.Chance(20)) queue.reclaim_min_runtime = random.Below(500);
    if (random.Chance(20)) queue.preempt_min_runtime = random.Below(500);
  }
  for (int i = 1 + random.Below(6); i > 0; --i) {
    spec.workloads.push_back(random.DrawWorkload(absl::StrCat("x", i), spec));
  }
  return spec;
}

template <typename Policy>
int Examine(int seed, const Policy& policy, const RoomRules& rules, RoomStep step) {
  RandomCluster random(static_cast<uint32_t>(seed));
  const SnapshotSpec spec = Crowded(random);
  const Snapshot snapshot = CreateOrDie(spec);
  const RoomStepResult result = RunRoomStep(snapshot, step, policy, rules);
  std::string objections;
  for (const PlanViolation& v : CheckPlan(snapshot, result.plan,
                                          {.mig_charge = rules.victims.mig_charge,
                                          .honour_nominations = rules.honour_nominations})) {
    if (!v.text.starts_with("pending workload ")) absl::StrAppend(&objections, v.text, "\n");
  }
  for (const PlanViolation& v : CheckVictims(snapshot, result.plan, result.shares, rules.victims,
                                             {.honour_nominations = rules.honour_nominations})) {
    absl::StrAppend(&objections, v.text, "\n");
  }
  EXPECT_EQ(objections, "") << "seed " << seed << " " << ToString(step) << "\n"
                            << WriteSnapshot(snapshot) << WritePlan(result.plan);
  // A nomination that is ignored stands in the way of what is placed.
  if (rules.honour_nominations) {
    EXPECT_THAT(ApplyAndSettle(snapshot, result.plan), IsOk()) << "seed " << seed;
  }
  const Snapshot shuffled = CreateOrDie(random.Shuffled(spec));
  EXPECT_EQ(WritePlan(RunRoomStep(shuffled, step, policy, rules).plan), WritePlan(result.plan))
      << "seed " << seed;
  int yielding = 0;
  for (const Certificate& c : result.certificates) yielding += c.victims.empty() ? 0 : 1;
  return yielding;
}

TEST(RoomStepProperties, TheRefereesAcceptWhatEveryStepPlans) {
  const int cases = RandomCases(150, 5000);
  int yielding = 0;
  for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
    for (RoomStep step :
         {RoomStep::kConsolidate, RoomStep::kReclaim, RoomStep::kPreempt, RoomStep::kEvict}) {
      yielding += Examine(seed, Strict(), {.exact_budget = 1000}, step);
      RoomRules kai = KaiRoomRules();
      kai.exact_budget = 1000;
      yielding += Examine(seed, KaiCompatible(), kai, step);
    }
  }
  EXPECT_GT(yielding, cases / 10);
}

}  // namespace
}  // namespace tessera
