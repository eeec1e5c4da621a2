#include "tessera/schedule/service_gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/schedule/placeable_replicas.h"
#include "tests/support/random_cases.h"
#include "tests/support/snapshot_builder_for_tests.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The GB200 recipe: a router; prefill engines of one pod and 4 GPUs, at least 2; decode
// engines of 8 pods and 32 GPUs within a rack, at least 1.
ServiceShape Recipe() {
  ServiceShape shape;
  shape.router = MakePodSet("router", 1, CpuOnly(1));
  shape.prefill.pod.request = WholeGpus(4);
  shape.decode.pods = 8;
  shape.decode.pod.request = WholeGpus(4);
  shape.decode.topology.required = "rack";
  shape.minimum = {2, 1};
  return shape;
}

// "name 2/6 after base", children indented.
void Draw(const PodGroup& group, const std::string& indent, std::vector<std::string>& lines) {
  for (const PodSet& set : group.pod_sets) {
    lines.push_back(
        absl::StrCat(indent, set.name, " ", set.min_count.value_or(set.count), "/", set.count));
  }
  for (const PodGroup& child : group.groups) {
    lines.push_back(absl::StrCat(indent, child.name, child.after.empty() ? "" : " after ",
                                 child.after, child.topology.required.empty() ? "" : " in one ",
                                 child.topology.required));
    Draw(child, indent + "  ", lines);
  }
}
std::vector<std::string> Lines(const ServiceShape& shape, const ReplicaCounts& counts) {
  const absl::StatusOr<Gang> gang = BuildServiceGang(shape, counts);
  EXPECT_THAT(gang, IsOk());
  std::vector<std::string> lines;
  if (gang.ok()) Draw(*gang, "", lines);
  return lines;
}

TEST(BuildServiceGangTest, BaseAndScaledGroups) {
  EXPECT_THAT(Lines(Recipe(), {6, 2}),
              ElementsAre("base", "  router 1/1", "  prefill 2/6", "  decode-0 in one rack",
                          "    decode-0-leader 1/1", "    decode-0-worker 7/7",
                          "decode-1 after base in one rack", "  decode-1-leader 1/1",
                          "  decode-1-worker 7/7"));
  EXPECT_EQ(EngineGpusOf(Recipe()), (EngineGpus{4, 32}));
}

TEST(BuildServiceGangTest, BothRolesOfSeveralNodes) {
  // The Hopper recipe: two nodes of 8 GPUs for each engine.
  ServiceShape shape;
  shape.prefill.pods = shape.decode.pods = 2;
  shape.prefill.pod.request = shape.decode.pod.request = WholeGpus(8);
  EXPECT_THAT(
      Lines(shape, {2, 1}),
      ElementsAre("base", "  prefill-0", "    prefill-0-leader 1/1", "    prefill-0-worker 1/1",
                  "  decode-0", "    decode-0-leader 1/1", "    decode-0-worker 1/1",
                  "prefill-1 after base", "  prefill-1-leader 1/1", "  prefill-1-worker 1/1"));
  EXPECT_EQ(GpusOf(EngineGpusOf(shape), {1, 1}), 32);
}

TEST(BuildServiceGangTest, AnAggregatedServiceHasOneRole) {
  ServiceShape shape;
  shape.mode = ServiceMode::kAggregated;
  shape.decode.pod.request = WholeGpus(1);
  EXPECT_THAT(Lines(shape, {0, 3}), ElementsAre("base", "  decode 1/3"));
}

// grove#676: a role of workers scaled to zero broke the gang, and the frontend was evicted.
TEST(BuildServiceGangTest, AnIntendedZeroIsNoBreach) {
  ServiceShape shape = Recipe();
  EXPECT_THAT(Lines(shape, {0, 0}), ElementsAre("base", "  router 1/1"));
  shape.minimum = {0, 0};
  EXPECT_THAT(Lines(shape, {3, 0}), ElementsAre("base", "  router 1/1", "  prefill 1/3"))
      << "a role that runs has an engine in the base";
}

