#include "tessera/share/fair_shares.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

size_t Index(QueueId q) { return static_cast<size_t>(q.value()); }

// What each queue can use: the least of limit and demand, and of an inner queue no
// more than its children can, if these cap it.
std::vector<ResourceVector> Ceilings(const QueueTree& tree, const std::vector<QueueUsage>& usage,
                                     bool cap_by_children) {
  std::vector<ResourceVector> ceilings(usage.size());
  const std::span<const QueueId> order = tree.top_down();
  for (size_t k = order.size(); k > 0; --k) {
    const QueueId q = order[k - 1];
    ResourceVector& ceiling = ceilings[Index(q)];
    const ResourceVector& usable =
        !cap_by_children || tree.is_leaf(q) ? usage[Index(q)].demand : ceiling;
    for (int r = 0; r < kMaxResources; ++r) ceiling[r] = std::min(tree.limit(q)[r], usable[r]);
    if (tree.parent(q).valid()) ceilings[Index(tree.parent(q))] += ceiling;
  }
  return ceilings;
}

}  // namespace

FairShares DivideFairShares(const QueueTree& tree, const ResourceSpace& resources,
                            const ResourceVector& capacity, const std::vector<QueueUsage>& usage,
                            DivideFunction divide, const DivisionOptions& options,
                            const std::vector<ResourceVector>& past_use) {
  FairShares result;
  result.capacity = capacity;
  result.queues.resize(static_cast<size_t>(tree.size()));
  const std::vector<ResourceVector> ceilings = Ceilings(tree, usage, options.cap_by_children);
  const auto divide_among = [&](std::span<const QueueId> siblings, const ResourceVector& total) {
    Claims claims(siblings.size(), resources.size());
    if (!past_use.empty()) claims.past_use = ShareMatrix(siblings.size(), resources.size());
    for (size_t i = 0; i < siblings.size(); ++i) {
      const QueueId q = siblings[i];
      claims.priority[i] = tree.queue(q).priority;
      claims.created[i] = tree.queue(q).created;
      for (int r = 0; r < resources.size(); ++r) {
        claims.quota[r][i] = tree.quota(q)[r];
        claims.weight[r][i] = tree.weight(q)[r];
        claims.ceiling[r][i] = ceilings[Index(q)][r];
        if (!past_use.empty()) claims.past_use[r][i] = past_use[Index(q)][r];
      }
    }
    divide({options, total, capacity, &resources}, claims);
    for (size_t i = 0; i < siblings.size(); ++i) {
      QueueShare& share = result.queues[Index(siblings[i])];
      share.demand = usage[Index(siblings[i])].demand;
      share.allocated = usage[Index(siblings[i])].allocated;
      for (int r = 0; r < resources.size(); ++r) share.fair_share[r] = claims.share[r][i];
    }
  };
  divide_among(tree.children(QueueId()), capacity);
  for (QueueId q : tree.top_down()) {
    if (!tree.is_leaf(q)) divide_among(tree.children(q), result.of(q).fair_share);
  }
  return result;
}

FairShares DivideFairShares(const Snapshot& snapshot, const UsagePolicy& policy,
                            const std::vector<QueueUsage>& usage, DivideFunction divide,
                            const DivisionOptions& options) {
  const ResourceVector capacity = TotalCapacity(snapshot, policy.mig_charge);
  return DivideFairShares(snapshot.queues(), snapshot.resources(), capacity, usage, divide, options,
                          PastUse(snapshot.queues(), snapshot.resources(), capacity, options));
}

std::vector<ResourceVector> PastUse(const QueueTree& tree, const ResourceSpace& resources,
                                    const ResourceVector& capacity,
                                    const DivisionOptions& options) {
  std::vector<ResourceVector> past_use;
  if (options.usage_strength == 0 || options.usage_window == 0) return past_use;
  past_use.resize(static_cast<size_t>(tree.size()));
  const std::span<const QueueId> order = tree.top_down();
  for (size_t k = order.size(); k > 0; --k) {
    const QueueId q = order[k - 1];
    for (const auto& [name, used] : tree.queue(q).usage) {
      const std::optional<int> r = resources.Find(name);
      if (!r || capacity[*r] <= 0) continue;
      const absl::int128 all = absl::int128{capacity[*r]} * options.usage_window;
      const absl::int128 part = absl::int128{used} * kUsageOne / all;
      past_use[Index(q)][*r] = static_cast<int64_t>(std::min<absl::int128>(part, kUnlimited));
    }
    const QueueId parent = tree.parent(q);
    if (!parent.valid() || !tree.queue(parent).usage.empty()) continue;
    past_use[Index(parent)] += past_use[Index(q)];
  }
  return past_use;
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
