#include "tessera/preemption/defragmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tessera/gpu/sliced_gpu.h"
#include "tests/preemption/plan_support.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Options = ClusterDefragmentationOptions;
using Outcome = ClusterDefragmentationOutcome;

SnapshotSpec EmptyGpus(int gpus, int nodes = 1) {
  SnapshotSpec spec;
  for (int n = 1; n <= nodes; ++n) {
    spec.nodes.push_back(
        MakeMigNode(absl::StrCat("n", n),
                    std::vector<Gpu>(static_cast<size_t>(gpus), MakeMigGpu(MigMode::kDynamic))));
  }
  return spec;
}

// An A100 with 1g at 0, 1 and 5: a 4g needs 0-3.
SnapshotSpec Holes() {
  SnapshotSpec spec = EmptyGpus(1);
  AddSlicePod(spec, "a", 0, 0, "1g.5gb", 0);
  AddSlicePod(spec, "b", 0, 0, "1g.5gb", 1);
  AddSlicePod(spec, "c", 0, 0, "1g.5gb", 5);
  return spec;
}

// Two A100 on one node (or two), each with a 3g at 0.
SnapshotSpec HalfUsed(int nodes) {
  SnapshotSpec spec = EmptyGpus(nodes == 1 ? 2 : 1, nodes);
  AddSlicePod(spec, "a", 0, 0, "3g.20gb", 0);
  AddSlicePod(spec, "b", static_cast<size_t>(nodes - 1), nodes == 1 ? 1 : 0, "3g.20gb", 0);
  return spec;
}

struct PlanCase {
  std::string name;
  std::function<SnapshotSpec()> spec;
  std::string profile;
  std::vector<std::string> actions;
  GpuSlice place;
  bool exists;
};

class DefragmentationTableTest : public ::testing::TestWithParam<PlanCase> {};

TEST_P(DefragmentationTableTest, MovesLittleAndLegally) {
  const Snapshot snapshot = CreateOrDie(GetParam().spec());
  const auto result = PlanDefragmentation(snapshot, GetParam().profile);
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(result->outcome, Outcome::kPlanned) << result->text;
  EXPECT_EQ(TextsOf(result->actions), GetParam().actions);
  EXPECT_EQ(result->place, GetParam().place);
  EXPECT_EQ(result->exists, GetParam().exists);
  EXPECT_TRUE(result->optimal());
  EXPECT_THAT(Offences(snapshot, result->actions), IsEmpty());
  EXPECT_THAT(Apply(snapshot, {result->actions, {}}), IsOk());
  EXPECT_THAT(ApplyAndSettle(snapshot, {result->actions, {}}), IsOk());
}

SnapshotSpec Changed(SnapshotSpec spec, const std::function<void(SnapshotSpec&)>& change) {
  change(spec);
  return spec;
}

