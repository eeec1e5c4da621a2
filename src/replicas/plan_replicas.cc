#include "tessera/replicas/plan_replicas.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

struct ReasonText {
  std::string_view name;
  std::string_view text;
};

constexpr std::array<ReasonText, 20> kReasons = {{
    {"unknown_gpus", "held: the GPUs of an engine are not known"},
    {"model_not_ready", "held: too few observations of the engines"},
    {"missing_metrics", "held: a part of the load is not known"},
    {"required", "required by load, SLA and model"},
    {"ttft_unreachable", "no number of engines reaches the time to the first token"},
    {"itl_unreachable", "no number of engines reaches the time between tokens"},
    {"context_too_long", "a request of mean length does not fit an engine"},
    {"reaction_up", "every engine exceeds the SLA"},
    {"reaction_stay", "one engine fewer would not hold the SLA with the margin"},
    {"reaction_down", "one engine fewer holds the SLA with the margin"},
    {"minimum", "the minimum"},
    {"scale_up_in_progress", "held: engines are starting"},
    {"scale_up_given_up", "engines did not start in time"},
    {"retry_later", "held: engines did not start lately"},
    {"down_delay", "held: fewer have not sufficed for long enough"},
    {"step_limit", "the rest comes with later decisions"},
    {"ceiling", "the ceiling of GPUs"},
    {"floor", "the floor of GPUs"},
    {"floor_not_reached", "the floor of GPUs cannot be reached now"},
    {"infeasible_budget", "the minimums alone exceed the ceiling of GPUs"},
}};

constexpr std::array<std::string_view, 4> kOutcomes = {"granted", "limited", "held", "infeasible"};

ReplicaReason ReasonOf(RequirementReason reason) {
  switch (reason) {
    case RequirementReason::kOk:
      return ReplicaReason::kRequired;
    case RequirementReason::kTtftUnreachable:
      return ReplicaReason::kTtftUnreachable;
    case RequirementReason::kItlUnreachable:
      return ReplicaReason::kItlUnreachable;
    case RequirementReason::kContextTooLong:
      return ReplicaReason::kContextTooLong;
    case RequirementReason::kModelNotReady:
      return ReplicaReason::kModelNotReady;
    case RequirementReason::kMissingMetrics:
      return ReplicaReason::kMissingMetrics;
  }
  return ReplicaReason::kMissingMetrics;
}

absl::Status CheckRange(std::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return InvalidAt(field, absl::StrCat("is ", value, ", not within ", low, " and ", high));
}

absl::Status CheckCounts(std::string_view field, const ReplicaCounts& counts) {
  for (EngineRole role : kEngineRoles) {
    const std::string path = absl::StrCat(ToAbsl(field), ".", ToAbsl(ToString(role)));
    TESSERA_RETURN_IF_ERROR(CheckRange(path, OfRole(counts, role), 0, kMaxReplicas));
  }
  return absl::OkStatus();
}

// Times of an earlier decision.
absl::Status CheckMemory(std::string_view role, const RoleMemory& memory) {
  for (const std::optional<int64_t>& time :
       {memory.pending_since, memory.retry_after, memory.low_since}) {
    if (!time) continue;
    TESSERA_RETURN_IF_ERROR(
        CheckRange(absl::StrCat("memory.", ToAbsl(role)), *time, -2 * kMaxTotal, 2 * kMaxTotal));
  }
  return absl::OkStatus();
}

