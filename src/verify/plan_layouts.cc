#include "src/verify/plan_layouts.h"

#include <algorithm>

namespace tessera {

bool GpuLayout::has(Instance instance) const {
  return std::ranges::find(instances, instance) != instances.end();
}

PlanLayouts::PlanLayouts(const Snapshot& snapshot) {
  for (int i = 0; i < snapshot.num_nodes(); ++i) {
    const NodeId n(i);
    first_gpu_.push_back(layouts_.size());
    for (const Gpu& gpu : snapshot.node(n).gpus) {
      GpuLayout& layout = layouts_.emplace_back();
      layout.mig_enabled = gpu.is_mig_enabled();
      for (const GpuInstance& instance : gpu.instances) {
        const MigTables& tables = snapshot.mig(snapshot.node_model(n));
        const int profile = *tables.model().FindProfile(instance.profile);
        layout.key = tables.Add(layout.key, profile, instance.start);
        layout.instances.push_back({profile, instance.start});
      }
    }
  }
}

}  // namespace tessera