TEST(BuildServiceGangTest, MalformedShapes) {
  const auto error = [](const ServiceShape& shape, const ReplicaCounts& counts) {
    return std::string(ToStd(BuildServiceGang(shape, counts).status().message()));
  };
  ServiceShape shape = Recipe();
  EXPECT_EQ(error(shape, {-1, 1}), "counts.prefill: is -1, not within 0 and 100000");
  EXPECT_EQ(error(shape, {1, 100001}), "counts.decode: is 100001, not within 0 and 100000");
  shape.decode.pods = 0;
  EXPECT_EQ(error(shape, {1, 1}), "decode.pods: is less than 1");
  shape = Recipe();
  shape.mode = ServiceMode::kAggregated;
  EXPECT_EQ(error(shape, {1, 1}), "counts.prefill: an aggregated service has no prefill engines");
  shape.router.reset();
  EXPECT_EQ(error(shape, {0, 0}), "counts: nothing is to run");
}

TEST(BuildServiceGangTest, PartsOfGpusHaveNoWholeCost) {
  ServiceShape shape = Recipe();
  shape.prefill.pod.request = SliceOfProfile("1g.10gb");
  EXPECT_EQ(EngineGpusOf(shape), (EngineGpus{0, 32}));
}

// --- Giving up GPUs -----------------------------------------------------------------

TEST(ShrinkServiceTest, GangFixture) {
  const ServiceShape shape = Recipe();
  // 88 GPUs: the base takes 40, elastic prefill 16, decode-1 32.
  EXPECT_EQ(ShrinkService(shape, {6, 2}, 4), (ShrunkService{{5, 2}, 4}));
  EXPECT_EQ(ShrinkService(shape, {6, 2}, 32), (ShrunkService{{6, 1}, 32})) << "never decode-0";
  EXPECT_EQ(ShrinkService(shape, {6, 2}, 33), (ShrunkService{{5, 1}, 36}));
  EXPECT_EQ(ShrinkService(shape, {6, 2}, 49), (ShrunkService{{2, 1}, 48})) << "only the base left";
  EXPECT_EQ(ShrinkService(shape, {6, 2}, 0), (ShrunkService{{6, 2}, 0}));
}

TEST(ShrinkServiceTest, ScaledGroupsRatherThanElasticPods) {
  ServiceShape shape = Recipe();
  shape.decode.pods = 2;  // 8 GPUs an engine, as two elastic prefill engines
  EXPECT_EQ(ShrinkService(shape, {6, 3}, 8), (ShrunkService{{6, 2}, 8}));
  shape.decode.pods = 1;  // as one: neither is a group, so decode goes
  EXPECT_EQ(ShrinkService(shape, {6, 3}, 4), (ShrunkService{{6, 2}, 4}));
}

TEST(ShrinkServiceTest, NothingCheaperFreesEnough) {
  for (int i = 0; i < RandomCases(1000, 20000); ++i) {
    const auto part = [i](int k, int bound) { return (i / k) % bound; };
    ServiceShape shape = Recipe();
    shape.decode.pods = 1 + part(1, 3);
    shape.prefill.pod.request = WholeGpus(1 + part(3, 4));
    shape.decode.pod.request = WholeGpus(1 + part(12, 4));
    const ReplicaCounts counts{part(48, 6), part(7, 6)};
    const int64_t asked = part(11, 40);
    const ShrunkService shrunk = ShrinkService(shape, counts, asked);
    const ReplicaCounts base = BaseCounts(shape, counts);
    const EngineGpus gpus = EngineGpusOf(shape);
    ASSERT_GE(shrunk.counts.prefill, base.prefill);
    ASSERT_GE(shrunk.counts.decode, base.decode);
    ASSERT_EQ(shrunk.freed_gpus, GpusOf(gpus, counts) - GpusOf(gpus, shrunk.counts));
    ReplicaCounts other;
    for (other.prefill = base.prefill; other.prefill <= counts.prefill; ++other.prefill) {
      for (other.decode = base.decode; other.decode <= counts.decode; ++other.decode) {
        const int64_t freed = GpusOf(gpus, counts) - GpusOf(gpus, other);
        ASSERT_FALSE(freed >= asked && (freed < shrunk.freed_gpus || shrunk.freed_gpus < asked))
            << "case " << i;
      }
    }
  }
}

