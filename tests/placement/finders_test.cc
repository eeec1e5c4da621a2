#include "tessera/placement/finders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/support/random_cluster.h"

namespace tessera {
namespace {

struct MostFree {
  int64_t Score(const ClusterState&, const RequestClass&, const Candidate& candidate) const {
    return candidate.free_gpus;
  }
};

// A random state, some pods placed.
ClusterState RandomState(RandomCluster& random, const Snapshot& snapshot) {
  ClusterState state(std::make_shared<const StateTables>(snapshot), {});
  for (int p = 0; p < snapshot.num_pods(); ++p) {
    const PodQuery query{snapshot.pod_set_of(PodId(p)), {0, snapshot.num_nodes()}, 0};
    const auto place = random.Chance(60) ? FindPacked(state, query) : std::nullopt;
    if (place) state.Place(PodId(p), *place);
  }
  return state;
}

TEST(FinderProperties, FindIfAndOnlyIfAScanDoes) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const Snapshot snapshot = CreateOrDie(random.Draw());
    const ClusterState state = RandomState(random, snapshot);
    for (int s = 0; s < snapshot.num_pod_sets(); ++s) {
      const int begin = random.Below(snapshot.num_nodes());
      const NodeRange range{begin, begin + 1 + random.Below(snapshot.num_nodes() - begin)};
      const PodQuery query{PodSetId(s), range, random.Chance(20) ? 1u : 0u};
      const auto scanned = FindBest(state, query, MostFree());
      for (const auto& found : {FindPacked(state, query), FindSpread(state, query)}) {
        ASSERT_EQ(found.has_value(), scanned.has_value()) << "seed " << seed << " set " << s;
        if (!found) continue;
        EXPECT_TRUE(range.contains(found->node));
        EXPECT_TRUE(IsFree(state, PodSetId(s), *found)) << "seed " << seed << " set " << s;
      }
    }
  }
}

// The cheapest slice by a scan: cost, then shelf, then node.
TEST(FinderProperties, ASliceGoesWhereItIsCheapest) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const Snapshot snapshot = CreateOrDie(random.Draw());
    const ClusterState state = RandomState(random, snapshot);
    if (state.tables().tracks_tenants()) continue;
    for (int s = 0; s < snapshot.num_pod_sets(); ++s) {
      const RequestClassId c = snapshot.pod_set(PodSetId(s)).request_class;
      const RequestClass& request = snapshot.request_class(c);
      if (!request.gpu.is_slice()) continue;
      const PodQuery query{PodSetId(s), {0, snapshot.num_nodes()}, 0};
      using Key = std::tuple<int64_t, int, int>;  // cost, free GPUs, node
      std::optional<Key> best;
      for (int i = 0; i < snapshot.num_nodes(); ++i) {
        const NodeId n(i);
        if (state.tables().eligibility(c, state.tables().signature_of(n)) !=
                Eligibility::kEligible ||
            !ChooseDevices(state, query, n, DevicePreference::kPack)) {
          continue;
        }
        const ModelId m = snapshot.node_model(n);
        const auto place = state.CheapestSlice(n, request.models[static_cast<size_t>(m.value())]);
        const Key key = {place->cost, state.free_gpus(n), i};
        if (!best || key < *best) best = key;
      }
      const auto found = FindPacked(state, query);
      ASSERT_EQ(found.has_value(), best.has_value()) << "seed " << seed << " set " << s;
      if (!found) continue;
      ASSERT_EQ(found->node.value(), std::get<2>(*best)) << "seed " << seed;
    }
  }
}

class FindersTest : public testing::Test {
 protected:
  void Build(SnapshotSpec spec) {
    snapshot_.emplace(CreateOrDie(std::move(spec)));
    state_.emplace(std::make_shared<const StateTables>(*snapshot_), InitialPods());
  }
  PodQuery Ask(const std::string& workload) const {
    const WorkloadId w = *snapshot_->FindWorkload(workload);
    return {PodSetId(snapshot_->info(w).first_pod_set), {0, snapshot_->num_nodes()}, 0};
  }
  std::string NodeOf(const std::optional<PodPlacement>& place) const {
    return place ? snapshot_->node(place->node).name : "";
  }

