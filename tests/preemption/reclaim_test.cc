#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/preemption/make_room.h"
#include "tests/preemption/room_scene.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PlanReclaim, TakesTheYoungestOfAQueueAboveItsShareAndSaysWhatItCosts) {
  SnapshotSpec spec = EightJobs();
  spec.workloads.push_back(Claim("b", 1, 2));
  const Scene scene(spec);
  const RoomPlan plan = scene.Plan(PlanReclaim);
  ASSERT_TRUE(plan.found());
  EXPECT_THAT(scene.Evicted(plan), ElementsAre("a6/0", "a7/0"));
  // Per pod: (50 + 1) * 1000 for its priority, 10 for an hour of one GPU, 2000 for its gang,
  // which ends; and 1000 * 6 / 6, as b demands 2 and a is entitled to the 6 that it keeps.
  EXPECT_EQ(plan.certificate.cost, 2 * (51000 + 10 + 2000 + 1000));
  EXPECT_EQ(plan.certificate.minimality, Minimality::kCheapest);
  const VictimReport& victim = plan.certificate.victims[0];
  EXPECT_EQ(victim.rule, YieldRule::kReclaimed);
  EXPECT_EQ(victim.need, YieldNeed::kRoom);
  EXPECT_EQ(victim.queue, "a");
  EXPECT_EQ(victim.resource, "gpu");
  EXPECT_EQ(victim.held, Gpus(8));
  EXPECT_EQ(victim.entitled, Gpus(6));
  EXPECT_EQ(victim.left, Gpus(6));
  EXPECT_EQ(ToText(plan.certificate),
            "2 pods yield for claim (reclaim), at a cost of 108020: nothing cheaper suffices\n"
            "a6/s/0 leaves n: queue a holds 8 GPU, its fair share is 6 GPU, it keeps 6 GPU; its "
            "place is needed\n"
            "a7/s/0 leaves n: queue a holds 8 GPU, its fair share is 6 GPU, it keeps 6 GPU; its "
            "place is needed");
}

TEST(PlanReclaim, WhatWasTakenIsNotTakenBack) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 2)};
  spec.queues = {QueueOf("a", 1), QueueOf("b", 1)};
  spec.workloads = {RunningJob("big", "a", "n", {0, 1}), Claim("b", 1, 1)};
  const Scene scene(spec);
  // 2 > 1 before it leaves: the unit straddles the entitlement.
  const RoomPlan plan = scene.Plan(PlanReclaim);
  EXPECT_THAT(scene.Evicted(plan), ElementsAre("big/0"));
  SnapshotSpec next = ApplyAndSettle(scene.snapshot, {plan.actions, {}})->spec();
  for (Workload& w : next.workloads) w.name = w.name == "big" ? "claim" : "other";
  const RoomPlan back = Scene(next).Plan(PlanReclaim);
  EXPECT_FALSE(back.found());
  EXPECT_TRUE(back.certificate.proven);
  EXPECT_EQ(ToText(back.certificate),
            "claim has no room by reclaim: queue a would hold 2 GPU, its fair share is 1 GPU");
}

TEST(PlanReclaim, AtMostOneUnitStraddlesTheEntitlement) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n1", 3), MakeNode("n2", 3)};
  spec.queues = {QueueOf("a", 2), QueueOf("b", 4)};
  spec.workloads = {RunningJob("a1", "a", "n1", {0, 1}), RunningJob("a2", "a", "n2", {0, 1}),
                    Claim("b", 2, 2)};
  // a holds 4 and is entitled to 2: after the first of its jobs it has no more than that.
  const RoomPlan plan = Scene(spec).Plan(PlanReclaim);
  EXPECT_FALSE(plan.found());
  EXPECT_TRUE(plan.certificate.proven);
  EXPECT_EQ(plan.certificate.refusal, "no set of victims that may yield together makes room");
  // With 5 it has 3 > 2 after the first.
  spec.workloads.push_back(RunningJob("a3", "a", "n1", {2}));
  const Scene more(spec);
  EXPECT_THAT(more.Evicted(more.Plan(PlanReclaim)), ElementsAre("a1/0", "a2/0"));
}

