#include "tessera/replicas/latency_model.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "src/replicas/robust_fit.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

constexpr size_t kMaxSamples = 64;
constexpr int kBuckets = 16;
constexpr int kBucketsPerSide = 4;
// Samples with which a bucket has its full weight: then a load at which a service stays
// does not outvote the others, and a single sample far out is not a vote like a bucket.
constexpr int kFullWeight = 4;
constexpr int64_t kMaxAmount = int64_t{1} << 40;
constexpr double kMaxSeconds = 1e6;

constexpr std::array<std::string_view, 4> kStateNames = {"ready", "too_few_samples", "no_spread",
                                                         "negative_slope"};

// Indices of the terms of an observation.
enum Term : size_t { kFixed, kPrefillToken, kSequence, kKvToken };

// What an iteration of a kind costs, in the order in which it is fitted.
std::span<const size_t> TermsOf(IterationKind kind) {
  static constexpr std::array<size_t, 2> kOfPrefill = {kFixed, kPrefillToken};
  static constexpr std::array<size_t, 3> kOfDecode = {kFixed, kKvToken, kSequence};
  static constexpr std::array<size_t, 4> kOfMixed = {kFixed, kPrefillToken, kKvToken, kSequence};
  switch (kind) {
    case IterationKind::kPrefill:
      return kOfPrefill;
    case IterationKind::kDecode:
      return kOfDecode;
    case IterationKind::kMixed:
      break;
  }
  return kOfMixed;
}

absl::Status CheckRange(int64_t value, int64_t low, int64_t high, std::string_view path,
                        std::string_view field) {
  if (value >= low && value <= high) return absl::OkStatus();
  return InvalidAt(absl::StrCat(ToAbsl(path), ".", ToAbsl(field)),
                   absl::StrCat(value, " is not in ", low, "..", high));
}

bool IsAmount(int64_t value) { return value >= 0 && value <= kMaxAmount; }

// The range, of `count` equal ones in 0..most, in which `value` lies.
int RangeOf(int64_t value, int64_t most, int count) {
  return static_cast<int>(std::min(value, most - 1) * count / most);
}

// Drops terms until no coefficient that may be missing is below 0.
LatencyFit FitWithoutNegatives(std::span<const Observation> observations,
                               std::vector<size_t> uses) {
  const auto drop = [&uses](size_t term) { return std::erase(uses, term) > 0; };
  while (true) {
    const std::optional<Terms> fit = RobustFit(observations, uses);
    if (!fit) {
      if (drop(kSequence)) continue;
      return {FitState::kNoSpread, {}};
    }
    if ((*fit)[kSequence] < 0 && drop(kSequence)) continue;
    if ((*fit)[kPrefillToken] < 0 || (*fit)[kKvToken] < 0) {
      // Between sequences and their tokens the sum is certain, the parts may not be.
      if ((*fit)[kPrefillToken] >= 0 && drop(kSequence)) continue;
      return {FitState::kNegativeSlope, {}};
    }
    if ((*fit)[kFixed] < 0 && drop(kFixed)) continue;
    return {FitState::kReady,
            {(*fit)[kFixed], (*fit)[kPrefillToken], (*fit)[kSequence], (*fit)[kKvToken]}};
  }
}

}  // namespace

std::string_view ToString(FitState state) { return kStateNames[static_cast<size_t>(state)]; }

absl::StatusOr<LatencyModel> LatencyModel::Create(const LatencyModelOptions& options,
                                                  std::string_view path) {
  const auto check = [path](int64_t value, int64_t low, int64_t high, std::string_view field) {
    return CheckRange(value, low, high, path, field);
  };
  TESSERA_RETURN_IF_ERROR(check(options.max_prefill_tokens, 1, kMaxAmount, "max_prefill_tokens"));
  TESSERA_RETURN_IF_ERROR(check(options.max_sequences, 1, kMaxAmount, "max_sequences"));
  TESSERA_RETURN_IF_ERROR(check(options.max_kv_tokens, 1, kMaxAmount, "max_kv_tokens"));
  TESSERA_RETURN_IF_ERROR(check(options.warm_up, 0, kMaxAmount, "warm_up"));
  TESSERA_RETURN_IF_ERROR(
      check(options.min_samples, kMaxTerms, static_cast<int64_t>(kMaxSamples), "min_samples"));
  return LatencyModel(options);
}

int LatencyModel::BucketOf(const IterationSample& sample) const {
  const int of_prefill =
      RangeOf(sample.prefill_tokens, options_.max_prefill_tokens,
              options_.kind == IterationKind::kPrefill ? kBuckets : kBucketsPerSide);
  if (options_.kind == IterationKind::kPrefill) return of_prefill;
  const int of_kv = RangeOf(sample.kv_tokens, options_.max_kv_tokens, kBucketsPerSide);
  const int other = options_.kind == IterationKind::kMixed
                        ? of_prefill
                        : RangeOf(sample.sequences, options_.max_sequences, kBucketsPerSide);
  return other * kBucketsPerSide + of_kv;
}

bool LatencyModel::Observe(const IterationSample& observed) {
  const bool is_sound = observed.seconds > 0 && observed.seconds <= kMaxSeconds &&
                        IsAmount(observed.prefill_tokens) && IsAmount(observed.sequences) &&
                        IsAmount(observed.kv_tokens);
  if (!is_sound) return false;
  IterationSample sample = observed;
  if (options_.kind == IterationKind::kPrefill) sample.sequences = sample.kv_tokens = 0;
  if (options_.kind == IterationKind::kDecode) sample.prefill_tokens = 0;
  if (sample.prefill_tokens == 0 && sample.sequences == 0) return false;
  if (seen_ < options_.warm_up) {
    ++seen_;
    return false;
  }
  kept_.push_back({sample, BucketOf(sample)});
  if (kept_.size() > kMaxSamples) {
    std::array<int, kBuckets> sizes{};
    for (const Kept& kept : kept_) ++sizes[static_cast<size_t>(kept.bucket)];
    const int fullest =
        static_cast<int>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
    kept_.erase(std::ranges::find(kept_, fullest, &Kept::bucket));
  }
  return true;
}

LatencyFit LatencyModel::Fit() const {
  if (num_samples() < options_.min_samples) return {FitState::kTooFewSamples, {}};
  std::array<int, kBuckets> sizes{};
  for (const Kept& kept : kept_) ++sizes[static_cast<size_t>(kept.bucket)];
  // Terms are scaled to the engine's maximums, so that none drowns the others.
  const Terms scale = {1, static_cast<double>(options_.max_prefill_tokens),
                       static_cast<double>(options_.max_sequences),
                       static_cast<double>(options_.max_kv_tokens)};
  std::vector<Observation> observations;
  observations.reserve(kept_.size());
  for (const auto& [s, bucket] : kept_) {
    const int size = sizes[static_cast<size_t>(bucket)];
    observations.push_back({{1, static_cast<double>(s.prefill_tokens) / scale[kPrefillToken],
                             static_cast<double>(s.sequences) / scale[kSequence],
                             static_cast<double>(s.kv_tokens) / scale[kKvToken]},
                            s.seconds,
                            static_cast<double>(std::min(size, kFullWeight)) / size});
  }
  const std::span<const size_t> terms = TermsOf(options_.kind);
  LatencyFit fit = FitWithoutNegatives(observations, {terms.begin(), terms.end()});
  fit.cost.per_prefill_token /= scale[kPrefillToken];
  fit.cost.per_sequence /= scale[kSequence];
  fit.cost.per_kv_token /= scale[kKvToken];
  return fit;
}

}  // namespace tessera
