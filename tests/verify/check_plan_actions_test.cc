// Evictions, moves, and changes of MIG layouts: each rule by a plan that keeps it
// and one that breaks nothing else.

#include "tests/verify/plan_scene.h"

namespace tessera {
namespace {

// One pod on GPU 0 of n1, which is evicted.
PlanScene Eviction() {
  PlanScene scene;
  scene.spec.nodes = {MakeNode("n1", 2)};
  scene.spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 1, WholeGpus(1))})};
  scene.workload(0).pods = {MakePod("s", 0, "n1", OnGpus({0}))};
  scene.plan.actions = {Evict("w", 0)};
  scene.plan.pending = {MakePending("w", true)};
  return scene;
}

PlanScene EvictionOfNomination() {
  PlanScene scene = Eviction();
  scene.workload(0).pods[0].phase = PodPhase::kNominated;
  return scene;
}

void SetPhase(PlanScene& scene, PodPhase phase) { scene.workload(0).pods[0].phase = phase; }

// The pod moves from n1 to n2.
PlanScene Movement() {
  PlanScene scene = Eviction();
  scene.spec.nodes.push_back(MakeNode("n2", 2));
  scene.plan.actions = {Move("w", 0, "n2", OnGpus({1}))};
  scene.plan.pending.clear();
  return scene;
}

const std::vector<PlanCase>& PodCases() {
  static const auto& cases = *new std::vector<PlanCase>{
      {"EvictPendingPod",
       Eviction(),
       [](PlanScene& s) { s.workload(0).pods.clear(); },
       {{0, "evict w/s/0: is pending"}}},
      {"EvictReleasingPod",
       EvictionOfNomination(),
       [](PlanScene& s) { SetPhase(s, PodPhase::kReleasing); },
       {{0, "evict w/s/0: is releasing"}}},
      {"EvictFailedPod",
       Eviction(),
       [](PlanScene& s) { s.workload(0).pods = {MakeEndedPod("s", 0, PodPhase::kFailed)}; },
       {{0, "evict w/s/0: has failed"}}},
      {"EvictTwice",
       Eviction(),
       [](PlanScene& s) { s.plan.actions.push_back(Evict("w", 0)); },
       {{1, "evict w/s/0: is releasing"}}},
      {"EvictNominatedPodTwice",
       EvictionOfNomination(),
       [](PlanScene& s) { s.plan.actions.push_back(Evict("w", 0)); },
       {{1, "evict w/s/0: is pending"}}},
      {"EvictUnknownWorkload",
       Eviction(),
       [](PlanScene& s) { s.plan.actions.push_back(Evict("v", 0)); },
       {{1, "evict v/s/0: there is no such pod"}}},
      {"EvictUnknownIndex",
       Eviction(),
       [](PlanScene& s) { s.plan.actions.push_back(Evict("w", 1)); },
       {{1, "evict w/s/1: there is no such pod"}}},
      {"EvictForUnknownWorkload",
       Eviction(),
       [](PlanScene& s) { std::get<EvictAction>(s.plan.actions[0]).on_behalf_of = "v"; },
       {{0, "evict w/s/0: there is no workload \"v\" to evict it for"}}},
      {"EvictNotPreemptible",
       Eviction(),
       [](PlanScene& s) { s.workload(0).priority = kNonPreemptiblePriority; },
       {{0, "evict w/s/0: w is not preemptible"}}},
      {"MoveNominatedPod",
       Movement(),
       [](PlanScene& s) { SetPhase(s, PodPhase::kNominated); },
       {{0, "move w/s/0: is nominated"}}},
      {"MoveTwice",
       Movement(),
       [](PlanScene& s) { s.plan.actions.push_back(Move("w", 0, "n2", OnGpus({0}))); },
       {{1, "move w/s/0: is nominated"}}},
      {"MoveUnknownPod",
       Movement(),
       [](PlanScene& s) { s.plan.actions.push_back(Move("v", 0, "n2", OnGpus({0}))); },
       {{1, "move v/s/0: there is no such pod"}}},
      {"MoveNotMovable",
       Movement(),
       [](PlanScene& s) { s.workload(0).movable = false; },
       {{0, "move w/s/0: w is not movable"}}},
      {"MoveToUnknownNode",
       Movement(),
       [](PlanScene& s) { std::get<MoveAction>(s.plan.actions[0]).node = "n3"; },
       {{0, "move w/s/0: no node is named \"n3\""}}},
      {"MoveToHeldGpu",
       Movement(),
       [](PlanScene& s) {
         s.spec.workloads.push_back(s.workload(0));
         s.workload(1).name = "x";
         s.workload(1).pods = {MakePod("s", 0, "n2", OnGpus({1}))};
       },
       {{0, "move w/s/0: GPU 1 of n2 is held whole (x/s/0)"}}},
  };
  return cases;
}

