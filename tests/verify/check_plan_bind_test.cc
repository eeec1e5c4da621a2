// Binds and nominations: each rule by a plan that keeps it and one that breaks
// nothing else.

#include "tests/verify/plan_scene.h"

namespace tessera {
namespace {

void SetPhase(PlanScene& scene, PodPhase phase) {
  scene.workload(0).pods = {MakePod("s", 0, "n1", {}, phase)};
}

const std::vector<PlanCase>& PodAndNodeCases() {
  static const auto& cases = *new std::vector<PlanCase>{
      {"UnknownPod",
       BindingCpu(),
       [](PlanScene& s) { s.plan.actions.push_back(Bind("w", 1, "n1")); },
       {{1, "bind w/s/1: there is no such pod"}}},
      {"RunningPod",
       BindingCpu(),
       [](PlanScene& s) { SetPhase(s, PodPhase::kRunning); },
       {{0, "bind w/s/0: is running"}}},
      {"NominateRunningPod",
       Nominated(BindingCpu()),
       [](PlanScene& s) { SetPhase(s, PodPhase::kRunning); },
       {{0, "nominate w/s/0: is running"}}},
      {"BindTwice",
       BindingCpu(),
       [](PlanScene& s) { s.plan.actions.push_back(s.plan.actions[0]); },
       {{1, "bind w/s/0: is running"}}},
      {"ReleasingPod",
       BindingCpu(),
       [](PlanScene& s) {
         SetPhase(s, PodPhase::kReleasing);
         s.plan.pending = {MakePending("w", true)};
       },
       {{0, "bind w/s/0: is releasing"}}},
      {"EvictedPod",
       BindingCpu(),
       [](PlanScene& s) {
         s.plan.actions.push_back(Evict("w", 0));
         s.plan.actions.push_back(Bind("w", 0, "n1"));
         s.plan.pending = {MakePending("w", true)};
       },
       {{2, "bind w/s/0: is releasing"}}},
      {"SucceededPod",
       BindingCpu(),
       [](PlanScene& s) { s.workload(0).pods = {MakeEndedPod("s", 0, PodPhase::kSucceeded)}; },
       {{0, "bind w/s/0: has succeeded"}}},
      {"FailedPod",
       BindingCpu(),
       [](PlanScene& s) {
         s.workload(0).pods = {MakeEndedPod("s", 0, PodPhase::kFailed)};
         s.plan.pending = {MakePending("w", true)};
       },
       {{0, "bind w/s/0: has failed"}}},
      {"MovedPod",
       [] {
         PlanScene scene = BindingCpu();
         SetPhase(scene, PodPhase::kRunning);
         scene.spec.nodes.push_back(MakeNode("n2"));
         scene.plan.actions = {Move("w", 0, "n2")};
         return scene;
       }(),
       [](PlanScene& s) { s.plan.actions.push_back(Bind("w", 0, "n2")); },
       {{1, "bind w/s/0: is still releasing its old place"}}},
      {"UnknownNode",
       BindingCpu(),
       [](PlanScene& s) {
         BindOf(s).node = "n9";
         s.plan.pending = {MakePending("w", true)};
       },
       {{0, "bind w/s/0: no node is named \"n9\""}}},
      {"UnschedulableNode",
       BindingCpu(),
       [](PlanScene& s) { s.spec.nodes[0].schedulable = false; },
       {{0, "bind w/s/0: n1 is not schedulable"}}},
      {"Selector",
       BindingCpu(),
       [](PlanScene& s) {
         s.pod_set(0).selector = {{"zone", SelectorOperator::kExists, {}}};
       },
       {{0, "bind w/s/0: n1 does not match the selector"}}},
      {"Taint",
       BindingCpu(),
       [](PlanScene& s) {
         s.spec.nodes[0].taints = {{"spot", "", TaintEffect::kNoExecute}};
       },
       {{0, "bind w/s/0: n1 has a taint that is not tolerated"}}},
      {"NominateOnTaint",
       Nominated(BindingCpu()),
       [](PlanScene& s) {
         s.spec.nodes[0].taints = {{"spot", "", TaintEffect::kNoExecute}};
       },
       {{0, "nominate w/s/0: n1 has a taint that is not tolerated"}}},
      {"Model",
       BindingWhole(),
       [](PlanScene& s) { s.pod_set(0).gpu_models = {"H200"}; },
       {{0, "bind w/s/0: a H100-80GB cannot serve the request"}}},
      {"TooLargeForModel",
       BindingHalf(),
       [](PlanScene& s) { s.pod_set(0).request = WithGpu(GpuRequest::Memory(100 * kBytesPerGiB)); },
       {{0, "bind w/s/0: a H100-80GB cannot serve the request"},
        {0, "bind w/s/0: takes 3500/7000 of GPU 0 of n1, the request is for 0/7000"}}},
      {"MaxPerNode",
       [] {
         PlanScene scene = BindingCpu();
         scene.pod_set(0).count = 2;
         scene.pod_set(0).max_per_node = 2;
         scene.plan.actions.push_back(Bind("w", 1, "n1"));
         return scene;
       }(),
       [](PlanScene& s) { s.pod_set(0).max_per_node = 1; },
       {{1, "bind w/s/1: max_per_node is 1, and n1 has 1 pods of the set"}}},
      {"MaxPerDomain",
       [] {
         PlanScene scene = BindingCpu();
         scene.spec.levels = {"rack"};
         for (Node& node : scene.spec.nodes) node.topology["rack"] = "r1";
         scene.pod_set(0).count = 2;
         scene.pod_set(0).max_per_domain = DomainLimit{"rack", 2};
         scene.plan.actions.push_back(Bind("w", 1, "n1"));
         return scene;
       }(),
       [](PlanScene& s) { s.pod_set(0).max_per_domain->pods = 1; },
       {{1, "bind w/s/1: max_per_domain is 1, and rack r1 has 1 pods of the set"}}},
      {"MaxPerDomainOutsideOfAll",
       [] {
         PlanScene scene = BindingCpu();
         scene.spec.levels = {"rack"};
         for (Node& node : scene.spec.nodes) node.topology["rack"] = "r1";
         scene.pod_set(0).max_per_domain = DomainLimit{"rack", 1};
         return scene;
       }(),
       [](PlanScene& s) {
         for (Node& node : s.spec.nodes) node.topology.clear();
       },
       {{0, "bind w/s/0: max_per_domain needs a rack, and n1 is in none"}}},
  };
  return cases;
}

class TargetRuleTest : public PlanRuleTest {};
TEST_P(TargetRuleTest, Holds) { Judge(); }
INSTANTIATE_TEST_SUITE_P(Rules, TargetRuleTest, ::testing::ValuesIn(PodAndNodeCases()), NameOfCase);

// Where no place is described, the pod is not placed.
std::vector<PlanCase> DeviceCases() {
  const auto unplaced = [](auto change) {
    return [change](PlanScene& s) {
      change(s);
      s.plan.pending = {MakePending("w", true)};
    };
  };
  return {
      {"NoDevices",
       BindingWhole(),
       unplaced([](PlanScene& s) { BindOf(s).devices = {}; }),
       {{0, "bind w/s/0: names 0 devices instead of 1 under gpus"}}},
      {"DevicesOnCpuPod",
       BindingCpu(),
       unplaced([](PlanScene& s) { BindOf(s).devices = OnGpus({0}); }),
       {{0, "bind w/s/0: names 1 devices instead of 0 under gpus"}}},
      {"WrongList",
       BindingWhole(),
       unplaced([](PlanScene& s) { BindOf(s).devices = OnShare(0, 7000); }),
       {{0, "bind w/s/0: names 1 devices instead of 1 under gpus"}}},
      {"SliceListForFraction",
       BindingHalf(),
       unplaced([](PlanScene& s) { BindOf(s).devices = OnSlice(2, "1g.10gb", 6); }),
       {{0, "bind w/s/0: names 1 devices instead of 1 under shares"}}},
      {"TwoSlices",
       BindingSlice(),
       unplaced([](PlanScene& s) {
         BindOf(s).devices.slices.push_back({2, "1g.10gb", 5});
       }),
       {{0, "bind w/s/0: names 2 devices instead of 1 under slices"}}},
      {"SameGpuTwice",
       Binding(WholeGpus(2), OnGpus({0, 1})),
       unplaced([](PlanScene& s) {
         BindOf(s).devices = OnGpus({0, 0});
       }),
       {{0, "bind w/s/0: names GPU 0 of n1 twice"}}},
      {"UnknownGpu",
       BindingWhole(),
       unplaced([](PlanScene& s) { BindOf(s).devices = OnGpus({3}); }),
       {{0, "bind w/s/0: n1 has no GPU 3"}}},
      {"NegativeGpu",
       BindingSlice(),
       unplaced([](PlanScene& s) { BindOf(s).devices = OnSlice(-1, "1g.10gb", 6); }),
       {{0, "bind w/s/0: n1 has no GPU -1"}}},
      {"UnknownInstance",
       BindingSlice(),
       unplaced([](PlanScene& s) { BindOf(s).devices = OnSlice(2, "1g.10gb", 4); }),
       {{0, "bind w/s/0: there is no instance 1g.10gb at slice 4 of GPU 2 of n1"}}},
      {"UnknownProfile",
       BindingSlice(),
       unplaced([](PlanScene& s) { BindOf(s).devices = OnSlice(2, "9g", 70000); }),
       {{0, "bind w/s/0: there is no instance 9g at slice 70000 of GPU 2 of n1"}}},
      {"AbsurdShare",
       BindingHalf(),
       unplaced([](PlanScene& s) { BindOf(s).devices = OnShare(0, -kHalf); }),
       {{0, "bind w/s/0: takes -3500/7000 of GPU 0 of n1, the request is for 3500/7000"}}},
      {"WrongShare",
       BindingHalf(),
       [](PlanScene& s) { BindOf(s).devices = OnShare(0, 7000); },
       {{0, "bind w/s/0: takes 7000/7000 of GPU 0 of n1, the request is for 3500/7000"}}},
      {"WrongProfile",
       BindingSlice(),
       [](PlanScene& s) { BindOf(s).devices = OnSlice(2, "3g.40gb", 0); },
       {{0, "bind w/s/0: takes 3g.40gb at slice 0 of GPU 2 of n1, the request is for 1g.10gb"}}},
      {"UnhealthyGpu",
       BindingWhole(),
       [](PlanScene& s) { GpuOf(s, 0).healthy = false; },
       {{0, "bind w/s/0: GPU 0 of n1 is not healthy"}}},
      {"UnhealthyGpuOfSlice",
       BindingSlice(),
       [](PlanScene& s) { GpuOf(s, 2).healthy = false; },
       {{0, "bind w/s/0: GPU 2 of n1 is not healthy"}}},
      {"WholeInMigMode",
       BindingWhole(),
       [](PlanScene& s) { BindOf(s).devices = OnGpus({2}); },
       {{0, "bind w/s/0: GPU 2 of n1 is in MIG mode"}}},
      {"FractionInMigMode",
       BindingHalf(),
       [](PlanScene& s) { BindOf(s).devices = OnShare(2, kHalf); },
       {{0, "bind w/s/0: GPU 2 of n1 is in MIG mode"}}},
      {"NominateWholeInMigMode",
       Nominated(BindingWhole()),
       [](PlanScene& s) {
         GpuOf(s, 0) = MakeMigGpu(MigMode::kStatic, {{"7g.80gb", 0}});
       },
       {{0, "nominate w/s/0: GPU 0 of n1 is in MIG mode"}}},
  };
}

class DeviceRuleTest : public PlanRuleTest {};
TEST_P(DeviceRuleTest, Holds) { Judge(); }
INSTANTIATE_TEST_SUITE_P(Rules, DeviceRuleTest, ::testing::ValuesIn(DeviceCases()), NameOfCase);

TEST(CheckPlanTest, FractionMayBeNamedAsGpu) {
  PlanScene scene = BindingHalf();
  BindOf(scene).devices = OnGpus({0});
  EXPECT_THAT(scene.Check(), ::testing::IsEmpty());
}

TEST(CheckPlanTest, NominatedPodMayBeBoundElsewhere) {
  PlanScene scene = BindingWhole();
  scene.workload(0).pods = {MakePod("s", 0, "n1", OnGpus({1}), PodPhase::kNominated)};
  EXPECT_THAT(scene.Check(), ::testing::IsEmpty());
  // Its own reservation does not stand in its way.
  BindOf(scene).devices = OnGpus({1});
  EXPECT_THAT(scene.Check(), ::testing::IsEmpty());
}

TEST(CheckPlanTest, WithdrawnNominationHoldsNothing) {
  PlanScene scene = WithOther(BindingWhole(), WholeGpus(1), OnGpus({0}), "b", PodPhase::kNominated);
  scene.plan.actions.insert(scene.plan.actions.begin(), Evict("x", 0));
  scene.plan.pending = {MakePending("x", true)};
  EXPECT_THAT(scene.Check(), ::testing::IsEmpty());
  EXPECT_THAT(Apply(CreateOrDie(scene.spec), scene.plan), IsOk());
  scene.options.honour_nominations = false;
  EXPECT_THAT(scene.Check(), ::testing::IsEmpty());
}

TEST(CheckPlanTest, NominationsMayBeIgnored) {
  PlanScene scene = WithOther(BindingWhole(), WholeGpus(1), OnGpus({0}), "b", PodPhase::kNominated);
  EXPECT_THAT(scene.Check(), ::testing::ElementsAre(PlanViolation{
                                 0, "bind w/s/0: GPU 0 of n1 is held whole (x/s/0)"}));
  scene.options.honour_nominations = false;
  EXPECT_THAT(scene.Check(),
              ::testing::ElementsAre(PlanViolation{-1, "pending workload x: is not listed"}));
}

}  // namespace
}  // namespace tessera
