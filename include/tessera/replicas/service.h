#ifndef TESSERA_REPLICAS_SERVICE_H_
#define TESSERA_REPLICAS_SERVICE_H_

// The nouns of `replicas/`: an LLM service, its load, and how many engines it needs.
//
// Loads and latencies are measured and forecast, hence doubles: times are seconds, lengths
// tokens. Engines and GPUs are counted, hence integers.

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace tessera {

// How a service answers a request.
enum class ServiceMode {
  kDisaggregated,  // prefill engines read the prompt, decode engines write the answer
  kAggregated,     // every engine does both
};

// GPUs of one engine of each role. An aggregated engine counts as `decode`, everywhere in
// this room, and there are then no prefill engines.
struct EngineGpus {
  int64_t prefill = 1;
  int64_t decode = 1;

  friend bool operator==(const EngineGpus&, const EngineGpus&) = default;
};

// Engines per role.
struct ReplicaCounts {
  int64_t prefill = 0;
  int64_t decode = 0;

  friend bool operator==(const ReplicaCounts&, const ReplicaCounts&) = default;
};

// No requirement exceeds this many engines of a role, so that GPUs can be summed in int64.
inline constexpr int64_t kMaxReplicas = int64_t{1} << 30;

// What users were promised, in seconds: time to the first token, and between tokens.
struct Sla {
  double ttft = 0.5;
  double itl = 0.05;

  friend bool operator==(const Sla&, const Sla&) = default;
};

// kInvalidArgument unless both times are finite and above 0; `path` names the SLA:
// `sla.ttft: -1 is not a time above 0`.
absl::Status ValidateSla(const Sla& sla, std::string_view path);

// What users ask for, as measured or forecast. What nobody measured is NaN.
struct ServiceLoad {
  double request_rate = 0;     // requests per second
  double input_tokens = 0;     // mean of a request (ISL)
  double output_tokens = 0;    // mean of a request (OSL)
  double prefix_hit_rate = 0;  // part of the input that needs no prefill, 0..1

  friend bool operator==(const ServiceLoad&, const ServiceLoad&) = default;
};

// What stands behind a requirement, per role; first come the answers, then the holds.
enum class RequirementReason {
  kOk,               // this many engines serve the load within the SLA
  kTtftUnreachable,  // one prompt alone takes longer than the SLA: enough for the load only
  kItlUnreachable,   // even the emptiest engine is slower than the SLA: enough for the load only
  kContextTooLong,   // a request of mean length does not fit an engine's KV memory
  kModelNotReady,    // hold: too few observations of the engines
  kMissingMetrics,   // hold: a part of the load is unknown
};

// "ttft_unreachable".
std::string_view ToString(RequirementReason reason);
std::optional<RequirementReason> RequirementReasonFromString(std::string_view text);

// How many engines a load needs. A hold has no counts: what runs should stay. Of an
// aggregated engine `prefill` is about the TTFT and `decode` about all else.
struct RequiredReplicas {
  std::optional<ReplicaCounts> counts;
  RequirementReason prefill = RequirementReason::kOk;
  RequirementReason decode = RequirementReason::kOk;
  double prefill_engines = 0;  // the same before rounding up and minimums
  double decode_engines = 0;
  double ttft = 0;  // expected of one prompt without a queue, seconds; 0 without load
  double itl = 0;   // expected at the operating point of the decode engines, seconds

  friend bool operator==(const RequiredReplicas&, const RequiredReplicas&) = default;
};

}  // namespace tessera

#endif  // TESSERA_REPLICAS_SERVICE_H_
