#include "tessera/verify/check_victims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Queue "a" is entitled to 2 GPUs and holds 4: job "x" of three pods, of which one is needed,
// and "y" of one. "b" is entitled to 2, has none, and "claim" waits there for one.
struct Scene {
  Scene() {
    spec.now = 100;
    spec.nodes = {MakeNode("n", 4)};
    spec.queues = {MakeQueue("a"), MakeQueue("b")};
    Workload x = MakeWorkload("x", "a", {WithMinCount(MakePodSet("s", 3, WholeGpus(1)), 1)});
    for (int i = 0; i < 3; ++i) {
      x.pods.push_back(MakePod("s", i, "n", OnGpus({i})));
      x.pods.back().started = 50;
    }
    Workload y = MakeWorkload("y", "a", {MakePodSet("s", 1, WholeGpus(1))});
    y.pods = {MakePod("s", 0, "n", OnGpus({3}))};
    spec.workloads = {x, y, MakeWorkload("claim", "b", {MakePodSet("s", 1, WholeGpus(1))})};
    entitled = {2, 2};
    actions = {Evict("x", 2), Nominate("claim", 2)};
  }

  static Action Evict(std::string workload, int pod, std::string reason = "reclaim") {
    return EvictAction{{std::move(workload), "s", pod}, std::move(reason), "claim"};
  }
  static Action Nominate(std::string workload, int gpu) {
    return NominateAction{{std::move(workload), "s", 0}, "n", OnGpus({gpu})};
  }

  std::vector<std::string> Judge() const {
    const Snapshot snapshot = CreateOrDie(spec);
    FairShares shares;
    for (int64_t gpus : entitled) {
      QueueShare share;
      share.fair_share = ResourceVector::Filled(kMaxTotal);
      share.fair_share[kGpu] = Gpus(gpus);
      shares.queues.push_back(share);
    }
    std::vector<std::string> texts;
    for (const PlanViolation& v : CheckVictims(snapshot, {actions, {}}, shares, rules)) {
      texts.push_back(v.text);
    }
    return texts;
  }

  SnapshotSpec spec;
  std::vector<int64_t> entitled;  // by queue, GPUs
  std::vector<Action> actions;
  VictimRules rules;
};

TEST(CheckVictims, AcceptsWhatIsAboveTheEntitlement) {
  Scene scene;
  EXPECT_THAT(scene.Judge(), IsEmpty());
  // The second leaves the queue at 2, its entitlement.
  scene.actions = {Scene::Evict("x", 1), Scene::Evict("x", 2), Scene::Nominate("claim", 2)};
  EXPECT_THAT(scene.Judge(), IsEmpty());
}

struct Offence {
  const char* name;
  std::function<void(Scene&)> commit;
  const char* text;
};

class CheckVictimsOffence : public testing::TestWithParam<Offence> {};

TEST_P(CheckVictimsOffence, IsReported) {
  Scene scene;
  GetParam().commit(scene);
  EXPECT_THAT(scene.Judge(), ElementsAre(GetParam().text));
}

