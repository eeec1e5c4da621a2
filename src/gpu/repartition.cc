#include "tessera/gpu/repartition.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/gpu/place_search.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

absl::Status CheckCosts(const RepartitionCosts& costs) {
  const std::pair<std::string_view, int64_t> fields[] = {{"costs.destroy", costs.destroy},
                                                         {"costs.create", costs.create},
                                                         {"costs.switch_mig", costs.switch_mig},
                                                         {"costs.reset", costs.reset}};
  for (const auto& [path, cost] : fields) {
    if (cost >= 0 && cost <= kMaxMoveCost) continue;
    return InvalidAt(path, absl::StrCat(cost, " is not in 0..", kMaxMoveCost));
  }
  return absl::OkStatus();
}

absl::Status CheckWanted(const GpuModel& model, std::span<const int64_t> wanted) {
  if (wanted.size() != model.profiles.size()) {
    return InvalidAt("wanted", absl::StrCat(wanted.size(), " counts for the ",
                                            model.profiles.size(), " profiles of ", model.name));
  }
  for (size_t p = 0; p < wanted.size(); ++p) {
    if (wanted[p] >= 0) continue;
    return InvalidAt(absl::StrCat("wanted[", p, "]"),
                     absl::StrCat("count ", wanted[p], " is negative"));
  }
  return absl::OkStatus();
}

int64_t LatencyOf(const GpuModel& model, const std::vector<GpuOperation>& operations,
                  const RepartitionCosts& costs) {
  int64_t latency = 0;
  for (const GpuOperation& operation : operations) {
    switch (operation.kind) {
      case GpuOperationKind::kSetMig:
        latency += costs.switch_mig + (model.mig_toggle_needs_reset ? costs.reset : 0);
        break;
      case GpuOperationKind::kDestroy:
        latency += costs.destroy;
        break;
      case GpuOperationKind::kCreate:
        latency += costs.create;
        break;
    }
  }
  return latency;
}

// Busy instances stand fast, idle ones leave for one operation. A GPU that may not
// change has no place at all.
PlaceTarget TargetOf(const SlicedGpu& gpu) {
  PlaceTarget target;
  target.only_slots = !gpu.may_change;
  target.entry_cost = gpu.mig_enabled ? 0 : 1;
  for (const BusyInstance& busy : gpu.busy) target.pieces.push_back({busy.instance, false, 0});
  for (const Instance& idle : gpu.idle) target.pieces.push_back({idle, true, 1});
  return target;
}

// The operations that lead to the places which the search has found.
std::vector<GpuOperation> OperationsOf(std::span<const SlicedGpu> gpus, const PlaceProblem& problem,
                                       const std::vector<PlaceStep>& steps) {
  std::vector<GpuOperation> operations;
  for (const PlaceStep& step : steps) {
    const std::vector<Piece>& pieces = problem.targets[step.gpu].pieces;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (((step.displaced >> i) & 1) == 0) continue;
      operations.push_back({GpuOperationKind::kDestroy, step.gpu, pieces[i].instance, false});
    }
    operations.push_back({GpuOperationKind::kCreate, step.gpu, step.at, false});
    const GpuOperation on = {GpuOperationKind::kSetMig, step.gpu, {}, true};
    const bool is_off = !gpus[step.gpu].mig_enabled;
    if (is_off && std::count(operations.begin(), operations.end(), on) == 0) {
      operations.push_back(on);
    }
  }
  const auto rank = [](const GpuOperation& operation) {
    return std::tuple(operation.gpu, operation.kind, operation.instance.start);
  };
  std::sort(operations.begin(), operations.end(),
            [&rank](const GpuOperation& a, const GpuOperation& b) { return rank(a) < rank(b); });
  return operations;
}

bool Contains(std::span<const Instance> instances, const Instance& instance) {
  return std::find(instances.begin(), instances.end(), instance) != instances.end();
}

}  // namespace

