#ifndef TESSERA_PREEMPTION_REPARTITION_H_
#define TESSERA_PREEMPTION_REPARTITION_H_

// Which instances of a cluster to destroy and to create so that wanted ones are idle.
//
//   const auto result = PlanRepartition(snapshot, {{"3g.40gb", 2}}, {.node = "n1"});
//   if (result.ok()) snapshot = *Apply(snapshot, {result->actions, pending});

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/cluster/plan.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/gpu/repartition.h"
#include "tessera/preemption/barred_gpus.h"

namespace tessera {

// So many idle instances of a profile.
struct WantedInstances {
  std::string profile;
  int64_t count = 1;

  friend bool operator==(const WantedInstances&, const WantedInstances&) = default;
};

// The initializers let a designated initializer leave fields out without a warning.
struct ClusterRepartitionOptions {
  std::string node = {};        // only on this node; empty: anywhere
  std::string gpu_model = {};   // only on such GPUs; empty: any
  RepartitionCosts costs = {};  // what an operation takes, by which `latency` is estimated
  int64_t budget = 2000000;
};

struct ClusterRepartition {
  RepartitionOutcome outcome = RepartitionOutcome::kPlanned;
  std::string gpu_model;        // whose GPUs the plan is for; empty unless kPlanned
  std::vector<Action> actions;  // `set_mig`, `destroy` and `create`, in their order
  int64_t latency = 0;          // the sum of their costs, one after the other
  // Unless kPlanned: which GPUs of the models that have the profiles could not change,
  // by node and GPU, and the same in words.
  std::vector<BarredGpu> barred;
  std::string text;

  friend bool operator==(const ClusterRepartition&, const ClusterRepartition&) = default;
};

// The fewest operations after which the `wanted` instances exist and are idle, all on
// GPUs of one model. Idle instances that exist count; entries for one profile add up.
//
// Guarantees: `CheckPlan` finds nothing wrong with the actions, and `Apply` carries them
// out. No instance is touched that a running or a releasing pod holds or a nominated one
// has reserved. GPUs that are barred (`GpuBar`) take no part, static ones with what is
// idle. Operations and their order are those of `PlanRepartition` of `gpu/repartition.h`
// on the GPUs by node and number. Ties between models: the first by name.
//
// kInfeasible: proven for each model by itself; instances of several models are never
// combined. `budget` counts as there, for each model anew.
//
// kInvalidArgument, with the path of the field: a node or GPU model that is not there, or
// not together; a profile that no model has (with a did-you-mean), that only others than
// the models in question have, or that none of these has together with the rest; a
// negative count, or counts of a profile that exceed 64 bits in sum; a cost out of range.
// O(size of the snapshot) and the search.
absl::StatusOr<ClusterRepartition> PlanRepartition(const Snapshot& snapshot,
                                                   std::span<const WantedInstances> wanted,
                                                   const ClusterRepartitionOptions& options = {});

}  // namespace tessera

#endif  // TESSERA_PREEMPTION_REPARTITION_H_
