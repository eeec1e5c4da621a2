#ifndef TESSERA_SRC_SCHEDULE_JOB_QUEUE_H_
#define TESSERA_SRC_SCHEDULE_JOB_QUEUE_H_

// The jobs of one leaf queue, in the order in which they are tried.

#include <queue>
#include <vector>

#include "tessera/schedule/schedule.h"
#include "tessera/share/job_order.h"

namespace tessera {

struct ServedLater {
  JobComparison before;

  bool operator()(const Job& a, const Job& b) const {
    if (before(a, b)) return false;
    return before(b, a) || a.workload > b.workload;
  }
};

using JobQueue = std::priority_queue<Job, std::vector<Job>, ServedLater>;

}  // namespace tessera

#endif  // TESSERA_SRC_SCHEDULE_JOB_QUEUE_H_