absl::Status Validate(const ReplicaRules& rules, const ReplicaStatus& status,
                      const ReplicaMemory& memory) {
  TESSERA_RETURN_IF_ERROR(CheckMemory("prefill", memory.prefill));
  TESSERA_RETURN_IF_ERROR(CheckMemory("decode", memory.decode));
  TESSERA_RETURN_IF_ERROR(CheckRange("gpus.prefill", rules.gpus.prefill, 0, kMaxGpusPerEngine));
  TESSERA_RETURN_IF_ERROR(CheckRange("gpus.decode", rules.gpus.decode, 0, kMaxGpusPerEngine));
  TESSERA_RETURN_IF_ERROR(CheckCounts("minimum", rules.minimum));
  if (rules.max_gpus != kUnlimited) {
    TESSERA_RETURN_IF_ERROR(CheckRange("max_gpus", rules.max_gpus, 0, kMaxGpus));
  }
  TESSERA_RETURN_IF_ERROR(CheckRange("min_gpus", rules.min_gpus, 0, kMaxGpus));
  TESSERA_RETURN_IF_ERROR(CheckRange("max_step", rules.max_step, 1, kMaxReplicas));
  TESSERA_RETURN_IF_ERROR(CheckRange("down_delay", rules.down_delay, 0, kMaxTotal));
  TESSERA_RETURN_IF_ERROR(CheckRange("pending_timeout", rules.pending_timeout, 0, kMaxTotal));
  TESSERA_RETURN_IF_ERROR(CheckRange("now", status.now, -kMaxTotal, kMaxTotal));
  TESSERA_RETURN_IF_ERROR(CheckCounts("expected", status.expected));
  TESSERA_RETURN_IF_ERROR(CheckCounts("ready", status.ready));
  if (status.required.counts) {
    TESSERA_RETURN_IF_ERROR(CheckCounts("required", *status.required.counts));
  }
  if (rules.mode == ServiceMode::kAggregated &&
      (status.expected.prefill > 0 || status.ready.prefill > 0)) {
    return InvalidAt("expected.prefill", "an aggregated service has no prefill engines");
  }
  return absl::OkStatus();
}

// One decision. A count passes through the rules in order; each that applies leaves a note.
class Planner {
 public:
  Planner(const ReplicaRules& rules, const ReplicaStatus& status, const ReplicaMemory& memory)
      : rules_(rules), status_(status), gpus_(rules.gpus) {
    plan_.memory = memory;
    plan_.needed = plan_.granted = status.expected;
    base_ = status.expected;
    if (rules.mode == ServiceMode::kDisaggregated) {
      roles_.push_back(EngineRole::kPrefill);
    } else {
      gpus_.prefill = 1;  // of no engine
    }
    roles_.push_back(EngineRole::kDecode);
  }

  ReplicaPlan Plan() && {
    for (EngineRole role : roles_) {
      if (OfRole(gpus_, role) == 0) Note(role, ReplicaReason::kUnknownGpus, 0, 0);
    }
    if (!plan_.notes.empty()) {
      plan_.outcome = ReplicaOutcome::kHeld;
      return std::move(plan_);
    }
    ReplicaCounts proposed;
    for (EngineRole role : roles_) {
      const int64_t needed = Need(role);
      OfRole(plan_.needed, role) = needed;
      OfRole(proposed, role) = Pace(role, needed);
    }
    const bool feasible = Grant(proposed);
    if (feasible) ReachFloor();
    const ReplicaCounts held{std::max(status_.expected.prefill, status_.ready.prefill),
                             std::max(status_.expected.decode, status_.ready.decode)};
    plan_.transition = PlanTransition(gpus_, held, plan_.granted);
    plan_.gpus_before = GpusOf(gpus_, held);
    plan_.gpus_after = GpusOf(gpus_, plan_.granted);
    plan_.outcome = OutcomeOf(feasible);
    return std::move(plan_);
  }

 private:
  int64_t Note(std::optional<EngineRole> role, ReplicaReason reason, int64_t from, int64_t to) {
    plan_.notes.push_back({role, reason, from, to});
    return to;
  }
  int64_t NoteIfChanged(EngineRole role, ReplicaReason reason, int64_t from, int64_t to) {
    return from == to ? to : Note(role, reason, from, to);
  }

  ReplicaOutcome OutcomeOf(bool feasible) const {
    if (!feasible) return ReplicaOutcome::kInfeasible;
    if (is_blind_ && plan_.granted == status_.expected) return ReplicaOutcome::kHeld;
    return plan_.granted == plan_.needed ? ReplicaOutcome::kGranted : ReplicaOutcome::kLimited;
  }

  int64_t expected(EngineRole role) const { return OfRole(status_.expected, role); }
  int64_t minimum(EngineRole role) const { return OfRole(rules_.minimum, role); }

  // --- What is needed -------------------------------------------------------

