#ifndef TESSERA_SRC_PLACEMENT_GANG_VIEW_H_
#define TESSERA_SRC_PLACEMENT_GANG_VIEW_H_

// A gang tree together with what of it stands in a state.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tessera/cluster/gang_tree.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// A number that is never negative as an index.
inline size_t At(int i) { return static_cast<size_t>(i); }

class GangView {
 public:
  GangView(const ClusterState& state, WorkloadId w)
      : state_(state),
        workload_(w),
        snapshot_(state.snapshot()),
        gang_(snapshot_.gang(w)),
        info_(snapshot_.info(w)) {}

  WorkloadId workload() const { return workload_; }
  int size() const { return static_cast<int>(gang_.size()); }
  const GangNode& at(int g) const { return gang_[static_cast<size_t>(g)]; }
  PodSetId set_id(int g) const { return PodSetId(info_.first_pod_set + at(g).pod_set); }
  const PodSetInfo& set(int g) const { return snapshot_.pod_set(set_id(g)); }
  const GpuRequest& gpu(int g) const { return snapshot_.request_class(set(g).request_class).gpu; }
  int first_child(int g) const { return at(g).first_child; }
  int end_child(int g) const { return at(g).first_child + at(g).num_children; }
  PodSetId FirstSet(int g) const;

  // Pods of a pod set that count: placed or succeeded.
  int Standing(int g) const { return state_.standing(set_id(g)); }
  // Whether the minimum below `g` holds.
  bool Holds(int g) const;
  // Pods that stand below `g`, and all of them.
  std::pair<int64_t, int64_t> Filled(int g) const;
  // The smallest range of nodes that holds all placed pods below `g`.
  NodeRange Occupied(int g) const;
  // Whole GPUs that the minimum below `g` lacks at least; a bound.
  int64_t GpusLacking(int g) const;
  // Whole GPUs before slices, fractions, and no GPU; more and larger ones first.
  int Difficulty(int g) const;

 private:
  const ClusterState& state_;
  const WorkloadId workload_;
  const Snapshot& snapshot_;
  const std::span<const GangNode> gang_;
  const WorkloadInfo& info_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_PLACEMENT_GANG_VIEW_H_