TEST(PlanReclaim, NestedQueuesMustBeAboveTheirShareOnEveryLevel) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 6)};
  spec.queues = {QueueOf("a", 3), QueueOf("a1", 1, "a"), QueueOf("a2", 2, "a"), QueueOf("b", 3),
                 QueueOf("b1", 3, "b")};
  spec.workloads = {RunningJob("x", "a1", "n", {0, 1, 2}), RunningJob("y", "a2", "n", {3}),
                    RunningJob("z", "a2", "n", {4}), Claim("b1", 1, 2)};
  const Scene scene(spec);
  // One GPU is free, a2 has what it is entitled to: only x may go, although y is smaller.
  EXPECT_THAT(scene.Evicted(scene.Plan(PlanReclaim)), ElementsAre("x/0"));
}

TEST(PlanReclaim, ElasticPodsGoBeforeGangsEnd) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 4), MakeNode("m", 4)};
  spec.queues = {QueueOf("a", 2), QueueOf("b", 6)};
  spec.workloads = {ElasticJob("e", "a", "n", 4, 2), ElasticJob("f", "a", "m", 4, 4),
                    Claim("b", 1, 2)};
  const Scene scene(spec);
  const RoomPlan plan = scene.Plan(PlanReclaim);
  EXPECT_THAT(scene.Evicted(plan), ElementsAre("e/2", "e/3"));
  // Two more and its gang has to end; then nothing of it stays.
  spec.workloads.back() = Claim("b", 1, 3);
  const Scene larger(spec);
  const RoomPlan all = larger.Plan(PlanReclaim);
  EXPECT_EQ(all.evicted.size(), 4u);
  const auto along =
      std::ranges::count(all.certificate.victims, YieldNeed::kGang, &VictimReport::need);
  EXPECT_EQ(along, 1);
}

TEST(PlanReclaim, MinRuntimeProtectsTheMinimumButNotWhatIsAboveIt) {
  SnapshotSpec spec;
  spec.now = 100;
  spec.nodes = {MakeNode("n", 4)};
  spec.queues = {QueueOf("a", 1), QueueOf("b", 3)};
  spec.queues[0].reclaim_min_runtime = 200;
  spec.workloads = {ElasticJob("e", "a", "n", 4, 2), Claim("b", 1, 2)};
  const Scene scene(spec);
  EXPECT_THAT(scene.Evicted(scene.Plan(PlanReclaim)), ElementsAre("e/2", "e/3"));
  spec.workloads.back() = Claim("b", 1, 3);
  EXPECT_FALSE(Scene(spec).Plan(PlanReclaim).found());
  spec.now = 200;
  EXPECT_EQ(Scene(spec).Plan(PlanReclaim).evicted.size(), 4u);
}

TEST(PlanReclaim, MinRuntimeIsThatOfTheAncestorOrOfTheQueueByTheRules) {
  SnapshotSpec spec;
  spec.now = 100;
  spec.nodes = {MakeNode("n", 2)};
  spec.queues = {QueueOf("a", 1), QueueOf("a1", 1, "a"), QueueOf("b", 1)};
  spec.queues[1].reclaim_min_runtime = 500;
  spec.workloads = {RunningJob("x", "a1", "n", {0, 1}), Claim("b", 1, 1)};
  // The paths part at a, which protects nothing.
  EXPECT_TRUE(Scene(spec).Plan(PlanReclaim).found());
  RoomRules rules;
  rules.victims.reclaim_runtime = RuntimeScope::kQueue;
  EXPECT_FALSE(Scene(spec).Plan(PlanReclaim, rules).found());
}

TEST(PlanReclaim, WaitsForThePreemptionDelay) {
  SnapshotSpec spec = EightJobs();
  spec.workloads.push_back(Claim("b", 1, 1));
  spec.workloads.back().submitted = 3000;
  spec.workloads.back().preemption_delay = 700;
  const RoomPlan plan = Scene(spec).Plan(PlanReclaim);
  EXPECT_FALSE(plan.found());
  EXPECT_EQ(ToText(plan.certificate),
            "claim has no room by reclaim: others yield for it in 100 seconds, when its preemption "
            "delay is over");
}

TEST(PlanReclaim, DisruptsNoMorePodsOfAWorkloadThanItPermits) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 4), MakeNode("m", 4)};
  spec.queues = {QueueOf("a", 2), QueueOf("b", 6)};
  spec.workloads = {ElasticJob("e", "a", "n", 4, 0), ElasticJob("f", "a", "m", 4, 0),
                    Claim("b", 1, 3)};
  spec.workloads[0].max_disrupted = 2;
  spec.workloads[0].submitted = 5;  // it would have to yield as the younger
  const Scene scene(spec);
  EXPECT_THAT(scene.Evicted(scene.Plan(PlanReclaim)), ElementsAre("f/1", "f/2", "f/3"));
}

