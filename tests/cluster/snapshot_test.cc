#include "tessera/cluster/snapshot.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/support/snapshot_builder_for_tests.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;

// Something of everything.
SnapshotSpec Everything() {
  SnapshotSpec spec;
  spec.now = 100;
  spec.levels = {"rack", "node"};
  spec.nodes = {MakeNode("n3", 2), MakeNode("n1", 2), MakeNode("n2", 4, "A100-40GB"),
                MakeNode("n4")};
  spec.nodes[0].topology = {{"rack", "r1"}};
  spec.nodes[1].topology = {{"rack", "r2"}};
  spec.nodes[2].topology = {{"rack", "r1"}};
  spec.nodes[2].gpus[3] = MakeMigGpu(MigMode::kDynamic, {{"3g.20gb", 4}, {"1g.5gb", 0}});
  spec.nodes[1].capacity.extended = {{"ib", 4}};
  spec.queues = {MakeQueue("top"), MakeQueue("q", "top"), MakeQueue("p", "top")};
  spec.queues[1].quota.by_name = {{"gpu:A100", Gpus(2)}};
  spec.workloads = {
      MakeWorkload("w", "q",
                   {MakePodSet("whole", 2, WholeGpus(1)), MakePodSet("half", 2, Fraction(3500))}),
      MakeWorkload("v", "p", {MakePodSet("slice", 3, SliceOfProfile("1g.5gb"))}),
      MakeWorkload("u", "p", {MakePodSet("cpu", 1, CpuOnly(1))})};
  spec.workloads[2].tenant = "q";
  spec.workloads[0].pods = {MakePod("half", 1, "n1", OnShare(1, 3500)),
                            MakePod("whole", 0, "n3", OnGpus({1})),
                            MakePod("whole", 1, "n3", OnGpus({0}), PodPhase::kReleasing),
                            MakePod("whole", 1, "n1", OnGpus({0}), PodPhase::kNominated)};
  spec.workloads[1].pods = {MakePod("slice", 2, "n2", OnSlice(3, "1g.5gb", 0)),
                            MakeEndedPod("slice", 0, PodPhase::kSucceeded)};
  return spec;
}

// What ids stand for, in full.
std::string Describe(const Snapshot& s) {
  std::string text;
  const auto add = [&text](auto... values) {
    ((text += std::to_string(values) + " "), ...);
    text += "\n";
  };
  for (int i = 0; i < s.num_pods(); ++i) {
    const PodPlacement& at = s.pod_placement(PodId(i));
    add(static_cast<int>(s.pod_phase(PodId(i))), at.node.value(), at.gpus, at.share, at.profile,
        at.start, s.pod_set_of(PodId(i)).value());
  }
  for (const ReleasingPod& leaving : s.releasing()) {
    add(leaving.pod.value(), leaving.placement.node.value(), leaving.placement.gpus);
  }
  for (int i = 0; i < s.num_workloads(); ++i) {
    const WorkloadInfo& info = s.info(WorkloadId(i));
    add(info.queue.value(), info.tenant, info.first_pod, info.first_pod_set);
  }
  for (int i = 0; i < s.num_pod_sets(); ++i) {
    add(s.pod_set(PodSetId(i)).request_class.value(), s.pod_set(PodSetId(i)).gang_node);
  }
  for (int i = 0; i < s.num_nodes(); ++i) {
    add(s.node_model(NodeId(i)).value(), s.topology().domain_of(NodeId(i), 0).value());
  }
  return text;
}

