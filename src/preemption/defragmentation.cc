#include "tessera/preemption/defragmentation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/preemption/move_rules.h"
#include "src/preemption/move_writer.h"
#include "src/preemption/slice_view.h"
#include "src/preemption/wanted.h"
#include "tessera/base/status.h"
#include "tessera/gpu/defragmentation.h"

namespace tessera {
namespace {

using Outcome = ClusterDefragmentationOutcome;

// How often the whole of a model is searched again, with one pod less to move.
constexpr int kMaxRetries = 4;

// Seeks a place for one instance on the GPUs of one model.
class ModelSearch {
 public:
  ModelSearch(const Snapshot& snapshot, MoveRules& rules, const SliceView& view, int profile,
              int64_t budget)
      : snapshot_(snapshot), rules_(rules), view_(view), profile_(profile), budget_(budget) {}

  void Run() {
    SearchAll();
    if (is_infeasible_ || (best_ && best_->cost == lower_bound_)) return;
    for (size_t i = 0; i < view_.spots.size(); ++i) {
      const NodeId n = view_.spots[i].node;
      if (i == 0 || view_.spots[i - 1].node != n) SearchNode(n);
    }
  }

  // Proven: no plan at all; no cheaper plan.
  bool is_infeasible() const { return is_infeasible_; }
  int64_t lower_bound() const { return lower_bound_; }
  // The best plan, if there is one; `Write` then gives it.
  const std::optional<DefragmentationPlan>& best() const { return best_; }

  void Write(ClusterDefragmentation& result) const {
    const GpuModel& model = snapshot_.model(view_.model);
    MoveWriter writer(snapshot_, best_view_);
    for (const InstanceMove& move : best_->moves) writer.Move(move);
    const InstancePlace& place = best_->places.front();
    const GpuSpot& spot = best_view_.spots[static_cast<size_t>(place.gpu)];
    result.gpu_model = model.name;
    result.moves = static_cast<int>(best_->moves.size());
    result.cost = best_->cost;
    result.node = snapshot_.node(spot.node).name;
    result.place = {spot.gpu, model.profiles[static_cast<size_t>(profile_)].name,
                    place.instance.start};
    result.exists = writer.Make(place);
    result.actions = std::move(writer).TakeActions();
  }

 private:
  DefragmentationPlan Solve(const SliceView& view) const {
    const int wanted[] = {profile_};
    // The view is legal, being that of a snapshot.
    return *PlanDefragmentation(snapshot_.mig(view.model), view.gpus, wanted, "", budget_);
  }

  void SearchAll() {
    SliceView view = view_;
    for (int retry = 0; retry <= kMaxRetries; ++retry) {
      DefragmentationPlan plan = Solve(view);
      if (retry == 0) {
        is_infeasible_ = plan.outcome == DefragmentationOutcome::kInfeasible;
        if (plan.outcome == DefragmentationOutcome::kPlanned) lower_bound_ = plan.cost;
      }
      if (plan.outcome != DefragmentationOutcome::kPlanned) return;
      const std::optional<size_t> offence = rules_.FirstOffence(view, plan.moves);
      if (!offence) return Offer(view, std::move(plan));
      const InstanceMove& move = plan.moves[*offence];
      std::vector<BusyInstance>& busy = view.gpus[static_cast<size_t>(move.from_gpu)].busy;
      std::ranges::find(busy, move.from, &BusyInstance::instance)->movable = false;
    }
  }

  void SearchNode(NodeId n) {
    const SliceView part = PartOf(view_, n);
    DefragmentationPlan plan = Solve(part);
    if (plan.outcome != DefragmentationOutcome::kPlanned) return;
    if (!rules_.FirstOffence(part, plan.moves)) Offer(part, std::move(plan));
  }

  void Offer(const SliceView& view, DefragmentationPlan plan) {
    const auto rank = [](const DefragmentationPlan& p) {
      return std::pair(p.cost, p.moves.size());
    };
    if (best_ && rank(*best_) <= rank(plan)) return;
    best_ = std::move(plan);
    best_view_ = view;
  }

  const Snapshot& snapshot_;
  MoveRules& rules_;
  const SliceView& view_;
  const int profile_;
  const int64_t budget_;
  bool is_infeasible_ = false;
  int64_t lower_bound_ = 0;
  std::optional<DefragmentationPlan> best_;
  SliceView best_view_;
};

// The best plan over the models, or why there is none.
class Planner {
 public:
  Planner(const Snapshot& snapshot, const ClusterDefragmentationOptions& options)
      : snapshot_(snapshot), options_(options), holds_(snapshot), rules_(snapshot) {
    result_.outcome = Outcome::kInfeasible;
  }

  absl::Status Try(ModelId model, NodeId node, int profile) {
    SliceView view = ViewOf(snapshot_, holds_, model, node);
    num_gpus_ += view.num_gpus;
    result_.barred.insert(result_.barred.end(), view.barred.begin(), view.barred.end());
    TESSERA_RETURN_IF_ERROR(MarkMovable(rules_, snapshot_, options_.cost_of, view));
    ModelSearch search(snapshot_, rules_, view, profile, options_.budget);
    search.Run();
    if (search.is_infeasible()) return absl::OkStatus();
    lower_bound_ = std::min(lower_bound_.value_or(search.lower_bound()), search.lower_bound());
    if (!search.best()) {
      if (result_.outcome == Outcome::kInfeasible) result_.outcome = Outcome::kUndecided;
      return absl::OkStatus();
    }
    const int moves = static_cast<int>(search.best()->moves.size());
    const bool is_better =
        result_.outcome != Outcome::kPlanned ||
        std::pair(search.best()->cost, moves) < std::pair(result_.cost, result_.moves);
    result_.outcome = Outcome::kPlanned;
    if (is_better) search.Write(result_);
    return absl::OkStatus();
  }

  ClusterDefragmentation Finish() && {
    result_.lower_bound = lower_bound_.value_or(0);
    if (result_.outcome == Outcome::kPlanned) {
      result_.barred.clear();
      return std::move(result_);
    }
    result_.text = absl::StrCat(
        result_.outcome == Outcome::kInfeasible ? "no moves make room" : "no moves were found",
        ": ", DescribeBarred(num_gpus_, result_.barred));
    return std::move(result_);
  }

 private:
  const Snapshot& snapshot_;
  const ClusterDefragmentationOptions& options_;
  const ClusterHolds holds_;
  MoveRules rules_;
  int num_gpus_ = 0;
  std::optional<int64_t> lower_bound_;
  ClusterDefragmentation result_;
};

}  // namespace

absl::StatusOr<ClusterDefragmentation> PlanDefragmentation(
    const Snapshot& snapshot, const std::string& profile,
    const ClusterDefragmentationOptions& options) {
  TESSERA_ASSIGN_OR_RETURN(const WantedScope scope,
                           ResolveScope(snapshot, options.node, options.gpu_model));
  TESSERA_RETURN_IF_ERROR(CheckProfile(snapshot, scope, profile, "profile"));
  Planner planner(snapshot, options);
  for (ModelId m : scope.models) {
    const std::optional<int> p = snapshot.model(m).FindProfile(profile);
    if (p) TESSERA_RETURN_IF_ERROR(planner.Try(m, scope.node, *p));
  }
  return std::move(planner).Finish();
}

}  // namespace tessera
