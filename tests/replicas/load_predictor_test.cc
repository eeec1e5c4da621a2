#include "tessera/replicas/load_predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/replicas/random_service.h"
#include "tests/support/random_cases.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

static_assert(LoadPredictor<ConstantPredictor>);
static_assert(LoadPredictor<TrendPredictor>);
static_assert(LoadPredictor<SeasonalPredictor>);

TEST(ConstantPredictorTest, GoesOnAsItWas) {
  ConstantPredictor predictor;
  EXPECT_EQ(predictor.Forecast(1), 0);
  predictor.Observe(7);
  predictor.Observe(kNaN);
  predictor.Observe(-3);
  EXPECT_EQ(predictor.Forecast(1), 7);
  EXPECT_EQ(predictor.Forecast(100), 7);
}

// Dynamo's Kalman filter with its defaults; a forecast after each sample.
TEST(TrendPredictorTest, SequenceOfTheWorkedExample) {
  TrendPredictor predictor;
  const double samples[] = {10, 20, 30, 30};
  const double forecasts[] = {10.0, 24.92292, 39.70801, 36.66025};
  for (int i = 0; i < 4; ++i) {
    predictor.Observe(samples[i]);
    EXPECT_NEAR(predictor.Forecast(1), forecasts[i], 5e-6);
    EXPECT_EQ(predictor.Forecast(1), predictor.Forecast(1));
    EXPECT_EQ(predictor.Forecast(-5), predictor.Forecast(1));
  }
}

// Dynamo's filter has no floor: after 100, 50, 10 it expects less than nothing.
TEST(TrendPredictorTest, IsNeverNegative) {
  TrendPredictor predictor;
  for (const double load : {100.0, 50.0, 10.0}) predictor.Observe(load);
  EXPECT_EQ(predictor.Forecast(1), 0);
  EXPECT_EQ(predictor.Forecast(10), 0);
}

TEST(TrendPredictorTest, FollowsALineThroughGaps) {
  TrendPredictor predictor;
  for (int i = 1; i <= 209; ++i) predictor.Observe(i % 10 == 0 ? kNaN : 50 + 2 * i);
  EXPECT_NEAR(predictor.Forecast(1), 50 + 2 * 210, 1);
  EXPECT_NEAR(predictor.Forecast(5), 50 + 2 * 214, 2);
}

TEST(TrendPredictorTest, DoesNotExtrapolateAnOutage) {
  TrendPredictor predictor;
  for (int i = 0; i < 50; ++i) predictor.Observe(100 + 10 * i);
  const double before = predictor.Forecast(1);
  for (int i = 0; i < 1000; ++i) predictor.Observe(kNaN);
  // The trend was 10: 10 x (1 + 1/2 + 1/4 + ...) more than at the end.
  EXPECT_NEAR(predictor.Forecast(1), before + 10, 1);
}

TEST(TrendPredictorTest, ALoadThatBeginsDidNotGrowFromZero) {
  TrendPredictor predictor;
  for (const double load : {0.0, 0.0, kNaN, 500.0}) predictor.Observe(load);
  EXPECT_EQ(predictor.Forecast(1), 500);
}

TEST(TrendPredictorTest, OnlyProportionsOfTheVariancesMatter) {
  TrendPredictor a = *TrendPredictor::Create({}, "p");
  TrendPredictor b = *TrendPredictor::Create({4, 0.4, 40, 4000}, "p");
  for (const double load : {3.0, 9.0, 4.0, 8.0, 8.0}) {
    a.Observe(load);
    b.Observe(load);
    EXPECT_DOUBLE_EQ(a.Forecast(3), b.Forecast(3));
  }
}

TEST(SeasonalPredictorTest, RepeatsAndFollowsTheSeason) {
  // 10, 30, 20, 40 again and again: mean 25.
  SeasonalPredictor predictor = *SeasonalPredictor::Create({.season = 4}, "p");
  const double season[] = {10, 30, 20, 40};
  for (int i = 0; i < 4; ++i) predictor.Observe(season[i]);
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR(predictor.Forecast(1), season[i % 4], 1e-9);
    EXPECT_NEAR(predictor.Forecast(4), season[(i + 3) % 4], 1e-9);
    predictor.Observe(season[i % 4]);
  }
  // Twice the load of the same shape is followed, too.
  for (int i = 0; i < 400; ++i) predictor.Observe(2 * season[i % 4]);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(predictor.Forecast(i + 1), 2 * season[i], 0.5);
}

