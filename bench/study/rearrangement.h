#ifndef TESSERA_BENCH_STUDY_REARRANGEMENT_H_
#define TESSERA_BENCH_STUDY_REARRANGEMENT_H_

// What would fit if all slices could be rearranged at any time, for nothing: the
// reference of the study, which no placement without moves can reach.

#include <algorithm>
#include <array>

#include "bench/study/traffic.h"

namespace tessera::study {

using SliceCounts = std::array<int, kKinds>;

// Whether slices in these numbers fit on `gpus` GPUs of an A100 or H100 80 GB. Exact.
//
// No slice but a 7g crosses the middle of a GPU: its left half (units 0-3) and its right
// half (units 4-7) are filled independently.
//   left:  one 4g, or one 3g, or 4 units of 2g (2 at most) and 1g
//   right: one 3g, or 3 units of 2g (1 at most) and 1g; nothing small starts at unit 7
// A half that is not given to a 3g has room for one more 2g on the left than on the
// right, and for one more unit. So 3g go to the right while there is a right half, and
// then only the sums of what the other halves hold matter.
inline bool FitRearranged(const SliceCounts& count, int gpus) {
  const int right_of_3g = std::min(count[k3g], gpus - count[k7g]);
  const int left = gpus - count[k7g] - count[k4g] - (count[k3g] - right_of_3g);
  const int right = gpus - count[k7g] - right_of_3g;
  if (left < 0 || right < 0) return false;
  return count[k2g] <= 2 * left + right && count[k1g] + 2 * count[k2g] <= 4 * left + 3 * right;
}

// How many more of `kind`, and of no other, would fit beside `count`, which fits.
// Doubling and halving: O(log units).
inline int RoomRearranged(SliceCounts count, int gpus, int kind) {
  const int held = count[kind];
  int fits = 0;
  int too_many = gpus * kSlicesPerGpu + 1;
  while (fits + 1 < too_many) {
    const int middle = fits + (too_many - fits) / 2;
    count[kind] = held + middle;
    (FitRearranged(count, gpus) ? fits : too_many) = middle;
  }
  return fits;
}

}  // namespace tessera::study

#endif  // TESSERA_BENCH_STUDY_REARRANGEMENT_H_
