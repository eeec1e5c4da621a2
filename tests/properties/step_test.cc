// What must hold of a step in which others yield for all that waits, on any cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/io/plan_json.h"
#include "tessera/io/snapshot_json.h"
#include "tessera/schedule/schedule.h"
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
int Examine(int seed, Policy policy, CycleStep step) {
  RandomCluster random(static_cast<uint32_t>(seed));
  const SnapshotSpec spec = Crowded(random);
  const Snapshot snapshot = CreateOrDie(spec);
  policy.rules.steps = {step};
  policy.rules.room.exact_budget = 1000;
  const CycleResult result = Schedule(snapshot, policy);
  const bool honours = policy.rules.usage.honour_nominations;
  std::string objections;
  for (const PlanViolation& v :
       CheckPlan(snapshot, result.plan,
                 {.mig_charge = policy.rules.usage.mig_charge, .honour_nominations = honours})) {
    absl::StrAppend(&objections, v.text, "\n");
  }
  for (const PlanViolation& v :
       CheckVictims(snapshot, result.plan, result.shares, policy.rules.room.victims,
                    {.honour_nominations = honours})) {
    absl::StrAppend(&objections, v.text, "\n");
  }
  EXPECT_EQ(objections, "") << "seed " << seed << " step " << static_cast<int>(step) << "\n"
                            << WriteSnapshot(snapshot) << WritePlan(result.plan);
  // A nomination that is ignored stands in the way of what is placed.
  if (honours) {
    EXPECT_THAT(ApplyAndSettle(snapshot, result.plan), IsOk()) << "seed " << seed;
  }
  const Snapshot shuffled = CreateOrDie(random.Shuffled(spec));
  EXPECT_EQ(WritePlan(Schedule(shuffled, policy).plan), WritePlan(result.plan)) << "seed " << seed;
  int yielding = 0;
  for (const Certificate& c : result.certificates) yielding += c.victims.empty() ? 0 : 1;
  return yielding;
}

TEST(StepProperties, TheRefereesAcceptWhatEveryStepPlans) {
  const int cases = RandomCases(150, 5000);
  int yielding = 0;
  for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
    for (CycleStep step : {CycleStep::kConsolidate, CycleStep::kReclaim, CycleStep::kPreempt,
                           CycleStep::kMakeRoom}) {
      yielding += Examine(seed, Strict(), step);
      yielding += Examine(seed, KaiCompatible(), step);
    }
  }
  EXPECT_GT(yielding, cases / 10);
}

}  // namespace
}  // namespace tessera
