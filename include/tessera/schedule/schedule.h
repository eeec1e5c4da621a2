#ifndef TESSERA_SCHEDULE_SCHEDULE_H_
#define TESSERA_SCHEDULE_SCHEDULE_H_

// One scheduling cycle.
//
//   const Snapshot snapshot = ...;
//   const CycleResult cycle = Schedule(snapshot);
//   for (const Action& action : cycle.plan.actions) ...

#include <cstdint>
#include <memory>

#include "tessera/cluster/fair_shares.h"
#include "tessera/cluster/plan.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/placement/finders.h"
#include "tessera/share/fair_shares.h"
#include "tessera/share/job_order.h"
#include "tessera/share/queue_order.h"
#include "tessera/share/usage.h"
#include "tessera/state/slice_policy.h"

namespace tessera {

// How gangs that hold their minimum grow.
enum class ElasticGrowth {
  kAfterMinimums,  // once the minimums of all have been served
  kInTurn,         // in the order of jobs, one unit at a time
};

// The rules of a cycle, as plain data. The other choices (division, order of
// queues, finder) are types; see `Schedule`.
struct CycleRules {
  UsagePolicy usage;
  DivisionOptions division;
  ElasticGrowth growth = ElasticGrowth::kAfterMinimums;
  // A fraction that a shared GPU can take once releasing pods are gone is
  // nominated there rather than bound to a free GPU.
  bool await_shared_gpu = false;
  int64_t gang_budget = 10000000;  // `GangOptions::budget`
  int64_t exact_budget = 100000;   // `GangOptions::exact_budget`
  SlicePolicy slices;
};

// A policy: how to divide, which queue to serve, and which of its jobs. Each part
// can be replaced by a type of the host.
template <DivisionRule D, QueueOrder O, JobOrder J = PriorityThenAge>
struct SchedulePolicy {
  using Order = O;
  D division;
  O order;
  CycleRules rules;
  J jobs;
};

// The default: dominant-resource fairness, minimums before growth.
inline SchedulePolicy<DominantResourceDivision, DominantShareOrder> Strict() { return {}; }

// KAI-Scheduler's documented arithmetic and order, for comparison.
inline SchedulePolicy<KaiDivision, KaiQueueOrder> KaiCompatible() {
  CycleRules rules;
  rules.usage = {MigCharge::kWholeG, /*honour_nominations=*/false, /*count_unschedulable=*/true};
  rules.division.usage_strength = 1000;
  rules.division.cap_by_children = false;
  rules.growth = ElasticGrowth::kInTurn;
  rules.await_shared_gpu = true;
  return {{}, {}, rules, {}};
}

// What a cycle decided, and by which shares.
struct CycleResult {
  Plan plan;
  FairShares shares;
};

using MakeQueueServer = absl::FunctionRef<std::unique_ptr<QueueServer>(
    const QueueTree&, const FairShares&, const QuotaLedger&, const QueueOrderContext&)>;

using JobComparison = absl::FunctionRef<bool(const Job&, const Job&)>;

// Calls `call` with the choices of `policy` as functions, which live as long as the call.
template <typename Policy, typename Call>
auto WithFunctionsOf(const Policy& policy, const Call& call) {
  return call([&policy](const Division& division,
                        Claims& claims) { policy.division.Divide(division, claims); },
              [&policy](const QueueTree& tree, const FairShares& shares, const QuotaLedger& ledger,
                        const QueueOrderContext& context) -> std::unique_ptr<QueueServer> {
                return std::make_unique<ServiceOrder<typename Policy::Order>>(
                    tree, shares, ledger, context, policy.order);
              },
              [&policy](const Job& a, const Job& b) { return policy.jobs.Before(a, b); });
}

// The cycle with its policy as functions; hosts call the template below.
CycleResult RunCycle(const Snapshot& snapshot, const CycleRules& rules, DivideFunction divide,
                     MakeQueueServer serve, JobComparison before, PodFinder find);

// Plans what to start now. Queues are served in order, in each queue its jobs in
// theirs (by default the highest priority, then the oldest, then by name); a gang
// starts when all its minimums fit and every queue above it permits the charge,
// else it waits with a reason and the next job has its turn. Fair shares order
// queues; they never keep a pod from free capacity: limits do, and quota for
// non-preemptible work. Pods that fit only where releasing pods still are get
// nominated, and with them all that their gang starts in this cycle. Nominated
// pods whose place has become free are bound.
//
// Deterministic: equal snapshots give equal plans, in whatever order their parts
// were listed. O((pods placed + jobs) * log + classes that wait * nodes).
template <typename Policy>
CycleResult Schedule(const Snapshot& snapshot, const Policy& policy, PodFinder find = FindPacked) {
  return WithFunctionsOf(policy,
                         [&](DivideFunction divide, MakeQueueServer serve, JobComparison before) {
                           return RunCycle(snapshot, policy.rules, divide, serve, before, find);
                         });
}

inline CycleResult Schedule(const Snapshot& snapshot) { return Schedule(snapshot, Strict()); }

}  // namespace tessera

#endif  // TESSERA_SCHEDULE_SCHEDULE_H_
