#ifndef TESSERA_SRC_SHARE_PAST_USE_H_
#define TESSERA_SRC_SHARE_PAST_USE_H_

// How past use enters a division.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/numeric/int128.h"
#include "tessera/share/division.h"

namespace tessera {

// The weights of resource `r` of the siblings `rows`, corrected by what they used:
// w / W + k (w / W - u), where W is the sum of the weights of those with `room`,
// u the past use as a part of what the siblings share, and k the strength. Positive
// weights stay positive: at least 1/1024 of the largest. On a common scale; below
// 2^45. Without past use the weights themselves.
std::vector<int64_t> WeightsByPastUse(const Division& division, const Claims& claims,
                                      std::span<const size_t> rows, std::span<const int64_t> room,
                                      int r);

// (1000 + k) w - k u W, times `kUsageOne`; the same before scaling and clamping.
absl::int128 CorrectedWeight(const Division& division, int64_t weight, int64_t weights,
                             int64_t past_use, int r);

}  // namespace tessera

#endif  // TESSERA_SRC_SHARE_PAST_USE_H_
