#ifndef TESSERA_SRC_VERIFY_PLAN_OCCUPANCY_H_
#define TESSERA_SRC_VERIFY_PLAN_OCCUPANCY_H_

// Who holds what. A plan is judged against two of these: what is there now, and
// what will be there once releasing pods have left and nominated ones have come.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "src/verify/plan_layouts.h"
#include "tessera/cluster/snapshot.h"

namespace tessera {

class PlanOccupancy {
 public:
  // One pod's part of one GPU.
  struct Hold {
    PodId pod;
    int32_t share = 0;     // of a fraction
    int16_t profile = -1;  // of a slice
    int16_t start = 0;
    int32_t next = -1;  // the next hold of the GPU

    bool is_slice() const { return profile >= 0; }
    bool is_fraction() const { return !is_slice() && share > 0; }
    bool is_whole() const { return !is_slice() && share == 0; }
  };

  // Nothing is held. Both arguments must outlive the object.
  PlanOccupancy(const Snapshot& snapshot, const PlanLayouts& layouts);

  bool holds(PodId p) const { return placement(p).node.valid(); }
  // The node is invalid if the pod holds nothing.
  const PodPlacement& placement(PodId p) const {
    return placements_[static_cast<size_t>(p.value())];
  }

  // `p` must hold nothing. What it takes need not be free.
  void Add(PodId p, const PodPlacement& placement);
  // Nothing happens if `p` holds nothing.
  void Remove(PodId p);

  // Appends to `problems` why `p`, which holds nothing, has no room at `placement`.
  void Judge(PodId p, const PodPlacement& placement, std::vector<std::string>& problems) const;

  // The first hold on a GPU for which `wanted` is true.
  template <typename Predicate>
  const Hold* FindHold(NodeId node, int gpu, Predicate wanted) const {
    for (int32_t h = heads_[layouts_.index(node, gpu)]; h >= 0;) {
      const Hold& hold = pool_[static_cast<size_t>(h)];
      if (wanted(hold)) return &hold;
      h = hold.next;
    }
    return nullptr;
  }

  // Whether a slice covers a unit of `instance`, which is of the model of `node`.
  bool Overlaps(NodeId node, const Hold& hold, Instance instance) const;

 private:
  // Pods of a tenant, or of all, on a node; and those that want no other there.
  struct Tenants {
    int pods = 0;
    int alone = 0;
  };

  Isolation isolation(PodId p) const;
  int tenant(PodId p) const;
  void Count(PodId p, NodeId node, int sign);
  void JudgeAmounts(PodId p, NodeId node, std::vector<std::string>& problems) const;
  void JudgeCount(PodId p, NodeId node, std::vector<std::string>& problems) const;
  void JudgeDomainCount(PodId p, NodeId node, std::vector<std::string>& problems) const;
  void JudgeTenants(PodId p, NodeId node, std::vector<std::string>& problems) const;
  void JudgeGpu(PodId p, const PodPlacement& placement, int gpu,
                std::vector<std::string>& problems) const;
  std::string WhyNot(PodId p, const PodPlacement& placement, const Hold& hold) const;

  const Snapshot& snapshot_;
  const PlanLayouts& layouts_;
  std::vector<PodPlacement> placements_;  // by PodId
  std::vector<ResourceVector> held_;      // by NodeId
  std::vector<int32_t> heads_;            // by GPU: its first hold
  std::vector<Hold> pool_;
  int32_t free_ = -1;             // holds to be reused
  std::vector<Tenants> on_node_;  // by NodeId, of all tenants
  absl::flat_hash_map<std::pair<NodeId, int>, Tenants> of_tenant_;
  absl::flat_hash_map<std::pair<NodeId, PodSetId>, int> of_pod_set_;   // with max_per_node
  absl::flat_hash_map<std::pair<DomainId, PodSetId>, int> in_domain_;  // with max_per_domain
};

}  // namespace tessera

#endif  // TESSERA_SRC_VERIFY_PLAN_OCCUPANCY_H_
