#include "tessera/replicas/service_replay.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/replicas/fluid_service.h"
#include "src/replicas/interpolation.h"
#include "src/replicas/load_forecaster.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

constexpr int64_t kMostReports = 100000;

bool IsLoad(double value) { return value >= 0 && value <= kMaxLoad; }

absl::Status CheckReplay(const ServiceSpec& spec, std::span<const ServiceLoad> loads,
                         const ReplayOptions& options) {
  TESSERA_RETURN_IF_ERROR(DecideReplicas(spec).status());
  if (options.tick < 1 || options.tick > kMaxReplaySeconds) {
    return InvalidAt("tick", absl::StrCat(options.tick, " is not in 1..", kMaxReplaySeconds));
  }
  if (options.startup < 0 || options.startup > kMaxReplaySeconds) {
    return InvalidAt("startup", absl::StrCat(options.startup, " is not in 0..", kMaxReplaySeconds));
  }
  if (spec.interval < 1 || spec.interval % options.tick != 0) {
    return InvalidAt("interval", absl::StrCat(spec.interval, " is not a multiple of the tick of ",
                                              options.tick));
  }
  for (size_t i = 0; i < loads.size(); ++i) {
    const ServiceLoad& load = loads[i];
    if (IsLoad(load.request_rate) && IsLoad(load.input_tokens) && IsLoad(load.output_tokens) &&
        load.prefix_hit_rate >= 0 && load.prefix_hit_rate <= 1) {
      continue;
    }
    return InvalidAt(absl::StrCat("loads[", i, "]"), "is not known in full");
  }
  return absl::OkStatus();
}

// Means over the ticks of an interval, weighted by requests.
class IntervalMean {
 public:
  void Add(const ServiceLoad& load) {
    ++ticks_;
    requests_ += load.request_rate;
    input_ += load.request_rate * load.input_tokens;
    output_ += load.request_rate * load.output_tokens;
    hits_ += load.request_rate * load.input_tokens * load.prefix_hit_rate;
  }

  // Lengths of no requests are NaN. The next interval begins.
  ServiceLoad Take() {
    const ServiceLoad mean = {requests_ / ticks_, input_ / requests_, output_ / requests_,
                              input_ > 0 ? hits_ / input_ : 0};
    *this = {};
    return mean;
  }

 private:
  double ticks_ = 0, requests_ = 0, input_ = 0, output_ = 0, hits_ = 0;
};

// Engines of one role, of which some start.
class Engines {
 public:
  explicit Engines(int64_t ready) : ready_(ready) {}

  int64_t ready() const { return ready_; }
  int64_t expected() const { return ready_ + starting_; }

  void Advance(int64_t now) {
    const auto begun = [now](const Batch& batch) { return batch.ready_at <= now; };
    for (const Batch& batch : batches_) {
      if (!begun(batch)) continue;
      ready_ += batch.count;
      starting_ -= batch.count;
    }
    std::erase_if(batches_, begun);
  }

  // The last that were started are the first to go.
  void Set(int64_t count, int64_t ready_at) {
    if (count > expected()) {
      batches_.push_back({count - expected(), ready_at});
      starting_ += batches_.back().count;
    }
    while (count < expected() && !batches_.empty()) {
      const int64_t gone = std::min(expected() - count, batches_.back().count);
      batches_.back().count -= gone;
      starting_ -= gone;
      if (batches_.back().count == 0) batches_.pop_back();
    }
    ready_ = std::min(ready_, count);
  }

 private:
  struct Batch {
    int64_t count = 0;
    int64_t ready_at = 0;
  };
  int64_t ready_ = 0;
  int64_t starting_ = 0;
  std::vector<Batch> batches_;  // in the order of their start
};

// Adds a tick that was served, with its expected engines, to the result.
void Record(const ServiceSpec& spec, double seconds, const TickLatency& latency, ReplayTick tick,
            ReplayResult& result) {
  tick.ttft = latency.ttft;
  tick.itl = latency.itl;
  tick.attained = Keeps(tick.ttft, spec.sla.ttft) && Keeps(tick.itl, spec.sla.itl);
  const double requests = tick.load.request_rate * seconds;
  result.requests += requests;
  if (tick.attained) result.attained_requests += requests;
  result.gpu_hours += static_cast<double>(GpusOf(spec.rules.gpus, tick.expected)) * seconds / 3600;
  result.ticks.push_back(tick);
}

