#ifndef TESSERA_TESTS_SUPPORT_RANDOM_CASES_H_
#define TESSERA_TESTS_SUPPORT_RANDOM_CASES_H_

// How many cases a random suite runs.

#include <cstdlib>

namespace tessera {

// `short_count`, or `long_count` under `./dev test --long`.
inline int RandomCases(int short_count, int long_count) {
  return std::getenv("TESSERA_LONG") != nullptr ? long_count : short_count;
}

}  // namespace tessera

#endif  // TESSERA_TESTS_SUPPORT_RANDOM_CASES_H_
