#ifndef TESSERA_REPLICAS_LOAD_PREDICTOR_H_
#define TESSERA_REPLICAS_LOAD_PREDICTOR_H_

// What the load will be, from what it was, one observation per interval.
//
//   auto predictor = *SeasonalPredictor::Create({.season = 288}, "predictor");
//   for (double requests : history) predictor.Observe(requests);
//   predictor.Forecast(1);  // of the interval that begins now
//
// An observation that is NaN, infinite or negative is a gap: time passes, nothing is
// learnt, and each interval of a gap halves the trend, if there is one. (Dynamo's planner
// takes a gap for no load, and then shrinks.) What comes before
// the first load is not learnt from either: a service that has just begun did not grow from
// zero. Observations above `kMaxLoad` count as that; so a forecast is always in
// 0..`kMaxLoad`, whatever was observed. A predictor depends on its observations alone.

#include <concepts>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tessera {

inline constexpr double kMaxLoad = 1e15;

// Forecasts a quantity `steps` intervals ahead: 1 is the one after the last observation;
// less counts as 1. 0 before there was any load. Reading a forecast changes nothing.
template <typename T>
concept LoadPredictor = std::copyable<T> &&
    requires(T& predictor, const T& reader, double value, int64_t steps) {
  predictor.Observe(value);
  { reader.Forecast(steps) } -> std::same_as<double>;
};

// All goes on as it was last.
class ConstantPredictor {
 public:
  void Observe(double value);
  double Forecast(int64_t steps) const;

 private:
  double last_ = 0;
};

// Noise of the local linear trend, as variances per interval; Dynamo's values.
struct TrendOptions {
  double level_noise = 1;         // how much the level moves by itself
  double trend_noise = 0.1;       // how much the trend does
  double observation_noise = 10;  // how much an observation is off
  double initial_variance = 1000;

  friend bool operator==(const TrendOptions&, const TrendOptions&) = default;
};

// A level that moves by a trend, both estimated by a Kalman filter. The first observation
// sets the level. As Dynamo's, except that gaps are gaps and no forecast is negative.
// Only the proportions of the variances matter.
class TrendPredictor {
 public:
  // kInvalidArgument: a variance is not in 1e-12..1e12: `predictor.trend_noise: 0 is not in
  // 1e-12..1e+12`.
  static absl::StatusOr<TrendPredictor> Create(const TrendOptions& options, std::string_view path);

  TrendPredictor() = default;

  void Observe(double value);
  double Forecast(int64_t steps) const;

 private:
  TrendOptions options_;
  bool started_ = false;
  double level_ = 0;
  double trend_ = 0;
  // Covariance of level and trend.
  double level_variance_ = 0;
  double covariance_ = 0;
  double trend_variance_ = 0;
};

// How fast the parts of a seasonal load follow what is observed: 0 never, 1 at once.
struct SeasonalOptions {
  int64_t season = 288;  // intervals: a day of five minutes each
  double level_gain = 0.2;
  double trend_gain = 0.01;
  double season_gain = 0.3;

  friend bool operator==(const SeasonalOptions&, const SeasonalOptions&) = default;
};

// A level, a trend, and what each interval of the season adds to them (Holt and Winters,
// additive, so that a load of zero does no harm). Through the first season, which is
// counted from the first load, the trend stays 0 and the level alone forecasts; then its
// differences from its mean start the season. Space: O(season).
class SeasonalPredictor {
 public:
  // kInvalidArgument: `season` is not in 2..2^20, or a gain not in 0..1:
  // `predictor.level_gain: 1.5 is not in 0..1`.
  static absl::StatusOr<SeasonalPredictor> Create(const SeasonalOptions& options,
                                                  std::string_view path);

  void Observe(double value);
  double Forecast(int64_t steps) const;

 private:
  explicit SeasonalPredictor(const SeasonalOptions& options) : options_(options) {}
  void StartSeason();

  SeasonalOptions options_;
  bool started_ = false;
  bool has_season_ = false;
  size_t phase_ = 0;  // of the next interval
  double level_ = 0;
  double trend_ = 0;
  // What each interval adds; in the first season what was observed, gaps as NaN.
  std::vector<double> offsets_;
};

}  // namespace tessera

#endif  // TESSERA_REPLICAS_LOAD_PREDICTOR_H_
