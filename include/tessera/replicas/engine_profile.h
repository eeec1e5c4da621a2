#ifndef TESSERA_REPLICAS_ENGINE_PROFILE_H_
#define TESSERA_REPLICAS_ENGINE_PROFILE_H_

// What engines can do, as measured before they serve: tables and how they are read.
//
// Both tables are read as costs, in GPU-seconds, linearly between samples: that is exact for
// an engine whose iterations take a fixed time plus so much per token, and whatever grows
// with the load grows in between, too.
//
//   const std::vector<PrefillSample> samples = {{1000, 0.06, 9000}, {3000, 0.15, 10000}};
//   const auto prefill = PrefillProfile::Create(samples, "prefill");
//   prefill->Ttft(2000);  // 0.105
//
// Dynamo's planner reads the same files through cubic splines and a grid of 100 x 100
// cells, to which look-ups snap; where nothing meets the SLA it takes the emptiest cell and
// says nothing. Here that answer is marked.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tessera {

// Every number of a profile is in this range, so that none of what follows overflows.
inline constexpr double kMinMeasure = 1e-12;
inline constexpr double kMaxMeasure = 1e12;

// One prompt alone on a prefill engine.
struct PrefillSample {
  double input_tokens = 0;
  double ttft = 0;                       // seconds
  double tokens_per_second_per_gpu = 0;  // of an engine that does nothing else

  friend bool operator==(const PrefillSample&, const PrefillSample&) = default;
};

// TTFT and cost of a prompt by its length.
class PrefillProfile {
 public:
  // `samples` in order of rising `input_tokens`; `path` names the profile. kInvalidArgument,
  // with the path of the field: there are no samples; a number is not in `kMinMeasure` ..
  // `kMaxMeasure`; lengths do not rise; a longer input has a lower TTFT, or costs fewer
  // GPU-seconds (tokens over throughput): `prefill.samples[2].ttft: 0.1 is below 0.15, that
  // of a shorter input`. O(samples).
  static absl::StatusOr<PrefillProfile> Create(std::span<const PrefillSample> samples,
                                               std::string_view path);

  // Seconds until the first token of a prompt alone. Linear between samples; up to the
  // first sample its TTFT (no credit for what was not measured), beyond the last in
  // proportion to the length. Rises with the length. O(log samples), as all below.
  double Ttft(double input_tokens) const;

  // GPU-seconds that a prompt takes. Linear between samples; outside of them in proportion
  // to the length, that is at the throughput of the nearest sample. Rises with the length.
  double GpuSeconds(double input_tokens) const;

  // Tokens over GPU-seconds; that of the first sample for no tokens.
  double TokensPerSecondPerGpu(double input_tokens) const;

 private:
  struct Node {
    double input_tokens = 0;
    double ttft = 0;
    double gpu_seconds = 0;
  };
  PrefillProfile() = default;

  std::vector<Node> nodes_;
};

// Decode engines in a steady state, each sequence `context_tokens` long on average.
struct DecodeSample {
  double context_tokens = 0;
  double kv_usage = 0;                   // part of the KV memory that sequences fill, in (0, 1]
  double itl = 0;                        // seconds
  double tokens_per_second_per_gpu = 0;  // all sequences together

  friend bool operator==(const DecodeSample&, const DecodeSample&) = default;
};

// How a decode engine runs.
struct DecodePoint {
  bool reachable = true;   // false: not even the emptiest engine is fast enough
  double kv_usage = 0;     // at the nearest sampled context that is not shorter
  double itl = 0;          // seconds
  double gpu_seconds = 0;  // per output token

  double tokens_per_second_per_gpu() const { return 1 / gpu_seconds; }

  friend bool operator==(const DecodePoint&, const DecodePoint&) = default;
};

struct DecodeProfileOptions {
  double max_kv_tokens = 0;  // of an engine
  // 0: interpolate. n >= 2: only n equal steps of KV use, 0 and 1 among them, and the
  // nearest of them is looked up, as Dynamo does with n = 100.
  int kv_cells = 0;

  friend bool operator==(const DecodeProfileOptions&, const DecodeProfileOptions&) = default;
};

// ITL and cost of a token by KV use and context length.
class DecodeProfile {
 public:
  // `samples` in order of (context, KV use), at any KV uses for each context; `path`
  // names the profile. kInvalidArgument, with the path of the field: no samples; a number
  // is not in `kMinMeasure` .. `kMaxMeasure`, or a KV use above 1; not in order, or twice
  // the same; an ITL falls as KV use rises: `decode.samples[5].itl: 0.02 is below 0.03,
  // that of a lower KV use`; `kv_cells` not 0 or 2..10000. O(samples).
  static absl::StatusOr<DecodeProfile> Create(std::span<const DecodeSample> samples,
                                              const DecodeProfileOptions& options,
                                              std::string_view path);

  double max_kv_tokens() const { return options_.max_kv_tokens; }

  // KV use of an engine with so many sequences; above 1 if they do not fit.
  double KvUsage(double sequences, double context_tokens) const;

  // How an engine runs at a KV use. ITL is linear in the KV use between samples, and
  // what sequences hold is ITL times throughput (Little), linear as well; both are linear
  // in the context. Outside of the samples the nearest holds, except that beyond the
  // longest context as many fewer sequences fit as they are longer.
  // O(log samples), or O(contexts) if more.
  DecodePoint At(double kv_usage, double context_tokens) const;

  // The cheapest point with an ITL of at most `itl` (within a relative 1e-9, so that an
  // exact tie counts): the fullest, unless a sample below it had more throughput. Never
  // fuller than what was measured. Each sampled context is solved exactly; between two,
  // the cost is linear, and never below that of a shorter context. Where a sampled
  // context up to the next one has no such point, the answer is not `reachable`, and each
  // such context counts with its emptiest point. A lower `itl` or a longer context never costs less
  // (but for the rounding of doubles). O(contexts * log samples), with cells O(contexts * cells).
  DecodePoint CheapestWithin(double itl, double context_tokens) const;

 private:
  struct Node {
    double kv_usage = 0;
    double itl = 0;
    double held_tokens = 0;  // by all sequences, per GPU
  };
  struct Curve {
    double context_tokens = 0;
    std::vector<Node> nodes;            // by KV use: samples, or cells
    std::vector<DecodePoint> cheapest;  // up to each node
  };
  explicit DecodeProfile(const DecodeProfileOptions& options) : options_(options) {}
  static DecodePoint PointOf(const Node& node, double context_tokens);
  static Node Interpolate(const std::vector<Node>& nodes, double kv_usage);
  Node Read(const Curve& curve, double kv_usage) const;
  DecodePoint Solve(const Curve& curve, double itl) const;
  void Finish(Curve& curve) const;

  DecodeProfileOptions options_;
  std::vector<Curve> curves_;  // by context
};

}  // namespace tessera

#endif  // TESSERA_REPLICAS_ENGINE_PROFILE_H_