// --- Placing ------------------------------------------------------------------------

class PlaceableReplicasTest : public testing::Test {
 protected:
  PlaceableReplicasTest() : shape_(Recipe()) {
    spec_.levels = {"block", "rack"};
    service_.name = "llm";
    service_.queue = "q";
    spec_.queues = {MakeQueue("q")};
    spec_.queues[0].quota.all = kUnlimited;
  }

  void AddRack(const std::string& rack, int nodes, const std::string& block = "b") {
    for (int i = 0; i < nodes; ++i) {
      Node node = MakeNode(absl::StrCat(rack, "-", i), 4);
      node.topology = {{"block", block}, {"rack", rack}};
      spec_.nodes.push_back(std::move(node));
    }
  }
  PlaceableReplicas Plan(const ReplicaCounts& wanted, PlaceableOptions options = {}) {
    const auto result =
        PlanPlaceableReplicas(CreateOrDie(spec_), service_, shape_, wanted, options);
    EXPECT_THAT(result, IsOk());
    return result.ok() ? *result : PlaceableReplicas();
  }

  ServiceShape shape_;
  SnapshotSpec spec_;
  Workload service_;
};

TEST_F(PlaceableReplicasTest, GangFixture) {
  struct Row {
    int racks[2];
    ReplicaCounts counts;
  };
  // Nodes of 4 GPUs. 36 GPUs: nothing; 40: the minimum; 72: elastic prefill comes before
  // decode-1, so four of these and 16 GPUs too few; 88: all.
  // 40 GPUs in two racks, 36 and 4: prefill must leave decode-0 the eight nodes it needs in one.
  for (const Row& row : {Row{{9, 0}, {0, 0}}, Row{{10, 0}, {2, 1}}, Row{{9, 1}, {2, 1}},
                         Row{{9, 9}, {6, 1}}, Row{{11, 11}, {6, 2}}}) {
    SCOPED_TRACE(testing::PrintToString(row.racks));
    spec_.nodes.clear();
    AddRack("r1", row.racks[0]);
    AddRack("r2", row.racks[1]);
    const PlaceableReplicas plan = Plan({6, 2});
    EXPECT_EQ(plan.counts, row.counts);
    EXPECT_EQ(plan.placed.empty(), row.counts == ReplicaCounts());
    EXPECT_EQ(plan.decode.bound,
              row.counts.decode == 2 ? ReplicaBound::kNone : ReplicaBound::kRoom);
  }
}

TEST_F(PlaceableReplicasTest, SaysWhichOfTheTwoBinds) {
  AddRack("r1", 11);
  AddRack("r2", 11);
  spec_.queues[0].limit.by_name["gpu"] = Gpus(56);
  PlaceableReplicas plan = Plan({6, 2});
  EXPECT_EQ(plan.counts, (ReplicaCounts{6, 1}));
  EXPECT_EQ(plan.prefill.bound, ReplicaBound::kNone);
  EXPECT_EQ(plan.decode.bound, ReplicaBound::kQuota);
  ASSERT_TRUE(plan.decode.refusal);
  EXPECT_EQ(plan.decode.refusal->by, QuotaBound::kLimit);
  EXPECT_EQ(plan.decode.text,
            "queue \"q\" holds 56 GPU; 32 GPU more would exceed its limit of 56 GPU");

  spec_.queues[0].limit = {};
  spec_.nodes.resize(20);
  plan = Plan({6, 2});
  EXPECT_EQ(plan.decode.bound, ReplicaBound::kRoom);
  EXPECT_FALSE(plan.decode.refusal);
  EXPECT_THAT(plan.decode.text, HasSubstr("20 nodes"));

  spec_.queues[0].limit.by_name["gpu"] = Gpus(56);
  plan = Plan({6, 2});
  EXPECT_EQ(plan.decode.bound, ReplicaBound::kQuotaAndRoom) << "raising one does not help";
  EXPECT_THAT(plan.decode.text, HasSubstr("exceed its limit of 56 GPU; "));
}

