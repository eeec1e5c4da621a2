#ifndef TESSERA_VERIFY_CHECK_SHARES_H_
#define TESSERA_VERIFY_CHECK_SHARES_H_

// Are these fair shares right?

#include <string>
#include <vector>

#include "tessera/cluster/fair_shares.h"
#include "tessera/cluster/queue_tree.h"
#include "tessera/resources/resource_space.h"

namespace tessera {

// What `shares` breaks of the rules that every division obeys, whatever its policy,
// as sentences; empty: nothing. Exact. Where "ceiling" is the least of limit and
// demand, and of an inner queue no more than the ceilings of its children, on each
// resource:
// - conservation: the shares of siblings sum to at most what their parent has, those
//   of the top level to at most the capacity; none is negative or above its ceiling;
// - quota first: a share is at least the least of quota and ceiling, where these
//   amounts of all siblings fit together;
// - nothing is left: siblings are all at their ceiling, or share all their parent has;
// - priority: a queue gets surplus (above quota or ceiling) only where all siblings
//   of higher priority and positive weight are at their ceiling;
// - sums: demand and allocation of an inner queue are the sums of its children, and
//   nobody's allocation exceeds its demand.
// Siblings are judged under their parent: the top level first, then by queue id, each
// queue's own account before that of its children. O(queues * resources).
std::vector<std::string> CheckShares(const QueueTree& queues, const ResourceSpace& resources,
                                     const FairShares& shares);

}  // namespace tessera

#endif  // TESSERA_VERIFY_CHECK_SHARES_H_
