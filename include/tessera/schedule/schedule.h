#ifndef TESSERA_SCHEDULE_SCHEDULE_H_
#define TESSERA_SCHEDULE_SCHEDULE_H_

// One scheduling cycle.
//
//   const Snapshot snapshot = ...;
//   const CycleResult cycle = Schedule(snapshot);
//   for (const Action& action : cycle.plan.actions) ...

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/cluster/certificate.h"
#include "tessera/cluster/fair_shares.h"
#include "tessera/cluster/plan.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/placement/finders.h"
#include "tessera/preemption/make_room.h"
#include "tessera/preemption/victim_order.h"
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

// One pass over all that waits, each job at its turn; or over what should not run.
enum class CycleStep {
  kAllocate,     // on what is free, or will be once releasing pods are gone
  kMakeRoom,     // the same; failing that, others yield as `PlanYielding` has it
  kConsolidate,  // others yield as `PlanConsolidation` has it
  kReclaim,      // `PlanReclaim`
  kPreempt,      // `PlanPreemption`
  kEndStale,     // gangs that are below their minimum for too long are evicted
};

// The rules of a cycle, as plain data. The other choices (division, order of
// queues, jobs and victims, finder) are types; see `Schedule`.
struct CycleRules {
  std::vector<CycleStep> steps = {CycleStep::kMakeRoom, CycleStep::kEndStale};
  // The steps are repeated until none of them changes anything. Else each has its turn
  // once, each job has one turn in a step in which others yield, and who lost something in
  // this cycle waits for the next.
  bool settle = true;
  // How often at most a cycle that settles is planned anew, with the same claims forbidden, because
  // the next one would undo some of it; 0: not at all, and none is forbidden. See `Schedule`.
  int rehearsals = 10;
  // What is said there of MIG charges and nominations is taken from `usage`. A cycle asks for
  // many, so each search for the cheapest victims is shorter than for a single plan.
  RoomRules room = {.victims = {.preempt_within_share = true, .growth_spares_minimums = true},
                    .exact_budget = 500};
  UsagePolicy usage;
  DivisionOptions division;
  // A gang below its minimum, within its entitlement, that waits for so many seconds holds the
  // places where least is in its way; see `Schedule`. kUnlimited: none does.
  int64_t patience = 600;
  // Seconds after which a nomination of this cycle expires, so that what never leaves blocks
  // nobody for ever. kUnlimited: never.
  int64_t nomination_lifetime = 600;
  ElasticGrowth growth = ElasticGrowth::kAfterMinimums;
  // A fraction that a shared GPU can take once releasing pods are gone is
  // nominated there rather than bound to a free GPU.
  bool await_shared_gpu = false;
  int64_t gang_budget = 10000000;  // `GangOptions::budget`
  int64_t exact_budget = 100000;   // `GangOptions::exact_budget`
  SlicePolicy slices;
};

// `rules.room`, with what `rules.usage` says.
inline RoomRules RoomRulesOf(const CycleRules& rules) {
  RoomRules room = rules.room;
  room.victims.mig_charge = rules.usage.mig_charge;
  room.honour_nominations = rules.usage.honour_nominations;
  return room;
}

// A policy: how to divide, which queue to serve, which of its jobs, and what it costs that
// others yield. Each part can be replaced by a type of the host.
template <DivisionRule D, QueueOrder O, JobOrder J = PriorityThenAge, VictimOrder V = VictimWeights>
struct SchedulePolicy {
  using Order = O;
  D division;
  O order;
  CycleRules rules;
  J jobs;
  V victims;
};

// The default: dominant-resource fairness, minimums before growth, until nothing changes.
inline SchedulePolicy<DominantResourceDivision, DominantShareOrder> Strict() { return {}; }

// KAI-Scheduler's documented arithmetic, order and steps, for comparison. Victims: the queue
// furthest above its share, then the lowest priority, then the youngest, as far as costs can
// say it.
inline SchedulePolicy<KaiDivision, KaiQueueOrder> KaiCompatible() {
  CycleRules rules;
  rules.steps = {CycleStep::kAllocate, CycleStep::kConsolidate, CycleStep::kReclaim,
                 CycleStep::kPreempt, CycleStep::kEndStale};
  rules.settle = false;
  rules.room = RoomRules();
  rules.room.victims = KaiVictimRules();
  rules.room.costs.share = 1000000;
  rules.usage = {MigCharge::kWholeG, /*honour_nominations=*/false, /*count_unschedulable=*/true};
  rules.division.usage_strength = 1000;
  rules.division.cap_by_children = false;
  rules.patience = rules.nomination_lifetime = kUnlimited;
  rules.growth = ElasticGrowth::kInTurn;
  rules.await_shared_gpu = true;
  VictimWeights victims;
  victims.gpu_hour = victims.core_hour = 0;
  return {{}, {}, rules, {}, victims};
}

