#include "bench/study/simulate.h"

#include <vector>

#include "bench/study/rearrangement.h"
#include "tessera/gpu/defragmentation.h"

namespace tessera::study {
namespace {

// Places that a search for moves may look at. Twice as many reach a tenth of a percent
// more of the reference, in half as much time again.
constexpr int64_t kSearchBudget = 3000;

// Adds up the counted requests of a run.
class Tally {
 public:
  // `usable` slices of the `free` ones could serve more of the request's kind.
  void Offer(const Request& request, int free, int usable, bool accepted, int moves) {
    if (!request.counted) return;
    const double amount = request.lifetime * kSlices[request.kind];
    offered_ += amount;
    ++requests_;
    stranded_ += free - usable;
    if (!accepted) return;
    accepted_ += amount;
    ++count_;
    moves_ += moves;
  }

  Outcome Finish() const {
    Outcome outcome;
    outcome.acceptance = 100 * accepted_ / offered_;
    outcome.count = 100 * static_cast<double>(count_) / static_cast<double>(requests_);
    outcome.stranded = static_cast<double>(stranded_) / static_cast<double>(requests_);
    outcome.moves = static_cast<double>(moves_) / static_cast<double>(count_);
    return outcome;
  }

 private:
  double offered_ = 0;
  double accepted_ = 0;
  int64_t requests_ = 0;
  int64_t count_ = 0;
  int64_t stranded_ = 0;
  int64_t moves_ = 0;
};

FragmentationGradient GradientOf(const LayoutTable& layouts, const Mix& mix) {
  std::vector<int64_t> weights(layouts.tables().model().profiles.size(), 0);
  for (int kind = 0; kind < kKinds; ++kind) weights[layouts.profile(kind)] = mix.percent[kind];
  return *FragmentationGradient::Create(layouts.tables(), weights, "mix");
}

// Uniform over all starts of all GPUs.
std::optional<Place> ChooseRandom(const Cluster& cluster, int kind, uint64_t seed) {
  const LayoutTable& layouts = cluster.layouts();
  std::optional<Place> best;
  int64_t best_score = 0;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    const LayoutKey key = layouts.key(cluster.layout(gpu));
    const RandomSlice scorer = {(seed * kGpus + static_cast<uint64_t>(gpu)) << 32};
    const auto place =
        ChooseSlice(layouts.tables(), std::span(&key, 1), layouts.profile(kind), scorer);
    if (!place || (best && place->score >= best_score)) continue;
    best = Place{gpu, place->start};
    best_score = place->score;
  }
  return best;
}

// Moves what is in the way of one more of `kind`, which fits nowhere, and returns where
// it fits then.
std::optional<Place> MakeRoom(Cluster& cluster, int kind, int& moves) {
  const LayoutTable& layouts = cluster.layouts();
  SliceCounts wanted = cluster.held();
  ++wanted[kind];
  if (!FitRearranged(wanted, kGpus)) return std::nullopt;
  const int profile = layouts.profile(kind);
  const DefragmentationPlan plan = *PlanDefragmentation(
      layouts.tables(), cluster.Describe(), std::span(&profile, 1), "gpus", kSearchBudget);
  if (plan.outcome != DefragmentationOutcome::kPlanned) return std::nullopt;
  for (const InstanceMove& move : plan.moves) {
    cluster.Move({move.from_gpu, move.from.start}, {move.to_gpu, move.to_start});
  }
  moves = static_cast<int>(plan.moves.size());
  return Place{plan.places[0].gpu, plan.places[0].instance.start};
}

}  // namespace

Policies::Policies(const LayoutTable& layouts, const Mix& mix)
    : layouts_(layouts),
      first_fit_(layouts, FirstFitSlice()),
      best_fit_(layouts, BestFitSlice()),
      worst_fit_(layouts, WorstFitSlice()),
      gradient_(layouts, GradientOf(layouts, mix)) {}

std::optional<Place> Policies::Choose(const Cluster& cluster, int kind, Policy policy,
                                      uint64_t seed) const {
  switch (policy) {
    case kFirstFit:
      return first_fit_.Choose(cluster, kind);
    case kBestFit:
      return best_fit_.Choose(cluster, kind);
    case kWorstFit:
      return worst_fit_.Choose(cluster, kind);
    case kRandom:
      return ChooseRandom(cluster, kind, seed);
    default:
      return gradient_.Choose(cluster, kind);
  }
}

Outcome Policies::Simulate(const Traffic& traffic, Policy policy, uint64_t seed) const {
  if (policy == kReference) return SimulateReference(traffic);
  Cluster cluster(layouts_);
  Tally tally;
  for (const Event& event : traffic.events) {
    if (!event.is_arrival) {
      if (cluster.Holds(event.request)) cluster.Remove(event.request);
      continue;
    }
    const Request& request = traffic.requests[event.request];
    const int free = cluster.free_slices();
    const int usable = kSlices[request.kind] * cluster.room(request.kind);
    const uint64_t decision = seed * traffic.requests.size() + static_cast<uint64_t>(event.request);
    std::optional<Place> place = Choose(cluster, request.kind, policy, decision);
    int moves = 0;
    if (!place && policy == kDefragmentation) place = MakeRoom(cluster, request.kind, moves);
    if (place) cluster.Add(event.request, request.kind, *place);
    tally.Offer(request, free, usable, place.has_value(), moves);
  }
  return tally.Finish();
}

Outcome Policies::SimulateReference(const Traffic& traffic) const {
  SliceCounts held{};
  int free = kGpus * kSlicesPerGpu;
  std::vector<bool> accepted(traffic.requests.size(), false);
  Tally tally;
  for (const Event& event : traffic.events) {
    const Request& request = traffic.requests[event.request];
    if (event.is_arrival) {
      const int room = RoomRearranged(held, kGpus, request.kind);
      accepted[event.request] = room > 0;
      tally.Offer(request, free, kSlices[request.kind] * room, room > 0, 0);
    }
    if (!accepted[event.request]) continue;
    held[request.kind] += event.is_arrival ? 1 : -1;
    free += event.is_arrival ? -kSlices[request.kind] : kSlices[request.kind];
  }
  return tally.Finish();
}

}  // namespace tessera::study
