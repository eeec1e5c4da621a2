#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/cluster/charge.h"
#include "tessera/state/cluster_state.h"
#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Costs that a test can add up: no score, and a digit for each thing done.
SlicePolicy Digits() {
  return ScoreSlicesBy(FirstFitSlice(), {.open = 1000, .set_mig = 100, .create = 10, .destroy = 1});
}

class CheapestSliceTest : public testing::Test {
 protected:
  // One A100 node. The pods of workload `w` ask for `wanted`; those of `held` hold
  // the instances that they name.
  void Build(std::vector<Gpu> gpus, GpuRequest wanted, const std::vector<GpuSlice>& held,
             const SlicePolicy& policy) {
    SnapshotSpec spec;
    spec.nodes = {MakeNode("n")};
    spec.nodes[0].gpu_model = "A100-40GB";
    spec.nodes[0].gpus = std::move(gpus);
    spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 1, WithGpu(std::move(wanted)))})};
    for (size_t i = 0; i < held.size(); ++i) {
      Workload& holder = spec.workloads.emplace_back(MakeWorkload(
          absl::StrCat("held", i), "", {MakePodSet("s", 1, SliceOfProfile(held[i].profile))}));
      holder.pods = {MakePod("s", 0, "n", OnSlice(held[i].gpu, held[i].profile, held[i].start))};
    }
    snapshot_.emplace(CreateOrDie(spec));
    state_.emplace(std::make_shared<const StateTables>(*snapshot_, policy), InitialPods());
  }
  // "cost: profile@start on GPU", or "none".
  std::string Ask(uint64_t gpus = ~uint64_t{0}) const {
    const WorkloadId w = *snapshot_->FindWorkload("w");
    const PodSetInfo& set = snapshot_->pod_set(PodSetId(snapshot_->info(w).first_pod_set));
    const auto place = state_->CheapestSlice(
        NodeId(0), snapshot_->request_class(set.request_class).models[0], gpus);
    if (!place) return "none";
    return absl::StrCat(
        place->cost, ": ",
        snapshot_->model(ModelId(0)).profiles[static_cast<size_t>(place->profile)].name, "@",
        place->start, " on ", place->gpu);
  }

  std::optional<Snapshot> snapshot_;
  std::optional<ClusterState> state_;
};

TEST_F(CheapestSliceTest, EachThingDoneHasItsPrice) {
  const GpuInstance idle = {"2g.10gb", 0};
  const Gpu off = MakeMigGpu(MigMode::kDynamic);
  Gpu on = off;
  on.mig_enabled = true;
  const Gpu used = MakeMigGpu(MigMode::kDynamic, {{"1g.5gb", 6}, idle});
  const std::vector<GpuSlice> held = {{3, "1g.5gb", 6}};
  const auto ask = [&](const char* profile, uint64_t gpus) {
    Build({off, on, MakeMigGpu(MigMode::kDynamic, {idle}), used}, GpuRequest::Profile(profile),
          held, Digits());
    return Ask(gpus);
  };
  EXPECT_EQ(ask("1g.5gb", 1), "1110: 1g.5gb@0 on 0") << "open, switch, carve";
  EXPECT_EQ(ask("1g.5gb", 2), "1010: 1g.5gb@0 on 1") << "open, carve";
  EXPECT_EQ(ask("2g.10gb", 4), "1000: 2g.10gb@0 on 2") << "open; it is there";
  EXPECT_EQ(ask("7g.40gb", 4), "1011: 7g.40gb@0 on 2") << "open, destroy one, carve";
  EXPECT_EQ(ask("2g.10gb", 8), "0: 2g.10gb@0 on 3") << "it is there";
  EXPECT_EQ(ask("1g.5gb", 8), "10: 1g.5gb@2 on 3") << "beside what is idle";
  EXPECT_EQ(ask("4g.20gb", 8), "11: 4g.20gb@0 on 3") << "destroy one, carve";
  EXPECT_EQ(ask("7g.40gb", 8), "none") << "the held 1g stays";
  EXPECT_EQ(ask("1g.5gb", 15), "10: 1g.5gb@2 on 3") << "of all the cheapest";
}

TEST_F(CheapestSliceTest, ListedProfilesServeInTheirOrder) {
  const std::vector<Gpu> gpus = {MakeMigGpu(MigMode::kStatic, {{"2g.10gb", 0}}),
                                 MakeMigGpu(MigMode::kDynamic)};
  Build(gpus, GpuRequest::Profiles({"3g.20gb", "2g.10gb"}), {}, Digits());
  EXPECT_EQ(Ask(), "1110: 3g.20gb@0 on 1") << "though a 2g lies idle";
  EXPECT_EQ(Ask(1), absl::StrCat(kCostOfTier, ": 2g.10gb@0 on 0"));
  Build(gpus, GpuRequest::Profiles({"1g.5gb+me", "3g.20gb"}), {{0, "2g.10gb", 0}}, Digits());
  EXPECT_EQ(Ask(1), "none");
}

