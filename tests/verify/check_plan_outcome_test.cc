// Gangs, topology, queues and the list of pending workloads, after the plan: each
// rule by a plan that keeps it and one that breaks nothing else.

#include "tests/verify/plan_scene.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

BindAction BindPod(std::string pod_set, int index, std::string node) {
  return {{"w", std::move(pod_set), index}, std::move(node), {}};
}
NominateAction NominatePod(std::string pod_set, int index, std::string node) {
  return {{"w", std::move(pod_set), index}, std::move(node), {}};
}

PodSet CpuSet(std::string name, int count, int min_count) {
  return WithMinCount(MakePodSet(std::move(name), count, CpuOnly(1)), min_count);
}

// Nodes n1 and n2 in rack r1, n3 in rack r2, n4 in none. w is empty.
PlanScene Racks() {
  PlanScene scene;
  scene.spec.levels = {"rack"};
  for (const char* name : {"n1", "n2", "n3", "n4"}) scene.spec.nodes.push_back(MakeNode(name));
  scene.spec.nodes[0].topology = {{"rack", "r1"}};
  scene.spec.nodes[1].topology = {{"rack", "r1"}};
  scene.spec.nodes[2].topology = {{"rack", "r2"}};
  scene.spec.workloads = {MakeWorkload("w", "", {})};
  return scene;
}

// Pod set a of 3 pods, of which 2 must hold, and b of 1; all but one a are bound.
PlanScene Elastic() {
  PlanScene scene = Racks();
  scene.workload(0).gang.pod_sets = {CpuSet("a", 3, 2), CpuSet("b", 1, 1)};
  scene.plan.actions = {BindPod("a", 0, "n1"), BindPod("a", 1, "n2"), BindPod("b", 0, "n1")};
  scene.plan.pending = {MakePending("w", false)};
  return scene;
}

// Groups x and y of 2 pods, of which one group is enough; x is bound.
PlanScene OneGroupOfTwo() {
  PlanScene scene = Racks();
  scene.workload(0).gang.groups = {MakeGroup("x", {CpuSet("xs", 2, 2)}),
                                   MakeGroup("y", {CpuSet("ys", 2, 2)})};
  scene.workload(0).gang.min_groups = 1;
  scene.plan.actions = {BindPod("xs", 0, "n1"), BindPod("xs", 1, "n2")};
  scene.plan.pending = {MakePending("w", false)};
  return scene;
}

// Group more comes after group base; both are bound.
PlanScene Scaled() {
  PlanScene scene = Racks();
  scene.workload(0).gang.groups = {MakeGroup("base", {CpuSet("bs", 1, 1)}),
                                   MakeGroup("more", {CpuSet("ms", 1, 1)}, "base")};
  scene.plan.actions = {BindPod("bs", 0, "n1"), BindPod("ms", 0, "n1")};
  return scene;
}

// Both run, and both are evicted.
PlanScene ScaledDown() {
  PlanScene scene = Scaled();
  scene.workload(0).pods = {MakePod("bs", 0, "n1"), MakePod("ms", 0, "n1")};
  scene.plan.actions = {EvictAction{{"w", "ms", 0}, "reclaim", ""},
                        EvictAction{{"w", "bs", 0}, "reclaim", ""}};
  scene.plan.pending = {MakePending("w", true)};
  return scene;
}

