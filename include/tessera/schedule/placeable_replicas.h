#ifndef TESSERA_SCHEDULE_PLACEABLE_REPLICAS_H_
#define TESSERA_SCHEDULE_PLACEABLE_REPLICAS_H_

// Of the engines that a plan wants: how many may run, and find a place?

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/placement/finders.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/replicas/engine_budget.h"
#include "tessera/schedule/service_gang.h"
#include "tessera/share/quota_ledger.h"
#include "tessera/share/usage.h"

namespace tessera {

// What keeps a role from one more engine, or both from the base.
enum class ReplicaBound {
  kNone,          // all that is wanted
  kQuota,         // a queue refuses what would find a place
  kRoom,          // there is no place for what the queues would permit
  kQuotaAndRoom,  // either alone would refuse
  kOwnPods,       // its own failed pods leave too few, or it waits for a nominated place
  kUndecided,     // the search ran out of budget
};

// "quota".
std::string_view ToString(ReplicaBound bound);

struct RoleBound {
  ReplicaBound bound = ReplicaBound::kNone;
  std::optional<QuotaRefusal> refusal;  // the first that binds, where quota does
  // In words: the queue with its amounts, or the nodes by what excludes them.
  std::string text;

  friend bool operator==(const RoleBound&, const RoleBound&) = default;
};

struct PlaceableReplicas {
  // Whole engines that run or find a place; at most those of the plan.
  ReplicaCounts counts;
  RoleBound prefill;
  RoleBound decode;
  // Where the pods that do not run yet found a place, in that order.
  std::vector<PodRef> placed;
  // Pods that run and that the plan does without, by name. They are counted as gone.
  std::vector<PodRef> removed;

  friend bool operator==(const PlaceableReplicas&, const PlaceableReplicas&) = default;
};

struct PlaceableOptions {
  UsagePolicy usage;
  int64_t gang_budget = 10000000;  // `GangOptions::budget`

  friend bool operator==(const PlaceableOptions&, const PlaceableOptions&) = default;
};

// Places the gang of `wanted` engines (`BuildServiceGang`) as a cycle would: first what its
// base lacks, all or nothing, then engine by engine, base before scaled, each charged to
// its queue. So a planner asks for what can start, not for what then waits for ever
// (dynamo#14251). `service` says who asks: name, queue, priority, tenant, and the pods that
// run (`pods`, named as in the gang); its own gang means nothing. A workload of the snapshot
// with the same name is replaced by it. Nothing else yields.
//
// For a role that gets less than wanted, one more engine of it alone is tried without the
// queues, and charged without a place, to say which of the two binds; where the base cannot
// start, the base is, and binds both roles.
//
// kInvalidArgument: what `BuildServiceGang` or `Snapshot::Create` rejects.
// O(size of the snapshot), and for each engine that starts a search, `GrowGang`, in the
// size of the gang.
absl::StatusOr<PlaceableReplicas> PlanPlaceableReplicas(
    const Snapshot& snapshot, const Workload& service, const ServiceShape& shape,
    const ReplicaCounts& wanted, const PlaceableOptions& options = {}, PodFinder find = FindPacked);

}  // namespace tessera

#endif  // TESSERA_SCHEDULE_PLACEABLE_REPLICAS_H_
