#ifndef TESSERA_SRC_VERIFY_JUDGE_RECLAIM_H_
#define TESSERA_SRC_VERIFY_JUDGE_RECLAIM_H_

// Whether what one workload reclaims may be taken from its queues.

#include <string>
#include <utility>
#include <vector>

#include "tessera/cluster/fair_shares.h"
#include "tessera/cluster/queue_tree.h"
#include "tessera/cluster/victim_rules.h"
#include "tessera/resources/resource_space.h"

namespace tessera {

// One deal: who gets what, and what queues lose for it.
struct ReclaimDeal {
  QueueId claimant;
  ResourceVector gained;
  std::vector<std::pair<QueueId, ResourceVector>> units;      // reclaimed, by leaf
  std::vector<std::pair<QueueId, ResourceVector>> preempted;  // of the claimant's own leaf
};

// What is wrong with it, in words. `held` by queue, before the deal.
std::vector<std::string> WhyNotReclaimed(const QueueTree& tree, const ResourceSpace& resources,
                                         const FairShares& shares, ReclaimTest test,
                                         const std::vector<ResourceVector>& held,
                                         const ReclaimDeal& deal);

// The same for a deal inside the claimant's queue, by `VictimRules::preempt_within_share`.
std::vector<std::string> WhyNotPreempted(const QueueTree& tree, const ResourceSpace& resources,
                                         const FairShares& shares,
                                         const std::vector<ResourceVector>& held,
                                         const ReclaimDeal& deal);

}  // namespace tessera

#endif  // TESSERA_SRC_VERIFY_JUDGE_RECLAIM_H_
