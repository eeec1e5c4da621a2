#include "tessera/share/usage_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/share/fair_shares.h"
#include "tests/support/random_cluster.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

ResourceVector OnlyGpus(int64_t devices) {
  ResourceVector v;
  v[kGpu] = Gpus(devices);
  return v;
}

UsageHistory MakeHistory(UsageWindowKind kind, int64_t seconds, int queues, int64_t capacity,
                         int64_t start = 0) {
  UsageHistory history = *UsageHistory::Create({kind, seconds}, queues);
  EXPECT_THAT(history.SetCapacity(OnlyGpus(capacity), start), IsOk());
  return history;
}

double GpuPart(const UsageHistory& history, int64_t now) {
  return static_cast<double>(history.PastUse(QueueId(0), now)[kGpu]) / kUsageOne;
}

TEST(UsageHistoryTest, ATumblingWindowForgetsAtItsTurn) {
  // 4 GPUs; 2 held from 50 to 150; periods of 100 seconds.
  UsageHistory history = MakeHistory(UsageWindowKind::kTumbling, 100, 1, 4);
  ASSERT_THAT(history.SetAllocated(QueueId(0), OnlyGpus(2), 50), IsOk());
  EXPECT_EQ(GpuPart(history, 75), 0.166666666);
  EXPECT_EQ(GpuPart(history, 100), 0);
  ASSERT_THAT(history.SetAllocated(QueueId(0), OnlyGpus(0), 150), IsOk());
  EXPECT_EQ(GpuPart(history, 150), 0.5);
  EXPECT_EQ(GpuPart(history, 199), 0.252525252);
  EXPECT_EQ(GpuPart(history, 200), 0);
}

TEST(UsageHistoryTest, ASlidingWindowHoldsTheLastSeconds) {
  UsageHistory history = MakeHistory(UsageWindowKind::kSliding, 100, 1, 4);
  ASSERT_THAT(history.SetAllocated(QueueId(0), OnlyGpus(2), 50), IsOk());
  ASSERT_THAT(history.SetAllocated(QueueId(0), OnlyGpus(0), 150), IsOk());
  EXPECT_EQ(GpuPart(history, 150), 0.5);
  EXPECT_EQ(GpuPart(history, 200), 0.25);
  EXPECT_EQ(GpuPart(history, 240), 0.05);
  EXPECT_EQ(GpuPart(history, 250), 0);
  EXPECT_EQ(GpuPart(history, 1000000), 0);
}

TEST(UsageHistoryTest, AHalfLifeHalvesWhatIsPast) {
  // Full use for one half-life, nothing for the next: the first weighs half of the
  // second, so a third of the two.
  UsageHistory history = MakeHistory(UsageWindowKind::kHalfLife, 1000, 1, 4);
  ASSERT_THAT(history.SetAllocated(QueueId(0), OnlyGpus(4), 0), IsOk());
  ASSERT_THAT(history.SetAllocated(QueueId(0), OnlyGpus(0), 1000), IsOk());
  EXPECT_NEAR(GpuPart(history, 1000), 1, 1e-9);
  EXPECT_NEAR(GpuPart(history, 2000), 1.0 / 3, 1e-9);
  EXPECT_NEAR(GpuPart(history, 3000), 1.0 / 7, 1e-9);
  EXPECT_NEAR(GpuPart(history, 1000000), 0, 1e-9);
}

TEST(UsageHistoryTest, FollowsTheExponentialWithinAStep) {
  // Held for the last 300 of 1,000,000 seconds: 1 - 2^(-300 / 1000) of all weight.
  UsageHistory history = MakeHistory(UsageWindowKind::kHalfLife, 1000, 1, 1);
  ASSERT_THAT(history.SetAllocated(QueueId(0), OnlyGpus(1), 999700), IsOk());
  EXPECT_NEAR(GpuPart(history, 1000000), 1 - std::exp2(-0.3), 0.002);
}

// The same history, recorded in many more calls, and read in between.
TEST(UsageHistoryTest, DoesNotDependOnHowOftenItIsCalled) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const auto kind = static_cast<UsageWindowKind>(random.Below(3));
    const int64_t seconds = 1 + random.Below(random.Chance(50) ? 300 : 1000000);
    const int64_t start = random.Below(2000000) - 1000000;
    UsageHistory rare = MakeHistory(kind, seconds, 1, 5, start);
    UsageHistory often = MakeHistory(kind, seconds, 1, 5, start);
    int64_t now = start;
    for (int event = 0; event < 8; ++event) {
      const ResourceVector held = OnlyGpus(random.Below(6));
      ASSERT_THAT(rare.SetAllocated(QueueId(0), held, now), IsOk());
      const int64_t next = now + random.Below(static_cast<int>(3 * seconds));
      for (int64_t at : {now, now + (next - now) / 3, now + (next - now) / 2, next}) {
        ASSERT_THAT(often.SetAllocated(QueueId(0), held, at), IsOk());
        ASSERT_THAT(often.SetCapacity(OnlyGpus(5), at), IsOk());
        often.PastUse(QueueId(0), at);
      }
      now = next;
      ASSERT_EQ(rare.PastUse(QueueId(0), now), often.PastUse(QueueId(0), now)) << "seed " << seed;
    }
  }
}