INSTANTIATE_TEST_SUITE_P(
    Plans, DefragmentationTableTest,
    ::testing::Values(
        PlanCase{
            "FitsAlready", Holes, "2g.10gb", {"create n1/0 2g.10gb@2"}, {0, "2g.10gb", 2}, true},
        PlanCase{"HolesAreJoined",
                 Holes,
                 "4g.20gb",
                 {"create n1/0 1g.5gb@4", "move a/s/0 to n1/0 1g.5gb@4", "create n1/0 1g.5gb@6",
                  "move b/s/0 to n1/0 1g.5gb@6"},
                 {0, "4g.20gb", 0},
                 false},
        PlanCase{
            "ToWhatAnotherPodIsLeaving",
            [] {
              SnapshotSpec spec = EmptyGpus(1);
              AddSlicePod(spec, "a", 0, 0, "2g.10gb", 0);
              AddSlicePod(spec, "b", 0, 0, "1g.5gb", 4);
              return spec;
            },
            "4g.20gb",
            {"create n1/0 1g.5gb@6", "move b/s/0 to n1/0 1g.5gb@6", "move a/s/0 to n1/0 2g.10gb@4"},
            {0, "4g.20gb", 0},
            false},
        PlanCase{"HalvesAreJoined",
                 [] { return HalfUsed(1); },
                 "7g.40gb",
                 {"create n1/1 3g.20gb@4", "move a/s/0 to n1/1 3g.20gb@4"},
                 {0, "7g.40gb", 0},
                 false},
        PlanCase{"HalvesOfTwoNodesAreJoined",
                 [] { return HalfUsed(2); },
                 "7g.40gb",
                 {"create n2/0 3g.20gb@4", "move a/s/0 to n2/0 3g.20gb@4"},
                 {0, "7g.40gb", 0},
                 false},
        PlanCase{"UnmovableStays",
                 [] {
                   return Changed(HalfUsed(1),
                                  [](SnapshotSpec& s) { s.workloads[0].movable = false; });
                 },
                 "7g.40gb",
                 {"create n1/0 3g.20gb@4", "move b/s/0 to n1/0 3g.20gb@4"},
                 {1, "7g.40gb", 0},
                 false},
        PlanCase{"NotPreemptibleStaysUnlessMovable",
                 [] {
                   return Changed(HalfUsed(1), [](SnapshotSpec& s) {
                     s.workloads[0].priority = kNonPreemptiblePriority;
                     s.workloads[1].priority = kNonPreemptiblePriority;
                     s.workloads[1].movable = true;
                   });
                 },
                 "7g.40gb",
                 {"create n1/0 3g.20gb@4", "move b/s/0 to n1/0 3g.20gb@4"},
                 {1, "7g.40gb", 0},
                 false},
        PlanCase{"IdleInTheWayIsDestroyed",
                 [] {
                   return Changed(HalfUsed(1), [](SnapshotSpec& s) {
                     s.nodes[0].gpus[1].instances.push_back({"1g.5gb", 4});
                     s.nodes[0].gpus[1].instances.push_back({"1g.5gb", 5});
                   });
                 },
                 "7g.40gb",
                 {"destroy n1/1 1g.5gb@4", "destroy n1/1 1g.5gb@5", "create n1/1 3g.20gb@4",
                  "move a/s/0 to n1/1 3g.20gb@4"},
                 {0, "7g.40gb", 0},
                 false},
        PlanCase{
            "ToAnIdleInstanceOfAStaticGpu",
            [] {
              return Changed(HalfUsed(1), [](SnapshotSpec& s) {
                s.nodes[0].gpus[1] = MakeMigGpu(MigMode::kStatic, {{"3g.20gb", 4}, {"3g.20gb", 0}});
              });
            },
            "7g.40gb",
            {"move a/s/0 to n1/1 3g.20gb@4"},
            {0, "7g.40gb", 0},
            false},
        PlanCase{"AnEmptyGpuIsSwitched",
                 [] { return EmptyGpus(1); },
                 "7g.40gb",
                 {"set_mig n1/0 on", "create n1/0 7g.40gb@0"},
                 {0, "7g.40gb", 0},
                 true}),
    kNameOfCase);

struct BarCase {
  std::string name;
  std::function<void(SnapshotSpec&)> change;  // of two halves on one node
  std::string text;
};

class DefragmentationBarTest : public ::testing::TestWithParam<BarCase> {};

TEST_P(DefragmentationBarTest, NothingHelps) {
  SnapshotSpec spec = HalfUsed(1);
  GetParam().change(spec);
  const auto result = PlanDefragmentation(CreateOrDie(spec), "7g.40gb");
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->outcome, Outcome::kInfeasible);
  EXPECT_EQ(result->text, "no moves make room: of 2 GPUs " + GetParam().text);
  EXPECT_THAT(result->actions, IsEmpty());
}

void MakeBothStay(SnapshotSpec& spec) {
  for (Workload& w : spec.workloads) w.movable = false;
}

