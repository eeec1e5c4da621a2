#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/placement/finders.h"
#include "tessera/placement/node_room.h"
#include "tessera/placement/published_scorers.h"
#include "tessera/placement/simple_scorers.h"
#include "tests/support/random_cluster.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

bool Equal(const DeviceRoom& a, const DeviceRoom& b) {
  return a.left == b.left && a.whole == b.whole && a.shares == b.shares && a.held == b.held &&
         a.profiles == b.profiles;
}

TEST(NodeRoomProperties, RoomAfterIsTheRoomOnceThePodIsPlaced) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const Snapshot snapshot = CreateOrDie(random.Draw());
    ClusterState state(std::make_shared<const StateTables>(snapshot), {});
    for (int p = 0; p < snapshot.num_pods(); ++p) {
      if (state.is_placed(PodId(p))) continue;
      const PodSetId s = snapshot.pod_set_of(PodId(p));
      const RequestClassId c = snapshot.pod_set(s).request_class;
      const PodQuery query{s, {0, snapshot.num_nodes()}, 0};
      const NodeId n(random.Below(snapshot.num_nodes()));
      if (state.tables().eligibility(c, state.tables().signature_of(n)) != Eligibility::kEligible) {
        continue;
      }
      std::vector<PodPlacement> places;
      ForEachPlacement(state, query, n,
                       [&](const PodPlacement& place) { places.push_back(place); });
      EXPECT_EQ(places.empty(),
                !ChooseDevices(state, query, n, DevicePreference::kPack).has_value());
      if (places.empty()) continue;
      const PodPlacement place = places[static_cast<size_t>(random.Below(places.size()))];
      ASSERT_TRUE(IsFree(state, s, place));
      const NodeRoom after = RoomAfter(state, RoomOf(state, n), snapshot.request_class(c),
                                       {n, place, state.free_gpus(n), state.room(n)});
      state.Place(PodId(p), place);
      const NodeRoom now = RoomOf(state, n);
      EXPECT_EQ(after.cpu, now.cpu);
      for (size_t g = 0; g < now.devices().size(); ++g) {
        ASSERT_TRUE(Equal(after.device[g], now.device[g])) << "seed " << seed << " GPU " << g;
      }
    }
  }
}

// Two nodes: "a", 64 cores and 2 GPUs, one of them held to 3/7; "b", 32 cores and 4 GPUs.
class ScorersTest : public testing::Test {
 protected:
  ScorersTest() {
    SnapshotSpec spec;
    spec.nodes = {MakeNode("a", 2), MakeNode("b", 4)};
    spec.nodes[1].capacity.cpu = Cores(32);
    const auto add = [&spec](std::string name, Request request, int64_t cores) {
      request.cpu = Cores(cores);
      spec.workloads.push_back(MakeWorkload(std::move(name), "", {MakePodSet("s", 1, request)}));
    };
    add("old", Fraction(3000), 8);
    add("part", Fraction(2000), 4);
    add("most", Fraction(5000), 4);
    add("one", WholeGpus(1), 4);
    add("cpu", CpuOnly(4), 4);
    spec.workloads[0].pods = {MakePod("s", 0, "a", OnShare(0, 3000))};
    snapshot_.emplace(CreateOrDie(std::move(spec)));
    state_.emplace(std::make_shared<const StateTables>(*snapshot_), InitialPods());
  }

  // Of the workload's pod on nodes a and b.
  template <typename Scorer>
  std::vector<int64_t> Scores(const std::string& workload, const Scorer& scorer) const {
    const PodSetId s(snapshot_->info(*snapshot_->FindWorkload(workload)).first_pod_set);
    std::vector<int64_t> scores;
    const auto keep = [&](std::span<const Candidate> candidates, std::span<int64_t> out) {
      ScoreBatch(scorer, *state_, s, candidates, out);
      scores.assign(out.begin(), out.end());
    };
    FindBest(*state_, {s, {0, 2}, 0}, keep, ScoresEveryDevice<Scorer>());
    return scores;
  }

  std::optional<Snapshot> snapshot_;
  std::optional<ClusterState> state_;
};