const std::vector<PlanCase>& GangCases() {
  static const auto& cases = *new std::vector<PlanCase>{
      {"BelowMinCount",
       Elastic(),
       [](PlanScene& s) {
         s.plan.actions.erase(s.plan.actions.begin());
         s.plan.pending[0].below_minimum = true;
       },
       {{-1, "workload w: pod set a got a pod, but has 1 of the 2 pods it needs"}}},
      {"OtherPodSetMissing",
       Elastic(),
       [](PlanScene& s) {
         s.plan.actions.pop_back();
         s.plan.pending[0].below_minimum = true;
       },
       {{-1,
         "workload w: the gang got a pod, but needs 2 of its parts, but these are below "
         "minimum: pod set b"}}},
      {"FailedPodsDoNotCount",
       Elastic(),
       [](PlanScene& s) {
         s.workload(0).pods = {MakeEndedPod("b", 0, PodPhase::kFailed)};
         s.plan.actions.pop_back();
         s.plan.pending[0].below_minimum = true;
       },
       {{-1,
         "workload w: the gang got a pod, but needs 2 of its parts, but these are below "
         "minimum: pod set b"}}},
      {"ReleasingPodsDoNotCount",
       Elastic(),
       [](PlanScene& s) {
         s.workload(0).pods = {MakePod("b", 0, "n1", {}, PodPhase::kReleasing)};
         s.plan.actions.pop_back();
         s.plan.pending[0].below_minimum = true;
       },
       {{-1,
         "workload w: the gang got a pod, but needs 2 of its parts, but these are below "
         "minimum: pod set b"}}},
      {"GroupBelowItsMinimum",
       OneGroupOfTwo(),
       [](PlanScene& s) { s.plan.actions.push_back(BindPod("ys", 0, "n3")); },
       {{-1, "workload w: pod set ys got a pod, but has 1 of the 2 pods it needs"}}},
      {"TooFewGroups",
       OneGroupOfTwo(),
       [](PlanScene& s) {
         s.workload(0).gang.min_groups = 2;
         s.plan.pending[0].below_minimum = true;
       },
       {{-1,
         "workload w: the gang got a pod, but needs 2 of its parts, but these are below "
         "minimum: group y"}}},
      {"AfterWithoutBase",
       Scaled(),
       [](PlanScene& s) {
         s.workload(0).gang.groups.push_back(MakeGroup("third", {CpuSet("ts", 1, 1)}));
         s.workload(0).gang.min_groups = 1;
         s.plan.actions = {BindPod("ts", 0, "n1"), BindPod("ms", 0, "n1")};
         s.plan.pending = {MakePending("w", false)};
       },
       {{-1,
         "workload w: group more has a bound pod, but group base, which it comes after, is "
         "below its minimum"}}},
      {"AfterNominatedBase",
       [] {
         PlanScene scene = Scaled();
         scene.plan.actions = {NominatePod("bs", 0, "n1"), NominatePod("ms", 0, "n1")};
         return scene;
       }(),
       [](PlanScene& s) { s.plan.actions[1] = BindPod("ms", 0, "n1"); },
       {{-1,
         "workload w: group more has a bound pod, but group base, which it comes after, is "
         "merely nominated"}}},
      {"BaseEvictedAlone",
       ScaledDown(),
       [](PlanScene& s) { s.plan.actions.erase(s.plan.actions.begin()); },
       {{-1,
         "workload w: group more has pods, but group base, which it comes after, is below its "
         "minimum"}}},
  };
  return cases;
}

class GangRuleTest : public PlanRuleTest {};
TEST_P(GangRuleTest, Holds) { Judge(); }
INSTANTIATE_TEST_SUITE_P(Rules, GangRuleTest, ::testing::ValuesIn(GangCases()), NameOfCase);

TEST(CheckPlanTest, SucceededAndNominatedPodsCountTowardsTheMinimum) {
  PlanScene scene = Elastic();
  scene.workload(0).pods = {MakeEndedPod("b", 0, PodPhase::kSucceeded),
                            MakePod("a", 2, "n1", {}, PodPhase::kNominated)};
  scene.plan.actions = {BindPod("a", 0, "n1")};
  EXPECT_THAT(scene.Check(), IsEmpty());
}

TEST(CheckPlanTest, BrokenGangMayLoseMore) {
  PlanScene scene = Elastic();
  scene.workload(0).pods = {MakePod("a", 0, "n1"), MakePod("a", 1, "n1")};
  scene.plan.actions = {EvictAction{{"w", "a", 0}, "stale", ""}};
  scene.plan.pending[0].below_minimum = true;
  EXPECT_THAT(scene.Check(), IsEmpty());
}

// Pod set a requires one rack; a/0 and a/1 are bound in r1.
PlanScene OneRack() {
  PlanScene scene = Elastic();
  scene.pod_set(0, 0).topology.required = "rack";
  return scene;
}