absl::StatusOr<RepartitionPlan> PlanRepartition(const MigTables& tables,
                                                std::span<const SlicedGpu> gpus,
                                                std::span<const int64_t> wanted,
                                                const RepartitionCosts& costs,
                                                std::string_view path, int64_t budget) {
  TESSERA_RETURN_IF_ERROR(CheckSlicedGpus(tables, gpus, path));
  TESSERA_RETURN_IF_ERROR(CheckWanted(tables.model(), wanted));
  TESSERA_RETURN_IF_ERROR(CheckCosts(costs));
  RepartitionPlan plan;
  // 1. What lacks, and what may go.
  PlaceProblem problem;
  problem.tables = &tables;
  problem.return_cost = 1;
  problem.surplus.assign(wanted.size(), 0);
  for (const SlicedGpu& gpu : gpus) {
    problem.targets.push_back(TargetOf(gpu));
    for (const Instance& idle : gpu.idle) ++problem.surplus[idle.profile];
  }
  const int64_t most = int64_t{kMaxPlacementUnits} * static_cast<int64_t>(gpus.size());
  for (size_t p = 0; p < wanted.size(); ++p) {
    const int64_t lacking = std::max<int64_t>(0, wanted[p] - problem.surplus[p]);
    problem.surplus[p] = std::max<int64_t>(0, problem.surplus[p] - wanted[p]);
    if (lacking > most) {
      plan.outcome = RepartitionOutcome::kInfeasible;
      return plan;
    }
    problem.wanted.insert(problem.wanted.end(), static_cast<size_t>(lacking), static_cast<int>(p));
  }
  // 2. Their places.
  const PlaceResult result =
      SearchPlaces(problem, budget, [](const PlaceResult&, int64_t&) { return true; });
  if (result.end != PlaceEnd::kFound) {
    plan.outcome = result.end == PlaceEnd::kInfeasible ? RepartitionOutcome::kInfeasible
                                                       : RepartitionOutcome::kBudgetExhausted;
    return plan;
  }
  // 3. The way there.
  plan.operations = OperationsOf(gpus, problem, result.steps);
  plan.latency = LatencyOf(tables.model(), plan.operations, costs);
  return plan;
}

absl::StatusOr<RepartitionPlan> PlanLayout(const MigTables& tables, const SlicedGpu& gpu,
                                           std::span<const Instance> layout,
                                           const RepartitionCosts& costs, std::string_view path) {
  TESSERA_RETURN_IF_ERROR(CheckSlicedGpus(tables, {&gpu, 1}, path));
  TESSERA_RETURN_IF_ERROR(tables.KeyOf(layout, "layout").status());
  TESSERA_RETURN_IF_ERROR(CheckCosts(costs));
  RepartitionPlan plan;
  std::vector<Instance> present = gpu.idle;
  for (const BusyInstance& busy : gpu.busy) {
    present.push_back(busy.instance);
    if (!Contains(layout, busy.instance)) plan.outcome = RepartitionOutcome::kInfeasible;
  }
  if (plan.outcome == RepartitionOutcome::kInfeasible) return plan;
  std::vector<Instance> target(layout.begin(), layout.end());
  const auto by_start = [](const Instance& a, const Instance& b) { return a.start < b.start; };
  std::sort(present.begin(), present.end(), by_start);
  std::sort(target.begin(), target.end(), by_start);
  if (!gpu.mig_enabled && !target.empty()) {
    plan.operations.push_back({GpuOperationKind::kSetMig, 0, {}, true});
  }
  for (const Instance& instance : present) {
    if (Contains(target, instance)) continue;
    plan.operations.push_back({GpuOperationKind::kDestroy, 0, instance, false});
  }
  for (const Instance& instance : target) {
    if (Contains(present, instance)) continue;
    plan.operations.push_back({GpuOperationKind::kCreate, 0, instance, false});
  }
  if (!gpu.may_change && !plan.operations.empty()) {
    plan.operations.clear();
    plan.outcome = RepartitionOutcome::kInfeasible;
  }
  plan.latency = LatencyOf(tables.model(), plan.operations, costs);
  return plan;
}

}  // namespace tessera