// Places that others leave to a gang that has waited for longer than `CycleRules::patience`.
struct Reservation {
  std::string workload;
  std::vector<std::string> nodes;  // ascending
  // By then all that is in the way has ended, as far as it keeps to its `max_runtime`; kUnlimited:
  // something there may run on.
  int64_t free_by = 0;
  int64_t idle_gpu_units = 0;  // what it costs: GPUs kept free, in 1/7000

  friend bool operator==(const Reservation&, const Reservation&) = default;
};

// What a cycle decided, and by which shares.
struct CycleResult {
  Plan plan;
  FairShares shares;
  // Of every workload for which others yield, in the order of the plan.
  std::vector<Certificate> certificates;
  std::vector<Reservation> reservations;  // as they were made: in the order of service
};

using MakeQueueServer = absl::FunctionRef<std::unique_ptr<QueueServer>(
    const QueueTree&, const FairShares&, const QuotaLedger&, const QueueOrderContext&)>;

using JobComparison = absl::FunctionRef<bool(const Job&, const Job&)>;

// The choices of a policy that are types, as functions.
struct CycleFunctions {
  DivideFunction divide;
  MakeQueueServer serve;
  JobComparison before;
  VictimCost cost;
  PodFinder find;
};

// The cycle with its policy as functions; hosts call the template below.
CycleResult RunCycle(const Snapshot& snapshot, const CycleRules& rules,
                     const CycleFunctions& functions);

// Plans what to start now, and who yields for it. Queues are served in order, in each queue
// its jobs in theirs (by default the highest priority, then the oldest, then by name); a gang
// starts when all its minimums fit and every queue above it permits the charge; where they do
// not fit others yield, if they may be made to (`PlanYielding`); else it waits with a reason
// and the next job has its turn. Fair shares order queues and decide who yields; they never
// keep a pod from free capacity: limits do, and quota for non-preemptible work. Pods that fit
// only where others leave get nominated, and with them all that their gang starts in this
// cycle. Nominated pods whose place has become free are bound.
//
// A gang within its entitlement that has waited for longer than `patience`, and for which nobody
// yields, holds places: those where it could start once what is there has ended, on nodes (in the
// domain that it requires) of which others hold the fewest GPUs. At most eight gangs do, in the
// order of service. Whoever is served after it gets these places only if it may be made to yield
// for the gang (of lower priority in its queue, or of a queue at its entitlement) or has ended by
// the time when they are free (`max_runtime`): so a stream of small jobs cannot starve a wide one.
// Nothing of it is written into the plan: the next cycle holds what is best then, which is the
// same places with more of them free.
//
// A job for which nobody could yield spares the like of it, and what asks for more, the
// attempt until something changes. Who lost something is served again as what waits; nobody
// yields twice in a cycle. What the cycle started on free capacity may make way as if it had never
// started, as long as nobody's right to reclaim rests on it.
//
// Where somebody who waits might still have a claim on what the cycle starts or moves, the next
// cycle is rehearsed, as if that had run for long. What it would make yield has its turn again
// after all others (three times, each later than the last; then nobody yields for it in this
// cycle), and what it would move again is moved last. Nor does anybody yield who would be back in
// the next cycle, unless the plan were no fixed point then: the claimant waits until what has just
// started may yield as well. So time alone undoes little: the plan is a fixed point at the same
// time, and for what has just started nearly always.
//
// Deterministic: equal snapshots give equal plans, in whatever order their parts
// were listed. O((pods placed + jobs) * log + classes that wait * nodes), and `PlanYielding`
// for each distinct job that does not fit; as much, and a snapshot, for each cycle rehearsed: none
// where nobody has such a claim.
template <typename Policy>
CycleResult Schedule(const Snapshot& snapshot, const Policy& policy, PodFinder find = FindPacked) {
  const auto divide = [&policy](const Division& division, Claims& claims) {
    policy.division.Divide(division, claims);
  };
  const auto serve = [&policy](const QueueTree& tree, const FairShares& shares,
                               const QuotaLedger& ledger,
                               const QueueOrderContext& context) -> std::unique_ptr<QueueServer> {
    return std::make_unique<ServiceOrder<typename Policy::Order>>(tree, shares, ledger, context,
                                                                  policy.order);
  };
  const auto before = [&policy](const Job& a, const Job& b) { return policy.jobs.Before(a, b); };
  const auto cost = [&policy](const Victim& victim) { return policy.victims.Cost(victim); };
  return RunCycle(snapshot, policy.rules, {divide, serve, before, cost, find});
}

inline CycleResult Schedule(const Snapshot& snapshot) { return Schedule(snapshot, Strict()); }

}  // namespace tessera

#endif  // TESSERA_SCHEDULE_SCHEDULE_H_