TEST_F(CheapestSliceTest, ALargerOneServesWhereTheRequestSaysSoAndItIsCheaper) {
  const std::vector<Gpu> gpus = {MakeMigGpu(MigMode::kStatic, {{"3g.20gb", 4}}),
                                 MakeMigGpu(MigMode::kDynamic)};
  GpuRequest request = GpuRequest::Profile("2g.10gb");
  Build(gpus, request, {}, Digits());
  EXPECT_EQ(Ask(), "1110: 2g.10gb@0 on 1");
  request.allow_larger = true;
  Build(gpus, request, {}, Digits());
  EXPECT_EQ(Ask(), "0: 3g.20gb@4 on 0");
  // By the default policy, too: room for a 3g is worth less than an unopened GPU.
  Build(gpus, request, {}, {});
  EXPECT_THAT(Ask(), testing::EndsWith("3g.20gb@4 on 0"));
  request = GpuRequest::Requirement({.memory = 8 * kBytesPerGiB});
  request.allow_larger = true;
  Build(gpus, request, {}, Digits());
  EXPECT_EQ(Ask(), "0: 3g.20gb@4 on 0");
}

TEST_F(CheapestSliceTest, WhatIsHeldIsCharged) {
  GpuRequest request = GpuRequest::Profile("1g.5gb");
  request.allow_larger = true;
  Build({MakeMigGpu(MigMode::kStatic, {{"3g.20gb", 4}})}, request, {}, {});
  const PodPlacement place{
      NodeId(0), 0, 1, static_cast<int16_t>(*snapshot_->model(ModelId(0)).FindProfile("3g.20gb")),
      4};
  const RequestClassId c = snapshot_->pod_set(PodSetId(0)).request_class;
  EXPECT_EQ(ChargeOf(*snapshot_, c, place, MigCharge::kByComputeSlices)[kGpu], 3000);
  EXPECT_EQ(ExpectedCharge(*snapshot_, c, MigCharge::kByComputeSlices)[kGpu], 1000);
}

TEST_F(CheapestSliceTest, TheGradientKeepsRoomOpensLateAndUsesWhatIsStatic) {
  // An empty GPU: 3g at 4 leaves 4 x 1g, 2 x 2g, 3g and 4g; at 0 it would leave 3, 1, 1, 0.
  Build({MakeMigGpu(MigMode::kDynamic)}, GpuRequest::Profile("3g.20gb"), {}, {});
  EXPECT_THAT(Ask(), testing::EndsWith("3g.20gb@4 on 0"));
  Build({MakeMigGpu(MigMode::kDynamic)}, GpuRequest::Profile("1g.5gb"), {}, {});
  EXPECT_THAT(Ask(), testing::EndsWith("1g.5gb@6 on 0"));
  // A bad place on an opened GPU before a good one on a free GPU.
  const Gpu used = MakeMigGpu(MigMode::kDynamic, {{"1g.5gb", 6}});
  Build({MakeMigGpu(MigMode::kDynamic), used}, GpuRequest::Profile("3g.20gb"), {{1, "1g.5gb", 6}},
        {});
  EXPECT_THAT(Ask(), testing::EndsWith("3g.20gb@0 on 1"));
  Build({used, MakeMigGpu(MigMode::kStatic, {{"1g.5gb", 0}})}, GpuRequest::Profile("1g.5gb"),
        {{0, "1g.5gb", 6}}, {});
  EXPECT_THAT(Ask(), testing::EndsWith("1g.5gb@0 on 1"));
}

TEST_F(CheapestSliceTest, AnIdleInstanceWinsUnlessANewOneKeepsClearlyMoreRoom) {
  // Beside the held 4g at 0, 1g go at 4, 5, 6: all alike but for the 2g at 4.
  const auto ask = [&](int idle) {
    Build({MakeMigGpu(MigMode::kDynamic, {{"4g.20gb", 0}, {"1g.5gb", idle}})},
          GpuRequest::Profile("1g.5gb"), {{0, "4g.20gb", 0}}, {});
    return Ask();
  };
  EXPECT_THAT(ask(6), testing::EndsWith("1g.5gb@6 on 0"));
  // At 4 it takes the place of the 3g, as at 6, and of the 2g, too.
  EXPECT_THAT(ask(4), testing::EndsWith("1g.5gb@6 on 0"));
}

TEST_F(CheapestSliceTest, WhatIsStaticBrokenOrWholeIsNotCarved) {
  Gpu broken = MakeMigGpu(MigMode::kDynamic);
  broken.healthy = false;
  const std::vector<Gpu> gpus = {MakeMigGpu(MigMode::kStatic, {{"1g.5gb", 0}}), broken, Gpu()};
  Build(gpus, GpuRequest::Profile("2g.10gb"), {}, {});
  EXPECT_EQ(Ask(), "none");
  Build(gpus, GpuRequest::Profile("1g.5gb"), {}, {});
  EXPECT_THAT(Ask(), testing::EndsWith("1g.5gb@0 on 0"));
}

