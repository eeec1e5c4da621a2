#ifndef TESSERA_SHARE_USAGE_H_
#define TESSERA_SHARE_USAGE_H_

// What the queues of a snapshot hold and want.

#include <vector>

#include "tessera/base/ids.h"
#include "tessera/cluster/charge.h"
#include "tessera/cluster/queue_tree.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/resources/resource_vector.h"

namespace tessera {

// Amounts of one queue, its sub-queues included, in base units.
struct QueueUsage {
  ResourceVector demand;           // allocated, and what pending pods would add
  ResourceVector allocated;        // running and (if honoured) nominated pods
  ResourceVector non_preemptible;  // the part of `allocated` that cannot yield

  friend bool operator==(const QueueUsage&, const QueueUsage&) = default;
};

struct UsagePolicy {
  MigCharge mig_charge = MigCharge::kByComputeSlices;
  bool honour_nominations = true;  // false: nominated pods count as pending
  // Pending pods that no node could hold even if it were empty count as demand, too,
  // and inflate the share of a queue that cannot use it.
  bool count_unschedulable = false;

  friend bool operator==(const UsagePolicy&, const UsagePolicy&) = default;
};

// Usage by queue id. Releasing, succeeded and failed pods count nowhere.
// O(pods + queues * depth), and the nodes for each request that no node can hold.
std::vector<QueueUsage> MeasureUsage(const Snapshot& snapshot, const UsagePolicy& policy);

// Adds the leaves' amounts to their ancestors. `usage[q]` of inner queues must
// be zero.
void SumUpwards(const QueueTree& tree, std::vector<QueueUsage>& usage);

}  // namespace tessera

#endif  // TESSERA_SHARE_USAGE_H_
