#include <gmock/gmock.h>

#include <functional>
#include <random>

#include "tessera/cluster/plan.h"
#include "tests/support/snapshot_builder_for_tests.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// n1 and n2 have GPU 0 and 1 without MIG, and GPU 2 with a 1g.10gb at 6. w has
// pods of one GPU: w/0 runs on GPU 0 of n1. v has pods of one slice: v/0 is
// nominated to that of n2.
SnapshotSpec Before() {
  SnapshotSpec spec;
  spec.now = 100;
  spec.nodes = {MakeNode("n1", 3), MakeNode("n2", 3)};
  for (Node& node : spec.nodes) {
    node.gpus[1].mig = MigMode::kDynamic;
    node.gpus[2] = MakeMigGpu(MigMode::kDynamic, {{"1g.10gb", 6}});
  }
  spec.workloads = {MakeWorkload("v", "", {MakePodSet("s", 3, SliceOfProfile("1g.10gb"))}),
                    MakeWorkload("w", "", {MakePodSet("s", 3, WholeGpus(1))})};
  spec.workloads[1].pods = {MakePod("s", 0, "n1", OnGpus({0}))};
  spec.workloads[1].pods[0].started = 7;
  spec.workloads[0].pods = {MakePod("s", 0, "n2", OnSlice(2, "1g.10gb", 6), PodPhase::kNominated)};
  spec.workloads[0].pods[0].expires = 200;
  return spec;
}

Pod Started(Pod pod, int64_t started) {
  pod.started = started;
  return pod;
}

PodRef Ref(std::string workload, int index) { return {std::move(workload), "s", index}; }

Plan PlanOf(std::vector<Action> actions) { return {std::move(actions), {}}; }

// The pods of `workload` after `actions`, and after these have settled.
std::vector<Pod> PodsAfter(const SnapshotSpec& spec, std::vector<Action> actions,
                           const std::string& workload) {
  const Snapshot after = *Apply(CreateOrDie(spec), PlanOf(std::move(actions)));
  return after.workload(*after.FindWorkload(workload)).pods;
}
std::vector<Pod> PodsSettled(const SnapshotSpec& spec, std::vector<Action> actions,
                             const std::string& workload) {
  const Snapshot after = *ApplyAndSettle(CreateOrDie(spec), PlanOf(std::move(actions)));
  return after.workload(*after.FindWorkload(workload)).pods;
}

TEST(ApplyTest, NothingChangesNothing) {
  const Snapshot snapshot = CreateOrDie(Before());
  EXPECT_THAT(Apply(snapshot, Plan()), IsOkAndHolds(snapshot));
}

TEST(ApplyTest, Evict) {
  const std::vector<Action> plan = {EvictAction{Ref("w", 0), "reclaim", ""}};
  Pod releasing = Before().workloads[1].pods[0];
  releasing.phase = PodPhase::kReleasing;
  EXPECT_THAT(PodsAfter(Before(), plan, "w"), ElementsAre(releasing));
  EXPECT_THAT(PodsSettled(Before(), plan, "w"), IsEmpty());
}

TEST(ApplyTest, EvictedNominationIsGone) {
  EXPECT_THAT(PodsAfter(Before(), {EvictAction{Ref("v", 0), "reclaim", ""}}, "v"), IsEmpty());
}

TEST(ApplyTest, Move) {
  const std::vector<Action> plan = {MoveAction{Ref("w", 0), "n2", OnGpus({1})}};
  Pod releasing = Before().workloads[1].pods[0];
  releasing.phase = PodPhase::kReleasing;
  const Pod coming = MakePod("s", 0, "n2", OnGpus({1}), PodPhase::kNominated);
  EXPECT_THAT(PodsAfter(Before(), plan, "w"), ElementsAre(releasing, coming));
  EXPECT_THAT(PodsSettled(Before(), plan, "w"),
              ElementsAre(Started(MakePod("s", 0, "n2", OnGpus({1})), 100)));
}

TEST(ApplyTest, MovedNominationLeavesNothingBehind) {
  EXPECT_THAT(PodsAfter(Before(), {MoveAction{Ref("v", 0), "n1", OnSlice(2, "1g.10gb", 6)}}, "v"),
              ElementsAre(MakePod("s", 0, "n1", OnSlice(2, "1g.10gb", 6), PodPhase::kNominated)));
}

TEST(ApplyTest, EvictedAfterMoveIsReleasingOnly) {
  const std::vector<Action> plan = {MoveAction{Ref("w", 0), "n2", OnGpus({1})},
                                    EvictAction{Ref("w", 0), "reclaim", ""}};
  Pod releasing = Before().workloads[1].pods[0];
  releasing.phase = PodPhase::kReleasing;
  EXPECT_THAT(PodsAfter(Before(), plan, "w"), ElementsAre(releasing));
}

TEST(ApplyTest, Bind) {
  const std::vector<Action> plan = {BindAction{Ref("w", 2), "n2", OnGpus({0})}};
  EXPECT_THAT(
      PodsAfter(Before(), plan, "w"),
      ElementsAre(Before().workloads[1].pods[0], Started(MakePod("s", 2, "n2", OnGpus({0})), 100)));
}

