#include "src/preemption/room_moves.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "tessera/placement/finders.h"

namespace tessera {

NodeRange MoveRange(const Snapshot& snapshot, PodId p, NodeId home) {
  NodeRange range{0, snapshot.num_nodes()};
  const PodSetInfo& set = snapshot.pod_set(snapshot.pod_set_of(p));
  const std::span<const GangNode> gang = snapshot.gang(set.workload);
  for (int part = set.gang_node; part >= 0; part = gang[static_cast<size_t>(part)].parent) {
    const int level = gang[static_cast<size_t>(part)].required_level;
    if (level < 0) continue;
    const DomainId d = snapshot.topology().domain_of(home, level);
    if (!d.valid()) return {};
    range =
        Intersect(range, snapshot.topology().domains(level)[static_cast<size_t>(d.value())].nodes);
  }
  return range;
}

namespace {

bool IsBelow(std::span<const GangNode> gang, int part, int above) {
  while (part >= 0 && part != above) part = gang[static_cast<size_t>(part)].parent;
  return part == above;
}

// Whether all pods below `part`, but for `p`, are in domain `d` of its level.
bool AllIn(const ClusterState& state, WorkloadId w, int part, PodId p, DomainId d) {
  const Snapshot& snapshot = state.snapshot();
  const std::span<const GangNode> gang = snapshot.gang(w);
  const int level = gang[static_cast<size_t>(part)].required_level;
  const WorkloadInfo& info = snapshot.info(w);
  for (int i = info.first_pod; i < info.first_pod + info.num_pods; ++i) {
    const PodId other(i);
    if (other == p || !state.is_placed(other)) continue;
    const PodSetInfo& set = snapshot.pod_set(snapshot.pod_set_of(other));
    if (!IsBelow(gang, set.gang_node, part)) continue;
    if (snapshot.topology().domain_of(state.placement(other).node, level) != d) return false;
  }
  return true;
}

}  // namespace

bool KeepsTogether(const ClusterState& state, PodId p, NodeId n) {
  const Snapshot& snapshot = state.snapshot();
  const PodSetInfo& set = snapshot.pod_set(snapshot.pod_set_of(p));
  const std::span<const GangNode> gang = snapshot.gang(set.workload);
  for (int part = set.gang_node; part >= 0; part = gang[static_cast<size_t>(part)].parent) {
    const int level = gang[static_cast<size_t>(part)].required_level;
    if (level < 0) continue;
    const DomainId d = snapshot.topology().domain_of(n, level);
    if (!d.valid() || !AllIn(state, set.workload, part, p, d)) return false;
  }
  return true;
}

bool MayMove(const Snapshot& snapshot, PodId p) {
  const WorkloadId w = snapshot.pod_set(snapshot.pod_set_of(p)).workload;
  return snapshot.pod_phase(p) != PodPhase::kNominated && snapshot.workload(w).is_movable();
}

std::vector<PodTarget> FindNewPlaces(ClusterState& state, std::span<const PodId> pods,
                                     std::span<const PodPlacement> homes) {
  const Snapshot& snapshot = state.snapshot();
  // Whole devices, size of a slice, share of a device, cores: larger first.
  using Size = std::tuple<int, int, int64_t, int64_t>;
  std::vector<std::pair<Size, size_t>> order;
  for (size_t i = 0; i < pods.size(); ++i) {
    const PodPlacement& home = homes[i];
    const PodSetInfo& set = snapshot.pod_set(snapshot.pod_set_of(pods[i]));
    const int64_t cpu = snapshot.request_class(set.request_class).need[kCpu];
    Size size{0, 0, home.share, cpu};
    if (home.profile >= 0) {
      const GpuModel& model = snapshot.model(snapshot.node_model(home.node));
      std::get<1>(size) = model.profiles[static_cast<size_t>(home.profile)].size;
    } else if (home.share == 0) {
      std::get<0>(size) = std::popcount(home.gpus);
    }
    order.emplace_back(size, i);
  }
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<PodTarget> moves;
  for (const auto& entry : order) {
    const PodId p = pods[entry.second];
    if (!MayMove(snapshot, p)) continue;
    const NodeId home = homes[entry.second].node;
    // On another model it would be charged another amount, and run at another speed.
    uint64_t excluded = 0;
    for (int m = 0; m < snapshot.num_models() && homes[entry.second].gpus != 0; ++m) {
      if (ModelId(m) != snapshot.node_model(home)) excluded |= uint64_t{1} << m;
    }
    const auto place =
        FindPacked(state, {snapshot.pod_set_of(p), MoveRange(snapshot, p, home), excluded});
    // Nor would it be charged a larger slice than it had.
    if (!place || place->profile != homes[entry.second].profile) continue;
    state.Place(p, *place);
    moves.push_back({p, *place});
  }
  return moves;
}

namespace {

// Pods that move one after the other, in an order that is looked for.
class MoveOrder {
 public:
  MoveOrder(ClusterState& state, std::vector<PodTarget> moves, int64_t* budget)
      : state_(state), moves_(std::move(moves)), budget_(budget) {}

  std::optional<std::vector<PodTarget>> Find() {
    const ClusterState::Mark start = state_.GetMark();
    bool found = MoveInTurn();
    if (!found && budget_ != nullptr && moves_.size() <= kMostMoves) {
      state_.RollBack(start);
      ordered_.clear();
      found = MoveFrom(0);
    }
    state_.RollBack(start);
    if (!found) return std::nullopt;
    return std::move(ordered_);
  }

 private:
  static constexpr size_t kMostMoves = 16;  // 2^16 sets at most

  bool MoveIfFree(const PodTarget& move) {
    const ClusterState::Mark mark = state_.GetMark();
    state_.Remove(move.pod);
    if (!IsFree(state_, state_.snapshot().pod_set_of(move.pod), move.placement)) {
      state_.RollBack(mark);
      return false;
    }
    state_.Place(move.pod, move.placement);
    ordered_.push_back(move);
    return true;
  }

  bool MoveInTurn() {
    std::vector<PodTarget> open = moves_;
    for (size_t before = open.size() + 1; !open.empty() && open.size() < before;) {
      before = open.size();
      std::erase_if(open, [this](const PodTarget& move) { return MoveIfFree(move); });
    }
    return open.empty();
  }

  // Each set of those that have moved is tried once.
  bool MoveFrom(uint32_t moved) {
    if (ordered_.size() == moves_.size()) return true;
    *budget_ -= static_cast<int64_t>(moves_.size());
    if (*budget_ <= 0 || !tried_.insert(moved).second) return false;
    for (size_t i = 0; i < moves_.size(); ++i) {
      const ClusterState::Mark mark = state_.GetMark();
      if (((moved >> i) & 1) != 0 || !MoveIfFree(moves_[i])) continue;
      if (MoveFrom(moved | (uint32_t{1} << i))) return true;
      ordered_.pop_back();
      state_.RollBack(mark);
    }
    return false;
  }

  ClusterState& state_;
  const std::vector<PodTarget> moves_;
  int64_t* const budget_;
  std::vector<PodTarget> ordered_;
  absl::flat_hash_set<uint32_t> tried_;
};

}  // namespace

std::optional<std::vector<PodTarget>> InOrder(ClusterState& state, std::vector<PodTarget> moves,
                                              int64_t* budget) {
  std::ranges::sort(moves, {}, &PodTarget::pod);
  return MoveOrder(state, std::move(moves), budget).Find();
}

}  // namespace tessera
