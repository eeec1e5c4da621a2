#ifndef TESSERA_SRC_IO_TILES_H_
#define TESSERA_SRC_IO_TILES_H_

// What pictures of a cluster are made of.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/cluster/snapshot.h"

namespace tessera::io_internal {

// One pod's part of one GPU: a slice if `profile` is not negative, else `share` of the
// device, else all of it.
struct Tile {
  PodId pod;
  PodPhase phase = PodPhase::kRunning;
  int32_t share = 0;  // 1/7000 of the device
  int profile = -1;   // of the node's model
  int start = 0;

  bool is_slice() const { return profile >= 0; }
};

// The tiles of every GPU: [node][gpu], releasing pods first, each group by id. Nominated
// tiles may overlap releasing ones, and be of another kind.
std::vector<std::vector<std::vector<Tile>>> CollectTiles(const Snapshot& snapshot);

// What is said of a node beside its name: `(H100-80GB, b1/r1)  5 of 8 GPUs without pods`.
std::string NodeNote(const Snapshot& snapshot, NodeId n,
                     const std::vector<std::vector<Tile>>& tiles);

}  // namespace tessera::io_internal

#endif  // TESSERA_SRC_IO_TILES_H_
