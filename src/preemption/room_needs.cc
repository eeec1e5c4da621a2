// What a claimant needs before its place is known, by the parts that may make up its minimum.

#include <algorithm>

#include "src/preemption/room_planner.h"

namespace tessera {

// The next unit of a gang that grows is at least a pod of one of its sets.
ClaimantNeed RoomPlanner::NeedOfClaimant() const {
  ClaimantNeed need;
  need.resources.resize(kMaxResources);
  if (!grows_) need.least = LeastNeedBelow(0);
  const WorkloadInfo& info = snapshot_.info(w_);
  bool any = false;
  for (int i = info.first_pod_set; i < info.first_pod_set + info.num_pod_sets; ++i) {
    const PodSetId s(i);
    const bool lacks = state_.standing(s) < snapshot_.pod_set(s).min_count;
    if (!grows_ && lacks) AddResources(s, need.resources);
    if (!grows_ || state_.placeable(s) == 0) continue;
    AddResources(s, need.resources);
    const ResourceVector one =
        ExpectedCharge(snapshot_, snapshot_.pod_set(s).request_class, rules_.victims.mig_charge);
    for (int r = 0; r < kMaxResources; ++r) {
      need.least[r] = any ? std::min(need.least[r], one[r]) : one[r];
    }
    any = true;
  }
  return need;
}

// --- Parts that make up the minimum -----------------------------------------

bool RoomPlanner::Holds(int g) const {
  const GangNode& node = snapshot_.gang(w_)[static_cast<size_t>(g)];
  if (node.is_pod_set()) {
    const PodSetId s(snapshot_.info(w_).first_pod_set + node.pod_set);
    return state_.standing(s) >= snapshot_.pod_set(s).min_count;
  }
  int holding = 0;
  for (int c = node.first_child; c < node.first_child + node.num_children; ++c) {
    holding += snapshot_.gang(w_)[static_cast<size_t>(c)].after < 0 && Holds(c) ? 1 : 0;
  }
  return holding >= node.min_children;
}

// The pod sets that would make up the minimum below `g`, in every way; `kMostChoices` or more
// stand for too many.
std::vector<RoomPlanner::Choice> RoomPlanner::ChoicesBelow(int g) const {
  const GangNode& node = snapshot_.gang(w_)[static_cast<size_t>(g)];
  if (Holds(g)) return {{}};
  if (node.is_pod_set()) return {{node.pod_set}};
  int missing = node.min_children;
  for (int c = node.first_child; c < node.first_child + node.num_children; ++c) {
    missing -= snapshot_.gang(w_)[static_cast<size_t>(c)].after < 0 && Holds(c) ? 1 : 0;
  }
  std::vector<Choice> choices;
  AddChoices(g, node.first_child, missing, {}, choices);
  return choices;
}

// `missing` of the children of `g` from `child` on, beside what is `chosen`.
void RoomPlanner::AddChoices(int g, int child, int missing, const Choice& chosen,
                             std::vector<Choice>& choices) const {
  const GangNode& node = snapshot_.gang(w_)[static_cast<size_t>(g)];
  if (missing == 0) choices.push_back(chosen);
  const int end = node.first_child + node.num_children;
  for (int c = child; c < end && missing > 0 && choices.size() < kMostChoices; ++c) {
    if (snapshot_.gang(w_)[static_cast<size_t>(c)].after >= 0 || Holds(c)) continue;
    for (const Choice& below : ChoicesBelow(c)) {
      Choice more = chosen;
      more.insert(more.end(), below.begin(), below.end());
      AddChoices(g, c + 1, missing - 1, more, choices);
    }
  }
}

// None where all choices need the same resources.
std::vector<RoomPlanner::Choice> RoomPlanner::ChoicesThatMatter() const {
  if (grows_ || rules_.victims.reclaim != ReclaimTest::kEntitlement) return {};
  std::vector<Choice> choices = ChoicesBelow(0);
  const auto needs_all = [this](const Choice& choice) {
    return NeedOf(choice).resources == need_.resources;
  };
  if (std::ranges::all_of(choices, needs_all)) return {};
  return choices;
}

// Whether the claimant needs these resources wherever it is placed: all but those of a GPU
// model are asked for by every pod of a set alike.
bool RoomPlanner::IsCertain(const ClaimantNeed& need) const {
  for (int r = 0; r < snapshot_.resources().size(); ++r) {
    const bool of_model = !snapshot_.resources().gpu_model(r).empty();
    if (of_model && need.resources[static_cast<size_t>(r)] && need.least[r] == 0) return false;
  }
  return true;
}

ClaimantNeed RoomPlanner::NeedOf(const Choice& choice) const {
  ClaimantNeed need;
  need.resources.resize(kMaxResources);
  for (int set : choice) {
    const PodSetId s(snapshot_.info(w_).first_pod_set + set);
    const PodSetInfo& info = snapshot_.pod_set(s);
    AddResources(s, need.resources);
    need.least += ExpectedCharge(snapshot_, info.request_class, rules_.victims.mig_charge) *
                  (info.min_count - state_.standing(s));
  }
  return need;
}

// What the minimum below `g` is charged at least; nothing where a choice of parts suffices.
ResourceVector RoomPlanner::LeastNeedBelow(int g) const {
  const std::span<const GangNode> gang = snapshot_.gang(w_);
  const GangNode& node = gang[static_cast<size_t>(g)];
  if (node.is_pod_set()) {
    const PodSetId s(snapshot_.info(w_).first_pod_set + node.pod_set);
    const PodSetInfo& set = snapshot_.pod_set(s);
    const int lacking = std::max(set.min_count - state_.standing(s), 0);
    return ExpectedCharge(snapshot_, set.request_class, rules_.victims.mig_charge) * lacking;
  }
  ResourceVector sum;
  int independent = 0;
  for (int c = node.first_child; c < node.first_child + node.num_children; ++c) {
    if (gang[static_cast<size_t>(c)].after >= 0) continue;
    ++independent;
    sum += LeastNeedBelow(c);
  }
  return independent == node.min_children ? sum : ResourceVector();
}

// The resources that a pod of `s` may be charged, on whatever GPU model it ends. Those that
// repeat `gpu` count only where some queue has a quota of them: quotas in GPUs alone leave no
// queue entitled to the memory of its GPUs.
void RoomPlanner::AddResources(PodSetId s, std::vector<char>& resources) const {
  const RequestClass& request = snapshot_.request_class(snapshot_.pod_set(s).request_class);
  for (int r = 0; r < snapshot_.resources().size(); ++r) {
    const bool repeats_gpu = r == kGpuMemory || !snapshot_.resources().gpu_model(r).empty();
    const bool of_gpu = r == kGpu || repeats_gpu;
    const bool asked = of_gpu ? request.gpu.kind != GpuRequestKind::kNone : request.need[r] > 0;
    const bool counts = !repeats_gpu || snapshot_.queues().is_quota_governed(r);
    if (asked && counts) resources[static_cast<size_t>(r)] = 1;
  }
}

// What counts of what the claimant is really charged.
std::vector<char> RoomPlanner::ResourcesOf(const Draft& draft) const {
  ResourceVector charged;
  for (const auto& [p, placement] : draft.solution.placed) {
    const RequestClassId c = snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class;
    charged += ChargeOf(snapshot_, c, placement, rules_.victims.mig_charge);
  }
  std::vector<char> resources = need_.resources;
  for (int r = 0; r < kMaxResources; ++r) {
    if (charged[r] == 0) resources[static_cast<size_t>(r)] = 0;
  }
  return resources;
}

}  // namespace tessera
