#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/verify/judge_outcome.h"

namespace tessera {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// The group of the gang that is `node` of the flat tree.
const PodGroup& GroupAt(const Snapshot& snapshot, WorkloadId w, int node) {
  if (node == 0) return snapshot.workload(w).gang;
  const int parent = snapshot.gang(w)[At(node)].parent;
  const PodGroup& above = GroupAt(snapshot, w, parent);
  const int child = node - snapshot.gang(w)[At(parent)].first_child;
  return above.groups[At(child) - above.pod_sets.size()];
}

// "group decode", "pod set router", "the gang".
std::string PartName(const Snapshot& snapshot, WorkloadId w, int node) {
  const GangNode& part = snapshot.gang(w)[At(node)];
  if (part.is_pod_set()) {
    const PodSetId s(snapshot.info(w).first_pod_set + part.pod_set);
    return absl::StrCat("pod set ", snapshot.pod_set_spec(s).name);
  }
  if (node == 0) return "the gang";
  return absl::StrCat("group ", GroupAt(snapshot, w, node).name);
}

void CountPods(const PlanReplay& replay, const PodSetInfo& set, GangStanding& standing) {
  for (int i = 0; i < set.count; ++i) {
    const PodId p = set.pod(i);
    const PodPhase phase = replay.phase(p);
    standing.up += replay.is_up(p);
    // What moves ran when it was told to, and what comes after it may have run on.
    standing.started += phase == PodPhase::kRunning || (replay.is_moved(p) && replay.is_up(p));
    standing.succeeded += phase == PodPhase::kSucceeded;
    standing.lost += replay.was_up(p) && !replay.is_up(p);
    standing.gained |= replay.is_new(p);
    standing.gained_bound |= replay.is_new(p) && phase == PodPhase::kRunning;
  }
  standing.holds = standing.up + standing.succeeded >= set.min_count;
  standing.holds_started = standing.started + standing.succeeded >= set.min_count;
}

void SumChildren(std::span<const GangNode> gang, const GangNode& group,
                 const std::vector<GangStanding>& standings, GangStanding& standing) {
  int holding = 0, holding_started = 0;
  for (int c = group.first_child; c < group.first_child + group.num_children; ++c) {
    const GangStanding& child = standings[At(c)];
    standing.up += child.up;
    standing.started += child.started;
    standing.succeeded += child.succeeded;
    standing.lost += child.lost;
    standing.gained |= child.gained;
    standing.gained_bound |= child.gained_bound;
    if (gang[At(c)].after >= 0) continue;
    holding += child.holds;
    holding_started += child.holds_started;
  }
  standing.holds = holding >= group.min_children;
  standing.holds_started = holding_started >= group.min_children;
}

std::string ShortOf(const Snapshot& snapshot, WorkloadId w, int node,
                    const std::vector<GangStanding>& standings) {
  const GangNode& part = snapshot.gang(w)[At(node)];
  if (part.is_pod_set()) {
    const GangStanding& standing = standings[At(node)];
    return absl::StrCat("has ", standing.up + standing.succeeded, " of the ",
                        snapshot.pod_sets(w)[At(part.pod_set)].min_count, " pods it needs");
  }
  std::vector<std::string> lacking;
  for (int c = part.first_child; c < part.first_child + part.num_children; ++c) {
    const bool counts = snapshot.gang(w)[At(c)].after < 0;
    if (counts && !standings[At(c)].holds) lacking.push_back(PartName(snapshot, w, c));
  }
  return absl::StrCat("needs ", part.min_children,
                      " of its parts, but these are below minimum: ", absl::StrJoin(lacking, ", "));
}

// Reports the smallest parts that got a pod and do not hold; what is around them
// does not hold either, or can do without.
void JudgeMinimums(const PlanReplay& replay, WorkloadId w,
                   const std::vector<GangStanding>& standings, ViolationList& violations) {
  const Snapshot& snapshot = replay.snapshot();
  const std::span<const GangNode> gang = snapshot.gang(w);
  std::vector<char> reported_below(gang.size(), false);
  for (size_t i = gang.size(); i > 0; --i) {
    const int node = static_cast<int>(i) - 1;
    const bool broken = standings[At(node)].gained && !standings[At(node)].holds;
    if (broken && !reported_below[At(node)]) {
      violations.Add(-1, absl::StrCat("workload ", snapshot.workload(w).name, ": ",
                                      PartName(snapshot, w, node), " got a pod, but ",
                                      ShortOf(snapshot, w, node, standings)));
    }
    const int parent = gang[At(node)].parent;
    if (parent >= 0) reported_below[At(parent)] |= broken || reported_below[At(node)];
  }
}

void JudgeAfter(const PlanReplay& replay, WorkloadId w, const std::vector<GangStanding>& standings,
                ViolationList& violations) {
  const Snapshot& snapshot = replay.snapshot();
  const std::span<const GangNode> gang = snapshot.gang(w);
  for (size_t i = 0; i < gang.size(); ++i) {
    const int after = gang[i].after;
    if (after < 0 || standings[i].up == 0) continue;
    const GangStanding& base = standings[At(after)];
    if (!standings[i].gained && base.lost == 0) continue;
    const bool must_run = standings[i].gained_bound;
    if (must_run ? base.holds_started : base.holds) continue;
    violations.Add(-1, absl::StrCat("workload ", snapshot.workload(w).name, ": ",
                                    PartName(snapshot, w, static_cast<int>(i)), " has ",
                                    must_run ? "a bound pod" : "pods", ", but ",
                                    PartName(snapshot, w, after), ", which it comes after, ",
                                    base.holds ? "is merely nominated" : "is below its minimum"));
  }
}

// Where the pods below a part of a gang are that requires one domain.
struct Spread {
  bool placed = false;  // the plan put one of them there
  NodeId first;         // of any
  NodeId other;         // of one in another domain, or in none
};

std::vector<Spread> SpreadOf(const PlanReplay& replay, WorkloadId w) {
  const Snapshot& snapshot = replay.snapshot();
  const std::span<const GangNode> gang = snapshot.gang(w);
  std::vector<Spread> spreads(gang.size());
  for (int i = 0; i < snapshot.info(w).num_pods; ++i) {
    const PodId p(snapshot.info(w).first_pod + i);
    if (!replay.is_up(p)) continue;
    const NodeId n = replay.placement(p).node;
    const int leaf = snapshot.pod_set(snapshot.pod_set_of(p)).gang_node;
    for (int part = leaf; part >= 0; part = gang[At(part)].parent) {
      const int level = gang[At(part)].required_level;
      if (level < 0) continue;
      Spread& spread = spreads[At(part)];
      spread.placed |= replay.is_new(p) || replay.is_moved(p);
      if (!spread.first.valid()) spread.first = n;
      const DomainId domain = snapshot.topology().domain_of(n, level);
      const bool together =
          domain.valid() && domain == snapshot.topology().domain_of(spread.first, level);
      if (!together && !spread.other.valid()) spread.other = n;
    }
  }
  return spreads;
}

}  // namespace

