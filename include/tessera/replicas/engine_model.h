#ifndef TESSERA_REPLICAS_ENGINE_MODEL_H_
#define TESSERA_REPLICAS_ENGINE_MODEL_H_

// What one engine can do for requests of mean lengths, in seconds of its time per request;
// from profiles or from fitted iterations.

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

#include "tessera/replicas/engine_profile.h"
#include "tessera/replicas/latency_model.h"
#include "tessera/replicas/service.h"

namespace tessera {

// Requests of mean lengths, all finite and not negative.
struct RequestShape {
  double prefill_tokens = 0;  // input that is not found in a cache
  double input_tokens = 0;
  double output_tokens = 0;

  // Mean length while the answer is written.
  double context_tokens() const { return input_tokens + output_tokens / 2; }
  double full_tokens() const { return input_tokens + output_tokens; }

  friend bool operator==(const RequestShape&, const RequestShape&) = default;
};

// How an engine serves requests: its time per request, and what latency they see.
struct EngineCost {
  double engine_seconds = 0;   // per request
  double ttft = 0;             // of a prompt that need not wait; 0 of a decode engine
  double itl = 0;              // 0 of a prefill engine
  bool ttft_reachable = true;  // false: at no operating point
  bool itl_reachable = true;
  bool fits = true;  // a request of mean length fits the KV memory

  friend bool operator==(const EngineCost&, const EngineCost&) = default;
};

// What a model of engines answers. Each function gives none as long as it cannot tell. If
// an SLA cannot be kept the cost is that of the emptiest engine. No cost may fall when a
// length grows or a limit gets tighter.
template <typename T>
concept EngineModel = requires(const T& model, const RequestShape& shape, const Sla& sla) {
  { model.Prefill(shape, sla) } -> std::same_as<std::optional<EngineCost>>;
  { model.Decode(shape, sla) } -> std::same_as<std::optional<EngineCost>>;
  { model.Aggregated(shape, sla) } -> std::same_as<std::optional<EngineCost>>;
};

// How much slower engines are than their profile says: observed over profiled. 1 = as fast.
struct Corrections {
  double prefill = 1;
  double decode = 1;

  friend bool operator==(const Corrections&, const Corrections&) = default;
};

// What an interval showed.
struct ObservedLatency {
  double ttft = 0;             // mean, seconds
  double itl = 0;              // mean, seconds
  double request_seconds = 0;  // mean from arrival to the last token
  int64_t decode_engines = 0;  // that served

  friend bool operator==(const ObservedLatency&, const ObservedLatency&) = default;
};

// Engines as profiled.
//
// Corrections, where observed: ITL is that of the profile times `decode`, so that
// the limit is divided by it, and throughput too. A `prefill` below 1 makes prompts cheaper
// (hits in a prefix cache, unless `RequestShape` has them already); one above 1 is ignored:
// a queue, which more engines shorten, cannot be told from slow engines.
//
// These are the corrections of Dynamo's planner, except that it keeps the profiled
// throughput of a slower engine: on its worked example it then grants 5 engines where all are
// full at more than the SLA.  `keeps_throughput` is for comparison with it.
class ProfiledEngines {
 public:
  ProfiledEngines(PrefillProfile prefill, DecodeProfile decode, EngineGpus gpus)
      : prefill_(std::move(prefill)), decode_(std::move(decode)), gpus_(gpus) {}

  // Corrections from what an interval showed under `load`; 1 where it showed nothing: no
  // requests or engines, or a number that is not finite and above 0. KV use is taken from
  // the requests in flight (Little's law).
  Corrections Observe(const ServiceLoad& load, const ObservedLatency& observed) const;

  // Factors must be finite and above 0; others count as 1.
  void Correct(const Corrections& corrections, bool keeps_throughput = false);

  std::optional<EngineCost> Prefill(const RequestShape& shape, const Sla& sla) const;
  std::optional<EngineCost> Decode(const RequestShape& shape, const Sla& sla) const;

  // An engine that reads prompts between tokens: per token its sequences bring in their
  // part of new prompts, whose time adds to the ITL.
  std::optional<EngineCost> Aggregated(const RequestShape& shape, const Sla& sla) const;

 private:
  EngineCost DecodeWithin(double itl, const RequestShape& shape) const;

  PrefillProfile prefill_;
  DecodeProfile decode_;
  EngineGpus gpus_;
  Corrections corrections_;
  bool keeps_throughput_ = false;
};

// What an engine can hold at once.
struct EngineLimits {
  int64_t max_batched_tokens = 8192;  // of an iteration: longer prompts take several
  int64_t max_sequences = 256;
  int64_t max_kv_tokens = 1 << 20;

  friend bool operator==(const EngineLimits&, const EngineLimits&) = default;
};

// Engines whose iterations have a linear cost, as `LatencyModel` fits it: of prefill and of
// decode engines, or of aggregated ones (in `decode`), none as long as it is not known.
//
// A prompt takes whole iterations of `max_batched_tokens` and one for the rest. A decode
// engine runs as many sequences as memory, `max_sequences` and the ITL allow, but one if
// even that is too slow, and each takes as many iterations as it has tokens. So far
// Dynamo's planner. An aggregated engine takes in, per iteration, so many prompt tokens as
// its sequences need to be replaced; the iteration holds these and a token per sequence. The number
// of sequences is a mean there, and real.
class LinearEngines {
 public:
  // Limits below 1 count as 1.
  LinearEngines(std::optional<IterationCost> prefill, std::optional<IterationCost> decode,
                const EngineLimits& limits);

  std::optional<EngineCost> Prefill(const RequestShape& shape, const Sla& sla) const;
  std::optional<EngineCost> Decode(const RequestShape& shape, const Sla& sla) const;
  std::optional<EngineCost> Aggregated(const RequestShape& shape, const Sla& sla) const;

 private:
  double MostSequencesWithin(double ttft, const RequestShape& shape) const;

  std::optional<IterationCost> prefill_;
  std::optional<IterationCost> decode_;
  double max_batched_tokens_ = 0;
  double max_sequences_ = 0;
  double max_kv_tokens_ = 0;
};

}  // namespace tessera

#endif  // TESSERA_REPLICAS_ENGINE_MODEL_H_
