#ifndef TESSERA_PLACEMENT_NEAR_MISS_H_
#define TESSERA_PLACEMENT_NEAR_MISS_H_

// How near does a gang come to fitting, and what would help?

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/ids.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

class NodeClasses;

// A node that would take more pods of the pod set if others left it.
struct NodeToFree {
  NodeId node;
  std::vector<PodId> pods;  // that would have to leave; none of them can stay
  int gpus = 0;             // that they hold a part of
  int gain = 0;             // pods that fit then, and do not now

  friend bool operator==(const NodeToFree&, const NodeToFree&) = default;
};

// The domain that comes nearest to what one part of a gang lacks of its minimum.
struct NearMiss {
  int level = -1;   // that the part requires; -1: the whole cluster
  DomainId domain;  // of that level; invalid for the whole cluster
  PodSetId pod_set;
  int64_t needed = 0;  // pods that its minimum lacks
  int64_t fits = 0;    // pods of it that fit there beside nothing else of the gang
  // With fits >= needed: every pod set of the part fits there alone, but not all of
  // them together with what the rest of the gang needs.
  bool together_only = false;
  int64_t fits_anywhere = 0;     // pods of it that fit the cluster, whatever their domain
  std::vector<NodeToFree> free;  // what would close the gap, cheapest first; may be empty

  friend bool operator==(const NearMiss&, const NearMiss&) = default;
};

// Why one domain does not take a part of a gang: a pod set of which too few fit.
struct Shortfall {
  DomainId domain;  // invalid: the whole cluster
  PodSetId pod_set;
  int64_t needed = 0;
  int64_t fits = 0;  // less than needed
  // What is short, as an index of `Snapshot::resources()`: the one of which the domain
  // has enough for the fewest pods, on nodes that they may use, all else aside. kGpu
  // stands for devices, shares and slices alike; `kOwnBound` for what `max_per_node` and
  // `max_per_domain` leave. Ties: GPUs, then the lower index, then the own bound.
  static constexpr int kOwnBound = -1;
  int short_of = 0;

  friend bool operator==(const Shortfall&, const Shortfall&) = default;
};

// A proof by counting that a part of a gang fits no domain that it may have.
struct RoomShortage {
  int level = -1;                  // that the part requires; -1: the whole cluster
  std::vector<Shortfall> domains;  // one for each, ascending

  friend bool operator==(const RoomShortage&, const RoomShortage&) = default;
};

// Finds near misses in one state. It keeps a copy of the state and a list of the
// pods on each node from the first question on.
class NearMissFinder {
 public:
  explicit NearMissFinder(const ClusterState& state) : state_(state) {}

  // The near miss of the minimum of `w`: of the outermost part that fits no domain
  // by its counts, else of the first part that requires a level. Nearest is the domain
  // that lacks the fewest GPUs (of pods without GPU, the fewest pods), over the pod
  // sets that the part cannot do without; ties: the lower domain. Nothing if
  // the minimum holds, if too few pods are left for it, or if a choice of groups leaves
  // no pod set that is needed.
  //
  // Looks for nodes to free among the 16 of the domain with the most free GPUs. Pods of
  // `w` itself never have to leave. O(nodes * pod sets of the gang).
  std::optional<NearMiss> Find(WorkloadId w);

  // The proof by counting that the minimum of `w` has no place, for the same part.
  // Nothing if there is none: the minimum holds, fits, or fails only by what its pod
  // sets need together. O(nodes * pod sets of the gang).
  std::optional<RoomShortage> Certify(WorkloadId w) const;

 private:
  void AddNodesToFree(WorkloadId w, int leaf, const NodeClasses& classes, NodeRange range,
                      NearMiss& miss);
  std::optional<NodeToFree> TryToFree(WorkloadId w, int leaf, NodeId n);
  std::vector<PodId> OthersOn(WorkloadId w, NodeId n);
  void ListPods();

  const ClusterState& state_;
  std::optional<ClusterState> copy_;
  // The placed pods, by node and ascending, and where those of a node begin, with the end of all.
  std::vector<PodId> by_node_;
  std::vector<int32_t> first_on_;
};

// "\"decode\" needs 4 pods of 8 GPUs in one rack; rack r7 has room for 3; n4 would
// take 1 more without 2 pods of \"train\" on 4 GPUs".
std::string Describe(const ClusterState& state, const NearMiss& miss);

// "no rack has room: r1 takes 2 of 3 pods of \"decode\", short of gpu; r2 takes 0 of 3 pods
// of \"decode\", short of cpu". Of more than 8 domains those that lack the fewest pods are
// named; ties: the first.
std::string Describe(const ClusterState& state, const RoomShortage& shortage);

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_NEAR_MISS_H_
