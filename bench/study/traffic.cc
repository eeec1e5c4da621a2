#include "bench/study/traffic.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

namespace tessera::study {
namespace {

constexpr double kHorizon = 20;
constexpr double kWarmUp = 5;

// The distributions of <random> differ between libraries, its generators do not.
class Draw {
 public:
  Draw(const Mix& mix, int load, uint64_t seed) {
    std::seed_seq words = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                           static_cast<uint32_t>(load), static_cast<uint32_t>(mix.percent[k1g]),
                           static_cast<uint32_t>(mix.percent[k2g])};
    generator_.seed(words);
  }

  // Exponential of mean 1.
  double Duration() { return -std::log1p(-static_cast<double>(generator_() >> 11) * 0x1p-53); }

  int KindOf(const Mix& mix) {
    int rest = static_cast<int>(generator_() % 100);
    int kind = 0;
    while (rest >= mix.percent[kind]) rest -= mix.percent[kind++];
    return kind;
  }

 private:
  std::mt19937_64 generator_;
};

double ArrivalsPerLifetime(const Mix& mix, int load) {
  int hundred_requests = 0;  // their slices
  for (int k = 0; k < kKinds; ++k) hundred_requests += mix.percent[k] * kSlices[k];
  return static_cast<double>(load) * kGpus * kSlicesPerGpu / hundred_requests;
}

}  // namespace

Traffic MakeTraffic(const Mix& mix, int load, uint64_t seed) {
  Draw draw(mix, load, seed);
  const double rate = ArrivalsPerLifetime(mix, load);
  Traffic traffic;
  for (double now = draw.Duration() / rate; now < kHorizon; now += draw.Duration() / rate) {
    const int request = static_cast<int>(traffic.requests.size());
    const double lifetime = draw.Duration();
    traffic.requests.push_back({draw.KindOf(mix), lifetime, now >= kWarmUp});
    traffic.events.push_back({now, request, true});
    traffic.events.push_back({now + lifetime, request, false});
  }
  std::sort(traffic.events.begin(), traffic.events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.time, a.request, !a.is_arrival) <
           std::tuple(b.time, b.request, !b.is_arrival);
  });
  return traffic;
}

}  // namespace tessera::study
