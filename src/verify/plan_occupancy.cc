#include "src/verify/plan_occupancy.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "src/verify/text.h"

namespace tessera {
namespace {

size_t At(NodeId n) { return static_cast<size_t>(n.value()); }

}  // namespace

PlanOccupancy::PlanOccupancy(const Snapshot& snapshot, const PlanLayouts& layouts)
    : snapshot_(snapshot),
      layouts_(layouts),
      placements_(static_cast<size_t>(snapshot.num_pods())),
      held_(static_cast<size_t>(snapshot.num_nodes())),
      heads_(layouts.num_gpus(), -1),
      on_node_(static_cast<size_t>(snapshot.num_nodes())) {}

Isolation PlanOccupancy::isolation(PodId p) const {
  return snapshot_.workload(snapshot_.pod_set(snapshot_.pod_set_of(p)).workload).isolation;
}

int PlanOccupancy::tenant(PodId p) const {
  return snapshot_.info(snapshot_.pod_set(snapshot_.pod_set_of(p)).workload).tenant;
}

void PlanOccupancy::Add(PodId p, const PodPlacement& placement) {
  placements_[static_cast<size_t>(p.value())] = placement;
  Count(p, placement.node, 1);
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    int32_t& head = heads_[layouts_.index(placement.node, std::countr_zero(rest))];
    const Hold hold = {p, placement.share, placement.profile, placement.start, head};
    if (free_ < 0) {
      head = static_cast<int32_t>(pool_.size());
      pool_.push_back(hold);
      continue;
    }
    head = free_;
    Hold& reused = pool_[static_cast<size_t>(free_)];
    free_ = reused.next;
    reused = hold;
  }
}

void PlanOccupancy::Remove(PodId p) {
  PodPlacement& placement = placements_[static_cast<size_t>(p.value())];
  if (!placement.node.valid()) return;
  Count(p, placement.node, -1);
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    int32_t* link = &heads_[layouts_.index(placement.node, std::countr_zero(rest))];
    while (pool_[static_cast<size_t>(*link)].pod != p) {
      link = &pool_[static_cast<size_t>(*link)].next;
    }
    const int32_t gone = *link;
    *link = pool_[static_cast<size_t>(gone)].next;
    pool_[static_cast<size_t>(gone)].next = free_;
    free_ = gone;
  }
  placement = PodPlacement();
}

void PlanOccupancy::Count(PodId p, NodeId node, int sign) {
  const PodSetId s = snapshot_.pod_set_of(p);
  const PodSetInfo& set = snapshot_.pod_set(s);
  held_[At(node)] += snapshot_.request_class(set.request_class).need * sign;
  const int alone = isolation(p) == Isolation::kNodeAlone ? sign : 0;
  for (Tenants* count : {&on_node_[At(node)], &of_tenant_[{node, tenant(p)}]}) {
    count->pods += sign;
    count->alone += alone;
  }
  if (set.max_per_node > 0) of_pod_set_[{node, s}] += sign;
  if (set.max_per_domain > 0) {
    in_domain_[{snapshot_.topology().domain_of(node, set.domain_level), s}] += sign;
  }
}

bool PlanOccupancy::Overlaps(NodeId node, const Hold& hold, Instance instance) const {
  return hold.is_slice() &&
         Overlap(snapshot_.model(snapshot_.node_model(node)), {hold.profile, hold.start}, instance);
}

void PlanOccupancy::Judge(PodId p, const PodPlacement& placement,
                          std::vector<std::string>& problems) const {
  JudgeAmounts(p, placement.node, problems);
  JudgeCount(p, placement.node, problems);
  JudgeDomainCount(p, placement.node, problems);
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    JudgeGpu(p, placement, std::countr_zero(rest), problems);
  }
  JudgeTenants(p, placement.node, problems);
}

void PlanOccupancy::JudgeAmounts(PodId p, NodeId node, std::vector<std::string>& problems) const {
  const PodSetInfo& set = snapshot_.pod_set(snapshot_.pod_set_of(p));
  const ResourceVector& need = snapshot_.request_class(set.request_class).need;
  const ResourceSpace& resources = snapshot_.resources();
  for (int r = 0; r < resources.size(); ++r) {
    const int64_t left = snapshot_.node_capacity(node)[r] - held_[At(node)][r];
    if (need[r] <= 0 || need[r] <= left) continue;
    problems.push_back(absl::StrCat("needs ", AmountText(resources, r, need[r]), ", but ",
                                    snapshot_.node(node).name, " has ",
                                    AmountText(resources, r, left), " left"));
  }
}

