#include "tests/scenarios/scenario.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/cluster/plan.h"
#include "tessera/io/snapshot_json.h"
#include "tessera/schedule/schedule.h"
#include "tessera/verify/check_plan.h"
#include "tessera/verify/check_victims.h"

namespace tessera {
namespace {

absl::StatusOr<CycleStep> StepOf(std::string_view name) {
  if (name == "allocate") return CycleStep::kAllocate;
  if (name == "consolidation") return CycleStep::kConsolidate;
  if (name == "reclaim") return CycleStep::kReclaim;
  if (name == "preempt") return CycleStep::kPreempt;
  if (name == "stalegangeviction") return CycleStep::kEndStale;
  return absl::InvalidArgumentError(absl::StrCat("no step is named ", ToAbsl(name)));
}

constexpr std::string_view kNeverWord = "never";

absl::StatusOr<ScenarioRun> ReadRun(const nlohmann::json& run) {
  ScenarioRun out;
  const std::string mode = run.at("mode");
  if (mode != "pass" && mode != "cycles") {
    return absl::InvalidArgumentError(absl::StrCat("no mode is named ", mode));
  }
  if (mode == "cycles") {
    out.settle = run.at("settle");
    out.hold = run.value("hold", 0);
  }
  for (const std::string& name : run.value("steps", std::vector<std::string>())) {
    TESSERA_ASSIGN_OR_RETURN(const CycleStep step, StepOf(name));
    out.steps.push_back(step);
  }
  if (mode == "pass" && out.steps.empty()) {
    return absl::InvalidArgumentError("mode pass needs steps");
  }
  if (const auto grace = run.find("stale_grace"); grace != run.end()) {
    out.stale_grace = *grace == kNeverWord ? kUnlimited : grace->get<int64_t>();
  }
  out.max_evictions = run.value("max_evictions", 0);
  return out;
}

std::vector<Expectation> ReadExpected(const nlohmann::json& workloads) {
  std::vector<Expectation> expected;
  for (const auto& [name, body] : workloads.items()) {
    Expectation& one = expected.emplace_back();
    one.workload = name;
    one.at_least = body.value("at_least", false);
    for (const auto& [state, count] : body.at("pods").items()) one.pods[state] = count;
  }
  return expected;
}

std::string StateBefore(PodPhase phase) {
  switch (phase) {
    case PodPhase::kRunning:
      return "running";
    case PodPhase::kReleasing:
      return "releasing";
    case PodPhase::kSucceeded:
      return "succeeded";
    case PodPhase::kFailed:
      return "failed";
    case PodPhase::kPending:
    case PodPhase::kNominated:
      return "pending";
  }
  return "pending";
}

// The state of every pod after one pass, by what the plan does to it.
class PodStates {
 public:
  PodStates(const Snapshot& snapshot, const Plan& plan) : snapshot_(snapshot) {
    for (int p = 0; p < snapshot.num_pods(); ++p) {
      states_.push_back(StateBefore(snapshot.pod_phase(PodId(p))));
    }
    for (const Action& action : plan.actions) std::visit(*this, action);
  }

  void operator()(const BindAction& action) { Set(action.pod, "bound"); }
  void operator()(const NominateAction& action) { Set(action.pod, "nominated"); }
  void operator()(const MoveAction& action) {
    ++evictions_;
    Set(action.pod, "moved");
  }
  void operator()(const EvictAction& action) {
    ++evictions_;
    Set(action.pod, "evicted");
  }
  void operator()(const DestroyAction&) {}
  void operator()(const SetMigAction&) {}
  void operator()(const CreateAction&) {}

  int evictions() const { return evictions_; }

  std::map<std::string, int> CountOf(WorkloadId w) const {
    std::map<std::string, int> counts;
    const WorkloadInfo& info = snapshot_.info(w);
    for (int p = info.first_pod; p < info.first_pod + info.num_pods; ++p) {
      ++counts[states_[static_cast<size_t>(p)]];
    }
    return counts;
  }

 private:
  void Set(const PodRef& ref, std::string_view state) {
    const std::optional<PodId> p = snapshot_.FindPod(ref);
    if (p) states_[static_cast<size_t>(p->value())] = std::string(state);
  }

  const Snapshot& snapshot_;
  std::vector<std::string> states_;
  int evictions_ = 0;
};

std::string Join(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [state, count] : counts) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", count, " ", state);
  }
  return text.empty() ? "no pods" : text;
}

bool Meets(const Expectation& expected, const std::map<std::string, int>& got) {
  if (!expected.at_least) return expected.pods == got;
  return std::ranges::all_of(expected.pods, [&got](const auto& entry) {
    const auto it = got.find(entry.first);
    return it != got.end() && it->second >= entry.second;
  });
}

void Compare(const Scenario& scenario, std::string_view when, ScenarioResult& result,
             absl::FunctionRef<std::map<std::string, int>(WorkloadId)> count) {
  for (const Expectation& expected : scenario.expected) {
    const std::optional<WorkloadId> w = scenario.snapshot.FindWorkload(expected.workload);
    if (!w) {
      result.misses.push_back(expected.workload + ": is not in the snapshot");
      continue;
    }
    const std::map<std::string, int> got = count(*w);
    if (Meets(expected, got)) continue;
    result.misses.push_back(absl::StrCat(ToAbsl(when), expected.workload, ": expected ",
                                         expected.at_least ? "at least " : "", Join(expected.pods),
                                         "; got ", Join(got)));
  }
}

