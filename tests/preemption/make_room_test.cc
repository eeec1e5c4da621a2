#include "tessera/preemption/make_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/placement/gang_placement.h"
#include "tests/preemption/room_scene.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(PlanPreemption, OnlyLowerPrioritiesOfTheSameQueue) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 3)};
  spec.queues = {QueueOf("a", 3), QueueOf("b", 0)};
  spec.workloads = {RunningJob("low", "a", "n", {0}), RunningJob("equal", "a", "n", {1}),
                    RunningJob("foreign", "b", "n", {2}), Claim("a", 1, 1)};
  spec.workloads[0].priority = 49;
  spec.workloads[2].priority = 1;
  const Scene scene(spec);
  const RoomPlan plan = scene.Plan(PlanPreemption);
  EXPECT_THAT(scene.Evicted(plan), ElementsAre("low/0"));
  EXPECT_THAT(ToText(plan.certificate), HasSubstr("low/s/0 leaves n by its priority of 49; "));
  spec.workloads.back() = Claim("a", 1, 2);
  EXPECT_FALSE(Scene(spec).Plan(PlanPreemption).found());
}

TEST(PlanPreemption, MakesRoomBelowALimitWhereTheClusterHasRoom) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 4)};
  spec.queues = {QueueOf("a", 1)};
  spec.queues[0].limit.by_name["gpu"] = Gpus(2);
  spec.workloads = {RunningJob("x", "a", "n", {0}), RunningJob("y", "a", "n", {1}),
                    Claim("a", 1, 1)};
  spec.workloads[0].priority = 10;
  spec.workloads[1].priority = 20;
  const Scene scene(spec);
  const RoomPlan plan = scene.Plan(PlanPreemption);
  EXPECT_THAT(scene.Evicted(plan), ElementsAre("x/0"));
  ASSERT_EQ(plan.certificate.victims.size(), 1u);
  EXPECT_EQ(plan.certificate.victims[0].need, YieldNeed::kLimit);
}

TEST(PlanPreemption, PrefersOneLargeVictimToTwoSmallOnes) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 2)};
  spec.workloads = {MakeWorkload("x", "", {MakePodSet("s", 1, Fraction(kGpuUnitsPerDevice / 2))}),
                    MakeWorkload("y", "", {MakePodSet("s", 1, Fraction(kGpuUnitsPerDevice / 2))}),
                    RunningJob("z", "", "n", {1}), Claim("", 1, 1)};
  spec.workloads[0].pods = {MakePod("s", 0, "n", OnShare(0, kGpuUnitsPerDevice / 2))};
  spec.workloads[1].pods = {MakePod("s", 0, "n", OnShare(0, kGpuUnitsPerDevice / 2))};
  spec.workloads.back().priority = 60;
  const Scene scene(spec);
  EXPECT_THAT(scene.Evicted(scene.Plan(PlanPreemption)), ElementsAre("z/0"));
}

// Two nodes of 4 GPUs, two of each held by a job.
SnapshotSpec TwoHalves() {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 4), MakeNode("m", 4)};
  spec.workloads = {RunningJob("x", "", "n", {0, 1}), RunningJob("y", "", "m", {0, 1}),
                    Claim("", 1, 4)};
  spec.workloads[1].submitted = 9;
  return spec;
}

TEST(PlanConsolidation, MovesTheYoungerAndNobodyLoses) {
  const Scene scene(TwoHalves());
  const RoomPlan plan = scene.Plan(PlanConsolidation);
  ASSERT_TRUE(plan.found());
  EXPECT_THAT(plan.evicted, IsEmpty());
  ASSERT_EQ(plan.moved.size(), 1u);
  EXPECT_THAT(scene.Names({plan.moved[0].pod}), ElementsAre("y/0"));
  EXPECT_EQ(plan.certificate.cost, 51 * 100);
  EXPECT_THAT(ToText(plan.certificate), HasSubstr("y/s/0 moves from m; its place is needed"));
}

