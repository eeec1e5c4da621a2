// What is held for gangs that wait for long, and who may use it meanwhile.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tessera/schedule/schedule.h"
#include "tests/support/snapshot_builder_for_tests.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Workload Job(std::string name, std::string queue, int gpus, int64_t submitted = 0) {
  Workload job =
      MakeWorkload(std::move(name), std::move(queue), {MakePodSet("s", 1, WholeGpus(gpus))});
  job.submitted = submitted;
  return job;
}

Workload Running(Workload job, std::string node, std::vector<int> gpus, int64_t started) {
  job.pods = {MakePod("s", 0, std::move(node), OnGpus(std::move(gpus)))};
  job.pods[0].started = started;
  return job;
}

// Three nodes of 4 GPUs. On n1 3 of them are held by jobs that never end, on n2 2 until 1,100,
// on n3 all; "wide" wants two whole nodes and has waited since 0.
SnapshotSpec Scene() {
  SnapshotSpec spec;
  spec.now = 1000;
  spec.nodes = {MakeNode("n1", 4), MakeNode("n2", 4), MakeNode("n3", 4)};
  spec.workloads = {Running(Job("x", "", 3), "n1", {0, 1, 2}, 10),
                    Running(Job("y", "", 2), "n2", {0, 1}, 100),
                    Running(Job("z", "", 4), "n3", {0, 1, 2, 3}, 10),
                    MakeWorkload("wide", "", {MakePodSet("s", 2, WholeGpus(4))})};
  spec.workloads[1].max_runtime = 1000;
  return spec;
}

std::vector<std::string> Bound(const CycleResult& cycle) {
  std::vector<std::string> bound;
  for (const Action& action : cycle.plan.actions) {
    if (const auto* bind = std::get_if<BindAction>(&action)) {
      bound.push_back(absl::StrCat(bind->pod.workload, " on ", bind->node));
    }
  }
  return bound;
}

std::string PendingText(const CycleResult& cycle, const std::string& name) {
  for (const PendingWorkload& pending : cycle.plan.pending) {
    if (pending.workload == name) {
      return absl::StrCat(std::string(ToString(pending.reason)), ": ", pending.text);
    }
  }
  return "";
}