TEST(SnapshotTest, OrderOfTheSpecMeansNothing) {
  SnapshotSpec spec = Everything();
  const Snapshot snapshot = CreateOrDie(spec);
  std::mt19937 random(1);
  for (int i = 0; i < 50; ++i) {
    std::shuffle(spec.nodes.begin(), spec.nodes.end(), random);
    std::shuffle(spec.queues.begin(), spec.queues.end(), random);
    std::shuffle(spec.workloads.begin(), spec.workloads.end(), random);
    for (Workload& workload : spec.workloads) {
      std::shuffle(workload.pods.begin(), workload.pods.end(), random);
    }
    const Snapshot shuffled = CreateOrDie(spec);
    EXPECT_EQ(shuffled, snapshot);
    EXPECT_EQ(shuffled.queues(), snapshot.queues());
    EXPECT_EQ(shuffled.topology(), snapshot.topology());
    EXPECT_EQ(Describe(shuffled), Describe(snapshot));
  }
}

TEST(SnapshotTest, WhatItSaysIsASpecOfIt) {
  const Snapshot snapshot = CreateOrDie(Everything());
  const Snapshot again = CreateOrDie(snapshot.spec());
  EXPECT_EQ(again, snapshot);
  EXPECT_EQ(Describe(again), Describe(snapshot));
}

TEST(SnapshotTest, IdsAreRanks) {
  const Snapshot snapshot = CreateOrDie(Everything());
  std::vector<std::string> nodes, workloads;
  for (int i = 0; i < snapshot.num_nodes(); ++i) nodes.push_back(snapshot.node(NodeId(i)).name);
  for (int i = 0; i < snapshot.num_workloads(); ++i) {
    workloads.push_back(snapshot.workload(WorkloadId(i)).name);
  }
  // By rack, then name; n4 is in no rack.
  EXPECT_THAT(nodes, ElementsAre("n4", "n2", "n3", "n1"));
  EXPECT_THAT(workloads, ElementsAre("u", "v", "w"));
  EXPECT_EQ(snapshot.FindNode("n1"), NodeId(3));
  EXPECT_EQ(snapshot.FindNode("n5"), std::nullopt);
  EXPECT_EQ(snapshot.FindWorkload("w"), WorkloadId(2));
  EXPECT_EQ(snapshot.FindWorkload("x"), std::nullopt);
  EXPECT_EQ(snapshot.model(ModelId(0)).name, "A100-40GB");
  EXPECT_EQ(snapshot.node_model(NodeId(3)), ModelId(1));
  EXPECT_FALSE(snapshot.node_model(NodeId(0)).valid());
}

TEST(SnapshotTest, PodsAreWhereTheySay) {
  const Snapshot snapshot = CreateOrDie(Everything());
  const auto placement = [&](const char* workload, const char* pod_set, int index) {
    return snapshot.pod_placement(*snapshot.FindPod({workload, pod_set, index}));
  };
  EXPECT_EQ(placement("w", "whole", 0).node, *snapshot.FindNode("n3"));
  EXPECT_EQ(placement("w", "whole", 0).gpus, 2u);
  EXPECT_EQ(placement("w", "half", 1).share, 3500);
  EXPECT_EQ(placement("v", "slice", 2).start, 0);
  EXPECT_EQ(DevicesOf(snapshot, placement("v", "slice", 2)), OnSlice(3, "1g.5gb", 0));
  EXPECT_EQ(DevicesOf(snapshot, placement("w", "half", 1)), OnShare(1, 3500));
  EXPECT_EQ(DevicesOf(snapshot, placement("w", "whole", 0)), OnGpus({1}));
}

TEST(SnapshotTest, MovedPodIsInTwoPlaces) {
  const Snapshot snapshot = CreateOrDie(Everything());
  const PodId moved = *snapshot.FindPod({"w", "whole", 1});
  EXPECT_EQ(snapshot.pod_phase(moved), PodPhase::kNominated);
  EXPECT_EQ(snapshot.pod_placement(moved).node, *snapshot.FindNode("n1"));
  ASSERT_EQ(snapshot.releasing().size(), 1u);
  EXPECT_EQ(snapshot.releasing()[0].pod, moved);
  EXPECT_EQ(snapshot.releasing()[0].placement.node, *snapshot.FindNode("n3"));
}

