#include "tessera/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "absl/strings/str_cat.h"
#include "tests/support/snapshot_builder_for_tests.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Actions in one word each: "bind w/s/0", "create 1g.10gb@6", ...
struct Describe {
  std::string operator()(const BindAction& a) const { return "bind " + Name(a.pod); }
  std::string operator()(const NominateAction& a) const { return "nominate " + Name(a.pod); }
  std::string operator()(const EvictAction& a) const { return "evict " + Name(a.pod); }
  std::string operator()(const MoveAction& a) const { return "move " + Name(a.pod); }
  std::string operator()(const CreateAction& a) const {
    return absl::StrCat("create ", a.profile, "@", a.start);
  }
  std::string operator()(const DestroyAction& a) const {
    return absl::StrCat("destroy ", a.profile, "@", a.start);
  }
  std::string operator()(const SetMigAction& a) const { return a.enabled ? "mig on" : "mig off"; }
  static std::string Name(const PodRef& pod) {
    return absl::StrCat(pod.workload, "/", pod.pod_set, "/", pod.index);
  }
};

std::vector<std::string> ActionsOf(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Action& action : plan.actions) texts.push_back(std::visit(Describe(), action));
  return texts;
}

Workload Jobs(std::string name, int gpus, int64_t submitted = 0, int priority = 50) {
  Workload workload = MakeWorkload(std::move(name), "", {MakePodSet("s", 1, WholeGpus(gpus))});
  workload.submitted = submitted;
  workload.priority = priority;
  return workload;
}

SnapshotSpec OneNode(int gpus, std::vector<Workload> workloads) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", gpus)};
  spec.workloads = std::move(workloads);
  return spec;
}

TEST(ScheduleTest, PriorityThenAgeThenName) {
  const Snapshot snapshot = CreateOrDie(
      OneNode(3, {Jobs("b", 1, 5), Jobs("a", 1, 5), Jobs("old", 1, 1), Jobs("vip", 1, 9, 60)}));
  const Plan plan = Schedule(snapshot).plan;
  EXPECT_THAT(ActionsOf(plan), ElementsAre("bind vip/s/0", "bind old/s/0", "bind a/s/0"));
  ASSERT_EQ(plan.pending.size(), 1u);
  EXPECT_EQ(plan.pending[0].workload, "b");
  EXPECT_EQ(plan.pending[0].reason, PendingReason::kInsufficientGpus);
  EXPECT_EQ(plan.pending[0].text,
            "\"s\" fits no node; 1 node: 1 too few free GPUs; nearest: \"s\" needs 1 pod of 1 GPU; "
            "the cluster has room for 0; n would take 1 more without 1 pod of \"a\" on 1 GPU");
  EXPECT_TRUE(plan.pending[0].below_minimum);
}

struct NewestFirst {
  bool Before(const Job& a, const Job& b) const { return a.submitted > b.submitted; }
};

TEST(ScheduleTest, AHostOrdersJobsItsOwnWay) {
  const Snapshot snapshot =
      CreateOrDie(OneNode(2, {Jobs("b", 1, 5), Jobs("a", 1, 5), Jobs("vip", 1, 1, 60)}));
  SchedulePolicy<DominantResourceDivision, DominantShareOrder, NewestFirst> policy;
  // Else "vip" could make one of them yield.
  policy.rules.steps = {CycleStep::kAllocate};
  EXPECT_THAT(ActionsOf(Schedule(snapshot, policy).plan), ElementsAre("bind a/s/0", "bind b/s/0"));
}

TEST(ScheduleTest, QueuesTakeTurnsByDominantShare) {
  SnapshotSpec spec = OneNode(4, {});
  spec.queues = {MakeQueue("a"), MakeQueue("b")};
  for (int i = 0; i < 4; ++i) {
    for (const char* queue : {"a", "b"}) {
      spec.workloads.push_back(Jobs(absl::StrCat(queue, i), 1));
      spec.workloads.back().queue = queue;
    }
  }
  EXPECT_THAT(ActionsOf(Schedule(CreateOrDie(spec)).plan),
              ElementsAre("bind a0/s/0", "bind b0/s/0", "bind a1/s/0", "bind b1/s/0"));
}

