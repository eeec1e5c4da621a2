#ifndef TESSERA_BENCH_STUDY_FGD_REPLAY_H_
#define TESSERA_BENCH_STUDY_FGD_REPLAY_H_

// Pods arrive one by one and are placed or turned away for ever, by one policy.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bench/study/fgd/trace.h"

namespace tessera::study {

enum Policy {
  kRandom,
  kDotProduct,
  kClustering,
  kPacking,
  kBestFit,
  kFgd,
  kForesight,
  kBatch,  // Foresight, all pods up to 100 % known beforehand and placed in a good order
  kPolicies,
};

// As in the published tables, where they are there.
inline constexpr std::array<std::string_view, kPolicies> kPolicyNames = {
    "Random",  "DotProd", "GpuClustering", "GpuPacking",
    "BestFit", "FGD",     "Foresight",     "Foresight, batch"};

inline constexpr int kArrivedPercent = 130;

// What was reached when so many per cent of the GPUs had been asked for, in all.
struct Curve {
  // Per cent of the GPUs; means over the arrivals that round to the index. Where none
  // does, what was before.
  std::array<double, kArrivedPercent + 1> allocated{};
  std::array<double, kArrivedPercent + 1> fragments{};
  double seconds = 0;  // of the processor, measures included
  int64_t turned_away = 0;
};

// One run. `kBatch` ends at 100 %: its curve is flat.
Curve Replay(const Trace& trace, const std::vector<int>& arrivals, Policy policy, uint64_t seed);

// The first pods that together ask for all GPUs or just more.
std::vector<int> UpToCapacity(const Trace& trace, const std::vector<int>& arrivals);

}  // namespace tessera::study

#endif  // TESSERA_BENCH_STUDY_FGD_REPLAY_H_
