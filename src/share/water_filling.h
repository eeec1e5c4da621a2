#ifndef TESSERA_SRC_SHARE_WATER_FILLING_H_
#define TESSERA_SRC_SHARE_WATER_FILLING_H_

// Raising many levels together until something runs out, in whole units.

#include <cstdint>
#include <vector>

#include "absl/numeric/int128.h"
#include "tessera/resources/resource_vector.h"
#include "tessera/share/fraction.h"

namespace tessera {

// One vessel: how much it can take of each resource, and the level at which it
// has taken all of it. In between it takes each resource in proportion.
struct Vessel {
  ResourceVector room;
  Fraction full_at;       // > 0 if any room
  ResourceVector filled;  // out
};

// Fills vessels from `total` (reduced by what they take) at a common rising
// level. A resource that runs out is shared at the level reached, rounded down,
// and its rest one unit each by largest remainder, ties by position; filling goes
// on with the other resources. Afterwards, on every resource, either every vessel
// is full or nothing is left. O(Q * (log Q + R * 25)) for Q vessels and R resources,
// for each resource that runs out.
void FillTogether(std::vector<Vessel>& vessels, ResourceVector& total);

}  // namespace tessera

#endif  // TESSERA_SRC_SHARE_WATER_FILLING_H_
