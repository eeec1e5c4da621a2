#include "tessera/preemption/repartition.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/preemption/slice_view.h"
#include "src/preemption/wanted.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

// `wanted` with one entry per profile, in the order of first mention.
absl::StatusOr<std::vector<WantedInstances>> SumUp(std::span<const WantedInstances> wanted) {
  std::vector<WantedInstances> sums;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto& [profile, count] = wanted[i];
    const std::string path = absl::StrCat("wanted[", i, "].count");
    if (count < 0) return InvalidAt(path, absl::StrCat(count, " is negative"));
    const auto sum = std::ranges::find(sums, profile, &WantedInstances::profile);
    if (sum == sums.end()) {
      sums.push_back(wanted[i]);
    } else if (count > std::numeric_limits<int64_t>::max() - sum->count) {
      return InvalidAt(path, absl::StrCat("too many ", profile, " in sum"));
    } else {
      sum->count += count;
    }
  }
  return sums;
}

// The models of `scope` that have all `wanted` profiles.
absl::StatusOr<std::vector<ModelId>> ModelsWithAll(const Snapshot& snapshot,
                                                   const WantedScope& scope,
                                                   std::span<const WantedInstances> wanted) {
  std::vector<ModelId> models;
  for (ModelId m : scope.models) {
    const bool has_all = std::ranges::all_of(wanted, [&](const WantedInstances& w) {
      return snapshot.model(m).FindProfile(w.profile).has_value();
    });
    if (has_all) models.push_back(m);
  }
  if (!models.empty() || wanted.empty()) return models;
  const auto name = [](std::string* out, const WantedInstances& w) { out->append(w.profile); };
  return InvalidAt("wanted", absl::StrCat("no GPU model has all of ",
                                          absl::StrJoin(wanted.begin(), wanted.end(), ", ", name)));
}

// [profile] of `model`; nothing if that many have no room even on empty GPUs.
std::optional<std::vector<int64_t>> DemandOf(const GpuModel& model, size_t gpus,
                                             std::span<const WantedInstances> wanted) {
  std::vector<int64_t> demand(model.profiles.size(), 0);
  int64_t units = static_cast<int64_t>(gpus) * model.units;
  for (const auto& [profile, count] : wanted) {
    const size_t p = static_cast<size_t>(*model.FindProfile(profile));
    if (count > units / model.profiles[p].size) return std::nullopt;
    units -= count * model.profiles[p].size;
    demand[p] = count;
  }
  return demand;
}

Action ActionOf(const Snapshot& snapshot, const SliceView& view, const GpuOperation& operation) {
  const auto& [n, gpu] = view.spots[static_cast<size_t>(operation.gpu)];
  const std::string& node = snapshot.node(n).name;
  if (operation.kind == GpuOperationKind::kSetMig) {
    return SetMigAction{node, gpu, operation.enabled};
  }
  const Instance& at = operation.instance;
  const std::string& profile =
      snapshot.model(view.model).profiles[static_cast<size_t>(at.profile)].name;
  if (operation.kind == GpuOperationKind::kDestroy) {
    return DestroyAction{node, gpu, profile, at.start};
  }
  return CreateAction{node, gpu, profile, at.start};
}

// The best plan over the models, or why there is none.
class Planner {
 public:
  Planner(const Snapshot& snapshot, std::span<const WantedInstances> wanted,
          const ClusterRepartitionOptions& options)
      : snapshot_(snapshot), holds_(snapshot), wanted_(wanted), options_(options) {
    result_.outcome = RepartitionOutcome::kInfeasible;
  }

  absl::Status Try(ModelId model, NodeId node) {
    SliceView view = ViewOf(snapshot_, holds_, model, node);
    num_gpus_ += view.num_gpus;
    std::ranges::move(view.barred, std::back_inserter(result_.barred));
    const GpuModel& gpu_model = snapshot_.model(model);
    const auto demand = DemandOf(gpu_model, view.gpus.size(), wanted_);
    // The costs are checked all the same.
    const std::vector<int64_t> none(gpu_model.profiles.size(), 0);
    TESSERA_ASSIGN_OR_RETURN(
        const RepartitionPlan plan,
        PlanRepartition(snapshot_.mig(model), view.gpus, demand ? *demand : none, options_.costs,
                        "gpus", options_.budget));
    if (demand) Offer(view, plan);
    return absl::OkStatus();
  }

  ClusterRepartition Finish() && {
    if (result_.outcome == RepartitionOutcome::kPlanned) {
      result_.barred.clear();
      return std::move(result_);
    }
    result_.text = absl::StrCat(result_.outcome == RepartitionOutcome::kInfeasible
                                    ? "there is no room"
                                    : "the budget ended the search",
                                ": ", DescribeBarred(num_gpus_, result_.barred));
    return std::move(result_);
  }

 private:
  void Offer(const SliceView& view, const RepartitionPlan& plan) {
    if (plan.outcome == RepartitionOutcome::kInfeasible) return;
    const bool has_plan = result_.outcome == RepartitionOutcome::kPlanned;
    if (plan.outcome == RepartitionOutcome::kBudgetExhausted) {
      if (!has_plan) result_.outcome = plan.outcome;
      return;
    }
    if (has_plan && result_.actions.size() <= plan.operations.size()) return;
    result_.outcome = plan.outcome;
    result_.gpu_model = snapshot_.model(view.model).name;
    result_.latency = plan.latency;
    result_.actions.clear();
    for (const GpuOperation& operation : plan.operations) {
      result_.actions.push_back(ActionOf(snapshot_, view, operation));
    }
  }

  const Snapshot& snapshot_;
  const ClusterHolds holds_;
  std::span<const WantedInstances> wanted_;
  const ClusterRepartitionOptions& options_;
  int num_gpus_ = 0;
  ClusterRepartition result_;
};

}  // namespace

absl::StatusOr<ClusterRepartition> PlanRepartition(const Snapshot& snapshot,
                                                   std::span<const WantedInstances> wanted,
                                                   const ClusterRepartitionOptions& options) {
  TESSERA_ASSIGN_OR_RETURN(const WantedScope scope,
                           ResolveScope(snapshot, options.node, options.gpu_model));
  for (size_t i = 0; i < wanted.size(); ++i) {
    TESSERA_RETURN_IF_ERROR(
        CheckProfile(snapshot, scope, wanted[i].profile, absl::StrCat("wanted[", i, "].profile")));
  }
  TESSERA_ASSIGN_OR_RETURN(const std::vector<WantedInstances> sums, SumUp(wanted));
  TESSERA_ASSIGN_OR_RETURN(const std::vector<ModelId> models, ModelsWithAll(snapshot, scope, sums));
  if (sums.empty()) return ClusterRepartition();
  Planner planner(snapshot, sums, options);
  for (ModelId m : models) TESSERA_RETURN_IF_ERROR(planner.Try(m, scope.node));
  return std::move(planner).Finish();
}

}  // namespace tessera
