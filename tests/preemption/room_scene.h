#ifndef TESSERA_TESTS_PREEMPTION_ROOM_SCENE_H_
#define TESSERA_TESTS_PREEMPTION_ROOM_SCENE_H_

// Clusters in which a workload "claim" finds no room.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/preemption/room_support.h"

namespace tessera {

inline Queue QueueOf(std::string name, int quota, std::string parent = "") {
  Queue queue = MakeQueue(std::move(name), std::move(parent));
  queue.quota.by_name["gpu"] = Gpus(quota);
  return queue;
}

// A job of one pod on these GPUs of a node.
inline Workload RunningJob(std::string name, std::string queue, std::string node,
                           std::vector<int> gpus) {
  Workload job = MakeWorkload(std::move(name), std::move(queue),
                              {MakePodSet("s", 1, WholeGpus(static_cast<int>(gpus.size())))});
  job.pods = {MakePod("s", 0, std::move(node), OnGpus(std::move(gpus)))};
  job.pods[0].started = 0;
  return job;
}

// An elastic job of one-GPU pods on GPUs 0, 1, ... of a node.
inline Workload ElasticJob(std::string name, std::string queue, std::string node, int count,
                           int min_count) {
  Workload job = MakeWorkload(std::move(name), std::move(queue),
                              {WithMinCount(MakePodSet("s", count, WholeGpus(1)), min_count)});
  for (int i = 0; i < count; ++i) {
    job.pods.push_back(MakePod("s", i, node, OnGpus({i})));
    job.pods.back().started = 0;
  }
  return job;
}

inline Workload Claim(std::string queue, int pods, int gpus) {
  return MakeWorkload("claim", std::move(queue), {MakePodSet("s", pods, WholeGpus(gpus))});
}

// A cluster, what it plans, and what the referees say.
class Scene {
 public:
  explicit Scene(SnapshotSpec spec)
      : snapshot(CreateOrDie(LaterThanStarts(std::move(spec)))),
        shares(DivideFairShares(snapshot)) {}

  using Planner = RoomPlan (*)(const Snapshot&, const FairShares&, WorkloadId, const RoomRules&);

  RoomPlan Plan(Planner planner, const RoomRules& rules = {}) const {
    const RoomPlan plan = planner(snapshot, shares, *snapshot.FindWorkload("claim"), rules);
    EXPECT_EQ(Objections(snapshot, shares, rules, plan.actions), "");
    return plan;
  }

  std::vector<std::string> Evicted(const RoomPlan& plan) const { return Names(plan.evicted); }

  std::vector<std::string> Names(const std::vector<PodId>& pods) const {
    std::vector<std::string> names;
    for (PodId p : pods) {
      const PodRef ref = snapshot.pod_ref(p);
      names.push_back(absl::StrCat(ref.workload, "/", ref.index));
    }
    return names;
  }

  Snapshot snapshot;
  FairShares shares;

 private:
  // Who has only just started yields to nobody, so the scene is a second later.
  static SnapshotSpec LaterThanStarts(SnapshotSpec spec) {
    spec.now = std::max<int64_t>(spec.now, 1);
    return spec;
  }
};

// Two queues of 4 GPUs each on one node of 8; "a" holds all of it by one-GPU jobs a0 ... a7,
// a7 the youngest.
inline SnapshotSpec EightJobs() {
  SnapshotSpec spec;
  spec.now = 3600;
  spec.nodes = {MakeNode("n", 8)};
  spec.queues = {QueueOf("a", 4), QueueOf("b", 4)};
  for (int i = 0; i < 8; ++i) {
    spec.workloads.push_back(RunningJob(absl::StrCat("a", i), "a", "n", {i}));
    spec.workloads.back().submitted = i;
  }
  return spec;
}

}  // namespace tessera

#endif  // TESSERA_TESTS_PREEMPTION_ROOM_SCENE_H_
