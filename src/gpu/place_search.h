#ifndef TESSERA_SRC_GPU_PLACE_SEARCH_H_
#define TESSERA_SRC_GPU_PLACE_SEARCH_H_

// The search behind defragmentation and repartition: instances look for places on GPUs
// whose present pieces may be displaced at a cost, and then look for places themselves.

#include <compare>
#include <cstdint>
#include <functional>
#include <vector>

#include "tessera/gpu/layout.h"

namespace tessera {

// What a plan costs: first the sum of the costs, then how many pieces it displaces.
struct PlaceCost {
  int64_t sum = 0;
  int64_t count = 0;

  bool operator==(const PlaceCost&) const = default;
  auto operator<=>(const PlaceCost&) const = default;
  PlaceCost operator+(const PlaceCost& other) const {
    return {sum + other.sum, count + other.count};
  }
};

// What stands on a GPU of the search.
struct Piece {
  Instance instance;
  bool displaceable = false;
  int64_t cost = 0;  // of displacing it

  bool operator==(const Piece&) const = default;
};

// A GPU of the search.
struct PlaceTarget {
  std::vector<Piece> pieces;    // legal together
  std::vector<Instance> slots;  // if `only_slots`: the places that remain
  bool only_slots = false;
  int64_t entry_cost = 0;  // of placing the first instance on it

  bool operator==(const PlaceTarget&) const = default;
};

// An instance in search of a place: wanted, or displaced from `gpu` (else -1).
struct PlaceItem {
  int profile = 0;
  int gpu = -1;
  int piece = -1;
};

// `items`[item] goes to `gpu`; the pieces in `displaced` (bits) leave it for that.
struct PlaceStep {
  int item = 0;
  int gpu = 0;
  Instance at;
  uint32_t displaced = 0;
};

struct PlaceProblem {
  const MigTables* tables = nullptr;
  std::vector<PlaceTarget> targets;
  std::vector<int> wanted;  // profiles
  // Of each profile, how many displaced pieces need no new place; the others cost
  // `return_cost` more.
  std::vector<int64_t> surplus;
  int64_t return_cost = 0;
};

enum class PlaceEnd { kFound, kInfeasible, kExhausted };

struct PlaceResult {
  PlaceEnd end = PlaceEnd::kFound;
  PlaceCost cost;
  std::vector<PlaceItem> items;  // the wanted ones first
  std::vector<PlaceStep> steps;  // one for each item
};

// Whether a result will do; takes the steps that it needed from `budget`.
using PlaceAccept = std::function<bool(const PlaceResult& result, int64_t& budget)>;

// The cheapest way to give every item a place, among those that `accept` likes, whose
// answer must not depend on which of several items of one profile goes where. An item
// that was placed stays; a piece is displaced once at most. Exact: best first by the
// cost so far plus what the open items must cost at least. The largest item is placed
// first; GPUs that are alike count as one. `budget` counts the
// places looked at. Ties: the lowest GPU, then the lowest start, except where a bound
// reorders the search; nothing but the arguments decides.
PlaceResult SearchPlaces(const PlaceProblem& problem, int64_t budget, const PlaceAccept& accept);

}  // namespace tessera

#endif  // TESSERA_SRC_GPU_PLACE_SEARCH_H_
