#include "tessera/replicas/engine_profile.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/replicas/interpolation.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

constexpr int kMostCells = 10000;

// Where a number of a profile stands, for messages.
struct Place {
  std::string_view profile;
  size_t sample = 0;

  absl::Status Invalid(std::string_view field, std::string_view message) const {
    return InvalidAt(absl::StrCat(ToAbsl(profile), ".samples[", sample, "].", ToAbsl(field)),
                     message);
  }
};

bool IsMeasure(double value) { return value >= kMinMeasure && value <= kMaxMeasure; }

std::string NotAMeasure(double value) {
  return absl::StrCat(value, " is not in ", kMinMeasure, "..", kMaxMeasure);
}

absl::Status CheckMeasure(double value, const Place& place, std::string_view field) {
  if (IsMeasure(value)) return absl::OkStatus();
  return place.Invalid(field, NotAMeasure(value));
}

absl::Status CheckSample(const PrefillSample& sample, const Place& place) {
  TESSERA_RETURN_IF_ERROR(CheckMeasure(sample.input_tokens, place, "input_tokens"));
  TESSERA_RETURN_IF_ERROR(CheckMeasure(sample.ttft, place, "ttft"));
  return CheckMeasure(sample.tokens_per_second_per_gpu, place, "tokens_per_second_per_gpu");
}

absl::Status CheckSample(const DecodeSample& sample, const Place& place) {
  TESSERA_RETURN_IF_ERROR(CheckMeasure(sample.context_tokens, place, "context_tokens"));
  TESSERA_RETURN_IF_ERROR(CheckMeasure(sample.kv_usage, place, "kv_usage"));
  if (sample.kv_usage > 1) {
    return place.Invalid("kv_usage", absl::StrCat(sample.kv_usage, " is above 1"));
  }
  TESSERA_RETURN_IF_ERROR(CheckMeasure(sample.itl, place, "itl"));
  return CheckMeasure(sample.tokens_per_second_per_gpu, place, "tokens_per_second_per_gpu");
}

// `next` against the sample before it.
absl::Status CheckOrder(const PrefillSample& last, const PrefillSample& next, const Place& place) {
  if (next.input_tokens <= last.input_tokens) {
    return place.Invalid("input_tokens", absl::StrCat(next.input_tokens, " is not above ",
                                                      last.input_tokens, " of the sample before"));
  }
  if (next.ttft < last.ttft) {
    return place.Invalid(
        "ttft", absl::StrCat(next.ttft, " is below ", last.ttft, ", that of a shorter input"));
  }
  if (next.input_tokens / next.tokens_per_second_per_gpu <
      last.input_tokens / last.tokens_per_second_per_gpu) {
    return place.Invalid(
        "tokens_per_second_per_gpu",
        absl::StrCat(next.tokens_per_second_per_gpu, " makes an input of ", next.input_tokens,
                     " tokens cheaper than one of ", last.input_tokens));
  }
  return absl::OkStatus();
}

absl::Status CheckOrder(const DecodeSample& last, const DecodeSample& next, const Place& place) {
  if (next.context_tokens > last.context_tokens) return absl::OkStatus();
  if (next.context_tokens < last.context_tokens) {
    return place.Invalid("context_tokens",
                         absl::StrCat(next.context_tokens, " is below ", last.context_tokens,
                                      " of the sample before"));
  }
  if (next.kv_usage <= last.kv_usage) {
    return place.Invalid("kv_usage", absl::StrCat(next.kv_usage, " is not above ", last.kv_usage,
                                                  " of the sample before"));
  }
  if (next.itl < last.itl) {
    return place.Invalid(
        "itl", absl::StrCat(next.itl, " is below ", last.itl, ", that of a lower KV use"));
  }
  return absl::OkStatus();
}

