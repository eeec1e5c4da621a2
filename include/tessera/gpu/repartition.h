#ifndef TESSERA_GPU_REPARTITION_H_
#define TESSERA_GPU_REPARTITION_H_

// Which instances to destroy and to create so that wanted ones exist, while what is
// in use stays as it is.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/gpu/layout.h"
#include "tessera/gpu/sliced_gpu.h"

namespace tessera {

enum class GpuOperationKind {
  kSetMig,   // switches the MIG mode of an empty GPU
  kDestroy,  // an idle instance
  kCreate,
};

struct GpuOperation {
  GpuOperationKind kind = GpuOperationKind::kSetMig;
  int gpu = 0;
  Instance instance;     // of kDestroy and kCreate
  bool enabled = false;  // of kSetMig

  bool operator==(const GpuOperation&) const = default;
};

// What one operation takes, in any unit of time; each 0..`kMaxMoveCost`.
struct RepartitionCosts {
  int64_t destroy = 0;
  int64_t create = 0;
  int64_t switch_mig = 0;
  int64_t reset = 0;  // on top of `switch_mig`, where the model's MIG mode needs a reset
};

enum class RepartitionOutcome {
  kPlanned,          // no plan has fewer operations: proven
  kInfeasible,       // no operations make the wanted instances exist: proven
  kBudgetExhausted,  // the search ended undecided
};

struct RepartitionPlan {
  RepartitionOutcome outcome = RepartitionOutcome::kPlanned;
  std::vector<GpuOperation> operations;  // in the order to carry them out
  int64_t latency = 0;                   // the sum of their costs, one after the other

  bool operator==(const RepartitionPlan&) const = default;
};

// The fewest operations after which `wanted`[profile] instances of each profile are
// idle on `gpus`, all of the model of `tables`. Idle instances that exist count.
//
// Guarantees: no busy instance is touched; every step leaves a legal layout, and
// creates on GPUs in MIG mode only; GPUs that may not change take part with their idle
// instances alone. Operations are ordered by GPU, on each: MIG mode, what is destroyed,
// what is created, by start.
//
// A plan destroys an idle instance only where it is in the way. One of a profile that
// is not wanted, or of which more are idle than wanted, counts as one operation; any
// other as two, since it must be created anew. Switching on MIG counts as one. `costs`
// add up to the latency and do not decide.
//
// Exact: best first by the operations that the places of the wanted instances entail.
// `budget` counts the places looked at, 20 to 300 ns each. Ties: the place found first,
// on GPUs and at starts in ascending order.
//
// kInvalidArgument: what `CheckSlicedGpus` rejects, with `path` for the GPUs; `wanted`
// has not one entry per profile, or a negative one; a cost out of range.
absl::StatusOr<RepartitionPlan> PlanRepartition(const MigTables& tables,
                                                std::span<const SlicedGpu> gpus,
                                                std::span<const int64_t> wanted,
                                                const RepartitionCosts& costs,
                                                std::string_view path, int64_t budget = 2000000);

// The fewest operations after which the instances of `gpu` are exactly `layout`, in any
// order, at their positions; its busy instances must be among them. The plan concerns
// GPU 0. It is kInfeasible if `layout` lacks a busy instance, or if the GPU may not
// change and has other instances. MIG mode is switched on if `layout` has instances,
// and never off.
//
// kInvalidArgument: what `CheckSlicedGpus` rejects (`path`), a `layout` that is not
// legal (`layout[2]: ...`), a cost out of range. O(units^2).
absl::StatusOr<RepartitionPlan> PlanLayout(const MigTables& tables, const SlicedGpu& gpu,
                                           std::span<const Instance> layout,
                                           const RepartitionCosts& costs, std::string_view path);

}  // namespace tessera

#endif  // TESSERA_GPU_REPARTITION_H_
