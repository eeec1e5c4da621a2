#include "tessera/placement/gang_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

class GangPlacementTest : public testing::Test {
 protected:
  // Racks r1 (n1, n2) and r2 (n3, n4) of 4-GPU nodes.
  GangPlacementTest() {
    spec_.levels = {"rack", "node"};
    for (int i = 1; i <= 4; ++i) {
      Node node = MakeNode(std::string("n") + std::to_string(i), 4);
      node.topology["rack"] = i <= 2 ? "r1" : "r2";
      spec_.nodes.push_back(std::move(node));
    }
  }

  Workload& Gang(std::vector<PodSet> sets) {
    return spec_.workloads.emplace_back(MakeWorkload("gang", "", std::move(sets)));
  }
  void Build() {
    snapshot_.emplace(CreateOrDie(spec_));
    state_.emplace(std::make_shared<const StateTables>(*snapshot_), InitialPods());
    gang_ = *snapshot_->FindWorkload("gang");
  }
  std::set<std::string> NodesOf(const std::vector<PodId>& pods) const {
    std::set<std::string> nodes;
    for (PodId p : pods) nodes.insert(snapshot_->node(state_->placement(p).node).name);
    return nodes;
  }

  SnapshotSpec spec_;
  std::optional<Snapshot> snapshot_;
  std::optional<ClusterState> state_;
  WorkloadId gang_;
};

TEST_F(GangPlacementTest, AllOrNothing) {
  Gang({MakePodSet("router", 1, CpuOnly(1)), MakePodSet("decode", 5, WholeGpus(4))});
  Build();
  const ClusterState before = *state_;
  const GangPlacement result = PlaceGang(*state_, gang_);
  EXPECT_EQ(result.outcome, SearchOutcome::kNoRoom);
  EXPECT_EQ(snapshot_->pod_set_spec(result.stuck_at).name, "decode");
  EXPECT_TRUE(*state_ == before);
}

TEST_F(GangPlacementTest, OneRackTakesItWhole) {
  Gang({MakePodSet("decode", 2, WholeGpus(4))}).gang.topology.required = "rack";
  spec_.workloads.push_back(MakeWorkload("old", "", {MakePodSet("s", 1, WholeGpus(1))}));
  spec_.workloads.back().pods = {MakePod("s", 0, "n1", OnGpus({0}))};
  Build();
  const GangPlacement result = PlaceGang(*state_, gang_);
  ASSERT_TRUE(result.placed());
  EXPECT_THAT(NodesOf(result.pods), testing::ElementsAre("n3", "n4"));
}

TEST_F(GangPlacementTest, NoRackTakesIt) {
  Gang({MakePodSet("decode", 3, WholeGpus(4))}).gang.topology.required = "rack";
  Build();
  EXPECT_EQ(PlaceGang(*state_, gang_).outcome, SearchOutcome::kTopology);
}

TEST_F(GangPlacementTest, PreferenceWidensUntilItFits) {
  Gang({MakePodSet("decode", 3, WholeGpus(4))}).gang.topology.preferred = "node";
  Build();
  EXPECT_EQ(NodesOf(PlaceGang(*state_, gang_).pods).size(), 3u);
}

TEST_F(GangPlacementTest, NewPodsFollowThoseThatRun) {
  Workload& gang = Gang({WithMinCount(MakePodSet("decode", 4, WholeGpus(2)), 1)});
  gang.gang.topology.required = "rack";
  gang.pods = {MakePod("decode", 0, "n3", OnGpus({0, 1}))};
  Build();
  std::vector<PodId> grown;
  for (GangPlacement more = GrowGang(*state_, gang_); !more.pods.empty();
       more = GrowGang(*state_, gang_)) {
    grown.insert(grown.end(), more.pods.begin(), more.pods.end());
  }
  EXPECT_EQ(grown.size(), 3u);
  EXPECT_THAT(NodesOf(grown), testing::ElementsAre("n3", "n4"));
  EXPECT_TRUE(GrowGang(*state_, gang_).placed()) << "complete";
}

TEST_F(GangPlacementTest, PodsInTwoRacksBindNothingMore) {
  Workload& gang = Gang({MakePodSet("decode", 3, WholeGpus(1))});
  gang.gang.topology.required = "rack";
  gang.pods = {MakePod("decode", 0, "n1", OnGpus({0})), MakePod("decode", 1, "n3", OnGpus({0}))};
  Build();
  EXPECT_EQ(PlaceGang(*state_, gang_).outcome, SearchOutcome::kDisagreement);
}

