#include "tessera/placement/slice_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

class SlicePlacementTest : public testing::Test {
 protected:
  // One A100 node; the pods of `held` hold the instances of GPU 0 that they name.
  void Build(std::vector<Gpu> gpus, const std::vector<GpuSlice>& held) {
    SnapshotSpec spec;
    spec.nodes = {MakeNode("n")};
    spec.nodes[0].gpu_model = "A100-40GB";
    spec.nodes[0].gpus = std::move(gpus);
    const int count = std::max<int>(static_cast<int>(held.size()), 1);
    spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", count, SliceOfProfile("1g.5gb"))})};
    for (size_t i = 0; i < held.size(); ++i) {
      spec.workloads[0].pods.push_back(MakePod(
          "s", static_cast<int>(i), "n", OnSlice(held[i].gpu, held[i].profile, held[i].start)));
    }
    snapshot_.emplace(CreateOrDie(spec));
    state_.emplace(std::make_shared<const StateTables>(*snapshot_), InitialPods());
  }
  std::optional<SlicePlacement> Ask(std::string_view profile,
                                    DevicePreference preference = DevicePreference::kPack) {
    return PlaceSlice(*state_, NodeId(0), *snapshot_->model(ModelId(0)).FindProfile(profile),
                      preference);
  }

  std::optional<Snapshot> snapshot_;
  std::optional<ClusterState> state_;
};

TEST_F(SlicePlacementTest, AnEmptyGpuKeepsItsLeftHalf) {
  Build({MakeMigGpu(MigMode::kDynamic)}, {});
  // 3g at 4 leaves 4 x 1g, 2 x 2g, 3g and 4g; at 0 it would leave 3 x 1g, 2g, 3g.
  EXPECT_EQ(Ask("3g.20gb")->start, 4);
  EXPECT_EQ(Ask("1g.5gb")->start, 6);
}

TEST_F(SlicePlacementTest, IdleThenOpenThenFresh) {
  Build({MakeMigGpu(MigMode::kDynamic, {{"1g.5gb", 6}}), MakeMigGpu(MigMode::kDynamic),
         MakeMigGpu(MigMode::kStatic, {{"2g.10gb", 0}})},
        {{0, "1g.5gb", 6}});
  EXPECT_EQ(Ask("2g.10gb")->source, SliceSource::kIdle);
  EXPECT_EQ(Ask("2g.10gb")->gpu, 2);
  EXPECT_EQ(Ask("1g.5gb")->source, SliceSource::kOpen);
  EXPECT_EQ(Ask("1g.5gb", DevicePreference::kSpread)->source, SliceSource::kFresh);
  EXPECT_EQ(Ask("7g.40gb")->gpu, 1);
}

TEST_F(SlicePlacementTest, IdleInstancesInTheWayCount) {
  // The idle 3g may go, the held 1g may not: 4g needs units 0-3.
  Build({MakeMigGpu(MigMode::kDynamic, {{"1g.5gb", 6}, {"3g.20gb", 0}})}, {{0, "1g.5gb", 6}});
  ASSERT_TRUE(Ask("4g.20gb"));
  EXPECT_EQ(Ask("4g.20gb")->start, 0);
  EXPECT_FALSE(Ask("7g.40gb"));
}

TEST_F(SlicePlacementTest, StaticAndUnhealthyGpusAreNotCarved) {
  Gpu broken = MakeMigGpu(MigMode::kDynamic);
  broken.healthy = false;
  Build({MakeMigGpu(MigMode::kStatic, {{"1g.5gb", 0}}), broken, Gpu()}, {});
  EXPECT_FALSE(Ask("2g.10gb"));
  EXPECT_EQ(Ask("1g.5gb")->source, SliceSource::kIdle);
}

}  // namespace
}  // namespace tessera
