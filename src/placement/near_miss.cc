#include "tessera/placement/near_miss.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/placement/gang_view.h"
#include "src/placement/node_classes.h"
#include "src/placement/short_of.h"
#include "tessera/placement/diagnosis.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/resources/quantity.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

constexpr size_t kNodesTried = 16;
// Counting pods of several kinds on one node is a search; this is ample for one node.
constexpr int64_t kBudget = 1000000;

int Missing(const GangView& view, int leaf) {
  return std::max(view.set(leaf).min_count - view.Standing(leaf), 0);
}

// The leaves without which the minimum below `g` cannot be.
void CollectNecessary(const GangView& view, int g, std::vector<int>& leaves) {
  if (view.Holds(g)) return;
  if (view.at(g).is_pod_set()) {
    leaves.push_back(g);
    return;
  }
  int independent = 0;
  for (int c = view.first_child(g); c < view.end_child(g); ++c) {
    independent += view.at(c).after < 0 ? 1 : 0;
  }
  if (independent > view.at(g).min_children) return;
  for (int c = view.first_child(g); c < view.end_child(g); ++c) {
    if (view.at(c).after < 0) CollectNecessary(view, c, leaves);
  }
}

// Parts of the gang that a domain is chosen for: the gang, then those that require a
// level and are needed, from the root down.
void CollectParts(const GangView& view, std::vector<int>& parts) {
  std::vector<int> open = {0};
  for (size_t i = 0; i < open.size(); ++i) {
    const int g = open[i];
    if (view.Holds(g)) continue;
    if (i == 0 || view.at(g).required_level >= 0) parts.push_back(g);
    if (view.at(g).is_pod_set()) continue;
    for (int c = view.first_child(g); c < view.end_child(g); ++c) {
      if (view.at(c).after < 0) open.push_back(c);
    }
  }
}

// What a domain lacks, to compare domains: GPUs, then pods.
std::pair<int64_t, int64_t> GapOf(const GangView& view, const NodeClasses& classes,
                                  const std::vector<int>& leaves, NodeRange range) {
  std::pair<int64_t, int64_t> gap{0, 0};
  for (int leaf : leaves) {
    const int64_t lacking = Missing(view, leaf) - classes.MostIn(classes.type_of(leaf), range);
    if (lacking <= 0) continue;
    const GpuRequest& gpu = view.gpu(leaf);
    gap.first += lacking * (gpu.kind == GpuRequestKind::kNone ? 0 : std::max(gpu.devices, 1));
    gap.second += lacking;
  }
  return gap;
}

std::string Pods(int64_t count) {
  return absl::StrCat(WithThousands(count), count == 1 ? " pod" : " pods");
}

// "8 GPUs", "50% of a GPU", "a 1g.10gb", "4 cores".
std::string Ask(const Request& request) {
  const GpuRequest& gpu = request.gpu;
  switch (gpu.kind) {
    case GpuRequestKind::kWhole:
      return absl::StrCat(gpu.devices, gpu.devices == 1 ? " GPU" : " GPUs");
    case GpuRequestKind::kFraction:
    case GpuRequestKind::kDeviceMemory: {
      const std::string part =
          gpu.kind == GpuRequestKind::kDeviceMemory
              ? FormatBytes(gpu.memory)
              : absl::StrCat(FormatQuantity(gpu.share, kGpuUnitsPerDevice, Rounding::kUp));
      return gpu.devices == 1 ? absl::StrCat(part, " of a GPU")
                              : absl::StrCat(part, " of each of ", gpu.devices, " GPUs");
    }
    case GpuRequestKind::kProfile:
      return absl::StrCat("a slice ", absl::StrJoin(gpu.profiles, " or "));
    case GpuRequestKind::kRequirement:
      return absl::StrCat("a slice of ", FormatBytes(gpu.requirement.memory));
    case GpuRequestKind::kNone:
      break;
  }
  return absl::StrCat(FormatQuantity(request.cpu, kMillisPerCore, Rounding::kUp), " cores");
}

// "n4 would take 1 more without 2 pods of \"train\" on 4 GPUs".
std::string DescribeNode(const Snapshot& snapshot, const NodeToFree& node) {
  std::map<std::string, int> by_workload;
  for (PodId p : node.pods) ++by_workload[snapshot.pod_ref(p).workload];
  std::vector<std::string> holders;
  for (const auto& [workload, pods] : by_workload) {
    holders.push_back(absl::StrCat(Pods(pods), " of \"", workload, "\""));
  }
  std::string text = absl::StrCat(snapshot.node(node.node).name, " would take ", node.gain,
                                  " more without ", absl::StrJoin(holders, " and "));
  if (node.gpus > 0) absl::StrAppend(&text, " on ", node.gpus, node.gpus == 1 ? " GPU" : " GPUs");
  return text;
}

