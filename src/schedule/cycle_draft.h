#ifndef TESSERA_SRC_SCHEDULE_CYCLE_DRAFT_H_
#define TESSERA_SRC_SCHEDULE_CYCLE_DRAFT_H_

// One cycle, planned with what rehearsals of the next one have shown.

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/cluster/diagnosis.h"
#include "tessera/schedule/schedule.h"

namespace tessera {

class WorkloadSet {
 public:
  explicit WorkloadSet(const Snapshot& snapshot)
      : has_(static_cast<size_t>(snapshot.num_workloads())) {}

  void Add(WorkloadId w) {
    has_[static_cast<size_t>(w.value())] = 1;
    empty_ = false;
  }
  bool contains(WorkloadId w) const { return has_[static_cast<size_t>(w.value())] != 0; }
  bool empty() const { return empty_; }

 private:
  std::vector<char> has_;
  bool empty_ = true;
};

// Whose start, and which moves, the next cycle would undo.
struct Lessons {
  static constexpr int kLastTurn = 3;
  // From then on nobody yields for it in this cycle; what is free it may still use.
  static constexpr int kNoClaim = kLastTurn + 1;

  std::vector<char> turns;  // by workload: it is served when all of earlier turns have settled
  // By pod: not moved, though perhaps evicted, until all the rest has settled.
  std::vector<char> unmoved;
  std::optional<WorkloadSet> asked;  // of a rehearsal, which is one pass: who has a turn at all

  explicit Lessons(const Snapshot& snapshot)
      : turns(static_cast<size_t>(snapshot.num_workloads())),
        unmoved(static_cast<size_t>(snapshot.num_pods())) {}

  bool has_turn(WorkloadId w, int turn) const {
    return (!asked || asked->contains(w)) && std::min<int>(Level(w), kLastTurn) <= turn;
  }
  int last_turn() const {
    return turns.empty() ? 0 : std::min<int>(*std::ranges::max_element(turns), kLastTurn);
  }
  bool is_rehearsal() const { return asked.has_value(); }
  bool may_claim(WorkloadId w) const { return Level(w) < kNoClaim; }

  // False: they were forbidden already.
  bool ForbidClaims(WorkloadId w) {
    return std::exchange(turns[static_cast<size_t>(w.value())], kNoClaim) != kNoClaim;
  }
  bool forbids_claims() const { return std::ranges::find(turns, kNoClaim) != turns.end(); }
  void AllowClaims() {
    for (char& turn : turns) turn = std::min<char>(turn, kLastTurn);
  }

 private:
  char Level(WorkloadId w) const { return turns[static_cast<size_t>(w.value())]; }
};

struct CycleDraft {
  explicit CycleDraft(const Snapshot& snapshot) : suspects(snapshot) {}

  CycleResult result;
  WorkloadSet suspects;            // who might make yield what the cycle starts or moves
  bool losers_may_return = false;  // who loses something might make others yield
  // `result.plan.pending`, which only the draft that is carried out needs; not of a rehearsal.
  // Refers to what the draft was planned from, the lessons excepted.
  std::function<std::vector<PendingWorkload>()> report_pending;
};

CycleDraft DraftCycle(const Snapshot& snapshot, const CycleRules& rules,
                      const CycleFunctions& functions, const Lessons& lessons);

}  // namespace tessera

#endif  // TESSERA_SRC_SCHEDULE_CYCLE_DRAFT_H_
