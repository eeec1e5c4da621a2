// LLM services as gangs, and what becomes of them at each amount of free GPUs. The
// shapes are those of public recipes for DeepSeek-R1 (Dynamo, Grove).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "tessera/placement/gang_placement.h"
#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

// `count` nodes of `gpus` GPUs, `per_domain` to a domain of `level`.
SnapshotSpec Nodes(int count, int gpus, std::string level, int per_domain) {
  SnapshotSpec spec;
  spec.levels = {level};
  for (int i = 0; i < count; ++i) {
    Node node = MakeNode(absl::StrCat("n", 100 + i), gpus);
    node.topology[level] = absl::StrCat("d", 100 + i / per_domain);
    spec.nodes.push_back(std::move(node));
  }
  return spec;
}

class Cluster {
 public:
  explicit Cluster(SnapshotSpec spec)
      : snapshot_(CreateOrDie(std::move(spec))),
        state_(std::make_shared<const StateTables>(snapshot_), {}),
        gang_(*snapshot_.FindWorkload("service")) {}

  GangPlacement Place() { return PlaceGang(state_, gang_); }
  // Places the minimum and then what there is room for.
  void Fill() {
    if (!Place().placed()) return;
    while (!GrowGang(state_, gang_).pods.empty()) {
    }
  }
  // Placed pods by pod set, those without any left out.
  std::map<std::string, int> Placed() const {
    std::map<std::string, int> placed;
    for (int i = 0; i < snapshot_.num_pods(); ++i) {
      if (state_.is_placed(PodId(i))) ++placed[snapshot_.pod_ref(PodId(i)).pod_set];
    }
    return placed;
  }
  std::string NodeOf(const std::string& pod_set, int index) const {
    const PodId p = *snapshot_.FindPod({"service", pod_set, index});
    return snapshot_.node(state_.placement(p).node).name;
  }

 private:
  Snapshot snapshot_;
  ClusterState state_;
  WorkloadId gang_;
};

// GB200: prefill of 4 GPUs, decode of 8 pods with 4 GPUs each, all in one NVLink
// domain: 1 * 4 + 8 * 4 = 36 GPUs on 9 nodes of 4.
Workload OnGb200() {
  Workload service =
      MakeWorkload("service", "",
                   {MakePodSet("frontend", 1, CpuOnly(4)), MakePodSet("prefill", 1, WholeGpus(4)),
                    MakePodSet("decode", 8, WholeGpus(4))});
  service.gang.topology.required = "nvlink";
  return service;
}

TEST(GangFixtureTest, Gb200NeedsNineNodesOfOneNvlinkDomain) {
  struct Case {
    int nodes, per_domain;
    SearchOutcome outcome;
  };
  for (const Case& c :
       {Case{8, 18, SearchOutcome::kTopology}, Case{9, 18, SearchOutcome::kPlaced},
        Case{10, 5, SearchOutcome::kTopology}, Case{16, 8, SearchOutcome::kTopology},
        Case{17, 8, SearchOutcome::kTopology}, Case{18, 9, SearchOutcome::kPlaced}}) {
    SnapshotSpec spec = Nodes(c.nodes, 4, "nvlink", c.per_domain);
    spec.workloads = {OnGb200()};
    Cluster cluster(std::move(spec));
    const GangPlacement result = cluster.Place();
    EXPECT_EQ(result.outcome, c.outcome) << c.nodes << " nodes, " << c.per_domain << " a domain";
    EXPECT_EQ(result.proven, !result.placed());
    EXPECT_EQ(result.pods.size(), result.placed() ? 10u : 0u);
  }
}

