#ifndef TESSERA_PLACEMENT_SIMPLE_SCORERS_H_
#define TESSERA_PLACEMENT_SIMPLE_SCORERS_H_

// Scorers of one idea each, to use alone or in a `ScoreSum`. Keeping the pods of a gang
// close together is that of `TopologyCompact` (topology_compact.h).

#include <algorithm>
#include <cstdint>

#include "tessera/placement/node_room.h"
#include "tessera/placement/node_scorer.h"

namespace tessera {

// The node with the least left of its GPUs, 1/7000 device. Unlike `FindPacked` it counts
// what is left of shared devices.
struct PackGpus {
  int64_t Score(const ClusterState& state, const RequestClass&, const Candidate& c) const {
    return -RoomOf(state, c.node).left();
  }
};

// The node with the most left.
struct SpreadGpus {
  int64_t Score(const ClusterState& state, const RequestClass&, const Candidate& c) const {
    return RoomOf(state, c.node).left();
  }
};

// Each resource its own way: the sum of what would be free of it after the placement, per
// mille of the node's capacity, times its weight. Below zero packs, above zero spreads;
// the default packs GPUs and spreads CPU.
struct PerResource {
  int64_t gpu = -4;
  int64_t cpu = 1;
  int64_t memory = 0;

  int64_t Score(const ClusterState& state, const RequestClass& request, const Candidate& c) const {
    const auto part = [](int64_t free, int64_t all) {
      return all > 0 ? std::max<int64_t>(free, 0) / ((all + 999) / 1000) : 0;
    };
    const ResourceVector& capacity = state.snapshot().node_capacity(c.node);
    const NodeRoom before = RoomOf(state, c.node);
    const int64_t left = RoomAfter(state, before, request, c).left();
    return gpu * part(left, before.num_devices * kGpuUnitsPerDevice) +
           cpu * part(c.free[kCpu] - request.need[kCpu], capacity[kCpu]) +
           memory * part(c.free[kMemory] - request.need[kMemory], capacity[kMemory]);
  }
};

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_SIMPLE_SCORERS_H_
