#include "src/preemption/move_rules.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/placement/pod_query.h"

namespace tessera {

MoveRules::MoveRules(const Snapshot& snapshot)
    : tables_(std::make_shared<const StateTables>(snapshot)),
      state_(tables_, {.nominated = true, .releasing = true}) {
  state_.Commit();
}

bool MoveRules::IsTied(const PodSetInfo& set) const {
  const std::span<const GangNode> gang = tables_->snapshot().gang(set.workload);
  for (int part = set.gang_node; part >= 0; part = gang[static_cast<size_t>(part)].parent) {
    if (gang[static_cast<size_t>(part)].required_level >= 0) return true;
  }
  return false;
}

// Whether `p`, which is nowhere in the state, may go to `target`.
bool MoveRules::IsAllowed(PodId p, const PodPlacement& target) const {
  const Snapshot& snapshot = tables_->snapshot();
  const PodSetId s = snapshot.pod_set_of(p);
  const RequestClassId c = snapshot.pod_set(s).request_class;
  const ModelFit& fit = snapshot.request_class(c)
                            .models[static_cast<size_t>(snapshot.node_model(target.node).value())];
  if (!fit.fits || !fit.Accepts(target.profile)) return false;
  if (tables_->eligibility(c, tables_->signature_of(target.node)) != Eligibility::kEligible) {
    return false;
  }
  return IsFree(state_, s, target);
}

bool MoveRules::MayMove(PodId p) {
  const PodSetInfo& set = tables_->snapshot().pod_set(tables_->snapshot().pod_set_of(p));
  if (!tables_->snapshot().workload(set.workload).is_movable() || IsTied(set)) return false;
  // On a like slice of its node it has the room that it has now, unless the node holds
  // more than it should.
  const PodPlacement home = state_.placement(p);
  const ClusterState::Mark mark = state_.GetMark();
  state_.Remove(p);
  const bool allowed = IsAllowed(p, home);
  state_.RollBack(mark);
  return allowed;
}

std::optional<size_t> MoveRules::FirstOffence(const SliceView& view,
                                              std::span<const InstanceMove> moves) {
  const Snapshot& snapshot = tables_->snapshot();
  const ClusterState::Mark mark = state_.GetMark();
  std::vector<WorkloadId> disrupted;
  std::optional<size_t> offence;
  for (size_t i = 0; i < moves.size() && !offence; ++i) {
    const InstanceMove& move = moves[i];
    const PodId p = HolderOf(view, move.from_gpu, move.from);
    const GpuSpot& to = view.spots[static_cast<size_t>(move.to_gpu)];
    PodPlacement target;
    target.node = to.node;
    target.gpus = uint64_t{1} << to.gpu;
    target.profile = static_cast<int16_t>(move.from.profile);
    target.start = static_cast<int16_t>(move.to_start);
    const WorkloadId w = snapshot.pod_set(snapshot.pod_set_of(p)).workload;
    disrupted.push_back(w);
    const std::optional<int> most = snapshot.workload(w).max_disrupted;
    const bool too_many = most && std::ranges::count(disrupted, w) > *most;
    state_.Remove(p);
    if (too_many || !IsAllowed(p, target)) {
      offence = i;
    } else {
      state_.Place(p, target);
    }
  }
  state_.RollBack(mark);
  return offence;
}

PodId HolderOf(const SliceView& view, int gpu, const Instance& instance) {
  const std::vector<BusyInstance>& busy = view.gpus[static_cast<size_t>(gpu)].busy;
  const auto it = std::ranges::find(busy, instance, &BusyInstance::instance);
  return view.holders[static_cast<size_t>(gpu)][static_cast<size_t>(it - busy.begin())];
}

absl::Status MarkMovable(MoveRules& rules, const Snapshot& snapshot,
                         const std::function<int64_t(PodId)>& cost_of, SliceView& view) {
  struct Candidate {
    PodId pod;
    BusyInstance* busy;
  };
  std::vector<Candidate> candidates;
  for (size_t g = 0; g < view.gpus.size(); ++g) {
    SlicedGpu& gpu = view.gpus[g];
    for (size_t b = 0; b < gpu.busy.size() && gpu.may_change; ++b) {
      const PodId p = view.holders[g][b];
      if (p.valid() && rules.MayMove(p)) candidates.push_back({p, &gpu.busy[b]});
    }
  }
  std::ranges::sort(candidates, {}, &Candidate::pod);
  for (const auto& [pod, busy] : candidates) {
    busy->movable = true;
    busy->cost = cost_of ? cost_of(pod) : 1;
    if (busy->cost >= 0 && busy->cost <= kMaxMoveCost) continue;
    const PodRef ref = snapshot.pod_ref(pod);
    return InvalidAt("cost_of",
                     absl::StrCat("moving ", ref.workload, "/", ref.pod_set, "/", ref.index,
                                  " costs ", busy->cost, ", which is not in 0..", kMaxMoveCost));
  }
  return absl::OkStatus();
}

}  // namespace tessera
