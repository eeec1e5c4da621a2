// Every set of victims of small clusters is tried: a legal plan is found exactly when there is
// one, and none costs less.

#include "tests/preemption/room_brute.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

// Cases in which somebody has to yield, of those: the claimant needs one of two parts; and is
// carved for.
struct Tally {
  int plans = 0;
  int with_choice = 0;
  int carved = 0;
};

void Compare(bool reclaim, uint32_t seed, Tally& tally) {
  RandomCluster random(seed);
  const Snapshot snapshot = CreateOrDie(Crowd(random, {}).Draw());
  const FairShares shares = DivideFairShares(snapshot);
  const RoomRules rules{.exact_budget = 100000000};
  const WorkloadId w = *snapshot.FindWorkload("claim");
  RoomBrute brute(snapshot, shares, rules, {.reclaim = reclaim, .preempt = !reclaim});
  if (brute.num_pods() > 9 || !brute.lacks() || brute.FitsAsItIs()) return;
  const RoomPlan plan = reclaim ? PlanReclaim(snapshot, shares, w, rules)
                                : PlanPreemption(snapshot, shares, w, rules);
  const std::optional<int64_t> best = brute.Run();
  ASSERT_EQ(plan.found(), best.has_value()) << "seed " << seed << "\n" << TextOf(snapshot, plan);
  if (!best) {
    ASSERT_TRUE(plan.certificate.proven) << "seed " << seed << "\n" << TextOf(snapshot, plan);
    return;
  }
  tally.plans += plan.evicted.empty() ? 0 : 1;
  tally.with_choice += !plan.evicted.empty() && snapshot.workload(w).gang.min_groups ? 1 : 0;
  tally.carved += plan.certificate.mig_operations > 0 ? 1 : 0;
  ASSERT_EQ(Objections(snapshot, shares, rules, plan.actions), "") << "seed " << seed << "\n"
                                                                   << TextOf(snapshot, plan);
  ASSERT_EQ(plan.certificate.minimality, Minimality::kCheapest) << "seed " << seed;
  ASSERT_EQ(plan.certificate.cost, *best) << "seed " << seed << "\n" << TextOf(snapshot, plan);
}

void CompareAll(bool reclaim) {
  Tally tally;
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases && !testing::Test::HasFatalFailure(); ++seed) {
    Compare(reclaim, static_cast<uint32_t>(seed), tally);
  }
  EXPECT_GT(tally.plans, cases / 50);
  testing::Test::RecordProperty("plans", tally.plans);
  testing::Test::RecordProperty("with_choice", tally.with_choice);
  testing::Test::RecordProperty("carved", tally.carved);
}

TEST(RoomBruteForce, ReclaimFindsTheCheapestLegalVictimsExactlyWhenThereAreAny) {
  CompareAll(/*reclaim=*/true);
}

TEST(RoomBruteForce, PreemptionFindsTheCheapestLegalVictimsExactlyWhenThereAreAny) {
  CompareAll(/*reclaim=*/false);
}

}  // namespace
}  // namespace tessera
