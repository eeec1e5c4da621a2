#include "tessera/replicas/engine_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/replicas/interpolation.h"

namespace tessera {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool IsAboveZero(double value) { return std::isfinite(value) && value > 0; }

// The largest x in `low`..`high` for which `holds`, which must not hold again above an x
// where it does not; `low` if it holds nowhere.
template <typename Predicate>
double LargestThatHolds(double low, double high, const Predicate& holds) {
  if (holds(high)) return high;
  // Each step halves the distance; after these it is that of two doubles.
  for (int step = 0; step < 64; ++step) {
    const double middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

std::optional<IterationCost> Sound(const std::optional<IterationCost>& cost) {
  if (!cost) return std::nullopt;
  for (const double part :
       {cost->fixed, cost->per_prefill_token, cost->per_sequence, cost->per_kv_token}) {
    if (!std::isfinite(part) || part < 0) return std::nullopt;
  }
  return cost;
}

double AtLeastOne(int64_t limit) { return static_cast<double>(std::max<int64_t>(limit, 1)); }

}  // namespace

Corrections ProfiledEngines::Observe(const ServiceLoad& load,
                                     const ObservedLatency& observed) const {
  Corrections corrections;
  const double prefill_tokens = load.input_tokens * (1 - load.prefix_hit_rate);
  const double prefill = observed.ttft / prefill_.Ttft(prefill_tokens);
  if (IsAboveZero(prefill)) corrections.prefill = prefill;
  const double sequences =
      load.request_rate * observed.request_seconds / static_cast<double>(observed.decode_engines);
  const double context = load.input_tokens + load.output_tokens / 2;
  if (!IsAboveZero(sequences) || !IsAboveZero(context)) return corrections;
  const double decode = observed.itl / decode_.At(decode_.KvUsage(sequences, context), context).itl;
  if (IsAboveZero(decode)) corrections.decode = decode;
  return corrections;
}

void ProfiledEngines::Correct(const Corrections& corrections, bool keeps_throughput) {
  corrections_.prefill = IsAboveZero(corrections.prefill) ? std::min(corrections.prefill, 1.0) : 1;
  corrections_.decode = IsAboveZero(corrections.decode) ? corrections.decode : 1;
  keeps_throughput_ = keeps_throughput;
}

std::optional<EngineCost> ProfiledEngines::Prefill(const RequestShape& shape,
                                                   const Sla& sla) const {
  EngineCost cost;
  cost.ttft = prefill_.Ttft(shape.prefill_tokens) * corrections_.prefill;
  cost.ttft_reachable = Keeps(cost.ttft, sla.ttft);
  cost.engine_seconds =
      prefill_.GpuSeconds(shape.prefill_tokens) * corrections_.prefill / AtLeastOne(gpus_.prefill);
  return cost;
}

EngineCost ProfiledEngines::DecodeWithin(double itl, const RequestShape& shape) const {
  const DecodePoint point =
      decode_.CheapestWithin(itl / corrections_.decode, shape.context_tokens());
  EngineCost cost;
  cost.itl = point.itl * corrections_.decode;
  cost.itl_reachable = point.reachable;
  cost.fits = Keeps(shape.full_tokens(), decode_.max_kv_tokens());
  cost.engine_seconds = shape.output_tokens * point.gpu_seconds / AtLeastOne(gpus_.decode) *
                        (keeps_throughput_ ? 1 : corrections_.decode);
  return cost;
}

std::optional<EngineCost> ProfiledEngines::Decode(const RequestShape& shape, const Sla& sla) const {
  return DecodeWithin(sla.itl, shape);
}

// Let an engine that only decodes take y seconds per request within an ITL of x, and a
// prompt p. In a steady state the engine spends y of every y + p on decoding, so that
// the ITL is x (y + p) / y. That grows with x; we look for the largest.
std::optional<EngineCost> ProfiledEngines::Aggregated(const RequestShape& shape,
                                                      const Sla& sla) const {
  const double prompt =
      prefill_.GpuSeconds(shape.prefill_tokens) * corrections_.prefill / AtLeastOne(gpus_.decode);
  const double alone = prefill_.Ttft(shape.prefill_tokens) * corrections_.prefill;
  if (shape.output_tokens == 0) {
    EngineCost cost;
    cost.engine_seconds = prompt;
    cost.ttft = alone;
    cost.ttft_reachable = Keeps(alone, sla.ttft);
    cost.fits = Keeps(shape.full_tokens(), decode_.max_kv_tokens());
    return cost;
  }
  const double within_itl = LargestThatHolds(0, sla.itl, [&](double x) {
    const double y = DecodeWithin(x, shape).engine_seconds;
    return Keeps(x * (y + prompt), sla.itl * y);
  });
  // A prompt waits for the iteration that runs when it comes.
  const double within_ttft = std::max(sla.ttft * (1 + kRounding) - alone, 0.0);
  EngineCost cost = DecodeWithin(std::min(within_itl, within_ttft), shape);
  cost.itl_reachable = DecodeWithin(within_itl, shape).itl_reachable;
  cost.ttft_reachable = DecodeWithin(within_ttft, shape).itl_reachable;
  cost.ttft = alone + cost.itl;
  cost.itl *= (cost.engine_seconds + prompt) / cost.engine_seconds;
  cost.engine_seconds += prompt;
  return cost;
}

LinearEngines::LinearEngines(std::optional<IterationCost> prefill,
                             std::optional<IterationCost> decode, const EngineLimits& limits)
    : prefill_(Sound(prefill)),
      decode_(Sound(decode)),
      max_batched_tokens_(AtLeastOne(limits.max_batched_tokens)),
      max_sequences_(AtLeastOne(limits.max_sequences)),
      max_kv_tokens_(AtLeastOne(limits.max_kv_tokens)) {}

std::optional<EngineCost> LinearEngines::Prefill(const RequestShape& shape, const Sla& sla) const {
  if (!prefill_) return std::nullopt;
  const double iterations = std::max(std::ceil(shape.prefill_tokens / max_batched_tokens_), 1.0);
  EngineCost cost;
  cost.ttft = cost.engine_seconds =
      prefill_->fixed * iterations + prefill_->per_prefill_token * shape.prefill_tokens;
  cost.ttft_reachable = Keeps(cost.ttft, sla.ttft);
  return cost;
}

// Every operation below is monotone in the lengths and in the limit, rounded as it is.
std::optional<EngineCost> LinearEngines::Decode(const RequestShape& shape, const Sla& sla) const {
  if (!decode_) return std::nullopt;
  const double context = shape.context_tokens();
  const double per_sequence = decode_->per_sequence + decode_->per_kv_token * context;
  const auto seconds = [&](int64_t n) {
    return decode_->fixed + per_sequence * static_cast<double>(n);
  };
  int64_t sequences = 1;
  int64_t beyond = static_cast<int64_t>(std::min(max_kv_tokens_ / context, max_sequences_)) + 1;
  while (beyond - sequences > 1) {
    const int64_t middle = sequences + (beyond - sequences) / 2;
    (Keeps(seconds(middle), sla.itl) ? sequences : beyond) = middle;
  }
  EngineCost cost;
  cost.itl = seconds(sequences);
  cost.itl_reachable = Keeps(cost.itl, sla.itl);
  cost.fits = Keeps(shape.full_tokens(), max_kv_tokens_);
  cost.engine_seconds =
      shape.output_tokens * (decode_->fixed / static_cast<double>(sequences) + per_sequence);
  return cost;
}

namespace {

// A prompt that goes through an aggregated engine with `sequences` beside it, each of
// which takes a token of every iteration.
double AggregatedTtft(const IterationCost& cost, double prefill_tokens, double sequences,
                      double per_sequence, double max_batched_tokens) {
  const double room = max_batched_tokens - sequences;
  if (room <= 0) return kInfinity;
  const double iterations = std::max(std::ceil(prefill_tokens / room), 1.0);
  return iterations * (cost.fixed + per_sequence * sequences) +
         cost.per_prefill_token * prefill_tokens;
}

}  // namespace

double LinearEngines::MostSequencesWithin(double ttft, const RequestShape& shape) const {
  const double per_sequence =
      decode_->per_sequence + decode_->per_kv_token * shape.context_tokens();
  const auto holds = [&](double sequences) {
    return Keeps(AggregatedTtft(*decode_, shape.prefill_tokens, sequences, per_sequence,
                                max_batched_tokens_),
                 ttft);
  };
  return holds(1) ? LargestThatHolds(1, max_sequences_, holds) : 0;
}

// In iterations per request, I: output tokens over sequences. An iteration then takes in
// prefill_tokens / I, and takes fixed + (prompt + output) / I, where prompt and output are
// the seconds of their tokens. Each bound on the sequences is one from below on I.
std::optional<EngineCost> LinearEngines::Aggregated(const RequestShape& shape,
                                                    const Sla& sla) const {
  if (!decode_) return std::nullopt;
  // 1. What a request costs apart from the fixed part of its iterations.
  const double per_sequence =
      decode_->per_sequence + decode_->per_kv_token * shape.context_tokens();
  const double prompt = decode_->per_prefill_token * shape.prefill_tokens;
  const double output = shape.output_tokens * per_sequence;
  // 2. Iterations that it needs: for all tokens to go through, for memory and sequences.
  const double through = (shape.prefill_tokens + shape.output_tokens) / max_batched_tokens_;
  const double held = std::max(shape.output_tokens * shape.context_tokens() / max_kv_tokens_,
                               shape.output_tokens / max_sequences_);
  // 3. For either part of the SLA. One sequence is the least, unless prompts fill the engine.
  const double most = std::max(shape.output_tokens, through);
  const double rest = sla.itl * (1 + kRounding) - decode_->fixed;
  const double for_itl = shape.output_tokens == 0 ? 0
                         : rest > 0               ? (prompt + output) / rest
                                                  : kInfinity;
  const double within_ttft = MostSequencesWithin(sla.ttft, shape);
  const double for_ttft = within_ttft > 0 ? shape.output_tokens / within_ttft : kInfinity;
  const double iterations = std::min(most, std::max({through, held, for_itl, for_ttft}));
  // 4. What becomes of them.
  EngineCost cost;
  cost.ttft_reachable = within_ttft > 0;
  cost.fits = Keeps(shape.full_tokens(), max_kv_tokens_);
  if (iterations == 0) return cost;
  const auto itl = [&](double n) {
    return decode_->fixed + prompt / n + per_sequence * std::max(shape.output_tokens / n, 1.0);
  };
  cost.engine_seconds = decode_->fixed * iterations + output + prompt;
  cost.ttft = AggregatedTtft(*decode_, shape.prefill_tokens,
                             std::max(shape.output_tokens / iterations, 1.0), per_sequence,
                             max_batched_tokens_);
  if (shape.output_tokens == 0) return cost;
  cost.itl = itl(iterations);
  cost.itl_reachable = Keeps(itl(most), sla.itl);
  return cost;
}

}  // namespace tessera
