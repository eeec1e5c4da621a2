#include "tessera/replicas/required_replicas.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/replicas/interpolation.h"
#include "tessera/base/status.h"
#include "tessera/replicas/load_predictor.h"

namespace tessera {
namespace {

absl::Status CheckMinimum(int64_t minimum, std::string_view path, std::string_view field) {
  if (minimum >= 0 && minimum <= kMaxReplicas) return absl::OkStatus();
  return InvalidAt(absl::StrCat(ToAbsl(path), ".minimum.", ToAbsl(field)),
                   absl::StrCat(minimum, " is not in 0..", kMaxReplicas));
}

bool IsLoad(double value) { return value >= 0 && value <= kMaxLoad; }

// Engines that `demand` of them amounts to.
int64_t RoundUp(double demand, int64_t minimum) {
  const double rounded = std::ceil(demand * (1 - kRounding));
  if (!(rounded < static_cast<double>(kMaxReplicas))) return kMaxReplicas;
  return std::max(static_cast<int64_t>(rounded), minimum);
}

}  // namespace

absl::Status ValidateRules(const RequirementRules& rules, std::string_view path) {
  TESSERA_RETURN_IF_ERROR(CheckMinimum(rules.minimum.prefill, path, "prefill"));
  TESSERA_RETURN_IF_ERROR(CheckMinimum(rules.minimum.decode, path, "decode"));
  if (rules.utilization > 0 && rules.utilization <= 1) return absl::OkStatus();
  return InvalidAt(absl::StrCat(ToAbsl(path), ".utilization"),
                   absl::StrCat(rules.utilization, " is not in (0, 1]"));
}

namespace replicas_internal {

std::optional<RequestShape> ShapeOf(const ServiceLoad& load) {
  if (load.request_rate == 0) return RequestShape{};
  if (!IsLoad(load.request_rate) || !IsLoad(load.input_tokens) || !IsLoad(load.output_tokens) ||
      !(load.prefix_hit_rate >= 0 && load.prefix_hit_rate <= 1)) {
    return std::nullopt;
  }
  return RequestShape{load.input_tokens * (1 - load.prefix_hit_rate), load.input_tokens,
                      load.output_tokens};
}

RequiredReplicas Hold(RequirementReason reason) {
  RequiredReplicas required;
  required.prefill = required.decode = reason;
  return required;
}

RequiredReplicas Minimum(const RequirementRules& rules) {
  RequiredReplicas required;
  required.counts = rules.minimum;
  if (rules.mode == ServiceMode::kAggregated) required.counts->prefill = 0;
  return required;
}

RequiredReplicas Count(double request_rate, const RequirementRules& rules,
                       const std::optional<EngineCost>& prefill,
                       const std::optional<EngineCost>& decode) {
  RequiredReplicas required;
  const bool has_prefill = rules.mode == ServiceMode::kDisaggregated;
  if (prefill) {
    if (!prefill->ttft_reachable) required.prefill = RequirementReason::kTtftUnreachable;
    if (has_prefill) {
      required.prefill_engines = request_rate * prefill->engine_seconds / rules.utilization;
    }
    required.ttft = prefill->ttft;
  } else {
    required.prefill = RequirementReason::kModelNotReady;
  }
  if (decode) {
    if (!decode->itl_reachable) required.decode = RequirementReason::kItlUnreachable;
    if (!decode->fits) required.decode = RequirementReason::kContextTooLong;
    required.decode_engines = request_rate * decode->engine_seconds / rules.utilization;
    required.itl = decode->itl;
  } else {
    required.decode = RequirementReason::kModelNotReady;
  }
  if (!prefill || !decode) return required;
  required.counts = {has_prefill ? RoundUp(required.prefill_engines, rules.minimum.prefill) : 0,
                     RoundUp(required.decode_engines, rules.minimum.decode)};
  return required;
}

}  // namespace replicas_internal
}  // namespace tessera