TEST(ScheduleTest, LimitsHoldAndFairSharesDoNotCap) {
  SnapshotSpec spec = OneNode(4, {Jobs("a0", 1), Jobs("a1", 1), Jobs("a2", 1), Jobs("b0", 1)});
  spec.queues = {MakeQueue("a"), MakeQueue("b")};
  for (Workload& w : spec.workloads) w.queue = w.name.substr(0, 1);
  EXPECT_EQ(Schedule(CreateOrDie(spec)).plan.actions.size(), 4u) << "3 is above a's half of 4";
  spec.queues[0].limit.by_name["gpu"] = Gpus(2);
  const Plan plan = Schedule(CreateOrDie(spec)).plan;
  EXPECT_EQ(plan.actions.size(), 3u);
  ASSERT_EQ(plan.pending.size(), 1u);
  EXPECT_EQ(plan.pending[0].reason, PendingReason::kQueueLimit);
  EXPECT_EQ(plan.pending[0].text,
            "queue \"a\" holds 2 GPU; 1 GPU more would exceed its limit of 2 GPU");
}

TEST(ScheduleTest, NonPreemptibleWorkStaysWithinQuota) {
  SnapshotSpec spec = OneNode(4, {Jobs("firm", 2, 0, 100), Jobs("soft", 2)});
  spec.queues = {MakeQueue("q")};
  spec.queues[0].quota.by_name["gpu"] = Gpus(1);
  for (Workload& w : spec.workloads) w.queue = "q";
  const Plan plan = Schedule(CreateOrDie(spec)).plan;
  EXPECT_THAT(ActionsOf(plan), ElementsAre("bind soft/s/0"));
  ASSERT_EQ(plan.pending.size(), 1u);
  EXPECT_EQ(plan.pending[0].reason, PendingReason::kQuota);
}

TEST(ScheduleTest, AModelLimitSendsPodsToAnotherModel) {
  SnapshotSpec spec = OneNode(2, {Jobs("a", 1), Jobs("b", 1)});
  spec.nodes.push_back(MakeNode("o", 2, "A100-40GB"));
  spec.queues = {MakeQueue("q")};
  spec.queues[0].limit.by_name["gpu:H100"] = Gpus(1);
  for (Workload& w : spec.workloads) w.queue = "q";
  const Plan plan = Schedule(CreateOrDie(spec)).plan;
  ASSERT_EQ(plan.actions.size(), 2u);
  EXPECT_EQ(std::get<BindAction>(plan.actions[0]).node, "n");
  EXPECT_EQ(std::get<BindAction>(plan.actions[1]).node, "o");
}

TEST(ScheduleTest, MinimumsOfAllComeBeforeGrowth) {
  Workload elastic = Jobs("a", 1);
  elastic.gang.pod_sets[0].count = 3;
  elastic.gang.pod_sets[0].min_count = 1;
  const Snapshot snapshot = CreateOrDie(OneNode(3, {elastic, Jobs("b", 1, 5)}));
  EXPECT_THAT(ActionsOf(Schedule(snapshot).plan),
              ElementsAre("bind a/s/0", "bind b/s/0", "bind a/s/1"));
  EXPECT_THAT(ActionsOf(Schedule(snapshot, KaiCompatible()).plan),
              ElementsAre("bind a/s/0", "bind b/s/0", "bind a/s/1"));
}

TEST(ScheduleTest, WhatFitsOnlyWherePodsLeaveIsNominated) {
  SnapshotSpec spec = OneNode(2, {Jobs("leaving", 1), Jobs("pair", 2), Jobs("late", 1, 5)});
  spec.workloads[0].pods = {MakePod("s", 0, "n", OnGpus({0}), PodPhase::kReleasing)};
  const Snapshot snapshot = CreateOrDie(spec);
  const Plan plan = Schedule(snapshot).plan;
  EXPECT_THAT(ActionsOf(plan), ElementsAre("nominate pair/s/0"));
  // The free GPU is reserved, too; once the other is free, the pair is bound.
  absl::StatusOr<Snapshot> next = Apply(snapshot, plan);
  ASSERT_THAT(next, IsOk());
  EXPECT_THAT(Schedule(*next).plan.actions, IsEmpty());
  SnapshotSpec freed = next->spec();
  for (Workload& w : freed.workloads) {
    std::erase_if(w.pods, [](const Pod& pod) { return pod.phase == PodPhase::kReleasing; });
  }
  EXPECT_THAT(ActionsOf(Schedule(CreateOrDie(freed)).plan), ElementsAre("bind pair/s/0"));
}

