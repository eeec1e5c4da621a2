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
//    "predictor": {"kind": "trend", "ahead": 3},
//    "history": {"interval": 60, "requests": [880, 900], "input_tokens": 3000,
//                "output_tokens": 300},
//    "status": {"now": 0, "expected": {"prefill": 2, "decode": 6}}}
//
// Times are seconds, lengths tokens. Engines are described by a `profile` (measured before)
// or by the linear cost of an `iteration`. A list of the history has one entry per interval,
// oldest first; one number stands for all; `null` is a gap. Both are `engines.decode` in an
// aggregated service ("mode": "aggregated").
//
// To ask whether engines can start, each role also says what its engines are made of, and
// the service who asks; the GPUs of an engine are then those of its pods:
//
//   "engines": {"decode": {"pods": {"count": 2, "request": {"cpu": 8, "gpu": 4},
//                                   "topology": {"required": "rack"}}, ...}, ...},
//   "workload": {"queue": "nlp", "priority": 100, "topology": {"preferred": "block"},
//                "router": {"name": "router", "request": {"cpu": 2}},
//                "pods": [{"pod_set": "prefill", "index": 0, "node": "n1", "gpus": [0, 1]}]}

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tessera/cluster/workload.h"
#include "tessera/replicas/decide_replicas.h"
#include "tessera/schedule/placeable_replicas.h"
#include "tessera/schedule/service_gang.h"

namespace tessera {

// Most intervals of a history.
inline constexpr int64_t kMaxHistory = 1000000;

// What a service file says.
struct ServiceFile {
  ServiceSpec service;
  // What it is made of; nothing where some role does not say so.
  std::optional<ServiceShape> shape;
  Workload workload;  // who asks, and the pods that run

  friend bool operator==(const ServiceFile&, const ServiceFile&) = default;
};

// The service that `json` states.
//
// kInvalidArgument: as for `ParseSnapshotSpec`, with paths like `history.requests[3]`; lists
// of different lengths; a role that is described in no way or in two, or whose GPUs are not
// those of its pods. What numbers mean is checked by those who use them
// (`PrefillProfile::Create`, `PlanReplicas`, ...). O(size of text).
absl::StatusOr<ServiceFile> ParseServiceFile(std::string_view json);

// `{"service", "outcome", "forecast", "required", "granted", "notes", "steps", ...}`, and
// `placeable` where somebody asked.
std::string WriteServiceDecision(const ServiceSpec& spec, const ServiceDecision& decision,
                                 const std::optional<PlaceableReplicas>& placeable = std::nullopt);

}  // namespace tessera

#endif  // TESSERA_IO_SERVICE_JSON_H_
