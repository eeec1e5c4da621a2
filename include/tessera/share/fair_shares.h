#ifndef TESSERA_SHARE_FAIR_SHARES_H_
#define TESSERA_SHARE_FAIR_SHARES_H_

// What does each queue deserve?

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tessera/cluster/fair_shares.h"
#include "tessera/cluster/queue_tree.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/resources/resource_space.h"
#include "tessera/share/usage.h"

namespace tessera {

// One queue among its siblings while what their parent has is divided.
struct Claim {
  QueueId queue;
  ResourceVector quota;    // kUnlimited possible
  ResourceVector ceiling;  // the least of limit and demand; a share never exceeds it
  ResourceVector weight;   // fixed-point, kWeightOne = 1
  int priority = 0;
  int64_t created = 0;
  ResourceVector share;  // out
};

// What is divided: the parent's amount, and what the shares are measured by.
struct Division {
  ResourceVector total;
  ResourceVector capacity;  // of the cluster
  const ResourceSpace* resources = nullptr;
};

// Divides `division.total` among siblings by setting `share` of each claim.
// Called once for each set of siblings, from the top down, with claims by id.
template <typename T>
concept DivisionRule = requires(const T& rule, const Division& division, std::span<Claim> claims) {
  { rule.Divide(division, claims) } -> std::same_as<void>;
};

// Quota first; where quotas ask for more than there is, they are met in equal
// proportion. Then, by priority from high to low, the surplus: the queues of one
// priority raise their weighted dominant shares together, each along its unmet
// demand, until it is met or a resource is exhausted; a queue goes on with the
// resources it needs that are not. Weight 0 gets what no other sibling wants.
//
// After DRF (Ghodsi et al., NSDI '11), where queues have neither quota nor limit
// and one priority. We differ in dividing whole units: levels are rounded down,
// and the rest of an exhausted resource goes one unit each by largest remainder,
// then id. The dominant share of a queue is its surplus over cluster capacity and
// weight; `pods` and `gpu:MODEL` dominate only a queue that needs nothing else.
// O(Q * (log Q + R * 25)) for Q siblings and R resources, for each resource that
// is exhausted.
struct DominantResourceDivision {
  void Divide(const Division& division, std::span<Claim> claims) const;
};

// As above, with weighted max-min on each resource alone.
struct PerResourceDivision {
  void Divide(const Division& division, std::span<Claim> claims) const;
};

// KAI-Scheduler's documented arithmetic (v0.17): each resource alone; quotas are
// met in full even where they exceed the total; the surplus in rounds within a
// priority, a share of a round rounded down to whole GPUs, millicores and bytes;
// then one leftover pass in which each queue short of a part of a unit gets at
// most one, by larger part, age, name. It can leave more than asked to a queue,
// and pass a remainder to a lower priority; that is its rule, not ours. Resources
// other than cpu, memory and gpu are divided by `PerResourceDivision`.
// O(R * Q^2) at worst.
struct KaiDivision {
  void Divide(const Division& division, std::span<Claim> claims) const;
};

using DivideFunction = absl::FunctionRef<void(const Division&, std::span<Claim>)>;

// The division of `capacity` among all queues: the top level shares `capacity`,
// the children of a queue share what it got. Shares are in base units; those of
// siblings sum to at most what their parent has (`KaiDivision` excepted), and a
// share exceeds neither limit nor demand. Depends on names only for ties.
// `usage` by queue id.
FairShares DivideFairShares(const QueueTree& tree, const ResourceSpace& resources,
                            const ResourceVector& capacity, const std::vector<QueueUsage>& usage,
                            DivideFunction divide);

// The same by a rule, `DominantResourceDivision` by default.
template <DivisionRule Rule = DominantResourceDivision>
FairShares DivideFairShares(const QueueTree& tree, const ResourceSpace& resources,
                            const ResourceVector& capacity, const std::vector<QueueUsage>& usage,
                            const Rule& rule = Rule()) {
  return DivideFairShares(tree, resources, capacity, usage,
                          [&rule](const Division& division, std::span<Claim> claims) {
                            rule.Divide(division, claims);
                          });
}

// The same for a whole snapshot: its capacity and its usage.
template <DivisionRule Rule = DominantResourceDivision>
FairShares DivideFairShares(const Snapshot& snapshot, const UsagePolicy& policy = {},
                            const Rule& rule = Rule()) {
  return DivideFairShares(snapshot.queues(), snapshot.resources(),
                          TotalCapacity(snapshot, policy.mig_charge),
                          MeasureUsage(snapshot, policy), rule);
}

// The resource of which `amount` is the largest part of `capacity`, and that
// part; ties: the lower resource. For reports only.
struct DominantShare {
  int resource = kCpu;
  double share = 0;
};
DominantShare DominantShareOf(const ResourceSpace& resources, const ResourceVector& amount,
                              const ResourceVector& capacity);

// Whether `r` counts in dominant shares: neither `pods` nor `gpu:MODEL`.
bool IsDominanceResource(const ResourceSpace& resources, int r);

}  // namespace tessera

#endif  // TESSERA_SHARE_FAIR_SHARES_H_