  std::optional<Snapshot> snapshot_;
  std::optional<ClusterState> state_;
};

TEST_F(FindersTest, PackingFillsTheFullestNodeSpreadingTheEmptiest) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("a", 8), MakeNode("b", 8), MakeNode("c", 8), MakeNode("d")};
  spec.workloads = {MakeWorkload("old", "", {MakePodSet("s", 2, WholeGpus(4))}),
                    MakeWorkload("two", "", {MakePodSet("s", 1, WholeGpus(2))}),
                    MakeWorkload("six", "", {MakePodSet("s", 1, WholeGpus(6))}),
                    MakeWorkload("cpu", "", {MakePodSet("s", 1, CpuOnly(1))})};
  spec.workloads[0].pods = {MakePod("s", 0, "b", OnGpus({0, 1, 2, 3}))};
  Build(spec);
  EXPECT_EQ(NodeOf(FindPacked(*state_, Ask("two"))), "b");
  EXPECT_EQ(NodeOf(FindSpread(*state_, Ask("two"))), "a");
  EXPECT_EQ(NodeOf(FindPacked(*state_, Ask("six"))), "a");
  EXPECT_EQ(NodeOf(FindPacked(*state_, Ask("cpu"))), "d");
}

TEST_F(FindersTest, AFractionGoesToASharedGpuBeforeAFreeOne) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("a", 2), MakeNode("b", 2)};
  spec.workloads = {MakeWorkload("old", "", {MakePodSet("s", 1, Fraction(4000))}),
                    MakeWorkload("fits", "", {MakePodSet("s", 1, Fraction(3000))}),
                    MakeWorkload("wide", "", {MakePodSet("s", 1, Fraction(3001))})};
  spec.workloads[0].pods = {MakePod("s", 0, "b", OnShare(1, 4000))};
  Build(spec);
  const auto fits = FindPacked(*state_, Ask("fits"));
  EXPECT_EQ(NodeOf(fits), "b");
  EXPECT_EQ(fits->gpus, 2u);
  EXPECT_EQ(NodeOf(FindPacked(*state_, Ask("wide"))), "b") << "its node has fewer free GPUs";
  EXPECT_EQ(FindPacked(*state_, Ask("wide"))->gpus, 1u);
  EXPECT_EQ(NodeOf(FindSpread(*state_, Ask("fits"))), "a");
  EXPECT_EQ(NodeOf(FindOnSharedGpu(*state_, Ask("fits"))), "b");
  EXPECT_EQ(FindOnSharedGpu(*state_, Ask("wide")), std::nullopt);
}

TEST_F(FindersTest, AnIdleInstanceComesBeforeCarving) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("a"), MakeNode("b")};
  for (Node& node : spec.nodes) node.gpu_model = "H100-80GB";
  spec.nodes[0].gpus = {MakeMigGpu(MigMode::kDynamic)};
  spec.nodes[1].gpus = {MakeMigGpu(MigMode::kStatic, {{"1g.10gb", 3}})};
  spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 2, SliceOfProfile("1g.10gb"))})};
  Build(spec);
  const auto first = FindPacked(*state_, Ask("w"));
  ASSERT_EQ(NodeOf(first), "b");
  EXPECT_EQ(first->start, 3);
  state_->Place(PodId(0), *first);
  EXPECT_EQ(NodeOf(FindPacked(*state_, Ask("w"))), "a");
}

TEST_F(FindersTest, AScorerOfTheHostDecides) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("a", 2), MakeNode("b", 8)};
  spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 1, WholeGpus(1))})};
  Build(spec);
  EXPECT_EQ(NodeOf(FindBest(*state_, Ask("w"), MostFree())), "b");
}

}  // namespace
}  // namespace tessera
