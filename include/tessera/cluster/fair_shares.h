#ifndef TESSERA_CLUSTER_FAIR_SHARES_H_
#define TESSERA_CLUSTER_FAIR_SHARES_H_

// Who deserves what: the result of dividing a cluster among its queues.

#include <vector>

#include "tessera/base/ids.h"
#include "tessera/resources/resource_vector.h"

namespace tessera {

// One queue's account, in base units. Inner queues hold the sums of theirs.
struct QueueShare {
  ResourceVector demand;      // allocated and pending
  ResourceVector allocated;   // held by nominated and running pods
  ResourceVector fair_share;  // quota included

  friend bool operator==(const QueueShare&, const QueueShare&) = default;
};

// Shares by queue id, and what was divided.
struct FairShares {
  ResourceVector capacity;
  std::vector<QueueShare> queues;

  const QueueShare& of(QueueId q) const { return queues[static_cast<size_t>(q.value())]; }

  friend bool operator==(const FairShares&, const FairShares&) = default;
};

}  // namespace tessera

#endif  // TESSERA_CLUSTER_FAIR_SHARES_H_
