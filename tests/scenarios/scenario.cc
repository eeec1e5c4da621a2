#include "tests/scenarios/scenario.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tessera/base/status.h"
#include "tessera/cluster/plan.h"
#include "tessera/io/plan_json.h"
#include "tessera/io/snapshot_json.h"
#include "tessera/schedule/schedule.h"
#include "tessera/verify/check_plan.h"
#include "tessera/verify/check_victims.h"

namespace tessera {
namespace {

absl::StatusOr<CycleStep> StepOf(std::string_view name) {
  if (name == "allocate") return CycleStep::kAllocate;
  if (name == "makeroom") return CycleStep::kMakeRoom;
  if (name == "consolidation") return CycleStep::kConsolidate;
  if (name == "reclaim") return CycleStep::kReclaim;
  if (name == "preempt") return CycleStep::kPreempt;
  if (name == "stalegangeviction") return CycleStep::kEndStale;
  return absl::InvalidArgumentError(absl::StrCat("no step is named ", ToAbsl(name)));
}

constexpr std::string_view kNeverWord = "never";

absl::Status CheckFields(const nlohmann::json& object, const std::vector<std::string>& known) {
  for (const auto& [name, body] : object.items()) {
    if (std::ranges::find(known, name) == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat("unknown field \"", name, "\""));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ScenarioMode> ModeOf(const std::string& name) {
  if (name == "pass") return ScenarioMode::kPass;
  if (name == "cycles") return ScenarioMode::kCycles;
  if (name == "settled") return ScenarioMode::kSettled;
  return absl::InvalidArgumentError(absl::StrCat("no mode is named ", name));
}

// `snapshot`: the one that the change belongs to, for its queues and nodes.
absl::StatusOr<ScenarioChange> ReadChange(const nlohmann::json& change, nlohmann::json snapshot) {
  TESSERA_RETURN_IF_ERROR(CheckFields(change, {"after", "end", "add"}));
  snapshot["workloads"] = change.value("add", nlohmann::json::array());
  TESSERA_ASSIGN_OR_RETURN(const Snapshot added, ParseSnapshot(snapshot.dump()));
  return ScenarioChange{change.at("after"), change.value("end", std::vector<std::string>()),
                        added.spec().workloads};
}

absl::StatusOr<ScenarioRun> ReadRun(const nlohmann::json& run, const nlohmann::json& snapshot) {
  TESSERA_RETURN_IF_ERROR(CheckFields(
      run, {"mode", "steps", "settle", "hold", "tick", "between", "stale_grace", "max_evictions"}));
  ScenarioRun out;
  TESSERA_ASSIGN_OR_RETURN(out.mode, ModeOf(run.at("mode")));
  if (out.mode != ScenarioMode::kPass) {
    const bool settled = out.mode == ScenarioMode::kSettled;
    out.settle = settled ? run.value("settle", 1) : run.at("settle").get<int>();
    out.hold = run.value("hold", settled ? 1 : 0);
    out.tick = settled ? run.value("tick", int64_t{60}) : 0;
  }
  for (const std::string& name : run.value("steps", std::vector<std::string>())) {
    TESSERA_ASSIGN_OR_RETURN(const CycleStep step, StepOf(name));
    out.steps.push_back(step);
  }
  if (out.mode == ScenarioMode::kPass && out.steps.empty()) {
    return absl::InvalidArgumentError("mode pass needs steps");
  }
  for (const nlohmann::json& change : run.value("between", nlohmann::json::array())) {
    TESSERA_ASSIGN_OR_RETURN(ScenarioChange read, ReadChange(change, snapshot));
    if (out.mode != ScenarioMode::kSettled || read.after < 1 || read.after >= out.settle) {
      return absl::InvalidArgumentError("a change needs mode settled, and a cycle to come");
    }
    out.changes.push_back(std::move(read));
  }
  if (const auto grace = run.find("stale_grace"); grace != run.end()) {
    out.stale_grace = *grace == kNeverWord ? kUnlimited : grace->get<int64_t>();
  }
  out.max_evictions = run.value("max_evictions", 0);
  return out;
}

absl::StatusOr<std::vector<Expectation>> ReadExpected(const nlohmann::json& workloads) {
  std::vector<Expectation> expected;
  for (const auto& [name, body] : workloads.items()) {
    TESSERA_RETURN_IF_ERROR(CheckFields(body, {"pods", "at_least", "nodes", "lost", "pending"}));
    Expectation& one = expected.emplace_back();
    one.workload = name;
    one.pods = body.value("pods", std::map<std::string, int>());
    one.at_least = body.value("at_least", false);
    one.nodes = body.value("nodes", std::map<std::string, std::string>());
    if (body.contains("lost")) one.lost = body.at("lost").get<std::vector<std::string>>();
    one.pending = body.value("pending", "");
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

void Compare(const Scenario& scenario, const Snapshot& snapshot, std::string_view when,
             ScenarioResult& result,
             absl::FunctionRef<std::map<std::string, int>(WorkloadId)> count) {
  for (const Expectation& expected : scenario.expected) {
    const std::optional<WorkloadId> w = snapshot.FindWorkload(expected.workload);
    if (!w) {
      result.misses.push_back(expected.workload + ": is not in the snapshot");
      continue;
    }
    if (expected.pods.empty()) continue;
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
      Compare(scenario, snapshot, when, result, [&](WorkloadId w) {
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

std::string NameOf(const PodRef& pod) { return absl::StrCat(pod.pod_set, "/", pod.index); }

std::vector<std::string> LostBy(const Plan& plan, const std::string& workload) {
  std::vector<std::string> lost;
  for (const Action& action : plan.actions) {
    const PodRef* pod = nullptr;
    if (const auto* evict = std::get_if<EvictAction>(&action)) pod = &evict->pod;
    if (const auto* move = std::get_if<MoveAction>(&action)) pod = &move->pod;
    if (pod != nullptr && pod->workload == workload) lost.push_back(NameOf(*pod));
  }
  std::ranges::sort(lost);
  return lost;
}

std::string NodeOf(const Snapshot& snapshot, const std::string& workload, std::string_view pod) {
  for (const Pod& one : snapshot.workload(*snapshot.FindWorkload(workload)).pods) {
    if (NameOf({workload, one.pod_set, one.index}) == pod) return one.node;
  }
  return "";
}

// Whose pods left, where pods are, and why who waits: what counts do not tell.
void CompareDetails(const Scenario& scenario, const Plan& plan, const Snapshot& after,
                    ScenarioResult& result) {
  for (const Expectation& expected : scenario.expected) {
    if (!after.FindWorkload(expected.workload)) continue;
    const auto miss = [&](std::string_view what, std::string_view wanted, std::string_view got) {
      if (wanted == got) return;
      result.misses.push_back(absl::StrCat(expected.workload, ": ", ToAbsl(what), ": expected \"",
                                           ToAbsl(wanted), "\"; got \"", ToAbsl(got), "\""));
    };
    if (expected.lost) {
      miss("lost", absl::StrJoin(*expected.lost, " "),
           absl::StrJoin(LostBy(plan, expected.workload), " "));
    }
    for (const auto& [pod, node] : expected.nodes) {
      miss(pod, node, NodeOf(after, expected.workload, pod));
    }
    if (expected.pending.empty()) continue;
    const auto waits =
        std::ranges::find(plan.pending, expected.workload, &PendingWorkload::workload);
    miss("pending", expected.pending,
         waits == plan.pending.end() ? "none" : ToString(waits->reason));
  }
}

// As a host does that carries out all of a plan: who is evicted has left, who is nominated runs;
// then time passes, and workloads end and arrive.
absl::StatusOr<Snapshot> Settle(const Snapshot& snapshot, const Plan& plan, const ScenarioRun& run,
                                int cycle) {
  TESSERA_ASSIGN_OR_RETURN(const Snapshot settled, ApplyAndSettle(snapshot, plan));
  SnapshotSpec spec = settled.spec();
  spec.now += run.tick;
  for (const ScenarioChange& change : run.changes) {
    if (change.after != cycle) continue;
    std::erase_if(spec.workloads, [&](const Workload& workload) {
      return std::ranges::find(change.end, workload.name) != change.end.end();
    });
    spec.workloads.insert(spec.workloads.end(), change.add.begin(), change.add.end());
  }
  return Snapshot::Create(std::move(spec));
}

void RunSettled(const Scenario& scenario, ScenarioResult& result) {
  Snapshot snapshot = scenario.snapshot;
  for (int i = 1; i <= scenario.run.settle + scenario.run.hold; ++i) {
    const std::string when = absl::StrCat("cycle ", i, ": ");
    Plan plan;
    const PodStates states = RunOne(scenario, snapshot, when, plan, result);
    if (i > scenario.run.settle && !plan.actions.empty()) {
      result.misses.push_back(
          absl::StrCat(when, "expected no actions; got ", WritePlan({plan.actions, {}})));
    }
    absl::StatusOr<Snapshot> next = Settle(snapshot, plan, scenario.run, i);
    if (!next.ok()) {
      result.misses.push_back(absl::StrCat(when, next.status().ToString()));
      return;
    }
    if (i == scenario.run.settle) {
      Compare(scenario, snapshot, when, result, [&](WorkloadId w) { return states.CountOf(w); });
      CompareDetails(scenario, plan, *next, result);
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
    TESSERA_RETURN_IF_ERROR(
        CheckFields(file, {"apiVersion", "name", "about", "preset", "snapshot", "run", "expect"}));
    TESSERA_ASSIGN_OR_RETURN(Snapshot snapshot, ParseSnapshot(file.at("snapshot").dump()));
    TESSERA_ASSIGN_OR_RETURN(ScenarioRun run, ReadRun(file.at("run"), file.at("snapshot")));
    TESSERA_ASSIGN_OR_RETURN(std::vector<Expectation> expected,
                             ReadExpected(file.at("expect").at("workloads")));
    return Scenario{file.at("name"), file.at("preset") == "kai", std::move(run),
                    std::move(snapshot), std::move(expected)};
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

ScenarioResult RunScenario(const Scenario& scenario) {
  ScenarioResult result;
  if (scenario.run.mode == ScenarioMode::kCycles) return RunCycles(scenario, result), result;
  if (scenario.run.mode == ScenarioMode::kSettled) return RunSettled(scenario, result), result;
  Plan plan;
  const PodStates states = RunOne(scenario, scenario.snapshot, "", plan, result);
  Compare(scenario, scenario.snapshot, "", result, [&](WorkloadId w) { return states.CountOf(w); });
  const absl::StatusOr<Snapshot> after = ApplyAndSettle(scenario.snapshot, plan);
  if (after.ok()) {
    CompareDetails(scenario, plan, *after, result);
  } else {
    result.misses.push_back(after.status().ToString());
  }
  return result;
}

}  // namespace tessera
