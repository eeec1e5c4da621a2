#include <algorithm>
#include <map>
#include <vector>

#include "tessera/resources/units.h"
#include "tessera/share/fair_shares.h"
#include "tessera/share/fraction.h"

namespace tessera {
namespace {

// One queue's way through the division of one resource.
struct KaiClaim {
  Claim* claim = nullptr;
  int64_t open = 0;     // requestable and not granted yet
  Fraction part{0, 1};  // of a unit that the last round rounded away
};

// The part of a resource that rounding down keeps whole.
int64_t UnitOf(int r) { return r == kGpu ? kGpuUnitsPerDevice : 1; }

int64_t GrantDeserved(std::span<Claim> claims, int r, int64_t total) {
  int64_t left = total;
  for (Claim& claim : claims) {
    const int64_t deserved = claim.quota[r] == kUnlimited ? total : claim.quota[r];
    claim.share[r] = std::max<int64_t>(std::min(deserved, claim.ceiling[r]), 0);
    left -= claim.share[r];
  }
  return left;
}

// Rounds over one priority bucket until no queue asks for less than its part.
void RunRounds(std::vector<KaiClaim>& bucket, int r, int64_t& left) {
  for (bool again = true; again && left > 0;) {
    again = false;
    int64_t weights = 0;
    for (const KaiClaim& c : bucket) {
      if (c.open > 0) weights += c.claim->weight[r];
    }
    if (weights == 0) return;
    const int64_t pool = left;
    for (KaiClaim& c : bucket) {
      if (c.open <= 0) continue;
      const absl::int128 part = absl::int128{pool} * c.claim->weight[r];
      const absl::int128 unit = absl::int128{weights} * UnitOf(r);
      int64_t grant = 0;
      if (absl::int128{c.open} * weights <= part) {
        again |= absl::int128{c.open} * weights < part;
        grant = c.open;
        c.part = {0, 1};
      } else {
        grant = static_cast<int64_t>(part / unit) * UnitOf(r);
        c.part = {part % unit, unit};
      }
      c.claim->share[r] += grant;
      c.open -= grant;
      left -= grant;
    }
  }
}

// One more unit each, by larger part, then age, then name.
void GiveLeftover(std::vector<KaiClaim>& bucket, int r, int64_t& left) {
  std::vector<KaiClaim*> order;
  for (KaiClaim& c : bucket) {
    if (c.part.numerator > 0) order.push_back(&c);
  }
  std::ranges::stable_sort(order, [](const KaiClaim* a, const KaiClaim* b) {
    const std::strong_ordering parts = Compare(a->part, b->part);
    if (parts != 0) return parts > 0;
    return a->claim->created < b->claim->created;
  });
  for (KaiClaim* c : order) {
    const int64_t grant = std::min(UnitOf(r), left);
    c->claim->share[r] += grant;
    left -= grant;
  }
}

void DivideByKai(const Division& division, std::span<Claim> claims, int r) {
  int64_t left = GrantDeserved(claims, r, division.total[r]);
  if (left <= 0) return;
  std::map<int, std::vector<KaiClaim>, std::greater<>> buckets;
  for (Claim& claim : claims) {
    buckets[claim.priority].push_back({&claim, claim.ceiling[r] - claim.share[r], {0, 1}});
  }
  for (auto& bucket : buckets) RunRounds(bucket.second, r, left);
  for (auto& bucket : buckets) GiveLeftover(bucket.second, r, left);
}

}  // namespace

void KaiDivision::Divide(const Division& division, std::span<Claim> claims) const {
  PerResourceDivision().Divide(division, claims);
  for (int r : {kCpu, kMemory, kGpu}) DivideByKai(division, claims, r);
}

}  // namespace tessera