const std::vector<PlanCase>& TopologyCases() {
  static const auto& cases = *new std::vector<PlanCase>{
      {"TwoRacks",
       OneRack(),
       [](PlanScene& s) { s.plan.actions[1] = BindPod("a", 1, "n3"); },
       {{-1, "workload w: pod set a is not in one rack: n1, n3"}}},
      {"NoRack",
       OneRack(),
       [](PlanScene& s) {
         s.plan.actions[0] = BindPod("a", 0, "n4");
         s.plan.actions[1] = BindPod("a", 1, "n4");
       },
       {{-1, "workload w: pod set a is not in one rack: n4, n4"}}},
      {"OfTheGang",
       OneRack(),
       [](PlanScene& s) {
         s.workload(0).gang.topology.required = "rack";
         s.plan.actions[2] = BindPod("b", 0, "n3");
       },
       {{-1, "workload w: the gang is not in one rack: n1, n3"}}},
      {"AwayFromRunningPod",
       [] {
         PlanScene scene = OneRack();
         scene.workload(0).pods = {MakePod("a", 2, "n1")};
         scene.plan.pending.clear();
         return scene;
       }(),
       [](PlanScene& s) { s.workload(0).pods[0].node = "n3"; },
       {{-1, "workload w: pod set a is not in one rack: n1, n3"}}},
      {"NominatedAway",
       OneRack(),
       [](PlanScene& s) { s.plan.actions[1] = NominatePod("a", 1, "n3"); },
       {{-1, "workload w: pod set a is not in one rack: n1, n3"}}},
      {"MovedAway",
       [] {
         PlanScene scene = OneRack();
         scene.workload(0).pods = {MakePod("a", 0, "n1"), MakePod("a", 1, "n1"),
                                   MakePod("b", 0, "n1")};
         scene.plan.actions = {MoveAction{{"w", "a", 1}, "n2", {}}};
         return scene;
       }(),
       [](PlanScene& s) { std::get<MoveAction>(s.plan.actions[0]).node = "n3"; },
       {{-1, "workload w: pod set a is not in one rack: n1, n3"}}},
  };
  return cases;
}

class TopologyRuleTest : public PlanRuleTest {};
TEST_P(TopologyRuleTest, Holds) { Judge(); }
INSTANTIATE_TEST_SUITE_P(Rules, TopologyRuleTest, ::testing::ValuesIn(TopologyCases()), NameOfCase);

// What was scattered before is not the plan's fault until it adds to it.
TEST(CheckPlanTest, ScatteredPodsAreJudgedOnlyWhenAddedTo) {
  PlanScene scene = OneRack();
  scene.workload(0).pods = {MakePod("a", 0, "n1"), MakePod("a", 1, "n3")};
  scene.plan.actions = {BindPod("b", 0, "n4")};
  EXPECT_THAT(scene.Check(), IsEmpty());
  scene.plan.actions.push_back(BindPod("a", 2, "n1"));
  scene.plan.pending.clear();
  EXPECT_THAT(scene.Check(),
              ElementsAre(PlanViolation{-1, "workload w: pod set a is not in one rack: n1, n3"}));
}

// w of queue leaf, below queue top, gets one GPU; x of queue twin has another.
PlanScene TwoQueues() {
  PlanScene scene;
  scene.spec.nodes = {MakeNode("n1", 4)};
  scene.spec.queues = {MakeQueue("top"), MakeQueue("leaf", "top"), MakeQueue("twin", "top")};
  for (Queue& queue : scene.spec.queues) queue.quota.by_name["gpu"] = Gpus(1);
  scene.spec.queues[0].quota.by_name["gpu"] = Gpus(2);
  scene.spec.workloads = {MakeWorkload("w", "leaf", {MakePodSet("s", 1, WholeGpus(1))}),
                          MakeWorkload("x", "twin", {MakePodSet("s", 1, WholeGpus(1))})};
  for (Workload& workload : scene.spec.workloads) workload.priority = kNonPreemptiblePriority;
  scene.workload(1).pods = {MakePod("s", 0, "n1", OnGpus({3}))};
  scene.plan.actions = {Bind("w", 0, "n1", OnGpus({0}))};
  return scene;
}

void Limit(PlanScene& scene, size_t queue, const std::string& resource, int64_t amount) {
  scene.spec.queues[queue].limit.by_name[resource] = amount;
}
void Quota(PlanScene& scene, size_t queue, const std::string& resource, int64_t amount) {
  scene.spec.queues[queue].quota.by_name[resource] = amount;
}

