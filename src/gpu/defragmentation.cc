#include "tessera/gpu/defragmentation.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/gpu/place_search.h"
#include "tessera/base/status.h"
#include "tessera/gpu/geometry.h"

namespace tessera {
namespace {

// Places after which a search that goes on is worth a bound that costs as much.
constexpr int64_t kEasyPlaces = 10000;

PlaceTarget TargetOf(const SlicedGpu& gpu) {
  PlaceTarget target;
  target.only_slots = !gpu.may_change;
  if (target.only_slots) target.slots = gpu.idle;
  target.pieces.reserve(gpu.busy.size());
  for (const BusyInstance& busy : gpu.busy) {
    // An occupant of a GPU that may not change leaves only its own kind of room, and
    // whoever could use that could as well go where it would go.
    target.pieces.push_back({busy.instance, busy.movable && gpu.may_change, busy.cost});
  }
  return target;
}

// Whether the units that instances may use hold the wanted ones too. Moves do not
// change how many are used.
bool HaveUnits(const MigTables& tables, std::span<const SlicedGpu> gpus,
               std::span<const int> wanted) {
  const std::vector<MigProfile>& profiles = tables.model().profiles;
  int64_t units = 0;
  for (const SlicedGpu& gpu : gpus) {
    if (gpu.may_change) {
      units += tables.model().units;
      for (const BusyInstance& busy : gpu.busy) units -= profiles[busy.instance.profile].size;
    } else {
      for (const Instance& idle : gpu.idle) units += profiles[idle.profile].size;
    }
  }
  for (const int profile : wanted) units -= profiles[profile].size;
  return units >= 0;
}

// Whether there are GPUs enough for all slices, movable or not, whatever stands where.
bool HaveGpus(const MigTables& tables, std::span<const SlicedGpu> gpus,
              std::span<const int> wanted) {
  std::vector<int64_t> demand(tables.model().profiles.size(), 0);
  int64_t may_change = 0;
  for (const int profile : wanted) ++demand[profile];
  for (const SlicedGpu& gpu : gpus) {
    if (!gpu.may_change) {
      for (const Instance& idle : gpu.idle) --demand[idle.profile];
      continue;
    }
    ++may_change;
    for (const BusyInstance& busy : gpu.busy) ++demand[busy.instance.profile];
  }
  for (int64_t& count : demand) count = std::max<int64_t>(0, count);
  const absl::StatusOr<GeometryPlan> plan = PlanGeometry(tables, demand, "", 0);
  return !plan.ok() || plan->lower_bound <= may_change;
}

// Puts the moves of a search in an order in which each target is free at its turn. A
// target may serve any item of its profile; what remains is for the wanted instances.
class MoveOrder {
 public:
  MoveOrder(const PlaceProblem& problem, const PlaceResult& result, int64_t& budget)
      : problem_(problem), tables_(*problem.tables), result_(result), budget_(budget) {
    for (const PlaceItem& item : result.items) {
      if (item.gpu >= 0) UseGpu(item.gpu);
    }
    for (const PlaceStep& step : result.steps) UseGpu(step.gpu);
    moved_.assign(result.items.size(), false);
    taken_.assign(result.steps.size(), false);
    for (size_t i = 0; i < problem.wanted.size(); ++i) moved_[i] = true;
  }

  // Whether there is such an order, which `plan` then receives.
  bool Find(DefragmentationPlan& plan) {
    if (!Continue()) return false;
    plan.moves = std::move(moves_);
    for (const int profile : problem_.wanted) {
      size_t s = 0;
      while (taken_[s] || result_.steps[s].at.profile != profile) ++s;
      taken_[s] = true;
      plan.places.push_back({result_.steps[s].gpu, result_.steps[s].at});
    }
    return true;
  }

 private:
  LayoutKey& KeyOf(int gpu) {
    size_t i = 0;
    while (keys_[i].first != gpu) ++i;
    return keys_[i].second;
  }

  void UseGpu(int gpu) {
    for (const auto& [known, key] : keys_) {
      if (known == gpu) return;
    }
    LayoutKey key = tables_.empty();
    for (const Piece& piece : problem_.targets[gpu].pieces) {
      key = tables_.Add(key, piece.instance.profile, piece.instance.start);
    }
    keys_.emplace_back(gpu, key);
  }

