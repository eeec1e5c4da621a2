#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <vector>

#include "src/share/past_use.h"
#include "tessera/resources/units.h"
#include "tessera/share/fair_shares.h"
#include "tessera/share/rational.h"

namespace tessera {
namespace {

// One queue's way through the division of one resource.
struct KaiClaim {
  size_t row = 0;
  int64_t open = 0;     // requestable and not granted yet
  Rational part{0, 1};  // of a unit that the last round rounded away
};

// The part of a resource that rounding down keeps whole.
int64_t UnitOf(int r) { return r == kGpu ? kGpuUnitsPerDevice : 1; }

int64_t GrantDeserved(Claims& claims, int r, int64_t total) {
  int64_t left = total;
  for (size_t i = 0; i < claims.size(); ++i) {
    const int64_t deserved = claims.quota[r][i] == kUnlimited ? total : claims.quota[r][i];
    claims.share[r][i] = std::max<int64_t>(std::min(deserved, claims.ceiling[r][i]), 0);
    left -= claims.share[r][i];
  }
  return left;
}

using Bucket = std::vector<KaiClaim>;

// max(0, nW + k (nW - usage)) of each queue of the bucket that asks for more, on a
// common scale; nW is its part of their weights.
std::vector<int64_t> Parts(const Division& division, const Claims& claims, const Bucket& bucket,
                           int r) {
  std::vector<int64_t> parts(bucket.size());
  int64_t weights = 0;
  for (const KaiClaim& c : bucket) {
    if (c.open > 0) weights += claims.weight[r][c.row];
  }
  if (weights == 0) return parts;
  std::vector<absl::int128> exact(bucket.size());
  absl::int128 sum = 0;
  for (size_t k = 0; k < bucket.size(); ++k) {
    const size_t row = bucket[k].row;
    if (bucket[k].open <= 0) continue;
    if (claims.past_use.empty()) {
      exact[k] = claims.weight[r][row];
    } else {
      const int64_t used = claims.past_use[r][row];
      exact[k] = std::max<absl::int128>(
          CorrectedWeight(division, claims.weight[r][row], weights, used, r), 0);
    }
    sum += exact[k];
  }
  constexpr absl::int128 kLargest = int64_t{1} << 50;
  const absl::int128 divisor = sum / kLargest + 1;
  for (size_t k = 0; k < bucket.size(); ++k) parts[k] = static_cast<int64_t>(exact[k] / divisor);
  return parts;
}

// Rounds over one priority bucket until no queue asks for less than its part.
void RunRounds(const Division& division, Claims& claims, Bucket& bucket, int r, int64_t& left) {
  for (bool again = true; again && left > 0;) {
    again = false;
    const std::vector<int64_t> parts = Parts(division, claims, bucket, r);
    const int64_t sum = std::accumulate(parts.begin(), parts.end(), int64_t{0});
    if (sum == 0) return;
    const int64_t pool = left;
    for (size_t k = 0; k < bucket.size(); ++k) {
      KaiClaim& c = bucket[k];
      if (c.open <= 0) continue;
      const absl::int128 part = absl::int128{pool} * parts[k];
      const absl::int128 unit = absl::int128{sum} * UnitOf(r);
      int64_t grant = 0;
      if (absl::int128{c.open} * sum <= part) {
        again |= absl::int128{c.open} * sum < part;
        grant = c.open;
        c.part = {0, 1};
      } else {
        grant = static_cast<int64_t>(part / unit) * UnitOf(r);
        c.part = {part % unit, unit};
      }
      claims.share[r][c.row] += grant;
      c.open -= grant;
      left -= grant;
    }
  }
}

// One more unit each, by larger part, then age, then name.
void GiveLeftover(Claims& claims, const Bucket& bucket, int r, int64_t& left) {
  Bucket order;
  for (const KaiClaim& c : bucket) {
    if (c.part.numerator > 0) order.push_back(c);
  }
  std::ranges::stable_sort(order, [&claims](const KaiClaim& a, const KaiClaim& b) {
    const std::strong_ordering parts = Compare(a.part, b.part);
    if (parts != 0) return parts > 0;
    return claims.created[a.row] < claims.created[b.row];
  });
  for (const KaiClaim& c : order) {
    const int64_t grant = std::min(UnitOf(r), left);
    claims.share[r][c.row] += grant;
    left -= grant;
  }
}

void DivideByKai(const Division& division, Claims& claims, int r) {
  int64_t left = GrantDeserved(claims, r, division.total[r]);
  if (left <= 0) return;
  std::map<int, Bucket, std::greater<>> buckets;
  for (size_t i = 0; i < claims.size(); ++i) {
    buckets[claims.priority[i]].push_back({i, claims.ceiling[r][i] - claims.share[r][i], {0, 1}});
  }
  for (auto& bucket : buckets) RunRounds(division, claims, bucket.second, r, left);
  for (auto& bucket : buckets) GiveLeftover(claims, bucket.second, r, left);
}

}  // namespace

void KaiDivision::Divide(const Division& division, Claims& claims) const {
  PerResourceDivision().Divide(division, claims);
  for (int r : {kCpu, kMemory, kGpu}) DivideByKai(division, claims, r);
}

}  // namespace tessera