TEST(SnapshotTest, ExpiredNominationIsNone) {
  SnapshotSpec spec = Everything();
  spec.workloads[0].pods[3].expires = 101;
  const PodRef moved = {"w", "whole", 1};
  Snapshot snapshot = CreateOrDie(spec);
  EXPECT_EQ(snapshot.pod_phase(*snapshot.FindPod(moved)), PodPhase::kNominated);
  spec.workloads[0].pods[3].expires = 100;
  snapshot = CreateOrDie(spec);
  EXPECT_EQ(snapshot.pod_phase(*snapshot.FindPod(moved)), PodPhase::kReleasing);
}

TEST(SnapshotTest, WithoutQueuesThereIsOne) {
  SnapshotSpec spec = Everything();
  spec.queues.clear();
  for (Workload& workload : spec.workloads) workload.queue = "";
  const Snapshot snapshot = CreateOrDie(spec);
  EXPECT_EQ(snapshot.workload(WorkloadId(0)).queue, "default");
  EXPECT_EQ(snapshot.info(WorkloadId(1)).tenant, snapshot.info(WorkloadId(2)).tenant);
  EXPECT_EQ(CreateOrDie(snapshot.spec()), snapshot);
}

TEST(SnapshotTest, ANodeMayHoldMoreThanItHas) {
  SnapshotSpec spec = Everything();
  spec.nodes[0].capacity.pods = 0;
  spec.nodes[1].reserved.cpu = Cores(1000);
  const Snapshot snapshot = CreateOrDie(spec);
  EXPECT_EQ(snapshot.node_capacity(*snapshot.FindNode("n1"))[kCpu], Cores(64 - 1000));
}

struct ErrorCase {
  std::function<void(SnapshotSpec&)> change;
  std::string message;
};