// A part of the gang and the domain that comes nearest for it.
struct Part {
  int g = 0;
  std::vector<int> leaves;
  NodeRange range;
  DomainId domain;
  std::pair<int64_t, int64_t> gap;
};

// Every domain that `g` may have; one range of all nodes if it requires no level.
std::vector<std::pair<DomainId, NodeRange>> DomainsFor(const ClusterState& state,
                                                       const GangView& view, int g) {
  const Topology& topology = state.snapshot().topology();
  const int level = view.at(g).required_level;
  if (level < 0) return {{DomainId(), {0, state.snapshot().num_nodes()}}};
  const NodeRange occupied = view.Occupied(g);
  std::vector<std::pair<DomainId, NodeRange>> domains;
  for (size_t d = 0; d < topology.domains(level).size(); ++d) {
    const NodeRange nodes = topology.domains(level)[d].nodes;
    if (!occupied.empty() && !nodes.contains(NodeId(occupied.begin))) continue;
    domains.emplace_back(DomainId(static_cast<int32_t>(d)), nodes);
  }
  return domains;
}

// The nearest domain of the first part that fits none by its counts; if there is no
// such part, of the first that requires a level, or of the gang.
std::optional<Part> ChoosePart(const ClusterState& state, const GangView& view,
                               const NodeClasses& classes, const std::vector<int>& needed) {
  std::vector<int> parts;
  CollectParts(view, parts);
  std::optional<Part> chosen;
  for (int g : parts) {
    std::optional<Part> nearest;
    std::vector<int> leaves;
    CollectNecessary(view, g, leaves);
    // A part that the gang may do without says nothing about why it waits.
    std::erase_if(leaves,
                  [&](int leaf) { return std::ranges::find(needed, leaf) == needed.end(); });
    if (leaves.empty()) continue;
    for (const auto& [domain, range] : DomainsFor(state, view, g)) {
      const auto gap = GapOf(view, classes, leaves, range);
      if (!nearest || gap < nearest->gap) nearest = Part{g, leaves, range, domain, gap};
    }
    if (!nearest) continue;
    const bool binds = nearest->gap.second > 0;
    const bool better = !chosen || (view.at(chosen->g).required_level < 0);
    if (binds || better) chosen = nearest;
    if (binds) break;
  }
  return chosen;
}

// The pod set that lacks most in `range` stands for the part.
int WorstOf(const GangView& view, const NodeClasses& classes, const std::vector<int>& leaves,
            NodeRange range) {
  return *std::ranges::max_element(leaves, {},
                                   [&](int leaf) { return GapOf(view, classes, {leaf}, range); });
}

// The pod sets that the minimum cannot do without; none if too few of their pods are
// left, whatever the room.
std::vector<int> NeededLeaves(const ClusterState& state, const GangView& view) {
  std::vector<int> needed;
  CollectNecessary(view, 0, needed);
  const bool lost = std::ranges::any_of(
      needed, [&](int leaf) { return state.placeable(view.set_id(leaf)) < Missing(view, leaf); });
  if (lost || state.snapshot().num_nodes() == 0) needed.clear();
  return needed;
}

// What freed nodes gain together where the pod set is bounded in each domain.
class SpareBound {
 public:
  SpareBound(const ClusterState& state, const NodeClasses& classes, int type, PodSetId s,
             NodeRange range)
      : state_(state), classes_(classes), type_(type), s_(s), range_(range) {}

  // As much of `gain` on node `n` as the bound of its domain still allows.
  int Take(NodeId n, int gain) {
    const Topology& topology = state_.snapshot().topology();
    const int level = state_.snapshot().pod_set(s_).domain_level;
    if (level < 0) return gain;
    const DomainId d = topology.domain_of(n, level);
    const auto [spare, inserted] = spare_.try_emplace(d.value(), 0);
    if (inserted) {
      const NodeRange nodes = Intersect(range_, topology.NodesOf(level, d));
      spare->second = state_.LeftIn(d, s_) - classes_.MostIn(type_, nodes);
    }
    const int taken = static_cast<int>(std::min<int64_t>(gain, spare->second));
    spare->second -= taken;
    return taken;
  }

 private:
  const ClusterState& state_;
  const NodeClasses& classes_;
  const int type_;
  const PodSetId s_;
  const NodeRange range_;
  std::map<int, int64_t> spare_;  // by DomainId
};

}  // namespace