TEST(ApplyTest, BindEndsTheNomination) {
  EXPECT_THAT(PodsAfter(Before(), {BindAction{Ref("v", 0), "n1", OnSlice(2, "1g.10gb", 6)}}, "v"),
              ElementsAre(Started(MakePod("s", 0, "n1", OnSlice(2, "1g.10gb", 6)), 100)));
}

TEST(ApplyTest, Nominate) {
  const std::vector<Action> plan = {NominateAction{Ref("w", 1), "n2", OnGpus({0})}};
  EXPECT_THAT(PodsAfter(Before(), plan, "w"),
              ElementsAre(Before().workloads[1].pods[0],
                          MakePod("s", 1, "n2", OnGpus({0}), PodPhase::kNominated)));
  EXPECT_THAT(
      PodsSettled(Before(), plan, "w"),
      ElementsAre(Before().workloads[1].pods[0], Started(MakePod("s", 1, "n2", OnGpus({0})), 100)));
}

TEST(ApplyTest, NominationOnWhatIsLeft) {
  const std::vector<Action> plan = {EvictAction{Ref("w", 0), "reclaim", ""},
                                    NominateAction{Ref("w", 1), "n1", OnGpus({0})}};
  EXPECT_THAT(PodsSettled(Before(), plan, "w"),
              ElementsAre(Started(MakePod("s", 1, "n1", OnGpus({0})), 100)));
}

TEST(ApplyTest, SettlingBindsStandingNominations) {
  EXPECT_THAT(PodsSettled(Before(), {}, "v"),
              ElementsAre(Started(MakePod("s", 0, "n2", OnSlice(2, "1g.10gb", 6)), 100)));
}

TEST(ApplyTest, ExpiredNominationIsNotBound) {
  SnapshotSpec spec = Before();
  spec.workloads[0].pods[0].expires = 100;
  EXPECT_THAT(PodsSettled(spec, {}, "v"), IsEmpty());
  EXPECT_THAT(Apply(CreateOrDie(spec), PlanOf({EvictAction{Ref("v", 0), "reclaim", ""}})),
              StatusIs(absl::StatusCode::kInvalidArgument, "actions[0]: pod s/0 of v is nowhere"));
}

TEST(ApplyTest, EndedPodStartsOver) {
  SnapshotSpec spec = Before();
  spec.workloads[1].pods = {MakeEndedPod("s", 1, PodPhase::kFailed)};
  EXPECT_THAT(PodsAfter(spec, {BindAction{Ref("w", 1), "n2", OnGpus({0})}}, "w"),
              ElementsAre(Started(MakePod("s", 1, "n2", OnGpus({0})), 100)));
}

Gpu GpuAfter(std::vector<Action> actions, const std::string& node, size_t gpu) {
  const Snapshot after = *Apply(CreateOrDie(Before()), PlanOf(std::move(actions)));
  return after.node(*after.FindNode(node)).gpus[gpu];
}

TEST(ApplyTest, SetMig) {
  EXPECT_TRUE(GpuAfter({SetMigAction{"n1", 1, true}}, "n1", 1).is_mig_enabled());
  EXPECT_FALSE(GpuAfter({SetMigAction{"n1", 1, true}, SetMigAction{"n1", 1, false}}, "n1", 1)
                   .is_mig_enabled());
  EXPECT_FALSE(GpuAfter({SetMigAction{"n1", 1, true}}, "n2", 1).is_mig_enabled());
}

TEST(ApplyTest, Create) {
  const Gpu gpu =
      GpuAfter({SetMigAction{"n1", 1, true}, CreateAction{"n1", 1, "3g.40gb", 4}}, "n1", 1);
  EXPECT_THAT(gpu.instances, ElementsAre(GpuInstance{"3g.40gb", 4}));
}

TEST(ApplyTest, DestroyLeavesMigModeOn) {
  const Gpu gpu = GpuAfter({DestroyAction{"n1", 2, "1g.10gb", 6}}, "n1", 2);
  EXPECT_THAT(gpu.instances, IsEmpty());
  EXPECT_TRUE(gpu.is_mig_enabled());
}

TEST(ApplyTest, InstanceForAPodOfTheSamePlan) {
  EXPECT_THAT(PodsAfter(Before(),
                        {DestroyAction{"n1", 2, "1g.10gb", 6}, CreateAction{"n1", 2, "1g.10gb", 5},
                         BindAction{Ref("v", 1), "n1", OnSlice(2, "1g.10gb", 5)}},
                        "v"),
              ElementsAre(Before().workloads[0].pods[0],
                          Started(MakePod("s", 1, "n1", OnSlice(2, "1g.10gb", 5)), 100)));
}

struct ErrorCase {
  Action action;
  std::string message;
};