// Indices are those of the list as given.
TEST(SnapshotTest, Errors) {
  const ErrorCase kCases[] = {
      {[](auto& s) { s.levels[1] = ""; }, "topology.levels[1]: is empty"},
      {[](auto& s) { s.levels[1] = "rack"; }, "topology.levels[1]: \"rack\" is listed twice"},
      {[](auto& s) { s.nodes[3].name = ""; }, "nodes[3].name: is empty"},
      {[](auto& s) { s.nodes[3].name = "n3"; },
       "nodes[0].name: \"n3\" is the name of another node"},
      {[](auto& s) { s.nodes[0].capacity.cpu = -1; }, "nodes[0].capacity.cpu: is negative"},
      {[](auto& s) { s.nodes[0].reserved.extended["ib"] = -1; },
       "nodes[0].reserved.ib: is negative"},
      {[](auto& s) { s.nodes[0].capacity.memory = kMaxTotal + 1; },
       "nodes[0].capacity.memory: is too large"},
      {[](auto& s) {
         for (size_t i = 0; i < 3; ++i) s.nodes[i].capacity.memory = kMaxTotal / 2;
         // Reserving more than there is must not make room for the others.
         s.nodes[3].reserved.memory = kMaxTotal;
       },
       "nodes: the total memory of all nodes is too large"},
      {[](auto& s) { s.nodes[0].topology["rak"] = "r"; },
       "nodes[0].topology.rak: is not one of topology.levels; did you mean \"rack\"?"},
      {[](auto& s) { s.nodes[0].topology["rack"] = ""; }, "nodes[0].topology.rack: is empty"},
      {[](auto& s) {
         s.nodes[0].taints = {{"", "", TaintEffect::kNoSchedule}};
       },
       "nodes[0].taints[0].key: is empty"},
      {[](auto& s) { s.nodes[0].gpu_model = "H100-80G"; },
       "nodes[0].gpu_model: \"H100-80G\" is neither in the catalogue nor in gpu_models; did you "
       "mean \"H100-80GB\"?"},
      {[](auto& s) { s.nodes[0].gpu_model = ""; },
       "nodes[0].gpu_model: is needed on a node with GPUs"},
      {[](auto& s) { s.nodes[0].gpus.resize(65); },
       "nodes[0].gpus: lists 65 GPUs; at most 64 fit on a node"},
      {[](auto& s) { s.nodes[2].gpus[3].mig = MigMode::kOff; },
       "nodes[2].gpus[3].instances: a GPU with mig off has no instances"},
      {[](auto& s) { s.nodes[2].gpus[3].mig_enabled = false; },
       "nodes[2].gpus[3].mig_enabled: is false although there are instances"},
      {[](auto& s) { s.nodes[2].gpus[3].instances[0].profile = "3g.40gb"; },
       "nodes[2].gpus[3].instances[0].profile: a A100-40GB has no profile \"3g.40gb\"; did you "
       "mean \"3g.20gb\"?"},
      {[](auto& s) { s.workloads[1].name = ""; }, "workloads[1].name: is empty"},
      {[](auto& s) { s.workloads[1].name = "w"; },
       "workloads[1].name: \"w\" is the name of another workload"},
      {[](auto& s) { s.workloads[1].queue = "r"; },
       "workloads[1].queue: no queue is named \"r\"; did you mean \"p\"?"},
      {[](auto& s) { s.workloads[1].queue = "top"; },
       "workloads[1].queue: \"top\" has sub-queues; workloads run in leaves only"},
      {[](auto& s) { s.workloads[1].max_runtime = -1; }, "workloads[1].max_runtime: is negative"},
      {[](auto& s) { s.workloads[0].pods[0].pod_set = "halb"; },
       "workloads[0].pods[0].pod_set: the gang has no pod set \"halb\"; did you mean \"half\"?"},
      {[](auto& s) { s.workloads[0].pods[0].index = 2; },
       "workloads[0].pods[0].index: is 2, but \"half\" has 2 pods"},
      {[](auto& s) { s.workloads[0].pods[3].phase = PodPhase::kRunning; },
       "workloads[0].pods[3]: is listed twice (same pod_set and index)"},
      {[](auto& s) { s.workloads[0].pods[0].node = ""; },
       "workloads[0].pods[0].node: is needed by a pod of this phase"},
      {[](auto& s) { s.workloads[0].pods[0].node = "n9"; },
       "workloads[0].pods[0].node: no node is named \"n9\""},
      {[](auto& s) {
         s.workloads[0].pods[1].devices = OnGpus({0, 1});
       },
       "workloads[0].pods[1].gpus: must name the 1 devices that the request asks for; the pod "
       "names 2"},
      {[](auto& s) { s.workloads[0].pods[1].devices = OnGpus({2}); },
       "workloads[0].pods[1].gpus[0]: node n3 has no GPU 2"},
      {[](auto& s) { s.workloads[0].pods[0].devices = OnShare(1, 7001); },
       "workloads[0].pods[0].shares[0].fraction: is not above 0 and at most 1"},
      {[](auto& s) { s.workloads[1].pods[0].devices = OnSlice(3, "1g.5gb", 7); },
       "workloads[1].pods[0].slices[0].start: 1g.5gb cannot start at slice 7"},
      {[](auto& s) { s.workloads[1].pods[0].devices = OnSlice(3, "1g.5gb", 1); },
       "workloads[1].pods[0]: GPU 3 of n2 has no instance 1g.5gb at slice 1"},
      {[](auto& s) { s.workloads[1].pods[1] = MakePod("slice", 1, "n2", OnSlice(3, "1g.5gb", 0)); },
       "workloads[1].pods[0]: GPU 3 of n2, or this slice of it, is already held"},
      {[](auto& s) { s.workloads[0].pods[1].devices = OnGpus({0}); },
       "workloads[0].pods[2]: GPU 0 of n3 is already held by another pod"},
  };
  for (const ErrorCase& test : kCases) {
    SnapshotSpec spec = Everything();
    test.change(spec);
    EXPECT_THAT(Snapshot::Create(spec), StatusIs(absl::StatusCode::kInvalidArgument, test.message));
  }
}

}  // namespace
}  // namespace tessera