TEST(PlanConsolidation, RefusesWhatNoArrangementHolds) {
  SnapshotSpec spec = TwoHalves();
  spec.workloads.back() = Claim("", 2, 3);
  const RoomPlan plan = Scene(spec).Plan(PlanConsolidation);
  EXPECT_TRUE(plan.certificate.proven);
  EXPECT_EQ(plan.certificate.refusal, "too few GPUs are free, however they are arranged");
  spec = TwoHalves();
  for (Workload& w : spec.workloads) w.movable = false;
  EXPECT_THAT(Scene(spec).Plan(PlanConsolidation).certificate.refusal,
              HasSubstr("nothing may yield; "));
  spec = TwoHalves();
  spec.workloads.back().priority = 100;
  RoomRules rules;
  rules.victims.move_for_all = false;
  EXPECT_EQ(Scene(spec).Plan(PlanConsolidation, rules).certificate.refusal,
            "others are moved for preemptible workloads only");
}

// Two pods at 100 points are cheaper to move than one at 5,100, and may only stay together.
TEST(PlanConsolidation, KeepsTogetherWhatRequiresIt) {
  SnapshotSpec spec = TwoHalves();
  spec.levels = {"rack"};
  spec.nodes[0].topology["rack"] = "r1";
  spec.nodes[1].topology["rack"] = "r2";
  spec.workloads[1] = ElasticJob("y", "", "m", 2, 2);
  spec.workloads[1].priority = 0;
  spec.workloads[1].gang.topology.required = "rack";
  const RoomPlan plan = Scene(spec).Plan(PlanConsolidation);
  ASSERT_EQ(plan.moved.size(), 2u) << ToText(plan.certificate);
  EXPECT_EQ(plan.certificate.cost, 200);
  EXPECT_EQ(plan.certificate.minimality, Minimality::kCheapest);
  // Only one of them may move, and does not leave the other's rack.
  spec.workloads[1].max_disrupted = 1;
  const Scene scene(spec);
  const RoomPlan other = scene.Plan(PlanConsolidation);
  ASSERT_EQ(other.moved.size(), 1u);
  EXPECT_THAT(scene.Names({other.moved[0].pod}), ElementsAre("x/0"));
}

TEST(PlanMakeRoom, BindsWhatIsFreeAndCarvesIdleInstancesAnew) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 1)};
  spec.workloads = {Claim("", 1, 1)};
  RoomPlan plan = Scene(spec).Plan(PlanMakeRoom);
  EXPECT_TRUE(plan.binds);
  EXPECT_EQ(plan.certificate.step, RoomStep::kFree);
  EXPECT_EQ(ToText(plan.certificate), "claim fits, nobody has to yield");
  spec.nodes[0].gpus = {MakeMigGpu(MigMode::kDynamic, {{"4g.40gb", 0}})};
  spec.workloads = {MakeWorkload("claim", "", {MakePodSet("s", 1, SliceOfProfile("7g.80gb"))})};
  plan = Scene(spec).Plan(PlanMakeRoom);
  EXPECT_EQ(plan.certificate.step, RoomStep::kRepartition);
  EXPECT_EQ(plan.certificate.mig_operations, 2);
  EXPECT_EQ(plan.certificate.cost, 2 * 20);
}

TEST(PlanMakeRoom, NominatesOnWhatIsReleasing) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 1)};
  spec.workloads = {RunningJob("x", "", "n", {0}), Claim("", 1, 1)};
  spec.workloads[0].pods[0].phase = PodPhase::kReleasing;
  const RoomPlan plan = Scene(spec).Plan(PlanMakeRoom);
  EXPECT_TRUE(plan.found());
  EXPECT_FALSE(plan.binds);
  EXPECT_THAT(plan.evicted, IsEmpty());
}

TEST(PlanMakeRoom, MovesRatherThanEvicts) {
  SnapshotSpec spec = TwoHalves();
  spec.workloads.back().priority = 90;
  const RoomPlan plan = Scene(spec).Plan(PlanMakeRoom);
  EXPECT_EQ(plan.certificate.step, RoomStep::kConsolidate);
  // Where nothing may move, priority decides.
  for (Workload& w : spec.workloads) w.movable = false;
  EXPECT_EQ(Scene(spec).Plan(PlanMakeRoom).certificate.step, RoomStep::kPreempt);
}