TEST_F(PlaceableReplicasTest, ABaseThatCannotStartBindsBoth) {
  AddRack("r1", 10);
  spec_.queues[0].limit.by_name["gpu"] = Gpus(39);
  PlaceableReplicas plan = Plan({6, 2});
  EXPECT_EQ(plan.counts, ReplicaCounts());
  EXPECT_EQ(plan.prefill.bound, ReplicaBound::kQuota);
  EXPECT_EQ(plan.decode, plan.prefill);
  EXPECT_EQ(plan.decode.text,
            "queue \"q\" holds 0 GPU; 40 GPU more would exceed its limit of 39 GPU");
  spec_.nodes.pop_back();
  EXPECT_EQ(Plan({6, 2}).prefill.bound, ReplicaBound::kQuotaAndRoom);
  spec_.queues[0].limit = {};
  EXPECT_EQ(Plan({6, 2}).prefill.bound, ReplicaBound::kRoom);
}

TEST_F(PlaceableReplicasTest, QuotaOfWorkThatDoesNotYield) {
  AddRack("r1", 11);
  service_.priority = 100;
  spec_.queues[0].quota = {};
  spec_.queues[0].quota.by_name["gpu"] = Gpus(44);
  const PlaceableReplicas plan = Plan({6, 1});
  EXPECT_EQ(plan.counts, (ReplicaCounts{3, 1}));
  EXPECT_EQ(plan.prefill.bound, ReplicaBound::kQuotaAndRoom);
  EXPECT_EQ(plan.prefill.refusal->by, QuotaBound::kQuota);
}

TEST_F(PlaceableReplicasTest, WhatRunsCountsAndWhatIsTooManyGoes) {
  AddRack("r1", 12);
  for (int i = 0; i < 4; ++i) {
    service_.pods.push_back(
        MakePod("prefill", i, absl::StrCat("r1-", 8 + i), OnGpus({0, 1, 2, 3})));
  }
  spec_.workloads = {service_};
  spec_.workloads[0].gang = *BuildServiceGang(shape_, {4, 1});
  // Two prefill engines give way; the minimum then fits beside the others.
  const PlaceableReplicas plan = Plan({2, 1});
  EXPECT_EQ(plan.counts, (ReplicaCounts{2, 1}));
  EXPECT_THAT(plan.removed, ElementsAre(PodRef{"llm", "prefill", 2}, PodRef{"llm", "prefill", 3}));
  EXPECT_EQ(plan.placed.size(), 9u) << "router, leader, 7 workers";
}

// dynamo#14251: what cannot be placed is not asked for.
TEST_F(PlaceableReplicasTest, AScaleUpIsCappedByWhatCanStart) {
  AddRack("r1", 10);
  const PlaceableReplicas plan = Plan({2, 3});
  EXPECT_EQ(plan.counts, (ReplicaCounts{2, 1}));
  EXPECT_EQ(plan.decode.bound, ReplicaBound::kRoom);
}

