#ifndef TESSERA_TESTS_VERIFY_PLAN_SCENE_H_
#define TESSERA_TESTS_VERIFY_PLAN_SCENE_H_

// Cases for the referee of plans: a legal plan, and what makes it illegal.

#include <gmock/gmock.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tessera/verify/check_plan.h"
#include "tests/support/snapshot_builder_for_tests.h"
#include "tests/support/status_matchers.h"

namespace tessera {

inline std::ostream& operator<<(std::ostream& out, const PlanViolation& violation) {
  return out << violation.action << ": " << violation.text;
}

struct PlanScene {
  SnapshotSpec spec;
  Plan plan;
  CheckPlanOptions options;

  Workload& workload(size_t i) { return spec.workloads[i]; }
  PodSet& pod_set(size_t w, size_t s = 0) { return spec.workloads[w].gang.pod_sets[s]; }
  std::vector<PlanViolation> Check() const { return CheckPlan(CreateOrDie(spec), plan, options); }
};

// `scene` is legal; after `change` the plan breaks exactly `violations`.
struct PlanCase {
  std::string name;
  PlanScene scene;
  std::function<void(PlanScene&)> change;
  std::vector<PlanViolation> violations;
};

inline std::ostream& operator<<(std::ostream& out, const PlanCase& test) {
  return out << test.name;
}

inline std::string NameOfCase(const ::testing::TestParamInfo<PlanCase>& info) {
  return info.param.name;
}

class PlanRuleTest : public ::testing::TestWithParam<PlanCase> {
 protected:
  void Judge() const {
    const PlanCase& test = GetParam();
    EXPECT_THAT(test.scene.Check(), ::testing::IsEmpty());
    const Snapshot snapshot = CreateOrDie(test.scene.spec);
    EXPECT_THAT(Apply(snapshot, test.scene.plan), IsOk());
    EXPECT_THAT(ApplyAndSettle(snapshot, test.scene.plan), IsOk());
    PlanScene broken = test.scene;
    test.change(broken);
    EXPECT_THAT(broken.Check(), ::testing::ElementsAreArray(test.violations));
  }
};

inline BindAction Bind(std::string workload, int index, std::string node, Devices devices = {}) {
  return {{std::move(workload), "s", index}, std::move(node), std::move(devices)};
}
inline NominateAction Nominate(std::string workload, int index, std::string node,
                               Devices devices = {}) {
  return {{std::move(workload), "s", index}, std::move(node), std::move(devices)};
}
inline EvictAction Evict(std::string workload, int index) {
  return {{std::move(workload), "s", index}, "reclaim", ""};
}
inline MoveAction Move(std::string workload, int index, std::string node, Devices devices = {}) {
  return {{std::move(workload), "s", index}, std::move(node), std::move(devices)};
}

inline constexpr int64_t kHalf = kGpuUnitsPerDevice / 2;

// w/s/0, which asks for `request`, is bound to `devices` of n1. On n1 GPU 0 and 1
// have no MIG, GPU 2 has a 1g.10gb at 5 and at 6 and a 3g.40gb at 0.
inline PlanScene Binding(Request request, Devices devices) {
  PlanScene scene;
  scene.spec.nodes = {MakeNode("n1", 3)};
  scene.spec.nodes[0].gpus[2] =
      MakeMigGpu(MigMode::kDynamic, {{"3g.40gb", 0}, {"1g.10gb", 5}, {"1g.10gb", 6}});
  scene.spec.queues = {MakeQueue("a"), MakeQueue("b")};
  scene.spec.workloads = {MakeWorkload("w", "a", {MakePodSet("s", 1, std::move(request))})};
  scene.plan.actions = {Bind("w", 0, "n1", std::move(devices))};
  return scene;
}

inline PlanScene BindingCpu() { return Binding(CpuOnly(4), {}); }
inline PlanScene BindingWhole() { return Binding(WholeGpus(1), OnGpus({0})); }
inline PlanScene BindingHalf() { return Binding(Fraction(kHalf), OnShare(0, kHalf)); }
inline PlanScene BindingSlice() {
  return Binding(SliceOfProfile("1g.10gb"), OnSlice(2, "1g.10gb", 6));
}

inline BindAction& BindOf(PlanScene& scene) { return std::get<BindAction>(scene.plan.actions[0]); }
inline Gpu& GpuOf(PlanScene& scene, size_t gpu) { return scene.spec.nodes[0].gpus[gpu]; }

// Lists workload x of queue `queue`, whose pod is at `devices` of n1.
inline void AddOther(PlanScene& scene, Request request, Devices devices, std::string queue = "a",
                     PodPhase phase = PodPhase::kRunning) {
  scene.spec.workloads.push_back(
      MakeWorkload("x", std::move(queue), {MakePodSet("s", 1, std::move(request))}));
  scene.spec.workloads.back().pods = {MakePod("s", 0, "n1", std::move(devices), phase)};
  if (phase == PodPhase::kReleasing) scene.plan.pending.push_back(MakePending("x", true));
}

inline PlanScene WithOther(PlanScene scene, Request request, Devices devices,
                           std::string queue = "a", PodPhase phase = PodPhase::kRunning) {
  AddOther(scene, std::move(request), std::move(devices), std::move(queue), phase);
  return scene;
}

// The same place, as a nomination.
inline PlanScene Nominated(PlanScene scene) {
  const BindAction bind = BindOf(scene);
  scene.plan.actions[0] = NominateAction{bind.pod, bind.node, bind.devices};
  return scene;
}

}  // namespace tessera

#endif  // TESSERA_TESTS_VERIFY_PLAN_SCENE_H_
