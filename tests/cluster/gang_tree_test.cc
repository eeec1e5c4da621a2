#include "tessera/cluster/gang_tree.h"

#include <gmock/gmock.h>

#include <functional>

#include "tests/support/snapshot_builder_for_tests.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

// An LLM service: a router; prefill, of 6 pods at least 2; decode, two groups of a
// leader and workers; and a second group that comes after the first.
Workload Service() {
  Workload service = MakeWorkload("llm", "", {MakePodSet("router", 1, CpuOnly(1))});
  PodSet prefill = WithMinCount(MakePodSet("prefill", 6, WholeGpus(1)), 2);
  prefill.max_per_node = 3;
  prefill.topology.preferred = "rack";
  service.gang.pod_sets.push_back(prefill);
  PodGroup decode = MakeGroup(
      "decode", {MakePodSet("leader", 1, WholeGpus(1)), MakePodSet("worker", 3, WholeGpus(1))});
  decode.topology.required = "rack";
  PodGroup more = MakeGroup("more", {MakePodSet("extra", 2, WholeGpus(1))}, "decode");
  service.gang.groups = {decode, more};
  return service;
}

absl::StatusOr<Snapshot> Resolve(Workload workload) {
  SnapshotSpec spec;
  spec.levels = {"block", "rack"};
  spec.nodes = {MakeNode("n1", 8)};
  // So that no number of the second workload's is also one of the first's.
  spec.workloads = {MakeWorkload("a", "", {MakePodSet("s", 2, CpuOnly(1))}), std::move(workload)};
  return Snapshot::Create(std::move(spec));
}

TEST(GangTreeTest, NodesAreBreadthFirst) {
  const Snapshot snapshot = *Resolve(Service());
  const std::span<const GangNode> gang = snapshot.gang(WorkloadId(1));
  ASSERT_EQ(gang.size(), 8u);
  // The gang, router, prefill, decode, more, leader, worker, extra.
  std::vector<int> parents, pod_sets;
  for (const GangNode& node : gang) {
    parents.push_back(node.parent);
    pod_sets.push_back(node.pod_set);
  }
  EXPECT_THAT(parents, ElementsAre(-1, 0, 0, 0, 0, 3, 3, 4));
  EXPECT_THAT(pod_sets, ElementsAre(-1, 0, 1, -1, -1, 2, 3, 4));
  EXPECT_EQ(gang[0].first_child, 1);
  EXPECT_EQ(gang[0].num_children, 4);
  EXPECT_EQ(gang[3].first_child, 5);
  EXPECT_EQ(gang[3].num_children, 2);
  EXPECT_EQ(gang[4].first_child, 7);
}

TEST(GangTreeTest, MinimumsAndLevels) {
  const Snapshot snapshot = *Resolve(Service());
  const std::span<const GangNode> gang = snapshot.gang(WorkloadId(1));
  // `more` comes after `decode` and is no part of the minimum.
  EXPECT_EQ(gang[0].min_children, 3);
  EXPECT_EQ(gang[3].min_children, 2);
  EXPECT_EQ(gang[4].after, 3);
  EXPECT_EQ(gang[3].after, -1);
  EXPECT_EQ(gang[2].preferred_level, 1);
  EXPECT_EQ(gang[2].required_level, -1);
  EXPECT_EQ(gang[3].required_level, 1);
}

TEST(GangTreeTest, PodSetsAndPods) {
  const Snapshot snapshot = *Resolve(Service());
  const WorkloadInfo& info = snapshot.info(WorkloadId(1));
  EXPECT_EQ(info.first_pod, 2);
  EXPECT_EQ(info.num_pods, 13);
  EXPECT_EQ(info.first_pod_set, 1);
  ASSERT_EQ(info.num_pod_sets, 5);
  const PodSetInfo& prefill = snapshot.pod_sets(WorkloadId(1))[1];
  EXPECT_EQ(prefill.workload, WorkloadId(1));
  EXPECT_EQ(prefill.gang_node, 2);
  EXPECT_EQ(prefill.first_pod, 3);
  EXPECT_EQ(prefill.count, 6);
  EXPECT_EQ(prefill.min_count, 2);
  EXPECT_EQ(prefill.max_per_node, 3);
  const PodSetInfo& worker = snapshot.pod_sets(WorkloadId(1))[3];
  EXPECT_EQ(worker.gang_node, 6);
  EXPECT_EQ(worker.min_count, 3);
  EXPECT_EQ(worker.max_per_node, 0);
  EXPECT_EQ(snapshot.pod_set_spec(PodSetId(4)).name, "worker");
  EXPECT_EQ(snapshot.pod_set_of(worker.pod(2)), PodSetId(4));
}