std::vector<GangStanding> StandingOf(const PlanReplay& replay, WorkloadId w) {
  const Snapshot& snapshot = replay.snapshot();
  const std::span<const GangNode> gang = snapshot.gang(w);
  std::vector<GangStanding> standings(gang.size());
  // Children have higher numbers than their parents.
  for (size_t i = gang.size(); i > 0; --i) {
    const GangNode& node = gang[i - 1];
    if (node.is_pod_set()) {
      CountPods(replay, snapshot.pod_sets(w)[At(node.pod_set)], standings[i - 1]);
    } else {
      SumChildren(gang, node, standings, standings[i - 1]);
    }
  }
  return standings;
}

void JudgeGangs(const PlanReplay& replay, ViolationList& violations) {
  for (int i = 0; i < replay.snapshot().num_workloads() && !violations.full(); ++i) {
    const WorkloadId w(i);
    const std::vector<GangStanding> standings = StandingOf(replay, w);
    JudgeMinimums(replay, w, standings, violations);
    JudgeAfter(replay, w, standings, violations);
  }
}

void JudgeTopology(const PlanReplay& replay, ViolationList& violations) {
  const Snapshot& snapshot = replay.snapshot();
  for (int i = 0; i < snapshot.num_workloads() && !violations.full(); ++i) {
    const WorkloadId w(i);
    const std::span<const GangNode> gang = snapshot.gang(w);
    const auto is_tied = [](const GangNode& node) { return node.required_level >= 0; };
    if (std::ranges::none_of(gang, is_tied)) continue;
    const std::vector<Spread> spreads = SpreadOf(replay, w);
    for (size_t part = 0; part < gang.size(); ++part) {
      const Spread& spread = spreads[part];
      if (!spread.placed || !spread.other.valid()) continue;
      const std::string& level = snapshot.topology().levels()[At(gang[part].required_level)];
      violations.Add(
          -1, absl::StrCat("workload ", snapshot.workload(w).name, ": ",
                           PartName(snapshot, w, static_cast<int>(part)), " is not in one ", level,
                           ": ", snapshot.node(spread.first).name, ", ",
                           snapshot.node(spread.other).name));
    }
  }
}

}  // namespace tessera
