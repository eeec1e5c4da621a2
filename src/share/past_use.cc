#include "src/share/past_use.h"

#include <algorithm>

#include "absl/numeric/int128.h"

namespace tessera {

absl::int128 CorrectedWeight(const Division& division, int64_t weight, int64_t weights,
                             int64_t past_use, int r) {
  constexpr int64_t kStrengthOne = 1000;
  // As a part of what these siblings share, which may be less than the cluster.
  const int64_t total = std::max<int64_t>(division.total[r], 1);
  const int64_t capacity = std::max<int64_t>(division.capacity[r], total);
  const absl::int128 part = std::min<absl::int128>(absl::int128{past_use} * capacity / total,
                                                   absl::int128{kUsageOne} * 1000);
  return absl::int128{kStrengthOne + division.usage_strength} * weight * kUsageOne -
         absl::int128{division.usage_strength} * part * weights;
}

std::vector<int64_t> WeightsByPastUse(const Division& division, const Claims& claims,
                                      std::span<const size_t> rows, std::span<const int64_t> room,
                                      int r) {
  std::vector<int64_t> weights(rows.size());
  int64_t sum = 0;
  for (size_t k = 0; k < rows.size(); ++k) {
    weights[k] = claims.weight[r][rows[k]];
    if (room[k] > 0) sum += weights[k];
  }
  if (division.usage_strength == 0 || claims.past_use.empty() || sum == 0) return weights;
  std::vector<absl::int128> corrected(rows.size());
  absl::int128 largest = 1;
  for (size_t k = 0; k < rows.size(); ++k) {
    if (room[k] == 0 || weights[k] == 0) continue;
    corrected[k] = CorrectedWeight(division, weights[k], sum, claims.past_use[r][rows[k]], r);
    largest = std::max(largest, corrected[k]);
  }
  constexpr int64_t kLeastPart = 1024;
  constexpr absl::int128 kLargest = int64_t{1} << 44;
  const absl::int128 divisor = largest / kLargest + 1;
  const absl::int128 least = std::max<absl::int128>(largest / divisor / kLeastPart, 1);
  for (size_t k = 0; k < rows.size(); ++k) {
    if (room[k] == 0 || weights[k] == 0) continue;
    weights[k] = static_cast<int64_t>(std::max(corrected[k] / divisor, least));
  }
  return weights;
}

}  // namespace tessera