TEST(GangTreeTest, PodNamesBothWays) {
  const Snapshot snapshot = *Resolve(Service());
  for (int i = 0; i < snapshot.num_pods(); ++i) {
    EXPECT_EQ(snapshot.FindPod(snapshot.pod_ref(PodId(i))), PodId(i));
  }
  EXPECT_EQ(snapshot.pod_ref(PodId(4)), (PodRef{"llm", "prefill", 1}));
  EXPECT_EQ(snapshot.FindPod({"llm", "prefill", 6}), std::nullopt);
  EXPECT_EQ(snapshot.FindPod({"llm", "prefill", -1}), std::nullopt);
  EXPECT_EQ(snapshot.FindPod({"llm", "decode", 0}), std::nullopt);
  EXPECT_EQ(snapshot.FindPod({"lmm", "prefill", 0}), std::nullopt);
}

TEST(GangTreeTest, EqualRequestsAreOneClass) {
  const Snapshot snapshot = *Resolve(Service());
  const auto class_of = [&](int s) { return snapshot.pod_set(PodSetId(s)).request_class; };
  EXPECT_EQ(snapshot.num_request_classes(), 2);
  EXPECT_EQ(class_of(0), class_of(1));
  EXPECT_EQ(class_of(2), class_of(5));
  EXPECT_NE(class_of(0), class_of(2));
}

TEST(GangTreeTest, MinGroupsMayBeLess) {
  Workload service = Service();
  service.gang.min_groups = 1;
  EXPECT_EQ(Resolve(service)->gang(WorkloadId(1))[0].min_children, 1);
}

Workload Nested(int depth) {
  Workload workload = MakeWorkload("llm", "", {});
  PodGroup* group = &workload.gang;
  for (int i = 1; i < depth; ++i) {
    group->groups = {MakeGroup("g", {})};
    group = &group->groups[0];
  }
  group->pod_sets = {MakePodSet("s", 1, CpuOnly(1))};
  return workload;
}

TEST(GangTreeTest, SixteenGroupsDeep) {
  EXPECT_THAT(Resolve(Nested(16)), IsOk());
  EXPECT_THAT(Resolve(Nested(17)), StatusIs(absl::StatusCode::kInvalidArgument,
                                            "workloads[1].gang: nests deeper than 16 groups"));
  EXPECT_THAT(Resolve(Nested(1000)), StatusIs(absl::StatusCode::kInvalidArgument));
}

struct ErrorCase {
  std::function<void(Gang&)> change;
  std::string message;
};

TEST(GangTreeTest, Errors) {
  const ErrorCase kCases[] = {
      {[](Gang& g) { g = Gang(); }, "gang: has neither pod_sets nor groups"},
      {[](Gang& g) { g.groups[1].pod_sets.clear(); },
       "gang.groups[1]: has neither pod_sets nor groups"},
      {[](Gang& g) { g.after = "x"; }, "gang.after: a whole gang has no siblings"},
      {[](Gang& g) { g.pod_sets[1].name = ""; }, "gang.pod_sets[1].name: is empty"},
      {[](Gang& g) { g.groups[0].name = ""; }, "gang.groups[0].name: is empty"},
      {[](Gang& g) { g.groups[0].name = "router"; },
       "gang.groups[0].name: \"router\" is the name of a sibling"},
      {[](Gang& g) { g.groups[0].pod_sets[0].name = "router"; },
       "gang: two pod sets are named \"router\""},
      {[](Gang& g) { g.pod_sets[0].count = 0; }, "gang.pod_sets[0].count: is less than 1"},
      {[](Gang& g) { g.pod_sets[0].count = INT32_MAX; }, "gang.pod_sets[0].count: is too large"},
      {[](Gang& g) { g.pod_sets[1].min_count = -1; }, "gang.pod_sets[1].min_count: is negative"},
      {[](Gang& g) { g.pod_sets[1].min_count = 7; },
       "gang.pod_sets[1].min_count: is 7, above count 6"},
      {[](Gang& g) { g.pod_sets[1].max_per_node = 0; },
       "gang.pod_sets[1].max_per_node: is less than 1"},
      {[](Gang& g) { g.min_groups = 0; }, "gang.min_groups: is less than 1"},
      {[](Gang& g) { g.min_groups = 4; },
       "gang.min_groups: is 4, but there are 3 children without `after`"},
      {[](Gang& g) { g.groups[1].after = "decod"; },
       "gang.groups[1].after: no sibling is named \"decod\"; did you mean \"decode\"?"},
      {[](Gang& g) { g.groups[0].after = "more"; }, "gang.groups[0].after: waits for itself"},
      {[](Gang& g) { g.pod_sets[0].after = "router"; }, "gang.pod_sets[0].after: waits for itself"},
      {[](Gang& g) { g.topology.required = "racks"; },
       "gang.topology.required: \"racks\" is not one of topology.levels; did you mean \"rack\"?"},
      {[](Gang& g) { g.pod_sets[0].topology.preferred = "x"; },
       "gang.pod_sets[0].topology.preferred: \"x\" is not one of topology.levels"},
  };
  for (const ErrorCase& test : kCases) {
    Workload service = Service();
    test.change(service.gang);
    EXPECT_THAT(Resolve(service),
                StatusIs(absl::StatusCode::kInvalidArgument, "workloads[1]." + test.message));
  }
}

}  // namespace
}  // namespace tessera
