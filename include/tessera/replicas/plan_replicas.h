#ifndef TESSERA_REPLICAS_PLAN_REPLICAS_H_
#define TESSERA_REPLICAS_PLAN_REPLICAS_H_

// How many engines a service should run now, and how it gets there.
//
//   ReplicaMemory memory;  // kept by the host between decisions
//   const absl::StatusOr<ReplicaPlan> plan = PlanReplicas(rules, status, memory);
//   for (const ScalingStep& step : plan->transition.steps) ...
//   memory = plan->memory;

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/replicas/engine_budget.h"
#include "tessera/replicas/reaction.h"
#include "tessera/replicas/service.h"
#include "tessera/resources/units.h"

namespace tessera {

// Most GPUs of a budget.
inline constexpr int64_t kMaxGpus = int64_t{1} << 52;

// The rules by which a service is scaled. Times are whole seconds.
struct ReplicaRules {
  ServiceMode mode = ServiceMode::kDisaggregated;
  EngineGpus gpus = {0, 0};       // of one engine; 0: not known, and nothing changes
  ReplicaCounts minimum{1, 1};    // of each role; `prefill` is ignored if aggregated
  int64_t max_gpus = kUnlimited;  // ceiling
  int64_t min_gpus = 0;           // floor
  int64_t max_step = 8;           // engines that a role gains or loses per decision
  int64_t down_delay = 300;       // for how long fewer must have sufficed
  int64_t pending_timeout = 600;  // until engines that do not start are given up

  friend bool operator==(const ReplicaRules&, const ReplicaRules&) = default;
};

struct RoleReactions {
  Reaction prefill = Reaction::kNone;
  Reaction decode = Reaction::kNone;

  friend bool operator==(const RoleReactions&, const RoleReactions&) = default;
};

// What is known of a service at one moment.
struct ReplicaStatus {
  int64_t now = 0;         // seconds
  ReplicaCounts expected;  // asked for by the last plan
  // That serve or drain. Fewer than expected: the others start, or wait for a place.
  // More: the surplus still drains.
  ReplicaCounts ready;
  RequiredReplicas required;  // by the forecast load and the engines' model
  RoleReactions reactions;

  friend bool operator==(const ReplicaStatus&, const ReplicaStatus&) = default;
};

// What one decision has to know of those before it, for one role.
struct RoleMemory {
  std::optional<int64_t> pending_since;  // engines do not start, and none did since
  int64_t pending_ready = 0;             // ready at that time
  std::optional<int64_t> retry_after;    // engines did not start: none is asked for before
  std::optional<int64_t> low_since;      // fewer have sufficed since
  int64_t low_peak = 0;                  // the most that was needed since

  friend bool operator==(const RoleMemory&, const RoleMemory&) = default;
};
struct ReplicaMemory {
  RoleMemory prefill;
  RoleMemory decode;

  friend bool operator==(const ReplicaMemory&, const ReplicaMemory&) = default;
};

// The rules that shape a count, in the order in which they do.
enum class ReplicaReason {
  kUnknownGpus,        // hold: nobody said how many GPUs an engine has
  kModelNotReady,      // hold: too few observations of the engines
  kMissingMetrics,     // hold: a part of the load is not known
  kRequired,           // load, SLA and model ask for this many
  kTtftUnreachable,    // no number of engines meets the SLA; these carry the load
  kItlUnreachable,     // likewise
  kContextTooLong,     // a request of mean length does not fit an engine
  kReactionUp,         // every engine exceeds the SLA
  kReactionStay,       // one fewer would not hold the SLA with the margin
  kReactionDown,       // one fewer would
  kMinimum,            // never fewer
  kScaleUpInProgress,  // hold: engines are starting
  kScaleUpGivenUp,     // engines did not start in time, and are no longer asked for
  kRetryLater,         // hold: engines did not start lately
  kDownDelay,          // hold: fewer have sufficed, but not for long
  kStepLimit,          // the rest comes with later decisions
  kCeiling,            // GPUs are short
  kFloor,              // GPUs are to be used
  kFloorNotReached,    // no counts lie between floor and ceiling, or engines do not start
  kInfeasibleBudget,   // the minimums alone exceed the ceiling
};

// "step_limit".
std::string_view ToString(ReplicaReason reason);

// One rule that applied. It changed the count of `role` from `from` to `to`; equal where a
// rule holds a count as it is.
struct ReplicaNote {
  std::optional<EngineRole> role;  // absent: about the service
  ReplicaReason reason = ReplicaReason::kRequired;
  int64_t from = 0;
  int64_t to = 0;

  friend bool operator==(const ReplicaNote&, const ReplicaNote&) = default;
};

// "decode 8 -> 6: GPUs are short (ceiling)".
std::string Describe(const ReplicaNote& note);

enum class ReplicaOutcome {
  kGranted,     // each role gets what it needs
  kLimited,     // some rule grants more or less than that; see the notes
  kHeld,        // nothing is known to decide by; nothing changes
  kInfeasible,  // the ceiling does not pay for the minimums
};

// "limited".
std::string_view ToString(ReplicaOutcome outcome);

struct ReplicaPlan {
  ReplicaOutcome outcome = ReplicaOutcome::kGranted;
  ReplicaCounts needed;   // by load, SLA, reactions and minimums
  ReplicaCounts granted;  // expected from now on
  std::vector<ReplicaNote> notes;
  // From what is held (the more of expected and ready) to what is granted.
  Transition transition;
  int64_t gpus_before = 0;
  int64_t gpus_after = 0;
  ReplicaMemory memory;

  friend bool operator==(const ReplicaPlan&, const ReplicaPlan&) = default;
};

// Decides how many engines of each role to run.
//
// What is needed: what load, SLA and model require. With a reaction at least that, and one
// more, as many, or one fewer than now; without either, as many as now. While engines start
// or drain a reaction can only keep what there is. Never below the minimum.
//
// A role grows only while all its engines run. Engines that did not start within
// `pending_timeout` of the last that did are given up, for as long again; meanwhile the
// other role shrinks and grows as it should. A role shrinks once fewer have sufficed for
// `down_delay`, to the most that was needed in that time; each fall waits anew. Neither
// goes faster than `max_step`, unless a minimum asks for it.
//
// What is granted: `FitToCeiling` of that, where a role that does not shrink keeps what it
// has as long as the ceiling permits (so a ceiling alone never swaps roles), then
// `RaiseToFloor`. The GPUs granted, and those held at any moment of the transition, exceed
// the ceiling only where more are held to start with, and then fall; or if it is below the
// minimums: then every role shrinks to its minimum, none grows, and the outcome says so.
// A ceiling raises no count. No floor breaks a ceiling.
//
// kInvalidArgument, with the field: a count outside [0, kMaxReplicas], GPUs of an engine
// outside [0, kMaxGpusPerEngine], a ceiling or floor outside [0, kMaxGpus] (the ceiling
// may be `kUnlimited`), a step below 1, a negative time, prefill engines of an aggregated
// service. O(log of the counts).
//
// After Dynamo's planner; differs in what its users reported: opposing moves are one
// transition with a peak (dynamo#12428), a role that cannot grow does not freeze the other
// (dynamo#14251), and an unknown cost stops everything (dynamo#11220).
absl::StatusOr<ReplicaPlan> PlanReplicas(const ReplicaRules& rules, const ReplicaStatus& status,
                                         const ReplicaMemory& memory = {});

}  // namespace tessera

#endif  // TESSERA_REPLICAS_PLAN_REPLICAS_H_
