#include "src/replicas/load_forecaster.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

bool IsMeasured(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

absl::StatusOr<LoadForecaster> LoadForecaster::Create(const PredictorSpec& spec) {
  if (spec.ahead < 1 || spec.ahead > kMaxAhead) {
    return InvalidAt("predictor.ahead", absl::StrCat(spec.ahead, " is not in 1..", kMaxAhead));
  }
  switch (spec.kind) {
    case PredictorKind::kTrend: {
      TESSERA_ASSIGN_OR_RETURN(const TrendPredictor predictor,
                               TrendPredictor::Create(spec.trend, "predictor"));
      return LoadForecaster(spec.ahead, predictor);
    }
    case PredictorKind::kSeasonal: {
      TESSERA_ASSIGN_OR_RETURN(const SeasonalPredictor predictor,
                               SeasonalPredictor::Create(spec.seasonal, "predictor"));
      return LoadForecaster(spec.ahead, predictor);
    }
    case PredictorKind::kConstant:
      break;
  }
  return LoadForecaster(spec.ahead, ConstantPredictor());
}

void LoadForecaster::Observe(const ServiceLoad& load) {
  for (Measure& measure : measures_) {
    // Without requests there are no lengths to learn from.
    const bool has_lengths = !(load.request_rate == 0);
    const bool applies = has_lengths || measure.part == &ServiceLoad::request_rate;
    const double value = applies ? load.*measure.part : kNotMeasured;
    std::visit([value](auto& predictor) { predictor.Observe(value); }, measure.predictor);
    measure.is_known = measure.is_known || IsMeasured(value);
  }
  if (IsMeasured(load.prefix_hit_rate) && load.prefix_hit_rate <= 1) {
    prefix_hit_rate_ = load.prefix_hit_rate;
  }
}

ServiceLoad LoadForecaster::Forecast() const {
  ServiceLoad load;
  load.prefix_hit_rate = prefix_hit_rate_;
  for (const Measure& measure : measures_) {
    double most = measure.is_known ? 0 : kNotMeasured;
    for (int64_t i = 1; measure.is_known && i <= ahead_; ++i) {
      const auto forecast = [i](const auto& predictor) { return predictor.Forecast(i); };
      most = std::max(most, std::visit(forecast, measure.predictor));
    }
    load.*measure.part = most;
  }
  return load;
}

}  // namespace tessera