TEST(Reservation, HoldsTheNodesThatAreHeldLeast) {
  SnapshotSpec spec = Scene();
  spec.workloads.push_back(Job("small", "", 1, 900));
  const CycleResult cycle = Schedule(CreateOrDie(std::move(spec)));
  ASSERT_EQ(cycle.reservations.size(), 1);
  const Reservation& held = cycle.reservations[0];
  EXPECT_EQ(held.workload, "wide");
  EXPECT_THAT(held.nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(held.free_by, kUnlimited);      // "x" may run on
  EXPECT_EQ(held.idle_gpu_units, Gpus(3));  // 4 - 3 on n1, 4 - 2 on n2
  EXPECT_THAT(Bound(cycle), IsEmpty());
  EXPECT_EQ(PendingText(cycle, "small"),
            "held: would fit, but places are held for workload \"wide\", which has waited beyond "
            "patience");
  EXPECT_THAT(PendingText(cycle, "wide"), HasSubstr("insufficient_gpus"));
}

// Each of two gangs wants all of its node; what one holds is of no use to the other's neighbour.
TEST(Reservation, NamesWhoKeepsAJobAway) {
  SnapshotSpec spec;
  spec.now = 1000;
  spec.nodes = {MakeNode("n1", 4, "A100-40GB"), MakeNode("n2", 4, "H100-80GB")};
  spec.workloads = {Running(Job("x", "", 3), "n1", {0, 1, 2}, 10),
                    Running(Job("y", "", 3), "n2", {0, 1, 2}, 10),
                    Job("wide-a", "", 4, 0),
                    Job("wide-h", "", 4, 1),
                    Job("small-a", "", 1, 900),
                    Job("small-h", "", 1, 900)};
  for (size_t i = 2; i < 6; ++i) {
    spec.workloads[i].gang.pod_sets[0].gpu_models = {spec.nodes[i % 2].gpu_model};
  }
  const CycleResult cycle = Schedule(CreateOrDie(std::move(spec)));
  ASSERT_EQ(cycle.reservations.size(), 2);
  EXPECT_THAT(PendingText(cycle, "small-a"), HasSubstr("held for workload \"wide-a\""));
  EXPECT_THAT(PendingText(cycle, "small-h"), HasSubstr("held for workload \"wide-h\""));
}

TEST(Reservation, NotBeforePatienceIsOver) {
  for (const int64_t submitted : {401, 400}) {
    SnapshotSpec spec = Scene();
    spec.workloads[3].submitted = submitted;
    spec.workloads.push_back(Job("small", "", 1, 900));
    const CycleResult cycle = Schedule(CreateOrDie(std::move(spec)));
    EXPECT_EQ(cycle.reservations.size(), submitted == 400 ? 1 : 0);  // 600 seconds
    EXPECT_EQ(Bound(cycle).size(), submitted == 400 ? 0 : 1);
  }
}

TEST(Reservation, WhoEndsInTimeMayUseIt) {
  for (const int64_t runtime : {100, 101}) {
    SnapshotSpec spec = Scene();
    spec.workloads[0].max_runtime = 1050;  // until 1,060; "y" until 1,100
    spec.workloads.push_back(Job("small", "", 1, 900));
    spec.workloads.back().max_runtime = runtime;
    const CycleResult cycle = Schedule(CreateOrDie(std::move(spec)));
    EXPECT_EQ(cycle.reservations.at(0).free_by, 1100);
    EXPECT_EQ(Bound(cycle).size(), runtime == 100 ? 1 : 0);
  }
}

TEST(Reservation, WhoYieldsMayUseItAndDoes) {
  SnapshotSpec spec = Scene();
  spec.workloads.push_back(Job("low", "", 1, 900));
  spec.workloads.back().priority = 10;
  const CycleResult cycle = Schedule(CreateOrDie(spec));
  EXPECT_EQ(cycle.reservations.size(), 1);
  EXPECT_EQ(Bound(cycle).size(), 1);
  // Once "x" and "y" have ended it makes way.
  SnapshotSpec later = ApplyAndSettle(CreateOrDie(spec), cycle.plan)->spec();
  later.now += 60;
  std::erase_if(later.workloads, [](const Workload& w) { return w.name == "x" || w.name == "y"; });
  const CycleResult next = Schedule(CreateOrDie(std::move(later)));
  EXPECT_EQ(next.certificates.size(), 1);
  EXPECT_EQ(next.certificates.at(0).claimant, "wide");
}

TEST(Reservation, NotBeyondItsEntitlement) {
  SnapshotSpec spec = Scene();
  spec.queues = {MakeQueue("a"), MakeQueue("b")};
  spec.queues[0].quota.by_name["gpu"] = Gpus(4);
  spec.queues[1].quota.by_name["gpu"] = Gpus(8);
  for (Workload& workload : spec.workloads) workload.queue = "b";
  spec.workloads[3].queue = "a";  // 8 GPUs, and b demands all of its 8 but for one
  spec.workloads.push_back(Job("small", "b", 1, 900));
  const CycleResult cycle = Schedule(CreateOrDie(std::move(spec)));
  EXPECT_THAT(cycle.reservations, IsEmpty());
  EXPECT_EQ(Bound(cycle).size(), 1);
}

TEST(Reservation, InTheRackThatIsHeldLeast) {
  SnapshotSpec spec;
  spec.now = 1000;
  spec.levels = {"rack"};
  for (int i = 0; i < 6; ++i) {
    spec.nodes.push_back(MakeNode(absl::StrCat("n", i), 4));
    spec.nodes.back().topology["rack"] = absl::StrCat("r", i / 2);
  }
  // r0 holds 4 + 1, r1 2 + 2, r2 4 + 4.
  const std::vector<int> held = {4, 1, 2, 2, 4, 4};
  for (int i = 0; i < 6; ++i) {
    std::vector<int> gpus;
    for (int g = 0; g < held[static_cast<size_t>(i)]; ++g) gpus.push_back(g);
    spec.workloads.push_back(Running(Job(absl::StrCat("j", i), "", static_cast<int>(gpus.size())),
                                     absl::StrCat("n", i), gpus, 10));
    spec.workloads.back().movable = false;
  }
  spec.workloads.push_back(MakeWorkload("wide", "", {MakePodSet("s", 2, WholeGpus(4))}));
  spec.workloads.back().gang.topology.required = "rack";
  const CycleResult cycle = Schedule(CreateOrDie(std::move(spec)));
  EXPECT_THAT(cycle.reservations.at(0).nodes, ElementsAre("n2", "n3"));
}

// Two nodes of 8 GPUs; every minute 6 jobs of one GPU arrive that run for two minutes, so that 12
// GPUs are busy on average. "wide" wants all 16.
struct Stream {
  std::optional<int64_t> started;  // "wide"
  int64_t idle_gpu_minutes = 0;    // held and free
};

Stream RunStream(int64_t patience) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n1", 8), MakeNode("n2", 8)};
  spec.workloads = {MakeWorkload("wide", "", {MakePodSet("s", 2, WholeGpus(8))})};
  for (int i = 0; i < 4; ++i) spec.workloads.push_back(Job(absl::StrCat("first-", i), "", 1, -60));
  auto policy = Strict();
  policy.rules.patience = patience;
  Stream result;
  for (int minute = 0; minute < 60 && !result.started; ++minute) {
    spec.now = 60 * minute;
    std::erase_if(spec.workloads, [&](const Workload& w) {
      return !w.pods.empty() && spec.now - w.pods[0].started.value_or(spec.now) >= 120;
    });
    for (int i = 0; i < 6; ++i) {
      spec.workloads.push_back(Job(absl::StrCat("job-", minute, "-", i), "", 1, spec.now));
    }
    const Snapshot snapshot = CreateOrDie(spec);
    const CycleResult cycle = Schedule(snapshot, policy);
    for (const Reservation& held : cycle.reservations) {
      result.idle_gpu_minutes += held.idle_gpu_units / kGpuUnitsPerDevice;
    }
    spec = ApplyAndSettle(snapshot, cycle.plan)->spec();
    const auto wide = std::ranges::find(spec.workloads, "wide", &Workload::name);
    if (!wide->pods.empty()) result.started = spec.now;
  }
  return result;
}

TEST(Reservation, AStreamOfSmallJobsDoesNotStarveAWideGang) {
  EXPECT_EQ(RunStream(kUnlimited).started, std::nullopt);
  const Stream held = RunStream(600);
  // From minute 10 on nobody starts before it: the 6 that started at minute 9 end at minute 11.
  EXPECT_EQ(held.started, 660);
  // That costs the 10 GPUs which they leave free at minute 10.
  EXPECT_EQ(held.idle_gpu_minutes, 10);
}

}  // namespace
}  // namespace tessera
