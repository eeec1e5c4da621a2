#include "tessera/placement/finders.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "src/placement/candidates.h"

namespace tessera {
namespace {

// One walk over shelves: what a node must offer, and the shelves in order.
struct Stage {
  bool needs_share = false;  // of an opened GPU
  int min_free = 0;          // shelves below cannot serve
  int with_gpus = -1;        // 0: only nodes without GPUs, 1: only with, -1: both
};

// The stages of a request, packing; spreading walks them in another order.
std::vector<Stage> StagesOf(const GpuRequest& gpu) {
  switch (gpu.kind) {
    case GpuRequestKind::kNone:
      return {{.with_gpus = 0}, {.with_gpus = 1}};
    case GpuRequestKind::kWhole:
      return {{.min_free = gpu.devices}};
    case GpuRequestKind::kFraction:
    case GpuRequestKind::kDeviceMemory:
      // Several devices may be opened and free ones mixed: no single amount tells.
      if (gpu.devices > 1) return {{}};
      return {{.needs_share = true}, {.min_free = 1}};
    case GpuRequestKind::kProfile:
    case GpuRequestKind::kRequirement:
      break;  // by cost
  }
  return {};
}

class Walk {
 public:
  Walk(const ClusterState& state, const PodQuery& query, DevicePreference preference)
      : state_(state),
        query_(query),
        preference_(preference),
        class_(state.snapshot().pod_set(query.pod_set).request_class),
        request_(state.snapshot().request_class(class_)) {
    const std::span<const int64_t> need = state.tables().need(class_);
    need_.assign(need.begin(), need.end());
  }

  std::optional<PodPlacement> Run() {
    return request_.gpu.is_slice() ? CheapestSlice() : Run(StagesOf(request_.gpu));
  }

  std::optional<PodPlacement> Run(std::vector<Stage> stages) {
    const int top = state_.index().num_shelves() - 1;
    const bool pack = preference_ == DevicePreference::kPack;
    // Spreading prefers to open a free GPU.
    if (!pack && request_.gpu.is_shared()) std::ranges::reverse(stages);
    for (const Stage& stage : stages) {
      const int low = stage.min_free, high = top;
      for (int i = 0; i <= high - low; ++i) {
        const int shelf = pack ? low + i : high - i;
        if (std::optional<PodPlacement> found = OnShelf(stage, shelf)) return found;
      }
    }
    return std::nullopt;
  }

 private:
  // The cheapest slice of all; at equal cost by shelf, then the lowest node.
  std::optional<PodPlacement> CheapestSlice() {
    const int top = state_.index().num_shelves() - 1;
    const size_t column = state_.tables().slice_column(class_);
    const bool known =
        !state_.tables().tracks_tenants() && !state_.snapshot().pod_set(query_.pod_set).is_spread();
    const auto value = [&](NodeId n) { return known ? state_.room(n)[column] : ValueOf(n); };
    ClusterState::ValuedNode best{NodeId(), INT64_MIN};
    for (int i = 0; i <= top; ++i) {
      const int shelf = preference_ == DevicePreference::kPack ? i : top - i;
      ClusterState::ValuedNode here = best;
      for (int s : state_.tables().eligible(class_)) {
        if (!Considers(s, shelf)) continue;
        // Nodes of another signature may lie before the one found.
        const bool tie_counts = here.node.valid() && here.value > best.value;
        const auto found = state_.FindBestNode(s, shelf, query_.range, need_, column,
                                               here.value - (tie_counts ? 1 : 0), value);
        if (!found.node.valid()) continue;
        if (found.value > here.value || found.node < here.node) here = found;
      }
      best = here;
    }
    if (!best.node.valid()) return std::nullopt;
    return ChooseDevices(state_, query_, best.node, preference_);
  }

  // What the slice would really cost on `n`, negated.
  int64_t ValueOf(NodeId n) const {
    const auto place = ChooseDevices(state_, query_, n, preference_);
    if (!place) return INT64_MIN;
    const ModelFit& fit =
        request_.models[static_cast<size_t>(state_.snapshot().node_model(n).value())];
    return -state_.CheapestSlice(n, fit, place->gpus)->cost;
  }

  bool Considers(int s, int shelf) const {
    if (state_.index().count(s, shelf) == 0) return false;
    const ModelId m = state_.tables().signatures()[static_cast<size_t>(s)].model;
    return !m.valid() || ((query_.excluded_models >> m.value()) & 1) == 0;
  }

