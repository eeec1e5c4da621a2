#ifndef TESSERA_GPU_SLICE_COSTS_H_
#define TESSERA_GPU_SLICE_COSTS_H_

// What it costs to give away a place for a MIG instance, as table look-ups: the score
// of the layout, and what has to be done to the GPU.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tessera/gpu/layout.h"

namespace tessera {

// Costs beyond the score of a layout, in the unit of the score. Below zero: wished for.
struct SliceCosts {
  int64_t open = 0;     // a free GPU no longer serves whole
  int64_t set_mig = 0;  // MIG mode is switched on
  int64_t create = 0;   // an instance is carved
  int64_t destroy = 0;  // an idle instance goes, for each

  friend bool operator==(const SliceCosts&, const SliceCosts&) = default;
};

// The costs of one GPU model under one scorer. Immutable.
class SliceCostTable {
 public:
  // The score of `profile` at `start` beside `before`; lower is better.
  using Score = std::function<int64_t(LayoutKey before, int profile, int start)>;

  // Where carving is cheapest, `SliceCosts` apart.
  struct Best {
    int64_t score = 0;
    int start = -1;  // -1: nowhere
  };

  // `score` must depend on its arguments alone; it is asked about every key and place
  // now, and about idle instances later. `fixed[profile]` is what the use of an idle
  // instance costs where nothing can be carved. Scores and costs count as no larger
  // than 2^36 either way, so that sums cannot overflow. Ties: the lowest start.
  // O(keys * profiles * starts) time, O(keys * profiles) space: 50 KiB on an A100.
  SliceCostTable(const MigTables& tables, Score score, std::vector<int64_t> fixed,
                 const SliceCosts& costs);

  const SliceCosts& costs() const { return costs_; }
  int64_t FixedScore(int profile) const { return fixed_[static_cast<size_t>(profile)]; }
  // `tables.CanPlace(key, profile, start)` must hold.
  int64_t ScoreOf(LayoutKey key, int profile, int start) const;
  const Best& BestOf(LayoutKey key, int profile) const {
    return best_[tables_.StateOf(key) * fixed_.size() + static_cast<size_t>(profile)];
  }

 private:
  MigTables tables_;
  Score score_;
  SliceCosts costs_;
  std::vector<int64_t> fixed_;  // [profile]
  std::vector<Best> best_;      // [state][profile]
};

}  // namespace tessera

#endif  // TESSERA_GPU_SLICE_COSTS_H_
