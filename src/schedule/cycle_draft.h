#ifndef TESSERA_SRC_SCHEDULE_CYCLE_DRAFT_H_
#define TESSERA_SRC_SCHEDULE_CYCLE_DRAFT_H_

// One cycle, planned with what rehearsals of the next one have shown.

#include <algorithm>
#include <vector>

#include "tessera/schedule/schedule.h"

namespace tessera {

// Whose start, and which moves, the next cycle would undo.
struct Lessons {
  static constexpr int kLastTurn = 3;
  // From then on nobody yields for it in this cycle; what is free it may still use.
  static constexpr int kNoClaim = kLastTurn + 1;

  std::vector<char> turns;  // by workload: it is served when all of earlier turns have settled
  // By pod: not moved, though perhaps evicted, until all the rest has settled.
  std::vector<char> unmoved;
  // Of a rehearsal, which is one pass: by workload, whether it has its turn at all. Empty: none is.
  std::vector<char> asked;

  explicit Lessons(const Snapshot& snapshot)
      : turns(static_cast<size_t>(snapshot.num_workloads())),
        unmoved(static_cast<size_t>(snapshot.num_pods())) {}

  bool has_turn(WorkloadId w, int turn) const {
    const bool is_asked = asked.empty() || asked[static_cast<size_t>(w.value())] != 0;
    return is_asked && std::min<int>(Level(w), kLastTurn) <= turn;
  }
  int last_turn() const {
    return turns.empty() ? 0 : std::min<int>(*std::ranges::max_element(turns), kLastTurn);
  }
  bool is_rehearsal() const { return !asked.empty(); }
  bool may_claim(WorkloadId w) const { return Level(w) < kNoClaim; }

  bool forbids_claims() const { return std::ranges::find(turns, kNoClaim) != turns.end(); }
  void AllowClaims() {
    for (char& turn : turns) turn = std::min<char>(turn, kLastTurn);
  }

 private:
  char Level(WorkloadId w) const { return turns[static_cast<size_t>(w.value())]; }
};

struct CycleDraft {
  CycleResult result;
  // By workload: it might make yield what the cycle starts or moves. Empty: certainly none does.
  std::vector<char> suspects;
};

CycleDraft DraftCycle(const Snapshot& snapshot, const CycleRules& rules,
                      const CycleFunctions& functions, const Lessons& lessons);

}  // namespace tessera

#endif  // TESSERA_SRC_SCHEDULE_CYCLE_DRAFT_H_