  // The lowest node on a shelf, over all signatures, whose devices suit.
  std::optional<PodPlacement> OnShelf(const Stage& stage, int shelf) {
    NodeRange range = query_.range;
    while (!range.empty()) {
      NodeId best;
      for (int s : state_.tables().eligible(class_)) {
        const NodeId n = FirstOf(stage, s, shelf, range);
        if (n.valid() && (!best.valid() || n < best)) {
          best = n;
          range.end = n.value();  // a later signature must do better
        }
      }
      if (!best.valid()) return std::nullopt;
      const auto found = ChooseDevices(state_, query_, best, preference_);
      if (found) return found;
      range = {NextAfter(best), query_.range.end};
    }
    return std::nullopt;
  }

  // The next node to look at: not one that has all its pods of the set, nor any of a
  // domain that has.
  int NextAfter(NodeId n) const {
    const PodSetInfo& set = state_.snapshot().pod_set(query_.pod_set);
    int next = n.value() + 1;
    if (!set.is_spread()) return next;
    const Topology& topology = state_.snapshot().topology();
    for (NodeId at = n; at.value() < query_.range.end; at = NodeId(next)) {
      if (at != n && state_.LeftOn(at, query_.pod_set) > 0) break;
      next = at.value() + 1;
      if (set.max_per_domain == 0) continue;
      const DomainId d = topology.domain_of(at, set.domain_level);
      if (d.valid() && state_.LeftIn(d, query_.pod_set) == 0) {
        next = topology.NodesOf(set.domain_level, d).end;
      }
    }
    return next;
  }

  NodeId FirstOf(const Stage& stage, int s, int shelf, NodeRange range) {
    if (!Considers(s, shelf)) return NodeId();
    const ModelId m = state_.tables().signatures()[static_cast<size_t>(s)].model;
    if (stage.with_gpus >= 0 && (stage.with_gpus == 1) != m.valid()) return NodeId();
    need_[state_.tables().share_column()] =
        stage.needs_share ? request_.models[static_cast<size_t>(m.value())].share
                          : NodeIndex::kNoNeed;
    return state_.FindNode(s, shelf, range, need_);
  }

  const ClusterState& state_;
  const PodQuery& query_;
  const DevicePreference preference_;
  const RequestClassId class_;
  const RequestClass& request_;
  absl::InlinedVector<int64_t, kMaxResources + 8> need_;
};

}  // namespace

std::optional<PodPlacement> FindPacked(const ClusterState& state, const PodQuery& query) {
  return Walk(state, query, DevicePreference::kPack).Run();
}

std::optional<PodPlacement> FindSpread(const ClusterState& state, const PodQuery& query) {
  return Walk(state, query, DevicePreference::kSpread).Run();
}

std::optional<PodPlacement> FindOnSharedGpu(const ClusterState& state, const PodQuery& query) {
  const RequestClassId c = state.snapshot().pod_set(query.pod_set).request_class;
  std::vector<Stage> stages = StagesOf(state.snapshot().request_class(c).gpu);
  if (stages.empty() || !stages.front().needs_share) return FindPacked(state, query);
  stages.resize(1);
  return Walk(state, query, DevicePreference::kPack).Run(std::move(stages));
}

std::optional<PodPlacement> FindBest(const ClusterState& state, const PodQuery& query,
                                     BatchScorer score, bool every_device) {
  const RequestClassId c = state.snapshot().pod_set(query.pod_set).request_class;
  std::vector<Candidate> candidates;
  for (int s : state.tables().eligible(c)) {
    const NodeSignature& signature = state.tables().signatures()[static_cast<size_t>(s)];
    const ModelId m = signature.model;
    if (m.valid() && ((query.excluded_models >> m.value()) & 1) != 0) continue;
    for (int32_t node : signature.nodes) {
      if (query.range.contains(NodeId(node))) {
        placement_internal::AddCandidates(state, query, NodeId(node), every_device, candidates);
      }
    }
  }
  if (candidates.empty()) return std::nullopt;
  std::vector<int64_t> scores(candidates.size());
  score(candidates, scores);
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i) {
    const bool better = scores[i] > scores[best] ||
                        (scores[i] == scores[best] && candidates[i].node < candidates[best].node);
    if (better) best = i;
  }
  return candidates[best].placement;
}

}  // namespace tessera
