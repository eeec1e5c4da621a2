#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "src/cluster/snapshot_builder.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

constexpr int kMaxGangDepth = 16;
constexpr int kMaxPodsPerSet = 1 << 24;
constexpr int kMaxPods = 1 << 30;

int DepthOf(const PodGroup& group, int bound) {
  int depth = 0;
  if (bound == 0) return 1;
  for (const PodGroup& child : group.groups) depth = std::max(depth, DepthOf(child, bound - 1));
  return depth + 1;
}

absl::Status CheckWorkload(const Workload& workload, const std::string& path) {
  const auto check = [&path](std::optional<int64_t> value, std::string_view field) {
    return value.value_or(0) >= 0
               ? absl::OkStatus()
               : InvalidAt(absl::StrCat(path, ".", std::string(field)), "is negative");
  };
  TESSERA_RETURN_IF_ERROR(check(workload.preemption_delay, "preemption_delay"));
  TESSERA_RETURN_IF_ERROR(check(workload.stale_grace, "stale_grace"));
  TESSERA_RETURN_IF_ERROR(check(workload.max_runtime, "max_runtime"));
  TESSERA_RETURN_IF_ERROR(check(workload.max_disrupted, "max_disrupted"));
  if (DepthOf(workload.gang, kMaxGangDepth) > kMaxGangDepth) {
    return InvalidAt(path + ".gang", absl::StrCat("nests deeper than ", kMaxGangDepth, " groups"));
  }
  return absl::OkStatus();
}

// The names of a group's children in the order of the flat tree.
std::vector<std::string_view> ChildNames(const PodGroup& group) {
  std::vector<std::string_view> names;
  for (const PodSet& set : group.pod_sets) names.push_back(set.name);
  for (const PodGroup& child : group.groups) names.push_back(child.name);
  return names;
}