  int64_t Need(EngineRole role) {
    const int64_t count = React(role, RequiredOf(role));
    if (count < minimum(role)) return Note(role, ReplicaReason::kMinimum, count, minimum(role));
    return std::min(count, kMaxReplicas);
  }

  // Whether load and model say anything.
  bool is_known() const { return status_.required.counts.has_value(); }

  // What they say, or 0.
  int64_t RequiredOf(EngineRole role) {
    const RequiredReplicas& required = status_.required;
    const int64_t now = expected(role);
    RequirementReason reason = OfRole(required, role);
    if (!is_known()) {
      // One role of which nothing is known holds both.
      const EngineRole other =
          role == EngineRole::kPrefill ? EngineRole::kDecode : EngineRole::kPrefill;
      if (reason == RequirementReason::kOk) reason = OfRole(required, other);
      if (reason == RequirementReason::kOk) reason = RequirementReason::kMissingMetrics;
      Note(role, ReasonOf(reason), now, now);
      return 0;
    }
    return Note(role, ReasonOf(reason), now, OfRole(*required.counts, role));
  }

  // What required engines and the reaction of those that run ask for together.
  int64_t React(EngineRole role, int64_t required) {
    const int64_t now = expected(role);
    Reaction reaction = OfRole(status_.reactions, role);
    if (reaction == Reaction::kNone) {
      is_blind_ = is_blind_ || !is_known();
      return is_known() ? required : now;
    }
    const bool settled = OfRole(status_.ready, role) == now;
    if (!settled) reaction = Reaction::kStay;
    const int64_t from = is_known() ? required : now;
    switch (reaction) {
      case Reaction::kUp:
        return Note(role, ReplicaReason::kReactionUp, from, std::max(required, now + 1));
      case Reaction::kDown:
        return Note(role, ReplicaReason::kReactionDown, from, std::max(required, now - 1));
      default:
        return Note(role, ReplicaReason::kReactionStay, from, std::max(required, now));
    }
  }

  // --- How fast -------------------------------------------------------------

  int64_t Pace(EngineRole role, int64_t needed) {
    int64_t count = AwaitStart(role, needed);
    const int64_t base = OfRole(base_, role);
    count = DelayFall(role, count, base);
    const int64_t step = std::clamp(count, base - rules_.max_step, base + rules_.max_step);
    count = NoteIfChanged(role, ReplicaReason::kStepLimit, count, step);
    return std::max(count, minimum(role));
  }

  // A role of which engines do not start does not grow.
  int64_t AwaitStart(EngineRole role, int64_t needed) {
    RoleMemory& memory = OfRole(plan_.memory, role);
    const int64_t now = expected(role), ready = OfRole(status_.ready, role);
    if (memory.retry_after && status_.now >= *memory.retry_after) memory.retry_after.reset();
    if (ready >= now) {
      memory.pending_since.reset();
    } else if (!memory.pending_since || ready > memory.pending_ready) {
      memory.pending_since = status_.now;
      memory.pending_ready = ready;
    }
    if (memory.pending_since && status_.now - *memory.pending_since >= rules_.pending_timeout) {
      memory.pending_since.reset();
      memory.retry_after = status_.now + rules_.pending_timeout;
      OfRole(base_, role) = ready;
      const int64_t kept = std::max(std::min(needed, ready), minimum(role));
      return Note(role, ReplicaReason::kScaleUpGivenUp, needed, kept);
    }
    const int64_t most = std::max(now, minimum(role));
    OfRole(may_grow_, role) = !memory.pending_since && !memory.retry_after;
    if (needed <= most || OfRole(may_grow_, role)) return needed;
    return Note(
        role, memory.pending_since ? ReplicaReason::kScaleUpInProgress : ReplicaReason::kRetryLater,
        needed, most);
  }