INSTANTIATE_TEST_SUITE_P(
    Bars, DefragmentationBarTest,
    ::testing::Values(
        BarCase{"Unmovable", MakeBothStay, "2 may change"},
        BarCase{"Static",
                [](SnapshotSpec& s) {
                  for (Gpu& gpu : s.nodes[0].gpus) gpu.mig = MigMode::kStatic;
                },
                "0 may change, 2 are static"},
        BarCase{"Unhealthy", [](SnapshotSpec& s) { s.nodes[0].gpus[1].healthy = false; },
                "1 may change, 1 is unhealthy"},
        BarCase{"Nominated",
                [](SnapshotSpec& s) {
                  for (Workload& w : s.workloads) w.pods[0].phase = PodPhase::kNominated;
                },
                "2 may change"},
        BarCase{"Releasing",
                [](SnapshotSpec& s) {
                  for (Workload& w : s.workloads) w.pods[0].phase = PodPhase::kReleasing;
                },
                "2 may change"},
        BarCase{"RoomIsReserved",
                [](SnapshotSpec& s) {
                  AddSlicePod(s, "x", 0, 0, "3g.20gb", 4, PodPhase::kNominated);
                  AddSlicePod(s, "y", 0, 1, "3g.20gb", 4, PodPhase::kNominated);
                },
                "2 may change"},
        BarCase{"Unschedulable", [](SnapshotSpec& s) { s.nodes[0].schedulable = false; },
                "0 may change, 2 are unschedulable"},
        BarCase{"TiedToATopologyDomain",
                [](SnapshotSpec& s) {
                  s.levels = {"rack"};
                  s.nodes[0].topology = {{"rack", "r"}};
                  for (Workload& w : s.workloads) w.gang.topology.required = "rack";
                },
                "2 may change"},
        BarCase{"NodeIsOverCommitted",
                [](SnapshotSpec& s) {
                  for (Workload& w : s.workloads) w.gang.pod_sets[0].request.cpu = Cores(64);
                },
                "2 may change"},
        BarCase{"LabelsHaveChanged",
                [](SnapshotSpec& s) {
                  for (Workload& w : s.workloads) {
                    w.gang.pod_sets[0].selector = {{"zone", SelectorOperator::kIn, {"a"}}};
                  }
                },
                "2 may change"}),
    kNameOfCase);

TEST(DefragmentationTest, CostsDecide) {
  const Snapshot snapshot = CreateOrDie(HalfUsed(1));
  const auto cost_of = [&](PodId p) { return snapshot.pod_ref(p).workload == "a" ? 7 : 5; };
  const auto result = PlanDefragmentation(snapshot, "7g.40gb", {.cost_of = cost_of});
  EXPECT_THAT(TextsOf(result->actions),
              ElementsAre("create n1/0 3g.20gb@4", "move b/s/0 to n1/0 3g.20gb@4"));
  EXPECT_EQ(result->cost, 5);
  EXPECT_EQ(result->moves, 1);
}

// A move between nodes that the other node does not allow.
struct NodeCase {
  std::string name;
  std::function<void(SnapshotSpec&)> change;  // of two halves on n1 and n2
};

class OtherNodeTest : public ::testing::TestWithParam<NodeCase> {};