absl::Status CheckChildren(const PodGroup& group, const std::string& path) {
  const std::vector<std::string_view> names = ChildNames(group);
  if (names.empty()) return InvalidAt(path, "has neither pod_sets nor groups");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    const size_t sets = group.pod_sets.size();
    const std::string where = i < sets ? absl::StrCat(path, ".pod_sets[", i, "].name")
                                       : absl::StrCat(path, ".groups[", i - sets, "].name");
    if (names[i].empty()) return InvalidAt(where, "is empty");
    if (!seen.insert(names[i]).second) {
      return InvalidAt(where,
                       absl::StrCat("\"", std::string(names[i]), "\" is the name of a sibling"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string SnapshotBuilder::WorkloadPath(WorkloadId w) const {
  return absl::StrCat("workloads[", workload_given_[static_cast<size_t>(w.value())], "]");
}

absl::Status SnapshotBuilder::SortWorkloads() {
  std::vector<Workload>& workloads = data_->spec.workloads;
  workload_given_.resize(workloads.size());
  std::iota(workload_given_.begin(), workload_given_.end(), 0);
  std::ranges::stable_sort(workload_given_, {}, [&workloads](int i) -> const std::string& {
    return workloads[static_cast<size_t>(i)].name;
  });
  std::vector<Workload> sorted;
  sorted.reserve(workloads.size());
  for (int given : workload_given_) {
    Workload& workload = workloads[static_cast<size_t>(given)];
    const std::string path = absl::StrCat("workloads[", given, "].name");
    if (workload.name.empty()) return InvalidAt(path, "is empty");
    if (!sorted.empty() && sorted.back().name == workload.name) {
      return InvalidAt(path,
                       absl::StrCat("\"", workload.name, "\" is the name of another workload"));
    }
    sorted.push_back(std::move(workload));
  }
  workloads = std::move(sorted);
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::ResolveWorkloads() {
  // Before tenants are collected: a workload's queue is its tenant by default.
  if (data_->spec.queues.empty()) {
    for (Workload& w : data_->spec.workloads) {
      if (w.queue.empty()) w.queue = "default";
    }
  }
  // Dense tenant ids are ranks by name.
  std::set<std::string_view> tenants;
  for (const Workload& w : data_->spec.workloads) tenants.insert(w.tenant_name());
  for (std::string_view name : tenants) {
    const int id = static_cast<int>(tenant_ids_.size());
    tenant_ids_[std::string(name)] = id;
  }
  for (size_t i = 0; i < data_->spec.workloads.size(); ++i) {
    TESSERA_RETURN_IF_ERROR(ResolveWorkload(WorkloadId(static_cast<int32_t>(i))));
  }
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::ResolveWorkload(WorkloadId w) {
  const Workload& workload = data_->spec.workloads[static_cast<size_t>(w.value())];
  const std::optional<QueueId> queue = data_->queues.Find(workload.queue);
  if (!queue) {
    std::vector<std::string_view> known;
    for (const Queue& q : data_->spec.queues) known.push_back(q.name);
    return InvalidAt(WorkloadPath(w) + ".queue",
                     absl::StrCat("no queue is named \"", workload.queue, "\"",
                                  DidYouMean(workload.queue, known)));
  }
  if (!data_->queues.is_leaf(*queue)) {
    return InvalidAt(
        WorkloadPath(w) + ".queue",
        absl::StrCat("\"", workload.queue, "\" has sub-queues; workloads run in leaves only"));
  }
  TESSERA_RETURN_IF_ERROR(CheckWorkload(workload, WorkloadPath(w)));
  WorkloadInfo info;
  info.queue = *queue;
  info.tenant = tenant_ids_.at(workload.tenant_name());
  info.first_gang_node = static_cast<int>(data_->gang_nodes.size());
  info.first_pod_set = static_cast<int>(data_->pod_sets.size());
  info.first_pod = static_cast<int>(data_->pod_phases.size());
  TESSERA_RETURN_IF_ERROR(FlattenGang(w, info));
  data_->workload_infos.push_back(info);
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::FlattenGang(WorkloadId w, WorkloadInfo& info) {
  const Gang& gang = data_->spec.workloads[static_cast<size_t>(w.value())].gang;
  if (!gang.after.empty()) {
    return InvalidAt(WorkloadPath(w) + ".gang.after", "a whole gang has no siblings");
  }
  struct Visit {
    const PodGroup* group;
    std::string path;
    int node;
  };
  std::vector<Visit> queue = {{&gang, WorkloadPath(w) + ".gang", 0}};
  data_->gang_nodes.emplace_back();
  for (size_t i = 0; i < queue.size(); ++i) {
    const Visit visit = queue[i];
    TESSERA_RETURN_IF_ERROR(AddGroupChildren(w, *visit.group, visit.path, info, visit.node));
    const GangNode& self =
        data_->gang_nodes[static_cast<size_t>(info.first_gang_node + visit.node)];
    const int first_group = self.first_child + static_cast<int>(visit.group->pod_sets.size());
    for (size_t g = 0; g < visit.group->groups.size(); ++g) {
      queue.push_back({&visit.group->groups[g], absl::StrCat(visit.path, ".groups[", g, "]"),
                       first_group + static_cast<int>(g)});
    }
  }
  info.num_gang_nodes = static_cast<int>(data_->gang_nodes.size()) - info.first_gang_node;
  info.num_pod_sets = static_cast<int>(data_->pod_sets.size()) - info.first_pod_set;
  info.num_pods = static_cast<int>(data_->pod_phases.size()) - info.first_pod;
  // Pods name their pod set without its group, so names are unique in a gang.
  std::set<std::string_view> names;
  for (int s = info.first_pod_set; s < info.first_pod_set + info.num_pod_sets; ++s) {
    const std::string& name = data_->pod_set_specs[static_cast<size_t>(s)]->name;
    if (names.insert(name).second) continue;
    return InvalidAt(WorkloadPath(w) + ".gang",
                     absl::StrCat("two pod sets are named \"", name, "\""));
  }
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::AddGroupChildren(WorkloadId w, const PodGroup& group,
                                               const std::string& path, WorkloadInfo& info,
                                               int self) {
  TESSERA_RETURN_IF_ERROR(CheckChildren(group, path));
  GangNode node = data_->gang_nodes[static_cast<size_t>(info.first_gang_node + self)];
  TESSERA_ASSIGN_OR_RETURN(node.required_level,
                           ResolveLevel(group.topology.required, path, "topology.required"));
  TESSERA_ASSIGN_OR_RETURN(node.preferred_level,
                           ResolveLevel(group.topology.preferred, path, "topology.preferred"));
  node.first_child = static_cast<int>(data_->gang_nodes.size()) - info.first_gang_node;
  for (size_t i = 0; i < group.pod_sets.size(); ++i) {
    TESSERA_RETURN_IF_ERROR(
        AddPodSet(w, group.pod_sets[i], absl::StrCat(path, ".pod_sets[", i, "]"), info, self));
  }
  for (size_t i = 0; i < group.groups.size(); ++i) {
    data_->gang_nodes.emplace_back().parent = self;
  }
  node.num_children = static_cast<int>(group.pod_sets.size() + group.groups.size());
  TESSERA_RETURN_IF_ERROR(LinkAfter(group, path, info.first_gang_node + node.first_child));
  int independent = 0;
  for (int c = 0; c < node.num_children; ++c) {
    const size_t child = static_cast<size_t>(info.first_gang_node + node.first_child + c);
    GangNode& target = data_->gang_nodes[child];
    if (target.after < 0) ++independent;
    if (target.after >= 0) target.after += node.first_child;
  }
  node.min_children = group.min_groups.value_or(independent);
  if (node.min_children < 1) return InvalidAt(path + ".min_groups", "is less than 1");
  if (node.min_children > independent) {
    return InvalidAt(path + ".min_groups",
                     absl::StrCat("is ", node.min_children, ", but there are ", independent,
                                  " children without `after`"));
  }
  data_->gang_nodes[static_cast<size_t>(info.first_gang_node + self)] = node;
  return absl::OkStatus();
}

// Sets `after` of the children of `group` to the index of the sibling among the
// children, and rejects cycles.
absl::Status SnapshotBuilder::LinkAfter(const PodGroup& group, const std::string& path,
                                        int first_child) {
  const std::vector<std::string_view> names = ChildNames(group);
  const size_t sets = group.pod_sets.size();
  const auto where = [&](size_t i) {
    return i < sets ? absl::StrCat(path, ".pod_sets[", i, "].after")
                    : absl::StrCat(path, ".groups[", i - sets, "].after");
  };
  const auto child = [&](size_t i) -> GangNode& {
    return data_->gang_nodes[static_cast<size_t>(first_child) + i];
  };
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& after = i < sets ? group.pod_sets[i].after : group.groups[i - sets].after;
    if (after.empty()) continue;
    const auto it = std::ranges::find(names, after);
    if (it == names.end()) {
      return InvalidAt(
          where(i), absl::StrCat("no sibling is named \"", after, "\"", DidYouMean(after, names)));
    }
    child(i).after = static_cast<int>(it - names.begin());
  }
  for (size_t i = 0; i < names.size(); ++i) {
    int at = child(i).after;
    for (size_t steps = 0; at >= 0; ++steps) {
      if (steps > names.size() || at == static_cast<int>(i)) {
        return InvalidAt(where(i), "waits for itself");
      }
      at = child(static_cast<size_t>(at)).after;
    }
  }
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::AddPodSet(WorkloadId w, const PodSet& set, const std::string& path,
                                        WorkloadInfo& info, int parent) {
  if (set.count < 1) return InvalidAt(path + ".count", "is less than 1");
  const int total = static_cast<int>(data_->pod_phases.size());
  if (set.count > kMaxPodsPerSet || total > kMaxPods - set.count) {
    return InvalidAt(path + ".count", "is too large");
  }
  const int min_count = set.min_count.value_or(set.count);
  if (min_count < 0) return InvalidAt(path + ".min_count", "is negative");
  if (min_count > set.count) {
    return InvalidAt(path + ".min_count",
                     absl::StrCat("is ", min_count, ", above count ", set.count));
  }
  if (set.max_per_node && *set.max_per_node < 1) {
    return InvalidAt(path + ".max_per_node", "is less than 1");
  }
  if (set.max_per_domain && set.max_per_domain->pods < 1) {
    return InvalidAt(path + ".max_per_domain.pods", "is less than 1");
  }
  TESSERA_RETURN_IF_ERROR(CheckRequest(set, path));
  GangNode node;
  node.parent = parent;
  node.pod_set = static_cast<int>(data_->pod_sets.size()) - info.first_pod_set;
  TESSERA_ASSIGN_OR_RETURN(node.required_level,
                           ResolveLevel(set.topology.required, path, "topology.required"));
  TESSERA_ASSIGN_OR_RETURN(node.preferred_level,
                           ResolveLevel(set.topology.preferred, path, "topology.preferred"));
  PodSetInfo pods;
  pods.workload = w;
  pods.gang_node = static_cast<int>(data_->gang_nodes.size()) - info.first_gang_node;
  pods.request_class = ClassOf(set);
  pods.first_pod = total;
  pods.count = set.count;
  pods.min_count = min_count;
  pods.max_per_node = set.max_per_node.value_or(0);
  if (set.max_per_domain) {
    TESSERA_ASSIGN_OR_RETURN(pods.domain_level,
                             ResolveLevel(set.max_per_domain->level, path, "max_per_domain.level"));
    if (pods.domain_level < 0) return InvalidAt(path + ".max_per_domain.level", "is empty");
    pods.max_per_domain = set.max_per_domain->pods;
  }
  const PodSetId id(static_cast<int32_t>(data_->pod_sets.size()));
  data_->gang_nodes.push_back(node);
  data_->pod_sets.push_back(pods);
  data_->pod_set_specs.push_back(&set);
  const size_t pods_after = static_cast<size_t>(total + set.count);
  data_->pod_phases.resize(pods_after, PodPhase::kPending);
  data_->pod_placements.resize(pods_after);
  data_->pod_starts.resize(pods_after, INT64_MAX);
  data_->pod_set_of.resize(pods_after, id);
  return absl::OkStatus();
}

absl::StatusOr<int> SnapshotBuilder::ResolveLevel(const std::string& name, std::string_view path,
                                                  std::string_view field) const {
  if (name.empty()) return -1;
  const std::optional<int> level = data_->topology.FindLevel(name);
  if (level) return *level;
  const std::vector<std::string_view> known(data_->spec.levels.begin(), data_->spec.levels.end());
  return InvalidAt(
      absl::StrCat(std::string(path), ".", std::string(field)),
      absl::StrCat("\"", name, "\" is not one of topology.levels", DidYouMean(name, known)));
}

}  // namespace tessera