  // A role falls to the most that was needed while fewer than now sufficed.
  int64_t DelayFall(EngineRole role, int64_t count, int64_t base) {
    RoleMemory& memory = OfRole(plan_.memory, role);
    if (count >= base) {
      memory.low_since.reset();
      return count;
    }
    memory.low_peak = memory.low_since ? std::max(memory.low_peak, count) : count;
    if (!memory.low_since) memory.low_since = status_.now;
    if (status_.now - *memory.low_since < rules_.down_delay) {
      return Note(role, ReplicaReason::kDownDelay, count, base);
    }
    memory.low_since.reset();
    return NoteIfChanged(role, ReplicaReason::kDownDelay, count,
                         std::clamp(memory.low_peak, count, base));
  }

  // --- What is granted ------------------------------------------------------

  // Whether the ceiling pays for the minimums.
  bool Grant(const ReplicaCounts& proposed) {
    EngineClaims claims{gpus_, {}, proposed};
    ReplicaCounts minimums;
    for (EngineRole role : roles_) {
      OfRole(minimums, role) = minimum(role);
      const int64_t kept = std::min(OfRole(base_, role), OfRole(proposed, role));
      OfRole(claims.least, role) = std::max(kept, minimum(role));
    }
    std::optional<ReplicaCounts> granted = FitToCeiling(claims, rules_.max_gpus);
    if (!granted) {
      claims.least = minimums;
      granted = FitToCeiling(claims, rules_.max_gpus);
    }
    plan_.granted = granted.value_or(minimums);
    for (EngineRole role : roles_) {
      int64_t& count = OfRole(plan_.granted, role);
      if (!granted) count = std::min(count, expected(role));
      NoteIfChanged(role, ReplicaReason::kCeiling, OfRole(proposed, role), count);
    }
    if (granted) return true;
    Note(std::nullopt, ReplicaReason::kInfeasibleBudget, GpusOf(gpus_, minimums), rules_.max_gpus);
    return false;
  }

  void ReachFloor() {
    if (GpusOf(gpus_, plan_.granted) >= rules_.min_gpus) return;
    const ReplicaCounts before = plan_.granted;
    EngineClaims claims{gpus_, base_, before};
    for (EngineRole role : roles_) {
      const int64_t most = std::min(OfRole(base_, role) + rules_.max_step, kMaxReplicas);
      if (OfRole(may_grow_, role))
        OfRole(claims.wanted, role) = std::max(OfRole(before, role), most);
    }
    plan_.granted = RaiseToFloor(claims, rules_.min_gpus, rules_.max_gpus, before);
    for (EngineRole role : roles_) {
      NoteIfChanged(role, ReplicaReason::kFloor, OfRole(before, role), OfRole(plan_.granted, role));
    }
    const int64_t gpus = GpusOf(gpus_, plan_.granted);
    if (gpus < rules_.min_gpus) {
      Note(std::nullopt, ReplicaReason::kFloorNotReached, rules_.min_gpus, gpus);
    }
  }

  struct RoleFlags {
    bool prefill = false;
    bool decode = false;
  };

  const ReplicaRules& rules_;
  const ReplicaStatus& status_;
  EngineGpus gpus_;
  std::vector<EngineRole> roles_;
  ReplicaCounts base_;  // what steps start from: expected, less what was given up
  RoleFlags may_grow_;
  bool is_blind_ = false;  // nobody says what some role needs
  ReplicaPlan plan_;
};

}  // namespace

std::string_view ToString(ReplicaReason reason) {
  return kReasons[static_cast<size_t>(reason)].name;
}

std::string_view ToString(ReplicaOutcome outcome) {
  return kOutcomes[static_cast<size_t>(outcome)];
}

std::string Describe(const ReplicaNote& note) {
  const std::string_view text = kReasons[static_cast<size_t>(note.reason)].text;
  if (note.role) {
    return absl::StrCat(ToAbsl(ToString(*note.role)), " ", note.from, " -> ", note.to, ": ",
                        ToAbsl(text));
  }
  return absl::StrCat(ToAbsl(text), " (", note.from, " GPUs against ", note.to, ")");
}

absl::StatusOr<ReplicaPlan> PlanReplicas(const ReplicaRules& rules, const ReplicaStatus& status,
                                         const ReplicaMemory& memory) {
  TESSERA_RETURN_IF_ERROR(Validate(rules, status, memory));
  return Planner(rules, status, memory).Plan();
}

}  // namespace tessera
