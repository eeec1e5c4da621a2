#include "tessera/replicas/engine_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/random_cases.h"

namespace tessera {
namespace {

// --- Dynamo's arithmetic, for contrast ----------------------------------------

// Until early 2026: rounded half to even, which can exceed the ceiling.
ReplicaCounts Classic(const EngineClaims& c, int64_t ceiling) {
  const double total = static_cast<double>(GpusOf(c.gpus, c.wanted));
  const double scale = static_cast<double>(ceiling) / total;
  if (scale >= 1) return c.wanted;
  const auto p =
      static_cast<int64_t>(std::nearbyint(static_cast<double>(c.wanted.prefill) * scale));
  const int64_t prefill = std::max(c.least.prefill, p);
  const double left = static_cast<double>(ceiling - prefill * c.gpus.prefill);
  const auto d = static_cast<int64_t>(std::nearbyint(left / static_cast<double>(c.gpus.decode)));
  return {prefill, std::max(c.least.decode, d)};
}

// Since: rounded down, but decode takes all that prefill leaves.
ReplicaCounts Current(const EngineClaims& c, int64_t ceiling) {
  const int64_t total = GpusOf(c.gpus, c.wanted);
  if (total <= ceiling) return c.wanted;
  if (GpusOf(c.gpus, c.least) > ceiling) return {0, 0};
  const int64_t prefill = std::clamp(c.wanted.prefill * ceiling / total, c.least.prefill,
                                     (ceiling - c.least.decode * c.gpus.decode) / c.gpus.prefill);
  return {prefill, std::max(c.least.decode, (ceiling - prefill * c.gpus.prefill) / c.gpus.decode)};
}

MATCHER_P2(Are, prefill, decode, "") { return arg == ReplicaCounts({prefill, decode}); }

// The worked example of the planner notes: 2 prefill engines of 2 GPUs, 6 decode engines
// of 4, at least one of each.
const EngineClaims kExample{{2, 4}, {1, 1}, {2, 6}};

TEST(FitToCeilingTest, WorkedExample) {
  struct Row {
    int64_t ceiling;
    ReplicaCounts classic, current, ours;
    int64_t classic_gpus, current_gpus, our_gpus;
  };
  const Row rows[] = {
      {28, {2, 6}, {2, 6}, {2, 6}, 28, 28, 28},
      // Ours: prefill 2/2, decode 4/6 serve two thirds. With one prefill engine of two
      // only half is served, whatever decode has. Classic is over the ceiling.
      {23, {2, 5}, {1, 5}, {2, 4}, 24, 22, 20},
      {22, {2, 4}, {1, 5}, {2, 4}, 20, 22, 20},
      // Here current leaves 2 GPUs idle which the second prefill engine would use.
      {20, {1, 4}, {1, 4}, {2, 4}, 18, 18, 20},
      // A sixth, by decode: a second prefill engine would idle.
      {8, {1, 2}, {1, 1}, {1, 1}, 10, 6, 6},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.ceiling);
    EXPECT_EQ(Classic(kExample, row.ceiling), row.classic);
    EXPECT_EQ(GpusOf(kExample.gpus, row.classic), row.classic_gpus);
    EXPECT_EQ(Current(kExample, row.ceiling), row.current);
    EXPECT_EQ(GpusOf(kExample.gpus, row.current), row.current_gpus);
    EXPECT_EQ(FitToCeiling(kExample, row.ceiling), row.ours);
    EXPECT_EQ(GpusOf(kExample.gpus, row.ours), row.our_gpus);
  }
  // The minimums take 6: an answer of its own, neither zero engines nor 6 GPUs out of 5.
  EXPECT_THAT(Classic(kExample, 5), Are(1, 1)) << "6 GPUs";
  EXPECT_THAT(Current(kExample, 5), Are(0, 0)) << "below the minimums";
  EXPECT_EQ(FitToCeiling(kExample, 5), std::nullopt);
}

TEST(FitToCeilingTest, HalfIsRoundedToEvenByClassic) {
  // (22 - 2 * 2) / 4 = 4.5: 4 by half to even, 5 (and 24 GPUs) by half away from zero.
  EXPECT_EQ(std::nearbyint(4.5), 4);
  EXPECT_EQ(std::round(4.5), 5);
}

TEST(FitToCeilingTest, ACeilingRaisesNoCount) {
  const EngineClaims claims{{8, 1}, {1, 1}, {10, 1}};
  EXPECT_THAT(Current(claims, 20), Are(2, 4)) << "dynamo#13064: a shrink that grows decode";
  EXPECT_THAT(*FitToCeiling(claims, 20), Are(2, 1));
}

TEST(FitToCeilingTest, OneRole) {
  const EngineClaims claims{{1, 4}, {0, 1}, {0, 6}};
  EXPECT_THAT(*FitToCeiling(claims, 23), Are(0, 5));
  EXPECT_EQ(FitToCeiling(claims, 3), std::nullopt);
  EXPECT_THAT(*FitToCeiling({{1, 4}, {0, 0}, {0, 0}}, 0), Are(0, 0)) << "an intentional zero";
}

TEST(FitToCeilingTest, LargestAmountsStayExact) {
  const EngineClaims claims{
      {kMaxGpusPerEngine, kMaxGpusPerEngine}, {0, 0}, {kMaxReplicas, kMaxReplicas}};
  const int64_t half = kMaxReplicas / 2;
  EXPECT_THAT(*FitToCeiling(claims, kMaxReplicas * kMaxGpusPerEngine), Are(half, half));
  EXPECT_THAT(*FitToCeiling(claims, kMaxReplicas * kMaxGpusPerEngine - 1), Are(half - 1, half - 1));
}

// --- Against every other choice -------------------------------------------------

class RandomClaims {
 public:
  explicit RandomClaims(uint32_t seed) : engine_(seed) {}
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(engine_() % static_cast<uint32_t>(bound));
  }
  EngineClaims Draw() {
    EngineClaims claims{{1 + Below(8), 1 + Below(8)}, {Below(3), Below(3)}, {}};
    claims.wanted = {claims.least.prefill + Below(8), claims.least.decode + Below(8)};
    return claims;
  }

