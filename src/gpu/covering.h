#ifndef TESSERA_SRC_GPU_COVERING_H_
#define TESSERA_SRC_GPU_COVERING_H_

// Covering a demand by the fewest columns: the linear relaxation and its dual.

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera {

// One number per demanded item.
using ItemCounts = std::vector<int64_t>;

// Weights of the items of which no column holds more than `whole`: any cover of
// a demand d has at least (weight . d) / whole columns. All are >= 0, `whole` > 0.
struct ItemWeights {
  ItemCounts weight;
  int64_t whole = 1;
};

// The columns needed at least for `demand`, rounded up.
int64_t ColumnsNeeded(const ItemWeights& weights, const ItemCounts& demand);

// A fractional cover with the fewest columns, `times`[column], rounded down, and the
// weights that prove it so.
struct FractionalCover {
  ItemCounts times;
  ItemWeights weights;
};

// Minimizes the sum of x over x >= 0 with (sum of x[c] * columns[c]) >= demand. Exact:
// the dual simplex method on a tableau of integers over a common denominator. Ties by
// the lowest variable (Bland), so that it ends. None when a number outgrows 64 bits or
// after 1,000 pivots; the catalogue's models need about ten.
//
// Preconditions: every item is in some column. O(items * columns) per pivot.
std::optional<FractionalCover> SolveCovering(const std::vector<ItemCounts>& columns,
                                             const ItemCounts& demand);

}  // namespace tessera

#endif  // TESSERA_SRC_GPU_COVERING_H_