// Hopper: prefill and decode of 2 pods with 8 GPUs each: 32 GPUs on 4 nodes of 8,
// each role in one rack.
TEST(GangFixtureTest, HopperNeedsTwoPairsOfNodesEachInOneRack) {
  struct Case {
    int nodes, per_rack;
    bool placed;
  };
  for (const Case& c : {Case{3, 4, false}, Case{4, 4, true}, Case{4, 2, true}, Case{4, 1, false},
                        Case{6, 3, true}, Case{5, 3, true}, Case{4, 3, false}}) {
    SnapshotSpec spec = Nodes(c.nodes, 8, "rack", c.per_rack);
    PodSet prefill = MakePodSet("prefill", 2, WholeGpus(8));
    PodSet decode = MakePodSet("decode", 2, WholeGpus(8));
    prefill.topology.required = decode.topology.required = "rack";
    spec.workloads = {MakeWorkload("service", "", {prefill, decode})};
    const GangPlacement result = Cluster(std::move(spec)).Place();
    EXPECT_EQ(result.placed(), c.placed) << c.nodes << " nodes, " << c.per_rack << " a rack";
    EXPECT_EQ(result.proven, !c.placed);
  }
}

// Base: frontend, 2 to 6 prefill pods of 4 GPUs, decode-0 of 1 + 7 pods of 4 GPUs:
// minimum 8 + 32 = 40 GPUs, elastic 16. Scaled: decode-1, 32 GPUs in one rack.
Workload Service() {
  Workload service = MakeWorkload("service", "", {});
  PodGroup base = MakeGroup("base", {MakePodSet("frontend", 1, CpuOnly(4)),
                                     WithMinCount(MakePodSet("prefill", 6, WholeGpus(4)), 2)});
  base.groups = {MakeGroup("decode-0", {MakePodSet("leader-0", 1, WholeGpus(4)),
                                        MakePodSet("workers-0", 7, WholeGpus(4))})};
  PodGroup scaled = MakeGroup(
      "decode-1",
      {MakePodSet("leader-1", 1, WholeGpus(4)), MakePodSet("workers-1", 7, WholeGpus(4))}, "base");
  base.groups[0].topology.required = scaled.topology.required = "rack";
  service.gang.groups = {base, scaled};
  return service;
}

TEST(GangFixtureTest, TheServiceAtEachAmountOfFreeGpus) {
  for (int nodes = 1; nodes <= 24; ++nodes) {
    SnapshotSpec spec = Nodes(nodes, 4, "rack", 24);
    spec.workloads = {Service()};
    Cluster cluster(std::move(spec));
    cluster.Fill();
    std::map<std::string, int> expected;
    if (nodes >= 10) {  // 40 GPUs
      expected = {{"frontend", 1}, {"leader-0", 1}, {"workers-0", 7}};
      expected["prefill"] = std::min(nodes - 8, 6);
    }
    if (nodes >= 22) {  // 40 + 16 + 32 = 88 GPUs
      expected["leader-1"] = 1;
      expected["workers-1"] = 7;
    }
    EXPECT_EQ(cluster.Placed(), expected) << nodes * 4 << " free GPUs";
  }
}

TEST(GangFixtureTest, TheBaseGrowsBeforeTheScaledGroupComes) {
  SnapshotSpec spec = Nodes(18, 4, "rack", 9);  // 72 GPUs in two racks
  spec.workloads = {Service()};
  Cluster cluster(std::move(spec));
  cluster.Fill();
  EXPECT_THAT(cluster.Placed(), testing::Contains(testing::Pair("prefill", 6)));
  EXPECT_THAT(cluster.Placed(), testing::Not(testing::Contains(testing::Key("leader-1"))));
}

TEST(GangFixtureTest, TheScaledGroupNeedsOneRack) {
  // Three racks of 8: decode-0 fills one, prefill 6 nodes of the next, decode-1 the last.
  SnapshotSpec spec = Nodes(24, 4, "rack", 8);
  spec.workloads = {Service()};
  Cluster cluster(spec);
  cluster.Fill();
  EXPECT_THAT(cluster.Placed(), testing::Contains(testing::Pair("workers-1", 7)));
  // With a node fewer in each, no rack takes a decode of 8.
  spec = Nodes(28, 4, "rack", 7);
  spec.workloads = {Service()};
  Cluster narrow(spec);
  const GangPlacement result = narrow.Place();
  EXPECT_EQ(result.outcome, SearchOutcome::kTopology);
  EXPECT_TRUE(result.proven);
}

// --- Gangs of which something runs -------------------------------------------

