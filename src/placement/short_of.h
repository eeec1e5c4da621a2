#ifndef TESSERA_SRC_PLACEMENT_SHORT_OF_H_
#define TESSERA_SRC_PLACEMENT_SHORT_OF_H_

// Of what is there too little?

#include "tessera/base/ids.h"
#include "tessera/cluster/topology.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// What the nodes of `range` have for the fewest pods of `s`, all else aside, as
// `Shortfall::short_of` numbers it. O(nodes * resources + GPUs).
int ShortOf(const ClusterState& state, PodSetId s, NodeRange range);

}  // namespace tessera

#endif  // TESSERA_SRC_PLACEMENT_SHORT_OF_H_