std::optional<NearMiss> NearMissFinder::Find(WorkloadId w) {
  const GangView view(state_, w);
  const std::vector<int> needed = NeededLeaves(state_, view);
  if (needed.empty()) return std::nullopt;
  int64_t budget = kBudget;
  const NodeRange all{0, state_.snapshot().num_nodes()};
  const NodeClasses classes(state_, view, needed, all, budget);
  const std::optional<Part> part = ChoosePart(state_, view, classes, needed);
  if (!part) return std::nullopt;
  const int worst = WorstOf(view, classes, part->leaves, part->range);
  NearMiss miss;
  miss.level = view.at(part->g).required_level;
  miss.domain = part->domain;
  miss.pod_set = view.set_id(worst);
  miss.needed = Missing(view, worst);
  miss.fits = classes.MostIn(classes.type_of(worst), part->range);
  miss.fits_anywhere = classes.MostIn(classes.type_of(worst), all);
  miss.together_only = part->gap.second == 0;
  if (!miss.together_only) AddNodesToFree(w, worst, classes, part->range, miss);
  return miss;
}

std::optional<RoomShortage> NearMissFinder::Certify(WorkloadId w) const {
  const GangView view(state_, w);
  const std::vector<int> needed = NeededLeaves(state_, view);
  if (needed.empty()) return std::nullopt;
  int64_t budget = kBudget;
  const NodeRange all{0, state_.snapshot().num_nodes()};
  const NodeClasses classes(state_, view, needed, all, budget);
  const std::optional<Part> part = ChoosePart(state_, view, classes, needed);
  if (!part || part->gap.second == 0 || classes.undecided()) return std::nullopt;
  RoomShortage shortage{view.at(part->g).required_level, {}};
  for (const auto& [domain, range] : DomainsFor(state_, view, part->g)) {
    const int leaf = WorstOf(view, classes, part->leaves, range);
    const PodSetId s = view.set_id(leaf);
    shortage.domains.push_back({domain, s, Missing(view, leaf),
                                classes.MostIn(classes.type_of(leaf), range),
                                ShortOf(state_, s, range)});
  }
  return shortage;
}

// The cheapest nodes that close the gap together, or all there are.
void NearMissFinder::AddNodesToFree(WorkloadId w, int leaf, const NodeClasses& classes,
                                    NodeRange range, NearMiss& miss) {
  const StateTables& tables = state_.tables();
  const RequestClassId c = state_.snapshot().pod_set(miss.pod_set).request_class;
  std::vector<std::pair<int, int>> nodes;  // most free GPUs first
  for (int n = range.begin; n < range.end; ++n) {
    const int signature = tables.signature_of(NodeId(n));
    if (tables.eligibility(c, signature) != Eligibility::kEligible) continue;
    nodes.emplace_back(-state_.free_gpus(NodeId(n)), n);
  }
  const size_t tried = std::min(nodes.size(), kNodesTried);
  std::ranges::partial_sort(nodes, nodes.begin() + static_cast<ptrdiff_t>(tried));
  nodes.resize(tried);
  std::vector<NodeToFree> found;
  for (const auto& entry : nodes) {
    std::optional<NodeToFree> node = TryToFree(w, leaf, NodeId(entry.second));
    if (node) found.push_back(*std::move(node));
  }
  std::ranges::sort(found, {}, [](const NodeToFree& node) {
    return std::tuple(node.gpus, node.pods.size(), node.node);
  });
  int64_t gap = miss.needed - miss.fits;
  SpareBound spare(state_, classes, classes.type_of(leaf), miss.pod_set, range);
  for (NodeToFree& node : found) {
    if (gap <= 0) break;
    node.gain = spare.Take(node.node, node.gain);
    if (node.gain == 0) continue;
    gap -= node.gain;
    miss.free.push_back(std::move(node));
  }
}

// The fewest pods, by inclusion, whose leaving makes room for one more on `n`.
std::optional<NodeToFree> NearMissFinder::TryToFree(WorkloadId w, int leaf, NodeId n) {
  std::vector<PodId> leaving = OthersOn(w, n);
  if (leaving.empty()) return std::nullopt;
  if (!copy_) copy_ = state_;
  const GangView view(*copy_, w);
  const auto room_without = [&](std::span<const PodId> pods) {
    const ClusterState::Mark mark = copy_->GetMark();
    for (PodId p : pods) copy_->Remove(p);
    const NodeRange only{n.value(), n.value() + 1};
    int64_t budget = kBudget;
    const int leaves[] = {leaf};
    const NodeClasses classes(*copy_, view, leaves, only, budget);
    const int64_t room = classes.MostIn(classes.type_of(leaf), only);
    copy_->RollBack(mark);
    return static_cast<int>(room);
  };
  const int now = room_without({});
  if (room_without(leaving) <= now) return std::nullopt;
  // Those that hold most are let stay first.
  for (size_t i = leaving.size(); i > 0; --i) {
    std::vector<PodId> fewer = leaving;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i) - 1);
    if (room_without(fewer) > now) leaving = std::move(fewer);
  }
  NodeToFree node{n, leaving, 0, room_without(leaving) - now};
  uint64_t gpus = 0;
  for (PodId p : leaving) gpus |= state_.placement(p).gpus;
  node.gpus = std::popcount(gpus);
  return node;
}

