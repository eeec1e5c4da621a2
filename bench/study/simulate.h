#ifndef TESSERA_BENCH_STUDY_SIMULATE_H_
#define TESSERA_BENCH_STUDY_SIMULATE_H_

// One run of one policy over one traffic. What does not fit on arrival is rejected.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "bench/study/cluster.h"
#include "bench/study/traffic.h"

namespace tessera::study {

enum Policy {
  kFirstFit,
  kBestFit,
  kWorstFit,
  kRandom,
  kGradient,
  kDefragmentation,  // the gradient; what it cannot place, moves make room for
  kReference,        // `FitRearranged`
};
inline constexpr int kPolicies = 7;
inline constexpr std::array<std::string_view, kPolicies> kPolicyNames = {
    "first-fit", "best-fit", "worst-fit", "random", "gradient", "gradient+defrag", "reference"};

// Over the counted requests of one run.
struct Outcome {
  double acceptance = 0;  // % of the offered memory slices x lifetime
  double count = 0;       // % of the requests
  double stranded = 0;    // memory slices of all GPUs, see `Simulate`
  double moves = 0;       // per accepted request
};

// The answers of the scorers under one mix.
class Policies {
 public:
  Policies(const LayoutTable& layouts, const Mix& mix);

  // Every policy sees the same traffic, `seed` only sets what kRandom draws.
  //
  // Stranded slices: when a request of some kind arrives, the free memory slices that
  // no number of further requests of that kind could use. As Poisson arrivals see time
  // averages, the mean is that over time and over the mix.
  Outcome Simulate(const Traffic& traffic, Policy policy, uint64_t seed) const;

 private:
  Outcome SimulateReference(const Traffic& traffic) const;
  std::optional<Place> Choose(const Cluster& cluster, int kind, Policy policy, uint64_t seed) const;

  const LayoutTable& layouts_;
  Ranking first_fit_;
  Ranking best_fit_;
  Ranking worst_fit_;
  Ranking gradient_;
};

}  // namespace tessera::study

#endif  // TESSERA_BENCH_STUDY_SIMULATE_H_
