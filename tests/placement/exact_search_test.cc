// Gangs that a greedy search misses, and proofs that there is no room, with the
// arithmetic of each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tessera/placement/gang_placement.h"
#include "tests/placement/brute_force.h"
#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

class ExactSearchTest : public testing::Test {
 protected:
  void Build() {
    snapshot_.emplace(CreateOrDie(spec_));
    state_.emplace(std::make_shared<const StateTables>(*snapshot_), InitialPods());
    gang_ = *snapshot_->FindWorkload("gang");
  }
  void Gang(std::vector<PodSet> sets) {
    spec_.workloads.push_back(MakeWorkload("gang", "", std::move(sets)));
  }
  // The greedy search fails, and the exact one ends as `outcome`.
  GangPlacement AfterGreedyFailed(SearchOutcome outcome, Account* account = nullptr) {
    GangOptions options{.account = account, .exact_budget = 0};
    const GangPlacement greedy = PlaceGang(*state_, gang_, FindPacked, options);
    EXPECT_FALSE(greedy.placed());
    EXPECT_FALSE(greedy.proven);
    options.exact_budget = 10000;
    GangPlacement found = PlaceGang(*state_, gang_, FindPacked, options);
    EXPECT_EQ(found.outcome, outcome);
    EXPECT_EQ(found.proven, !found.placed());
    return found;
  }
  std::string StuckAt(const GangPlacement& result) const {
    return result.stuck_at.valid() ? snapshot_->pod_set_spec(result.stuck_at).name : "";
  }

  SnapshotSpec spec_;
  std::optional<Snapshot> snapshot_;
  std::optional<ClusterState> state_;
  WorkloadId gang_;
};

PodSet WithCpu(PodSet set, int64_t cores) {
  set.request.cpu = Cores(cores);
  return set;
}

TEST_F(ExactSearchTest, EachNodeTakesOneOfEach) {
  // Two nodes of 8 GPUs, 64 cores. Packing puts both 4-GPU pods on one node, and the
  // 3-GPU pods with 60 cores then find one node only: 4 + 4 | 3. But 4 + 3 | 4 + 3 fits.
  spec_.nodes = {MakeNode("n1", 8), MakeNode("n2", 8)};
  Gang({WithCpu(MakePodSet("four", 2, WholeGpus(4)), 4),
        WithCpu(MakePodSet("three", 2, WholeGpus(3)), 60)});
  Build();
  EXPECT_EQ(AfterGreedyFailed(SearchOutcome::kPlaced).pods.size(), 4u);
}

TEST_F(ExactSearchTest, FractionsArePackedExactly) {
  // 0.4 + 0.6 on each GPU. The order of the gang puts 0.4 + 0.4 on one: 0.2 are left.
  const int64_t tenth = kGpuUnitsPerDevice / 10;
  spec_.nodes = {MakeNode("n1", 2)};
  Gang({MakePodSet("a", 2, Fraction(4 * tenth)), MakePodSet("b", 2, Fraction(6 * tenth))});
  Build();
  AfterGreedyFailed(SearchOutcome::kPlaced);
  EXPECT_EQ(state_->gpu(NodeId(0), 0).share, kGpuUnitsPerDevice);
  EXPECT_EQ(state_->gpu(NodeId(0), 1).share, kGpuUnitsPerDevice);
}

TEST_F(ExactSearchTest, PodsOfSeveralFractionsTakeDistinctDevices) {
  // Three GPUs, one of them 1/2 taken, and three pods of 1/2 on two devices each: 6
  // halves, 5 free. Two pods take 4 of them.
  const int64_t half = kGpuUnitsPerDevice / 2;
  spec_.nodes = {MakeNode("n1", 3)};
  spec_.workloads = {MakeWorkload("old", "", {MakePodSet("s", 1, Fraction(half))})};
  spec_.workloads[0].pods = {MakePod("s", 0, "n1", OnShare(0, half))};
  Gang({MakePodSet("pairs", 3, WithGpu(GpuRequest::Fraction(half, 2)))});
  Build();
  AfterGreedyFailed(SearchOutcome::kNoRoom);
}

TEST_F(ExactSearchTest, TheSecondRackTakesWhatTheFirstWouldOnlyHalf) {
  // Rack a has 4 + 2 GPUs, rack b 4. The pod alone goes to the lowest node of 4, in a;
  // then no rack has the 4 + 2 that the group needs.
  spec_.levels = {"rack"};
  for (const auto& [name, gpus] : {std::pair("a1", 4), std::pair("a2", 2), std::pair("b1", 4)}) {
    Node node = MakeNode(name, gpus);
    node.topology["rack"] = std::string(1, name[0]);
    spec_.nodes.push_back(std::move(node));
  }
  Gang({MakePodSet("alone", 1, WholeGpus(4))});
  PodGroup group =
      MakeGroup("pair", {MakePodSet("x", 1, WholeGpus(4)), MakePodSet("y", 1, WholeGpus(2))});
  group.topology.required = "rack";
  spec_.workloads[0].gang.groups = {group};
  Build();
  const GangPlacement found = AfterGreedyFailed(SearchOutcome::kPlaced);
  EXPECT_EQ(found.pods.size(), 3u);
}