TEST_F(ScorersTest, PackingAndSpreadingGoByWhatIsLeft) {
  EXPECT_THAT(Scores("part", PackGpus()), ElementsAre(-11000, -28000));  // 4000 + 7000
  EXPECT_THAT(Scores("part", SpreadGpus()), ElementsAre(11000, 28000));
}

TEST_F(ScorersTest, EachResourceGoesItsOwnWay) {
  // After: a has 9000 of 14000 (642 of 1000) and 52 of 64 cores (812);
  //        b has 26000 of 28000 (928) and 28 of 32 cores (875).
  EXPECT_THAT(Scores("part", PerResource{.gpu = -4, .cpu = 1}),
              ElementsAre(-4 * 642 + 812, -4 * 928 + 875));
  // A pod without GPU spreads over CPU and keeps GPUs together: 785 of b's 1000 are free.
  EXPECT_THAT(Scores("cpu", PerResource{.gpu = -4, .cpu = 1}),
              ElementsAre(-4 * 785 + 812, -4 * 1000 + 875));
}

TEST_F(ScorersTest, SumsCompose) {
  using Sum = ScoreSum<Weighted<3, PackGpus>, SpreadGpus>;
  EXPECT_THAT(Scores("part", Sum()), ElementsAre(-22000, -56000));
  static_assert(!ScoresEveryDevice<Sum>());
  EXPECT_THAT(Scores("part", ScoreSum<>()), ElementsAre(0, 0));
}

TEST_F(ScorersTest, DotProductAvoidsWhatThePodWants) {
  // a: cores 56 x 4 / 128^2 = 0.01367, devices 11/7 x 2/7 / 64 = 0.00702; 50 x sum = 1.03
  // b: cores 32 x 4 / 128^2 = 0.00781, devices 4 x 2/7 / 64 = 0.01786;    50 x sum = 1.28
  EXPECT_THAT(Scores("part", DotProduct()), ElementsAre(98, 98));
  // a: 0.01367 + 11/7 / 64 = 0.03823; 1.91.   b: 0.00781 + 4 / 64 = 0.07031; 3.52
  EXPECT_THAT(Scores("one", DotProduct()), ElementsAre(98, 96));
}

TEST_F(ScorersTest, BestFitLeavesLeast) {
  // a: 52/128 + (11/7 - 1)/8 = 0.47768; 100 - 23.88.  b: 28/128 + 3/8 = 0.59375; 100 - 29.69
  EXPECT_THAT(Scores("one", BestFit()), ElementsAre(76, 70));
  // a: 52/128 + 11/56 = 0.60268; 100 - 30.13.  b: 28/128 + 4/8 = 0.71875; 100 - 35.94
  EXPECT_THAT(Scores("cpu", BestFit()), ElementsAre(69, 64));
}

TEST_F(ScorersTest, PackingPrefersUsedDevicesThenUsedNodes) {
  EXPECT_THAT(Scores("part", GpuPacking()), ElementsAre(95, 29));  // 4/7 free: 5; 33 - 4
  EXPECT_THAT(Scores("most", GpuPacking()), ElementsAre(49, 29));  // opens one
  EXPECT_THAT(Scores("one", GpuPacking()), ElementsAre(49, 29));
  EXPECT_THAT(Scores("cpu", GpuPacking()), ElementsAre(0, 0));
}

TEST_F(ScorersTest, ClusteringKeepsClassesApart) {
  const std::vector<uint8_t> hosted = {1, 0};  // shared pods on a
  // 25 (8 - 11/7) / 8 = 20.09; 25 (8 - 4) / 8 = 12.5
  EXPECT_THAT(Scores("part", GpuClustering{hosted}), ElementsAre(75 + 20, 25 + 12));
  EXPECT_THAT(Scores("one", GpuClustering{hosted}), ElementsAre(0 + 20, 25 + 12));
  const std::vector<uint8_t> both = {3, 2};
  EXPECT_THAT(Scores("part", GpuClustering{both}), ElementsAre(50 + 20, 0 + 12));
  EXPECT_THAT(Scores("one", GpuClustering{both}), ElementsAre(50 + 20, 75 + 12));
  EXPECT_THAT(Scores("cpu", GpuClustering{both}), ElementsAre(0, 0));
}

}  // namespace
}  // namespace tessera