// What the engines report after a tick, if they are not too many to list.
void Report(const TickLatency& latency, const ServiceLoad& load, const ReplicaCounts& ready,
            const Backlog& backlog, ServiceSpec& spec) {
  spec.queued_tokens.clear();
  spec.decoding.clear();
  if (std::max(ready.prefill, ready.decode) > kMostReports) return;
  const double prefill = static_cast<double>(ready.prefill);
  const double decode = static_cast<double>(ready.decode);
  const double tokens = load.input_tokens * (1 - load.prefix_hit_rate);
  spec.queued_tokens.assign(static_cast<size_t>(ready.prefill),
                            latency.waiting_prompts * tokens / prefill);
  const double requests = latency.sequences + backlog.decode / decode;
  const double context = load.input_tokens + load.output_tokens / 2;
  spec.decoding.assign(static_cast<size_t>(ready.decode), {requests, requests * context});
}

// The fewest engines in `least`..`kMaxReplicas` for which `suffices` holds, which then
// holds for more; none if it never does.
template <typename Predicate>
std::optional<int64_t> Fewest(int64_t least, const Predicate& suffices) {
  if (!suffices(kMaxReplicas)) return std::nullopt;
  int64_t most = kMaxReplicas;
  while (least < most) {
    const int64_t middle = least + (most - least) / 2;
    if (suffices(middle)) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  return most;
}

// The fewest engines for all of `loads`: within the SLA, else without a backlog.
ReplicaCounts FewestFor(const FluidService& service, const ServiceSpec& spec,
                        std::span<const ServiceLoad> loads, double seconds) {
  const auto all = [&](const ReplicaCounts& counts, const auto& suffices) {
    return std::ranges::all_of(loads, [&](const ServiceLoad& load) {
      Backlog backlog;
      const TickLatency latency = service.Serve(load, counts, seconds, backlog);
      return suffices(latency, backlog);
    });
  };
  const auto fewest = [&](ReplicaCounts counts, EngineRole role, const auto& suffices) {
    return Fewest(OfRole(spec.rules.minimum, role), [&](int64_t n) {
      OfRole(counts, role) = n;
      return all(counts, suffices);
    });
  };
  ReplicaCounts counts = {kMaxReplicas, kMaxReplicas};
  const auto in_time = [&](const TickLatency& t, const Backlog& b) {
    return b.prefill == 0 && Keeps(t.ttft, spec.sla.ttft);
  };
  const auto read = [](const TickLatency&, const Backlog& b) { return b.prefill == 0; };
  const auto prefill = fewest(counts, EngineRole::kPrefill, in_time);
  counts.prefill =
      prefill ? *prefill : fewest(counts, EngineRole::kPrefill, read).value_or(kMaxReplicas);
  const auto fluent = [&](const TickLatency& t, const Backlog& b) {
    return b.decode == 0 && Keeps(t.itl, spec.sla.itl);
  };
  const auto written = [](const TickLatency&, const Backlog& b) { return b.decode == 0; };
  const auto decode = fewest(counts, EngineRole::kDecode, fluent);
  counts.decode =
      decode ? *decode : fewest(counts, EngineRole::kDecode, written).value_or(kMaxReplicas);
  return counts;
}

// Engines that hold GPUs so that `ready[tick]` serve: from `startup` before they do. One that
// is needed again by the time it would have started anew stays. That is, in each tick, the
// most that serve in it or in the ticks that a start takes.
std::vector<ReplicaCounts> StartedInTime(const std::vector<ReplicaCounts>& ready,
                                         const ReplayOptions& options) {
  const int64_t ticks = options.startup / options.tick + (options.startup % options.tick != 0);
  std::vector<ReplicaCounts> expected(ready.size());
  for (EngineRole role : kEngineRoles) {
    // Ticks within reach that need more engines than any before them; the latest, which
    // needs the most, is in front.
    std::deque<size_t> higher;
    for (size_t i = ready.size(); i-- > 0;) {
      const int64_t count = OfRole(ready[i], role);
      while (!higher.empty() && OfRole(ready[higher.back()], role) <= count) higher.pop_back();
      higher.push_back(i);
      while (static_cast<int64_t>(higher.front() - i) > ticks) higher.pop_front();
      OfRole(expected[i], role) = OfRole(ready[higher.front()], role);
    }
  }
  return expected;
}

}  // namespace