template <typename Sample>
absl::Status CheckSamples(std::span<const Sample> samples, std::string_view path) {
  if (samples.empty()) {
    return InvalidAt(absl::StrCat(ToAbsl(path), ".samples"), "there are none");
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    const Place place = {path, i};
    TESSERA_RETURN_IF_ERROR(CheckSample(samples[i], place));
    if (i > 0) TESSERA_RETURN_IF_ERROR(CheckOrder(samples[i - 1], samples[i], place));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const DecodeProfileOptions& options, std::string_view path) {
  if (!IsMeasure(options.max_kv_tokens)) {
    return InvalidAt(absl::StrCat(ToAbsl(path), ".max_kv_tokens"),
                     NotAMeasure(options.max_kv_tokens));
  }
  if (options.kv_cells != 0 && (options.kv_cells < 2 || options.kv_cells > kMostCells)) {
    return InvalidAt(absl::StrCat(ToAbsl(path), ".kv_cells"),
                     absl::StrCat(options.kv_cells, " is neither 0 nor in 2..", kMostCells));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PrefillProfile> PrefillProfile::Create(std::span<const PrefillSample> samples,
                                                      std::string_view path) {
  TESSERA_RETURN_IF_ERROR(CheckSamples(samples, path));
  PrefillProfile profile;
  profile.nodes_.reserve(samples.size());
  for (const PrefillSample& sample : samples) {
    profile.nodes_.push_back(
        {sample.input_tokens, sample.ttft, sample.input_tokens / sample.tokens_per_second_per_gpu});
  }
  return profile;
}

double PrefillProfile::Ttft(double input_tokens) const {
  const auto next = std::ranges::lower_bound(nodes_, input_tokens, {}, &Node::input_tokens);
  if (next == nodes_.begin()) return next->ttft;
  const Node& last = *(next - 1);
  if (next == nodes_.end()) return last.ttft * (input_tokens / last.input_tokens);
  return OnLine(input_tokens, last.input_tokens, last.ttft, next->input_tokens, next->ttft);
}

double PrefillProfile::GpuSeconds(double input_tokens) const {
  const auto next = std::ranges::lower_bound(nodes_, input_tokens, {}, &Node::input_tokens);
  if (next == nodes_.begin() || next == nodes_.end()) {
    const Node& nearest = next == nodes_.end() ? *(next - 1) : *next;
    return nearest.gpu_seconds * (input_tokens / nearest.input_tokens);
  }
  const Node& last = *(next - 1);
  return OnLine(input_tokens, last.input_tokens, last.gpu_seconds, next->input_tokens,
                next->gpu_seconds);
}

double PrefillProfile::TokensPerSecondPerGpu(double input_tokens) const {
  const double tokens = std::max(input_tokens, nodes_.front().input_tokens);
  return tokens / GpuSeconds(tokens);
}

absl::StatusOr<DecodeProfile> DecodeProfile::Create(std::span<const DecodeSample> samples,
                                                    const DecodeProfileOptions& options,
                                                    std::string_view path) {
  TESSERA_RETURN_IF_ERROR(CheckOptions(options, path));
  TESSERA_RETURN_IF_ERROR(CheckSamples(samples, path));
  DecodeProfile profile(options);
  for (const DecodeSample& sample : samples) {
    if (profile.curves_.empty() || profile.curves_.back().context_tokens < sample.context_tokens) {
      profile.curves_.push_back({sample.context_tokens, {}, {}});
    }
    profile.curves_.back().nodes.push_back(
        {sample.kv_usage, sample.itl,
         sample.tokens_per_second_per_gpu * sample.itl * sample.context_tokens});
  }
  for (Curve& curve : profile.curves_) profile.Finish(curve);
  return profile;
}

DecodePoint DecodeProfile::PointOf(const Node& node, double context_tokens) {
  return {true, node.kv_usage, node.itl, node.itl * context_tokens / node.held_tokens};
}

DecodeProfile::Node DecodeProfile::Interpolate(const std::vector<Node>& nodes, double kv_usage) {
  const auto next = std::ranges::lower_bound(nodes, kv_usage, {}, &Node::kv_usage);
  const Node& above = next == nodes.end() ? nodes.back() : *next;
  const Node& below = next == nodes.begin() ? nodes.front() : *(next - 1);
  if (above.kv_usage <= below.kv_usage) return {kv_usage, above.itl, above.held_tokens};
  return {kv_usage, OnLine(kv_usage, below.kv_usage, below.itl, above.kv_usage, above.itl),
          OnLine(kv_usage, below.kv_usage, below.held_tokens, above.kv_usage, above.held_tokens)};
}

// Replaces samples by cells where these are asked for, and finds what is cheapest.
void DecodeProfile::Finish(Curve& curve) const {
  if (options_.kv_cells > 0) {
    std::vector<Node> cells;
    for (int i = 0; i < options_.kv_cells; ++i) {
      const double kv_usage = static_cast<double>(i) / (options_.kv_cells - 1);
      if (i > 0 && kv_usage > curve.nodes.back().kv_usage) break;
      cells.push_back(Interpolate(curve.nodes, kv_usage));
    }
    curve.nodes = std::move(cells);
  }
  curve.cheapest.reserve(curve.nodes.size());
  for (const Node& node : curve.nodes) {
    const DecodePoint point = PointOf(node, curve.context_tokens);
    const bool is_cheapest =
        curve.cheapest.empty() || point.gpu_seconds <= curve.cheapest.back().gpu_seconds;
    curve.cheapest.push_back(is_cheapest ? point : curve.cheapest.back());
  }
}

double DecodeProfile::KvUsage(double sequences, double context_tokens) const {
  return sequences * context_tokens / options_.max_kv_tokens;
}

DecodeProfile::Node DecodeProfile::Read(const Curve& curve, double kv_usage) const {
  if (options_.kv_cells == 0) return Interpolate(curve.nodes, kv_usage);
  const double cell = std::round(kv_usage * (options_.kv_cells - 1));
  const double last = static_cast<double>(curve.nodes.size() - 1);
  return curve.nodes[cell > 0 ? static_cast<size_t>(std::min(cell, last)) : 0];
}

DecodePoint DecodeProfile::At(double kv_usage, double context_tokens) const {
  const auto next = std::ranges::lower_bound(curves_, context_tokens, {}, &Curve::context_tokens);
  const Curve& above = next == curves_.end() ? curves_.back() : *next;
  const Curve& below = next == curves_.begin() ? curves_.front() : *(next - 1);
  Node node = Read(above, kv_usage);
  if (&above != &below) {
    const Node other = Read(below, kv_usage);
    const double x0 = below.context_tokens, x1 = above.context_tokens;
    node.itl = OnLine(context_tokens, x0, other.itl, x1, node.itl);
    node.held_tokens = OnLine(context_tokens, x0, other.held_tokens, x1, node.held_tokens);
  }
  return PointOf(node, std::max(context_tokens, curves_.front().context_tokens));
}

// The cheapest point of one context within `itl`, else its emptiest.
DecodePoint DecodeProfile::Solve(const Curve& curve, double itl) const {
  const auto over = std::ranges::partition_point(
      curve.nodes, [itl](const Node& node) { return Keeps(node.itl, itl); });
  const size_t num_within = static_cast<size_t>(over - curve.nodes.begin());
  if (num_within == 0) {
    DecodePoint emptiest = curve.cheapest.front();
    emptiest.reachable = false;
    return emptiest;
  }
  const DecodePoint& sampled = curve.cheapest[num_within - 1];
  if (over == curve.nodes.end() || options_.kv_cells > 0) return sampled;
  // Throughput is monotone between two samples: a ratio of linear terms.
  const Node& below = *(over - 1);
  const Node between = {OnLine(itl, below.itl, below.kv_usage, over->itl, over->kv_usage),
                        std::max(itl, below.itl),
                        OnLine(itl, below.itl, below.held_tokens, over->itl, over->held_tokens)};
  const DecodePoint point = PointOf(between, curve.context_tokens);
  return point.gpu_seconds <= sampled.gpu_seconds ? point : sampled;
}

DecodePoint DecodeProfile::CheapestWithin(double itl, double context_tokens) const {
  DecodePoint last = Solve(curves_.front(), itl);
  double last_context = curves_.front().context_tokens;
  for (size_t i = 1; i < curves_.size() && last_context < context_tokens; ++i) {
    const double next_context = curves_[i].context_tokens;
    DecodePoint next = Solve(curves_[i], itl);
    next.reachable = next.reachable && last.reachable;
    next.gpu_seconds = std::max(next.gpu_seconds, last.gpu_seconds);
    if (context_tokens <= next_context) {
      next.itl = OnLine(context_tokens, last_context, last.itl, next_context, next.itl);
      next.gpu_seconds =
          OnLine(context_tokens, last_context, last.gpu_seconds, next_context, next.gpu_seconds);
      return next;
    }
    last = next;
    last_context = next_context;
  }
  if (context_tokens > last_context) last.gpu_seconds *= context_tokens / last_context;
  return last;
}

}  // namespace tessera