class EvictionRuleTest : public PlanRuleTest {};
TEST_P(EvictionRuleTest, Holds) { Judge(); }
INSTANTIATE_TEST_SUITE_P(Rules, EvictionRuleTest, ::testing::ValuesIn(PodCases()), NameOfCase);

// GPU 0 of n1 has an idle 1g.10gb at 6, GPU 1 has none.
PlanScene Layout() {
  PlanScene scene;
  scene.spec.nodes = {MakeNode("n1", 2)};
  scene.spec.nodes[0].gpus = {MakeMigGpu(MigMode::kDynamic, {{"1g.10gb", 6}}),
                              MakeMigGpu(MigMode::kDynamic)};
  return scene;
}

PlanScene Destruction() {
  PlanScene scene = Layout();
  scene.plan.actions = {DestroyAction{"n1", 0, "1g.10gb", 6}};
  return scene;
}

PlanScene Switching(bool enabled) {
  PlanScene scene = Layout();
  scene.spec.nodes[0].gpus[1].mig_enabled = !enabled;
  scene.plan.actions = {SetMigAction{"n1", 1, enabled}};
  return scene;
}

PlanScene Creation() {
  PlanScene scene = Layout();
  scene.plan.actions = {CreateAction{"n1", 0, "3g.40gb", 0}};
  return scene;
}

// Adds a workload whose pod is at `devices` of n1.
void AddHolder(PlanScene& scene, Request request, Devices devices,
               PodPhase phase = PodPhase::kRunning) {
  scene.spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 1, std::move(request))})};
  scene.workload(0).pods = {MakePod("s", 0, "n1", std::move(devices), phase)};
  if (phase == PodPhase::kReleasing) scene.plan.pending = {MakePending("w", true)};
}

PlanScene WithReservation(PlanScene scene, Request request, Devices devices) {
  AddHolder(scene, std::move(request), std::move(devices), PodPhase::kNominated);
  return scene;
}

