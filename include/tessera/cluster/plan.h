#ifndef TESSERA_CLUSTER_PLAN_H_
#define TESSERA_CLUSTER_PLAN_H_

// What a host should do next: ordered actions, and why the rest waits.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/cluster/diagnosis.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/cluster/workload.h"

namespace tessera {

// Ask a pod to leave. `reason` is one word ("reclaim"); `on_behalf_of` names the
// workload that gets its place, if any.
struct EvictAction {
  PodRef pod;
  std::string reason;
  std::string on_behalf_of;

  friend bool operator==(const EvictAction&, const EvictAction&) = default;
};

// Destroy an idle MIG instance.
struct DestroyAction {
  std::string node;
  int gpu = 0;
  std::string profile;
  int start = 0;

  friend bool operator==(const DestroyAction&, const DestroyAction&) = default;
};

// Switch the MIG mode of an empty GPU.
struct SetMigAction {
  std::string node;
  int gpu = 0;
  bool enabled = false;

  friend bool operator==(const SetMigAction&, const SetMigAction&) = default;
};

// Carve a MIG instance out of free units of a GPU.
struct CreateAction {
  std::string node;
  int gpu = 0;
  std::string profile;
  int start = 0;

  friend bool operator==(const CreateAction&, const CreateAction&) = default;
};

// Evict a pod and nominate it elsewhere.
struct MoveAction {
  PodRef pod;
  std::string node;
  Devices devices;

  friend bool operator==(const MoveAction&, const MoveAction&) = default;
};

// Start a pod on resources that are free when this action is reached.
struct BindAction {
  PodRef pod;
  std::string node;
  Devices devices;

  friend bool operator==(const BindAction&, const BindAction&) = default;
};

// Reserve for a pod what earlier actions or releasing pods free.
struct NominateAction {
  PodRef pod;
  std::string node;
  Devices devices;
  // When the reservation ends if the pod has not started; none: never.
  std::optional<int64_t> expires = {};

  friend bool operator==(const NominateAction&, const NominateAction&) = default;
};

using Action = std::variant<EvictAction, DestroyAction, SetMigAction, CreateAction, MoveAction,
                            BindAction, NominateAction>;

// Actions in the order to carry them out. `pending` lists every workload that is
// not complete afterwards, by name.
struct Plan {
  std::vector<Action> actions;
  std::vector<PendingWorkload> pending;

  friend bool operator==(const Plan&, const Plan&) = default;
};

// The snapshot after a host has carried out `plan`: bound pods run from `now` on,
// evicted pods are releasing, moved pods releasing at the source and nominated at
// the target, nominated pods nominated, instances and MIG modes changed.
//
// kInvalidArgument, naming the action (`actions[3]: ...`): a pod, node, GPU or
// instance that does not exist, an eviction of a pod that is not there, or a
// result that contradicts itself. It does not judge the plan: that is the
// referee's work (`verify/check_plan.h`). O(size of the snapshot).
absl::StatusOr<Snapshot> Apply(const Snapshot& snapshot, const Plan& plan);

// `Apply`, and then releasing pods end (and are pending again) and nominated
// pods run from `now` on.
absl::StatusOr<Snapshot> ApplyAndSettle(const Snapshot& snapshot, const Plan& plan);

// The same, but it is not said since when pods run that the plan starts or moves, as if they had
// always run: no min-runtime protects them.
absl::StatusOr<Snapshot> ApplyAndSettleUndated(const Snapshot& snapshot, const Plan& plan);

}  // namespace tessera

#endif  // TESSERA_CLUSTER_PLAN_H_
