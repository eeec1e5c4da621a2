#include "tessera/share/fair_shares.h"

#include <algorithm>

#include "tessera/resources/units.h"

namespace tessera {

FairShares DivideFairShares(const QueueTree& tree, const ResourceSpace& resources,
                            const ResourceVector& capacity, const std::vector<QueueUsage>& usage,
                            DivideFunction divide) {
  FairShares result;
  result.capacity = capacity;
  result.queues.resize(static_cast<size_t>(tree.size()));
  const auto divide_among = [&](std::span<const QueueId> siblings, const ResourceVector& total) {
    std::vector<Claim> claims;
    claims.reserve(siblings.size());
    for (QueueId q : siblings) {
      const QueueUsage& used = usage[static_cast<size_t>(q.value())];
      QueueShare& share = result.queues[static_cast<size_t>(q.value())];
      share.demand = used.demand;
      share.allocated = used.allocated;
      Claim claim;
      claim.queue = q;
      claim.quota = tree.quota(q);
      claim.weight = tree.weight(q);
      claim.priority = tree.queue(q).priority;
      claim.created = tree.queue(q).created;
      for (int r = 0; r < kMaxResources; ++r) {
        claim.ceiling[r] = std::min(tree.limit(q)[r], used.demand[r]);
      }
      claims.push_back(claim);
    }
    divide({total, capacity, &resources}, claims);
    for (const Claim& claim : claims) {
      result.queues[static_cast<size_t>(claim.queue.value())].fair_share = claim.share;
    }
  };
  divide_among(tree.children(QueueId()), capacity);
  for (QueueId q : tree.top_down()) {
    if (!tree.is_leaf(q)) divide_among(tree.children(q), result.of(q).fair_share);
  }
  return result;
}

bool IsDominanceResource(const ResourceSpace& resources, int r) {
  return r != kPods && resources.gpu_model(r).empty();
}

DominantShare DominantShareOf(const ResourceSpace& resources, const ResourceVector& amount,
                              const ResourceVector& capacity) {
  DominantShare dominant;
  for (int r = 0; r < resources.size(); ++r) {
    if (!IsDominanceResource(resources, r) || capacity[r] <= 0) continue;
    const double share = static_cast<double>(amount[r]) / static_cast<double>(capacity[r]);
    if (share > dominant.share) dominant = {r, share};
  }
  return dominant;
}

}  // namespace tessera
