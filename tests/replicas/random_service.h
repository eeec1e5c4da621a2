#ifndef TESSERA_TESTS_REPLICAS_RANDOM_SERVICE_H_
#define TESSERA_TESTS_REPLICAS_RANDOM_SERVICE_H_

// Random numbers, profiles and loads of services, the same with every library.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tessera/replicas/engine_profile.h"

namespace tessera {

class RandomService {
 public:
  explicit RandomService(uint32_t seed) : engine_(seed) {}

  int Below(int bound) { return static_cast<int>(engine_() % static_cast<uint32_t>(bound)); }
  bool Chance(int percent) { return Below(100) < percent; }
  double Between(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_()) * 0x1p-32);
  }
  // From `low` on, evenly on a logarithmic scale.
  double Scale(double low, double high) { return low * std::pow(high / low, Between(0, 1)); }

  // Costs and TTFTs that rise, as measured ones do, but by no law.
  std::vector<PrefillSample> DrawPrefill() {
    std::vector<PrefillSample> samples;
    double length = Scale(10, 1000), ttft = Scale(0.001, 0.1), gpu_seconds = Scale(0.001, 0.1);
    for (int i = 1 + Below(8); i > 0; --i) {
      samples.push_back({length, ttft, length / gpu_seconds});
      length *= Between(1.1, 4);
      if (Chance(90)) ttft *= Between(1, 3);
      gpu_seconds *= Between(1.01, 4);
    }
    return samples;
  }

  // ITLs that rise with the KV use; anything else may do anything.
  std::vector<DecodeSample> DrawDecode() {
    std::vector<DecodeSample> samples;
    double context = Scale(50, 2000);
    for (int i = 1 + Below(4); i > 0; --i) {
      double itl = Scale(0.003, 0.03), kv_usage = Between(0.01, 0.2);
      for (int j = 1 + Below(6); j > 0 && kv_usage <= 1; --j) {
        samples.push_back({context, kv_usage, itl, Scale(100, 5000)});
        kv_usage += Between(0.01, 0.4);
        if (Chance(90)) itl *= Between(1, 2);
      }
      context *= Between(1.1, 4);
    }
    return samples;
  }

 private:
  std::mt19937 engine_;
};

}  // namespace tessera

#endif  // TESSERA_TESTS_REPLICAS_RANDOM_SERVICE_H_
