#ifndef TESSERA_REPLICAS_REQUIRED_REPLICAS_H_
#define TESSERA_REPLICAS_REQUIRED_REPLICAS_H_

// How many engines a load needs, before anybody asks whether they are affordable.
//
//   const LinearEngines engines(prefill_fit.cost, decode_fit.cost, limits);
//   const auto required = RequireReplicas(engines, {.request_rate = 15, .input_tokens = 3000,
//                                                   .output_tokens = 300}, {0.5, 0.05}, {});
//   required->counts;  // none: a hold, see the reasons

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tessera/replicas/engine_model.h"
#include "tessera/replicas/service.h"

namespace tessera {

// What holds for a service whatever its load.
struct RequirementRules {
  ServiceMode mode = ServiceMode::kDisaggregated;
  ReplicaCounts minimum = {1, 1};  // `prefill` is ignored for aggregated engines
  double utilization = 1;          // part of an engine's time that may be planned, (0, 1]

  friend bool operator==(const RequirementRules&, const RequirementRules&) = default;
};

// kInvalidArgument: a minimum is not in 0..`kMaxReplicas`, or the utilization not in (0, 1]:
// `rules.utilization: 0 is not in (0, 1]`.
absl::Status ValidateRules(const RequirementRules& rules, std::string_view path);

namespace replicas_internal {

// A load that can be served: every number finite and not negative, the hit rate at most 1;
// without requests their lengths do not matter. None otherwise.
std::optional<RequestShape> ShapeOf(const ServiceLoad& load);
RequiredReplicas Hold(RequirementReason reason);
RequiredReplicas Minimum(const RequirementRules& rules);
RequiredReplicas Count(double request_rate, const RequirementRules& rules,
                       const std::optional<EngineCost>& prefill,
                       const std::optional<EngineCost>& decode);

}  // namespace replicas_internal

// The engines per role that serve `load` within `sla`: requests per second times the
// seconds that one takes of an engine, over the utilization, rounded up (what exceeds an
// integer by less than a billionth does not count), at least the minimum, at most
// `kMaxReplicas`. A service without requests needs its minimum. An SLA that cannot be kept is named
// in the reasons and the counts are those for the load at the least latency: more engines do not
// shorten one prompt. (Dynamo raises the prefill engines to TTFT over its SLA then.) If a
// part of the load is not known (NaN, infinite, negative, a hit rate above 1), or the model
// not ready for a role, there are no counts at all.
//
// More requests, longer inputs or outputs, fewer prefix hits, a tighter SLA, less
// utilization or a higher minimum never need fewer engines of any role.
//
// kInvalidArgument: as `ValidateSla` and `ValidateRules`, with paths `sla` and `rules`.
template <EngineModel Model>
absl::StatusOr<RequiredReplicas> RequireReplicas(const Model& model, const ServiceLoad& load,
                                                 const Sla& sla, const RequirementRules& rules) {
  if (absl::Status status = ValidateSla(sla, "sla"); !status.ok()) return status;
  if (absl::Status status = ValidateRules(rules, "rules"); !status.ok()) return status;
  const std::optional<RequestShape> shape = replicas_internal::ShapeOf(load);
  if (!shape) return replicas_internal::Hold(RequirementReason::kMissingMetrics);
  if (load.request_rate == 0) return replicas_internal::Minimum(rules);
  if (rules.mode == ServiceMode::kAggregated) {
    const std::optional<EngineCost> engine = model.Aggregated(*shape, sla);
    return replicas_internal::Count(load.request_rate, rules, engine, engine);
  }
  return replicas_internal::Count(load.request_rate, rules, model.Prefill(*shape, sla),
                                  model.Decode(*shape, sla));
}

}  // namespace tessera

#endif  // TESSERA_REPLICAS_REQUIRED_REPLICAS_H_
