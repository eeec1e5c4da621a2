#include "src/schedule/held_places.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "src/schedule/job_facts.h"
#include "tessera/placement/gang_placement.h"

namespace tessera {
namespace {

constexpr size_t kMostDomains = 8;

class PlacesSearch {
 public:
  PlacesSearch(ClusterState& state, WorkloadId w, absl::FunctionRef<bool(PodId)> yields)
      : state_(state),
        snapshot_(state.snapshot()),
        w_(w),
        pods_(static_cast<size_t>(snapshot_.num_nodes())),
        busy_(pods_.size()) {
    for (int i = 0; i < snapshot_.num_pods(); ++i) {
      const PodId p(i);
      if (!state_.is_placed(p) || WorkloadOf(p) == w) continue;
      const PodPlacement& placement = state_.placement(p);
      pods_[at(placement.node)].push_back(p);
      if (!yields(p)) busy_[at(placement.node)] += UnitsOf(placement);
    }
    for (int s = snapshot_.info(w).first_pod_set;
         s < snapshot_.info(w).first_pod_set + snapshot_.info(w).num_pod_sets; ++s) {
      const RequestClassId c = snapshot_.pod_set(PodSetId(s)).request_class;
      const RequestClass& request = snapshot_.request_class(c);
      if (request.gpu.kind == GpuRequestKind::kWhole) {
        gpus_ += int64_t{Lacking(state, PodSetId(s))} * request.gpu.devices;
      }
    }
  }

  std::optional<HeldPlaces> Run() {
    std::vector<std::pair<int64_t, NodeRange>> ranges;
    for (NodeRange range : Ranges()) {
      const std::vector<NodeId> nodes = ByBusy(range);
      const size_t needed = Needed(nodes);
      if (needed > nodes.size()) continue;
      int64_t busy = 0;
      for (size_t i = 0; i < needed; ++i) busy += busy_[at(nodes[i])];
      ranges.emplace_back(busy, range);
    }
    std::ranges::stable_sort(ranges, {}, &std::pair<int64_t, NodeRange>::first);
    if (ranges.size() > kMostDomains) ranges.resize(kMostDomains);
    for (const auto& [busy, range] : ranges) {
      if (std::optional<HeldPlaces> found = TryIn(range)) return found;
    }
    return std::nullopt;
  }

 private:
  static size_t at(NodeId n) { return static_cast<size_t>(n.value()); }
  WorkloadId WorkloadOf(PodId p) const {
    return snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
  }

  static int64_t UnitsOf(const PodPlacement& placement) {
    const int64_t devices = std::popcount(placement.gpus);
    return devices * (placement.share > 0 ? placement.share : kGpuUnitsPerDevice);
  }

  // The domains that its required level allows; all nodes where it requires none, or where the
  // rest of it decides.
  std::vector<NodeRange> Ranges() const {
    const int level = snapshot_.gang(w_)[0].required_level;
    const WorkloadInfo& info = snapshot_.info(w_);
    bool runs = false;
    for (int i = info.first_pod; i < info.first_pod + info.num_pods; ++i) {
      runs |= state_.is_placed(PodId(i));
    }
    if (level < 0 || runs) return {{0, snapshot_.num_nodes()}};
    std::vector<NodeRange> ranges;
    for (const TopologyDomain& domain : snapshot_.topology().domains(level)) {
      ranges.push_back(domain.nodes);
    }
    return ranges;
  }

  std::vector<NodeId> ByBusy(NodeRange range) const {
    std::vector<NodeId> nodes;
    for (int n = range.begin; n < range.end; ++n) nodes.push_back(NodeId(n));
    std::ranges::stable_sort(nodes, {}, [this](NodeId n) { return busy_[at(n)]; });
    return nodes;
  }

  // So many of them have the GPUs that are lacking; more than there are: all have not.
  size_t Needed(const std::vector<NodeId>& nodes) const {
    int64_t gpus = 0;
    size_t needed = 0;
    while (needed < nodes.size() && (needed == 0 || gpus < gpus_)) {
      gpus += state_.tables().num_gpus(nodes[needed++]);
    }
    return gpus < gpus_ ? nodes.size() + 1 : needed;
  }

  // Takes away what holds the least held nodes, of twice as many each time.
  std::optional<HeldPlaces> TryIn(NodeRange range) {
    const std::vector<NodeId> nodes = ByBusy(range);
    const ClusterState::Mark mark = state_.GetMark();
    std::optional<HeldPlaces> held;
    for (size_t from = 0, to = Needed(nodes); !held && from < nodes.size();
         from = std::exchange(to, 2 * to)) {
      for (size_t i = from; i < std::min(to, nodes.size()); ++i) {
        for (PodId p : pods_[at(nodes[i])]) state_.Remove(p);
      }
      const ClusterState::Mark before = state_.GetMark();
      const GangPlacement found = PlaceGang(state_, w_, FindPacked, {.exact_budget = 0});
      if (!found.placed()) continue;
      held.emplace();
      held->workload = w_;
      for (PodId p : found.pods) held->places.push_back({p, state_.placement(p)});
      state_.RollBack(before);
    }
    state_.RollBack(mark);
    if (held) Account(*held);
    return held;
  }

  // Who is in the way, when the places are free at the latest, and what of them is free already.
  void Account(HeldPlaces& held) const {
    held.free_by = snapshot_.now();
    for (const PodTarget& target : held.places) {
      const PodPlacement& place = target.placement;
      for (int g = 0; g < state_.tables().num_gpus(place.node); ++g) {
        const bool free = ((place.gpus >> g) & 1) != 0 && !state_.gpu(place.node, g).is_held();
        if (free) held.idle_gpu_units += place.share > 0 ? place.share : kGpuUnitsPerDevice;
      }
      for (PodId p : pods_[at(place.node)]) {
        if (place.gpus != 0 && (place.gpus & state_.placement(p).gpus) == 0) continue;
        held.free_by = std::max(held.free_by, EndOf(p));
        held.in_the_way.push_back(p);
      }
    }
    std::ranges::sort(held.in_the_way);
    held.in_the_way.erase(std::unique(held.in_the_way.begin(), held.in_the_way.end()),
                          held.in_the_way.end());
  }

  int64_t EndOf(PodId p) const {
    const std::optional<int64_t>& most = snapshot_.workload(WorkloadOf(p)).max_runtime;
    // What does not run yet starts now at the earliest.
    const bool runs = snapshot_.pod_phase(p) == PodPhase::kRunning;
    const int64_t start = runs ? snapshot_.pod_started(p) : snapshot_.now();
    if (!most || start == INT64_MAX || start > kUnlimited - *most) return kUnlimited;
    return std::max(start + *most, snapshot_.now());
  }

  ClusterState& state_;
  const Snapshot& snapshot_;
  const WorkloadId w_;
  std::vector<std::vector<PodId>> pods_;  // by node
  std::vector<int64_t> busy_;             // by node: GPU units that are in the way
  int64_t gpus_ = 0;                      // whole ones that the minimum lacks
};

}  // namespace

std::optional<HeldPlaces> FindPlacesToHold(ClusterState& state, WorkloadId w,
                                           absl::FunctionRef<bool(PodId)> yields) {
  return PlacesSearch(state, w, yields).Run();
}

}  // namespace tessera
