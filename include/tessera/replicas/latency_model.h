#ifndef TESSERA_REPLICAS_LATENCY_MODEL_H_
#define TESSERA_REPLICAS_LATENCY_MODEL_H_

// What an iteration of an engine takes, learnt while it serves.
//
//   LatencyModel model = *LatencyModel::Create({.kind = IterationKind::kDecode}, "decode");
//   for (const IterationSample& iteration : observed) model.Observe(iteration);
//   const LatencyFit fit = model.Fit();
//   if (fit.state == FitState::kReady) fit.cost.Seconds(0, 50, 157500);

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tessera {

// One forward pass of an engine: what it worked on, and for how long.
struct IterationSample {
  double seconds = 0;
  int64_t prefill_tokens = 0;  // of prompts
  int64_t sequences = 0;       // that got a token
  int64_t kv_tokens = 0;       // that these sequences hold

  friend bool operator==(const IterationSample&, const IterationSample&) = default;
};

// Seconds of an iteration, linear in what it works on. No part is negative.
struct IterationCost {
  double fixed = 0;
  double per_prefill_token = 0;
  double per_sequence = 0;
  double per_kv_token = 0;

  double Seconds(double prefill_tokens, double sequences, double kv_tokens) const {
    return fixed + per_prefill_token * prefill_tokens + per_sequence * sequences +
           per_kv_token * kv_tokens;
  }

  friend bool operator==(const IterationCost&, const IterationCost&) = default;
};

// Whose iterations they are; what does not belong there is taken for 0.
enum class IterationKind {
  kPrefill,  // prefill tokens only
  kDecode,   // sequences and their KV tokens only
  kMixed,    // all, of an aggregated engine
};

enum class FitState {
  kReady,
  kTooFewSamples,
  kNoSpread,       // iterations too much alike to tell a fixed cost from one per token
  kNegativeSlope,  // less time for more tokens: whatever that was, it was no load
};

// "too_few_samples".
std::string_view ToString(FitState state);

// `cost` counts only if `state` is kReady.
struct LatencyFit {
  FitState state = FitState::kTooFewSamples;
  IterationCost cost;

  friend bool operator==(const LatencyFit&, const LatencyFit&) = default;
};

// The maximums are those of the engine; they spread the samples that are kept.
struct LatencyModelOptions {
  IterationKind kind = IterationKind::kDecode;
  int64_t max_prefill_tokens = 8192;  // of an iteration
  int64_t max_sequences = 256;
  int64_t max_kv_tokens = 1 << 20;
  int64_t warm_up = 16;     // the first iterations, which compile and allocate, are ignored
  int64_t min_samples = 8;  // before that there is no fit

  friend bool operator==(const LatencyModelOptions&, const LatencyModelOptions&) = default;
};

// A linear model of iterations over a bounded sample of them. 64 are kept in 16 buckets:
// 16 equal ranges of prefill tokens, or 4 x 4 of sequences and KV tokens, or of prefill and
// KV tokens for mixed ones; beyond that the oldest of the fullest bucket goes (ties: the
// lowest bucket), so that a service which stays at one load does not forget the others.
//
// The fit withstands samples that do not belong (the passes of a cold start, a pause) as
// long as they are fewer than half, wherever they lie, where a bucket counts as at most
// four samples. It starts from the line through a few samples that is closest to half of
// all (least trimmed deviations over 500 subsets, always the same), and ends with least
// squares over all that lie within 4 deviations of it. A slope per prefill or KV token
// below 0 rejects the fit; a fixed cost below 0, or one per sequence, which often cannot be
// told from that of the KV tokens, is taken for 0 and the rest fitted again.
//
// The buckets and the rules about slopes are Dynamo's, which fits all of its samples, cold
// ones included (dynamo#12430). The model depends on its observations alone.
class LatencyModel {
 public:
  // kInvalidArgument: a maximum is not in 1..2^40, `warm_up` not in 0..2^40, or
  // `min_samples` not in 4..64: `decode.min_samples: 2 is not in 4..64`.
  static absl::StatusOr<LatencyModel> Create(const LatencyModelOptions& options,
                                             std::string_view path);

  // False if the sample was not kept: its time is not in (0, 10^6] seconds, an amount is
  // not in 0..2^40, it did nothing that belongs to the kind, or it was warming up.
  bool Observe(const IterationSample& sample);

  // O(1): 500 subsets of at most 64 samples, a millisecond or two. Call it once per decision.
  LatencyFit Fit() const;

  int64_t num_samples() const { return static_cast<int64_t>(kept_.size()); }

 private:
  struct Kept {
    IterationSample sample;
    int bucket = 0;
  };
  explicit LatencyModel(const LatencyModelOptions& options) : options_(options) {}
  int BucketOf(const IterationSample& sample) const;

  LatencyModelOptions options_;
  int64_t seen_ = 0;
  std::vector<Kept> kept_;  // oldest first
};

}  // namespace tessera

#endif  // TESSERA_REPLICAS_LATENCY_MODEL_H_
