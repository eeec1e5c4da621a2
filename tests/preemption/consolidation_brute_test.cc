// Every set of moves of small clusters is tried, with every place for all that moves and every
// order of the moves: a plan is found exactly when there is one, and none costs less.

#include <gtest/gtest.h>

#include "tests/preemption/room_brute.h"

namespace tessera {
namespace {

// Cases in which somebody has to move, of those: more than one; and MIG operations.
struct Tally {
  int plans = 0;
  int of_several = 0;
  int carved = 0;
};

void Compare(uint32_t seed, Tally& tally) {
  RandomCluster random(seed);
  const Snapshot snapshot = CreateOrDie(Crowd(random, {.nodes = 4, .workloads = 6}).Draw());
  const FairShares shares = DivideFairShares(snapshot);
  const RoomRules rules{.exact_budget = 100000000};
  const WorkloadId w = *snapshot.FindWorkload("claim");
  RoomBrute brute(snapshot, shares, rules, {.move = true});
  if (brute.num_pods() > 5 || !brute.lacks() || brute.FitsAsItIs()) return;
  const RoomPlan plan = PlanConsolidation(snapshot, shares, w, rules);
  const std::optional<int64_t> best = brute.Run();
  ASSERT_EQ(plan.found(), best.has_value()) << "seed " << seed << "\n" << TextOf(snapshot, plan);
  if (!best) {
    ASSERT_TRUE(plan.certificate.proven) << "seed " << seed << "\n" << TextOf(snapshot, plan);
    return;
  }
  tally.plans += 1;
  tally.of_several += plan.moved.size() > 1 ? 1 : 0;
  tally.carved += plan.certificate.mig_operations > 0 ? 1 : 0;
  ASSERT_EQ(Objections(snapshot, shares, rules, plan.actions), "") << "seed " << seed;
  ASSERT_EQ(plan.certificate.minimality, Minimality::kCheapest) << "seed " << seed;
  ASSERT_EQ(plan.certificate.cost, *best) << "seed " << seed << "\n" << TextOf(snapshot, plan);
}

TEST(ConsolidationBruteForce, FindsTheCheapestMovesExactlyWhenThereAreAny) {
  Tally tally;
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases && !HasFatalFailure(); ++seed) {
    Compare(static_cast<uint32_t>(seed), tally);
  }
  EXPECT_GT(tally.plans, cases / 500);
  RecordProperty("plans", tally.plans);
  RecordProperty("of_several", tally.of_several);
  RecordProperty("carved", tally.carved);
}

}  // namespace
}  // namespace tessera