const std::vector<PlanCase>& LayoutCases() {
  static const auto& cases = *new std::vector<PlanCase>{
      {"DestroyOnUnknownNode",
       Destruction(),
       [](PlanScene& s) { std::get<DestroyAction>(s.plan.actions[0]).node = "n2"; },
       {{0, "destroy 1g.10gb at slice 6 of GPU 0 of n2: no node is named \"n2\""}}},
      {"DestroyOnUnknownGpu",
       Destruction(),
       [](PlanScene& s) { std::get<DestroyAction>(s.plan.actions[0]).gpu = 2; },
       {{0, "destroy 1g.10gb at slice 6 of GPU 2 of n1: n1 has no GPU 2"}}},
      {"DestroyOnNegativeGpu",
       Destruction(),
       [](PlanScene& s) { std::get<DestroyAction>(s.plan.actions[0]).gpu = -1; },
       {{0, "destroy 1g.10gb at slice 6 of GPU -1 of n1: n1 has no GPU -1"}}},
      {"DestroyWhatDoesNotExist",
       Destruction(),
       [](PlanScene& s) { std::get<DestroyAction>(s.plan.actions[0]).start = 5; },
       {{0, "destroy 1g.10gb at slice 5 of GPU 0 of n1: there is no such instance"}}},
      {"DestroyUnknownProfile",
       Destruction(),
       [](PlanScene& s) { std::get<DestroyAction>(s.plan.actions[0]).profile = "8g"; },
       {{0, "destroy 8g at slice 6 of GPU 0 of n1: there is no such instance"}}},
      {"DestroyTwice",
       Destruction(),
       [](PlanScene& s) { s.plan.actions.push_back(s.plan.actions[0]); },
       {{1, "destroy 1g.10gb at slice 6 of GPU 0 of n1: there is no such instance"}}},
      {"DestroyStatic",
       Destruction(),
       [](PlanScene& s) { s.spec.nodes[0].gpus[0].mig = MigMode::kStatic; },
       {{0, "destroy 1g.10gb at slice 6 of GPU 0 of n1: the GPU is not `dynamic`"}}},
      {"DestroyHeld",
       Destruction(),
       [](PlanScene& s) { AddHolder(s, SliceOfProfile("1g.10gb"), OnSlice(0, "1g.10gb", 6)); },
       {{0, "destroy 1g.10gb at slice 6 of GPU 0 of n1: it is held by w/s/0"}}},
      {"DestroyHeldByReleasing",
       Destruction(),
       [](PlanScene& s) {
         AddHolder(s, SliceOfProfile("1g.10gb"), OnSlice(0, "1g.10gb", 6), PodPhase::kReleasing);
       },
       {{0, "destroy 1g.10gb at slice 6 of GPU 0 of n1: it is held by w/s/0"}}},
      {"DestroyReserved",
       Destruction(),
       [](PlanScene& s) {
         AddHolder(s, SliceOfProfile("1g.10gb"), OnSlice(0, "1g.10gb", 6), PodPhase::kNominated);
       },
       {{0, "destroy 1g.10gb at slice 6 of GPU 0 of n1: it is reserved for w/s/0"}}},
      {"SwitchUnknownGpu",
       Switching(true),
       [](PlanScene& s) { std::get<SetMigAction>(s.plan.actions[0]).gpu = 64; },
       {{0, "set_mig on of GPU 64 of n1: n1 has no GPU 64"}}},
      {"SwitchStatic",
       Switching(true),
       [](PlanScene& s) { s.spec.nodes[0].gpus[1].mig = MigMode::kStatic; },
       {{0, "set_mig on of GPU 1 of n1: the GPU is not `dynamic`"}}},
      {"SwitchUnhealthy",
       Switching(true),
       [](PlanScene& s) { s.spec.nodes[0].gpus[1].healthy = false; },
       {{0, "set_mig on of GPU 1 of n1: the GPU is not healthy"}}},
      {"SwitchToSameState",
       Switching(false),
       [](PlanScene& s) { s.plan.actions.push_back(s.plan.actions[0]); },
       {{1, "set_mig off of GPU 1 of n1: that is its state already"}}},
      {"SwitchWithInstances",
       Switching(false),
       [](PlanScene& s) {
         s.spec.nodes[0].gpus[1].instances = {{"1g.10gb", 0}};
       },
       {{0, "set_mig off of GPU 1 of n1: the GPU has instances"}}},
      {"SwitchHeld",
       Switching(true),
       [](PlanScene& s) { AddHolder(s, Fraction(3500), OnShare(1, 3500)); },
       {{0, "set_mig on of GPU 1 of n1: the GPU is held by w/s/0"}}},
      {"SwitchHeldByReleasing",
       Switching(true),
       [](PlanScene& s) { AddHolder(s, WholeGpus(1), OnGpus({1}), PodPhase::kReleasing); },
       {{0, "set_mig on of GPU 1 of n1: the GPU is held by w/s/0"}}},
      {"SwitchAwayFromReservationOfWhole",
       WithReservation(Switching(false), WholeGpus(1), OnGpus({1})),
       [](PlanScene& s) {
         s.spec.nodes[0].gpus[1].mig_enabled = false;
         s.plan.actions = {SetMigAction{"n1", 1, true}};
       },
       {{0, "set_mig on of GPU 1 of n1: the GPU is reserved, in its present mode, for w/s/0"}}},
      {"SwitchAwayFromReservationOfSlice",
       [] {
         PlanScene scene =
             WithReservation(Switching(true), SliceOfProfile("1g.10gb"), OnSlice(1, "1g.10gb", 0));
         scene.plan.actions.push_back(CreateAction{"n1", 1, "1g.10gb", 0});
         return scene;
       }(),
       [](PlanScene& s) {
         s.spec.nodes[0].gpus[1].mig_enabled = true;
         s.plan.actions = {SetMigAction{"n1", 1, false}};
       },
       {{0, "set_mig off of GPU 1 of n1: the GPU is reserved, in its present mode, for w/s/0"}}},
      {"CreateStatic",
       Creation(),
       [](PlanScene& s) { s.spec.nodes[0].gpus[0].mig = MigMode::kStatic; },
       {{0, "create 3g.40gb at slice 0 of GPU 0 of n1: the GPU is not `dynamic`"}}},
      {"CreateUnhealthy",
       Creation(),
       [](PlanScene& s) { s.spec.nodes[0].gpus[0].healthy = false; },
       {{0, "create 3g.40gb at slice 0 of GPU 0 of n1: the GPU is not healthy"}}},
      {"CreateWithMigOff",
       Creation(),
       [](PlanScene& s) { std::get<CreateAction>(s.plan.actions[0]).gpu = 1; },
       {{0, "create 3g.40gb at slice 0 of GPU 1 of n1: the GPU is not in MIG mode"}}},
      {"CreateUnknownProfile",
       Creation(),
       [](PlanScene& s) { std::get<CreateAction>(s.plan.actions[0]).profile = "3g.20gb"; },
       {{0, "create 3g.20gb at slice 0 of GPU 0 of n1: a H100-80GB has no such profile"}}},
      {"CreateAtIllegalStart",
       Creation(),
       [](PlanScene& s) { std::get<CreateAction>(s.plan.actions[0]).start = 2; },
       {{0, "create 3g.40gb at slice 2 of GPU 0 of n1: it cannot start there"}}},
      {"CreateAtAbsurdStart",
       Creation(),
       [](PlanScene& s) { std::get<CreateAction>(s.plan.actions[0]).start = -70000; },
       {{0, "create 3g.40gb at slice -70000 of GPU 0 of n1: it cannot start there"}}},
      {"CreateOverIdleInstance",
       Creation(),
       [](PlanScene& s) { std::get<CreateAction>(s.plan.actions[0]).start = 4; },
       {{0,
         "create 3g.40gb at slice 4 of GPU 0 of n1: the instances that exist leave no room "
         "for it"}}},
      {"CreateBeforeDestroy",
       [] {
         PlanScene scene = Destruction();
         scene.plan.actions.push_back(CreateAction{"n1", 0, "3g.40gb", 4});
         return scene;
       }(),
       [](PlanScene& s) { std::swap(s.plan.actions[0], s.plan.actions[1]); },
       {{0,
         "create 3g.40gb at slice 4 of GPU 0 of n1: the instances that exist leave no room "
         "for it"}}},
      {"CreateBeyondEngines",
       [] {
         PlanScene scene = Layout();
         scene.plan.actions = {CreateAction{"n1", 0, "1g.10gb+me", 0}};
         return scene;
       }(),
       [](PlanScene& s) {
         s.plan.actions.push_back(CreateAction{"n1", 0, "1g.10gb+me", 1});
       },
       {{1,
         "create 1g.10gb+me at slice 1 of GPU 0 of n1: the instances that exist leave no room "
         "for it"}}},
      {"CreateOverReservation",
       // What the nomination waits for may be created.
       WithReservation(Creation(), SliceOfProfile("3g.40gb"), OnSlice(0, "3g.40gb", 0)),
       [](PlanScene& s) {
         s.plan.actions = {CreateAction{"n1", 0, "1g.10gb", 3}};
       },
       {{0, "create 1g.10gb at slice 3 of GPU 0 of n1: it covers what is reserved for w/s/0"}}},
  };
  return cases;
}

