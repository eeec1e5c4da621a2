#ifndef TESSERA_SRC_REPLICAS_LOAD_FORECASTER_H_
#define TESSERA_SRC_REPLICAS_LOAD_FORECASTER_H_

#include <array>
#include <limits>
#include <optional>
#include <variant>

#include "absl/status/statusor.h"
#include "tessera/replicas/decide_replicas.h"

namespace tessera {

// Forecasts the load of a service from one observation per interval; see `DecideReplicas`.
// What was never measured is NaN. O(ahead) to observe and forecast.
class LoadForecaster {
 public:
  static absl::StatusOr<LoadForecaster> Create(const PredictorSpec& spec);

  void Observe(const ServiceLoad& load);
  ServiceLoad Forecast() const;

 private:
  using Predictor = std::variant<ConstantPredictor, TrendPredictor, SeasonalPredictor>;

  // A measure of the load, and what is known of it.
  struct Measure {
    double ServiceLoad::*part;
    Predictor predictor;
    bool is_known = false;
  };

  LoadForecaster(int64_t ahead, const Predictor& predictor)
      : ahead_(ahead),
        measures_{{{&ServiceLoad::request_rate, predictor},
                   {&ServiceLoad::input_tokens, predictor},
                   {&ServiceLoad::output_tokens, predictor}}} {}

  int64_t ahead_;
  std::array<Measure, 3> measures_;
  double prefix_hit_rate_ = 0;  // as last measured
};

// The decision for a load that is forecast; the predictor and history of `spec` mean nothing.
absl::StatusOr<ServiceDecision> DecideForForecast(const ServiceSpec& spec,
                                                  const ServiceLoad& forecast,
                                                  const ReplicaMemory& memory);

}  // namespace tessera

#endif  // TESSERA_SRC_REPLICAS_LOAD_FORECASTER_H_