TEST_F(CheapestSliceTest, ThePolicyDecidesHowManyGpusAreOpened) {
  // Two GPUs of which one is opened: worst-fit without a price opens the other, with a
  // price above any score it does not.
  const std::vector<Gpu> gpus = {MakeMigGpu(MigMode::kDynamic, {{"1g.5gb", 6}}),
                                 MakeMigGpu(MigMode::kDynamic)};
  const auto ask = [&](const SlicePolicy& policy) {
    Build(gpus, GpuRequest::Profile("1g.5gb"), {{0, "1g.5gb", 6}}, policy);
    return Ask();
  };
  EXPECT_THAT(ask(ScoreSlicesBy(WorstFitSlice())), testing::EndsWith("on 1"));
  EXPECT_THAT(ask(ScoreSlicesBy(WorstFitSlice(), {.open = 8})), testing::EndsWith("on 0"));
  SlicePolicy wanting;
  wanting.open = -kWorthOfEmptyGpu * 2;
  EXPECT_THAT(ask(wanting), testing::EndsWith("on 1"));
}

TEST(SliceDemandTest, CountsWhatPodsWantFirstAndWholeDevices) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n"), MakeNode("m")};
  spec.nodes[0].gpu_model = "A100-40GB";
  spec.nodes[0].gpus = {MakeMigGpu(MigMode::kDynamic, {{"3g.20gb", 0}}), Gpu()};
  spec.nodes[1].gpu_model = "H100-80GB";
  spec.nodes[1].gpus.resize(2);
  spec.workloads = {
      MakeWorkload("a", "", {MakePodSet("s", 3, SliceOfProfile("1g.5gb"))}),
      MakeWorkload("b", "", {MakePodSet("s", 2, SliceOfProfile("3g.20gb"))}),
      MakeWorkload("c", "", {MakePodSet("s", 4, WholeGpus(2))}),
      MakeWorkload(
          "d", "",
          {MakePodSet("s", 5, WithGpu(GpuRequest::Requirement({.memory = 9 * kBytesPerGiB})))}),
      MakeWorkload("e", "", {MakePodSet("s", 9, Fraction(700))})};
  spec.workloads[1].pods = {MakePod("s", 0, "n", OnSlice(0, "3g.20gb", 0))};
  spec.workloads[0].pods = {MakePod("s", 0, "n", {}, PodPhase::kSucceeded)};
  spec.workloads[0].pods[0].node = "";
  const Snapshot snapshot = CreateOrDie(spec);
  const auto model = [&](int n) { return snapshot.node_model(NodeId(n)); };
  // Nodes are in the order of their names.
  const SliceDemand a100 = EstimateSliceDemand(snapshot, model(1));
  EXPECT_EQ(a100.whole, 8);
  EXPECT_THAT(a100.profiles,
              ElementsAre(Pair("1g.10gb", 5), Pair("1g.5gb", 2), Pair("3g.20gb", 2)));
  const SliceDemand h100 = EstimateSliceDemand(snapshot, model(0));
  EXPECT_THAT(h100.profiles, ElementsAre(Pair("1g.10gb", 5)));
}

TEST(SlicePolicyTest, StatedDemandDecidesAndNonsenseInItIsHarmless) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n")};
  spec.nodes[0].gpu_model = "A100-40GB";
  spec.nodes[0].gpus = {MakeMigGpu(MigMode::kDynamic)};
  spec.workloads = {MakeWorkload("a", "", {MakePodSet("s", 1, SliceOfProfile("1g.5gb"))})};
  const Snapshot snapshot = CreateOrDie(spec);
  const MigTables& mig = snapshot.mig(ModelId(0));
  SlicePolicy policy;
  policy.demand["A100-40GB"] = {{{"7g.40gb", INT64_MAX}, {"1g.5gb", -5}, {"9g.99gb", 3}},
                                INT64_MAX};
  policy.demand["B9000"] = {};
  policy.create = INT64_MAX;
  policy.destroy = INT64_MIN;
  const SliceCostTable costs = MakeSliceCostTable(snapshot, ModelId(0), policy);
  EXPECT_EQ(costs.costs().create, int64_t{1} << 36);
  // P = 6 plain profiles; the weights of a 7g and of the whole GPU are 7 x 2^32 each, that
  // of all others 2^32, so that an opened GPU has lost 64 x 7 of
  // 64 x 7 + 64 x 7 + 7 + 4 x 4 + 3 x 4 + 2 x 16 + 16.
  EXPECT_EQ(costs.costs().open, 64 * 7 * kWorthOfEmptyGpu / (2 * 64 * 7 + 83));
  const int p1g = *mig.model().FindProfile("1g.5gb");
  EXPECT_LT(costs.BestOf(mig.empty(), p1g).score, costs.costs().open + kWorthOfEmptyGpu);
  EXPECT_EQ(costs.BestOf(mig.empty(), p1g).start, 6);
}

}  // namespace
}  // namespace tessera