// grove#648: the topology of a service holds per gang, not for base and scaled together.
TEST_F(PlaceableReplicasTest, BaseAndScaledEnginesShareTheTopologyOfTheService) {
  shape_.topology.required = "block";
  AddRack("r1", 10, "b1");
  AddRack("r2", 20, "b2");
  const PlaceableReplicas plan = Plan({2, 2});
  // The base packs into b1, and decode-1 does not go to b2 without it.
  EXPECT_EQ(plan.counts, (ReplicaCounts{2, 1}));
  EXPECT_EQ(plan.decode.bound, ReplicaBound::kRoom);
  shape_.topology.required.clear();
  EXPECT_EQ(Plan({2, 2}).counts, (ReplicaCounts{2, 2}));
}

TEST_F(PlaceableReplicasTest, FailedPodsOfItsOwn) {
  AddRack("r1", 12);
  service_.pods = {MakeEndedPod("prefill", 0, PodPhase::kFailed)};
  const PlaceableReplicas plan = Plan({3, 1});
  EXPECT_EQ(plan.counts, (ReplicaCounts{2, 1}));
  EXPECT_EQ(plan.prefill.bound, ReplicaBound::kOwnPods);
}

TEST_F(PlaceableReplicasTest, ABudgetThatEndsIsSaid) {
  AddRack("r1", 12);
  const PlaceableReplicas plan = Plan({2, 1}, {.usage = {}, .gang_budget = 5});
  EXPECT_EQ(plan.counts, ReplicaCounts());
  EXPECT_EQ(plan.decode.bound, ReplicaBound::kUndecided);
}

TEST_F(PlaceableReplicasTest, NeitherQuotaNorRoomIsExceededAndTheBoundIsReal) {
  for (int i = 0; i < RandomCases(300, 5000); ++i) {
    SCOPED_TRACE(i);
    const auto part = [i](int k, int bound) { return (i * 7919 / k) % bound; };
    spec_.nodes.clear();
    AddRack("r1", 1 + part(1, 6));
    AddRack("r2", part(5, 6));
    const int64_t room = 4 * static_cast<int64_t>(spec_.nodes.size()), limit = part(3, 40);
    spec_.queues[0].limit.by_name["gpu"] = Gpus(limit);
    shape_ = Recipe();
    shape_.decode.pods = 1 + part(2, 3);
    shape_.prefill.pod.request = WholeGpus(1 + part(11, 4));
    shape_.minimum = {1, 1};
    const ReplicaCounts wanted{1 + part(13, 5), 1 + part(17, 4)};
    const PlaceableReplicas plan = Plan(wanted);
    const EngineGpus gpus = EngineGpusOf(shape_);
    ASSERT_LE(plan.counts.prefill, wanted.prefill);
    ASSERT_LE(plan.counts.decode, wanted.decode);
    ASSERT_LE(GpusOf(gpus, plan.counts), std::min(room, limit));
    const bool started = plan.counts != ReplicaCounts();
    for (EngineRole role : kEngineRoles) {
      ReplicaCounts more = started ? plan.counts : ReplicaCounts{1, 1};
      if (started) ++OfRole(more, role);
      const bool over_limit = GpusOf(gpus, more) > limit;
      const ReplicaBound bound = OfRole(plan, role).bound;
      const bool all = OfRole(plan.counts, role) == OfRole(wanted, role);
      ASSERT_EQ(bound == ReplicaBound::kNone, all);
      if (!all) {
        ASSERT_EQ(bound == ReplicaBound::kQuota || bound == ReplicaBound::kQuotaAndRoom,
                  over_limit);
      }
    }
  }
}

TEST_F(PlaceableReplicasTest, ErrorsOfTheGangAndTheSnapshot) {
  AddRack("r1", 1);
  const Snapshot snapshot = CreateOrDie(spec_);
  EXPECT_THAT(PlanPlaceableReplicas(snapshot, service_, shape_, {-1, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("counts.prefill")));
  service_.queue = "p";
  EXPECT_THAT(PlanPlaceableReplicas(snapshot, service_, shape_, {1, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no queue is named \"p\"")));
}

}  // namespace
}  // namespace tessera