TEST(SeasonalPredictorTest, FirstSeasonFollowsTheLevel) {
  SeasonalPredictor predictor = *SeasonalPredictor::Create({.season = 10, .level_gain = 0.5}, "p");
  EXPECT_EQ(predictor.Forecast(1), 0);
  predictor.Observe(0);  // not yet the season
  predictor.Observe(100);
  EXPECT_EQ(predictor.Forecast(1), 100);
  predictor.Observe(50);
  EXPECT_EQ(predictor.Forecast(3), 75);
}

TEST(SeasonalPredictorTest, GapsKeepThePhase) {
  // The third of four intervals was never observed: it gets the mean of the others.
  SeasonalPredictor predictor = *SeasonalPredictor::Create({.season = 4}, "p");
  for (const double load : {10.0, 30.0, kNaN, 50.0}) predictor.Observe(load);
  EXPECT_EQ(predictor.Forecast(1), 10);
  EXPECT_EQ(predictor.Forecast(3), 30);
  for (int i = 0; i < 4; ++i) predictor.Observe(kInfinity);
  EXPECT_EQ(predictor.Forecast(1), 10);
  EXPECT_EQ(predictor.Forecast(4), 50);
}

TEST(LoadPredictorTest, ExplainsWhatIsWrong) {
  EXPECT_THAT(TrendPredictor::Create({.trend_noise = 0}, "predictor"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "predictor.trend_noise: 0 is not in 1e-12..1e+12"));
  EXPECT_THAT(TrendPredictor::Create({.observation_noise = kNaN}, "predictor"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "predictor.observation_noise: nan is not in 1e-12..1e+12"));
  EXPECT_THAT(
      SeasonalPredictor::Create({.season = 1}, "predictor"),
      StatusIs(absl::StatusCode::kInvalidArgument, "predictor.season: 1 is not in 2..1048576"));
  EXPECT_THAT(
      SeasonalPredictor::Create({.level_gain = 1.5}, "predictor"),
      StatusIs(absl::StatusCode::kInvalidArgument, "predictor.level_gain: 1.5 is not in 0..1"));
}

// Any double at all, with many of the kinds that break arithmetic.
double AnyObservation(RandomService& random) {
  switch (random.Below(8)) {
    case 0:
      return kNaN;
    case 1:
      return random.Chance(50) ? kInfinity : -kInfinity;
    case 2:
      return 0;
    case 3:
      return -random.Scale(1e-300, 1e300);
    case 4:
      return random.Scale(1e-300, 1e300);
    case 5:
      return std::numeric_limits<double>::max();
    default:
      return random.Between(0, 1000);
  }
}

TEST(LoadPredictorPropertyTest, ForecastsAreLoadsWhateverIsObserved) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomService random(static_cast<uint32_t>(seed));
    ConstantPredictor constant;
    const auto variance = [&random] { return random.Scale(1e-12, 1e12); };
    TrendPredictor trend =
        random.Chance(30)
            ? TrendPredictor()
            : *TrendPredictor::Create({variance(), variance(), variance(), variance()}, "p");
    SeasonalPredictor seasonal = *SeasonalPredictor::Create(
        {2 + random.Below(8), random.Between(0, 1), random.Between(0, 1), random.Between(0, 1)},
        "p");
    for (int i = 0; i < 40; ++i) {
      const double value = AnyObservation(random);
      constant.Observe(value);
      trend.Observe(value);
      seasonal.Observe(value);
      const int64_t steps =
          random.Chance(10) ? std::numeric_limits<int64_t>::max() : random.Below(20);
      for (const double forecast :
           {constant.Forecast(steps), trend.Forecast(steps), seasonal.Forecast(steps)}) {
        ASSERT_TRUE(forecast >= 0 && forecast <= kMaxLoad) << seed << " at " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tessera