TEST_P(OtherNodeTest, TheOtherPodMovesInstead) {
  SnapshotSpec spec = HalfUsed(2);
  GetParam().change(spec);
  const Snapshot snapshot = CreateOrDie(spec);
  const auto result = PlanDefragmentation(snapshot, "7g.40gb");
  ASSERT_EQ(result->outcome, Outcome::kPlanned);
  EXPECT_THAT(TextsOf(result->actions),
              ElementsAre("create n1/0 3g.20gb@4", "move b/s/0 to n1/0 3g.20gb@4"));
  EXPECT_TRUE(result->optimal());
  EXPECT_THAT(Offences(snapshot, result->actions), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Bars, OtherNodeTest,
    ::testing::Values(
        NodeCase{"Cpu",
                 [](SnapshotSpec& s) {
                   s.workloads[0].gang.pod_sets[0].request.cpu = Cores(60);
                   s.nodes[1].capacity.cpu = Cores(32);
                 }},
        NodeCase{"Memory",
                 [](SnapshotSpec& s) {
                   s.workloads[0].gang.pod_sets[0].request.memory = 300 * kBytesPerGiB;
                   s.nodes[1].capacity.memory = 256 * kBytesPerGiB;
                 }},
        NodeCase{"Taint",
                 [](SnapshotSpec& s) {
                   s.nodes[1].taints = {{"dedicated", "llm", TaintEffect::kNoSchedule}};
                   s.workloads[1].gang.pod_sets[0].tolerations = {
                       {.key = "dedicated", .exists = true, .value = ""}};
                 }},
        NodeCase{
            "Selector",
            [](SnapshotSpec& s) {
              s.nodes[0].labels["zone"] = "a";
              s.workloads[0].gang.pod_sets[0].selector = {{"zone", SelectorOperator::kIn, {"a"}}};
            }},
        NodeCase{"MaxDisrupted", [](SnapshotSpec& s) { s.workloads[0].max_disrupted = 0; }}),
    kNameOfCase);

TEST(DefragmentationTest, WithinTheNamedNode) {
  SnapshotSpec spec = HalfUsed(2);
  const auto result = PlanDefragmentation(CreateOrDie(spec), "7g.40gb", {.node = "n1"});
  EXPECT_EQ(result->outcome, Outcome::kInfeasible);
  EXPECT_EQ(result->text, "no moves make room: of 1 GPU 1 may change");
}

TEST(DefragmentationTest, UndecidedWhereWhatIsFoundIsNotAllowed) {
  SnapshotSpec spec = HalfUsed(2);
  for (Workload& w : spec.workloads) w.gang.pod_sets[0].request.cpu = Cores(40);
  const auto result = PlanDefragmentation(CreateOrDie(spec), "7g.40gb");
  EXPECT_EQ(result->outcome, Outcome::kUndecided);
  EXPECT_EQ(result->lower_bound, 1);
  EXPECT_EQ(result->text, "no moves were found: of 2 GPUs 2 may change");
}

TEST(DefragmentationTest, UndecidedWithoutBudget) {
  const auto result = PlanDefragmentation(CreateOrDie(Holes()), "4g.20gb", {.budget = 1});
  EXPECT_EQ(result->outcome, Outcome::kUndecided);
}

TEST(DefragmentationTest, TheModelOfTheCheaperPlan) {
  SnapshotSpec spec;
  spec.nodes = {MakeMigNode("n1", std::vector<Gpu>(2, MakeMigGpu(MigMode::kDynamic)), "A100-80GB"),
                MakeMigNode("n2", {MakeMigGpu(MigMode::kDynamic)}, "H100-80GB")};
  AddSlicePod(spec, "a", 0, 0, "1g.10gb", 0);
  AddSlicePod(spec, "b", 0, 1, "1g.10gb", 0);
  const Snapshot snapshot = CreateOrDie(spec);
  EXPECT_EQ(PlanDefragmentation(snapshot, "7g.80gb")->gpu_model, "H100-80GB");
  EXPECT_EQ(PlanDefragmentation(snapshot, "7g.80gb", {.gpu_model = "A100-80GB"})->moves, 1);
}

struct ErrorCase {
  std::string name;
  std::string profile;
  Options options;
  std::string message;
};

class DefragmentationErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(DefragmentationErrorTest, NamesTheField) {
  EXPECT_THAT(PlanDefragmentation(CreateOrDie(HalfUsed(1)), GetParam().profile, GetParam().options),
              StatusIs(absl::StatusCode::kInvalidArgument, GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Errors, DefragmentationErrorTest,
    ::testing::Values(
        ErrorCase{"UnknownProfile",
                  "7g.40bg",
                  {},
                  "profile: no GPU model has a profile \"7g.40bg\"; did you mean \"7g.40gb\"?"},
        ErrorCase{"ProfileOfAnotherProduct",
                  "1g.6gb",
                  {},
                  "profile: 1g.6gb is a profile of A30-24GB, not of A100-40GB"},
        ErrorCase{"UnknownNode",
                  "7g.40gb",
                  {.node = "n2"},
                  "node: no node is named \"n2\"; did you mean \"n1\"?"},
        ErrorCase{"UnknownModel",
                  "7g.40gb",
                  {.gpu_model = "T4"},
                  "gpu_model: no node has GPUs of model \"T4\""},
        ErrorCase{"NegativeCost",
                  "7g.40gb",
                  {.cost_of = [](PodId) { return -1; }},
                  "cost_of: moving a/s/0 costs -1, which is not in 0..1099511627776"},
        ErrorCase{"CostTooHigh",
                  "7g.40gb",
                  {.cost_of = [](PodId) { return kMaxMoveCost + 1; }},
                  "cost_of: moving a/s/0 costs 1099511627777, which is not in "
                  "0..1099511627776"}),
    kNameOfCase);

// Whether an idle instance of `profile` exists at the place that `result` names.
bool IsIdleThere(const Snapshot& snapshot, const ClusterDefragmentation& result) {
  const NodeId n = *snapshot.FindNode(result.node);
  const Gpu& gpu = snapshot.node(n).gpus[static_cast<size_t>(result.place.gpu)];
  const GpuInstance wanted = {result.place.profile, result.place.start};
  if (std::ranges::find(gpu.instances, wanted) == gpu.instances.end()) return false;
  for (const Workload& w : snapshot.spec().workloads) {
    for (const Pod& pod : w.pods) {
      const bool there =
          std::ranges::find(pod.devices.slices, result.place) != pod.devices.slices.end();
      if (there && pod.node == result.node) return false;
    }
  }
  return true;
}

struct Tally {
  int planned = 0;
  int moved = 0;
  int optimal = 0;
};

void Judge(const Snapshot& snapshot, const Snapshot& shuffled, const std::string& profile,
           Tally& tally) {
  const Options options = {.budget = 5000};
  const auto result = PlanDefragmentation(snapshot, profile, options);
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(*result, *PlanDefragmentation(shuffled, profile, options));
  if (result->outcome != Outcome::kPlanned) return;
  ++tally.planned;
  tally.moved += result->moves > 0;
  tally.optimal += result->optimal();
  ASSERT_LE(result->lower_bound, result->cost);
  ASSERT_THAT(Offences(snapshot, result->actions), IsEmpty());
  const absl::StatusOr<Snapshot> next = Apply(snapshot, {result->actions, {}});
  ASSERT_THAT(next, IsOk());
  const absl::StatusOr<Snapshot> settled = ApplyAndSettle(snapshot, {result->actions, {}});
  ASSERT_THAT(settled, IsOk());
  if (result->exists) {
    ASSERT_TRUE(IsIdleThere(*next, *result));
    return;
  }
  // The promised room is there.
  const auto rest = PlanDefragmentation(*settled, profile, options);
  ASSERT_EQ(rest->outcome, Outcome::kPlanned);
  ASSERT_EQ(rest->cost, 0);
  ASSERT_TRUE(rest->exists);
}

TEST(DefragmentationProperties, PlansAreLegalWhateverTheOrderOfTheInput) {
  const int cases = RandomCases(1000, 10000);
  Tally tally;
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const SnapshotSpec spec = DrawSlicedCluster(random);
    const Snapshot snapshot = CreateOrDie(spec);
    SnapshotSpec other = random.Shuffled(spec);
    for (Node& node : other.nodes) {
      for (Gpu& gpu : node.gpus) std::ranges::reverse(gpu.instances);
    }
    const Snapshot shuffled = CreateOrDie(other);
    for (int m = 0; m < snapshot.num_models(); ++m) {
      for (const MigProfile& profile : snapshot.model(ModelId(m)).profiles) {
        Judge(snapshot, shuffled, profile.name, tally);
        ASSERT_FALSE(HasFailure()) << "seed " << seed << ", " << profile.name;
      }
    }
  }
  EXPECT_GT(tally.planned, cases);
  EXPECT_GT(tally.moved, cases / 10);
  EXPECT_GT(tally.optimal, tally.planned * 9 / 10);
  RecordProperty("planned", tally.planned);
  RecordProperty("moved", tally.moved);
  RecordProperty("optimal", tally.optimal);
}

}  // namespace
}  // namespace tessera
