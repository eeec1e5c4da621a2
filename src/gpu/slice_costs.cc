#include "tessera/gpu/slice_costs.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tessera {
namespace {

int64_t Bounded(int64_t amount) {
  constexpr int64_t kMost = int64_t{1} << 36;
  return std::clamp(amount, -kMost, kMost);
}

}  // namespace

SliceCostTable::SliceCostTable(const MigTables& tables, Score score, std::vector<int64_t> fixed,
                               const SliceCosts& costs)
    : tables_(tables),
      score_(std::move(score)),
      costs_{Bounded(costs.open), Bounded(costs.set_mig), Bounded(costs.create),
             Bounded(costs.destroy)},
      fixed_(std::move(fixed)),
      best_(tables.num_states() * fixed_.size()) {
  std::ranges::transform(fixed_, fixed_.begin(), Bounded);
  for (const LayoutKey key : tables.ReachableKeys()) {
    for (int p = 0; p < static_cast<int>(fixed_.size()); ++p) {
      Best& best = best_[tables.StateOf(key) * fixed_.size() + static_cast<size_t>(p)];
      for (uint32_t open = tables.LegalStarts(key, p); open != 0; open &= open - 1) {
        const int start = std::countr_zero(open);
        const int64_t value = ScoreOf(key, p, start);
        if (best.start < 0 || value < best.score) best = {value, start};
      }
    }
  }
}

int64_t SliceCostTable::ScoreOf(LayoutKey key, int profile, int start) const {
  return Bounded(score_(key, profile, start));
}

}  // namespace tessera
