#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/verify/judge_outcome.h"
#include "src/verify/text.h"

namespace tessera {
namespace {

size_t At(QueueId q) { return static_cast<size_t>(q.value()); }

// By QueueId, and below each queue summed.
struct QueueAccounts {
  std::vector<ResourceVector> charged;
  std::vector<ResourceVector> non_preemptible;         // part of `charged`
  std::vector<ResourceVector> gained;                  // by pods the plan has put there
  std::vector<ResourceVector> gained_non_preemptible;  // part of `gained`
};

// What `p` is charged now beyond what it was charged before the plan.
ResourceVector Gain(const PlanReplay& replay, PodId p, RequestClassId c,
                    const ResourceVector& charge) {
  ResourceVector gain;
  if (!replay.is_new(p) && !replay.is_moved(p)) return gain;
  const Snapshot& snapshot = replay.snapshot();
  gain = charge;
  if (replay.was_up(p)) {
    gain -= ChargeOf(snapshot, c, snapshot.pod_placement(p), replay.options().mig_charge);
  }
  for (int r = 0; r < kMaxResources; ++r) gain[r] = std::max<int64_t>(gain[r], 0);
  return gain;
}

QueueAccounts Account(const PlanReplay& replay) {
  const Snapshot& snapshot = replay.snapshot();
  const QueueTree& tree = snapshot.queues();
  QueueAccounts accounts;
  const auto all = {&QueueAccounts::charged, &QueueAccounts::non_preemptible,
                    &QueueAccounts::gained, &QueueAccounts::gained_non_preemptible};
  for (auto account : all) (accounts.*account).resize(static_cast<size_t>(tree.size()));
  for (int i = 0; i < snapshot.num_pods(); ++i) {
    const PodId p(i);
    if (!replay.is_up(p)) continue;
    const PodSetInfo& set = snapshot.pod_set(snapshot.pod_set_of(p));
    const size_t q = At(snapshot.info(set.workload).queue);
    const ResourceVector charge =
        ChargeOf(snapshot, set.request_class, replay.placement(p), replay.options().mig_charge);
    const ResourceVector gain = Gain(replay, p, set.request_class, charge);
    accounts.charged[q] += charge;
    accounts.gained[q] += gain;
    if (snapshot.workload(set.workload).is_preemptible()) continue;
    accounts.non_preemptible[q] += charge;
    accounts.gained_non_preemptible[q] += gain;
  }
  const std::span<const QueueId> order = tree.top_down();
  for (size_t i = order.size(); i > 0; --i) {
    const QueueId parent = tree.parent(order[i - 1]);
    if (!parent.valid()) continue;
    for (auto account : all)
      (accounts.*account)[At(parent)] += (accounts.*account)[At(order[i - 1])];
  }
  return accounts;
}

}  // namespace

void JudgeQueues(const PlanReplay& replay, ViolationList& violations) {
  const QueueTree& tree = replay.snapshot().queues();
  const ResourceSpace& resources = replay.snapshot().resources();
  const QueueAccounts accounts = Account(replay);
  for (int i = 0; i < tree.size(); ++i) {
    const QueueId q(i);
    for (int r = 0; r < resources.size(); ++r) {
      if (accounts.gained[At(q)][r] > 0 && accounts.charged[At(q)][r] > tree.limit(q)[r]) {
        violations.Add(-1,
                       absl::StrCat("queue ", tree.queue(q).name, " comes to hold ",
                                    AmountText(resources, r, accounts.charged[At(q)][r]),
                                    ", its limit is ", AmountText(resources, r, tree.limit(q)[r])));
      }
      if (tree.is_quota_governed(r) && accounts.gained_non_preemptible[At(q)][r] > 0 &&
          accounts.non_preemptible[At(q)][r] > tree.quota(q)[r]) {
        violations.Add(-1,
                       absl::StrCat("queue ", tree.queue(q).name, " comes to hold ",
                                    AmountText(resources, r, accounts.non_preemptible[At(q)][r]),
                                    " by work that is not preemptible, its quota is ",
                                    AmountText(resources, r, tree.quota(q)[r])));
      }
    }
  }
}

}  // namespace tessera