TEST_F(ExactSearchTest, AnOptionalGroupIsFoundByAnyChoiceOfChildren) {
  // Two of three: "big" fits alone but leaves room for none of the others.
  spec_.nodes = {MakeNode("n1", 4)};
  Gang({MakePodSet("big", 1, WholeGpus(4)), MakePodSet("one", 2, WholeGpus(1)),
        MakePodSet("two", 1, WholeGpus(2))});
  spec_.workloads[0].gang.min_groups = 2;
  Build();
  const GangPlacement found = AfterGreedyFailed(SearchOutcome::kPlaced);
  EXPECT_EQ(found.pods.size(), 3u);
}

TEST_F(ExactSearchTest, StaticInstancesServeWhatNothingElseCan) {
  // The 1g pod could take the static 1g or carve; only carving is open to the 3g pods.
  spec_.nodes = {MakeNode("n1")};
  spec_.nodes[0].gpu_model = "H100-80GB";
  spec_.nodes[0].gpus = {MakeMigGpu(MigMode::kStatic, {{"1g.10gb", 0}}),
                         MakeMigGpu(MigMode::kDynamic)};
  Gang({MakePodSet("large", 2, SliceOfProfile("3g.40gb")),
        MakePodSet("small", 1, SliceOfProfile("1g.10gb"))});
  Build();
  EXPECT_TRUE(PlaceGang(*state_, gang_).placed());
}

TEST_F(ExactSearchTest, TheAccountDecidesWhichModelsArePaid) {
  // Each model has two GPUs free, and three devices in all may be charged: at most 2 of
  // H100 and 1 of A100. Greedy fills the A100 with the first set and is refused.
  spec_.nodes = {MakeNode("n1", 2, "A100-80GB"), MakeNode("n2", 2, "H100-80GB")};
  PodSet only = MakePodSet("only", 1, WholeGpus(1));
  only.gpu_models = {"A100-80GB"};
  Gang({MakePodSet("any", 2, WholeGpus(1)), only});
  Build();
  ModelQuota account(*snapshot_, {1, 2});
  AfterGreedyFailed(SearchOutcome::kPlaced, &account);
  EXPECT_THAT(account.quota(), testing::ElementsAre(0, 0));
}

TEST_F(ExactSearchTest, ARefusalIsProven) {
  spec_.nodes = {MakeNode("n1", 2, "A100-80GB"), MakeNode("n2", 2, "H100-80GB")};
  Gang({MakePodSet("s", 3, WholeGpus(1))});
  Build();
  ModelQuota account(*snapshot_, {1, 1});
  const GangPlacement result = AfterGreedyFailed(SearchOutcome::kRefused, &account);
  EXPECT_EQ(StuckAt(result), "s");
  EXPECT_THAT(account.quota(), testing::ElementsAre(1, 1)) << "charges are taken back";
}

TEST_F(ExactSearchTest, WhatFitsNowhereIsNamedFirst) {
  // "first" fails beside others, but "second" fits nowhere at all.
  spec_.nodes = {MakeNode("n1", 4)};
  Gang({MakePodSet("first", 2, WholeGpus(4)), MakePodSet("second", 1, CpuOnly(1000))});
  Build();
  const GangPlacement result = PlaceGang(*state_, gang_);
  EXPECT_EQ(result.outcome, SearchOutcome::kNoRoom);
  EXPECT_EQ(StuckAt(result), "second");
  EXPECT_TRUE(result.proven);
}

TEST_F(ExactSearchTest, ItsBudgetEndsItUndecided) {
  spec_.nodes = {MakeNode("n1", 8), MakeNode("n2", 8)};
  Gang({WithCpu(MakePodSet("four", 2, WholeGpus(4)), 4),
        WithCpu(MakePodSet("three", 2, WholeGpus(3)), 60)});
  Build();
  const ClusterState before = *state_;
  const GangPlacement result = PlaceGang(*state_, gang_, FindPacked, {.exact_budget = 2});
  EXPECT_EQ(result.outcome, SearchOutcome::kBudgetExhausted);
  EXPECT_FALSE(result.proven);
  EXPECT_TRUE(*state_ == before);
}

