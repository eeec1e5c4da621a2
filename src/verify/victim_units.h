#ifndef TESSERA_SRC_VERIFY_VICTIM_UNITS_H_
#define TESSERA_SRC_VERIFY_VICTIM_UNITS_H_

// How a gang stands after some of its pods have been evicted, and in what units they went.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/cluster/snapshot.h"

namespace tessera {

// `EvictAction::reason` of gangs that are below their minimum for too long.
inline constexpr std::string_view kStaleReason = "stale";

// What of a gang is there before and after, by predicates on pods.
struct GangBeforeAfter {
  const Snapshot& snapshot;
  WorkloadId workload;
  std::function<bool(PodId)> was_up;
  std::function<bool(PodId)> is_up;
};

// Whether its minimum holds.
bool IsWholeAfter(const GangBeforeAfter& gang);

// What is wrong with what is left, in words; empty if it is legal.
std::string WhyNotLegal(const GangBeforeAfter& gang);

// Whether every pod set that lost a pod still has its minimum.
bool LostOnlySurplus(const GangBeforeAfter& gang);

// The units in which the pods went.
std::vector<std::vector<PodId>> UnitsOf(const GangBeforeAfter& gang);

}  // namespace tessera

#endif  // TESSERA_SRC_VERIFY_VICTIM_UNITS_H_
