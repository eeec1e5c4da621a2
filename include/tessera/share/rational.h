#ifndef TESSERA_SHARE_RATIONAL_H_
#define TESSERA_SHARE_RATIONAL_H_

// Exact comparison of fractions too large to cross-multiply.

#include <compare>
#include <utility>

#include "absl/numeric/int128.h"

namespace tessera {

// A non-negative fraction; `denominator` > 0. Not reduced, so there is no `==`
// but by value (`Compare`).
struct Rational {
  absl::int128 numerator = 0;
  absl::int128 denominator = 1;
};

// Compares by value without overflow: whole parts first, then the reciprocals of
// the remainders (the continued fraction). O(log) divisions, mostly one.
inline std::strong_ordering Compare(Rational a, Rational b) {
  while (true) {
    const absl::int128 whole_a = a.numerator / a.denominator;
    const absl::int128 whole_b = b.numerator / b.denominator;
    if (whole_a != whole_b) {
      return whole_a < whole_b ? std::strong_ordering::less : std::strong_ordering::greater;
    }
    a.numerator -= whole_a * a.denominator;
    b.numerator -= whole_b * b.denominator;
    if (a.numerator == 0 || b.numerator == 0) {
      return (a.numerator == 0 ? 0 : 1) <=> (b.numerator == 0 ? 0 : 1);
    }
    // a < b exactly when 1/a > 1/b.
    std::swap(a.numerator, a.denominator);
    std::swap(b.numerator, b.denominator);
    std::swap(a, b);
  }
}

}  // namespace tessera

#endif  // TESSERA_SHARE_RATIONAL_H_
