#include "tessera/state/cluster_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/placement/finders.h"
#include "tests/support/random_cluster.h"

namespace tessera {
namespace {

ClusterState StateOf(const Snapshot& snapshot, InitialPods initial = {}) {
  return ClusterState(std::make_shared<const StateTables>(snapshot), initial);
}

PodPlacement OnSlices(NodeId n, int gpu, int profile, int start) {
  PodPlacement placement;
  placement.node = n;
  placement.gpus = uint64_t{1} << gpu;
  placement.profile = static_cast<int16_t>(profile);
  placement.start = static_cast<int16_t>(start);
  return placement;
}

SnapshotSpec OneMigNode(std::vector<GpuInstance> instances) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 0)};
  spec.nodes[0].gpu_model = "A100-40GB";
  spec.nodes[0].gpus = {MakeMigGpu(MigMode::kDynamic, std::move(instances))};
  spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 8, SliceOfProfile("1g.5gb"))}),
                    MakeWorkload("x", "", {MakePodSet("s", 1, WholeGpus(1))})};
  return spec;
}

TEST(ClusterStateTest, CarvingDestroysOnlyTheIdleInstancesInItsWay) {
  const Snapshot snapshot = CreateOrDie(OneMigNode({{"3g.20gb", 0}, {"3g.20gb", 4}}));
  ClusterState state = StateOf(snapshot);
  const GpuModel& model = snapshot.model(ModelId(0));
  state.Place(PodId(0), OnSlices(NodeId(0), 0, *model.FindProfile("1g.5gb"), 5));
  const InstanceRow& row = state.instances(NodeId(0), 0);
  EXPECT_EQ(row[0], *model.FindProfile("3g.20gb"));
  EXPECT_EQ(row[4], -1);
  EXPECT_EQ(row[5], *model.FindProfile("1g.5gb"));
  const std::vector<MigChange> changes = state.MigChangesSince(0);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].before[4], *model.FindProfile("3g.20gb"));
  EXPECT_EQ(changes[0].after[4], -1);
  state.Remove(PodId(0));
  EXPECT_EQ(state.instances(NodeId(0), 0)[5], *model.FindProfile("1g.5gb")) << "stays, idle";
  EXPECT_FALSE(state.gpu(NodeId(0), 0).is_held());
}

TEST(ClusterStateTest, AWholeGpuLeavesMigMode) {
  const Snapshot snapshot = CreateOrDie(OneMigNode({{"3g.20gb", 0}}));
  ClusterState state = StateOf(snapshot);
  EXPECT_EQ(state.free_gpus(NodeId(0)), 1);
  PodPlacement whole;
  whole.node = NodeId(0);
  whole.gpus = 1;
  state.Place(PodId(8), whole);
  EXPECT_EQ(state.free_gpus(NodeId(0)), 0);
  EXPECT_FALSE(state.gpu(NodeId(0), 0).mig_enabled);
  EXPECT_EQ(state.instances(NodeId(0), 0)[0], -1);
  state.RollBack(0);
  EXPECT_TRUE(state == StateOf(snapshot));
}

TEST(ClusterStateTest, AReservationDoesNotCarve) {
  const Snapshot snapshot = CreateOrDie(OneMigNode({{"3g.20gb", 0}}));
  ClusterState state = StateOf(snapshot);
  state.Reserve(PodId(0),
                OnSlices(NodeId(0), 0, *snapshot.model(ModelId(0)).FindProfile("1g.5gb"), 6));
  EXPECT_EQ(state.instances(NodeId(0), 0)[6], -1);
  EXPECT_EQ(state.free_gpus(NodeId(0)), 0) << "but nobody else gets the device";
  state.Remove(PodId(0));
  EXPECT_EQ(state.free_gpus(NodeId(0)), 1);
}

TEST(ClusterStateTest, ReleasingPodsHoldTheirPlaceUnderAGhost) {
  SnapshotSpec spec;
  spec.levels = {"rack"};
  spec.nodes = {MakeNode("n", 2)};
  spec.nodes[0].topology["rack"] = "r";
  spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 1, WholeGpus(1))})};
  spec.workloads[0].gang.pod_sets[0].max_per_node = 3;
  spec.workloads[0].gang.pod_sets[0].max_per_domain = DomainLimit{"rack", 2};
  spec.workloads[0].pods = {MakePod("s", 0, "n", OnGpus({1}), PodPhase::kReleasing)};
  const Snapshot snapshot = CreateOrDie(spec);
  const ClusterState now = StateOf(snapshot), later = StateOf(snapshot, {.releasing = false});
  EXPECT_FALSE(now.is_placed(PodId(0)));
  EXPECT_EQ(now.free_gpus(NodeId(0)), 1);
  EXPECT_EQ(now.LeftOn(NodeId(0), PodSetId(0)), 1) << "2 in the rack, less the one that leaves";
  EXPECT_EQ(later.LeftOn(NodeId(0), PodSetId(0)), 2);
  EXPECT_EQ(now.free_gpus(0, DomainId(0)), 1);
  EXPECT_EQ(later.free_gpus(NodeId(0)), 2);
  EXPECT_EQ(later.free_gpus(0, DomainId(0)), 2);
}

TEST(ClusterStateTest, OverCommittedNodesTakeNothingMoreAndUnderflowNothing) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n")};
  spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 2, CpuOnly(50))}),
                    MakeWorkload("x", "", {MakePodSet("s", 1, CpuOnly(1))})};
  spec.workloads[0].pods = {MakePod("s", 0, "n"), MakePod("s", 1, "n")};
  const Snapshot snapshot = CreateOrDie(spec);
  const ClusterState state = StateOf(snapshot);
  EXPECT_EQ(state.free_amount(NodeId(0), 0), Cores(64 - 100));
  EXPECT_EQ(FindPacked(state, {PodSetId(1), {0, 1}, 0}), std::nullopt);
}

// Random placements, reservations and removals; back to every mark bit for bit.
TEST(ClusterStateProperties, RollBackRestoresBitForBit) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const Snapshot snapshot = CreateOrDie(random.Draw());
    ClusterState state = StateOf(snapshot);
    std::vector<std::pair<ClusterState::Mark, ClusterState>> marks;
    for (int step = 0; step < 25; ++step) {
      if (random.Chance(30)) marks.emplace_back(state.GetMark(), state);
      const PodId p(random.Below(snapshot.num_pods()));
      if (state.is_placed(p)) {
        state.Remove(p);
        continue;
      }
      const PodQuery query{snapshot.pod_set_of(p), {0, snapshot.num_nodes()}, 0};
      const auto place = random.Chance(50) ? FindPacked(state, query) : FindSpread(state, query);
      if (!place) continue;
      if (random.Chance(20)) {
        state.Reserve(p, *place);
      } else {
        state.Place(p, *place);
      }
    }
    while (!marks.empty()) {
      state.RollBack(marks.back().first);
      ASSERT_TRUE(state == marks.back().second) << "seed " << seed;
      marks.pop_back();
    }
  }
}

}  // namespace
}  // namespace tessera
