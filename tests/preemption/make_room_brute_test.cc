// Everything that small clusters allow is tried: some evicted, some moved, by whatever right. A
// plan by all steps together costs what the best by a single step costs. Where no single step
// suffices a plan is legal, and that there is none is said only where there is none.

#include <gtest/gtest.h>

#include "tests/preemption/room_brute.h"

namespace tessera {
namespace {

// Cases in which others have to yield, of those: by all steps together; and in which a plan of
// all steps together is not found, and not said not to be, since it would move some who may be
// evicted (`PlanMakeRoom` decides for each only once how it may yield).
struct Tally {
  int plans = 0;
  int together = 0;
  int undecided = 0;
};

std::optional<int64_t> BestOf(const Snapshot& snapshot, const FairShares& shares,
                              const RoomRules& rules) {
  std::optional<int64_t> best;
  for (const BruteRights& rights :
       {BruteRights{.move = true}, BruteRights{.reclaim = true}, BruteRights{.preempt = true}}) {
    const std::optional<int64_t> cost = RoomBrute(snapshot, shares, rules, rights).Run();
    if (cost && (!best || *cost < *best)) best = cost;
  }
  return best;
}

void Compare(uint32_t seed, Tally& tally) {
  RandomCluster random(seed);
  const Snapshot snapshot = CreateOrDie(Crowd(random, {.nodes = 3, .workloads = 5}).Draw());
  const FairShares shares = DivideFairShares(snapshot);
  const RoomRules rules{.exact_budget = 100000000};
  const WorkloadId w = *snapshot.FindWorkload("claim");
  RoomBrute brute(snapshot, shares, rules, {.reclaim = true, .preempt = true, .move = true});
  if (brute.num_pods() > 4 || !brute.lacks() || brute.FitsAsItIs()) return;
  const RoomPlan plan = PlanMakeRoom(snapshot, shares, w, rules);
  ASSERT_EQ(Objections(snapshot, shares, rules, plan.actions), "") << "seed " << seed;
  const std::optional<int64_t> best = BestOf(snapshot, shares, rules);
  if (best) {
    ASSERT_TRUE(plan.found()) << "seed " << seed << "\n" << TextOf(snapshot, plan);
    ASSERT_EQ(plan.certificate.cost, *best) << "seed " << seed << "\n" << TextOf(snapshot, plan);
    ASSERT_EQ(plan.certificate.minimality, Minimality::kCheapest) << "seed " << seed;
    ++tally.plans;
    return;
  }
  const std::optional<int64_t> together = brute.Run();
  ASSERT_TRUE(together || !plan.found()) << "seed " << seed << "\n" << TextOf(snapshot, plan);
  if (plan.found()) {
    ASSERT_GE(plan.certificate.cost, *together) << "seed " << seed << "\n"
                                                << TextOf(snapshot, plan);
    ++tally.together;
  } else if (together) {
    ASSERT_FALSE(plan.certificate.proven) << "seed " << seed << "\n" << TextOf(snapshot, plan);
    ++tally.undecided;
  }
}

TEST(MakeRoomBruteForce, WeighsAllSteps) {
  Tally tally;
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases && !HasFatalFailure(); ++seed) {
    Compare(static_cast<uint32_t>(seed), tally);
  }
  EXPECT_GT(tally.plans, cases / 50);
  EXPECT_LE(tally.undecided, tally.plans / 50);
  RecordProperty("plans", tally.plans);
  RecordProperty("together", tally.together);
  RecordProperty("undecided", tally.undecided);
}

}  // namespace
}  // namespace tessera
