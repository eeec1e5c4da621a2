#ifndef TESSERA_SRC_VERIFY_PLAN_LAYOUTS_H_
#define TESSERA_SRC_VERIFY_PLAN_LAYOUTS_H_

// The MIG instances of every GPU while a plan is replayed.

#include <vector>

#include "tessera/cluster/snapshot.h"

namespace tessera {

struct GpuLayout {
  bool mig_enabled = false;
  LayoutKey key;  // of `instances`
  std::vector<Instance> instances;

  bool has(Instance instance) const;
};

class PlanLayouts {
 public:
  explicit PlanLayouts(const Snapshot& snapshot);

  // `gpu` exists on `node`.
  GpuLayout& at(NodeId node, int gpu) { return layouts_[index(node, gpu)]; }
  const GpuLayout& at(NodeId node, int gpu) const { return layouts_[index(node, gpu)]; }

  // The position of a GPU in an array of those of all nodes, and their number.
  size_t index(NodeId node, int gpu) const {
    return first_gpu_[static_cast<size_t>(node.value())] + static_cast<size_t>(gpu);
  }
  size_t num_gpus() const { return layouts_.size(); }

 private:
  std::vector<size_t> first_gpu_;  // by NodeId
  std::vector<GpuLayout> layouts_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_VERIFY_PLAN_LAYOUTS_H_
