#include "src/replicas/fluid_service.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tessera/base/status.h"

namespace tessera {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Requests through one stage in a tick: those that get on, and how long they waited.
struct Passage {
  double served = 0;
  double delay = 0;  // mean seconds
};

// `per_second` is what the stage can do; `waiting` becomes what is left.
Passage PassThrough(double arrived, double per_second, double seconds, double& waiting) {
  const double before = waiting;
  const double served = std::min(before + arrived, per_second * seconds);
  waiting = before + arrived - served;
  // Below a billionth of the work it is rounding.
  if (waiting <= 1e-9 * served) waiting = 0;
  const double mean = (before + waiting) / 2;
  if (mean == 0) return {served, 0};
  return {served, per_second > 0 ? mean / per_second : kInfinity};
}

// Mean wait for one of `servers` that take `service` seconds each, at `use` < 1.
double QueueWait(double use, double servers, double service) {
  return std::pow(use, std::sqrt(2 * (servers + 1)) - 1) * service / (2 * servers * (1 - use));
}

}  // namespace

absl::StatusOr<FluidService> FluidService::Create(const ServiceSpec& spec) {
  if (spec.rules.mode == ServiceMode::kAggregated) {
    return InvalidAt("mode", "only prefill and decode engines can be replayed");
  }
  FluidService service(spec,
                       LinearEngines(spec.prefill.iteration, spec.decode.iteration, spec.limits));
  if (spec.decode.iteration) return service;
  TESSERA_ASSIGN_OR_RETURN(PrefillProfile prefill,
                           PrefillProfile::Create(spec.prefill.samples, "engines.prefill.profile"));
  DecodeProfileOptions options;
  options.max_kv_tokens = static_cast<double>(spec.limits.max_kv_tokens);
  TESSERA_ASSIGN_OR_RETURN(
      service.decode_profile_,
      DecodeProfile::Create(spec.decode.samples, options, "engines.decode.profile"));
  service.profiled_.emplace(std::move(prefill), *service.decode_profile_, spec.rules.gpus);
  return service;
}

double FluidService::PromptSeconds(double tokens) const {
  const RequestShape shape = {tokens, tokens, 0};
  const auto cost = profiled_ ? profiled_->Prefill(shape, sla_) : linear_.Prefill(shape, sla_);
  return cost ? cost->engine_seconds : kInfinity;
}

double FluidService::Ttft(double tokens) const {
  const RequestShape shape = {tokens, tokens, 0};
  const auto cost = profiled_ ? profiled_->Prefill(shape, sla_) : linear_.Prefill(shape, sla_);
  return cost ? cost->ttft : kInfinity;
}

double FluidService::Itl(double sequences, double context) const {
  // A token is only made where there is a sequence.
  const double n = std::max(sequences, 1.0);
  if (decode_profile_)
    return decode_profile_->At(decode_profile_->KvUsage(n, context), context).itl;
  return decode_cost_->Seconds(0, n, n * context);
}

double FluidService::MostSequences(double context) const {
  const double held = std::floor(static_cast<double>(limits_.max_kv_tokens) / context);
  return std::max(std::min(held, static_cast<double>(limits_.max_sequences)), 1.0);
}

// The batch at which an engine makes so many tokens: the more sequences the more tokens.
double FluidService::SequencesFor(double tokens_per_second, double context) const {
  double low = 0, high = MostSequences(context);
  for (int step = 0; step < 50; ++step) {
    const double middle = low + (high - low) / 2;
    (middle < tokens_per_second * Itl(middle, context) ? low : high) = middle;
  }
  return high;
}

// Returns the prompts that were read.
double FluidService::ServePrompts(const ServiceLoad& load, double engines, double seconds,
                                  double& waiting, TickLatency& latency) const {
  const double tokens = load.input_tokens * (1 - load.prefix_hit_rate);
  const double service = PromptSeconds(tokens);
  const double arrived = load.request_rate * seconds;
  const double before = waiting;
  const Passage passage =
      PassThrough(arrived, service > 0 ? engines / service : kInfinity, seconds, waiting);
  double delay = passage.delay;
  const double use = load.request_rate * service / engines;
  if (use < 1) delay += std::min(QueueWait(use, engines, service), seconds);
  latency.waiting_prompts = (before + waiting) / 2;
  if (use < 1) latency.waiting_prompts += load.request_rate * (delay - passage.delay);
  latency.ttft = Ttft(tokens) + delay;
  return passage.served;
}

void FluidService::ServeTokens(const ServiceLoad& load, double arrived, double engines,
                               double seconds, double& waiting, TickLatency& latency) const {
  const double context = load.input_tokens + load.output_tokens / 2;
  const double most = MostSequences(context);
  const double per_engine = most / Itl(most, context) / load.output_tokens;
  const Passage passage = PassThrough(
      arrived, load.output_tokens > 0 ? engines * per_engine : kInfinity, seconds, waiting);
  latency.ttft += passage.delay;
  latency.sequences = most;
  if (waiting == 0) {
    latency.sequences = SequencesFor(
        passage.served / seconds * load.output_tokens / std::max(engines, 1.0), context);
  }
  latency.itl = load.output_tokens > 0 ? Itl(latency.sequences, context) : 0;
}

TickLatency FluidService::Serve(const ServiceLoad& load, const ReplicaCounts& ready, double seconds,
                                Backlog& backlog) const {
  TickLatency latency;
  if (load.request_rate == 0 && backlog.prefill == 0 && backlog.decode == 0) return latency;
  const double read =
      ServePrompts(load, static_cast<double>(ready.prefill), seconds, backlog.prefill, latency);
  ServeTokens(load, read, static_cast<double>(ready.decode), seconds, backlog.decode, latency);
  return latency;
}

}  // namespace tessera
