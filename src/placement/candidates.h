#ifndef TESSERA_SRC_PLACEMENT_CANDIDATES_H_
#define TESSERA_SRC_PLACEMENT_CANDIDATES_H_

// The candidates of one node, as `FindBest` and `RankedFinder` show them to scorers.

#include <vector>

#include "tessera/placement/node_scorer.h"
#include "tessera/placement/pod_query.h"

namespace tessera::placement_internal {

// Appends the candidates of an eligible node, devices ascending.
inline void AddCandidates(const ClusterState& state, const PodQuery& query, NodeId n,
                          bool every_device, std::vector<Candidate>& candidates) {
  const auto add = [&](const PodPlacement& placement) {
    candidates.push_back({n, placement, state.free_gpus(n), state.room(n)});
  };
  if (every_device) {
    ForEachPlacement(state, query, n, add);
  } else if (const auto packed = ChooseDevices(state, query, n, DevicePreference::kPack)) {
    add(*packed);
  }
}

}  // namespace tessera::placement_internal

#endif  // TESSERA_SRC_PLACEMENT_CANDIDATES_H_
