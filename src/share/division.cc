#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "src/share/past_use.h"
#include "src/share/water_filling.h"
#include "tessera/resources/units.h"
#include "tessera/share/fair_shares.h"

namespace tessera {
namespace {

// The division among one set of siblings.
class Divider {
 public:
  Divider(const Division& division, Claims& claims)
      : division_(division), claims_(claims), left_(division.total) {
    for (int r = 0; r < claims.resources(); ++r) {
      left_[r] = std::max<int64_t>(left_[r], 0);
      whole_.push_back(division.whole_gpus && division.resources->counts_gpus(r));
      dominates_.push_back(IsDominanceResource(*division.resources, r));
    }
    for (size_t i = 0; i < claims.size(); ++i) buckets_[claims.priority[i]].push_back(i);
  }

  // Sets each share to its quota, as far as it can be used. Where quotas ask for
  // more than there is, they are met in equal proportion.
  void GrantQuotas() {
    for (int r = 0; r < claims_.resources(); ++r) {
      absl::int128 sum = 0;
      for (size_t i = 0; i < claims_.size(); ++i) {
        claims_.share[r][i] =
            std::max<int64_t>(std::min(claims_.quota[r][i], claims_.ceiling[r][i]), 0);
        sum += claims_.share[r][i];
      }
      if (sum > left_[r]) {
        ScaleQuotas(r);
      } else {
        left_[r] -= static_cast<int64_t>(sum);
      }
    }
  }

  // Divides what is left of `resources` by priority, then among weight 0.
  void GrantSurplus(std::span<const int> resources, WhenShort when_short) {
    for (const bool weighted : {true, false}) {
      for (const auto& [priority, bucket] : buckets_) {
        GrantTo(bucket, resources, weighted, when_short);
      }
    }
  }

 private:
  using Bucket = std::vector<size_t>;  // rows of siblings

  // A share of the quota is full when the common fraction of quota reaches the
  // usable part of it; an unlimited quota competes as one for everything.
  void ScaleQuotas(int r) {
    Vessels vessels;
    vessels.full.resize(claims_.size());
    Column& room = vessels.room[static_cast<size_t>(r)];
    room.assign(claims_.share[r].begin(), claims_.share[r].end());
    for (size_t i = 0; i < claims_.size(); ++i) {
      if (room[i] == 0) continue;
      const int64_t quota = claims_.quota[r][i] == kUnlimited ? left_[r] : claims_.quota[r][i];
      vessels.full[i] = WeightedShare::Of(room[i], std::max<int64_t>(quota, 1), 1);
    }
    Bucket all(claims_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    std::ranges::fill(claims_.share[r], 0);
    SetRounding(vessels, all, r);
    FillTogether(vessels, WhenShort::kGoOn, left_);
    std::ranges::copy(room, claims_.share[r].begin());
  }

  void SetRounding(Vessels& vessels, const Bucket& bucket, int r) const {
    const size_t column = static_cast<size_t>(r);
    if (!whole_[column]) return;
    vessels.unit[r] = kGpuUnitsPerDevice;
    for (size_t i : bucket) {
      vessels.held[column].push_back(claims_.share[r][i]);
      vessels.tie_key[column].push_back(claims_.past_use.empty() ? 0 : claims_.past_use[r][i]);
    }
  }

  // Which queues of `bucket` need something of which nothing is left.
  std::vector<bool> Stopped(const Bucket& bucket, std::span<const int> resources) const {
    std::vector<bool> stopped(bucket.size());
    for (size_t k = 0; k < bucket.size(); ++k) {
      stopped[k] = std::ranges::any_of(resources, [&](int r) {
        return left_[r] <= 0 && claims_.ceiling[r][bucket[k]] > claims_.share[r][bucket[k]];
      });
    }
    return stopped;
  }

  // Gives the queues of one bucket what they can take of `resources`.
  void GrantTo(const Bucket& bucket, std::span<const int> resources, bool weighted,
               WhenShort when_short) {
    Vessels vessels;
    vessels.full.resize(bucket.size());
    std::array<Column, kMaxResources> weights;
    const std::vector<bool> stopped = when_short == WhenShort::kStop
                                          ? Stopped(bucket, resources)
                                          : std::vector<bool>(bucket.size());
    for (int r : resources) {
      if (left_[r] <= 0) continue;
      const size_t column = static_cast<size_t>(r);
      Column room(bucket.size());
      bool wanted = false;
      for (size_t k = 0; k < bucket.size(); ++k) {
        const size_t i = bucket[k];
        if (stopped[k] || (weighted && claims_.weight[r][i] == 0)) continue;
        room[k] = std::max<int64_t>(claims_.ceiling[r][i] - claims_.share[r][i], 0);
        wanted |= room[k] > 0;
      }
      if (!wanted) continue;
      weights[column] = weighted ? WeightsByPastUse(division_, claims_, bucket, room, r)
                                 : Column(bucket.size(), kWeightOne);
      vessels.room[column] = std::move(room);
      SetRounding(vessels, bucket, r);
    }
    for (const bool dominant : {true, false}) RaiseFullLevels(vessels, weights, dominant);
    FillTogether(vessels, when_short, left_);
    for (int r : resources) {
      const Column& taken = vessels.room[static_cast<size_t>(r)];
      for (size_t k = 0; k < taken.size(); ++k) claims_.share[r][bucket[k]] += taken[k];
    }
  }

  // A vessel is full at the highest level of its resources: the part of the cluster
  // that its room is, over the weight. Resources that do not dominate count only
  // for a queue that needs no other.
  void RaiseFullLevels(Vessels& vessels, const std::array<Column, kMaxResources>& weights,
                       bool dominant) const {
    std::vector<bool> settled(vessels.full.size());
    for (size_t k = 0; !dominant && k < settled.size(); ++k)
      settled[k] = vessels.full[k].amount > 0;
    for (int r = 0; r < claims_.resources(); ++r) {
      const size_t column = static_cast<size_t>(r);
      const Column& room = vessels.room[column];
      if (dominates_[column] != dominant) continue;
      const int64_t capacity = std::max<int64_t>(division_.capacity[r], 1);
      for (size_t k = 0; k < room.size(); ++k) {
        if (room[k] == 0 || settled[k]) continue;
        const WeightedShare level = WeightedShare::Of(room[k], capacity, weights[column][k]);
        if (Compare(level, vessels.full[k]) > 0) vessels.full[k] = level;
      }
    }
  }

  const Division& division_;
  Claims& claims_;
  ResourceVector left_;
  std::vector<bool> whole_, dominates_;            // by resource
  std::map<int, Bucket, std::greater<>> buckets_;  // by priority, high to low
};

}  // namespace

void DominantResourceDivision::Divide(const Division& division, Claims& claims) const {
  std::vector<int> all(static_cast<size_t>(claims.resources()));
  std::iota(all.begin(), all.end(), 0);
  Divider divider(division, claims);
  divider.GrantQuotas();
  divider.GrantSurplus(all, work_conserving ? WhenShort::kGoOn : WhenShort::kStop);
}

void PerResourceDivision::Divide(const Division& division, Claims& claims) const {
  Divider divider(division, claims);
  divider.GrantQuotas();
  for (int r = 0; r < claims.resources(); ++r) {
    divider.GrantSurplus(std::span(&r, 1), WhenShort::kGoOn);
  }
}

}  // namespace tessera