TEST(PlanReclaim, WhatWaitsForABaseGoesAlongWithIt) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 3)};
  spec.queues = {QueueOf("a", 0), QueueOf("b", 3)};
  Workload llm = MakeWorkload("llm", "a", {MakePodSet("base", 1, WholeGpus(2))});
  llm.gang.pod_sets.push_back(MakePodSet("extra", 1, WholeGpus(1)));
  llm.gang.pod_sets[1].after = "base";
  llm.pods = {MakePod("base", 0, "n", OnGpus({0, 1})), MakePod("extra", 0, "n", OnGpus({2}))};
  spec.workloads = {llm, Claim("b", 1, 1)};
  const Scene scene(spec);
  const RoomPlan one = scene.Plan(PlanReclaim);
  ASSERT_EQ(one.evicted.size(), 1u);
  EXPECT_EQ(scene.snapshot.pod_ref(one.evicted[0]).pod_set, "extra");
  spec.workloads.back() = Claim("b", 1, 2);
  EXPECT_EQ(Scene(spec).Plan(PlanReclaim).evicted.size(), 2u);
}

TEST(PlanReclaim, ARequiredDomainIsTheOneWhereVictimsCostLeast) {
  SnapshotSpec spec;
  spec.levels = {"rack"};
  for (int i = 0; i < 4; ++i) {
    spec.nodes.push_back(MakeNode(absl::StrCat("n", i), 2));
    spec.nodes.back().topology["rack"] = absl::StrCat("r", i / 2);
  }
  spec.queues = {QueueOf("a", 4), QueueOf("b", 4)};
  for (int i = 0; i < 4; ++i) {
    spec.workloads.push_back(RunningJob(absl::StrCat("j", i), "a", absl::StrCat("n", i), {0, 1}));
    spec.workloads.back().priority = i < 2 ? 60 : 40;
  }
  spec.workloads.push_back(Claim("b", 2, 2));
  spec.workloads.back().gang.topology.required = "rack";
  const Scene scene(spec);
  EXPECT_THAT(scene.Evicted(scene.Plan(PlanReclaim)), ElementsAre("j2/0", "j3/0"));
}

TEST(PlanReclaim, FreesContiguousSlices) {
  // 1g slices at 0 ... 6; a 3g needs 0-3 or 4-7 of the memory axis.
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 1)};
  std::vector<GpuInstance> instances;
  for (int s = 0; s < 7; ++s) instances.push_back({"1g.10gb", s});
  spec.nodes[0].gpus = {MakeMigGpu(MigMode::kDynamic, instances)};
  spec.queues = {QueueOf("a", 0), QueueOf("b", 1)};
  for (int s = 0; s < 7; ++s) {
    Workload job =
        MakeWorkload(absl::StrCat("j", s), "a", {MakePodSet("s", 1, SliceOfProfile("1g.10gb"))});
    job.pods = {MakePod("s", 0, "n", OnSlice(0, "1g.10gb", s))};
    spec.workloads.push_back(job);
  }
  spec.workloads.push_back(
      MakeWorkload("claim", "b", {MakePodSet("s", 1, SliceOfProfile("3g.40gb"))}));
  const Scene scene(spec);
  const RoomPlan plan = scene.Plan(PlanReclaim);
  EXPECT_THAT(scene.Evicted(plan), ElementsAre("j4/0", "j5/0", "j6/0"));
  EXPECT_EQ(plan.certificate.mig_operations, 4);  // three 1g go, a 3g comes
}

TEST(PlanReclaim, SaysWhatPreventsIt) {
  SnapshotSpec spec = EightJobs();
  for (Workload& job : spec.workloads) job.preemptible = false;
  spec.workloads.push_back(Claim("b", 1, 1));
  const RoomPlan none = Scene(spec).Plan(PlanReclaim);
  EXPECT_EQ(none.outcome, RoomOutcome::kNoRoom);
  EXPECT_THAT(none.certificate.refusal, HasSubstr("nothing may yield; "));
  EXPECT_EQ(none.certificate.reason, PendingReason::kInsufficientGpus);
  for (size_t i = 0; i < 3; ++i) spec.workloads[i].preemptible = true;
  spec.workloads.back() = Claim("b", 1, 4);
  const RoomPlan wrong = Scene(spec).Plan(PlanReclaim);
  EXPECT_THAT(wrong.certificate.refusal, HasSubstr("even if all 3 pods left that may: "));
}

}  // namespace
}  // namespace tessera
