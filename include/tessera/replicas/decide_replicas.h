#ifndef TESSERA_REPLICAS_DECIDE_REPLICAS_H_
#define TESSERA_REPLICAS_DECIDE_REPLICAS_H_

// From the load of the past to engines: forecast, requirement, reaction, plan in one call.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/replicas/engine_model.h"
#include "tessera/replicas/load_predictor.h"
#include "tessera/replicas/plan_replicas.h"
#include "tessera/replicas/reaction.h"
#include "tessera/replicas/service.h"

namespace tessera {

enum class PredictorKind { kConstant, kTrend, kSeasonal };

// Most intervals that a plan looks ahead.
inline constexpr int64_t kMaxAhead = 10000;

// How the load to come is forecast; only the options of the kind mean something.
struct PredictorSpec {
  PredictorKind kind = PredictorKind::kConstant;
  // The plan is for the most that is forecast of so many intervals to come. An engine that
  // is asked for now serves once it has started: look ahead to the end of the interval in
  // which it does.
  int64_t ahead = 1;
  TrendOptions trend;
  SeasonalOptions seasonal;

  friend bool operator==(const PredictorSpec&, const PredictorSpec&) = default;
};

// How engines of one role behave, either way.
struct PrefillSpec {
  std::vector<PrefillSample> samples;
  std::optional<IterationCost> iteration;

  friend bool operator==(const PrefillSpec&, const PrefillSpec&) = default;
};
struct DecodeSpec {
  std::vector<DecodeSample> samples;
  std::optional<IterationCost> iteration;

  friend bool operator==(const DecodeSpec&, const DecodeSpec&) = default;
};

// All that a decision is made by. Service files (`io/service_json.h`) state it.
struct ServiceSpec {
  std::string name;
  Sla sla;
  ReplicaRules rules;      // mode, GPUs and minimums of the engines included
  double utilization = 1;  // part of an engine's time that may be planned
  PrefillSpec prefill;
  DecodeSpec decode;
  EngineLimits limits;  // `max_kv_tokens` also of a profile
  PredictorSpec predictor;
  int64_t interval = 60;                   // seconds
  std::vector<ServiceLoad> history;        // per interval, oldest first
  ReplicaStatus status;                    // `now`, expected and ready engines
  std::vector<double> queued_tokens;       // before each prefill engine; empty: not known
  std::vector<DecodeEngineLoad> decoding;  // on each decode engine; empty: not known

  friend bool operator==(const ServiceSpec&, const ServiceSpec&) = default;
};

// What was decided for a service, and by which numbers.
struct ServiceDecision {
  // The most of each measure in the intervals to come, `ahead` of them; what was never
  // measured is NaN.
  ServiceLoad forecast;
  RequiredReplicas required;
  RoleReactions reactions;
  ReplicaPlan plan;

  friend bool operator==(const ServiceDecision&, const ServiceDecision&) = default;
};

// Forecasts request rate and lengths, each by itself, and takes the prefix hit rate as last
// measured; asks the model of the engines what that load needs within the SLA; asks the
// engines that run whether they are too slow or too many; and plans (`PlanReplicas`).
// `required` and `reactions` of `spec.status` mean nothing: they are what is found out.
//
// kInvalidArgument, with a path as in a service file (`engines.decode.profile.samples[2]`,
// `predictor.season`): what one of these steps rejects, or `predictor.ahead` is not in
// 1..kMaxAhead. O(history + ahead + samples * log samples).
absl::StatusOr<ServiceDecision> DecideReplicas(const ServiceSpec& spec,
                                               const ReplicaMemory& memory = {});

}  // namespace tessera

#endif  // TESSERA_REPLICAS_DECIDE_REPLICAS_H_
