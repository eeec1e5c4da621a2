// What must hold of every plan on clusters too large to try everything.

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <memory>

#include "tessera/io/plan_json.h"
#include "tessera/io/snapshot_json.h"
#include "tessera/schedule/schedule.h"
#include "tests/preemption/room_support.h"

namespace tessera {
namespace {

using PlanFunction = RoomPlan (*)(const Snapshot&, const FairShares&, WorkloadId, const RoomRules&);

std::string Describe(uint32_t seed, const Snapshot& snapshot, const RoomPlan& plan) {
  return absl::StrCat("seed ", seed, "\n", ToText(plan.certificate), "\n",
                      WritePlan({plan.actions, {}}), WriteSnapshot(snapshot));
}

// The workload that an eviction is of; empty for other actions.
std::string VictimOf(const Action& action) {
  const auto* evict = std::get_if<EvictAction>(&action);
  return evict == nullptr ? "" : evict->pod.workload;
}

// Lets each victim stay as a whole, and each evicted pod alone: then the referees object.
void ExpectThatNobodyCanStay(uint32_t seed, const Snapshot& snapshot, const FairShares& shares,
                             const RoomRules& rules, const RoomPlan& plan) {
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    const std::string victim = VictimOf(plan.actions[i]);
    const bool moves = std::holds_alternative<MoveAction>(plan.actions[i]);
    if (victim.empty() && !moves) continue;
    std::vector<Action> without_gang = plan.actions, without_pod = plan.actions;
    without_pod.erase(without_pod.begin() + static_cast<std::ptrdiff_t>(i));
    if (moves) {
      ASSERT_NE(Objections(snapshot, shares, rules, without_pod), "")
          << "action " << i << " moves for nothing\n"
          << Describe(seed, snapshot, plan);
      continue;
    }
    std::erase_if(without_gang, [&](const Action& a) { return VictimOf(a) == victim; });
    ASSERT_NE(Objections(snapshot, shares, rules, without_gang), "")
        << victim << " could stay\n"
        << Describe(seed, snapshot, plan);
    ASSERT_NE(Objections(snapshot, shares, rules, without_pod), "")
        << "a pod of " << victim << " could stay\n"
        << Describe(seed, snapshot, plan);
  }
}

// The referees accept the plan, nobody in it could stay, and the order of the input means
// nothing. Tells whether anybody yields.
bool Examine(uint32_t seed, PlanFunction make, const RoomRules& rules, CrowdOptions options) {
  RandomCluster random(seed);
  const SnapshotSpec spec = Crowd(random, options).Draw();
  const Snapshot snapshot = CreateOrDie(spec);
  const UsagePolicy usage{.mig_charge = rules.victims.mig_charge};
  const FairShares shares = DivideFairShares(snapshot, usage);
  const WorkloadId w = *snapshot.FindWorkload("claim");
  const RoomPlan plan = make(snapshot, shares, w, rules);
  EXPECT_EQ(Objections(snapshot, shares, rules, plan.actions), "")
      << Describe(seed, snapshot, plan);
  ExpectThatNobodyCanStay(seed, snapshot, shares, rules, plan);
  const Snapshot shuffled = CreateOrDie(random.Shuffled(spec));
  EXPECT_EQ(make(shuffled, DivideFairShares(shuffled, usage), w, rules), plan) << "seed " << seed;
  EXPECT_EQ(plan.found(), plan.certificate.refusal.empty()) << Describe(seed, snapshot, plan);
  return !plan.evicted.empty() || !plan.moved.empty();
}

void ExamineAll(PlanFunction make, const RoomRules& rules) {
  const int cases = RandomCases(1000, 20000);
  int yielding = 0;
  for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
    const CrowdOptions options{.nodes = seed % 2 == 0 ? 16 : 5, .workloads = 40, .slices = true};
    yielding += Examine(static_cast<uint32_t>(seed), make, rules, options) ? 1 : 0;
  }
  EXPECT_GT(yielding, cases / 250);
}

// Greedy plans alone.
RoomRules Greedy() { return {.exact_candidates = 0}; }

TEST(RoomProperties, ReclaimPlans) { ExamineAll(PlanReclaim, Greedy()); }

