#include "src/schedule/held_places.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "src/schedule/job_facts.h"
#include "tessera/placement/gang_placement.h"

namespace tessera {
namespace {

constexpr size_t kMostDomains = 8;

// Nodes from the least held one on. O(nodes), and O(log nodes) for each that is taken.
class LeastHeld {
 public:
  LeastHeld(NodeRange range, const std::vector<int64_t>& busy) {
    for (int n = range.begin; n < range.end; ++n) {
      heap_.emplace_back(busy[static_cast<size_t>(n)], n);
    }
    std::ranges::make_heap(heap_, std::greater<>());
  }

  bool empty() const { return heap_.empty(); }
  NodeId Take() {
    std::ranges::pop_heap(heap_, std::greater<>());
    const NodeId n(heap_.back().second);
    heap_.pop_back();
    return n;
  }

 private:
  std::vector<std::pair<int64_t, int>> heap_;
};

class PlacesSearch {
 public:
  PlacesSearch(ClusterState& state, WorkloadId w, absl::FunctionRef<bool(WorkloadId)> yields)
      : state_(state),
        snapshot_(state.snapshot()),
        w_(w),
        busy_(static_cast<size_t>(snapshot_.num_nodes())) {
    for (int i = 0; i < snapshot_.num_workloads(); ++i) {
      if (WorkloadId(i) != w && !yields(WorkloadId(i))) CountBusy(WorkloadId(i));
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
    std::vector<Domain> domains;
    for (NodeRange range : Ranges()) {
      Domain domain{LeastHeld(range, busy_), {}, 0};
      domain.needed = TakeNeeded(domain.nodes);
      if (domain.needed.empty()) continue;
      for (NodeId n : domain.needed) domain.busy += busy_[at(n)];
      domains.push_back(std::move(domain));
    }
    std::ranges::stable_sort(domains, {}, &Domain::busy);
    if (domains.size() > kMostDomains) domains.erase(domains.begin() + kMostDomains, domains.end());
    for (Domain& domain : domains) {
      if (std::optional<HeldPlaces> found = TryIn(domain)) return found;
    }
    return std::nullopt;
  }

 private:
  struct Domain {
    LeastHeld nodes;             // but for those that are needed
    std::vector<NodeId> needed;  // with the GPUs that are lacking
    int64_t busy = 0;            // on these
  };

  static size_t at(NodeId n) { return static_cast<size_t>(n.value()); }
  WorkloadId WorkloadOf(PodId p) const {
    return snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
  }

  void CountBusy(WorkloadId v) {
    const WorkloadInfo& info = snapshot_.info(v);
    for (int i = info.first_pod; i < info.first_pod + info.num_pods; ++i) {
      if (!state_.is_placed(PodId(i))) continue;
      const PodPlacement& placement = state_.placement(PodId(i));
      busy_[at(placement.node)] += UnitsOf(placement);
    }
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

  // So many of them, one at least, that they have the GPUs that are lacking; none if all have not.
  std::vector<NodeId> TakeNeeded(LeastHeld& nodes) const {
    std::vector<NodeId> needed;
    int64_t gpus = 0;
    while (!nodes.empty() && (needed.empty() || gpus < gpus_)) {
      needed.push_back(nodes.Take());
      gpus += state_.tables().num_gpus(needed.back());
    }
    if (gpus < gpus_) needed.clear();
    return needed;
  }

  // Takes away what holds the least held nodes, of twice as many each time.
  std::optional<HeldPlaces> TryIn(Domain& domain) {
    const ClusterState::Mark mark = state_.GetMark();
    std::optional<HeldPlaces> held;
    std::vector<NodeId> more = std::move(domain.needed);
    for (size_t taken = more.size(); !held && !more.empty(); taken += more.size()) {
      for (const auto& [n, p] : OthersOn(more)) state_.Remove(p);
      const ClusterState::Mark before = state_.GetMark();
      const GangPlacement found = PlaceGang(state_, w_, FindPacked, {.exact_budget = 0});
      if (found.placed()) {
        held.emplace();
        held->workload = w_;
        for (PodId p : found.pods) held->places.push_back({p, state_.placement(p)});
        state_.RollBack(before);
      }
      more.clear();
      while (more.size() < taken && !domain.nodes.empty()) more.push_back(domain.nodes.Take());
    }
    state_.RollBack(mark);
    if (held) Account(*held);
    return held;
  }

  // The placed pods of others on these nodes, by node.
  std::vector<std::pair<NodeId, PodId>> OthersOn(const std::vector<NodeId>& nodes) const {
    std::vector<char> wanted(busy_.size());
    for (NodeId n : nodes) wanted[at(n)] = 1;
    std::vector<std::pair<NodeId, PodId>> pods;
    for (int s = 0; s < snapshot_.num_pod_sets(); ++s) {
      const PodSetInfo& set = snapshot_.pod_set(PodSetId(s));
      if (set.workload == w_ || state_.placed(PodSetId(s)) == 0) continue;
      for (int i = set.first_pod; i < set.first_pod + set.count; ++i) {
        const NodeId n = state_.placement(PodId(i)).node;
        if (n.valid() && wanted[at(n)] != 0) pods.emplace_back(n, PodId(i));
      }
    }
    std::ranges::sort(pods);
    return pods;
  }

  // Who is in the way, when the places are free at the latest, and what of them is free already.
  void Account(HeldPlaces& held) const {
    held.free_by = snapshot_.now();
    std::vector<NodeId> nodes;
    for (const PodTarget& target : held.places) nodes.push_back(target.placement.node);
    const std::vector<std::pair<NodeId, PodId>> others = OthersOn(nodes);
    for (const PodTarget& target : held.places) {
      const PodPlacement& place = target.placement;
      for (int g = 0; g < state_.tables().num_gpus(place.node); ++g) {
        const bool free = ((place.gpus >> g) & 1) != 0 && !state_.gpu(place.node, g).is_held();
        if (free) held.idle_gpu_units += place.share > 0 ? place.share : kGpuUnitsPerDevice;
      }
      const auto there =
          std::ranges::equal_range(others, place.node, {}, &std::pair<NodeId, PodId>::first);
      for (const auto& [n, p] : there) {
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
  std::vector<int64_t> busy_;  // by node: GPU units that are in the way
  int64_t gpus_ = 0;           // whole ones that the minimum lacks
};

}  // namespace

std::optional<HeldPlaces> FindPlacesToHold(ClusterState& state, WorkloadId w,
                                           absl::FunctionRef<bool(WorkloadId)> yields) {
  return PlacesSearch(state, w, yields).Run();
}

}  // namespace tessera
