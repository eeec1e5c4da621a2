#ifndef TESSERA_REPLICAS_REACTION_H_
#define TESSERA_REPLICAS_REACTION_H_

// What the engines that run say about their number: one more, one fewer, or neither.
//
// A forecast is blind to what it did not foresee; the queues in front of the engines are
// not. An engine more is asked for only when every engine is too slow (one slow engine is
// a matter of routing), and one fewer only when the rest could bear its load and keep a
// margin. After the load-based planner of Dynamo; there one engine gone is judged by the
// same formulas.

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace tessera {

enum class Reaction {
  kNone,  // no signal: nobody looked, or what was reported is not usable
  kUp,    // every engine exceeds the SLA
  kStay,  // some engine meets it, but one fewer would not keep the margin
  kDown,  // one fewer would
};

// "down".
std::string_view ToString(Reaction reaction);

// What is asked of the engines that remain: within this part of the SLA.
inline constexpr double kConsolidationMargin = 0.8;

struct ReactionRules {
  double sla = 0;  // seconds, above 0: to the first token, or between tokens
  double margin = kConsolidationMargin;
  // Engines that should have reported; others report late or are not known: no signal.
  int64_t engines = 0;
};

// Seconds that an engine needs for so many prompt tokens.
using PrefillTime = absl::FunctionRef<double(double tokens)>;

// `queued_tokens[engine]` wait before the next prompt, of `prompt_tokens`. Its time to the
// first token is that of all these tokens. With one engine fewer each of the others queues
// N / (N - 1) as much: the time in the queue, on every engine, must then stay below
// `margin` of what the prompt itself leaves of the SLA. A negative or non-finite number is
// no signal. O(engines).
Reaction ReactToPrefill(std::span<const double> queued_tokens, double prompt_tokens,
                        PrefillTime time, const ReactionRules& rules);

// The load of one decode engine, requests that wait for it included.
struct DecodeEngineLoad {
  double requests = 0;
  double kv_tokens = 0;

  friend bool operator==(const DecodeEngineLoad&, const DecodeEngineLoad&) = default;
};

// Seconds of one iteration over so many requests that hold so many tokens together.
using DecodeTime = absl::FunctionRef<double(double requests, double kv_tokens)>;

// As above for the time between tokens once one more request, of `request_tokens`, has
// joined each engine. With one engine fewer these tokens must also fit, on every engine,
// within `max_kv_tokens`. O(engines).
Reaction ReactToDecode(std::span<const DecodeEngineLoad> engines, double request_tokens,
                       double max_kv_tokens, DecodeTime time, const ReactionRules& rules);

// Of an engine that does both: up if either side says so; down only if both do. A side
// that says stay forbids to go down; so does one without a signal, if the other has one.
Reaction Combine(Reaction prefill, Reaction decode);

}  // namespace tessera

#endif  // TESSERA_REPLICAS_REACTION_H_
