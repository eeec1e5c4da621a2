#ifndef TESSERA_SRC_SCHEDULE_JOB_SERVER_H_
#define TESSERA_SRC_SCHEDULE_JOB_SERVER_H_

// The jobs that wait, in the order in which they are served.

#include <memory>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "src/schedule/job_facts.h"
#include "tessera/schedule/schedule.h"

namespace tessera {

class JobServer {
 public:
  // All must outlive the object.
  JobServer(const Snapshot& snapshot, std::unique_ptr<QueueServer> order, JobComparison before,
            const LeastCharges& least)
      : snapshot_(snapshot),
        order_(std::move(order)),
        least_(least),
        jobs_(static_cast<size_t>(snapshot.queues().size()), Jobs(ServedLater{before})),
        waits_(static_cast<size_t>(snapshot.num_workloads())) {}

  // Unless it waits already.
  void Push(const ClusterState& state, WorkloadId w) {
    if (std::exchange(waits_[static_cast<size_t>(w.value())], 1) != 0) return;
    const Workload& workload = snapshot_.workload(w);
    jobs(snapshot_.info(w).queue)
        .push({workload.priority, StageOf(state, w), workload.submitted, w});
  }

  // To be called for each leaf whose jobs or charges have changed.
  void Rank(const ClusterState& state, QueueId q) {
    order_->SetJob(q, jobs(q).empty() ? std::nullopt
                                      : std::optional(least_.Of(state, jobs(q).top().workload)));
  }

  void RankAll(const ClusterState& state) {
    for (int q = 0; q < snapshot_.queues().size(); ++q) {
      if (snapshot_.queues().is_leaf(QueueId(q))) Rank(state, QueueId(q));
    }
  }

  // Takes out whoever is served next; invalid: nobody waits. Its queue has to be ranked anew.
  WorkloadId Next() {
    const QueueId q = order_->Next();
    if (!q.valid()) return WorkloadId();
    const WorkloadId w = jobs(q).top().workload;
    jobs(q).pop();
    waits_[static_cast<size_t>(w.value())] = 0;
    return w;
  }

 private:
  struct ServedLater {
    JobComparison before;

    bool operator()(const Job& a, const Job& b) const {
      if (before(a, b)) return false;
      return before(b, a) || a.workload > b.workload;
    }
  };
  using Jobs = std::priority_queue<Job, std::vector<Job>, ServedLater>;

  Jobs& jobs(QueueId q) { return jobs_[static_cast<size_t>(q.value())]; }

  const Snapshot& snapshot_;
  const std::unique_ptr<QueueServer> order_;
  const LeastCharges& least_;
  std::vector<Jobs> jobs_;   // by queue
  std::vector<char> waits_;  // by workload
};

}  // namespace tessera

#endif  // TESSERA_SRC_SCHEDULE_JOB_SERVER_H_