TEST(ScheduleTest, MigOperationsComeBeforeTheBindThatNeedsThem) {
  SnapshotSpec spec = OneNode(0, {});
  spec.nodes[0].gpu_model = "A100-40GB";
  spec.nodes[0].gpus = {MakeMigGpu(MigMode::kDynamic, {{"1g.5gb", 0}})};
  spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 1, SliceOfProfile("4g.20gb"))})};
  EXPECT_THAT(ActionsOf(Schedule(CreateOrDie(spec)).plan),
              ElementsAre("destroy 1g.5gb@0", "create 4g.20gb@0", "bind w/s/0"));
  spec.workloads = {Jobs("whole", 1)};
  EXPECT_THAT(ActionsOf(Schedule(CreateOrDie(spec)).plan),
              ElementsAre("destroy 1g.5gb@0", "mig off", "bind whole/s/0"));
  spec.nodes[0].gpus = {MakeMigGpu(MigMode::kDynamic)};
  spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 1, SliceOfProfile("7g.40gb"))})};
  EXPECT_THAT(ActionsOf(Schedule(CreateOrDie(spec)).plan),
              ElementsAre("mig on", "create 7g.40gb@0", "bind w/s/0"));
}

TEST(ScheduleTest, KaiChargesWholeGpusForSlices) {
  // 2g on a limit of one GPU: 2/7 by slices, 2 by KAI's rule.
  SnapshotSpec spec = OneNode(0, {});
  spec.nodes[0].gpu_model = "A100-40GB";
  spec.nodes[0].gpus = {MakeMigGpu(MigMode::kStatic, {{"2g.10gb", 0}})};
  spec.queues = {MakeQueue("q")};
  spec.queues[0].limit.by_name["gpu"] = Gpus(1);
  spec.workloads = {MakeWorkload("w", "q", {MakePodSet("s", 1, SliceOfProfile("2g.10gb"))})};
  const Snapshot snapshot = CreateOrDie(spec);
  EXPECT_EQ(Schedule(snapshot).plan.actions.size(), 1u);
  EXPECT_THAT(Schedule(snapshot, KaiCompatible()).plan.actions, IsEmpty());
}

TEST(ScheduleTest, DiagnosesAreCounted) {
  SnapshotSpec spec;
  spec.levels = {"rack"};
  for (int i = 0; i < 4; ++i) {
    spec.nodes.push_back(MakeNode(absl::StrCat("n", i), 2));
    spec.nodes.back().topology["rack"] = absl::StrCat("r", i / 2);
  }
  spec.nodes[0].taints = {{"t", "", TaintEffect::kNoSchedule}};
  spec.nodes[1].gpu_model = "A30-24GB";
  PodSet picky = MakePodSet("s", 1, WholeGpus(2));
  picky.gpu_models = {"H100"};
  picky.request.cpu = Cores(65);
  Workload rack = MakeWorkload("rack", "", {MakePodSet("s", 3, WholeGpus(2))});
  rack.gang.topology.required = "rack";
  spec.workloads = {MakeWorkload("picky", "", {picky}), rack,
                    MakeWorkload("huge", "", {MakePodSet("s", 4, WholeGpus(2))})};
  const Plan plan = Schedule(CreateOrDie(spec)).plan;
  ASSERT_EQ(plan.pending.size(), 3u);
  EXPECT_EQ(plan.pending[0].reason, PendingReason::kGang);
  EXPECT_EQ(plan.pending[0].counts, (ReasonCounts{{"room for a pod", 3}, {"taints", 1}}));
  EXPECT_EQ(plan.pending[1].reason, PendingReason::kInsufficientResources);
  EXPECT_EQ(plan.pending[1].text,
            "\"s\" fits no node; 4 nodes: 2 too little cpu, 1 taints, 1 wrong GPU model");
  EXPECT_EQ(plan.pending[2].reason, PendingReason::kTopology);
  EXPECT_THAT(plan.pending[2].text, HasSubstr("no domain of the required level"));
  EXPECT_THAT(plan.pending[2].text, HasSubstr("rack r1 has room for 2"));
}