class LayoutRuleTest : public PlanRuleTest {};
TEST_P(LayoutRuleTest, Holds) { Judge(); }
INSTANTIATE_TEST_SUITE_P(Rules, LayoutRuleTest, ::testing::ValuesIn(LayoutCases()), NameOfCase);

TEST(CheckPlanTest, ModelWithoutMigCannotBeSwitched) {
  PlanScene scene;
  GpuModel model;
  model.name = "T4";
  model.memory_bytes = 16 * kBytesPerGiB;
  scene.spec.gpu_models = {model};
  scene.spec.nodes = {MakeNode("n1", 1, "T4")};
  scene.plan.actions = {SetMigAction{"n1", 0, true}};
  // A GPU without MIG cannot be `dynamic` either.
  EXPECT_THAT(scene.Check(),
              ::testing::ElementsAre(
                  PlanViolation{0, "set_mig on of GPU 0 of n1: the GPU is not `dynamic`"},
                  PlanViolation{0, "set_mig on of GPU 0 of n1: a T4 has no MIG"}));
}

TEST(CheckPlanTest, EndsAfterMaxViolations) {
  PlanScene scene = Destruction();
  for (int i = 0; i < 10; ++i) scene.plan.actions.push_back(scene.plan.actions[0]);
  EXPECT_EQ(scene.Check().size(), 10u);
  scene.options.max_violations = 3;
  EXPECT_EQ(scene.Check().size(), 3u);
  scene.options.max_violations = 0;
  EXPECT_EQ(scene.Check().size(), 1u);
}

}  // namespace
}  // namespace tessera
