#include "src/gpu/covering.h"

#include <cassert>
#include <cstddef>
#include <utility>

#include "absl/numeric/int128.h"

namespace tessera {
namespace {

constexpr int kMaxPivots = 1000;

// The dictionary of a basis: each row states a basic variable as a constant (last
// column) plus multiples of the others; the last row states the objective. All numbers
// stand over one positive denominator. Variables: 0..n-1 the columns of the program,
// n + i the surplus of item i.
class Dictionary {
 public:
  Dictionary(const std::vector<ItemCounts>& columns, const ItemCounts& demand)
      : items_(demand.size()), columns_(columns.size()) {
    cells_.assign((items_ + 1) * (columns_ + 1), 0);
    for (size_t c = 0; c < columns_; ++c) {
      free_.push_back(c);
      for (size_t i = 0; i < items_; ++i) Cell(i, c) = columns[c][i];
      Cell(items_, c) = 1;
    }
    for (size_t i = 0; i < items_; ++i) {
      basic_.push_back(columns_ + i);
      Cell(i, columns_) = -demand[i];
    }
  }

  // The row of the lowest variable that is negative; none = optimal.
  std::optional<size_t> Leaving() const {
    std::optional<size_t> leaving;
    for (size_t i = 0; i < items_; ++i) {
      if (At(i, columns_) >= 0) continue;
      if (!leaving || basic_[i] < basic_[*leaving]) leaving = i;
    }
    return leaving;
  }

  // Of the variables that raise `row`, the one that costs the least for it.
  size_t Entering(size_t row) const {
    std::optional<size_t> best;
    for (size_t c = 0; c < columns_; ++c) {
      if (At(row, c) <= 0) continue;
      if (!best) {
        best = c;
        continue;
      }
      const absl::int128 mine = absl::int128(At(items_, c)) * At(row, *best);
      const absl::int128 theirs = absl::int128(At(items_, *best)) * At(row, c);
      if (mine < theirs || (mine == theirs && free_[c] < free_[*best])) best = c;
    }
    assert(best.has_value());  // every item is in some column
    return *best;
  }

  // Exchanges the variables; false when a number does not fit.
  bool Pivot(size_t row, size_t column) {
    const int64_t pivot = At(row, column);
    for (size_t i = 0; i <= items_; ++i) {
      if (i == row) continue;
      for (size_t c = 0; c <= columns_; ++c) {
        if (c == column) continue;
        // Divides without a remainder: both sides are minors of one matrix.
        const absl::int128 next =
            (absl::int128(pivot) * At(i, c) - absl::int128(At(i, column)) * At(row, c)) /
            denominator_;
        if (next > INT64_MAX || next < -INT64_MAX) return false;
        Cell(i, c) = static_cast<int64_t>(next);
      }
    }
    for (size_t c = 0; c <= columns_; ++c) Cell(row, c) = -At(row, c);
    Cell(row, column) = denominator_;
    denominator_ = pivot;
    std::swap(basic_[row], free_[column]);
    return true;
  }

  FractionalCover Solution() const {
    FractionalCover cover = {ItemCounts(columns_, 0), {ItemCounts(items_, 0), denominator_}};
    for (size_t i = 0; i < items_; ++i) {
      if (basic_[i] < columns_) cover.times[basic_[i]] = At(i, columns_) / denominator_;
    }
    for (size_t c = 0; c < columns_; ++c) {
      if (free_[c] >= columns_) cover.weights.weight[free_[c] - columns_] = At(items_, c);
    }
    return cover;
  }

 private:
  int64_t At(size_t row, size_t column) const { return cells_[row * (columns_ + 1) + column]; }
  int64_t& Cell(size_t row, size_t column) { return cells_[row * (columns_ + 1) + column]; }

  size_t items_;
  size_t columns_;
  std::vector<int64_t> cells_;
  std::vector<size_t> basic_;  // [row] variable
  std::vector<size_t> free_;   // [column] variable
  int64_t denominator_ = 1;
};

}  // namespace

int64_t ColumnsNeeded(const ItemWeights& weights, const ItemCounts& demand) {
  absl::int128 sum = 0;
  for (size_t i = 0; i < demand.size(); ++i) sum += absl::int128(weights.weight[i]) * demand[i];
  return static_cast<int64_t>((sum + weights.whole - 1) / weights.whole);
}

std::optional<FractionalCover> SolveCovering(const std::vector<ItemCounts>& columns,
                                             const ItemCounts& demand) {
  Dictionary dictionary(columns, demand);
  for (int pivots = 0; pivots < kMaxPivots; ++pivots) {
    const std::optional<size_t> row = dictionary.Leaving();
    if (!row) return dictionary.Solution();
    if (!dictionary.Pivot(*row, dictionary.Entering(*row))) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace tessera
