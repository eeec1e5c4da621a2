#ifndef TESSERA_SRC_REPLICAS_ROBUST_FIT_H_
#define TESSERA_SRC_REPLICAS_ROBUST_FIT_H_

#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace tessera {

inline constexpr size_t kMaxTerms = 4;
using Terms = std::array<double, kMaxTerms>;

// `value` at `terms`, which counts for `weight` where a majority decides.
struct Observation {
  Terms terms{};
  double value = 0;
  double weight = 1;
};

// Coefficients c such that the sums of c[i] * terms[i] over the i of `uses` are near the
// values of most observations, by weight: least squares over those that lie near the best
// of many small subsets. None if the observations do not determine them. Deterministic.
std::optional<Terms> RobustFit(std::span<const Observation> observations,
                               std::span<const size_t> uses);

}  // namespace tessera

#endif  // TESSERA_SRC_REPLICAS_ROBUST_FIT_H_
