#ifndef TESSERA_CLUSTER_CERTIFICATE_H_
#define TESSERA_CLUSTER_CERTIFICATE_H_

// Why these pods yield for that workload, or why nothing that yields would help.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/cluster/diagnosis.h"
#include "tessera/cluster/workload.h"

namespace tessera {

// How room was made, from the gentlest on.
enum class RoomStep {
  kFree,         // there was room
  kRepartition,  // idle MIG instances are carved anew
  kConsolidate,  // others are moved, nobody loses
  kReclaim,      // queues above their entitlement yield
  kPreempt,      // work of lower priority in the same queue yields
  kEvict,        // all of these together
};

// "free", "repartition", "consolidate", "reclaim", "preempt", "evict".
std::string_view ToString(RoomStep step);

// By which right a pod has to leave its place.
enum class YieldRule {
  kReclaimed,  // its queue is above its entitlement
  kPreempted,  // its priority is lower
  kMoved,      // it keeps running elsewhere
};

// What keeps a victim from staying, the claimant's placement fixed.
enum class YieldNeed {
  kRoom,         // it holds what the claimant gets
  kMove,         // another pod that moves gets its place
  kGang,         // its gang cannot go on without others that leave
  kLimit,        // a queue's limit or quota does not permit both
  kEntitlement,  // the claimant's queues would exceed their entitlement
};

// One pod that leaves.
struct VictimReport {
  PodRef pod;
  YieldRule rule = YieldRule::kReclaimed;
  YieldNeed need = YieldNeed::kRoom;
  std::string node;   // that it leaves
  std::string queue;  // reclaimed: the queue that is above its entitlement ...
  std::string resource;
  int64_t held = 0;      // ... of this resource, before the plan
  int64_t entitled = 0;  // its fair share
  int64_t left = 0;      // and after the plan
  int priority = 0;
  int64_t cost = 0;  // of this pod alone

  friend bool operator==(const VictimReport&, const VictimReport&) = default;
};

// What is proven of the cost.
enum class Minimality {
  kInclusion,  // with the placement fixed, no unit of eviction can stay
  kFewest,     // and no plan of this step has fewer victims
  kCheapest,   // and no plan of this step costs less
};

struct Certificate {
  std::string claimant;
  RoomStep step = RoomStep::kFree;
  std::vector<VictimReport> victims;  // by pod
  int64_t cost = 0;
  int64_t mig_operations = 0;  // instances to create or to destroy, part of the cost
  Minimality minimality = Minimality::kInclusion;
  // Without a plan: what prevents it. `proven`: no plan of this step exists.
  bool proven = true;
  PendingReason reason = PendingReason::kGang;
  std::string refusal;

  friend bool operator==(const Certificate&, const Certificate&) = default;
};

// In sentences, one a line, without a final newline.
std::string ToText(const Certificate& certificate);

// An amount of a resource with its unit: "2.5 GPU", "64Gi of memory".
std::string AmountOf(std::string_view resource, int64_t amount);

}  // namespace tessera

#endif  // TESSERA_CLUSTER_CERTIFICATE_H_
