#include "tessera/replicas/decide_replicas.h"

#include <limits>
#include <utility>

#include "src/replicas/load_forecaster.h"
#include "tessera/base/status.h"
#include "tessera/replicas/required_replicas.h"

namespace tessera {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// Decides with a model of the engines; `itl` is that of an engine that runs so many
// requests with so many tokens.
template <EngineModel Model>
class Decider {
 public:
  Decider(const ServiceSpec& spec, const Model& model, DecodeTime itl)
      : spec_(spec), model_(model), itl_(itl) {}

  absl::StatusOr<ServiceDecision> Decide(const ServiceLoad& forecast, const ReplicaMemory& memory) {
    ServiceDecision decision;
    decision.forecast = forecast;
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
                                                   const ServiceLoad& forecast,
                                                   const ReplicaMemory& memory) {
  const bool is_aggregated = spec.rules.mode == ServiceMode::kAggregated;
  const LinearEngines engines(is_aggregated ? spec.decode.iteration : spec.prefill.iteration,
                              spec.decode.iteration, spec.limits);
  const auto itl = [&spec](double requests, double kv_tokens) {
    return spec.decode.iteration->Seconds(0, requests, kv_tokens);
  };
  return Decider(spec, engines, itl).Decide(forecast, memory);
}

absl::StatusOr<ServiceDecision> DecideByProfiles(const ServiceSpec& spec,
                                                 const ServiceLoad& forecast,
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
  return Decider(spec, engines, itl).Decide(forecast, memory);
}

}  // namespace

absl::StatusOr<ServiceDecision> DecideForForecast(const ServiceSpec& spec,
                                                  const ServiceLoad& forecast,
                                                  const ReplicaMemory& memory) {
  return spec.decode.iteration ? DecideByIterations(spec, forecast, memory)
                               : DecideByProfiles(spec, forecast, memory);
}

absl::StatusOr<ServiceDecision> DecideReplicas(const ServiceSpec& spec,
                                               const ReplicaMemory& memory) {
  TESSERA_ASSIGN_OR_RETURN(LoadForecaster forecaster, LoadForecaster::Create(spec.predictor));
  for (const ServiceLoad& load : spec.history) forecaster.Observe(load);
  return DecideForForecast(spec, forecaster.Forecast(), memory);
}

}  // namespace tessera
