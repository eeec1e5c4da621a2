#include "tessera/replicas/load_predictor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

constexpr double kMinVariance = 1e-12;
constexpr double kMaxVariance = 1e12;
constexpr double kUnknown = 1e30;  // the largest variance
// A trend that nobody observes any more fades, so that an outage of the metrics is not
// extrapolated: all in all by one more interval.
constexpr double kKeptInGap = 0.5;
constexpr int64_t kLongestSeason = int64_t{1} << 20;

bool IsGap(double value) { return !std::isfinite(value) || value < 0; }

double InRange(double load) { return std::clamp(load, 0.0, kMaxLoad); }

// A level and a trend stay where their sums are finite and exact enough.
double Bounded(double value) { return std::clamp(value, -kMaxLoad, kMaxLoad); }

double Ahead(int64_t steps) { return static_cast<double>(std::max<int64_t>(steps, 1)); }

absl::Status CheckRange(double value, double low, double high, std::string_view path,
                        std::string_view field) {
  if (value >= low && value <= high) return absl::OkStatus();
  return InvalidAt(absl::StrCat(ToAbsl(path), ".", ToAbsl(field)),
                   absl::StrCat(value, " is not in ", low, "..", high));
}

}  // namespace

void ConstantPredictor::Observe(double value) {
  if (!IsGap(value)) last_ = InRange(value);
}

double ConstantPredictor::Forecast(int64_t /*steps*/) const { return last_; }

absl::StatusOr<TrendPredictor> TrendPredictor::Create(const TrendOptions& options,
                                                      std::string_view path) {
  const auto check = [path](double variance, std::string_view field) {
    return CheckRange(variance, kMinVariance, kMaxVariance, path, field);
  };
  TESSERA_RETURN_IF_ERROR(check(options.level_noise, "level_noise"));
  TESSERA_RETURN_IF_ERROR(check(options.trend_noise, "trend_noise"));
  TESSERA_RETURN_IF_ERROR(check(options.observation_noise, "observation_noise"));
  TESSERA_RETURN_IF_ERROR(check(options.initial_variance, "initial_variance"));
  TrendPredictor predictor;
  predictor.options_ = options;
  return predictor;
}

void TrendPredictor::Observe(double value) {
  const bool gap = IsGap(value);
  if (!started_) {
    if (gap || value == 0) return;
    started_ = true;
    level_ = InRange(value);
    level_variance_ = trend_variance_ = options_.initial_variance;
    return;
  }
  // 1. One interval passes.
  level_ = Bounded(level_ + trend_);
  level_variance_ += 2 * covariance_ + trend_variance_ + options_.level_noise;
  covariance_ += trend_variance_;
  trend_variance_ += options_.trend_noise;
  if (gap) {
    trend_ *= kKeptInGap;
    // However long it lasts, sums of variances stay finite.
    level_variance_ = std::min(level_variance_, kUnknown);
    covariance_ = std::min(covariance_, kUnknown);
    trend_variance_ = std::min(trend_variance_, kUnknown);
    return;
  }
  // 2. The observation corrects both.
  const double level_gain = level_variance_ / (level_variance_ + options_.observation_noise);
  const double trend_gain = covariance_ / (level_variance_ + options_.observation_noise);
  const double surprise = InRange(value) - level_;
  level_ = Bounded(level_ + level_gain * surprise);
  trend_ = Bounded(trend_ + trend_gain * surprise);
  trend_variance_ = std::max(trend_variance_ - trend_gain * covariance_, 0.0);
  covariance_ *= 1 - level_gain;
  level_variance_ *= 1 - level_gain;
}

double TrendPredictor::Forecast(int64_t steps) const {
  return started_ ? InRange(level_ + Ahead(steps) * trend_) : 0;
}

absl::StatusOr<SeasonalPredictor> SeasonalPredictor::Create(const SeasonalOptions& options,
                                                            std::string_view path) {
  if (options.season < 2 || options.season > kLongestSeason) {
    return InvalidAt(absl::StrCat(ToAbsl(path), ".season"),
                     absl::StrCat(options.season, " is not in 2..", kLongestSeason));
  }
  TESSERA_RETURN_IF_ERROR(CheckRange(options.level_gain, 0, 1, path, "level_gain"));
  TESSERA_RETURN_IF_ERROR(CheckRange(options.trend_gain, 0, 1, path, "trend_gain"));
  TESSERA_RETURN_IF_ERROR(CheckRange(options.season_gain, 0, 1, path, "season_gain"));
  return SeasonalPredictor(options);
}

void SeasonalPredictor::Observe(double value) {
  const bool gap = IsGap(value);
  if (!started_) {
    if (gap || value == 0) return;
    started_ = true;
    level_ = InRange(value);
    offsets_.assign(static_cast<size_t>(options_.season), std::numeric_limits<double>::quiet_NaN());
  }
  double& offset = offsets_[phase_];
  phase_ = (phase_ + 1) % offsets_.size();
  if (!has_season_) {
    if (!gap) {
      offset = InRange(value);
      level_ += options_.level_gain * (offset - level_);
    }
    if (phase_ == 0) StartSeason();
    return;
  }
  if (gap) {
    level_ = Bounded(level_ + trend_);
    trend_ *= kKeptInGap;
    return;
  }
  const double before = level_;
  const double load = InRange(value);
  level_ = Bounded(before + trend_ + options_.level_gain * (load - offset - before - trend_));
  trend_ = Bounded(trend_ + options_.trend_gain * (level_ - before - trend_));
  offset = Bounded(offset + options_.season_gain * (load - level_ - offset));
}

// The first season is over: its mean is the level, and an interval without an observation
// adds nothing.
void SeasonalPredictor::StartSeason() {
  double sum = 0, count = 0;
  for (const double load : offsets_) {
    if (std::isnan(load)) continue;
    sum += load;
    count += 1;
  }
  level_ = sum / count;
  for (double& load : offsets_) load = std::isnan(load) ? 0 : load - level_;
  has_season_ = true;
}

double SeasonalPredictor::Forecast(int64_t steps) const {
  if (!started_) return 0;
  if (!has_season_) return InRange(level_);
  const int64_t ahead = std::max<int64_t>(steps, 1);
  const size_t phase =
      (phase_ + static_cast<size_t>((ahead - 1) % options_.season)) % offsets_.size();
  return InRange(level_ + Ahead(ahead) * trend_ + offsets_[phase]);
}

}  // namespace tessera
