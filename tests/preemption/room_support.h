#ifndef TESSERA_TESTS_PREEMPTION_ROOM_SUPPORT_H_
#define TESSERA_TESTS_PREEMPTION_ROOM_SUPPORT_H_

// Small crowded clusters with two levels of queues, and a workload that finds no room.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tessera/io/snapshot_json.h"
#include "tessera/preemption/make_room.h"
#include "tessera/schedule/schedule.h"
#include "tessera/verify/check_plan.h"
#include "tessera/verify/check_victims.h"
#include "tests/support/random_cluster.h"
#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {

struct CrowdOptions {
  int nodes = 4;
  int workloads = 8;
  bool slices = true;  // some GPUs are carved
};

class Crowd {
 public:
  Crowd(RandomCluster& random, CrowdOptions options) : random_(random), options_(options) {}

  // The claimant is the workload "claim".
  SnapshotSpec Draw() {
    SnapshotSpec spec;
    spec.now = 1000;
    spec.levels = {"rack"};
    const int nodes = 1 + random_.Below(options_.nodes);
    for (int i = 0; i < nodes; ++i) spec.nodes.push_back(DrawNode(i));
    for (const char* top : {"a", "b"}) {
      spec.queues.push_back(DrawQueue(top, ""));
      for (const char* leaf : {"1", "2"}) {
        spec.queues.push_back(DrawQueue(absl::StrCat(top, leaf), top));
      }
    }
    const int workloads = 1 + random_.Below(options_.workloads);
    for (int i = 0; i < workloads; ++i) {
      spec.workloads.push_back(DrawWorkload(absl::StrCat("w", i)));
      Workload& workload = spec.workloads.back();
      // All of it starts.
      workload.priority = random_.Chance(90) ? 10 * random_.Below(6) : 100;
      if (random_.Chance(15)) workload.max_disrupted = random_.Below(3);
      if (random_.Chance(20)) workload.last_checkpoint = 1000 - random_.Below(100);
    }
    const Snapshot empty = CreateOrDie(std::move(spec));
    // All starts that fits; nobody yields yet.
    auto policy = Strict();
    policy.rules.steps = {CycleStep::kAllocate};
    SnapshotSpec crowded = ApplyAndSettle(empty, Schedule(empty, policy).plan)->spec();
    for (Workload& workload : crowded.workloads) {
      // A few have only just started.
      for (Pod& pod : workload.pods) {
        pod.started = 1000 - (random_.Chance(3) ? 0 : random_.Below(400));
      }
    }
    crowded.workloads.push_back(DrawWorkload("claim"));
    if (random_.Chance(10)) crowded.workloads.back().preemption_delay = 990;
    return crowded;
  }

  Workload DrawWorkload(std::string name) {
    static const char* kLeaves[] = {"a1", "a2", "b1", "b2"};
    Workload workload = MakeWorkload(std::move(name), kLeaves[random_.Below(4)], {});
    workload.priority = 10 * random_.Below(6);
    workload.submitted = random_.Below(50);
    if (random_.Chance(10)) workload.isolation = static_cast<Isolation>(1 + random_.Below(3));
    const int sets = random_.Chance(25) ? 2 : 1;
    for (int i = 0; i < sets; ++i) workload.gang.pod_sets.push_back(DrawPodSet(i));
    if (sets == 2 && random_.Chance(30)) workload.gang.pod_sets[1].after = "s0";
    if (sets == 2 && workload.gang.pod_sets[1].after.empty() && random_.Chance(20)) {
      workload.gang.min_groups = 1;
    }
    if (random_.Chance(10)) workload.gang.topology.required = "rack";
    return workload;
  }

 private:
  Node DrawNode(int i) {
    Node node = MakeNode(absl::StrCat("n", i), 1 + random_.Below(3));
    node.topology["rack"] = absl::StrCat("r", i / 2);
    node.capacity.cpu = Cores(4 + 4 * random_.Below(3));
    if (options_.slices && random_.Chance(25)) {
      for (Gpu& gpu : node.gpus) gpu.mig = MigMode::kDynamic;
    }
    return node;
  }

  Queue DrawQueue(std::string name, std::string parent) {
    Queue queue = MakeQueue(std::move(name), std::move(parent));
    queue.quota.by_name["gpu"] = Gpus(random_.Below(4));
    if (random_.Chance(30)) queue.quota.by_name["cpu"] = Cores(random_.Below(10));
    if (random_.Chance(20)) queue.limit.by_name["gpu"] = Gpus(2 + random_.Below(5));
    if (random_.Chance(30)) queue.weight.all = kWeightOne * random_.Below(3);
    if (random_.Chance(20)) queue.reclaim_min_runtime = random_.Below(500);
    if (random_.Chance(20)) queue.preempt_min_runtime = random_.Below(500);
    return queue;
  }

  PodSet DrawPodSet(int i) {
    PodSet set = MakePodSet(absl::StrCat("s", i), 1 + random_.Below(2), Request());
    if (random_.Chance(40)) set.min_count = random_.Below(set.count + 1);
    if (random_.Chance(70)) set.request.cpu = Cores(1 + random_.Below(2));
    if (random_.Chance(15)) return set;
    set.request.gpu = GpuRequest::Whole(1 + random_.Below(2));
    if (random_.Chance(20)) set.request.gpu = GpuRequest::Fraction(kGpuUnitsPerDevice / 2);
    if (options_.slices && random_.Chance(15)) {
      set.request.gpu = GpuRequest::Profile(random_.Chance(50) ? "1g.10gb" : "3g.40gb");
    }
    return set;
  }

  RandomCluster& random_;
  const CrowdOptions options_;
};

// What the referees hold against the plan; that it lists nobody as pending is not held.
inline std::string Objections(const Snapshot& snapshot, const FairShares& shares,
                              const RoomRules& rules, const std::vector<Action>& actions) {
  std::string text;
  const CheckPlanOptions options{.mig_charge = rules.victims.mig_charge,
                                 .honour_nominations = rules.honour_nominations};
  for (const PlanViolation& v : CheckPlan(snapshot, {actions, {}}, options)) {
    if (!v.text.starts_with("pending workload ")) absl::StrAppend(&text, v.text, "\n");
  }
  for (const PlanViolation& v : CheckVictims(snapshot, {actions, {}}, shares, rules.victims,
                                             {.honour_nominations = rules.honour_nominations})) {
    absl::StrAppend(&text, v.text, "\n");
  }
  return text;
}

// The plan and what it was made for, to read when a test fails.
inline std::string TextOf(const Snapshot& snapshot, const RoomPlan& plan) {
  std::string text = ToText(plan.certificate);
  for (PodId p : plan.evicted) {
    const PodRef ref = snapshot.pod_ref(p);
    absl::StrAppend(&text, "\nevict ", ref.workload, "/", ref.pod_set, "/", ref.index);
  }
  for (const PodTarget& move : plan.moved) {
    const PodRef ref = snapshot.pod_ref(move.pod);
    absl::StrAppend(&text, "\nmove ", ref.workload, "/", ref.pod_set, "/", ref.index, " to ",
                    snapshot.node(move.placement.node).name);
  }
  for (const PodTarget& target : plan.placed) {
    const PodRef ref = snapshot.pod_ref(target.pod);
    absl::StrAppend(&text, "\nplace ", ref.pod_set, "/", ref.index, " on ",
                    snapshot.node(target.placement.node).name);
  }
  return text + "\n" + WriteSnapshot(snapshot);
}

}  // namespace tessera

#endif  // TESSERA_TESTS_PREEMPTION_ROOM_SUPPORT_H_
