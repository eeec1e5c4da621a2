// Which domains an exact search tries, and which of them are alike.

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "src/placement/exact_search.h"

namespace tessera {
namespace {

bool IsWithin(NodeRange inner, NodeRange outer) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

}  // namespace

int ExactSearch::Missing(int g) const {
  return std::max(view_.set(g).min_count - view_.Standing(g), 0);
}

// Whether the counts below `g`, its own level apart, allow its minimum in `range`.
// Never wrong with "no".
bool ExactSearch::MayMeet(int g, NodeRange range) {
  if (view_.Holds(g)) return true;
  if (view_.at(g).is_pod_set()) {
    const int need = Missing(g);
    return need <= static_cast<int>(missing_[At(g)].size()) &&
           need <= classes_->MostIn(classes_->type_of(g), range);
  }
  const auto [known, inserted] = may_meet_.try_emplace({g, range.begin, range.end}, false);
  if (!inserted) return known->second;
  int may = 0;
  for (int c = view_.first_child(g); c < view_.end_child(g); ++c) {
    if (view_.at(c).after < 0 && MayHold(c, range)) ++may;
  }
  return known->second = may >= view_.at(g).min_children;
}

// The same with the level that `g` requires.
bool ExactSearch::MayHold(int g, NodeRange range) {
  if (view_.Holds(g)) return true;
  if (view_.at(g).required_level < 0) return MayMeet(g, range);
  for (const Candidate& candidate : CandidatesOf(g, range)) {
    if (MayMeet(g, candidate.nodes)) return true;
  }
  return false;
}

// The domains that `g` may have in `range`, fewest free GPUs first.
std::vector<ExactSearch::Candidate> ExactSearch::CandidatesOf(int g, NodeRange range) const {
  const int level = view_.at(g).required_level;
  const Topology& topology = snapshot_.topology();
  std::vector<Candidate> candidates;
  const auto add = [&](int d, NodeRange nodes) {
    if (!nodes.empty()) candidates.push_back({nodes, {state_.free_gpus(level, DomainId(d)), d}});
  };
  const NodeRange occupied = view_.Occupied(g);
  if (!occupied.empty()) {
    const DomainId d = topology.domain_of(NodeId(occupied.begin), level);
    if (!d.valid()) return candidates;
    const NodeRange nodes = topology.NodesOf(level, d);
    if (occupied.end <= nodes.end) add(d.value(), Intersect(range, nodes));
    return candidates;
  }
  if (range.empty()) return candidates;
  const DomainId around = topology.domain_of(NodeId(range.begin), level);
  if (around.valid() && IsWithin(range, topology.NodesOf(level, around))) {
    add(around.value(), range);
    return candidates;
  }
  const NodeRange within = topology.DomainsWithin(level, range);
  for (int d = within.begin; d < within.end; ++d) add(d, topology.domains(level)[At(d)].nodes);
  std::ranges::sort(candidates, {}, &Candidate::order);
  return candidates;
}

// The domains of `range` for a leaf that has a bound in each, those that are alike
// side by side.
std::vector<ExactSearch::Share> ExactSearch::SharesOf(int leaf, NodeRange range) {
  const int level = view_.set(leaf).domain_level;
  const int type = classes_->type_of(leaf);
  const std::span<const TopologyDomain> domains = snapshot_.topology().domains(level);
  std::vector<Share> shares;
  for (size_t d = 0; d < domains.size(); ++d) {
    const NodeRange nodes = Intersect(range, domains[d].nodes);
    if (nodes.empty()) continue;
    const int64_t most = classes_->MostIn(type, nodes);
    if (most == 0) continue;
    const int left = classes_->LeftIn(type, DomainId(static_cast<int32_t>(d)));
    shares.push_back({nodes, static_cast<int>(std::min<int64_t>(most, Missing(leaf))),
                      absl::StrCat(LikenessOf(level, nodes), "/", left)});
  }
  std::ranges::stable_sort(shares, {}, &Share::likeness);
  return shares;
}

// Equal for domains that can take each other's place in all that is still to be
// chosen: their nodes are of the same classes, grouped alike on the levels that
// the gang requires, and nothing is chosen inside or around only one of them. Domains
// of which the gang may yet choose one around are told apart by it.
std::string ExactSearch::LikenessOf(int level, NodeRange nodes) {
  std::string likeness = ContentOf(level, nodes);
  for (int outer : levels_) {
    if (outer >= level) break;
    const DomainId around = snapshot_.topology().domain_of(NodeId(nodes.begin), outer);
    absl::StrAppend(&likeness, "^", around.value());
  }
  const auto touch = [&](NodeRange other, int number) {
    const NodeRange common = Intersect(other, nodes);
    if (common.empty()) return;
    if (IsWithin(nodes, other) && other != nodes) {
      absl::StrAppend(&likeness, "<", number);
    } else {
      absl::StrAppend(&likeness, "=", nodes.begin);
    }
  };
  for (size_t i = 0; i < wants_.size(); ++i) touch(wants_[i].demand.range, static_cast<int>(i));
  for (size_t i = 0; i < anchors_.size(); ++i) touch(anchors_[i], -1 - static_cast<int>(i));
  return likeness;
}

// The classes of the nodes, by domain of the levels below `level` that matter.
const std::string& ExactSearch::ContentOf(int level, NodeRange nodes) {
  const auto [known, inserted] = contents_.try_emplace({level, nodes.begin, nodes.end});
  if (!inserted) return known->second;
  const auto inner = std::ranges::upper_bound(levels_, level);
  std::vector<std::string> parts;
  const auto add_classes = [&](int begin, int end) {
    std::map<int, int> counts;
    for (int n = begin; n < end; ++n) {
      const int c = classes_->class_of(n);
      if (c != NodeClasses::kNone) ++counts[c];
    }
    for (const auto& [c, count] : counts) parts.push_back(absl::StrCat(c, "*", count));
  };
  if (inner == levels_.end()) {
    add_classes(nodes.begin, nodes.end);
  } else {
    const std::span<const TopologyDomain> domains = snapshot_.topology().domains(*inner);
    const NodeRange within = snapshot_.topology().DomainsWithin(*inner, nodes);
    int outside = nodes.begin;
    std::vector<std::string> inside;
    for (int d = within.begin; d < within.end; ++d) {
      const NodeRange part = domains[At(d)].nodes;
      add_classes(outside, part.begin);
      inside.push_back(absl::StrCat("(", ContentOf(*inner, part), ")"));
      outside = part.end;
    }
    add_classes(outside, nodes.end);
    std::ranges::sort(inside);
    parts.insert(parts.end(), inside.begin(), inside.end());
  }
  std::string content;
  for (const std::string& part : parts) absl::StrAppend(&content, part, ",");
  return contents_[{level, nodes.begin, nodes.end}] = std::move(content);
}

// Notes for `g` and what is below what is equal for siblings that lack the same in
// the same way.
std::string ExactSearch::MakeSignature(int g) {
  std::string signature = absl::StrCat("L", view_.at(g).required_level);
  bool alone = !view_.Occupied(g).empty();
  if (view_.Holds(g)) {
    signature = "holds";
  } else if (view_.at(g).is_pod_set()) {
    const PodSetInfo& set = view_.set(g);
    // Pods that are leaving a node take from the bound there.
    alone |= set.is_spread() && !snapshot_.releasing().empty();
    absl::StrAppend(&signature, "c", set.request_class.value(), "m", set.max_per_node, "d",
                    set.domain_level, "x", set.max_per_domain, "n", Missing(g),
                    static_cast<int>(missing_[At(g)].size()) < Missing(g) ? "x" : "");
  } else {
    absl::StrAppend(&signature, "k", view_.at(g).min_children, "(");
    for (int c = view_.first_child(g); c < view_.end_child(g); ++c) {
      if (view_.at(c).after < 0) absl::StrAppend(&signature, MakeSignature(c), ",");
    }
    signature += ")";
  }
  if (alone) absl::StrAppend(&signature, "#", g);
  return signatures_[At(g)] = signature;
}

}  // namespace tessera
