#ifndef TESSERA_SRC_PREEMPTION_SLICE_VIEW_H_
#define TESSERA_SRC_PREEMPTION_SLICE_VIEW_H_

// The MIG side of a snapshot, as the planners of gpu/ want it.

#include <vector>

#include "tessera/cluster/snapshot.h"
#include "tessera/gpu/sliced_gpu.h"
#include "tessera/preemption/barred_gpus.h"

namespace tessera {

// A slice that a pod holds or has reserved.
struct SliceHold {
  PodId pod;
  Instance instance;
  bool runs = false;  // rather than to leave, or to come
};

// What pods hold on one GPU, or have reserved there.
struct GpuHolds {
  std::vector<SliceHold> slices;
  bool in_use = false;  // by a pod that needs MIG mode off
  bool alone = false;   // by a pod that accepts no other tenant
};

class ClusterHolds {
 public:
  // O(size of the snapshot).
  explicit ClusterHolds(const Snapshot& snapshot);

  const GpuHolds& at(NodeId n, int gpu) const {
    return gpus_[first_gpu_[static_cast<size_t>(n.value())] + static_cast<size_t>(gpu)];
  }

 private:
  void Add(const Snapshot& snapshot, PodId p, const PodPlacement& placement, bool runs);

  std::vector<size_t> first_gpu_;  // by NodeId, and the end
  std::vector<GpuHolds> gpus_;
};

// Where a GPU of a view is.
struct GpuSpot {
  NodeId node;
  int gpu = 0;
};

// The GPUs of one model that may be used. Parallel vectors, by node and number.
struct SliceView {
  ModelId model;
  std::vector<GpuSpot> spots;
  std::vector<SlicedGpu> gpus;              // no busy instance is movable
  std::vector<std::vector<PodId>> holders;  // [gpu][busy]; invalid: not one running pod
  std::vector<BarredGpu> barred;            // static ones are in the view, too
  int num_gpus = 0;                         // barred ones included
};

// The view of all GPUs of `model`, or of those of `node` if that is valid.
SliceView ViewOf(const Snapshot& snapshot, const ClusterHolds& holds, ModelId model, NodeId node);

// The part of `view` on node `n`. Nothing is barred there. O(GPUs of the node + log).
SliceView PartOf(const SliceView& view, NodeId n);

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_SLICE_VIEW_H_
