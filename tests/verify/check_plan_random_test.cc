// Plans nobody would make: the referee answers all of them, and whatever it lets
// pass can be carried out.

#include <random>

#include "tests/verify/plan_scene.h"

namespace tessera {
namespace {

class PlanMaker {
 public:
  explicit PlanMaker(uint32_t seed) : random_(seed) {}

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[Below(static_cast<int>(values.size()))];
  }

  PodRef AnyPod() {
    return {OneOf<const char*>({"whole", "half", "slice", "cpu", "", "none"}),
            OneOf<const char*>({"s", "s", "s", "s", "t"}), Below(5) - 1};
  }
  std::string AnyNode() { return OneOf<const char*>({"n1", "n1", "n2", "n3"}); }
  int AnyGpu() { return Below(12) == 0 ? OneOf({-1, 63, 64, INT32_MAX, INT32_MIN}) : Below(3); }
  std::string AnyProfile() {
    return OneOf<const char*>({"1g.10gb", "1g.10gb", "2g.20gb", "7g.80gb", "1g.10gb+me", "?"});
  }
  int AnyStart() {
    return Below(12) == 0 ? OneOf({-1, 15, 16, 32, INT32_MAX, INT32_MIN}) : Below(8);
  }
  Devices AnyDevices(const PodRef& pod) {
    const int kind = Below(8) == 0 ? Below(4) : -1;
    Devices devices;
    if (pod.workload == "whole" || kind == 0) devices.gpus = {AnyGpu()};
    if (pod.workload == "half" || kind == 1) {
      devices.shares = {
          {AnyGpu(), Below(10) == 0 ? OneOf({INT64_MIN, INT64_MAX, int64_t{0}}) : kHalf}};
    }
    if (pod.workload == "slice" || kind == 2) {
      devices.slices = {{AnyGpu(), AnyProfile(), AnyStart()}};
    }
    if (kind == 3) devices = Devices();
    return devices;
  }
  Action AnyAction() {
    const PodRef pod = AnyPod();
    switch (Below(8)) {
      case 0:
        return EvictAction{pod, "", ""};
      case 1:
        return MoveAction{pod, AnyNode(), AnyDevices(pod)};
      case 2:
        return DestroyAction{AnyNode(), AnyGpu(), AnyProfile(), AnyStart()};
      case 3:
        return SetMigAction{AnyNode(), AnyGpu(), Below(2) == 0};
      case 4:
        return CreateAction{AnyNode(), AnyGpu(), AnyProfile(), AnyStart()};
      case 5:
        return NominateAction{pod, AnyNode(), AnyDevices(pod)};
      default:
        return BindAction{pod, AnyNode(), AnyDevices(pod)};
    }
  }

 private:
  std::mt19937 random_;
};

// Two nodes of three dynamic GPUs, and elastic workloads of every kind.
SnapshotSpec ElasticSpec() {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n1", 3), MakeNode("n2", 3)};
  for (Node& node : spec.nodes) {
    for (Gpu& gpu : node.gpus) gpu.mig = MigMode::kDynamic;
  }
  spec.nodes[0].gpus[2] = MakeMigGpu(MigMode::kDynamic, {{"1g.10gb", 0}, {"1g.10gb", 5}});
  const std::vector<std::pair<const char*, Request>> kinds = {{"whole", WholeGpus(1)},
                                                              {"half", Fraction(kHalf)},
                                                              {"slice", SliceOfProfile("1g.10gb")},
                                                              {"cpu", CpuOnly(20)}};
  for (const auto& [name, request] : kinds) {
    spec.workloads.push_back(
        MakeWorkload(name, "", {WithMinCount(MakePodSet("s", 3, request), 0)}));
  }
  spec.workloads[0].isolation = Isolation::kNodeAlone;
  spec.workloads[1].isolation = Isolation::kGpuAlone;
  for (Workload& workload : spec.workloads) workload.tenant = workload.name;
  return spec;
}

// A legal plan of those of `tries` random actions that do not make it illegal.
Plan LegalPlan(const Snapshot& snapshot, PlanMaker& maker, int tries) {
  CheckPlanOptions options;
  Plan plan;
  const auto is_action = [](const PlanViolation& v) { return v.action >= 0; };
  for (int i = 0; i < tries; ++i) {
    plan.actions.push_back(maker.AnyAction());
    if (std::ranges::any_of(CheckPlan(snapshot, plan, options), is_action)) {
      plan.actions.pop_back();
    }
  }
  return plan;
}

// What the plan leaves pending, as the referee says.
void ListPending(const Snapshot& snapshot, Plan& plan) {
  for (const PlanViolation& violation : CheckPlan(snapshot, plan)) {
    ASSERT_EQ(violation.action, -1);
    ASSERT_THAT(violation.text, ::testing::EndsWith(": is not listed"));
    std::string name = violation.text.substr(std::string("pending workload ").size());
    name.resize(name.find(':'));
    plan.pending.push_back(MakePending(name, false));
  }
}

TEST(CheckPlanRandomTest, NonsenseIsAnswered) {
  const Snapshot snapshot = CreateOrDie(ElasticSpec());
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    PlanMaker maker(seed);
    Plan plan;
    for (int i = 0; i < 40; ++i) plan.actions.push_back(maker.AnyAction());
    EXPECT_THAT(CheckPlan(snapshot, plan), ::testing::Not(::testing::IsEmpty()));
  }
}

TEST(CheckPlanRandomTest, WhatIsLegalCanBeCarriedOutAgainAndAgain) {
  int moved = 0, created = 0, bound = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    PlanMaker maker(seed);
    Snapshot snapshot = CreateOrDie(ElasticSpec());
    for (int round = 0; round < 4; ++round) {
      Plan plan = LegalPlan(snapshot, maker, 80);
      ListPending(snapshot, plan);
      EXPECT_THAT(CheckPlan(snapshot, plan), ::testing::IsEmpty());
      for (const Action& action : plan.actions) {
        moved += std::holds_alternative<MoveAction>(action);
        created += std::holds_alternative<CreateAction>(action);
        bound += std::holds_alternative<BindAction>(action);
      }
      ASSERT_THAT(Apply(snapshot, plan), IsOk()) << "seed " << seed;
      absl::StatusOr<Snapshot> next =
          maker.Below(2) == 0 ? Apply(snapshot, plan) : ApplyAndSettle(snapshot, plan);
      ASSERT_THAT(next, IsOk()) << "seed " << seed;
      // Nothing more is pending than the plan said.
      Plan nothing;
      ListPending(*next, nothing);
      EXPECT_EQ(nothing.pending, plan.pending);
      snapshot = *std::move(next);
    }
  }
  EXPECT_GT(moved, 100);
  EXPECT_GT(created, 100);
  EXPECT_GT(bound, 100);
}

}  // namespace
}  // namespace tessera
