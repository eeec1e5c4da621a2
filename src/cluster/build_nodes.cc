#include <algorithm>
#include <numeric>
#include <set>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "src/cluster/snapshot_builder.h"
#include "tessera/base/status.h"
#include "tessera/gpu/catalogue.h"

namespace tessera {
namespace {

// The highest number of topology levels; deeper trees do not exist.
constexpr size_t kMaxLevels = 16;

absl::Status CheckAmount(int64_t amount, const std::string& path, std::string_view field) {
  if (amount >= 0 && amount <= kMaxTotal) return absl::OkStatus();
  return InvalidAt(absl::StrCat(path, ".", std::string(field)),
                   amount < 0 ? "is negative" : "is too large");
}

absl::Status CheckResources(const NodeResources& resources, const std::string& path) {
  TESSERA_RETURN_IF_ERROR(CheckAmount(resources.cpu, path, "cpu"));
  TESSERA_RETURN_IF_ERROR(CheckAmount(resources.memory, path, "memory"));
  TESSERA_RETURN_IF_ERROR(CheckAmount(resources.pods, path, "pods"));
  for (const auto& [name, amount] : resources.extended) {
    TESSERA_RETURN_IF_ERROR(CheckAmount(amount, path, name));
    if (ResourceSpace().Find(name) || name.starts_with(kGpuModelPrefix)) {
      return InvalidAt(absl::StrCat(path, ".", name), "is not an extended resource");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string SnapshotBuilder::NodePath(NodeId n) const {
  return absl::StrCat("nodes[", node_given_[static_cast<size_t>(n.value())], "]");
}

absl::Status SnapshotBuilder::CheckLevels() {
  const std::vector<std::string>& levels = data_->spec.levels;
  if (levels.size() > kMaxLevels) {
    return InvalidAt("topology.levels", absl::StrCat("has more than ", kMaxLevels, " levels"));
  }
  for (size_t i = 0; i < levels.size(); ++i) {
    const std::string path = absl::StrCat("topology.levels[", i, "]");
    if (levels[i].empty()) return InvalidAt(path, "is empty");
    if (std::find(levels.begin(), levels.begin() + static_cast<ptrdiff_t>(i), levels[i]) !=
        levels.begin() + static_cast<ptrdiff_t>(i)) {
      return InvalidAt(path, absl::StrCat("\"", levels[i], "\" is listed twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::CheckGpuModels() {
  std::set<std::string_view> names;
  for (size_t i = 0; i < data_->spec.gpu_models.size(); ++i) {
    const GpuModel& model = data_->spec.gpu_models[i];
    const std::string path = absl::StrCat("gpu_models[", i, "]");
    TESSERA_RETURN_IF_ERROR(ValidateGpuModel(model, path));
    if (!names.insert(model.name).second) {
      return InvalidAt(path + ".name",
                       absl::StrCat("\"", model.name, "\" is the name of another model"));
    }
    if (model.memory_bytes > kMaxTotal) return InvalidAt(path + ".memory", "is too large");
    for (const MigProfile& profile : model.profiles) profile_names_.push_back(profile.name);
  }
  for (const GpuModel& model : GpuCatalogue()) {
    for (const MigProfile& profile : model.profiles) profile_names_.push_back(profile.name);
  }
  std::ranges::sort(profile_names_);
  profile_names_.erase(std::unique(profile_names_.begin(), profile_names_.end()),
                       profile_names_.end());
  std::ranges::sort(data_->spec.gpu_models, {}, &GpuModel::name);
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::CollectResources() {
  std::set<std::string> names;
  for (const Node& node : data_->spec.nodes) {
    for (const auto& [name, amount] : node.capacity.extended) names.insert(name);
    for (const auto& [name, amount] : node.reserved.extended) names.insert(name);
  }
  for (const Queue& queue : data_->spec.queues) {
    for (const ResourceAmounts* amounts : {&queue.quota, &queue.limit, &queue.borrowing_limit,
                                           &queue.lending_limit, &queue.weight}) {
      for (const auto& [name, amount] : amounts->by_name) names.insert(name);
    }
    for (const auto& [name, amount] : queue.usage) names.insert(name);
  }
  const auto add_requests = [&names](const auto& self, const PodGroup& group, int depth) -> void {
    for (const PodSet& set : group.pod_sets) {
      for (const auto& [name, amount] : set.request.extended) names.insert(name);
    }
    if (depth == 0) return;  // reported as too deep when the gang is resolved
    for (const PodGroup& child : group.groups) self(self, child, depth - 1);
  };
  for (const Workload& workload : data_->spec.workloads) {
    add_requests(add_requests, workload.gang, 32);
  }
  const std::vector<std::string> extra(names.begin(), names.end());
  TESSERA_ASSIGN_OR_RETURN(data_->resources, ResourceSpace::Create(extra));
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::SortNodes() {
  std::vector<Node>& nodes = data_->spec.nodes;
  std::vector<std::pair<std::vector<std::string>, int>> keys;
  keys.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].name.empty()) {
      return InvalidAt(absl::StrCat("nodes[", i, "].name"), "is empty");
    }
    std::vector<std::string> key = Topology::DomainPath(data_->spec.levels, nodes[i]);
    key.push_back(nodes[i].name);
    keys.emplace_back(std::move(key), static_cast<int>(i));
  }
  std::ranges::sort(keys);
  std::vector<Node> sorted;
  sorted.reserve(nodes.size());
  for (auto& [key, given] : keys) {
    sorted.push_back(std::move(nodes[static_cast<size_t>(given)]));
    node_given_.push_back(given);
  }
  nodes = std::move(sorted);
  std::vector<NodeId>& by_name = data_->nodes_by_name;
  for (size_t i = 0; i < nodes.size(); ++i) by_name.push_back(NodeId(static_cast<int32_t>(i)));
  const auto name_of = [&nodes](NodeId n) -> const std::string& {
    return nodes[static_cast<size_t>(n.value())].name;
  };
  std::ranges::stable_sort(by_name, {}, name_of);
  for (size_t i = 1; i < by_name.size(); ++i) {
    if (name_of(by_name[i]) != name_of(by_name[i - 1])) continue;
    return InvalidAt(NodePath(by_name[i]) + ".name",
                     absl::StrCat("\"", name_of(by_name[i]), "\" is the name of another node"));
  }
  data_->topology = Topology(data_->spec.levels, nodes);
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::ResolveNodes() {
  int total_gpus = 0;
  for (size_t i = 0; i < data_->spec.nodes.size(); ++i) {
    const NodeId n(static_cast<int32_t>(i));
    const Node& node = data_->spec.nodes[i];
    const auto path = [this, n] { return NodePath(n); };
    TESSERA_RETURN_IF_ERROR(CheckResources(node.capacity, path() + ".capacity"));
    TESSERA_RETURN_IF_ERROR(CheckResources(node.reserved, path() + ".reserved"));
    for (const auto& [level, domain] : node.topology) {
      const std::vector<std::string>& levels = data_->spec.levels;
      if (std::ranges::find(levels, level) == levels.end()) {
        const std::vector<std::string_view> known(levels.begin(), levels.end());
        return InvalidAt(absl::StrCat(path(), ".topology.", level),
                         "is not one of topology.levels" + DidYouMean(level, known));
      }
      if (domain.empty()) return InvalidAt(absl::StrCat(path(), ".topology.", level), "is empty");
    }
    for (size_t t = 0; t < node.taints.size(); ++t) {
      if (!node.taints[t].key.empty()) continue;
      return InvalidAt(absl::StrCat(path(), ".taints[", t, "].key"), "is empty");
    }
    ResourceVector capacity;
    capacity[kCpu] = node.capacity.cpu - node.reserved.cpu;
    capacity[kMemory] = node.capacity.memory - node.reserved.memory;
    capacity[kPods] = node.capacity.pods - node.reserved.pods;
    for (int r = kFirstNamedResource; r < data_->resources.size(); ++r) {
      const auto amount = [&](const NodeResources& from) {
        const auto it = from.extended.find(data_->resources.name(r));
        return it == from.extended.end() ? int64_t{0} : it->second;
      };
      capacity[r] = amount(node.capacity) - amount(node.reserved);
    }
    data_->node_capacities.push_back(capacity);
    TESSERA_RETURN_IF_ERROR(ResolveModel(n));
    TESSERA_RETURN_IF_ERROR(CheckGpus(n));
    first_gpu_.push_back(total_gpus);
    total_gpus += static_cast<int>(node.gpus.size());
  }
  present_.resize(static_cast<size_t>(total_gpus));
  coming_.resize(static_cast<size_t>(total_gpus));
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::ResolveModel(NodeId n) {
  // 1. On the first node, list the models that nodes have, by name, so that
  //    model ids do not depend on where they occur.
  if (n.value() == 0) {
    std::set<std::string_view> used;
    for (const Node& node : data_->spec.nodes) used.insert(node.gpu_model);
    used.erase("");
    for (std::string_view name : used) {
      const auto own = std::ranges::find(data_->spec.gpu_models, name, &GpuModel::name);
      const bool is_own = own != data_->spec.gpu_models.end();
      const GpuModel* model = is_own ? &*own : FindGpuModel(name);
      if (model == nullptr) continue;
      TESSERA_ASSIGN_OR_RETURN(MigTables tables, MigTables::Create(*model));
      model_ids_[std::string(name)] = ModelId(static_cast<int32_t>(data_->models.size()));
      data_->models.push_back(std::move(tables));
    }
  }
  // Sets of models are 64-bit masks.
  if (data_->models.size() > 64) return InvalidAt("nodes", "have more than 64 GPU models");
  // 2. Find the model of this node.
  const Node& node = data_->spec.nodes[static_cast<size_t>(n.value())];
  ModelId model;
  if (!node.gpu_model.empty()) {
    const auto it = model_ids_.find(node.gpu_model);
    if (it == model_ids_.end()) {
      std::vector<std::string_view> known;
      for (const GpuModel& m : data_->spec.gpu_models) known.push_back(m.name);
      for (const GpuModel& m : GpuCatalogue()) known.push_back(m.name);
      return InvalidAt(
          NodePath(n) + ".gpu_model",
          absl::StrCat("\"", node.gpu_model, "\" is neither in the catalogue nor in gpu_models",
                       DidYouMean(node.gpu_model, known)));
    }
    model = it->second;
  } else if (!node.gpus.empty()) {
    return InvalidAt(NodePath(n) + ".gpu_model", "is needed on a node with GPUs");
  }
  data_->node_models.push_back(model);
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::CheckGpus(NodeId n) const {
  const Node& node = data_->spec.nodes[static_cast<size_t>(n.value())];
  if (node.gpus.size() > kMaxGpusPerNode) {
    return InvalidAt(NodePath(n) + ".gpus",
                     absl::StrCat("lists ", node.gpus.size(), " GPUs; at most ", kMaxGpusPerNode,
                                  " fit on a node"));
  }
  for (size_t g = 0; g < node.gpus.size(); ++g) {
    const Gpu& gpu = node.gpus[g];
    const auto path = [&] { return absl::StrCat(NodePath(n), ".gpus[", g, "]"); };
    if (gpu.mig == MigMode::kOff && gpu.instances.empty() && !gpu.is_mig_enabled()) continue;
    const ModelId m = data_->node_models.back();
    const MigTables& tables = data_->models[static_cast<size_t>(m.value())];
    if (!tables.model().supports_mig()) {
      return InvalidAt(path() + ".mig", absl::StrCat("a ", node.gpu_model, " has no MIG"));
    }
    if (gpu.instances.empty()) continue;
    if (gpu.mig == MigMode::kOff) {
      return InvalidAt(path() + ".instances", "a GPU with mig off has no instances");
    }
    if (!gpu.is_mig_enabled()) {
      return InvalidAt(path() + ".mig_enabled", "is false although there are instances");
    }
    std::vector<Instance> instances;
    for (size_t i = 0; i < gpu.instances.size(); ++i) {
      const std::optional<int> profile = tables.model().FindProfile(gpu.instances[i].profile);
      if (!profile) {
        std::vector<std::string_view> known;
        for (const MigProfile& p : tables.model().profiles) known.push_back(p.name);
        return InvalidAt(
            absl::StrCat(path(), ".instances[", i, "].profile"),
            absl::StrCat("a ", node.gpu_model, " has no profile \"", gpu.instances[i].profile, "\"",
                         DidYouMean(gpu.instances[i].profile, known)));
      }
      instances.push_back({*profile, gpu.instances[i].start});
    }
    TESSERA_RETURN_IF_ERROR(tables.KeyOf(instances, path() + ".instances").status());
  }
  return absl::OkStatus();
}

}  // namespace tessera