// decode-0 runs in rack d100 and lost workers 5 and 6.
SnapshotSpec PartlyDead(int nodes, int per_rack) {
  SnapshotSpec spec = Nodes(nodes, 4, "rack", per_rack);
  Workload service = Service();
  const auto run = [&](const std::string& set, int index, int node) {
    service.pods.push_back(
        MakePod(set, index, absl::StrCat("n", 100 + node), OnGpus({0, 1, 2, 3})));
  };
  run("leader-0", 0, 0);
  for (int i = 0; i < 5; ++i) run("workers-0", i, 1 + i);
  service.pods.push_back(MakePod("frontend", 0, "n100"));
  run("prefill", 0, per_rack);
  run("prefill", 1, per_rack + 1);
  spec.workloads = {std::move(service)};
  return spec;
}

TEST(GangFixtureTest, DeadPodsAreReplacedWhereTheirGroupRuns) {
  Cluster cluster(PartlyDead(20, 10));
  const GangPlacement result = cluster.Place();
  ASSERT_TRUE(result.placed());
  EXPECT_EQ(result.pods.size(), 2u);
  EXPECT_EQ(cluster.NodeOf("workers-0", 5), "n106");
  EXPECT_EQ(cluster.NodeOf("workers-0", 6), "n107");
}

TEST(GangFixtureTest, RoomInAnotherRackDoesNotHelpAGroupThatRuns) {
  SnapshotSpec spec = PartlyDead(30, 10);
  Workload& other =
      spec.workloads.emplace_back(MakeWorkload("other", "", {MakePodSet("s", 3, WholeGpus(4))}));
  for (int i = 0; i < 3; ++i) {
    other.pods.push_back(MakePod("s", i, absl::StrCat("n", 106 + i), OnGpus({0, 1, 2, 3})));
  }
  const GangPlacement result = Cluster(spec).Place();  // n109 is the only free node there
  EXPECT_FALSE(result.placed());
  EXPECT_TRUE(result.proven);
  other.pods.pop_back();
  EXPECT_TRUE(Cluster(spec).Place().placed());
}

TEST(GangFixtureTest, AScaledGroupSharesTheAnchorOfItsService) {
  // The service requires one block. Its base runs in b1, which has 7 of the 8 nodes that
  // decode-1 needs; b2 has them all, and is of no use.
  for (int free : {7, 8}) {
    SnapshotSpec spec = Nodes(10 + free + 12, 4, "rack", 100);
    spec.levels = {"block", "rack"};
    for (size_t i = 0; i < spec.nodes.size(); ++i) {
      spec.nodes[i].topology["block"] = i < 10 + static_cast<size_t>(free) ? "b1" : "b2";
    }
    Workload service = Service();
    service.gang.topology.required = "block";
    service.gang.groups[0].pod_sets[1].count = 2;
    const auto run = [&](const std::string& set, int index, int node) {
      service.pods.push_back(
          MakePod(set, index, absl::StrCat("n", 100 + node), OnGpus({0, 1, 2, 3})));
    };
    run("leader-0", 0, 0);
    for (int i = 0; i < 7; ++i) run("workers-0", i, 1 + i);
    run("prefill", 0, 8);
    run("prefill", 1, 9);
    service.pods.push_back(MakePod("frontend", 0, "n100"));
    spec.workloads = {service};
    Cluster cluster(std::move(spec));
    cluster.Fill();
    EXPECT_EQ(cluster.Placed().contains("leader-1"), free == 8) << free;
  }
}

TEST(GangFixtureTest, AGangBelowItsCountIsToppedUpInItsRack) {
  SnapshotSpec spec = Nodes(8, 4, "rack", 4);
  Workload service =
      MakeWorkload("service", "", {WithMinCount(MakePodSet("s", 4, WholeGpus(4)), 3)});
  service.gang.topology.required = "rack";
  service.pods = {MakePod("s", 1, "n105", OnGpus({0, 1, 2, 3}))};
  spec.workloads = {service};
  Cluster cluster(std::move(spec));
  cluster.Fill();
  EXPECT_EQ(cluster.Placed()["s"], 4);
  for (int i : {0, 2, 3}) EXPECT_GE(cluster.NodeOf("s", i), "n104");
}

}  // namespace
}  // namespace tessera
