#include "tests/scenarios/scenario.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/cluster/plan.h"
#include "tessera/io/snapshot_json.h"
#include "tessera/schedule/room_step.h"
#include "tessera/schedule/schedule.h"
#include "tessera/verify/check_plan.h"
#include "tessera/verify/check_victims.h"

namespace tessera {
namespace {

constexpr std::string_view kAllocate = "allocate";

// The step of that name, if it is one in which others yield.
std::optional<RoomStep> RoomStepOf(std::string_view name) {
  if (name == "consolidation") return RoomStep::kConsolidate;
  if (name == "reclaim") return RoomStep::kReclaim;
  if (name == "preempt") return RoomStep::kPreempt;
  return std::nullopt;
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

void Compare(const Scenario& scenario, const PodStates& states, ScenarioResult& result) {
  for (const Expectation& expected : scenario.expected) {
    const std::optional<WorkloadId> w = scenario.snapshot.FindWorkload(expected.workload);
    if (!w) {
      result.misses.push_back(expected.workload + ": is not in the snapshot");
      continue;
    }
    const std::map<std::string, int> got = states.CountOf(*w);
    if (Meets(expected, got)) continue;
    result.misses.push_back(absl::StrCat(expected.workload, ": expected ",
                                         expected.at_least ? "at least " : "", Join(expected.pods),
                                         "; got ", Join(got)));
  }
  if (states.evictions() > scenario.max_evictions) {
    result.misses.push_back(absl::StrCat("expected at most ", scenario.max_evictions,
                                         " evictions; got ", states.evictions()));
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
    const nlohmann::json& run = file.at("run");
    return Scenario{file.at("name"),
                    file.at("preset") == "kai",
                    run.at("mode"),
                    run.value("steps", std::vector<std::string>()),
                    run.value("max_evictions", 0),
                    std::move(snapshot),
                    ReadExpected(file.at("expect").at("workloads"))};
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

namespace {

// A plan, and what the referees hold against it.
struct Judged {
  Plan plan;
  std::vector<PlanViolation> violations;
};

// A step in which others yield. Alone it lists nobody as pending, which is not held against it.
Judged RunStep(const Scenario& scenario, RoomStep step, const CheckPlanOptions& options) {
  const RoomRules rules = scenario.kai ? KaiRoomRules() : RoomRules();
  RoomStepResult result =
      scenario.kai ? RunRoomStep(scenario.snapshot, step, KaiCompatible(), rules, KaiVictimOrder())
                   : RunRoomStep(scenario.snapshot, step, Strict(), rules);
  Judged judged{std::move(result.plan), {}};
  judged.violations = CheckPlan(scenario.snapshot, judged.plan, options);
  std::erase_if(judged.violations,
                [](const PlanViolation& v) { return v.text.starts_with("pending workload "); });
  for (PlanViolation& v : CheckVictims(scenario.snapshot, judged.plan, result.shares, rules.victims,
                                       {.honour_nominations = options.honour_nominations})) {
    judged.violations.push_back(std::move(v));
  }
  return judged;
}

Judged RunAllocation(const Scenario& scenario, const CheckPlanOptions& options) {
  Plan plan = scenario.kai ? Schedule(scenario.snapshot, KaiCompatible()).plan
                           : Schedule(scenario.snapshot).plan;
  std::vector<PlanViolation> violations = CheckPlan(scenario.snapshot, plan, options);
  return {std::move(plan), std::move(violations)};
}

}  // namespace

ScenarioResult RunScenario(const Scenario& scenario) {
  ScenarioResult result;
  if (scenario.mode != "pass") {
    result.skipped = absl::StrCat("mode ", scenario.mode);
    return result;
  }
  for (const std::string& step : scenario.steps) {
    const bool known = step == kAllocate || RoomStepOf(step);
    if (!known || scenario.steps.size() > 1) result.skipped = absl::StrCat("step ", step);
  }
  if (!result.skipped.empty()) return result;
  CheckPlanOptions options;
  if (scenario.kai) {
    options.mig_charge = MigCharge::kWholeG;
    options.honour_nominations = false;
  }
  const std::optional<RoomStep> step = RoomStepOf(scenario.steps.front());
  const Judged judged = step ? RunStep(scenario, *step, options) : RunAllocation(scenario, options);
  for (const PlanViolation& violation : judged.violations) {
    result.misses.push_back("referee: " + violation.text);
  }
  Compare(scenario, PodStates(scenario.snapshot, judged.plan), result);
  return result;
}

}  // namespace tessera
