// What must hold of the search for gangs on any cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tessera/cluster/plan.h"
#include "tessera/io/snapshot_json.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/schedule/schedule.h"
#include "tests/support/random_cluster.h"

namespace tessera {
namespace {

constexpr GangOptions kPatient{.exact_budget = 1000000};

// A cluster that has run, with gangs "x0", "x1", ... that wait.
SnapshotSpec Waiting(RandomCluster& random, int gangs) {
  const Snapshot empty = CreateOrDie(random.Draw());
  SnapshotSpec spec = ApplyAndSettle(empty, Schedule(empty).plan)->spec();
  random.Disturb(spec);
  for (int i = 0; i < gangs; ++i) {
    spec.workloads.push_back(random.DrawWorkload(absl::StrCat("x", i), spec));
  }
  return spec;
}

ClusterState StateOf(const Snapshot& snapshot) {
  return {std::make_shared<const StateTables>(snapshot), {}};
}

std::vector<WorkloadId> All(const Snapshot& snapshot) {
  std::vector<WorkloadId> all;
  for (int w = 0; w < snapshot.num_workloads(); ++w) all.emplace_back(w);
  return all;
}

TEST(PlacementProperties, AnotherFreeNodeNeverHurts) {
  const int cases = RandomCases(500, 20000);
  int placed = 0;
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    SnapshotSpec spec = Waiting(random, 1);
    const Snapshot fewer = CreateOrDie(spec);
    ClusterState state = StateOf(fewer);
    const GangPlacement before = PlaceGang(state, *fewer.FindWorkload("x0"), FindPacked, kPatient);
    Node node = random.Draw().nodes[0];
    node.name = "another";
    spec.nodes.push_back(std::move(node));
    const Snapshot more = CreateOrDie(spec);
    ClusterState larger = StateOf(more);
    const GangPlacement after = PlaceGang(larger, *more.FindWorkload("x0"), FindPacked, kPatient);
    if (before.placed()) {
      ASSERT_TRUE(after.placed() || after.outcome == SearchOutcome::kBudgetExhausted)
          << "seed " << seed << "\n"
          << WriteSnapshot(more);
    }
    placed += before.placed() ? 1 : 0;
  }
  EXPECT_GT(placed, cases / 4);
}

// Where pods are, by names.
std::map<PodRef, std::string> Places(const ClusterState& state) {
  std::map<PodRef, std::string> places;
  for (int i = 0; i < state.snapshot().num_pods(); ++i) {
    const PodPlacement& at = state.placement(PodId(i));
    if (!at.node.valid()) continue;
    places[state.snapshot().pod_ref(PodId(i))] =
        absl::StrCat(state.snapshot().node(at.node).name, " ", at.gpus, " ", at.start);
  }
  return places;
}

TEST(PlacementProperties, TheOrderOfTheInputChangesNothing) {
  const int cases = RandomCases(300, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const SnapshotSpec spec = Waiting(random, 2);
    const Snapshot snapshot = CreateOrDie(spec);
    const Snapshot shuffled = CreateOrDie(random.Shuffled(spec));
    ClusterState a = StateOf(snapshot), b = StateOf(shuffled);
    const std::vector<GangPlacement> of_a = PlaceMany(a, All(snapshot));
    ASSERT_TRUE(of_a == PlaceMany(b, All(shuffled))) << "seed " << seed;
    ASSERT_EQ(Places(a), Places(b)) << "seed " << seed;
  }
}

TEST(PlacementProperties, ManyGangsAtOnceEndAsOneByOne) {
  const int cases = RandomCases(500, 20000);
  int in_vain = 0;
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    SnapshotSpec spec = Waiting(random, 6);
    // Gangs that lack the same, so that there is something to share.
    for (int i = 0; i < 6; ++i) {
      Workload copy =
          spec.workloads[spec.workloads.size() - 1 - static_cast<size_t>(random.Below(6))];
      copy.name = absl::StrCat("y", i);
      spec.workloads.push_back(std::move(copy));
    }
    const Snapshot snapshot = CreateOrDie(spec);
    ClusterState together = StateOf(snapshot), one_by_one = together;
    const ClusterState before = together;
    const std::vector<GangPlacement> results =
        PlaceMany(together, All(snapshot), FindPacked, kPatient);
    for (int w = 0; w < snapshot.num_workloads(); ++w) {
      const GangPlacement alone = PlaceGang(one_by_one, WorkloadId(w), FindPacked, kPatient);
      const GangPlacement& shared = results[static_cast<size_t>(w)];
      ASSERT_TRUE(alone == shared)
          << "seed " << seed << ", " << snapshot.workload(WorkloadId(w)).name << ": "
          << static_cast<int>(alone.outcome) << " " << alone.stuck_at.value() << ", together "
          << static_cast<int>(shared.outcome) << " " << shared.stuck_at.value() << "\n"
          << WriteSnapshot(snapshot);
      in_vain += shared.proven ? 1 : 0;
    }
    ASSERT_TRUE(together == one_by_one) << "seed " << seed;
    together.RollBack(0);
    ASSERT_TRUE(together == before) << "seed " << seed;
  }
  EXPECT_GT(in_vain, cases);
}

}  // namespace
}  // namespace tessera