const std::vector<PlanCase>& QueueCases() {
  static const auto& cases = *new std::vector<PlanCase>{
      {"LimitOfLeaf",
       TwoQueues(),
       [](PlanScene& s) { Limit(s, 1, "gpu", Gpus(1) - 1); },
       {{-1, "queue leaf comes to hold 1 gpu, its limit is 0.999857 gpu"}}},
      {"LimitOfParent",
       TwoQueues(),
       [](PlanScene& s) { Limit(s, 0, "gpu", Gpus(1)); },
       {{-1, "queue top comes to hold 2 gpu, its limit is 1 gpu"}}},
      {"LimitOfModel",
       TwoQueues(),
       [](PlanScene& s) { Limit(s, 0, "gpu:H100", Gpus(1)); },
       {{-1, "queue top comes to hold 2 gpu:H100, its limit is 1 gpu:H100"}}},
      {"LimitOfPods",
       TwoQueues(),
       [](PlanScene& s) { Limit(s, 0, "pods", 1); },
       {{-1, "queue top comes to hold 2 pods, its limit is 1 pods"}}},
      {"LimitOfOtherModel", TwoQueues(), [](PlanScene& s) { Limit(s, 0, "gpu:H200", 0); }, {}},
      {"LimitExceededByOthersAlone", TwoQueues(), [](PlanScene& s) { Limit(s, 2, "gpu", 0); }, {}},
      {"LimitOfNominated",
       [] {
         PlanScene scene = TwoQueues();
         scene.plan.actions = {Nominate("w", 0, "n1", OnGpus({0}))};
         return scene;
       }(),
       [](PlanScene& s) { Limit(s, 0, "gpu", Gpus(1)); },
       {{-1, "queue top comes to hold 2 gpu, its limit is 1 gpu"}}},
      {"QuotaOfLeaf",
       TwoQueues(),
       [](PlanScene& s) { Quota(s, 1, "gpu", 0); },
       {{-1,
         "queue leaf comes to hold 1 gpu by work that is not preemptible, its quota is 0 gpu"}}},
      {"QuotaOfParent",
       TwoQueues(),
       [](PlanScene& s) { Quota(s, 0, "gpu", Gpus(1)); },
       {{-1, "queue top comes to hold 2 gpu by work that is not preemptible, its quota is 1 gpu"}}},
      {"QuotaOfGovernedResource",
       [] {
         PlanScene scene = TwoQueues();
         scene.pod_set(0).request.cpu = Cores(1);
         return scene;
       }(),
       [](PlanScene& s) { Quota(s, 2, "cpu", Cores(8)); },
       {{-1, "queue leaf comes to hold 1 cpu by work that is not preemptible, its quota is 0 cpu"},
        {-1, "queue top comes to hold 1 cpu by work that is not preemptible, its quota is 0 cpu"}}},
      {"QuotaOfPreemptible",
       TwoQueues(),
       [](PlanScene& s) {
         s.workload(0).preemptible = true;
         Quota(s, 0, "gpu", 0);
       },
       {}},
  };
  return cases;
}

class QueueRuleTest : public PlanRuleTest {};
TEST_P(QueueRuleTest, Holds) { Judge(); }
INSTANTIATE_TEST_SUITE_P(Rules, QueueRuleTest, ::testing::ValuesIn(QueueCases()), NameOfCase);

TEST(CheckPlanTest, EvictedPodsNoLongerCountInQueues) {
  PlanScene scene = TwoQueues();
  Limit(scene, 0, "gpu", Gpus(1));
  scene.workload(1).preemptible = true;
  scene.plan.actions.push_back(Evict("x", 0));
  scene.plan.pending = {MakePending("x", true)};
  EXPECT_THAT(scene.Check(), IsEmpty());
}

TEST(CheckPlanTest, BindingWhatIsNominatedAddsNothingToItsQueue) {
  PlanScene scene = TwoQueues();
  Limit(scene, 0, "gpu", 0);
  scene.workload(0).pods = {MakePod("s", 0, "n1", OnGpus({0}), PodPhase::kNominated)};
  EXPECT_THAT(scene.Check(), IsEmpty());
  scene.options.honour_nominations = false;
  EXPECT_THAT(scene.Check(),
              ElementsAre(PlanViolation{-1, "queue top comes to hold 2 gpu, its limit is 0 gpu"}));
}

TEST(CheckPlanTest, ChargeFollowsTheRule) {
  PlanScene scene = BindingSlice();
  scene.spec.queues[0].limit.by_name["gpu"] = Gpus(1) / 7;
  EXPECT_THAT(scene.Check(), IsEmpty());
  scene.options.mig_charge = MigCharge::kWholeG;
  EXPECT_THAT(scene.Check(), ElementsAre(PlanViolation{
                                 -1, "queue a comes to hold 1 gpu, its limit is 0.142857 gpu"}));
}

