#ifndef TESSERA_SRC_SCHEDULE_JOB_FACTS_H_
#define TESSERA_SRC_SCHEDULE_JOB_FACTS_H_

// What the order of jobs asks of a workload that waits.

#include <vector>

#include "tessera/cluster/charge.h"
#include "tessera/share/job_order.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// Whether a pod of `w` may still be placed.
bool HasPlaceable(const ClusterState& state, WorkloadId w);

GangStage StageOf(const ClusterState& state, WorkloadId w);

// Pods that a pod set lacks of its minimum.
int Lacking(const ClusterState& state, PodSetId s);

// What workloads are charged at least.
class LeastCharges {
 public:
  LeastCharges(const Snapshot& snapshot, MigCharge rule);

  // For the next unit of `w`: what its minimum lacks, or one more pod.
  ResourceVector Of(const ClusterState& state, WorkloadId w) const;
  // For what the minimum below part `g` of `w` lacks; nothing where a choice of parts
  // suffices, as none of them is certain to be charged.
  ResourceVector OfMinimum(const ClusterState& state, WorkloadId w, int g = 0) const;

 private:
  const ResourceVector& Expected(PodSetId s) const {
    return expected_[static_cast<size_t>(snapshot_.pod_set(s).request_class.value())];
  }

  const Snapshot& snapshot_;
  std::vector<ResourceVector> expected_;  // by request class
};

}  // namespace tessera

#endif  // TESSERA_SRC_SCHEDULE_JOB_FACTS_H_