// Each of two queues is entitled to 4 of 8 GPUs. "small" of queue a can start on what is free; with
// it a holds 5, so that b may reclaim the 3 of "big"; and "big" would preempt "small" and be back.
TEST(ScheduleTest, NobodyYieldsWhoWouldBeBack) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n0", 4), MakeNode("n1", 4)};
  spec.nodes[0].labels["zone"] = "b";
  spec.queues = {MakeQueue("a"), MakeQueue("b")};
  for (Queue& queue : spec.queues) queue.quota.by_name["gpu"] = Gpus(4);
  PodSet there = MakePodSet("s", 1, WholeGpus(4));
  there.selector = {{"zone", SelectorOperator::kIn, {"b"}}};
  Workload big = MakeWorkload("big", "a", {MakePodSet("s", 1, WholeGpus(3))});
  big.priority = 60;
  big.movable = false;
  big.pods = {MakePod("s", 0, "n0", OnGpus({0, 1, 2}))};
  spec.workloads = {big, MakeWorkload("small", "a", {MakePodSet("s", 1, WholeGpus(2))}),
                    MakeWorkload("claim", "b", {there})};
  const Snapshot snapshot = CreateOrDie(spec);
  const Plan plan = Schedule(snapshot).plan;
  EXPECT_THAT(ActionsOf(plan), ElementsAre("bind small/s/0"));
  ASSERT_EQ(plan.pending.size(), 1u);
  EXPECT_THAT(plan.pending[0].text, HasSubstr("; nobody yields for it in this cycle"));
  EXPECT_THAT(Schedule(*ApplyAndSettle(snapshot, plan)).plan.actions, IsEmpty());
  // Once "small" may yield all of it happens at once.
  SnapshotSpec later = ApplyAndSettle(snapshot, plan)->spec();
  later.now += 1;
  EXPECT_THAT(
      ActionsOf(Schedule(CreateOrDie(later)).plan),
      ElementsAre("evict big/s/0", "nominate claim/s/0", "evict small/s/0", "nominate big/s/0"));
}

// What is found out of one gang is told of its equals, by their own names; a gang of which a
// pod runs, or that needs another number, has its own.
TEST(ScheduleTest, EqualGangsShareTheirProof) {
  SnapshotSpec spec;
  for (int i = 0; i < 4; ++i) spec.nodes.push_back(MakeNode(absl::StrCat("n", i), 8));
  const auto gang = [&spec](const std::string& name, const std::string& set, int pods) {
    spec.workloads.push_back(MakeWorkload(
        name, "", {MakePodSet("router", 1, CpuOnly(1)), MakePodSet(set, pods, WholeGpus(8))}));
  };
  gang("a", "x", 6);
  gang("b", "y", 6);
  gang("c", "z", 5);
  gang("d", "x", 6);
  spec.workloads[3].pods = {MakePod("x", 0, "n0", OnGpus({0, 1, 2, 3, 4, 5, 6, 7}))};
  std::vector<std::string> proofs;
  for (const PendingWorkload& pending : Schedule(CreateOrDie(spec)).plan.pending) {
    proofs.push_back(pending.proof);
    EXPECT_THAT(pending.text, HasSubstr("; nearest: "));
  }
  EXPECT_THAT(proofs, ElementsAre("the cluster takes 3 of 6 pods of \"x\", short of gpu",
                                  "the cluster takes 3 of 6 pods of \"y\", short of gpu",
                                  "the cluster takes 3 of 5 pods of \"z\", short of gpu",
                                  "the cluster takes 3 of 5 pods of \"x\", short of gpu"));
}

}  // namespace
}  // namespace tessera