TEST(PlanMakeRoom, BothRightsTogetherWhereNeitherSuffices) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 4)};
  spec.queues = {QueueOf("a", 0), QueueOf("b", 4)};
  spec.workloads = {RunningJob("x", "a", "n", {0, 1}), RunningJob("y", "b", "n", {2, 3}),
                    Claim("b", 1, 4)};
  spec.workloads.back().priority = 60;
  const Scene scene(spec);
  const RoomPlan plan = scene.Plan(PlanMakeRoom);
  EXPECT_EQ(plan.certificate.step, RoomStep::kEvict);
  EXPECT_THAT(scene.Evicted(plan), UnorderedElementsAre("x/0", "y/0"));
}

TEST(PlanMakeRoom, ReplacesVictimsThatFindANewPlaceIfTheRulesSaySo) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 2), MakeNode("m", 1)};
  spec.workloads = {ElasticJob("e", "", "n", 2, 1), Claim("", 1, 2)};
  spec.workloads.back().priority = 60;
  RoomRules rules;
  rules.victims.replace_victims = true;
  const RoomPlan plan = Scene(spec).Plan(PlanPreemption, rules);
  EXPECT_EQ(plan.evicted.size(), 1u);
  EXPECT_EQ(plan.moved.size(), 1u);
  EXPECT_EQ(Scene(spec).Plan(PlanPreemption).evicted.size(), 2u);
}

TEST(PlanMakeRoom, EvictsSomeAndMovesOthersWhereNeitherSuffices) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 4), MakeNode("m", 1)};
  spec.queues = {QueueOf("a", 0), QueueOf("b", 1), QueueOf("c", 4)};
  // x is above its share; y has no more than that, but another place.
  spec.workloads = {RunningJob("x", "a", "n", {0, 1, 2}), RunningJob("y", "b", "n", {3}),
                    Claim("c", 1, 4)};
  const Scene scene(spec);
  const RoomPlan plan = scene.Plan(PlanMakeRoom);
  EXPECT_EQ(plan.certificate.step, RoomStep::kEvict);
  EXPECT_THAT(scene.Evicted(plan), ElementsAre("x/0"));
  ASSERT_EQ(plan.moved.size(), 1u);
  EXPECT_THAT(scene.Names({plan.moved[0].pod}), ElementsAre("y/0"));
}

// A host's own order: never mind priorities, the most work lost goes last.
struct LeastWorkLost {
  int64_t Cost(const Victim& victim) const { return victim.seconds_lost; }
};

TEST(PlanMakeRoom, TakesAHostsVictimOrder) {
  SnapshotSpec spec = EightJobs();
  for (int i = 0; i < 8; ++i) {
    Workload& job = spec.workloads[static_cast<size_t>(i)];
    job.pods[0].started = i == 3 ? 3599 : 0;
    job.priority = i == 3 ? 90 : 10;
  }
  spec.workloads.push_back(Claim("b", 1, 1));
  const Scene scene(spec);
  const auto tables = std::make_shared<const StateTables>(scene.snapshot);
  ClusterState later(tables, {});
  QuotaLedger ledger(scene.snapshot.queues(), MeasureUsage(scene.snapshot, {}));
  const RoomDesk desk{nullptr, &later, &ledger, &scene.shares};
  const RoomPlan plan =
      PlanMakeRoom(desk, *scene.snapshot.FindWorkload("claim"), {}, LeastWorkLost());
  EXPECT_THAT(scene.Evicted(plan), ElementsAre("a3/0"));
}

TEST(CarryOut, LeavesTheDeskAsThePlanSays) {
  SnapshotSpec spec = EightJobs();
  spec.workloads.push_back(Claim("b", 1, 2));
  const Scene scene(spec);
  const auto tables = std::make_shared<const StateTables>(scene.snapshot);
  ClusterState now(tables, {}), later(tables, {});
  QuotaLedger ledger(scene.snapshot.queues(), MeasureUsage(scene.snapshot, {}));
  const RoomDesk desk{&now, &later, &ledger, &scene.shares};
  const WorkloadId w = *scene.snapshot.FindWorkload("claim");
  const RoomPlan plan = PlanMakeRoom(desk, w);
  CarryOut(plan, {}, desk);
  EXPECT_TRUE(IsWhole(later, w));
  EXPECT_EQ(ledger.allocated(*scene.snapshot.queues().Find("a"))[kGpu], Gpus(6));
  EXPECT_EQ(ledger.allocated(*scene.snapshot.queues().Find("b"))[kGpu], Gpus(2));
}

}  // namespace
}  // namespace tessera