// v and w wait, x runs.
PlanScene Waiting() {
  PlanScene scene;
  scene.spec.nodes = {MakeNode("n1")};
  for (const char* name : {"v", "w", "x"}) {
    scene.spec.workloads.push_back(MakeWorkload(name, "", {CpuSet("s", 2, 1)}));
  }
  scene.workload(1).pods = {MakePod("s", 1, "n1")};
  scene.workload(2).pods = {MakePod("s", 0, "n1"), MakePod("s", 1, "n1")};
  scene.plan.pending = {MakePending("v", true), MakePending("w", false)};
  return scene;
}

const std::vector<PlanCase>& PendingCases() {
  static const auto& cases = *new std::vector<PlanCase>{
      {"NotListed",
       Waiting(),
       [](PlanScene& s) { s.plan.pending.pop_back(); },
       {{-1, "pending workload w: is not listed"}}},
      {"ListedTwice",
       Waiting(),
       [](PlanScene& s) { s.plan.pending.push_back(s.plan.pending[1]); },
       {{-1, "pending workload w: is listed twice"}}},
      {"OutOfOrder",
       Waiting(),
       [](PlanScene& s) { std::swap(s.plan.pending[0], s.plan.pending[1]); },
       {{-1, "pending workload v: is not listed in order of name"}}},
      {"Complete",
       Waiting(),
       [](PlanScene& s) { s.plan.pending.push_back(MakePending("x", false)); },
       {{-1, "pending workload x: is complete"}}},
      {"Unknown",
       Waiting(),
       [](PlanScene& s) { s.plan.pending.push_back(MakePending("y", false)); },
       {{-1, "pending workload y: there is no such workload"}}},
      {"BelowMinimum",
       Waiting(),
       [](PlanScene& s) { s.plan.pending[0].below_minimum = false; },
       {{-1, "pending workload v: is below its minimum"}}},
      {"NotBelowMinimum",
       Waiting(),
       [](PlanScene& s) { s.plan.pending[1].below_minimum = true; },
       {{-1, "pending workload w: is not below its minimum"}}},
      {"NoText",
       Waiting(),
       [](PlanScene& s) { s.plan.pending[0].text.clear(); },
       {{-1, "pending workload v: has no text"}}},
      {"NoCounts",
       Waiting(),
       [](PlanScene& s) { s.plan.pending[1].counts.clear(); },
       {{-1, "pending workload w: has no counts"}}},
      {"FailedPodIsNotToCome",
       Waiting(),
       [](PlanScene& s) { s.workload(1).pods.push_back(MakeEndedPod("s", 0, PodPhase::kFailed)); },
       {{-1, "pending workload w: is complete"}}},
      {"FailedPodsBelowMinimum",
       Waiting(),
       [](PlanScene& s) {
         s.workload(2).pods = {MakeEndedPod("s", 0, PodPhase::kFailed),
                               MakeEndedPod("s", 1, PodPhase::kFailed)};
       },
       {{-1, "pending workload x: is not listed"}}},
      {"SucceededPodsAreComplete",
       Waiting(),
       [](PlanScene& s) {
         s.workload(0).pods = {MakeEndedPod("s", 0, PodPhase::kSucceeded),
                               MakeEndedPod("s", 1, PodPhase::kSucceeded)};
       },
       {{-1, "pending workload v: is complete"}}},
      {"ReleasingPodIsToCome",
       Waiting(),
       [](PlanScene& s) { s.workload(2).pods[0].phase = PodPhase::kReleasing; },
       {{-1, "pending workload x: is not listed"}}},
      {"NominatedPodIsUp",
       Waiting(),
       [](PlanScene& s) {
         s.workload(1).pods.push_back(MakePod("s", 0, "n1", {}, PodPhase::kNominated));
       },
       {{-1, "pending workload w: is complete"}}},
  };
  return cases;
}

class PendingRuleTest : public PlanRuleTest {};
TEST_P(PendingRuleTest, Holds) { Judge(); }
INSTANTIATE_TEST_SUITE_P(Rules, PendingRuleTest, ::testing::ValuesIn(PendingCases()), NameOfCase);

}  // namespace
}  // namespace tessera