// Placed pods of other workloads on `n`, those that hold the fewest GPUs first.
std::vector<PodId> NearMissFinder::OthersOn(WorkloadId w, NodeId n) {
  const Snapshot& snapshot = state_.snapshot();
  if (first_on_.empty()) ListPods();
  std::vector<PodId> pods;
  for (int i = first_on_[At(n.value())]; i < first_on_[At(n.value()) + 1]; ++i) {
    const PodId p = by_node_[At(i)];
    if (snapshot.pod_set(snapshot.pod_set_of(p)).workload != w) pods.push_back(p);
  }
  std::ranges::stable_sort(pods, {},
                           [this](PodId p) { return std::popcount(state_.placement(p).gpus); });
  return pods;
}

void NearMissFinder::ListPods() {
  const Snapshot& snapshot = state_.snapshot();
  // Where the pods of a node end; filling the list from there downwards turns the ends into starts.
  first_on_.assign(At(snapshot.num_nodes()) + 1, 0);
  for (int i = 0; i < snapshot.num_pods(); ++i) {
    const NodeId n = state_.placement(PodId(i)).node;
    if (n.valid()) ++first_on_[At(n.value())];
  }
  std::partial_sum(first_on_.begin(), first_on_.end(), first_on_.begin());
  by_node_.resize(At(first_on_.back()));
  for (int i = snapshot.num_pods() - 1; i >= 0; --i) {
    const NodeId n = state_.placement(PodId(i)).node;
    if (n.valid()) by_node_[At(--first_on_[At(n.value())])] = PodId(i);
  }
}

std::string Describe(const ClusterState& state, const NearMiss& miss) {
  const Snapshot& snapshot = state.snapshot();
  const PodSet& set = snapshot.pod_set_spec(miss.pod_set);
  const std::string level = miss.level < 0 ? "" : snapshot.topology().levels()[At(miss.level)];
  std::string text = absl::StrCat("\"", set.name, "\" needs ", Pods(miss.needed), " of ",
                                  Ask(set.request), level.empty() ? "" : " in one " + level, "; ");
  if (level.empty()) {
    text += "the cluster";
  } else {
    absl::StrAppend(&text, level, " ",
                    snapshot.topology().domains(miss.level)[At(miss.domain.value())].path);
  }
  if (miss.together_only) {
    return text + " has room for each pod set alone, but not for all together";
  }
  absl::StrAppend(&text, " has room for ", WithThousands(miss.fits));
  constexpr size_t kMostNodes = 3;
  for (size_t i = 0; i < std::min(miss.free.size(), kMostNodes); ++i) {
    absl::StrAppend(&text, "; ", DescribeNode(snapshot, miss.free[i]));
  }
  if (miss.free.size() > kMostNodes) {
    absl::StrAppend(&text, "; and ", miss.free.size() - kMostNodes, " more nodes like these");
  }
  if (!level.empty() && miss.fits_anywhere >= miss.needed) {
    absl::StrAppend(&text, "; without the required ", level, " there is room");
  }
  return text;
}

std::string Describe(const ClusterState& state, const RoomShortage& shortage) {
  constexpr size_t kMostDomains = 8;
  const Snapshot& snapshot = state.snapshot();
  std::vector<Shortfall> named = shortage.domains;
  std::ranges::stable_sort(named, {}, [](const Shortfall& s) { return s.needed - s.fits; });
  named.resize(std::min(named.size(), kMostDomains));
  std::vector<std::string> texts;
  for (const Shortfall& s : named) {
    const PodSet& set = snapshot.pod_set_spec(s.pod_set);
    texts.push_back(absl::StrCat(
        shortage.level < 0 ? "the cluster"
                           : snapshot.topology().domains(shortage.level)[At(s.domain.value())].path,
        " takes ", WithThousands(s.fits), " of ", Pods(s.needed), " of \"", set.name, "\", ",
        s.short_of == Shortfall::kOwnBound
            ? std::string("which keeps its pods apart")
            : absl::StrCat("short of ", snapshot.resources().name(s.short_of))));
  }
  const size_t more = shortage.domains.size() - named.size();
  if (more > 0) texts.push_back(absl::StrCat("and ", more, " more that lack as many or more"));
  std::string text = absl::StrJoin(texts, "; ");
  if (shortage.level < 0) return text;
  return absl::StrCat("no ", snapshot.topology().levels()[At(shortage.level)], " has room",
                      text.empty() ? "" : ": ", text);
}

}  // namespace tessera