void PlanOccupancy::JudgeCount(PodId p, NodeId node, std::vector<std::string>& problems) const {
  const PodSetId s = snapshot_.pod_set_of(p);
  const int max = snapshot_.pod_set(s).max_per_node;
  if (max == 0) return;
  const auto there = of_pod_set_.find({node, s});
  if (there == of_pod_set_.end() || there->second < max) return;
  problems.push_back(absl::StrCat("max_per_node is ", max, ", and ", snapshot_.node(node).name,
                                  " has ", there->second, " pods of the set"));
}

void PlanOccupancy::JudgeDomainCount(PodId p, NodeId node,
                                     std::vector<std::string>& problems) const {
  const PodSetId s = snapshot_.pod_set_of(p);
  const PodSetInfo& set = snapshot_.pod_set(s);
  if (set.max_per_domain == 0) return;
  const std::string& level = snapshot_.topology().levels()[static_cast<size_t>(set.domain_level)];
  const DomainId domain = snapshot_.topology().domain_of(node, set.domain_level);
  if (!domain.valid()) {
    problems.push_back(absl::StrCat("max_per_domain needs a ", level, ", and ",
                                    snapshot_.node(node).name, " is in none"));
    return;
  }
  const auto there = in_domain_.find({domain, s});
  if (there == in_domain_.end() || there->second < set.max_per_domain) return;
  problems.push_back(absl::StrCat(
      "max_per_domain is ", set.max_per_domain, ", and ", level, " ",
      snapshot_.topology().domains(set.domain_level)[static_cast<size_t>(domain.value())].path,
      " has ", there->second, " pods of the set"));
}

void PlanOccupancy::JudgeTenants(PodId p, NodeId node, std::vector<std::string>& problems) const {
  const Tenants& all = on_node_[At(node)];
  const auto own_entry = of_tenant_.find({node, tenant(p)});
  const Tenants own = own_entry == of_tenant_.end() ? Tenants() : own_entry->second;
  const bool wants_alone = isolation(p) == Isolation::kNodeAlone;
  const bool clash = wants_alone ? all.pods > own.pods : all.alone > own.alone;
  if (!clash) return;
  // Only for the message: which pod it is that stands in the way.
  for (int i = 0; i < snapshot_.num_pods(); ++i) {
    const PodId other(i);
    if (placement(other).node != node || tenant(other) == tenant(p)) continue;
    if (!wants_alone && isolation(other) != Isolation::kNodeAlone) continue;
    problems.push_back(absl::StrCat(
        "isolation node of ", wants_alone ? "its own workload" : "the other", " keeps it from ",
        snapshot_.node(node).name, ", where ", NameOf(snapshot_, other), " of another tenant is"));
    return;
  }
}

void PlanOccupancy::JudgeGpu(PodId p, const PodPlacement& placement, int gpu,
                             std::vector<std::string>& problems) const {
  int64_t shares = placement.share;
  std::string reason;
  FindHold(placement.node, gpu, [&](const Hold& hold) {
    shares += hold.share;
    reason = WhyNot(p, placement, hold);
    if (!reason.empty()) absl::StrAppend(&reason, " (", NameOf(snapshot_, hold.pod), ")");
    return !reason.empty();
  });
  if (reason.empty() && shares > kGpuUnitsPerDevice) {
    reason = absl::StrCat("has fractions that sum to ", shares, "/", kGpuUnitsPerDevice);
  }
  if (reason.empty()) return;
  problems.push_back(
      absl::StrCat("GPU ", gpu, " of ", snapshot_.node(placement.node).name, " ", reason));
}

// What keeps a pod at `placement` from sharing a GPU with `hold`; empty: nothing.
std::string PlanOccupancy::WhyNot(PodId p, const PodPlacement& placement, const Hold& hold) const {
  const Hold mine = {p, placement.share, placement.profile, placement.start, -1};
  if (hold.is_whole()) return "is held whole";
  if (mine.is_whole()) return "is not empty";
  if (mine.is_slice() != hold.is_slice()) {
    return hold.is_slice() ? "holds slices" : "holds fractions";
  }
  if (mine.is_slice() && Overlaps(placement.node, hold, {mine.profile, mine.start})) {
    return "has this slice held already";
  }
  if (tenant(p) == tenant(hold.pod)) return "";
  const Isolation least = mine.is_fraction() ? Isolation::kHardware : Isolation::kGpuAlone;
  if (std::max(isolation(p), isolation(hold.pod)) < least) return "";
  return absl::StrCat("is shared with another tenant against the isolation of ",
                      isolation(p) >= least ? "its own workload" : "the other");
}

}  // namespace tessera