TEST_F(GangPlacementTest, MinGroupsTakesWhatFits) {
  Workload& gang = Gang({MakePodSet("big", 5, WholeGpus(4)), MakePodSet("small", 1, WholeGpus(1))});
  gang.gang.min_groups = 1;
  Build();
  const GangPlacement result = PlaceGang(*state_, gang_);
  ASSERT_TRUE(result.placed());
  ASSERT_EQ(result.pods.size(), 1u);
  EXPECT_EQ(snapshot_->pod_ref(result.pods[0]).pod_set, "small");
}

TEST_F(GangPlacementTest, AScaledGroupComesAfterItsBaseAndIsNoMinimum) {
  Workload& gang = Gang({});
  gang.gang.groups = {MakeGroup("scaled", {MakePodSet("extra", 1, WholeGpus(4))}, "base"),
                      MakeGroup("base", {WithMinCount(MakePodSet("prefill", 3, WholeGpus(4)), 1)})};
  Build();
  const GangPlacement minimum = PlaceGang(*state_, gang_);
  ASSERT_EQ(minimum.pods.size(), 1u);
  EXPECT_EQ(snapshot_->pod_ref(minimum.pods[0]).pod_set, "prefill");
  std::vector<std::string> order;
  for (GangPlacement more = GrowGang(*state_, gang_); !more.pods.empty();
       more = GrowGang(*state_, gang_)) {
    order.push_back(snapshot_->pod_ref(more.pods[0]).pod_set);
  }
  EXPECT_THAT(order, testing::ElementsAre("prefill", "prefill", "extra"));
}

TEST_F(GangPlacementTest, BigRequestsGoFirst) {
  // One pod of 4 and four of 1 on two nodes of 4: only if the 4 goes first.
  spec_.nodes.resize(2);
  Gang({MakePodSet("small", 4, WholeGpus(1)), MakePodSet("big", 1, WholeGpus(4))});
  Build();
  EXPECT_TRUE(PlaceGang(*state_, gang_).placed());
}

TEST_F(GangPlacementTest, FailedPodsLeaveTooFew) {
  Workload& gang = Gang({MakePodSet("s", 2, WholeGpus(1))});
  gang.pods = {MakeEndedPod("s", 0, PodPhase::kFailed)};
  Build();
  EXPECT_EQ(PlaceGang(*state_, gang_).outcome, SearchOutcome::kFailedPods);
}

TEST_F(GangPlacementTest, SucceededPodsCount) {
  Workload& gang = Gang({MakePodSet("s", 2, WholeGpus(1))});
  gang.pods = {MakeEndedPod("s", 0, PodPhase::kSucceeded)};
  Build();
  EXPECT_EQ(PlaceGang(*state_, gang_).pods.size(), 1u);
}

TEST_F(GangPlacementTest, TheBudgetEndsTheSearchUndecided) {
  Gang({MakePodSet("s", 8, WholeGpus(1))});
  Build();
  EXPECT_EQ(PlaceGang(*state_, gang_, FindPacked, {.budget = 3}).outcome,
            SearchOutcome::kBudgetExhausted);
}

// Refuses one GPU model, and counts what it was charged.
class RefusesModel : public Account {
 public:
  RefusesModel(const Snapshot& snapshot, std::string model)
      : snapshot_(snapshot), model_(std::move(model)) {}
  bool Charge(PodId, const PodPlacement& placement) override {
    if (snapshot_.node(placement.node).gpu_model == model_) return false;
    ++charges_;
    return true;
  }
  size_t GetMark() const override { return charges_; }
  void RollBack(size_t mark) override { charges_ = mark; }
  size_t charges() const { return charges_; }

 private:
  const Snapshot& snapshot_;
  const std::string model_;
  size_t charges_ = 0;
};

TEST_F(GangPlacementTest, ARefusalOnOneModelLeadsToAnother) {
  spec_.nodes[3].gpu_model = "A100-80GB";
  Gang({MakePodSet("s", 2, WholeGpus(1))});
  Build();
  RefusesModel account(*snapshot_, "H100-80GB");
  const GangPlacement result = PlaceGang(*state_, gang_, FindPacked, {.account = &account});
  EXPECT_THAT(NodesOf(result.pods), testing::ElementsAre("n4"));
  EXPECT_EQ(account.charges(), 2u);
}

TEST_F(GangPlacementTest, WhatIsRefusedEverywhereIsTakenBack) {
  Gang({MakePodSet("cpu", 1, CpuOnly(1)), MakePodSet("s", 1, WholeGpus(1))});
  Build();
  RefusesModel account(*snapshot_, "H100-80GB");
  EXPECT_EQ(PlaceGang(*state_, gang_, FindPacked, {.account = &account}).outcome,
            SearchOutcome::kRefused);
  EXPECT_EQ(account.charges(), 0u);
}

}  // namespace
}  // namespace tessera