TEST(RoomProperties, PreemptionPlans) { ExamineAll(PlanPreemption, Greedy()); }

TEST(RoomProperties, ConsolidationPlans) { ExamineAll(PlanConsolidation, Greedy()); }

TEST(RoomProperties, MakeRoomPlansWithTheSearchForTheCheapest) {
  ExamineAll(PlanMakeRoom, {.exact_budget = 3000});
}

TEST(RoomProperties, VictimsThatFindANewPlaceAreMoved) {
  RoomRules rules = Greedy();
  rules.victims.replace_victims = true;
  ExamineAll(PlanMakeRoom, rules);
}

TEST(RoomProperties, ByTheRulesOfKai) {
  RoomRules rules = RoomRulesOf(KaiCompatible().rules);
  rules.exact_budget = 3000;
  rules.honour_nominations = true;
  ExamineAll(PlanReclaim, rules);
}

TEST(RoomProperties, PlannersLeaveTheDeskAsItWas) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    RandomCluster random(seed);
    const Snapshot snapshot = CreateOrDie(Crowd(random, {.nodes = 8, .workloads = 20}).Draw());
    const FairShares shares = DivideFairShares(snapshot);
    const auto tables = std::make_shared<const StateTables>(snapshot);
    ClusterState now(tables, {}), later(tables, {.nominated = true, .releasing = false});
    QuotaLedger ledger(snapshot.queues(), MeasureUsage(snapshot, {}), shares.capacity);
    const ClusterState now_before = now, later_before = later;
    PlanMakeRoom(RoomDesk{&now, &later, &ledger, &shares}, *snapshot.FindWorkload("claim"));
    ASSERT_TRUE(now == now_before && later == later_before) << "seed " << seed;
    ASSERT_EQ(ledger.GetMark(), 0u) << "seed " << seed;
    for (int q = 0; q < snapshot.queues().size(); ++q) {
      ASSERT_EQ(ledger.allocated(QueueId(q)), shares.of(QueueId(q)).allocated) << "seed " << seed;
    }
  }
}

// By queue: the lowest priority of preemptible work that runs.
std::vector<int> LowestOf(const Snapshot& snapshot) {
  std::vector<int> lowest(static_cast<size_t>(snapshot.queues().size()), INT_MAX);
  for (int i = 0; i < snapshot.num_workloads(); ++i) {
    const Workload& workload = snapshot.workload(WorkloadId(i));
    if (!workload.is_preemptible() || workload.pods.empty()) continue;
    int& priority = lowest[static_cast<size_t>(snapshot.info(WorkloadId(i)).queue.value())];
    priority = std::min(priority, workload.priority);
  }
  return lowest;
}

TEST(RoomProperties, WhereNoRoomMightBeMadeNoneIs) {
  const VictimWeights weights;
  const auto cost = [&weights](const Victim& victim) { return weights.Cost(victim); };
  int might = 0, might_not = 0;
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const Snapshot snapshot = CreateOrDie(Crowd(random, {.nodes = 5, .workloads = 25}).Draw());
    const FairShares shares = DivideFairShares(snapshot);
    ClusterState later(std::make_shared<const StateTables>(snapshot),
                       {.nominated = true, .releasing = false});
    QuotaLedger ledger(snapshot.queues(), MeasureUsage(snapshot, {}), shares.capacity);
    const WorkloadId w = *snapshot.FindWorkload("claim");
    RoomDesk desk{nullptr, &later, &ledger, &shares};
    const RoomPlan plan = PlanYielding(desk, w, Greedy(), cost);
    const std::vector<int> lowest = LowestOf(snapshot);
    desk.lowest = lowest;
    const bool may = MightMakeRoom(desk, w, Greedy());
    ++(may ? might : might_not);
    const bool yields = !plan.evicted.empty() || !plan.moved.empty();
    ASSERT_TRUE(may || !yields) << Describe(static_cast<uint32_t>(seed), snapshot, plan);
  }
  EXPECT_GT(might, cases / 10);
  EXPECT_GT(might_not, cases / 50);
}

}  // namespace
}  // namespace tessera