// One cycle and what the referees hold against it.
struct Judged {
  CycleResult cycle;
  std::vector<PlanViolation> violations;
};

template <typename Policy>
Judged RunCycleOf(const Snapshot& snapshot, const ScenarioRun& run, Policy policy) {
  if (!run.steps.empty()) policy.rules.steps = run.steps;
  policy.rules.room.victims.stale_grace = run.stale_grace;
  VictimRules victims = policy.rules.room.victims;
  victims.mig_charge = policy.rules.usage.mig_charge;
  Judged judged{Schedule(snapshot, policy), {}};
  judged.violations = CheckPlan(snapshot, judged.cycle.plan,
                                {.mig_charge = policy.rules.usage.mig_charge,
                                 .honour_nominations = policy.rules.usage.honour_nominations});
  for (PlanViolation& v :
       CheckVictims(snapshot, judged.cycle.plan, judged.cycle.shares, victims,
                    {.honour_nominations = policy.rules.usage.honour_nominations})) {
    judged.violations.push_back(std::move(v));
  }
  return judged;
}

// Runs one cycle, and notes what the referees say and evictions beyond what is allowed.
PodStates RunOne(const Scenario& scenario, const Snapshot& snapshot, std::string_view when,
                 Plan& plan, ScenarioResult& result) {
  Judged judged = scenario.kai ? RunCycleOf(snapshot, scenario.run, KaiCompatible())
                               : RunCycleOf(snapshot, scenario.run, Strict());
  for (const PlanViolation& violation : judged.violations) {
    result.misses.push_back(absl::StrCat(ToAbsl(when), "referee: ", violation.text));
  }
  PodStates states(snapshot, judged.cycle.plan);
  if (states.evictions() > scenario.run.max_evictions) {
    result.misses.push_back(absl::StrCat(ToAbsl(when), "expected at most ",
                                         scenario.run.max_evictions, " evictions; got ",
                                         states.evictions()));
  }
  plan = std::move(judged.cycle.plan);
  return states;
}

// As a host does between cycles here: what is bound runs, nobody is still leaving, and what is
// nominated is pending again, without a reservation.
absl::StatusOr<Snapshot> Advance(const Snapshot& snapshot, const Plan& plan) {
  TESSERA_ASSIGN_OR_RETURN(const Snapshot applied, Apply(snapshot, plan));
  SnapshotSpec spec = applied.spec();
  for (Workload& workload : spec.workloads) {
    std::erase_if(workload.pods, [](const Pod& pod) {
      return pod.phase == PodPhase::kReleasing || pod.phase == PodPhase::kNominated;
    });
  }
  return Snapshot::Create(std::move(spec));
}

// The state between cycles: bound pods run, all that have none are pending.
std::map<std::string, int> BetweenCycles(std::map<std::string, int> counts) {
  for (const auto& [from, to] : {std::pair("bound", "running"), std::pair("nominated", "pending"),
                                 std::pair("evicted", "pending"), std::pair("moved", "pending"),
                                 std::pair("releasing", "pending")}) {
    if (const auto node = counts.extract(from); !node.empty()) counts[to] += node.mapped();
  }
  return counts;
}

void RunCycles(const Scenario& scenario, ScenarioResult& result) {
  Snapshot snapshot = scenario.snapshot;
  for (int i = 1; i <= scenario.run.settle + scenario.run.hold; ++i) {
    const std::string when = absl::StrCat("cycle ", i, ": ");
    Plan plan;
    const PodStates states = RunOne(scenario, snapshot, when, plan, result);
    const bool holds = i > scenario.run.settle;
    if (i >= scenario.run.settle) {
      // While it holds, a pod is where the plan puts it: evicted is a miss, nominated, too.
      Compare(scenario, when, result, [&](WorkloadId w) {
        return holds ? states.CountOf(w) : BetweenCycles(states.CountOf(w));
      });
    }
    absl::StatusOr<Snapshot> next = Advance(snapshot, plan);
    if (!next.ok()) {
      result.misses.push_back(absl::StrCat(when, next.status().ToString()));
      return;
    }
    snapshot = *std::move(next);
  }
}

}  // namespace

absl::StatusOr<Scenario> ParseScenario(std::string_view json) {
  try {
    const nlohmann::json file = nlohmann::json::parse(json);
    if (file.at("apiVersion") != "tessera.scenario/v1") {
      return InvalidAt("apiVersion", "must be \"tessera.scenario/v1\"");
    }
    TESSERA_ASSIGN_OR_RETURN(Snapshot snapshot, ParseSnapshot(file.at("snapshot").dump()));
    TESSERA_ASSIGN_OR_RETURN(ScenarioRun run, ReadRun(file.at("run")));
    return Scenario{file.at("name"), file.at("preset") == "kai", std::move(run),
                    std::move(snapshot), ReadExpected(file.at("expect").at("workloads"))};
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

ScenarioResult RunScenario(const Scenario& scenario) {
  ScenarioResult result;
  if (scenario.run.settle > 0) {
    RunCycles(scenario, result);
    return result;
  }
  Plan plan;
  const PodStates states = RunOne(scenario, scenario.snapshot, "", plan, result);
  Compare(scenario, "", result, [&](WorkloadId w) { return states.CountOf(w); });
  return result;
}

}  // namespace tessera
