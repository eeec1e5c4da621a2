#ifndef TESSERA_SRC_SCHEDULE_JOB_QUEUE_H_
#define TESSERA_SRC_SCHEDULE_JOB_QUEUE_H_

// The jobs of one leaf queue, in the order in which they are tried.

#include <compare>
#include <cstdint>
#include <queue>
#include <vector>

#include "tessera/base/ids.h"

namespace tessera {

// Where a gang stands; growing gangs wait behind those that do not run yet.
enum class GangStage : uint8_t { kBelowMinimum, kAtMinimum, kAboveMinimum };

// Priority (high first), stage, age, name (ids are ranks by name).
struct Job {
  int priority = 0;
  GangStage stage = GangStage::kBelowMinimum;
  int64_t submitted = 0;
  WorkloadId workload;

  friend bool operator==(const Job&, const Job&) = default;
};

struct ServedLater {
  bool operator()(const Job& a, const Job& b) const {
    if (a.priority != b.priority) return a.priority < b.priority;
    if (a.stage != b.stage) return a.stage > b.stage;
    if (a.submitted != b.submitted) return a.submitted > b.submitted;
    return a.workload > b.workload;
  }
};

using JobQueue = std::priority_queue<Job, std::vector<Job>, ServedLater>;

}  // namespace tessera

#endif  // TESSERA_SRC_SCHEDULE_JOB_QUEUE_H_
