#include "tessera/placement/topology_compact.h"

#include <algorithm>

#include "src/placement/gang_view.h"

namespace tessera {

TopologyCompact::TopologyCompact(const ClusterState& state, PodSetId pod_set) {
  const Snapshot& snapshot = state.snapshot();
  const Topology& topology = snapshot.topology();
  const WorkloadId w = snapshot.pod_set(pod_set).workload;
  const WorkloadInfo& info = snapshot.info(w);
  for (int p = info.first_pod; p < info.first_pod + info.num_pods; ++p) {
    const NodeId n = state.placement(PodId(p)).node;
    for (int level = 0; n.valid() && level < topology.num_levels(); ++level) {
      const DomainId d = topology.domain_of(n, level);
      if (d.valid()) held_.insert({level, d});
    }
  }
  lacking_ = GangView(state, w).GpusLacking(0);
}

int64_t TopologyCompact::Score(const ClusterState& state, const RequestClass&,
                               const Candidate& c) const {
  const Topology& topology = state.snapshot().topology();
  int64_t held = 0, fits = 0, tight = 0;
  for (int level = 0; level < topology.num_levels(); ++level) {
    const DomainId d = topology.domain_of(c.node, level);
    if (!d.valid()) continue;
    if (held_.contains({level, d})) held = level + 1;
    const int64_t beyond = state.free_gpus(level, d) - lacking_;
    if (beyond < 0) continue;
    fits = level + 1;
    tight = 999 - std::min<int64_t>(beyond, 999);
  }
  return 1'000'000 * held + 1'000 * fits + tight;
}

}  // namespace tessera
