#include <algorithm>
#include <map>

#include "absl/functional/function_ref.h"
#include "src/share/water_filling.h"
#include "tessera/resources/units.h"
#include "tessera/share/fair_shares.h"

namespace tessera {
namespace {

// Sets each share to its quota, as far as it can be used. Where quotas ask for
// more than there is, they are met in equal proportion.
ResourceVector GrantQuotas(const Division& division, std::span<Claim> claims) {
  ResourceVector left = division.total;
  for (int r = 0; r < division.resources->size(); ++r) {
    const bool any = std::ranges::any_of(
        claims, [r](const Claim& claim) { return std::min(claim.quota[r], claim.ceiling[r]) > 0; });
    if (!any) continue;
    std::vector<Vessel> vessels(claims.size());
    ResourceVector total;
    total[r] = std::max<int64_t>(left[r], 0);
    for (size_t i = 0; i < claims.size(); ++i) {
      // An unlimited quota competes as one for everything.
      const int64_t quota = claims[i].quota[r] == kUnlimited ? total[r] : claims[i].quota[r];
      const int64_t usable = std::min(claims[i].quota[r], claims[i].ceiling[r]);
      if (usable <= 0) continue;
      vessels[i].room[r] = usable;
      // Met in proportion to the quota: full when the common fraction of quota
      // reaches usable / quota.
      vessels[i].full_at = {usable, std::max<int64_t>(quota, 1)};
    }
    FillTogether(vessels, total);
    left[r] = total[r];
    for (size_t i = 0; i < claims.size(); ++i) claims[i].share[r] = vessels[i].filled[r];
  }
  return left;
}

// The level at which a queue's surplus `room` is full: the part of the cluster
// that it is of resource `r`, over the weight.
Fraction LevelOf(const Division& division, const Claim& claim, const ResourceVector& room, int r,
                 bool weighted) {
  const int64_t weight = weighted ? claim.weight[r] : kWeightOne;
  const int64_t capacity = std::max<int64_t>(division.capacity[r], 1);
  return {absl::int128{room[r]} * kWeightOne, absl::int128{capacity} * weight};
}

// The vessel of one queue for its unmet demand on `resources`.
Vessel SurplusVessel(const Division& division, const Claim& claim, const ResourceVector& left,
                     std::span<const int> resources, bool weighted) {
  Vessel vessel;
  for (int r : resources) {
    const bool may_take = left[r] > 0 && (!weighted || claim.weight[r] > 0);
    if (may_take) vessel.room[r] = std::max<int64_t>(claim.ceiling[r] - claim.share[r], 0);
  }
  vessel.full_at = {0, 1};
  const auto raise = [&](bool dominance) {
    for (int r : resources) {
      if (vessel.room[r] == 0 || IsDominanceResource(*division.resources, r) != dominance) {
        continue;
      }
      const Fraction level = LevelOf(division, claim, vessel.room, r, weighted);
      if (Compare(level, vessel.full_at) > 0) vessel.full_at = level;
    }
  };
  raise(true);
  if (vessel.full_at.numerator == 0) raise(false);
  return vessel;
}

// Divides what is left of `resources` by priority, then among weight 0.
void GrantSurplus(const Division& division, std::span<Claim> claims, std::span<const int> resources,
                  ResourceVector& left) {
  std::map<int, std::vector<Claim*>, std::greater<>> buckets;
  for (Claim& claim : claims) buckets[claim.priority].push_back(&claim);
  const auto fill = [&](std::span<Claim* const> bucket, bool weighted) {
    std::vector<Vessel> vessels;
    vessels.reserve(bucket.size());
    for (const Claim* claim : bucket) {
      vessels.push_back(SurplusVessel(division, *claim, left, resources, weighted));
    }
    FillTogether(vessels, left);
    for (size_t i = 0; i < bucket.size(); ++i) bucket[i]->share += vessels[i].filled;
  };
  for (const bool weighted : {true, false}) {
    for (const auto& bucket : buckets) fill(bucket.second, weighted);
  }
}

std::vector<int> AllResources(const Division& division) {
  std::vector<int> all;
  for (int r = 0; r < division.resources->size(); ++r) all.push_back(r);
  return all;
}

}  // namespace

void DominantResourceDivision::Divide(const Division& division, std::span<Claim> claims) const {
  ResourceVector left = GrantQuotas(division, claims);
  GrantSurplus(division, claims, AllResources(division), left);
}

void PerResourceDivision::Divide(const Division& division, std::span<Claim> claims) const {
  ResourceVector left = GrantQuotas(division, claims);
  for (int r : AllResources(division)) GrantSurplus(division, claims, std::span(&r, 1), left);
}

}  // namespace tessera
