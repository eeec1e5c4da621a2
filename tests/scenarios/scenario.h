#ifndef TESSERA_TESTS_SCENARIOS_SCENARIO_H_
#define TESSERA_TESTS_SCENARIOS_SCENARIO_H_

// One file of the format `tessera.scenario/v1`: a small cluster, and what a
// scheduler must do with it. `data/README.md` describes the format.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/schedule/schedule.h"

namespace tessera {

// What must come of a workload.
struct Expectation {
  std::string workload;
  // How many of its pods end in each state ("bound", "pending", ...); empty: not checked.
  std::map<std::string, int> pods;
  bool at_least = false;                         // other pods of the workload are not checked
  std::map<std::string, std::string> nodes;      // by pod ("job/0"), once the plan has settled
  std::optional<std::vector<std::string>> lost;  // pods that are evicted or moved, exactly these
  std::string pending;  // the reason why it is not complete, or "none"; empty: not checked
};

// What happens between two cycles: workloads end, others arrive.
struct ScenarioChange {
  int after = 0;  // the cycle, from 1
  std::vector<std::string> end;
  std::vector<Workload> add;
};

enum class ScenarioMode {
  kPass,     // one cycle, of which the plan is compared
  kCycles,   // cycles with a host that keeps no nominations
  kSettled,  // cycles with a host that carries out all of each plan
};

struct ScenarioRun {
  ScenarioMode mode = ScenarioMode::kPass;
  std::vector<CycleStep> steps;  // none: those of the preset
  // kCycles: cycles until the expected state is reached, and how many more it must hold.
  // kSettled: the cycle of which the plan is compared, and how many more must do nothing.
  int settle = 0;
  int hold = 0;
  int64_t tick = 0;  // kSettled: seconds from one cycle to the next
  std::vector<ScenarioChange> changes;
  int64_t stale_grace = 60;
  int max_evictions = 0;  // in each cycle, moves included
};

struct Scenario {
  std::string name;
  bool kai = false;  // preset `kai` rather than `strict`
  ScenarioRun run;
  Snapshot snapshot;
  std::vector<Expectation> expected;
};

// Reads a scenario. kInvalidArgument: not JSON, a missing, mistyped or unknown field, a
// snapshot that is rejected, a change after the last cycle that is compared.
absl::StatusOr<Scenario> ParseScenario(std::string_view json);

// What came of a scenario: it passed if it missed nothing.
struct ScenarioResult {
  std::vector<std::string> misses;  // "job0: expected 2 bound, got 1"
};

ScenarioResult RunScenario(const Scenario& scenario);

}  // namespace tessera

#endif  // TESSERA_TESTS_SCENARIOS_SCENARIO_H_