TEST_F(ExactSearchTest, AFinderThatWithholdsPlacesProvesNothing) {
  spec_.nodes = {MakeNode("n1", 1)};
  Gang({MakePodSet("s", 1, Fraction(kGpuUnitsPerDevice / 2))});
  Build();
  const GangPlacement result =
      PlaceGang(*state_, gang_, FindOnSharedGpu, {.finder_withholds = true});
  EXPECT_EQ(result.outcome, SearchOutcome::kNoRoom);
  EXPECT_FALSE(result.proven);
}

TEST_F(ExactSearchTest, AnOptionalGroupGrowsByTheExactSearch) {
  spec_.nodes = {MakeNode("n1", 8), MakeNode("n2", 8)};
  Gang({MakePodSet("base", 1, CpuOnly(0))});
  spec_.workloads[0].gang.groups = {MakeGroup("more",
                                              {WithCpu(MakePodSet("four", 2, WholeGpus(4)), 4),
                                               WithCpu(MakePodSet("three", 2, WholeGpus(3)), 60)},
                                              "base")};
  Build();
  ASSERT_TRUE(PlaceGang(*state_, gang_).placed());
  GangPlacement grown = GrowGang(*state_, gang_, FindPacked, {.exact_budget = 0});
  EXPECT_EQ(grown.outcome, SearchOutcome::kNoRoom);
  EXPECT_FALSE(grown.proven);
  grown = GrowGang(*state_, gang_);
  EXPECT_EQ(grown.pods.size(), 4u);
  EXPECT_TRUE(GrowGang(*state_, gang_).pods.empty()) << "complete";
}

TEST_F(ExactSearchTest, EqualGroupsTakeARackEach) {
  // As `EachNodeTakesOneOfEach`, in each of two equal racks.
  spec_.levels = {"rack"};
  for (int i = 0; i < 4; ++i) {
    Node node = MakeNode(absl::StrCat("n", i), 8);
    node.topology["rack"] = i < 2 ? "r1" : "r2";
    spec_.nodes.push_back(std::move(node));
  }
  Gang({});
  for (int i = 0; i < 2; ++i) {
    PodGroup group = MakeGroup(
        absl::StrCat("g", i), {WithCpu(MakePodSet(absl::StrCat("four", i), 2, WholeGpus(4)), 4),
                               WithCpu(MakePodSet(absl::StrCat("three", i), 2, WholeGpus(3)), 60)});
    group.topology.required = "rack";
    spec_.workloads[0].gang.groups.push_back(group);
  }
  Build();
  EXPECT_EQ(AfterGreedyFailed(SearchOutcome::kPlaced).pods.size(), 8u);
}

TEST_F(ExactSearchTest, PodsSpreadOverRacks) {
  // Two racks of 4 + 8 GPUs, and at most one of the two pods of 4 in each.
  spec_.levels = {"rack"};
  for (const auto& [name, gpus] :
       {std::pair("a1", 4), std::pair("a2", 8), std::pair("b1", 4), std::pair("b2", 8)}) {
    Node node = MakeNode(name, gpus);
    node.topology["rack"] = std::string(1, name[0]);
    spec_.nodes.push_back(std::move(node));
  }
  PodSet wide = MakePodSet("wide", 2, WholeGpus(4));
  wide.max_per_domain = DomainLimit{"rack", 1};
  Gang({wide});
  Build();
  const GangPlacement found = PlaceGang(*state_, gang_);
  ASSERT_EQ(found.pods.size(), 2u);
  EXPECT_EQ(state_->placement(found.pods[0]).node, *snapshot_->FindNode("a1"));
  EXPECT_EQ(state_->placement(found.pods[1]).node, *snapshot_->FindNode("b1"));
}

TEST_F(ExactSearchTest, ARackTooFewToSpreadOver) {
  spec_.levels = {"rack"};
  for (int i = 0; i < 6; ++i) {
    Node node = MakeNode(absl::StrCat("n", i), 8);
    if (i < 4) node.topology["rack"] = absl::StrCat("r", i / 2);  // n4, n5 are in none
    spec_.nodes.push_back(std::move(node));
  }
  PodSet wide = MakePodSet("wide", 3, WholeGpus(1));
  wide.max_per_domain = DomainLimit{"rack", 1};
  Gang({wide});
  Build();
  EXPECT_EQ(StuckAt(AfterGreedyFailed(SearchOutcome::kNoRoom)), "wide");
}

