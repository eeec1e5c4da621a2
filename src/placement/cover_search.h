#ifndef TESSERA_SRC_PLACEMENT_COVER_SEARCH_H_
#define TESSERA_SRC_PLACEMENT_COVER_SEARCH_H_

// How many pods of each demand does each node take, so that all demands are met?
// Domains are chosen by then: what is left is to cover a vector of counts by one
// bundle of pods per node.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "src/placement/node_classes.h"

namespace tessera {

// `need` pods of a type on the nodes of a range, on one GPU model if it is valid.
// Ranges of two demands are nested or apart.
struct Demand {
  int type = 0;
  int need = 0;
  NodeRange range;
  ModelId model;

  friend bool operator==(const Demand&, const Demand&) = default;
};

// Pods by node, ascending.
using NodeCounts = std::vector<std::pair<int, int>>;

// Searches for one set of demands. Equal nodes (of one class and in the same
// ranges) form a cell; of a cell's nodes it only matters how many take which
// bundle, and only bundles to which no pod could be added need be tried. States
// (cell, nodes left, counts left) that failed are remembered, and a state is given
// up when, for one of several weightings of the demands, all remaining nodes
// together cannot carry the weight left: the bound of the linear relaxation.
class CoverSearch {
 public:
  CoverSearch(NodeClasses& classes, std::span<const Demand> demands, int64_t& budget);

  // kYes: `cover()` holds. kUndecided: `budget` ran out.
  Verdict Run();

  // Pods by demand and node.
  const std::vector<NodeCounts>& cover() const { return cover_; }

 private:
  using Counts = std::vector<int>;    // of a bundle, by demand
  using Open = std::vector<int64_t>;  // pods still to be covered, by demand

  struct Cell {
    int node_class = 0;
    uint64_t demands = 0;  // bit d: its nodes may serve demand d
    std::vector<int> nodes;
    std::vector<Counts> bundles;
    std::vector<int64_t> loads;  // by weighting: the most that one bundle carries
  };

  void MakeCells();
  bool FillBundles(Cell& cell);
  void Enumerate(Cell& cell, std::span<const int> demands, size_t at, Counts& bundle);
  bool IsMaximal(const Cell& cell, std::span<const int> demands, Counts& bundle);
  bool Fits(const Cell& cell, const Counts& bundle);
  void MakeWeightings();
  void WeighCells();
  Verdict ChooseBundles();
  bool IsTooHeavy(size_t cell, int left, const Open& open) const;
  bool Cover(size_t cell, size_t bundle, int left, Open& open);
  void WriteCover();
  bool Spend();

  NodeClasses& classes_;
  const std::vector<Demand> demands_;
  int64_t& budget_;
  bool undecided_ = false;
  std::vector<Cell> cells_;
  std::vector<std::vector<int64_t>> weightings_;  // [weighting][demand]
  std::vector<std::vector<int64_t>> loads_from_;  // [cell][weighting]: of it and later ones
  std::vector<std::vector<int>> uses_;            // [cell][bundle]: nodes that take it
  absl::flat_hash_set<std::string> failed_;
  std::vector<NodeCounts> cover_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_PLACEMENT_COVER_SEARCH_H_
