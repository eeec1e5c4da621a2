#ifndef TESSERA_SRC_SCHEDULE_CYCLE_DRAFT_H_
#define TESSERA_SRC_SCHEDULE_CYCLE_DRAFT_H_

// One cycle, planned with what rehearsals of the next one have shown.

#include <algorithm>
#include <vector>

#include "tessera/schedule/schedule.h"

namespace tessera {

// Whose start, and which moves, the next cycle would undo.
struct Foresight {
  // Those of the last turn start even if that is undone: nothing that fits is kept waiting.
  static constexpr int kLastTurn = 3;

  std::vector<char> turns;    // by workload: it is served when all of earlier turns have settled
  std::vector<char> unmoved;  // by pod: not moved for anybody, though perhaps evicted

  explicit Foresight(const Snapshot& snapshot)
      : turns(static_cast<size_t>(snapshot.num_workloads())),
        unmoved(static_cast<size_t>(snapshot.num_pods())) {}

  int turn(WorkloadId w) const { return turns[static_cast<size_t>(w.value())]; }
  int last_turn() const { return turns.empty() ? 0 : *std::ranges::max_element(turns); }
};

struct CycleDraft {
  CycleResult result;
  // Somebody who waits might make yield what the cycle starts or moves; false is certain.
  bool may_be_undone = false;
};

CycleDraft DraftCycle(const Snapshot& snapshot, const CycleRules& rules,
                      const CycleFunctions& functions, const Foresight& foresight);

}  // namespace tessera

#endif  // TESSERA_SRC_SCHEDULE_CYCLE_DRAFT_H_
