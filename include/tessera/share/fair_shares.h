#ifndef TESSERA_SHARE_FAIR_SHARES_H_
#define TESSERA_SHARE_FAIR_SHARES_H_

// What does each queue deserve?

#include <vector>

#include "absl/functional/function_ref.h"
#include "tessera/cluster/fair_shares.h"
#include "tessera/cluster/queue_tree.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/resources/resource_space.h"
#include "tessera/share/division.h"
#include "tessera/share/usage.h"

namespace tessera {

using DivideFunction = absl::FunctionRef<void(const Division&, Claims&)>;

// The division of `capacity` among all queues: the top level shares `capacity`,
// the children of a queue share what it got. Shares are in base units; those of
// siblings sum to at most what their parent has (`KaiDivision` excepted), and a
// share exceeds neither limit nor demand, nor (`cap_by_children`), for an inner queue,
// what its children can use of theirs. Depends on names only for ties. `usage` by queue id;
// `past_use` (see `kUsageOne`) by queue id, or empty. O(queues * resources) and
// the rule.
FairShares DivideFairShares(const QueueTree& tree, const ResourceSpace& resources,
                            const ResourceVector& capacity, const std::vector<QueueUsage>& usage,
                            DivideFunction divide, const DivisionOptions& options = {},
                            const std::vector<ResourceVector>& past_use = {});

// The same by a rule, `DominantResourceDivision` by default.
template <DivisionRule Rule = DominantResourceDivision>
FairShares DivideFairShares(const QueueTree& tree, const ResourceSpace& resources,
                            const ResourceVector& capacity, const std::vector<QueueUsage>& usage,
                            const Rule& rule = Rule(), const DivisionOptions& options = {},
                            const std::vector<ResourceVector>& past_use = {}) {
  const auto divide = [&rule](const Division& division, Claims& claims) {
    rule.Divide(division, claims);
  };
  return DivideFairShares(tree, resources, capacity, usage, DivideFunction(divide), options,
                          past_use);
}

// What the queues of a snapshot state as `usage`, as parts of `capacity` over
// `options.usage_window`; an inner queue that states none has the sum of its
// children's. Empty where the options give past use no weight.
std::vector<ResourceVector> PastUse(const QueueTree& tree, const ResourceSpace& resources,
                                    const ResourceVector& capacity, const DivisionOptions& options);

// The division of a whole snapshot: its capacity, past use and `usage`, which is what
// `MeasureUsage` says of it by the same policy.
FairShares DivideFairShares(const Snapshot& snapshot, const UsagePolicy& policy,
                            const std::vector<QueueUsage>& usage, DivideFunction divide,
                            const DivisionOptions& options = {});

template <DivisionRule Rule = DominantResourceDivision>
FairShares DivideFairShares(const Snapshot& snapshot, const UsagePolicy& policy = {},
                            const Rule& rule = Rule(), const DivisionOptions& options = {}) {
  const auto divide = [&rule](const Division& division, Claims& claims) {
    rule.Divide(division, claims);
  };
  return DivideFairShares(snapshot, policy, MeasureUsage(snapshot, policy), DivideFunction(divide),
                          options);
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
