#ifndef TESSERA_SCHEDULE_GPU_BUDGET_H_
#define TESSERA_SCHEDULE_GPU_BUDGET_H_

// Many services, one budget of GPUs.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/cluster/queue.h"
#include "tessera/replicas/engine_budget.h"
#include "tessera/share/fair_shares.h"

namespace tessera {

// Most GPUs that are divided, and that services hold together.
inline constexpr int64_t kMaxBudget = int64_t{1} << 32;

// What one service claims of a common budget: `engines.least` is its guaranteed minimum,
// `engines.wanted` what it would run on its own (`ReplicaPlan::granted`).
struct ServiceClaim {
  std::string name;
  int priority = 0;             // of what exceeds the minimums: higher first
  int64_t weight = kWeightOne;  // within a priority; fixed-point
  EngineClaims engines;
  ReplicaCounts held;  // engines that hold GPUs now, draining ones included

  friend bool operator==(const ServiceClaim&, const ServiceClaim&) = default;
};

enum class BudgetVerdict {
  kAll,               // all that is wanted
  kPart,              // the budget is short
  kMinimumDoesNotFit  // nothing: beside those served before it, not even the minimum fits
};

// "part".
std::string_view ToString(BudgetVerdict verdict);

struct ServiceGrant {
  BudgetVerdict verdict = BudgetVerdict::kAll;
  int64_t fair_share = 0;  // GPUs, before rounding to engines
  ReplicaCounts counts;
  int64_t gpus = 0;  // of `counts`

  friend bool operator==(const ServiceGrant&, const ServiceGrant&) = default;
};

// One step of the common transition. `service` is a position in the claims.
struct BudgetStep {
  int service = 0;
  EngineRole role = EngineRole::kPrefill;
  int64_t from = 0;  // engines
  int64_t to = 0;
  int64_t gpus_after = 0;  // held by all services once this step is done

  friend bool operator==(const BudgetStep&, const BudgetStep&) = default;
};

struct BudgetDivision {
  std::vector<ServiceGrant> grants;  // in the order of the claims
  std::vector<BudgetStep> steps;
  int64_t peak_gpus = 0;

  friend bool operator==(const BudgetDivision&, const BudgetDivision&) = default;
};

// Divides `budget` GPUs among services by the rule that divides a queue among its
// children: minimums are quotas; then, by priority, the surplus by weight, in whole GPUs
// by largest remainder, up to what is wanted. A service runs the engines that its share
// pays for (`FitToCeiling`). What this rounding leaves over goes on, by priority, to the
// services that can use it, each time for the next engines (`NextLarger`) of the service
// that has been paid the largest part of them; ties: by name.
//
// Minimums are whole or nothing, as a part of one serves nobody. Where they do not all fit,
// they are met by priority, then those of services that run theirs, then by name.
//
// The steps are one transaction: what shrinks comes first (by name, prefill before decode),
// then what grows (by priority, then name), each when the one before is done. So the GPUs
// held fall, then rise: never above the budget, nor above what is held to start with.
// No service that could use what is left goes without. Depends on names only for ties, and
// not on the order of the claims.
//
// kInvalidArgument, with the path (`services[2].engines.wanted.decode`): an empty or
// duplicate name, a weight outside [0, kMaxWeight], counts that are not 0 <= least <= wanted
// <= kMaxReplicas or held outside that range, an engine of unknown (0) or absurd cost where
// one is wanted or held, a budget outside [0, kMaxBudget], more than kMaxBudget GPUs held.
// O(S log S) for S services, the rule, and O(log S) for each step of rounding.
//
// Differs from Dynamo's global planner, which answers requests one by one: it caches what it
// denied, to be paired with a later request in the opposite direction. Here both are known.
absl::StatusOr<BudgetDivision> DivideGpuBudget(std::span<const ServiceClaim> services,
                                               int64_t budget, DivideFunction divide);

// The same by a rule, `DominantResourceDivision` by default.
template <DivisionRule Rule = DominantResourceDivision>
absl::StatusOr<BudgetDivision> DivideGpuBudget(std::span<const ServiceClaim> services,
                                               int64_t budget, const Rule& rule = Rule()) {
  const auto divide = [&rule](const Division& division, Claims& claims) {
    rule.Divide(division, claims);
  };
  return DivideGpuBudget(services, budget, DivideFunction(divide));
}

}  // namespace tessera

#endif  // TESSERA_SCHEDULE_GPU_BUDGET_H_
