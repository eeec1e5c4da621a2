#ifndef TESSERA_PREEMPTION_ROOM_MEMORY_H_
#define TESSERA_PREEMPTION_ROOM_MEMORY_H_

// What planners of room keep from claim to claim of one cycle.

#include <memory>

#include "tessera/cluster/snapshot.h"

namespace tessera {

class ClaimRows;

// For `RoomDesk::memory`. It changes no plan: each is what it would be without. Claims without
// topology constraints share it, by the same rights: the first costs what `PlanYielding` costs,
// the next that of the nodes that changed since and of its own pods.
class RoomMemory {
 public:
  // `snapshot` must outlive the object. O(workloads * log).
  explicit RoomMemory(const Snapshot& snapshot);
  ~RoomMemory();

  // To be told of every pod that leaves `n` or comes there in `RoomDesk::later`.
  void Note(PodId p, NodeId n);
  // To be called when `RoomDesk::later` becomes another object.
  void Forget();

  // For planners.
  ClaimRows& rows() { return *rows_; }

 private:
  std::unique_ptr<ClaimRows> rows_;
};

}  // namespace tessera

#endif  // TESSERA_PREEMPTION_ROOM_MEMORY_H_