 private:
  std::mt19937 engine_;
};

// Whether `a` serves a smaller part of what is wanted than `b`.
bool ServesLess(const EngineClaims& c, const ReplicaCounts& a, const ReplicaCounts& b) {
  // The part of a role that wants nothing is 1; parts over a common denominator.
  const int64_t p = std::max<int64_t>(c.wanted.prefill, 1),
                d = std::max<int64_t>(c.wanted.decode, 1);
  const auto part = [&](const ReplicaCounts& x) {
    return std::min((c.wanted.prefill == 0 ? 1 : x.prefill) * d,
                    (c.wanted.decode == 0 ? 1 : x.decode) * p);
  };
  return part(a) < part(b);
}

TEST(FitToCeilingTest, NothingServesMoreAndNothingCheaperServesAsMuch) {
  const int cases = RandomCases(1000, 20000);
  for (int i = 0; i < cases; ++i) {
    RandomClaims random(static_cast<uint32_t>(i));
    const EngineClaims claims = random.Draw();
    const int64_t ceiling = random.Below(120);
    const std::optional<ReplicaCounts> ours = FitToCeiling(claims, ceiling);
    ASSERT_EQ(ours.has_value(), GpusOf(claims.gpus, claims.least) <= ceiling);
    if (!ours) continue;
    ASSERT_LE(GpusOf(claims.gpus, *ours), ceiling);
    ReplicaCounts other;
    for (other.prefill = claims.least.prefill; other.prefill <= claims.wanted.prefill;
         ++other.prefill) {
      for (other.decode = claims.least.decode; other.decode <= claims.wanted.decode;
           ++other.decode) {
        if (GpusOf(claims.gpus, other) > ceiling) continue;
        ASSERT_FALSE(ServesLess(claims, *ours, other)) << "seed " << i;
        if (GpusOf(claims.gpus, other) < GpusOf(claims.gpus, *ours)) {
          ASSERT_TRUE(ServesLess(claims, other, *ours)) << "seed " << i;
        }
      }
    }
  }
}

TEST(FitToCeilingTest, AHigherCeilingLowersNoCountAndNextLargerFindsEachStep) {
  const int cases = RandomCases(1000, 20000);
  for (int i = 0; i < cases; ++i) {
    RandomClaims random(static_cast<uint32_t>(i));
    const EngineClaims claims = random.Draw();
    ReplicaCounts before = claims.least;
    // With minimums the first grant may already be a few steps of `NextLarger` ahead.
    for (int64_t ceiling = GpusOf(claims.gpus, claims.least); ceiling <= 200; ++ceiling) {
      const ReplicaCounts now = *FitToCeiling(claims, ceiling);
      ASSERT_GE(now.prefill, before.prefill);
      ASSERT_GE(now.decode, before.decode);
      while (before != now) {
        const std::optional<ReplicaCounts> next = NextLarger(claims, before);
        ASSERT_TRUE(next) << "seed " << i;
        before = *next;
      }
      const std::optional<ReplicaCounts> next = NextLarger(claims, now);
      ASSERT_TRUE(!next || GpusOf(claims.gpus, *next) > ceiling) << "seed " << i;
    }
    ASSERT_EQ(before, claims.wanted);
  }
}

// --- The floor --------------------------------------------------------------------

