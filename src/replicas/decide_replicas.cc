#include "tessera/replicas/decide_replicas.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/replicas/required_replicas.h"

namespace tessera {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

bool IsMeasured(double value) { return std::isfinite(value) && value >= 0; }

// The most of one measure of the load in the intervals to come.
template <typename Predictor>
double ForecastOf(Predictor predictor, const ServiceSpec& spec, double ServiceLoad::*measure) {
  bool measured = false;
  for (const ServiceLoad& load : spec.history) {
    // Without requests there are no lengths to learn from.
    const bool has_lengths = !(load.request_rate == 0) || measure == &ServiceLoad::request_rate;
    predictor.Observe(has_lengths ? load.*measure : kNotMeasured);
    measured = measured || (has_lengths && IsMeasured(load.*measure));
  }
  if (!measured) return kNotMeasured;
  double most = 0;
  for (int64_t i = 1; i <= spec.predictor.ahead; ++i) most = std::max(most, predictor.Forecast(i));
  return most;
}

template <typename Predictor>
ServiceLoad ForecastLoad(const Predictor& predictor, const ServiceSpec& spec) {
  ServiceLoad load;
  for (const auto measure :
       {&ServiceLoad::request_rate, &ServiceLoad::input_tokens, &ServiceLoad::output_tokens}) {
    load.*measure = ForecastOf(predictor, spec, measure);
  }
  for (const ServiceLoad& past : spec.history) {
    const double rate = past.prefix_hit_rate;
    if (IsMeasured(rate) && rate <= 1) load.prefix_hit_rate = rate;
  }
  return load;
}

absl::StatusOr<ServiceLoad> Forecast(const ServiceSpec& spec) {
  const int64_t ahead = spec.predictor.ahead;
  if (ahead < 1 || ahead > kMaxAhead) {
    return InvalidAt("predictor.ahead", absl::StrCat(ahead, " is not in 1..", kMaxAhead));
  }
  switch (spec.predictor.kind) {
    case PredictorKind::kTrend: {
      TESSERA_ASSIGN_OR_RETURN(const TrendPredictor predictor,
                               TrendPredictor::Create(spec.predictor.trend, "predictor"));
      return ForecastLoad(predictor, spec);
    }
    case PredictorKind::kSeasonal: {
      TESSERA_ASSIGN_OR_RETURN(const SeasonalPredictor predictor,
                               SeasonalPredictor::Create(spec.predictor.seasonal, "predictor"));
      return ForecastLoad(predictor, spec);
    }
    case PredictorKind::kConstant:
      break;
  }
  return ForecastLoad(ConstantPredictor(), spec);
}

// Decides with a model of the engines; `itl` is that of an engine that runs so many
// requests with so many tokens.
template <EngineModel Model>
class Decider {
 public:
  Decider(const ServiceSpec& spec, const Model& model, DecodeTime itl)
      : spec_(spec), model_(model), itl_(itl) {}

  absl::StatusOr<ServiceDecision> Decide(const ReplicaMemory& memory) {
    ServiceDecision decision;
    TESSERA_ASSIGN_OR_RETURN(decision.forecast, Forecast(spec_));
    const RequirementRules rules{spec_.rules.mode, spec_.rules.minimum, spec_.utilization};
    TESSERA_ASSIGN_OR_RETURN(decision.required,
                             RequireReplicas(model_, decision.forecast, spec_.sla, rules));
    decision.reactions = React(decision.forecast);
    ReplicaStatus status = spec_.status;
    status.required = decision.required;
    status.reactions = decision.reactions;
    TESSERA_ASSIGN_OR_RETURN(decision.plan, PlanReplicas(spec_.rules, status, memory));
    return decision;
  }

 private:
  RoleReactions React(const ServiceLoad& load) const {
    const bool is_aggregated = spec_.rules.mode == ServiceMode::kAggregated;
    const ReplicaCounts& ready = spec_.status.ready;
    const auto prompt_time = [this](double tokens) {
      const std::optional<EngineCost> cost = model_.Prefill({tokens, tokens, 0}, spec_.sla);
      return cost ? cost->ttft : kNotMeasured;
    };
    const Reaction prefill = ReactToPrefill(
        spec_.queued_tokens, load.input_tokens * (1 - load.prefix_hit_rate), prompt_time,
        {.sla = spec_.sla.ttft, .engines = is_aggregated ? ready.decode : ready.prefill});
    const Reaction decode =
        ReactToDecode(spec_.decoding, load.input_tokens + load.output_tokens / 2,
                      static_cast<double>(spec_.limits.max_kv_tokens), itl_,
                      {.sla = spec_.sla.itl, .engines = ready.decode});
    if (is_aggregated) return {Reaction::kNone, Combine(prefill, decode)};
    return {prefill, decode};
  }

  const ServiceSpec& spec_;
  const Model& model_;
  const DecodeTime itl_;
};

absl::StatusOr<ServiceDecision> DecideByIterations(const ServiceSpec& spec,
                                                   const ReplicaMemory& memory) {
  const bool is_aggregated = spec.rules.mode == ServiceMode::kAggregated;
  const LinearEngines engines(is_aggregated ? spec.decode.iteration : spec.prefill.iteration,
                              spec.decode.iteration, spec.limits);
  const auto itl = [&spec](double requests, double kv_tokens) {
    return spec.decode.iteration->Seconds(0, requests, kv_tokens);
  };
  return Decider(spec, engines, itl).Decide(memory);
}

absl::StatusOr<ServiceDecision> DecideByProfiles(const ServiceSpec& spec,
                                                 const ReplicaMemory& memory) {
  TESSERA_ASSIGN_OR_RETURN(PrefillProfile prefill,
                           PrefillProfile::Create(spec.prefill.samples, "engines.prefill.profile"));
  DecodeProfileOptions options;
  options.max_kv_tokens = static_cast<double>(spec.limits.max_kv_tokens);
  TESSERA_ASSIGN_OR_RETURN(
      const DecodeProfile decode,
      DecodeProfile::Create(spec.decode.samples, options, "engines.decode.profile"));
  const auto itl = [&decode](double requests, double kv_tokens) {
    const double context = requests > 0 ? kv_tokens / requests : 0;
    return decode.At(kv_tokens / decode.max_kv_tokens(), context).itl;
  };
  const ProfiledEngines engines(std::move(prefill), decode, spec.rules.gpus);
  return Decider(spec, engines, itl).Decide(memory);
}

}  // namespace

absl::StatusOr<ServiceDecision> DecideReplicas(const ServiceSpec& spec,
                                               const ReplicaMemory& memory) {
  return spec.decode.iteration ? DecideByIterations(spec, memory) : DecideByProfiles(spec, memory);
}

}  // namespace tessera
