#include "tessera/placement/topology_compact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "tessera/placement/gang_placement.h"
#include "tests/support/random_cluster.h"
#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

struct FreeGpus {
  int64_t Score(const ClusterState&, const RequestClass&, const Candidate& c) const {
    return c.free_gpus;
  }
};

std::optional<PodPlacement> FindCompact(const ClusterState& state, const PodQuery& query) {
  return FindBest(state, query, TopologyCompact(state, query.pod_set));
}

// Nodes of `gpus` GPUs, two to a rack and two racks to a block.
SnapshotSpec Blocks(const std::vector<int>& gpus) {
  SnapshotSpec spec;
  spec.levels = {"block", "rack"};
  for (size_t i = 0; i < gpus.size(); ++i) {
    Node node = MakeNode(absl::StrCat("n", 10 + i), gpus[i]);
    node.topology = {{"block", absl::StrCat("b", i / 4)}, {"rack", absl::StrCat("r", i / 2)}};
    spec.nodes.push_back(std::move(node));
  }
  return spec;
}

class TopologyCompactTest : public testing::Test {
 protected:
  void Build(SnapshotSpec spec) {
    snapshot_.emplace(CreateOrDie(std::move(spec)));
    state_.emplace(std::make_shared<const StateTables>(*snapshot_), InitialPods());
  }
  // Of the next pod, by node.
  std::vector<int64_t> Scores() const {
    std::vector<int64_t> scores;
    const TopologyCompact scorer(*state_, PodSetId(0));
    FindBest(*state_, {PodSetId(0), {0, snapshot_->num_nodes()}, 0},
             [&](std::span<const Candidate> candidates, std::span<int64_t> out) {
               ScoreBatch(scorer, *state_, PodSetId(0), candidates, out);
               scores.assign(out.begin(), out.end());
             });
    return scores;
  }
  std::vector<int> NodesOfGang() const {
    std::vector<int> nodes;
    for (int p = 0; p < snapshot_->num_pods(); ++p) {
      nodes.push_back(state_->placement(PodId(p)).node.value());
    }
    return nodes;
  }

  std::optional<Snapshot> snapshot_;
  std::optional<ClusterState> state_;
};

TEST_F(TopologyCompactTest, TheTightestDomainThatTakesTheGang) {
  SnapshotSpec spec = Blocks({1, 2, 4, 4, 2, 3, 1, 1});
  spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 5, WholeGpus(1))})};
  Build(std::move(spec));
  // Racks of 3, 8, 5 and 2 GPUs in blocks of 11 and 7; 5 are wanted. A rack that suffices
  // counts 2, a block 1: 8 - 5 = 3 too many in r1, none in r2; 6 and 2 in the blocks.
  EXPECT_THAT(Scores(), ElementsAre(1993, 1993, 2996, 2996, 2999, 2999, 1997, 1997));
  ASSERT_TRUE(PlaceGang(*state_, WorkloadId(0), FindCompact).placed());
  EXPECT_THAT(NodesOfGang(), ElementsAre(4, 4, 5, 5, 5));
}

TEST_F(TopologyCompactTest, BesideThePodsThatRunAndThenAsNearAsMayBe) {
  SnapshotSpec spec = Blocks({1, 1, 2, 2, 2, 2, 1, 1});
  spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 4, WholeGpus(1))})};
  spec.workloads[0].pods = {MakePod("s", 0, "n16", OnGpus({0}))};  // in rack r3 of block b1
  Build(std::move(spec));
  // 3 more are wanted. In r3 is a pod (2), in b1, too (1), in b0 none. b0 has 6 free, b1
  // 5; of the racks r1 and r2 have 4. Node n16 is full.
  EXPECT_THAT(Scores(), ElementsAre(1996, 1996, 2998, 2998, 1002998, 1002998, 2001997));
  ASSERT_TRUE(PlaceGang(*state_, WorkloadId(0), FindCompact).placed());
  EXPECT_THAT(NodesOfGang(), ElementsAre(6, 7, 4, 4)) << "r3 first, then r2 of the same block";
}

TEST_F(TopologyCompactTest, ComposesWithOthers) {
  SnapshotSpec spec = Blocks({2, 4, 4, 4});
  spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 2, WholeGpus(1))})};
  Build(std::move(spec));
  const auto score = [](const ClusterState& state, PodSetId s) {
    return ScoreSum<Weighted<1000, TopologyCompact>, FreeGpus>{
        {{TopologyCompact(state, s)}, FreeGpus()}};
  };
  const auto best = FindBest(*state_, {PodSetId(0), {0, 4}, 0}, score(*state_, PodSetId(0)));
  ASSERT_TRUE(best);
  EXPECT_EQ(best->node.value(), 1) << "r0 is the tighter rack, n11 has more free GPUs";
}

// A gang of one-GPU pods that some rack takes is in one rack, and else one block if one
// takes it.
TEST(TopologyCompactProperties, AGangIsInTheNarrowestDomainThatTakesIt) {
  for (int seed = 0; seed < RandomCases(300, 5000); ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    std::vector<int> gpus(8 + random.Below(9));
    for (int& count : gpus) count = 1 + random.Below(8);
    SnapshotSpec spec = Blocks(gpus);
    const int pods = 2 + random.Below(12);
    spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", pods, WholeGpus(1))})};
    const Snapshot snapshot = CreateOrDie(std::move(spec));
    ClusterState state(std::make_shared<const StateTables>(snapshot), {});
    int narrowest = -1;
    for (int level = 0; level < 2; ++level) {
      for (size_t d = 0; d < snapshot.topology().domains(level).size(); ++d) {
        const DomainId domain(static_cast<int32_t>(d));
        if (state.free_gpus(level, domain) >= pods) narrowest = level;
      }
    }
    if (!PlaceGang(state, WorkloadId(0), FindCompact).placed()) continue;
    for (int level = 0; level <= narrowest; ++level) {
      std::set<int> domains;
      for (int p = 0; p < pods; ++p) {
        const NodeId n = state.placement(PodId(p)).node;
        domains.insert(snapshot.topology().domain_of(n, level).value());
      }
      EXPECT_EQ(domains.size(), 1u) << "seed " << seed << " level " << level;
    }
  }
}

}  // namespace
}  // namespace tessera
