#ifndef TESSERA_TESTS_PREEMPTION_ROOM_BRUTE_COST_H_
#define TESSERA_TESTS_PREEMPTION_ROOM_BRUTE_COST_H_

// What victims cost, worked out anew from the table in `victim_order.h`.

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tessera/cluster/charge.h"
#include "tessera/cluster/fair_shares.h"
#include "tessera/preemption/victim_order.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

struct BruteVictim {
  PodId pod;
  bool is_moved = false;
};

// For the claimant "claim", with queues of two levels.
class BruteCost {
 public:
  BruteCost(const Snapshot& snapshot, const FairShares& shares, const RoomCosts& costs)
      : snapshot_(snapshot), shares_(shares), costs_(costs), w_(*snapshot.FindWorkload("claim")) {}

  // Of the victims alone, who are at home in `state`, where the claimant places `pods`.
  int64_t Of(const ClusterState& state, const std::vector<BruteVictim>& victims,
             const std::vector<PodId>& pods) const {
    int64_t cost = 0;
    std::map<WorkloadId, int> gone;
    std::map<QueueId, std::pair<int, ResourceVector>> branches;
    for (const auto& [p, is_moved] : victims) {
      const WorkloadId w = snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
      cost += VictimWeights().Cost(VictimOf(state, p, is_moved));
      if (is_moved) continue;
      ++gone[w];
      if (snapshot_.info(w).queue == snapshot_.info(w_).queue) continue;
      auto& [count, charge] = branches[BranchOf(snapshot_.info(w).queue)];
      ++count;
      charge += ChargeOf(snapshot_, snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class,
                         state.placement(p), {});
    }
    for (const auto& [w, count] : gone) {
      int up = 0;
      for (int i = 0; i < snapshot_.info(w).num_pods; ++i) {
        up += state.is_placed(PodId(snapshot_.info(w).first_pod + i)) ? 1 : 0;
      }
      if (count == up) cost += costs_.ended_gang;
    }
    for (const auto& [q, lost] : branches) {
      int64_t need = 1000;
      for (int r = 0; r < snapshot_.resources().size(); ++r) {
        const int64_t left = shares_.of(q).allocated[r] - lost.second[r];
        if (!Asks(pods, r) || left <= 0) continue;
        need = std::min(need, shares_.of(q).fair_share[r] * 1000 / left);
      }
      cost += lost.first * need * costs_.share / 1000;
    }
    return cost;
  }

 private:
  Victim VictimOf(const ClusterState& state, PodId p, bool is_moved) const {
    const WorkloadId w = snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
    const Workload& workload = snapshot_.workload(w);
    Victim victim{p, w, workload.priority, 0, 0, 0, is_moved};
    const RequestClassId c = snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class;
    const ResourceVector charge = ChargeOf(snapshot_, c, state.placement(p), {});
    victim.gpu_units = charge[kGpu];
    victim.cpu = charge[kCpu];
    for (const Pod& pod : workload.pods) {
      if (*snapshot_.FindPod({workload.name, pod.pod_set, pod.index}) != p) continue;
      const int64_t since = std::max(*pod.started, workload.last_checkpoint.value_or(0));
      victim.seconds_lost = snapshot_.now() - since;
    }
    return victim;
  }

  QueueId BranchOf(QueueId q) const {
    const QueueTree& tree = snapshot_.queues();
    const QueueId own = snapshot_.info(w_).queue;
    return tree.parent(q) == tree.parent(own) ? q : tree.parent(q);
  }

  // Whether one of these pods asks for some of resource `r`.
  bool Asks(const std::vector<PodId>& pods, int r) const {
    return std::ranges::any_of(pods, [&](PodId p) {
      const RequestClassId c = snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class;
      const RequestClass& request = snapshot_.request_class(c);
      const bool gpu = request.gpu.kind != GpuRequestKind::kNone;
      return r == kGpu ? gpu : r != kPods && request.need[r] > 0;
    });
  }

  const Snapshot& snapshot_;
  const FairShares& shares_;
  const RoomCosts& costs_;
  const WorkloadId w_;
};

}  // namespace tessera

#endif  // TESSERA_TESTS_PREEMPTION_ROOM_BRUTE_COST_H_
