#ifndef TESSERA_SRC_SHARE_WATER_FILLING_H_
#define TESSERA_SRC_SHARE_WATER_FILLING_H_

// Raising many levels together until something runs out, in whole units.

#include <array>
#include <cstdint>
#include <vector>

#include "tessera/resources/resource_vector.h"
#include "tessera/share/weighted_share.h"

namespace tessera {

// A column of `Vessels`; empty where nobody has any.
using Column = std::vector<int64_t>;

// What is filled: each vessel takes each resource in proportion to the level, from
// nothing at 0 to all its room at `full`.
struct Vessels {
  std::vector<WeightedShare> full;            // by vessel: the level, all its room
  std::array<Column, kMaxResources> room;     // filling leaves what was taken here
  ResourceVector unit;                        // that is not cut; 0 or 1: base units
  std::array<Column, kMaxResources> held;     // already, where units are whole
  std::array<Column, kMaxResources> tie_key;  // the smaller is rounded up first
};

// Whether a vessel that is short of one resource goes on with the others.
enum class WhenShort { kGoOn, kStop };

// Fills vessels from `left` (reduced by what they take) at a common rising level.
// A resource that runs out is shared at the level reached, rounded down, and its
// rest by largest remainder, one unit each, ties by `tie_key`, then position. With
// `kGoOn` afterwards, on every resource, either every vessel is full or nothing is
// left. O(vessels * resources), times the resources once more with `kStop`.
void FillTogether(Vessels& vessels, WhenShort when_short, ResourceVector& left);

}  // namespace tessera

#endif  // TESSERA_SRC_SHARE_WATER_FILLING_H_