absl::StatusOr<ReplayResult> ReplayService(const ServiceSpec& service_spec,
                                           std::span<const ServiceLoad> loads,
                                           const ReplayOptions& options) {
  TESSERA_RETURN_IF_ERROR(CheckReplay(service_spec, loads, options));
  TESSERA_ASSIGN_OR_RETURN(const FluidService service, FluidService::Create(service_spec));
  TESSERA_ASSIGN_OR_RETURN(LoadForecaster forecaster,
                           LoadForecaster::Create(service_spec.predictor));
  for (const ServiceLoad& load : service_spec.history) forecaster.Observe(load);
  ServiceSpec spec = service_spec;
  spec.history.clear();
  spec.queued_tokens.clear();
  spec.decoding.clear();
  const double seconds = static_cast<double>(options.tick);
  Engines prefill(spec.status.expected.prefill), decode(spec.status.expected.decode);
  Backlog backlog;
  ReplicaMemory memory;
  IntervalMean interval;
  ReplayResult result;
  for (const ServiceLoad& load : loads) {
    // 1. Decide.
    const int64_t now = static_cast<int64_t>(result.ticks.size()) * options.tick;
    prefill.Advance(now);
    decode.Advance(now);
    spec.status.now = now;
    spec.status.expected = {prefill.expected(), decode.expected()};
    spec.status.ready = {prefill.ready(), decode.ready()};
    TESSERA_ASSIGN_OR_RETURN(const ServiceDecision decision,
                             DecideForForecast(spec, forecaster.Forecast(), memory));
    memory = decision.plan.memory;
    prefill.Set(decision.plan.granted.prefill, now + options.startup);
    decode.Set(decision.plan.granted.decode, now + options.startup);
    prefill.Advance(now);
    decode.Advance(now);
    // 2. Serve.
    const ReplicaCounts ready = {prefill.ready(), decode.ready()};
    const TickLatency latency = service.Serve(load, ready, seconds, backlog);
    ReplayTick tick;
    tick.start = now;
    tick.load = load;
    tick.forecast_rate = decision.forecast.request_rate;
    tick.expected = {prefill.expected(), decode.expected()};
    tick.ready = ready;
    Record(spec, seconds, latency, tick, result);
    // 3. Learn.
    if (options.reacts) Report(latency, load, ready, backlog, spec);
    interval.Add(load);
    if ((now + options.tick) % spec.interval == 0) forecaster.Observe(interval.Take());
  }
  return result;
}

absl::StatusOr<ReplayResult> ClairvoyantReplay(const ServiceSpec& spec,
                                               std::span<const ServiceLoad> loads,
                                               const ReplayOptions& options) {
  TESSERA_RETURN_IF_ERROR(CheckReplay(spec, loads, options));
  TESSERA_ASSIGN_OR_RETURN(const FluidService service, FluidService::Create(spec));
  const double seconds = static_cast<double>(options.tick);
  const size_t per_interval = static_cast<size_t>(spec.interval / options.tick);
  std::vector<ReplicaCounts> ready;
  for (size_t i = 0; i < loads.size(); i += per_interval) {
    const auto interval = loads.subspan(i, std::min(per_interval, loads.size() - i));
    ready.insert(ready.end(), interval.size(), FewestFor(service, spec, interval, seconds));
  }
  const std::vector<ReplicaCounts> expected = StartedInTime(ready, options);
  ReplayResult result;
  Backlog backlog;
  for (size_t i = 0; i < loads.size(); ++i) {
    const TickLatency latency = service.Serve(loads[i], ready[i], seconds, backlog);
    ReplayTick tick;
    tick.start = static_cast<int64_t>(i) * options.tick;
    tick.load = loads[i];
    tick.forecast_rate = loads[i].request_rate;
    tick.expected = expected[i];
    tick.ready = ready[i];
    Record(spec, seconds, latency, tick, result);
  }
  return result;
}

}  // namespace tessera
