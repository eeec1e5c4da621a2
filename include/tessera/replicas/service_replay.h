#ifndef TESSERA_REPLICAS_SERVICE_REPLAY_H_
#define TESSERA_REPLICAS_SERVICE_REPLAY_H_

// What a planner would have done to a service under a load that came, and what users would
// have seen.
//
//   const auto replay = ReplayService(spec, loads, {.tick = 30, .startup = 120});
//   replay->attainment();  // part of the requests within the SLA
//   replay->gpu_hours;     // against ClairvoyantReplay(spec, loads, ...)->gpu_hours

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/replicas/decide_replicas.h"

namespace tessera {

// Longest tick, and start of an engine.
inline constexpr int64_t kMaxReplaySeconds = 1000000000;

struct ReplayOptions {
  int64_t tick = 30;      // seconds that one load lasts, after which a decision follows
  int64_t startup = 120;  // seconds until a new engine serves; it holds its GPUs at once
  bool reacts = true;     // queues and batches of the engines are reported to the planner

  friend bool operator==(const ReplayOptions&, const ReplayOptions&) = default;
};

// One tick. Latencies are means; 0 without requests, infinite where nothing serves them.
struct ReplayTick {
  int64_t start = 0;         // seconds since the replay began
  ServiceLoad load;          // that came
  double forecast_rate = 0;  // requests per second that were expected
  ReplicaCounts expected;    // that hold GPUs
  ReplicaCounts ready;       // of these
  double ttft = 0;
  double itl = 0;
  bool attained = true;  // both within the SLA

  friend bool operator==(const ReplayTick&, const ReplayTick&) = default;
};

struct ReplayResult {
  std::vector<ReplayTick> ticks;
  double requests = 0;
  double attained_requests = 0;  // that came in a tick which attained the SLA
  double gpu_hours = 0;

  double attainment() const { return requests > 0 ? attained_requests / requests : 1; }

  friend bool operator==(const ReplayResult&, const ReplayResult&) = default;
};

// Replays `loads`, one per tick, against the service of `spec`: a decision of
// `DecideReplicas` at the start and after each tick, with `spec.history` and each
// interval that has passed since as the past. `spec.interval` is a multiple of `tick`.
// The engines of the beginning are those expected by `spec.status`, all ready.
//
// Engines behave exactly as `spec` describes them, and load as a fluid: requests are spread
// evenly. What exceeds the capacity of a tick waits for the next one, first in, first out. Below it
// prompts wait as in a queue with Poisson arrivals and constant service (Sakasegawa's
// approximation for c servers), and decode engines run the batch at which they keep up
// (Little's law). A full decode engine makes requests wait, which counts towards TTFT. An
// engine that is not needed any more serves no further tick. More than 100,000 engines of a
// role report nothing.
//
// kInvalidArgument: `DecideReplicas` rejects `spec`; its engines are aggregated; a load is not
// known or above `kMaxLoad`; `tick` is not in 1..`kMaxReplaySeconds`, or `startup` not in 0..that;
// `spec.interval` is not a multiple. O(history + loads * (one decision without history)).
absl::StatusOr<ReplayResult> ReplayService(const ServiceSpec& spec,
                                           std::span<const ServiceLoad> loads,
                                           const ReplayOptions& options);

// The same service under a planner that knows the load to come: in each interval, which
// starts with the replay, the fewest engines that attain the SLA in each of its ticks, if any
// number does, and leave nothing to wait for the next; at least the minimums. Each is started
// `startup` before it serves, and kept where it would have to start again by the time that it
// stops; no plan with these engines in these intervals costs less. Step limits and budgets are
// ignored. Errors as above. O(loads * log `kMaxReplicas`).
absl::StatusOr<ReplayResult> ClairvoyantReplay(const ServiceSpec& spec,
                                               std::span<const ServiceLoad> loads,
                                               const ReplayOptions& options);

}  // namespace tessera

#endif  // TESSERA_REPLICAS_SERVICE_REPLAY_H_