TEST_F(ExactSearchTest, SpreadingIsFoundWhereGreedyTakesTheWrongRack) {
  // Rack a has a node of 8 and one of 4 GPUs, rack b one of 4. "pair" needs one rack for 8
  // + 4, so that the one spread pod of 4 must go to b; packing sends it to a.
  spec_.levels = {"rack"};
  for (const auto& [name, gpus] : {std::pair("a1", 4), std::pair("a2", 8), std::pair("b1", 4)}) {
    Node node = MakeNode(name, gpus);
    node.topology["rack"] = std::string(1, name[0]);
    spec_.nodes.push_back(std::move(node));
  }
  PodSet spread = MakePodSet("spread", 1, WholeGpus(4));
  spread.max_per_domain = DomainLimit{"rack", 1};
  PodSet pair = MakePodSet("pair", 3, WholeGpus(4));
  pair.topology.required = "rack";
  Gang({spread, pair});
  Build();
  EXPECT_EQ(AfterGreedyFailed(SearchOutcome::kPlaced).pods.size(), 4u);
}

TEST_F(ExactSearchTest, TheSecondBestStartOfASliceIsTriedToo) {
  // Units 0 to 3. "half" starts at 0 or 2, "left" fits units 0 and 1 only, "right" and
  // "end" units 2 and 3 only. A half at 0 costs others least (2 of "left"; at 2 it costs
  // 2 of "right" and 2 of "end"), but beside it there is no room for "left".
  GpuModel model;
  model.name = "Halves";
  model.memory_bytes = 40 * kBytesPerGiB;
  model.units = model.compute_slices = model.memory_slices = 4;
  const auto add = [&model](const char* name, int size, std::vector<int> starts) {
    MigProfile profile;
    profile.name = name;
    profile.size = profile.compute_slices = profile.memory_slices = size;
    profile.memory_bytes = size * 10 * kBytesPerGiB;
    profile.max_instances = 2;
    profile.starts = std::move(starts);
    model.profiles.push_back(std::move(profile));
  };
  add("half", 2, {0, 2});
  add("left", 1, {0, 1});
  add("right", 1, {2, 3});
  add("end", 1, {2, 3});
  spec_.gpu_models = {model};
  spec_.nodes = {MakeNode("n")};
  spec_.nodes[0].gpu_model = "Halves";
  spec_.nodes[0].gpus = {MakeMigGpu(MigMode::kDynamic)};
  // Others wait for "right" and "end", so that the greedy search prefers 0, too.
  spec_.workloads = {MakeWorkload("other", "",
                                  {MakePodSet("right", 9, SliceOfProfile("right")),
                                   MakePodSet("end", 9, SliceOfProfile("end"))})};
  Gang({MakePodSet("half", 1, SliceOfProfile("half")),
        MakePodSet("left", 1, SliceOfProfile("left"))});
  Build();
  const GangPlacement found = AfterGreedyFailed(SearchOutcome::kPlaced);
  ASSERT_EQ(found.pods.size(), 2u);
  EXPECT_EQ(state_->placement(found.pods[0]).start, 2) << "the larger one is first";
}

TEST_F(ExactSearchTest, EqualRacksOfUnequalBlocksAreNotAlike) {
  // Block b1 has two racks of one node, b2 one. "block" needs both nodes of b1, so that
  // "rack" must take the rack of b2, though its like in b1 comes first.
  spec_.levels = {"block", "rack"};
  for (const auto& [name, block] :
       {std::pair("n1", "b1"), std::pair("n2", "b1"), std::pair("n3", "b2")}) {
    Node node = MakeNode(name, 8);
    node.topology = {{"block", block}, {"rack", absl::StrCat("r-", name)}};
    spec_.nodes.push_back(std::move(node));
  }
  PodSet one = MakePodSet("rack", 1, WholeGpus(8));
  one.topology.required = "rack";
  PodSet two = MakePodSet("block", 2, WholeGpus(8));
  two.topology.required = "block";
  Gang({one, two});
  Build();
  AfterGreedyFailed(SearchOutcome::kPlaced);
}

TEST_F(ExactSearchTest, EqualDomainsAreNotTriedOneByOne) {
  // 40 racks of two 4-GPU nodes; 40 equal groups need 8 GPUs of one rack each, and one
  // more group finds none. Without symmetry there are 40! orders.
  spec_.levels = {"rack"};
  for (int i = 0; i < 80; ++i) {
    Node node = MakeNode(absl::StrCat("n", 100 + i), 4);
    node.topology["rack"] = absl::StrCat("r", 100 + i / 2);
    spec_.nodes.push_back(std::move(node));
  }
  Gang({});
  for (int i = 0; i < 41; ++i) {
    PodGroup group =
        MakeGroup(absl::StrCat("g", i), {MakePodSet(absl::StrCat("s", i), 2, WholeGpus(4))});
    group.topology.required = "rack";
    spec_.workloads[0].gang.groups.push_back(group);
  }
  Build();
  AfterGreedyFailed(SearchOutcome::kTopology);
}

}  // namespace
}  // namespace tessera
