#include "tessera/preemption/repartition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/preemption/plan_support.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Options = ClusterRepartitionOptions;
using Wanted = std::vector<WantedInstances>;

absl::StatusOr<ClusterRepartition> PlanFor(const Snapshot& snapshot, const Wanted& wanted,
                                           const Options& options = {}) {
  return PlanRepartition(snapshot, wanted, options);
}

// n1: an A100 with a busy 1g at 0 and an idle 1g at 5, and an empty one without MIG.
SnapshotSpec TwoGpus() {
  SnapshotSpec spec;
  spec.nodes = {MakeMigNode(
      "n1", {MakeMigGpu(MigMode::kDynamic, {{"1g.5gb", 5}}), MakeMigGpu(MigMode::kDynamic)})};
  AddSlicePod(spec, "w", 0, 0, "1g.5gb", 0);
  return spec;
}

struct PlanCase {
  std::string name;
  std::function<void(SnapshotSpec&)> change;
  Wanted wanted;
  std::vector<std::string> actions;
};

class RepartitionTableTest : public ::testing::TestWithParam<PlanCase> {};

TEST_P(RepartitionTableTest, HasTheFewestOperations) {
  SnapshotSpec spec = TwoGpus();
  GetParam().change(spec);
  const Snapshot snapshot = CreateOrDie(spec);
  const auto result = PlanFor(snapshot, GetParam().wanted);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->outcome, RepartitionOutcome::kPlanned);
  EXPECT_EQ(result->gpu_model, "A100-40GB");
  EXPECT_EQ(TextsOf(result->actions), GetParam().actions);
  EXPECT_THAT(Offences(snapshot, result->actions), IsEmpty());
  EXPECT_THAT(Apply(snapshot, {result->actions, {}}), IsOk());
}

INSTANTIATE_TEST_SUITE_P(
    Plans, RepartitionTableTest,
    ::testing::Values(
        PlanCase{"WhatIsIdleCounts", [](SnapshotSpec&) {}, {{"1g.5gb", 1}}, {}},
        PlanCase{
            "BesideWhatIsThere", [](SnapshotSpec&) {}, {{"2g.10gb", 1}}, {"create n1/0 2g.10gb@2"}},
        PlanCase{"DestroysWhatIsInTheWay",
                 [](SnapshotSpec& s) { s.nodes[0].gpus[1].healthy = false; },
                 {{"3g.20gb", 1}},
                 {"destroy n1/0 1g.5gb@5", "create n1/0 3g.20gb@4"}},
        PlanCase{"SwitchesAnEmptyGpu",
                 [](SnapshotSpec&) {},
                 {{"4g.20gb", 1}},
                 {"set_mig n1/1 on", "create n1/1 4g.20gb@0"}},
        PlanCase{"EntriesAddUp",
                 [](SnapshotSpec&) {},
                 {{"1g.5gb", 1}, {"1g.5gb", 1}},
                 {"create n1/0 1g.5gb@1"}},
        PlanCase{
            "ReleasingIsNotTouched",
            [](SnapshotSpec& s) { AddSlicePod(s, "x", 0, 0, "1g.5gb", 5, PodPhase::kReleasing); },
            {{"3g.20gb", 1}},
            {"set_mig n1/1 on", "create n1/1 3g.20gb@0"}},
        PlanCase{
            "NominatedIsNotTouched",
            [](SnapshotSpec& s) { AddSlicePod(s, "x", 0, 0, "1g.5gb", 5, PodPhase::kNominated); },
            {{"3g.20gb", 1}},
            {"set_mig n1/1 on", "create n1/1 3g.20gb@0"}}),
    kNameOfCase);

TEST(RepartitionTest, LatencyIsTheSumOfTheCosts) {
  SnapshotSpec spec = TwoGpus();
  Options options;
  options.costs = {.destroy = 2, .create = 3, .switch_mig = 50, .reset = 700};
  // An A100 is reset.
  EXPECT_EQ(PlanFor(CreateOrDie(spec), {{"4g.20gb", 1}}, options)->latency, 753);
  spec.nodes[0].gpus[1].healthy = false;
  EXPECT_EQ(PlanFor(CreateOrDie(spec), {{"3g.20gb", 1}}, options)->latency, 5);
}

TEST(RepartitionTest, OnlyOnTheNamedNodeAndModel) {
  SnapshotSpec spec = TwoGpus();
  spec.nodes.push_back(MakeMigNode("n2", {MakeMigGpu(MigMode::kDynamic)}, "A100-80GB"));
  spec.nodes.push_back(
      MakeMigNode("n3", {MakeMigGpu(MigMode::kDynamic, {{"1g.10gb", 0}})}, "H100-80GB"));
  const Snapshot snapshot = CreateOrDie(spec);
  EXPECT_THAT(TextsOf(PlanFor(snapshot, {{"2g.10gb", 1}}, {.node = "n1"})->actions),
              ElementsAre("create n1/0 2g.10gb@2"));
  // Two models have it: the one with fewer operations serves.
  const auto anywhere = PlanFor(snapshot, {{"2g.20gb", 1}});
  EXPECT_EQ(anywhere->gpu_model, "H100-80GB");
  EXPECT_THAT(TextsOf(anywhere->actions), ElementsAre("create n3/0 2g.20gb@2"));
  EXPECT_EQ(PlanFor(snapshot, {{"2g.20gb", 1}}, {.gpu_model = "A100-80GB"})->actions.size(), 2u);
}

