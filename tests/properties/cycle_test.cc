// What must hold of a cycle on any cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/cluster/plan.h"
#include "tessera/io/plan_json.h"
#include "tessera/io/snapshot_json.h"
#include "tessera/schedule/schedule.h"
#include "tessera/verify/check_plan.h"
#include "tessera/verify/check_shares.h"
#include "tests/support/random_cluster.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

std::string Texts(const std::vector<PlanViolation>& violations) {
  std::string texts;
  for (const PlanViolation& v : violations) absl::StrAppend(&texts, v.action, ": ", v.text, "\n");
  return texts;
}

// A cluster with running, releasing and ended pods: planned, settled, disturbed,
// and given more work.
SnapshotSpec Lived(RandomCluster& random) {
  const Snapshot empty = CreateOrDie(random.Draw());
  const absl::StatusOr<Snapshot> settled = ApplyAndSettle(empty, Schedule(empty).plan);
  EXPECT_THAT(settled, IsOk());
  SnapshotSpec spec = settled->spec();
  random.Disturb(spec);
  const int more = random.Below(6);
  for (int i = 0; i < more; ++i) {
    spec.workloads.push_back(random.DrawWorkload(absl::StrCat("x", i), spec));
  }
  return spec;
}

TEST(CycleProperties, PlansPassTheRefereesWhateverTheOrderOfTheInput) {
  const int cases = RandomCases(1500, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const SnapshotSpec spec = random.Chance(30) ? random.Draw() : Lived(random);
    const Snapshot snapshot = CreateOrDie(spec);
    const CycleResult strict = Schedule(snapshot);
    const std::vector<PlanViolation> violations = CheckPlan(snapshot, strict.plan);
    ASSERT_TRUE(violations.empty())
        << "seed " << seed << "\n"
        << Texts(violations) << WriteSnapshot(snapshot) << WritePlan(strict.plan);
    ASSERT_THAT(CheckShares(snapshot.queues(), snapshot.resources(), strict.shares),
                testing::IsEmpty())
        << "seed " << seed << "\n"
        << WriteSnapshot(snapshot);
    const Snapshot shuffled = CreateOrDie(random.Shuffled(spec));
    ASSERT_EQ(WritePlan(strict.plan), WritePlan(Schedule(shuffled).plan)) << "seed " << seed;

    const CycleResult kai = Schedule(snapshot, KaiCompatible());
    const std::vector<PlanViolation> kai_violations = CheckPlan(
        snapshot, kai.plan, {.mig_charge = MigCharge::kWholeG, .honour_nominations = false});
    ASSERT_TRUE(kai_violations.empty())
        << "seed " << seed << "\n"
        << Texts(kai_violations) << WriteSnapshot(snapshot) << WritePlan(kai.plan);
  }
}

std::vector<ResourceVector> SharesOf(const CycleResult& cycle) {
  std::vector<ResourceVector> shares;
  for (const QueueShare& queue : cycle.shares.queues) shares.push_back(queue.fair_share);
  return shares;
}

TEST(CycleProperties, ASettledPlanLeavesNothingToDo) {
  const int cases = RandomCases(1000, 20000);
  int shifts = 0;
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const Snapshot snapshot = CreateOrDie(random.Draw());
    const CycleResult cycle = Schedule(snapshot);
    const absl::StatusOr<Snapshot> settled = ApplyAndSettle(snapshot, cycle.plan);
    ASSERT_THAT(settled, IsOk()) << "seed " << seed;
    const CycleResult again = Schedule(*settled);
    // What waited may be charged otherwise where it is, so that shares shift.
    if (!again.plan.actions.empty() && SharesOf(again) != SharesOf(cycle)) {
      ++shifts;
      continue;
    }
    ASSERT_THAT(again.plan.actions, testing::IsEmpty())
        << "seed " << seed << "\n"
        << WriteSnapshot(*settled) << WritePlan(again.plan);
  }
  EXPECT_LE(shifts, cases / 100);
}

TEST(CycleProperties, SnapshotsAndPlansSurviveTheirFiles) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const Snapshot snapshot = CreateOrDie(Lived(random));
    const std::string text = WriteSnapshot(snapshot);
    const absl::StatusOr<Snapshot> read = ParseSnapshot(text);
    ASSERT_THAT(read, IsOk()) << "seed " << seed << "\n" << text;
    ASSERT_EQ(*read, snapshot) << "seed " << seed << "\n" << text;
    ASSERT_EQ(WriteSnapshot(*read), text) << "seed " << seed;
    const Plan plan = Schedule(snapshot).plan;
    ASSERT_THAT(ParsePlan(WritePlan(plan)), IsOkAndHolds(plan)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tessera
