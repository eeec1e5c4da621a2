#ifndef TESSERA_GPU_DEFRAGMENTATION_H_
#define TESSERA_GPU_DEFRAGMENTATION_H_

// Which instances to move so that one fits that does not fit now.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/gpu/layout.h"
#include "tessera/gpu/sliced_gpu.h"

namespace tessera {

// The occupant of the instance `from` on `from_gpu` goes to an instance of the same
// profile at `to_start` on `to_gpu`, which may be the same GPU.
struct InstanceMove {
  int from_gpu = 0;
  Instance from;
  int to_gpu = 0;
  int to_start = 0;

  bool operator==(const InstanceMove&) const = default;
};

// Where a wanted instance ends.
struct InstancePlace {
  int gpu = 0;
  Instance instance;

  bool operator==(const InstancePlace&) const = default;
};

enum class DefragmentationOutcome {
  kPlanned,          // the moves cost the least: proven
  kInfeasible,       // no moves make room: proven
  kBudgetExhausted,  // the search ended undecided
};

struct DefragmentationPlan {
  DefragmentationOutcome outcome = DefragmentationOutcome::kPlanned;
  std::vector<InstanceMove> moves;    // in the order to carry them out
  std::vector<InstancePlace> places;  // [wanted], free after the moves
  int64_t cost = 0;                   // the sum over `moves`

  bool operator==(const DefragmentationPlan&) const = default;
};

// The moves of the least total cost, and of these the fewest, after which the instances
// of the profiles `wanted` fit beside all others on `gpus`, all of the model of `tables`.
//
// Guarantees: the target of a move is free at its turn, while the source still stands
// (there is no swap, not even on one GPU); only movable instances move, each once at
// most; GPUs that may not change take part with their idle instances alone, and none of
// their occupants moves. Idle instances on other GPUs count as free room: the caller
// destroys those in the way, and creates targets. A GPU whose MIG mode is off counts as
// empty if it may change. Without need for moves the plan is just `places`.
//
//   an A100 with 1g at 0, 1 and 5, wanted 4g -> 1g from 0 to 4, 1g from 1 to 6; 4g at 0
//
// Exact: best first over what the places of the wanted instances displace, what the
// places of the displaced displace, and so on, by total cost; so few moves are found
// without a look at more. `budget` counts the places looked at, 20 to 300 ns each: some
// hundreds per move on 100 GPUs, in all tens of microseconds for one or two moves. To
// prove that nothing helps may take any number, unless units or GPUs do not suffice even
// if all could move; a host that asks often gives a small budget. Ties: the place found
// first, on GPUs and at starts in ascending order.
//
// kInvalidArgument: what `CheckSlicedGpus` rejects, with `path` for the GPUs; a wanted
// profile that the model lacks (`wanted[1]: no profile 9 on A30-24GB`).
absl::StatusOr<DefragmentationPlan> PlanDefragmentation(const MigTables& tables,
                                                        std::span<const SlicedGpu> gpus,
                                                        std::span<const int> wanted,
                                                        std::string_view path,
                                                        int64_t budget = 2000000);

}  // namespace tessera

#endif  // TESSERA_GPU_DEFRAGMENTATION_H_
