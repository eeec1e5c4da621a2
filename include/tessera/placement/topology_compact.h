#ifndef TESSERA_PLACEMENT_TOPOLOGY_COMPACT_H_
#define TESSERA_PLACEMENT_TOPOLOGY_COMPACT_H_

// A scorer that keeps a gang together, for gangs that ask for no level of their own and
// for sums in which closeness is one wish of several.
//
//   const auto find = [](const ClusterState& state, const PodQuery& query) {
//     return FindBest(state, query, TopologyCompact(state, query.pod_set));
//   };

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "tessera/placement/node_scorer.h"

namespace tessera {

// For the next pod of one pod set: near the pods of its gang that are placed, and where
// the rest of the gang will find room beside it.
//
//   1,000,000 a + 1,000 b + c
//
// a: levels, from the outermost on, down to the narrowest domain around the node that
//    holds a pod of the gang (3 of block, rack, node: on one node; 0: in no domain).
// b: the same down to the narrowest domain with the free GPUs that the gang's minimum
//    still lacks.
// c: 999 less what that domain has free beyond these, at least 0: the tightest wins.
//
// What it says depends on domains, not on the node alone, so it is for `FindBest` and
// not for `RankedFinder`. It is good for one pod: a gang that grows takes a new one. A
// level that the gang prefers or requires is a stronger means: then `PlaceGang` tries
// the narrow domains first and takes back what does not fit, which costs no scan.
class TopologyCompact {
 public:
  // O(size of the gang * levels).
  TopologyCompact(const ClusterState& state, PodSetId pod_set);

  // `state` as it was given. O(levels).
  int64_t Score(const ClusterState& state, const RequestClass& request, const Candidate& c) const;

 private:
  absl::flat_hash_set<std::pair<int, DomainId>> held_;  // (level, domain) with a pod
  int64_t lacking_ = 0;                                 // whole GPUs
};

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_TOPOLOGY_COMPACT_H_