TEST(UsageHistoryTest, ErrorsChangeNothing) {
  EXPECT_THAT(UsageHistory::Create({UsageWindowKind::kSliding, 0}, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a window of 0 seconds is not in 1..1073741824"));
  EXPECT_THAT(UsageHistory::Create({}, -1),
              StatusIs(absl::StatusCode::kInvalidArgument, "there are -1 queues"));
  UsageHistory history = MakeHistory(UsageWindowKind::kHalfLife, 100, 1, 4);
  ASSERT_THAT(history.SetAllocated(QueueId(0), OnlyGpus(2), 50), IsOk());
  EXPECT_THAT(history.SetAllocated(QueueId(1), OnlyGpus(2), 60),
              StatusIs(absl::StatusCode::kNotFound, "there is no queue 1 among 1"));
  EXPECT_THAT(history.SetAllocated(QueueId(0), OnlyGpus(-1), 60),
              StatusIs(absl::StatusCode::kInvalidArgument, "an amount of -7000 is not in 0..2^61"));
  EXPECT_THAT(history.SetAllocated(QueueId(0), OnlyGpus(4), 40),
              StatusIs(absl::StatusCode::kOutOfRange, "time 40 is before the last change, at 50"));
  EXPECT_THAT(history.SetCapacity(OnlyGpus(4), int64_t{1} << 41),
              StatusIs(absl::StatusCode::kOutOfRange,
                       "time 2199023255552 is not within 2^40 seconds of 0"));
  UsageHistory same = MakeHistory(UsageWindowKind::kHalfLife, 100, 1, 4);
  ASSERT_THAT(same.SetAllocated(QueueId(0), OnlyGpus(2), 50), IsOk());
  EXPECT_EQ(history.PastUse(70), same.PastUse(70));
}

// --- Thirty days ----------------------------------------------------------------

// Parts of GPU time of queues that always want everything, GPUs handed out anew every
// ten minutes by shares in whole devices, over the last 29 of 30 days.
std::vector<double> PartsOfTime(const std::vector<int64_t>& weights, int64_t gpus,
                                UsageWindow window, int64_t strength) {
  constexpr int64_t kPeriod = 600, kDay = 24 * 3600;
  std::vector<Queue> queues;
  for (size_t i = 0; i < weights.size(); ++i) {
    queues.push_back(MakeQueue(absl::StrCat("q", i)));
    queues.back().weight.all = weights[i] * kWeightOne;
  }
  const ResourceSpace space;
  const QueueTree tree = *QueueTree::Create(queues, space);
  std::vector<QueueUsage> usage(queues.size());
  for (QueueUsage& queue : usage) queue.demand = OnlyGpus(gpus);
  const DivisionOptions options{.whole_gpus = true, .usage_strength = strength};
  UsageHistory history =
      MakeHistory(window.kind, window.seconds, static_cast<int>(queues.size()), gpus);
  std::vector<double> parts(queues.size());
  for (int64_t now = 0; now < 30 * kDay; now += kPeriod) {
    const FairShares shares =
        DivideFairShares(tree, space, OnlyGpus(gpus), usage, DominantResourceDivision(), options,
                         history.PastUse(now));
    for (size_t i = 0; i < parts.size(); ++i) {
      const QueueId q(static_cast<int32_t>(i));
      const int64_t held = shares.of(q).fair_share[kGpu];
      EXPECT_EQ(held % kGpuUnitsPerDevice, 0);
      EXPECT_THAT(history.SetAllocated(q, shares.of(q).fair_share, now), IsOk());
      if (now < kDay) continue;
      parts[i] += static_cast<double>(held * kPeriod) / static_cast<double>(Gpus(gpus) * 29 * kDay);
    }
  }
  return parts;
}

constexpr UsageWindow kWindows[] = {{UsageWindowKind::kHalfLife, 24 * 3600},
                                    {UsageWindowKind::kHalfLife, 7 * 24 * 3600},
                                    {UsageWindowKind::kSliding, 24 * 3600},
                                    {UsageWindowKind::kTumbling, 24 * 3600}};

TEST(ThirtyDaysTest, TwoQueuesShareOneGpuEqually) {
  for (const UsageWindow& window : kWindows) {
    const std::vector<double> parts = PartsOfTime({1, 1}, 1, window, 1000);
    EXPECT_NEAR(parts[0], 0.5, 0.01);
    EXPECT_NEAR(parts[1], 0.5, 0.01);
  }
}

TEST(ThirtyDaysTest, ThreeQueuesShareEightGpusByWeight) {
  for (const UsageWindow& window : kWindows) {
    const std::vector<double> parts = PartsOfTime({3, 2, 1}, 8, window, 10000);
    EXPECT_NEAR(parts[0], 3 / 6.0, 0.01);
    EXPECT_NEAR(parts[1], 2 / 6.0, 0.01);
    EXPECT_NEAR(parts[2], 1 / 6.0, 0.01);
  }
}

TEST(ThirtyDaysTest, WithoutStrengthOnlyTiesAreRotated) {
  using testing::DoubleNear;
  using testing::ElementsAre;
  EXPECT_THAT(PartsOfTime({1, 1}, 1, kWindows[0], 0),
              ElementsAre(DoubleNear(0.5, 0.01), DoubleNear(0.5, 0.01)));
  // 4, 2 2/3 and 1 1/3 of 8: the largest remainder is always the second's.
  EXPECT_THAT(
      PartsOfTime({3, 2, 1}, 8, kWindows[0], 0),
      ElementsAre(DoubleNear(4 / 8.0, 1e-9), DoubleNear(3 / 8.0, 1e-9), DoubleNear(1 / 8.0, 1e-9)));
}

}  // namespace
}  // namespace tessera
