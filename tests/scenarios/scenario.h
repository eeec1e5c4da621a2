#ifndef TESSERA_TESTS_SCENARIOS_SCENARIO_H_
#define TESSERA_TESTS_SCENARIOS_SCENARIO_H_

// One file of the format `tessera.scenario/v1`: a small cluster, and what a
// scheduler must do with it.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/schedule/schedule.h"

namespace tessera {

// How many pods of a workload must end in each state ("bound", "pending", ...).
struct Expectation {
  std::string workload;
  std::map<std::string, int> pods;
  bool at_least = false;  // other pods of the workload are not checked
};

struct ScenarioRun {
  std::vector<CycleStep> steps;  // none: those of the preset
  // Cycles until the expected state is reached, and how many more it must hold; no `settle`: one
  // pass over the steps, of which the plan is compared.
  int settle = 0;
  int hold = 0;
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

// Reads a scenario. kInvalidArgument: not JSON, a missing or mistyped field, a
// snapshot that is rejected.
absl::StatusOr<Scenario> ParseScenario(std::string_view json);

// What came of a scenario: it passed if it missed nothing.
struct ScenarioResult {
  std::vector<std::string> misses;  // "job0: expected 2 bound, got 1"
};

ScenarioResult RunScenario(const Scenario& scenario);

}  // namespace tessera

#endif  // TESSERA_TESTS_SCENARIOS_SCENARIO_H_
