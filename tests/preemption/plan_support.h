#ifndef TESSERA_TESTS_PREEMPTION_PLAN_SUPPORT_H_
#define TESSERA_TESTS_PREEMPTION_PLAN_SUPPORT_H_

// Clusters and judgements that the tests of preemption/ share.

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tessera/gpu/catalogue.h"
#include "tessera/schedule/schedule.h"
#include "tessera/verify/check_plan.h"
#include "tests/support/random_cluster.h"
#include "tests/support/status_matchers.h"

namespace tessera {

// Names cases of a table by their `name`.
inline constexpr auto kNameOfCase = [](const auto& test) { return test.param.name; };

// Actions in short: "destroy n1/0 1g.10gb@5", "move w/s/0 to n1/1 1g.10gb@6".
inline std::string TextOf(const Action& action) {
  const auto instance = [](const char* verb, const auto& a) {
    return absl::StrCat(verb, " ", a.node, "/", a.gpu, " ", a.profile, "@", a.start);
  };
  if (const auto* a = std::get_if<DestroyAction>(&action)) return instance("destroy", *a);
  if (const auto* a = std::get_if<CreateAction>(&action)) return instance("create", *a);
  if (const auto* a = std::get_if<SetMigAction>(&action)) {
    return absl::StrCat("set_mig ", a->node, "/", a->gpu, a->enabled ? " on" : " off");
  }
  const auto* move = std::get_if<MoveAction>(&action);
  if (move == nullptr || move->devices.slices.size() != 1) return "unexpected";
  const GpuSlice& to = move->devices.slices.front();
  return absl::StrCat("move ", move->pod.workload, "/", move->pod.pod_set, "/", move->pod.index,
                      " to ", move->node, "/", to.gpu, " ", to.profile, "@", to.start);
}

inline std::vector<std::string> TextsOf(const std::vector<Action>& actions) {
  std::vector<std::string> texts;
  for (const Action& action : actions) texts.push_back(TextOf(action));
  return texts;
}

// What the referee holds against the actions beyond what it holds against doing
// nothing, which lists nobody as pending either.
inline std::vector<std::string> Offences(const Snapshot& snapshot,
                                         const std::vector<Action>& actions) {
  std::vector<std::string> texts;
  const CheckPlanOptions options = {.max_violations = 10000};
  const std::vector<PlanViolation> before = CheckPlan(snapshot, Plan(), options);
  for (const PlanViolation& v : CheckPlan(snapshot, {actions, {}}, options)) {
    if (std::ranges::find(before, v) == before.end()) {
      texts.push_back(absl::StrCat(v.action, ": ", v.text));
    }
  }
  return texts;
}

// A node whose GPUs are of this kind.
inline Node MakeMigNode(std::string name, std::vector<Gpu> gpus, std::string model = "A100-40GB") {
  Node node = MakeNode(std::move(name), 1, std::move(model));
  node.gpus = std::move(gpus);
  return node;
}

// Adds a workload with one pod on a slice that exists on `gpu` of `node` or is created.
inline Workload& AddSlicePod(SnapshotSpec& spec, std::string name, size_t node, int gpu,
                             std::string profile, int start, PodPhase phase = PodPhase::kRunning) {
  std::vector<GpuInstance>& instances = spec.nodes[node].gpus[static_cast<size_t>(gpu)].instances;
  const GpuInstance instance = {profile, start};
  if (std::ranges::find(instances, instance) == instances.end()) instances.push_back(instance);
  Workload& workload = spec.workloads.emplace_back(
      MakeWorkload(std::move(name), "", {MakePodSet("s", 1, SliceOfProfile(profile))}));
  workload.pods = {
      MakePod("s", 0, spec.nodes[node].name, OnSlice(gpu, std::move(profile), start), phase)};
  return workload;
}

// Scatters instances over the dynamic GPUs, most of them with a pod of its own workload.
inline void Scatter(RandomCluster& random, SnapshotSpec& spec) {
  for (Node& node : spec.nodes) {
    const GpuModel* model = FindGpuModel(node.gpu_model);
    if (model == nullptr) continue;
    const MigTables tables = *MigTables::Create(*model);
    for (size_t g = 0; g < node.gpus.size(); ++g) {
      if (node.gpus[g].mig != MigMode::kDynamic || random.Chance(30)) continue;
      node.gpus[g].instances.clear();
      LayoutKey key = tables.empty();
      for (int tries = random.Below(6); tries > 0; --tries) {
        const int p =
            random.Below(random.Chance(60) ? 2 : static_cast<int>(model->profiles.size()));
        const int start = random.Below(model->units);
        if (!tables.CanPlace(key, p, start)) continue;
        key = tables.Add(key, p, start);
        const std::string& profile = model->profiles[static_cast<size_t>(p)].name;
        node.gpus[g].instances.push_back({profile, start});
        if (random.Chance(20)) continue;
        Workload& workload = spec.workloads.emplace_back(
            random.DrawWorkload(absl::StrCat("m", spec.workloads.size()), spec));
        workload.gang = {};
        workload.gang.pod_sets = {MakePodSet("s", 1, SliceOfProfile(profile))};
        workload.gang.pod_sets[0].request.cpu = 500 * random.Below(3);
        workload.pods = {MakePod("s", 0, node.name, OnSlice(static_cast<int>(g), profile, start))};
        if (random.Chance(20)) workload.movable = random.Chance(50);
        if (random.Chance(5)) workload.max_disrupted = 0;
      }
    }
  }
}

// A cluster with slices, in which pods run, leave and are nominated.
inline SnapshotSpec DrawSlicedCluster(RandomCluster& random) {
  SnapshotSpec spec = random.Draw();
  Scatter(random, spec);
  const Snapshot empty = CreateOrDie(std::move(spec));
  auto policy = Strict();
  policy.rules.steps = {CycleStep::kAllocate};
  const absl::StatusOr<Snapshot> settled = ApplyAndSettle(empty, Schedule(empty, policy).plan);
  EXPECT_THAT(settled, IsOk());
  spec = settled->spec();
  if (random.Chance(60)) random.Disturb(spec);
  for (Workload& workload : spec.workloads) {
    for (Pod& pod : workload.pods) {
      if (pod.phase == PodPhase::kRunning && random.Chance(5)) pod.phase = PodPhase::kNominated;
    }
  }
  return spec;
}

inline std::string AnyProfile(RandomCluster& random) {
  const std::vector<std::string> profiles = {"1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb",
                                             "1g.5gb",  "3g.20gb", "4g.20gb", "2g.12gb"};
  return profiles[static_cast<size_t>(random.Below(8))];
}

}  // namespace tessera

#endif  // TESSERA_TESTS_PREEMPTION_PLAN_SUPPORT_H_
