#ifndef TESSERA_BENCH_REPLICAS_DAY_LOAD_H_
#define TESSERA_BENCH_REPLICAS_DAY_LOAD_H_

// The load of a chat service over days, made from a seed.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tessera/replicas/decide_replicas.h"
#include "tessera/replicas/service_replay.h"

namespace tessera {

inline constexpr int64_t kDaySeconds = 24 * 3600;
inline constexpr int64_t kTickSeconds = 30;
inline constexpr int64_t kStepSeconds = 300;  // 288 a day

// Days of one service. Each follows the hours of the day, up to 5 % more or less, with five
// bursts at times of its own that come and go within ten minutes; and the requests of a tick
// vary as independent ones do. The arithmetic is the same on every machine.
class DayLoads {
 public:
  explicit DayLoads(uint64_t seed) : state_(seed) {}

  // One load per tick.
  std::vector<ServiceLoad> NextDay() {
    const double day = Between(0.95, 1.05);
    std::array<Burst, 5> bursts;
    for (Burst& burst : bursts) {
      burst = {Between(0, kDaySeconds), Between(600, 1800), Between(0.2, 0.5)};
    }
    std::vector<ServiceLoad> loads;
    for (int64_t start = 0; start < kDaySeconds; start += kTickSeconds) {
      const double now = static_cast<double>(start);
      double rate = kPeak * day * OfHour(now);
      for (const Burst& burst : bursts) rate *= 1 + burst.More(now);
      const double requests = rate * kTickSeconds;
      const double count = requests + std::sqrt(requests) * Normal();
      // Lengths deviate from their mean by as much as the mean; their average by less.
      const double spread = 1 / std::sqrt(requests);
      loads.push_back(
          {count / kTickSeconds, 3000 * (1 + spread * Normal()), 300 * (1 + spread * Normal()), 0});
    }
    return loads;
  }

 private:
  static constexpr double kPeak = 60;  // requests per second
  struct Burst {
    double start = 0, lasts = 0, height = 0;

    double More(double now) const {
      constexpr double kRamp = 600;
      const double rises = (now - start) / kRamp, falls = (start + lasts + kRamp - now) / kRamp;
      return height * std::min(1.0, std::max(0.0, std::min(rises, falls)));
    }
  };

  // Part of the peak, linear between full hours.
  static double OfHour(double now) {
    constexpr std::array<double, 25> kHours = {0.45, 0.38, 0.32, 0.29, 0.28, 0.30, 0.36, 0.47, 0.62,
                                               0.78, 0.88, 0.93, 0.90, 0.92, 0.98, 1.00, 0.97, 0.90,
                                               0.82, 0.78, 0.76, 0.72, 0.63, 0.53, 0.45};
    const double hour = now / 3600;
    const size_t before = static_cast<size_t>(hour);
    const double part = hour - static_cast<double>(before);
    return kHours[before] * (1 - part) + kHours[before + 1] * part;
  }

  // SplitMix64 (Steele, Lea and Flood, OOPSLA '14).
  uint64_t Next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  double Between(double low, double high) {
    return low + (high - low) * (static_cast<double>(Next() >> 11) * 0x1p-53);
  }
  // Mean 0, deviation 1: the sum of twelve uniform draws.
  double Normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Between(0, 1);
    return sum;
  }

  uint64_t state_;
};

// A service with the engines of Dynamo's worked example (2 GPUs read 20,000 tokens/s; 4 GPUs
// write to 100 sequences at 10 ms and 0.8 ms for each), the days before, and a day.
struct ServiceDay {
  static constexpr int64_t kStartup = 120;
  static constexpr int kDaysBefore = 3;

  ServiceSpec spec;                        // without a forecast
  std::vector<ServiceLoad> before, loads;  // by ticks

  explicit ServiceDay(uint64_t seed) {
    DayLoads days(seed);
    for (int day = 0; day < kDaysBefore; ++day) {
      const std::vector<ServiceLoad> ticks = days.NextDay();
      before.insert(before.end(), ticks.begin(), ticks.end());
    }
    loads = days.NextDay();
    spec.name = "chat";
    spec.sla = {0.5, 0.05};
    spec.rules.gpus = {2, 4};
    spec.rules.down_delay = 180;
    spec.prefill.iteration = IterationCost{0, 5e-5, 0, 0};
    spec.decode.iteration = IterationCost{0.010, 0, 0, 0.08 / 315000};
    spec.limits = {8192, 256, 315000};
    spec.interval = kStepSeconds;
    spec.status.expected = spec.status.ready = {6, 12};
  }

  // The same, forecast every tick up to one tick after the start of an engine, and planned to
  // `utilization` of the engines' time. The gains of the seasonal forecast were chosen on
  // seeds 101 to 105.
  ServiceSpec Plan(PredictorKind kind, double utilization) const {
    ServiceSpec plan = spec;
    plan.utilization = utilization;
    plan.interval = kTickSeconds;
    plan.history = before;
    plan.predictor.kind = kind;
    plan.predictor.ahead = kStartup / kTickSeconds + 1;
    plan.predictor.seasonal = {kDaySeconds / kTickSeconds, 0.4, 0.01, 0.2};
    return plan;
  }
};

}  // namespace tessera

#endif  // TESSERA_BENCH_REPLICAS_DAY_LOAD_H_