TEST(RepartitionTest, TellsWhatBarsTheGpus) {
  SnapshotSpec spec;
  std::vector<Gpu> gpus(7, MakeMigGpu(MigMode::kDynamic));
  gpus[0].mig = MigMode::kOff;
  gpus[1] = MakeMigGpu(MigMode::kStatic, {{"1g.5gb", 0}});
  gpus[2].healthy = false;
  spec.nodes = {MakeMigNode("n1", gpus), MakeMigNode("n2", {MakeMigGpu(MigMode::kDynamic)})};
  spec.nodes[1].schedulable = false;
  spec.workloads = {MakeWorkload("whole", "", {MakePodSet("s", 1, WholeGpus(1))}),
                    MakeWorkload("half", "", {MakePodSet("s", 1, Fraction(3500))})};
  spec.workloads[0].pods = {MakePod("s", 0, "n1", OnGpus({3}), PodPhase::kReleasing)};
  spec.workloads[1].pods = {MakePod("s", 0, "n1", OnShare(4, 3500), PodPhase::kNominated)};
  AddSlicePod(spec, "waits", 0, 5, "1g.5gb", 0, PodPhase::kNominated);
  spec.nodes[0].gpus[5].instances.clear();
  AddSlicePod(spec, "alone", 0, 6, "1g.5gb", 0).isolation = Isolation::kGpuAlone;
  const auto result = PlanFor(CreateOrDie(spec), {{"3g.20gb", 1}});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->outcome, RepartitionOutcome::kInfeasible);
  EXPECT_THAT(
      result->barred,
      ElementsAre(BarredGpu{"n1", 0, GpuBar::kMigOff}, BarredGpu{"n1", 1, GpuBar::kStatic},
                  BarredGpu{"n1", 2, GpuBar::kUnhealthy}, BarredGpu{"n1", 3, GpuBar::kInUse},
                  BarredGpu{"n1", 4, GpuBar::kInUse}, BarredGpu{"n1", 5, GpuBar::kReserved},
                  BarredGpu{"n1", 6, GpuBar::kAlone}, BarredGpu{"n2", 0, GpuBar::kUnschedulable}));
  EXPECT_EQ(result->text,
            "there is no room: of 8 GPUs 0 may change, 1 is unschedulable, 1 is unhealthy, "
            "1 is MIG off, 2 are in use, 1 is reserved, 1 is alone, 1 is static");
  // What is idle on the static one counts.
  EXPECT_EQ(PlanFor(CreateOrDie(spec), {{"1g.5gb", 1}})->outcome, RepartitionOutcome::kPlanned);
}

TEST(RepartitionTest, NodeOfATenantAlone) {
  SnapshotSpec spec = TwoGpus();
  spec.workloads[0].isolation = Isolation::kNodeAlone;
  const auto result = PlanFor(CreateOrDie(spec), {{"1g.5gb", 1}});
  EXPECT_THAT(result->barred,
              ElementsAre(BarredGpu{"n1", 0, GpuBar::kAlone}, BarredGpu{"n1", 1, GpuBar::kAlone}));
}

TEST(RepartitionTest, NothingOrTooMuchWanted) {
  const Snapshot snapshot = CreateOrDie(TwoGpus());
  EXPECT_THAT(PlanFor(snapshot, {})->actions, IsEmpty());
  EXPECT_EQ(PlanFor(snapshot, {{"1g.5gb", int64_t{1} << 62}})->outcome,
            RepartitionOutcome::kInfeasible);
  EXPECT_EQ(PlanFor(snapshot, {{"1g.5gb", 14}})->text, "there is no room: of 2 GPUs 2 may change");
}

TEST(RepartitionTest, BudgetEnds) {
  const auto result = PlanFor(CreateOrDie(TwoGpus()), {{"2g.10gb", 4}}, {.budget = 1});
  EXPECT_EQ(result->outcome, RepartitionOutcome::kBudgetExhausted);
  EXPECT_EQ(result->text, "the budget ended the search: of 2 GPUs 2 may change");
}

struct ErrorCase {
  std::string name;
  Wanted wanted;
  Options options;
  std::string message;
};

class RepartitionErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(RepartitionErrorTest, NamesTheField) {
  SnapshotSpec spec = TwoGpus();
  spec.nodes.push_back(MakeMigNode("n2", {MakeMigGpu(MigMode::kDynamic)}, "H100-80GB"));
  spec.nodes.push_back(MakeNode("cpu"));
  EXPECT_THAT(PlanFor(CreateOrDie(spec), GetParam().wanted, GetParam().options),
              StatusIs(absl::StatusCode::kInvalidArgument, GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Errors, RepartitionErrorTest,
    ::testing::Values(
        ErrorCase{"UnknownProfile",
                  {{"1g.5gb", 1}, {"3g.20bg", 1}},
                  {},
                  "wanted[1].profile: no GPU model has a profile \"3g.20bg\"; did you mean "
                  "\"3g.20gb\"?"},
        ErrorCase{"ProfileOfAnotherProduct",
                  {{"1g.6gb", 1}},
                  {},
                  "wanted[0].profile: 1g.6gb is a profile of A30-24GB, not of A100-40GB, "
                  "H100-80GB"},
        ErrorCase{"ProfileOfAnotherNode",
                  {{"3g.20gb", 1}},
                  {.node = "n2"},
                  "wanted[0].profile: 3g.20gb is a profile of A100-40GB, not of H100-80GB"},
        ErrorCase{"ProfilesOfTwoProducts",
                  {{"1g.5gb", 1}, {"3g.40gb", 1}},
                  {},
                  "wanted: no GPU model has all of 1g.5gb, 3g.40gb"},
        ErrorCase{"UnknownNode",
                  {{"1g.5gb", 1}},
                  {.node = "n3"},
                  "node: no node is named \"n3\"; did you mean \"n1\"?"},
        ErrorCase{"NodeWithoutGpus", {{"1g.5gb", 1}}, {.node = "cpu"}, "node: cpu has no GPUs"},
        ErrorCase{"UnknownModel",
                  {{"1g.5gb", 1}},
                  {.gpu_model = "A100-41GB"},
                  "gpu_model: no node has GPUs of model \"A100-41GB\"; did you mean "
                  "\"A100-40GB\"?"},
        ErrorCase{"ModelOfAnotherNode",
                  {{"1g.5gb", 1}},
                  {.node = "n1", .gpu_model = "H100-80GB"},
                  "gpu_model: the GPUs of n1 are A100-40GB, not H100-80GB"},
        ErrorCase{"NegativeCount", {{"1g.5gb", -1}}, {}, "wanted[0].count: -1 is negative"},
        ErrorCase{"CountsBeyond64Bits",
                  {{"1g.5gb", 1}, {"1g.5gb", std::numeric_limits<int64_t>::max()}},
                  {},
                  "wanted[1].count: too many 1g.5gb in sum"},
        ErrorCase{"NegativeCost",
                  {{"1g.5gb", 1}},
                  {.costs = {.create = -1}},
                  "costs.create: -1 is not in 0..1099511627776"}),
    kNameOfCase);

TEST(RepartitionTest, ClusterWithoutGpus) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("cpu")};
  EXPECT_THAT(PlanFor(CreateOrDie(spec), {{"1g.5gb", 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument, "wanted[0].profile: no node has GPUs"));
}

// Instances of `profile`, idle or not.
int64_t CountOf(const Snapshot& snapshot, const std::string& profile) {
  int64_t count = 0;
  for (int i = 0; i < snapshot.num_nodes(); ++i) {
    for (const Gpu& gpu : snapshot.node(NodeId(i)).gpus) {
      count += std::ranges::count(gpu.instances, profile, &GpuInstance::profile);
    }
  }
  return count;
}

TEST(RepartitionProperties, PlansAreLegalWhateverTheOrderOfTheInput) {
  const int cases = RandomCases(1000, 10000);
  int planned = 0, with_actions = 0;
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const SnapshotSpec spec = DrawSlicedCluster(random);
    const Snapshot snapshot = CreateOrDie(spec);
    const Wanted wanted = {{AnyProfile(random), 1 + random.Below(3)}};
    const Options options = {.budget = 20000};
    const auto result = PlanFor(snapshot, wanted, options);
    if (!result.ok()) continue;  // no such profile there
    SnapshotSpec shuffled = random.Shuffled(spec);
    for (Node& node : shuffled.nodes) {
      for (Gpu& gpu : node.gpus) std::ranges::reverse(gpu.instances);
    }
    ASSERT_EQ(*result, *PlanFor(CreateOrDie(shuffled), wanted, options)) << "seed " << seed;
    if (result->outcome != RepartitionOutcome::kPlanned) continue;
    ++planned;
    with_actions += !result->actions.empty();
    // The referee knows what is held and reserved, so that nothing of it was touched.
    ASSERT_THAT(Offences(snapshot, result->actions), IsEmpty()) << "seed " << seed;
    const absl::StatusOr<Snapshot> next = Apply(snapshot, {result->actions, {}});
    ASSERT_THAT(next, IsOk()) << "seed " << seed;
    const auto again = PlanFor(*next, wanted, options);
    ASSERT_EQ(again->outcome, RepartitionOutcome::kPlanned) << "seed " << seed;
    ASSERT_THAT(again->actions, IsEmpty()) << "seed " << seed;
    ASSERT_GE(CountOf(*next, wanted[0].profile), wanted[0].count) << "seed " << seed;
  }
  EXPECT_GT(planned, cases / 5);
  EXPECT_GT(with_actions, cases / 10);
  RecordProperty("planned", planned);
  RecordProperty("with_actions", with_actions);
}

}  // namespace
}  // namespace tessera
