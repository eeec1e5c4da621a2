#ifndef TESSERA_SRC_PREEMPTION_MOVE_RULES_H_
#define TESSERA_SRC_PREEMPTION_MOVE_RULES_H_

// Which pods may be moved, and where to.

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "src/preemption/slice_view.h"
#include "tessera/gpu/defragmentation.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

class MoveRules {
 public:
  explicit MoveRules(const Snapshot& snapshot);

  // Whether the pod, which runs on a slice, may move to a like one on its own node.
  bool MayMove(PodId p);

  // The first of `moves` within `view` that is not allowed after those before it;
  // nothing if all are. O(moves * log).
  std::optional<size_t> FirstOffence(const SliceView& view, std::span<const InstanceMove> moves);

 private:
  bool IsAllowed(PodId p, const PodPlacement& target) const;
  bool IsTied(const PodSetInfo& set) const;

  std::shared_ptr<const StateTables> tables_;
  ClusterState state_;
};

// The pod that holds `instance` on a GPU of the view.
PodId HolderOf(const SliceView& view, int gpu, const Instance& instance);

// Marks the pods of `view` that may move, at their costs; kInvalidArgument if one is out of
// range. An empty `cost_of` means 1 each.
absl::Status MarkMovable(MoveRules& rules, const Snapshot& snapshot,
                         const std::function<int64_t(PodId)>& cost_of, SliceView& view);

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_MOVE_RULES_H_