  // Carries out all moves that remain: as deep as there are moves.
  bool Continue() {
    if (moves_.size() + problem_.wanted.size() == result_.items.size()) return true;
    if (--budget_ <= 0 || !dead_ends_.insert({moved_, taken_}).second) return false;
    for (size_t i = problem_.wanted.size(); i < result_.items.size(); ++i) {
      for (size_t s = 0; s < result_.steps.size(); ++s) {
        if (!moved_[i] && !taken_[s] && TryMove(i, s)) return true;
      }
    }
    return false;
  }

  // Moves item `i` to the place of step `s` and all others after it, or nothing.
  bool TryMove(size_t i, size_t s) {
    const auto& [profile, gpu, piece] = result_.items[i];
    const Instance& to = result_.steps[s].at;
    const int to_gpu = result_.steps[s].gpu;
    if (to.profile != profile || !tables_.CanPlace(KeyOf(to_gpu), profile, to.start)) return false;
    const Instance& from = problem_.targets[gpu].pieces[piece].instance;
    const auto keys = keys_;
    KeyOf(to_gpu) = tables_.Add(KeyOf(to_gpu), profile, to.start);
    KeyOf(gpu) = tables_.Remove(KeyOf(gpu), profile, from.start);
    moved_[i] = taken_[s] = true;
    moves_.push_back({gpu, from, to_gpu, to.start});
    if (Continue()) return true;
    moves_.pop_back();
    moved_[i] = taken_[s] = false;
    keys_ = keys;
    return false;
  }

  const PlaceProblem& problem_;
  const MigTables& tables_;
  const PlaceResult& result_;
  int64_t& budget_;
  std::vector<InstanceMove> moves_;
  std::vector<bool> moved_;                      // [item]; true for the wanted
  std::vector<bool> taken_;                      // [step]
  std::vector<std::pair<int, LayoutKey>> keys_;  // of the GPUs of the search
  std::set<std::pair<std::vector<bool>, std::vector<bool>>> dead_ends_;
};

absl::Status CheckWanted(const GpuModel& model, std::span<const int> wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] >= 0 && static_cast<size_t>(wanted[i]) < model.profiles.size()) continue;
    return InvalidAt(absl::StrCat("wanted[", i, "]"),
                     absl::StrCat("no profile ", wanted[i], " on ", model.name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DefragmentationPlan> PlanDefragmentation(const MigTables& tables,
                                                        std::span<const SlicedGpu> gpus,
                                                        std::span<const int> wanted,
                                                        std::string_view path, int64_t budget) {
  TESSERA_RETURN_IF_ERROR(CheckSlicedGpus(tables, gpus, path));
  TESSERA_RETURN_IF_ERROR(CheckWanted(tables.model(), wanted));
  DefragmentationPlan plan;
  plan.outcome = DefragmentationOutcome::kInfeasible;
  if (!HaveUnits(tables, gpus, wanted)) return plan;
  PlaceProblem problem;
  problem.tables = &tables;
  problem.targets.reserve(gpus.size());
  for (const SlicedGpu& gpu : gpus) problem.targets.push_back(TargetOf(gpu));
  problem.wanted.assign(wanted.begin(), wanted.end());
  problem.surplus.assign(tables.model().profiles.size(), 0);
  const auto accept = [&problem, &plan](const PlaceResult& candidate, int64_t& steps) {
    return MoveOrder(problem, candidate, steps).Find(plan);
  };
  PlaceResult result = SearchPlaces(problem, std::min(budget, kEasyPlaces), accept);
  if (result.end == PlaceEnd::kExhausted && budget > kEasyPlaces) {
    if (!HaveGpus(tables, gpus, wanted)) return plan;
    result = SearchPlaces(problem, budget - kEasyPlaces, accept);
  }
  if (result.end != PlaceEnd::kFound) {
    if (result.end == PlaceEnd::kExhausted) plan.outcome = DefragmentationOutcome::kBudgetExhausted;
    return plan;
  }
  plan.outcome = DefragmentationOutcome::kPlanned;
  plan.cost = result.cost.sum;
  return plan;
}

}  // namespace tessera