INSTANTIATE_TEST_SUITE_P(
    All, CheckVictimsOffence,
    testing::Values(
        Offence{"BelowTheEntitlement",
                [](Scene& s) {
                  // 4 - 3 = 1: before the last of them leaves, the queue has its 2.
                  s.actions = {Scene::Evict("x", 1), Scene::Evict("x", 2), Scene::Evict("y", 0),
                               Scene::Nominate("claim", 2)};
                },
                "reclaim for claim: queue a is not that far above its entitlement: it held 4 gpu "
                "of a fair share of 2 gpu and keeps 1 gpu"},
        Offence{"ClaimantAboveItsOwn", [](Scene& s) { s.entitled[1] = 0; },
                "reclaim for claim: queue b of the claimant comes to hold 1 gpu, its fair share "
                "is 0 gpu"},
        Offence{"NobodyGetsAnything", [](Scene& s) { s.actions.pop_back(); },
                "x/s/2 yields, but nobody gets anything"},
        Offence{"ForSomebodyElse",
                [](Scene& s) {
                  s.spec.workloads.push_back(s.spec.workloads[2]);
                  s.spec.workloads.back().name = "other";
                  s.actions[1] = Scene::Nominate("other", 2);
                },
                "x/s/2 is evicted for \"claim\", but other gets its place"},
        Offence{"NotPreemptible", [](Scene& s) { s.spec.workloads[0].preemptible = false; },
                "x/s/2 is not preemptible"},
        Offence{"PreemptsInAnotherQueue",
                [](Scene& s) {
                  s.spec.workloads[0].priority = 1;
                  s.actions[0] = Scene::Evict("x", 2, "preempt");
                },
                "x/s/2 is of another queue"},
        Offence{"PreemptsAnEqual",
                [](Scene& s) {
                  s.spec.workloads[2].queue = "a";
                  s.actions[0] = Scene::Evict("x", 2, "preempt");
                },
                "x/s/2 has priority 50, which is not below 50"},
        Offence{"ReclaimsFromItself", [](Scene& s) { s.spec.workloads[2].queue = "a"; },
                "x/s/2 is of the same queue"},
        Offence{"NoReason", [](Scene& s) { s.actions[0] = Scene::Evict("x", 2, "whim"); },
                "\"whim\" is no reason to evict"},
        Offence{"BeforeItsDelay", [](Scene& s) { s.spec.workloads[2].preemption_delay = 101; },
                "workload claim: others yield for it before its preemption delay is over"},
        Offence{"GangBelowItsMinimum",
                [](Scene& s) { s.spec.workloads[0].gang.pod_sets[0].min_count = 3; },
                "workload x: 2 pods stay, and the gang is not whole"},
        Offence{"WithinItsMinRuntime",
                [](Scene& s) {
                  s.spec.queues[0].reclaim_min_runtime = 51;
                  s.entitled[0] = 1;
                  s.actions = {Scene::Evict("x", 0), Scene::Evict("x", 1), Scene::Evict("x", 2),
                               Scene::Nominate("claim", 2)};
                },
                "workload x: loses its minimum within its min-runtime"},
        Offence{"TooManyDisrupted",
                [](Scene& s) {
                  s.spec.workloads[0].max_disrupted = 1;
                  s.actions.insert(s.actions.begin(), Scene::Evict("x", 1));
                },
                "workload x: 2 pods are disrupted, at most 1 may be"},
        Offence{"MovesWhatMustNot",
                [](Scene& s) {
                  s.spec.nodes.push_back(MakeNode("m", 1));
                  s.spec.workloads[1].movable = false;
                  s.actions = {MoveAction{{"y", "s", 0}, "m", OnGpus({0})},
                               Scene::Nominate("claim", 3)};
                },
                "y/s/0 is not movable"},
        Offence{"MovesForWorkThatIsNotPreemptible",
                [](Scene& s) {
                  s.spec.nodes.push_back(MakeNode("m", 1));
                  s.spec.workloads[2].preemptible = false;
                  s.rules.move_for_all = false;
                  s.actions = {MoveAction{{"y", "s", 0}, "m", OnGpus({0})},
                               Scene::Nominate("claim", 3)};
                },
                "y/s/0 moves for claim, which is not preemptible"}),
    [](const auto& test) { return test.param.name; });

TEST(CheckVictims, ABaseTakesWhatWaitsForItAlong) {
  Scene scene;
  Workload& x = scene.spec.workloads[0];
  x.gang.pod_sets = {MakePodSet("base", 1, WholeGpus(1)), MakePodSet("s", 1, WholeGpus(1)),
                     MakePodSet("more", 1, WholeGpus(1))};
  x.gang.pod_sets[1].after = "base";
  x.gang.min_groups = 1;
  x.pods = {MakePod("base", 0, "n", OnGpus({0})), MakePod("s", 0, "n", OnGpus({1})),
            MakePod("more", 0, "n", OnGpus({2}))};
  scene.actions = {EvictAction{{"x", "base", 0}, "reclaim", "claim"}, Scene::Nominate("claim", 0)};
  EXPECT_THAT(scene.Judge(), ElementsAre("workload x: 1 pods stay of a part whose base is gone"));
}

TEST(CheckVictims, DealsAreJudgedOneAfterTheOther) {
  Scene scene;
  scene.spec.workloads.push_back(scene.spec.workloads[2]);
  scene.spec.workloads.back().name = "later";
  const EvictAction second{{"x", "s", 1}, "reclaim", "later"};
  scene.actions = {Scene::Evict("x", 2), Scene::Nominate("claim", 2), second,
                   Scene::Nominate("later", 1)};
  EXPECT_THAT(scene.Judge(), IsEmpty());
  // What "a" holds is counted as the first deal left it: 3, and 3 is its entitlement then.
  scene.entitled = {3, 2};
  EXPECT_THAT(scene.Judge(),
              ElementsAre("reclaim for later: queue a is not that far above its entitlement: it "
                          "held 3 gpu of a fair share of 3 gpu and keeps 2 gpu"));
}

TEST(CheckVictims, KaiJudgesWhereThePathsPart) {
  Scene scene;
  scene.rules = KaiVictimRules();
  EXPECT_THAT(scene.Judge(), IsEmpty());
  // At its fair share nothing may be taken, ...
  scene.entitled = {4, 1};
  EXPECT_EQ(scene.Judge().size(), 1u);
  // ... unless the claimant stays within its quota and the victim is above its own.
  scene.spec.queues[1].quota.all = kUnlimited;
  EXPECT_THAT(scene.Judge(), IsEmpty());
}

}  // namespace
}  // namespace tessera
