#ifndef TESSERA_TESTS_SUPPORT_RANDOM_CASES_H_
#define TESSERA_TESTS_SUPPORT_RANDOM_CASES_H_

// How many cases a random suite runs.

#include <cstdlib>

namespace tessera {

// `short_count`, or `long_count` under `./dev test --long`. With a sanitizer, which is
// some five times slower, a fifth of the short count: the plain build runs them all.
inline int RandomCases(int short_count, int long_count) {
  if (std::getenv("TESSERA_LONG") != nullptr) return long_count;
#ifdef __SANITIZE_ADDRESS__
  short_count = (short_count + 4) / 5;
#endif
  return short_count;
}

}  // namespace tessera

#endif  // TESSERA_TESTS_SUPPORT_RANDOM_CASES_H_