TEST(ApplyTest, Errors) {
  const ErrorCase kCases[] = {
      {EvictAction{Ref("u", 0), "", ""},
       "actions[1]: there is no pod 0 of pod set \"s\" of workload \"u\""},
      {EvictAction{Ref("w", 3), "", ""},
       "actions[1]: there is no pod 3 of pod set \"s\" of workload \"w\""},
      {EvictAction{Ref("w", 1), "", ""}, "actions[1]: pod s/1 of w is nowhere"},
      {MoveAction{Ref("w", -1), "n1", {}},
       "actions[1]: there is no pod -1 of pod set \"s\" of workload \"w\""},
      {MoveAction{Ref("w", 1), "n1", OnGpus({1})}, "actions[1]: pod s/1 of w is nowhere"},
      {MoveAction{Ref("w", 0), "n9", OnGpus({1})}, "actions[1]: no node is named \"n9\""},
      {BindAction{{"w", "t", 0}, "n1", {}},
       "actions[1]: there is no pod 0 of pod set \"t\" of workload \"w\""},
      {BindAction{Ref("w", 1), "n9", OnGpus({1})}, "actions[1]: no node is named \"n9\""},
      {BindAction{Ref("w", 1), "n1", OnGpus({3})}, "actions[1]: node n1 has no GPU 3"},
      {BindAction{Ref("w", 1), "n1", OnShare(-1, 1)}, "actions[1]: node n1 has no GPU -1"},
      {BindAction{Ref("w", 0), "n1", OnGpus({1})}, "actions[1]: pod s/0 of w runs already"},
      {NominateAction{Ref("u", 0), "n1", {}},
       "actions[1]: there is no pod 0 of pod set \"s\" of workload \"u\""},
      {NominateAction{Ref("v", 1), "n1", OnSlice(64, "1g.10gb", 6)},
       "actions[1]: node n1 has no GPU 64"},
      {NominateAction{Ref("w", 0), "n1", OnGpus({1})}, "actions[1]: pod s/0 of w runs already"},
      {SetMigAction{"n9", 0, true}, "actions[1]: no node is named \"n9\""},
      {SetMigAction{"n1", 3, true}, "actions[1]: node n1 has no GPU 3"},
      {CreateAction{"n9", 0, "1g.10gb", 0}, "actions[1]: no node is named \"n9\""},
      {CreateAction{"n1", -1, "1g.10gb", 0}, "actions[1]: node n1 has no GPU -1"},
      {DestroyAction{"n9", 0, "1g.10gb", 0}, "actions[1]: no node is named \"n9\""},
      {DestroyAction{"n1", 3, "1g.10gb", 0}, "actions[1]: node n1 has no GPU 3"},
      {DestroyAction{"n1", 2, "1g.10gb", 5},
       "actions[1]: GPU 2 of n1 has no instance 1g.10gb at slice 5"},
      {DestroyAction{"n1", 2, "2g.20gb", 6},
       "actions[1]: GPU 2 of n1 has no instance 2g.20gb at slice 6"},
      // What contradicts itself only as a whole.
      {BindAction{Ref("w", 1), "n1", OnGpus({0})},
       "workloads[1].pods[1]: GPU 0 of n1 is already held by another pod"},
      {BindAction{Ref("v", 1), "n1", OnSlice(2, "1g.10gb", 5)},
       "workloads[0].pods[1]: GPU 2 of n1 has no instance 1g.10gb at slice 5"},
      {CreateAction{"n1", 1, "8g", 0},
       "nodes[0].gpus[1].instances[0].profile: a H100-80GB has no profile \"8g\""},
      {SetMigAction{"n1", 0, true}, "workloads[1].pods[0]: GPU 0 of n1 is in MIG mode"},
  };
  const Snapshot snapshot = CreateOrDie(Before());
  for (const ErrorCase& test : kCases) {
    const Plan plan = PlanOf({SetMigAction{"n2", 1, true}, test.action});
    for (const auto apply : {&Apply, &ApplyAndSettle}) {
      EXPECT_THAT(apply(snapshot, plan),
                  StatusIs(absl::StatusCode::kInvalidArgument, test.message));
    }
  }
}

TEST(ApplyTest, UndatedDoesNotSaySinceWhenPodsRun) {
  const Snapshot snapshot = CreateOrDie(Before());
  const Plan plan = PlanOf({BindAction{Ref("w", 1), "n2", OnGpus({0})}});
  const PodId p = *snapshot.FindPod(Ref("w", 1));
  EXPECT_EQ(ApplyAndSettle(snapshot, plan)->pod_started(p), snapshot.now());
  const Snapshot undated = *ApplyAndSettleUndated(snapshot, plan);
  EXPECT_EQ(undated.pod_phase(p), PodPhase::kRunning);
  EXPECT_EQ(undated.pod_started(p), INT64_MAX);
  const PodId other = *snapshot.FindPod(Ref("w", 0));
  EXPECT_EQ(undated.pod_started(other), snapshot.pod_started(other));
}

TEST(ApplyTest, ReleasingPodCannotBeBoundElsewhere) {
  const Plan plan =
      PlanOf({EvictAction{Ref("w", 0), "", ""}, BindAction{Ref("w", 0), "n2", OnGpus({0})}});
  EXPECT_THAT(Apply(CreateOrDie(Before()), plan),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "workloads[1].pods[1]: is listed twice (same pod_set and index)"));
}

}  // namespace
}  // namespace tessera
