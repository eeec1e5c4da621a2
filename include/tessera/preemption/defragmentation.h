#ifndef TESSERA_PREEMPTION_DEFRAGMENTATION_H_
#define TESSERA_PREEMPTION_DEFRAGMENTATION_H_

// Which pods of a cluster to move so that a MIG instance fits that does not fit now.
//
//   const auto result = PlanDefragmentation(snapshot, "3g.40gb");
//   if (result.ok()) snapshot = *ApplyAndSettle(snapshot, {result->actions, pending});

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/cluster/plan.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/preemption/barred_gpus.h"

namespace tessera {

// The initializers let a designated initializer leave fields out without a warning.
struct ClusterDefragmentationOptions {
  std::string node = {};       // the instance is wanted there; pods move within it. Empty: anywhere
  std::string gpu_model = {};  // the instance is wanted on such a GPU; empty: any
  // What moving a pod costs, 0..`kMaxMoveCost`; asked once for each that may be moved, in
  // order of id. Empty: 1 each.
  std::function<int64_t(PodId)> cost_of = {};
  int64_t budget = 200000;
};

enum class ClusterDefragmentationOutcome {
  kPlanned,
  kInfeasible,  // no moves make room, wherever pods might be allowed to go: proven
  kUndecided,   // the budget ended the search, or what it found is not allowed
};

struct ClusterDefragmentation {
  ClusterDefragmentationOutcome outcome = ClusterDefragmentationOutcome::kPlanned;
  std::string gpu_model;        // the rest up to `lower_bound` only if kPlanned
  std::vector<Action> actions;  // `set_mig`, `destroy`, `create`, `move`, in their order
  int moves = 0;
  int64_t cost = 0;  // the sum over the moves
  // Where the wanted instance fits then.
  std::string node;
  GpuSlice place;
  // Whether it exists after `actions`, idle. Else it covers what moved pods are leaving: once
  // the plan has settled, `PlanRepartition` (`preemption/repartition.h`) creates it.
  bool exists = false;
  int64_t lower_bound = 0;  // no moves that make room cost less: proven
  // Unless kPlanned: the GPUs that could not change, and the same in words.
  std::vector<BarredGpu> barred;
  std::string text;

  // Whether `cost` is proven to be the least.
  bool optimal() const { return cost == lower_bound; }

  friend bool operator==(const ClusterDefragmentation&, const ClusterDefragmentation&) = default;
};

// Moves of little cost, and of these few, after which an instance of `profile` fits on one
// GPU beside all that is held, reserved, and not moved.
//
// Guarantees: `CheckPlan` finds nothing wrong with the actions, and `Apply` and
// `ApplyAndSettle` carry them out. GPUs that are barred (`GpuBar`) take no part, static ones
// with what is idle. A target is free when its move is reached, but for pods that move
// earlier; where these are leaving it, it is not created yet, and nominated pods wait.
//
// Only running pods move whose workload is movable, on dynamic GPUs, each once, to an
// instance of the same profile; none of a gang with a required topology level above the pod,
// nor one that holds another profile than its request would get now; and of a workload no
// more than its `max_disrupted`. A pod moves to a GPU whose node is eligible for it and has
// room for all of its request, its own counted as left; what is releasing counts as held.
//
// First the moves of least cost are sought with no regard to nodes (`PlanDefragmentation`
// of `gpu/defragmentation.h`); if they are allowed, they are optimal. Else the pod that may
// not go where it was sent stays, some times over; and every node is tried by itself. The
// cheapest plan found is taken, then that of the fewest moves. Ties: all nodes before one, by
// node; the first model by name. `budget` bounds each single search, as there.
//
// kInvalidArgument, with the path of the field: a node or GPU model that is not there, or not
// together; a profile that no model has (with a did-you-mean), or only others than those in
// question; a cost out of range. O(size of the snapshot) and the searches: at most 5, and one
// per node where those were in vain or not optimal.
absl::StatusOr<ClusterDefragmentation> PlanDefragmentation(
    const Snapshot& snapshot, const std::string& profile,
    const ClusterDefragmentationOptions& options = {});

}  // namespace tessera

#endif  // TESSERA_PREEMPTION_DEFRAGMENTATION_H_
