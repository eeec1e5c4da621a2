#ifndef TESSERA_SHARE_WEIGHTED_SHARE_H_
#define TESSERA_SHARE_WEIGHTED_SHARE_H_

// A part of a capacity, over a weight: what dominant-resource fairness compares.

#include <compare>
#include <cstdint>

#include "absl/numeric/int128.h"
#include "tessera/share/rational.h"

namespace tessera {

// amount / (capacity * weight), exactly, and about. `amount` and `capacity` are at
// most `kMaxTotal`, `weight` at most 2^45; capacity and weight are positive.
struct WeightedShare {
  int64_t amount = 0;
  int64_t capacity = 1;
  int64_t weight = 1;
  double about = 0;

  static WeightedShare Of(int64_t amount, int64_t capacity, int64_t weight) {
    return {amount, capacity, weight,
            static_cast<double>(amount) /
                (static_cast<double>(capacity) * static_cast<double>(weight))};
  }

  Rational exact() const { return {amount, absl::int128{capacity} * weight}; }
};

// Compares exactly, though mostly two doubles suffice.
inline std::strong_ordering Compare(const WeightedShare& a, const WeightedShare& b) {
  // Far beyond the error of a quotient of conversions.
  constexpr double kClose = 1e-9;
  const double difference = a.about - b.about, size = a.about + b.about;
  if (difference > kClose * size) return std::strong_ordering::greater;
  if (difference < -kClose * size) return std::strong_ordering::less;
  if (a.capacity == b.capacity && a.weight == b.weight) return a.amount <=> b.amount;
  return Compare(a.exact(), b.exact());
}

}  // namespace tessera

#endif  // TESSERA_SHARE_WEIGHTED_SHARE_H_
