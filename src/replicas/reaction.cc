#include "tessera/replicas/reaction.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"none", "up", "stay", "down"};

bool IsAmount(double value) { return std::isfinite(value) && value >= 0; }

// The load of each of `engines` once one of them is gone.
double Consolidated(double load, size_t engines) {
  const double n = static_cast<double>(engines);
  return load * n / (n - 1);
}

// The answer, given that all reports are usable. `slow` and `bearable` are asked of each
// engine: whether it exceeds the SLA, and whether it could bear its part of one more.
template <typename Load, typename Slow, typename Bearable>
Reaction Judge(std::span<const Load> engines, Slow slow, Bearable bearable) {
  if (std::ranges::all_of(engines, slow)) return Reaction::kUp;
  if (engines.size() < 2) return Reaction::kStay;
  return std::ranges::all_of(engines, bearable) ? Reaction::kDown : Reaction::kStay;
}

template <typename Load>
bool AllReported(std::span<const Load> engines, const ReactionRules& rules) {
  return !engines.empty() && static_cast<int64_t>(engines.size()) == rules.engines;
}

}  // namespace

std::string_view ToString(Reaction reaction) { return kNames[static_cast<size_t>(reaction)]; }

Reaction ReactToPrefill(std::span<const double> queued_tokens, double prompt_tokens,
                        PrefillTime time, const ReactionRules& rules) {
  if (!AllReported(queued_tokens, rules) || !IsAmount(prompt_tokens)) return Reaction::kNone;
  const double own = time(prompt_tokens);
  if (!IsAmount(own) || !std::ranges::all_of(queued_tokens, IsAmount)) return Reaction::kNone;
  return Judge(
      queued_tokens, [&](double queued) { return time(queued + prompt_tokens) > rules.sla; },
      [&](double queued) {
        const double after = Consolidated(queued, queued_tokens.size());
        return time(after + prompt_tokens) - own < (rules.sla - own) * rules.margin;
      });
}

Reaction ReactToDecode(std::span<const DecodeEngineLoad> engines, double request_tokens,
                       double max_kv_tokens, DecodeTime time, const ReactionRules& rules) {
  const auto is_usable = [](const DecodeEngineLoad& load) {
    return IsAmount(load.requests) && IsAmount(load.kv_tokens);
  };
  if (!AllReported(engines, rules) || !IsAmount(request_tokens) || !IsAmount(max_kv_tokens) ||
      !std::ranges::all_of(engines, is_usable)) {
    return Reaction::kNone;
  }
  return Judge(
      engines,
      [&](const DecodeEngineLoad& load) {
        return time(load.requests + 1, load.kv_tokens + request_tokens) > rules.sla;
      },
      [&](const DecodeEngineLoad& load) {
        const double kv = Consolidated(load.kv_tokens, engines.size()) + request_tokens;
        const double requests = Consolidated(load.requests, engines.size()) + 1;
        return kv < max_kv_tokens && time(requests, kv) < rules.sla * rules.margin;
      });
}

Reaction Combine(Reaction prefill, Reaction decode) {
  if (prefill == Reaction::kUp || decode == Reaction::kUp) return Reaction::kUp;
  return prefill == decode ? prefill : Reaction::kStay;
}

}  // namespace tessera
