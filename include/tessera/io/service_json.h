#ifndef TESSERA_IO_SERVICE_JSON_H_
#define TESSERA_IO_SERVICE_JSON_H_

// Service files (`tessera/v1`, kind `Service`): an LLM service, its engines, its load.
//
//   {"apiVersion": "tessera/v1", "kind": "Service", "name": "chat",
//    "sla": {"ttft": 0.5, "itl": 0.05},
//    "engines": {
//      "prefill": {"gpus": 2, "minimum": 1, "iteration": {"per_prefill_token": 5e-5}},
//      "decode": {"gpus": 4, "minimum": 1, "max_kv_tokens": 315000, "profile": {"samples": [
//        {"context_tokens": 3150, "kv_usage": 0.5, "itl": 0.05,
//         "tokens_per_second_per_gpu": 250}]}}},
//    "rules": {"max_gpus": 28},
//    "predictor": {"kind": "trend"},
//    "history": {"interval": 60, "requests": [880, 900], "input_tokens": 3000,
//                "output_tokens": 300},
//    "status": {"now": 0, "expected": {"prefill": 2, "decode": 6}}}
//
// Times are seconds, lengths tokens. Engines are described by a `profile` (measured before)
// or by the linear cost of an `iteration`. A list of the history has one entry per interval,
// oldest first; one number stands for all; `null` is a gap. Both are `engines.decode` in an
// aggregated service ("mode": "aggregated").

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tessera/replicas/decide_replicas.h"

namespace tessera {

// Most intervals of a history.
inline constexpr int64_t kMaxHistory = 1000000;

// The service that `json` states.
//
// kInvalidArgument: as for `ParseSnapshotSpec`, with paths like `history.requests[3]`; lists
// of different lengths; a role that is described in no way or in two. What numbers mean is
// checked by those who use them (`PrefillProfile::Create`, `PlanReplicas`, ...).
// O(size of text).
absl::StatusOr<ServiceSpec> ParseServiceSpec(std::string_view json);

// `{"service", "outcome", "forecast", "required", "granted", "notes", "steps", ...}`.
std::string WriteServiceDecision(const ServiceSpec& spec, const ServiceDecision& decision);

}  // namespace tessera

#endif  // TESSERA_IO_SERVICE_JSON_H_