TEST(RaiseToFloorTest, KeepsWhatRunsThenGrowsEvenly) {
  const EngineClaims claims{{2, 4}, {2, 6}, {20, 20}};
  EXPECT_THAT(RaiseToFloor(claims, 28, 28, {2, 5}), Are(2, 6)) << "the engine that runs stays";
  EXPECT_THAT(RaiseToFloor(claims, 24, 28, {2, 5}), Are(2, 5)) << "24 GPUs already";
  EXPECT_THAT(RaiseToFloor(claims, 56, 60, {2, 6}), Are(4, 12)) << "both twice";
}

TEST(RaiseToFloorTest, FillsTheGapWithSingleEngines) {
  // Together (2, 6) would next be (3, 7), 34 GPUs.
  EXPECT_THAT(RaiseToFloor({{2, 4}, {2, 6}, {20, 20}}, 31, 32, {2, 6}), Are(2, 7));
  EXPECT_THAT(RaiseToFloor({{2, 4}, {2, 6}, {20, 20}}, 30, 30, {2, 6}), Are(3, 6))
      << "4 do not fit, 2 do";
  EXPECT_THAT(RaiseToFloor({{4, 4}, {1, 1}, {9, 9}}, 12, 12, {1, 1}), Are(2, 1)) << "tie: prefill";
}

TEST(RaiseToFloorTest, TheCeilingOutranksTheFloor) {
  EXPECT_THAT(RaiseToFloor({{2, 4}, {2, 6}, {20, 20}}, 29, 29, {2, 6}), Are(2, 6))
      << "28 GPUs are the most below 29";
  EXPECT_THAT(RaiseToFloor({{2, 4}, {1, 1}, {1, 3}}, 50, 100, {1, 1}), Are(1, 3))
      << "no more than allowed";
  EXPECT_THAT(RaiseToFloor({{2, 4}, {0, 0}, {0, 0}}, 50, 100, {0, 0}), Are(0, 0));
}

TEST(RaiseToFloorTest, RandomFloorsKeepTheCeilingAndNeverLower) {
  const int cases = RandomCases(1000, 20000);
  for (int i = 0; i < cases; ++i) {
    RandomClaims random(static_cast<uint32_t>(i));
    const EngineClaims claims = random.Draw();
    const int64_t ceiling = random.Below(120), floor = random.Below(120);
    const std::optional<ReplicaCounts> fit = FitToCeiling(claims, ceiling);
    if (!fit) continue;
    const ReplicaCounts raised = RaiseToFloor(claims, floor, ceiling, *fit);
    ASSERT_LE(GpusOf(claims.gpus, raised), ceiling) << "seed " << i;
    ASSERT_GE(raised.prefill, fit->prefill);
    ASSERT_GE(raised.decode, fit->decode);
    ASSERT_LE(raised.prefill, claims.wanted.prefill);
    ASSERT_LE(raised.decode, claims.wanted.decode);
    if (floor <= GpusOf(claims.gpus, *fit)) {
      ASSERT_EQ(raised, *fit);
    }
  }
}

// --- The way there ----------------------------------------------------------------

TEST(PlanTransitionTest, ShrinksBeforeItGrows) {
  // dynamo#12428: at a cap of 28, prefill up by 4 and decode down by 2.
  const Transition t = PlanTransition({2, 4}, {2, 6}, {6, 4});
  EXPECT_THAT(t.steps, testing::ElementsAre(ScalingStep{EngineRole::kDecode, 6, 4, 20},
                                            ScalingStep{EngineRole::kPrefill, 2, 6, 28}));
  EXPECT_EQ(t.peak_gpus, 28);
  EXPECT_THAT(PlanTransition({2, 4}, {2, 6}, {2, 6}).steps, testing::IsEmpty());
}

TEST(PlanTransitionTest, EveryPrefixIsWithinTheLargerEnd) {
  for (int i = 0; i < RandomCases(1000, 20000); ++i) {
    RandomClaims random(static_cast<uint32_t>(i));
    const EngineGpus gpus = random.Draw().gpus;
    ReplicaCounts now{random.Below(9), random.Below(9)};
    const ReplicaCounts target{random.Below(9), random.Below(9)};
    const int64_t bound = std::max(GpusOf(gpus, now), GpusOf(gpus, target));
    const Transition t = PlanTransition(gpus, now, target);
    for (const ScalingStep& step : t.steps) {
      ASSERT_EQ(OfRole(now, step.role), step.from);
      OfRole(now, step.role) = step.to;
      ASSERT_EQ(GpusOf(gpus, now), step.gpus_after);
      ASSERT_LE(step.gpus_after, bound);
    }
    ASSERT_EQ(now, target);
    ASSERT_EQ(t.peak_gpus, bound);
  }
}

}  // namespace
}  // namespace tessera
