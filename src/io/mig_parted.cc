// Configurations for mig-parted.

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tessera/io/mig_formats.h"

namespace tessera {
namespace {

// What mig-parted is told about one GPU.
struct DeviceConfig {
  bool enabled = false;
  std::map<std::string, int> counts;  // instances per profile

  friend bool operator==(const DeviceConfig&, const DeviceConfig&) = default;
};

// A string of JSON in ASCII, which is one of YAML, too, and cannot leave its line.
std::string Quote(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

DeviceConfig ConfigOf(const Gpu& gpu) {
  DeviceConfig config;
  config.enabled = gpu.is_mig_enabled();
  for (const GpuInstance& instance : gpu.instances) ++config.counts[instance.profile];
  return config;
}

// The list of a configuration: GPUs with equal instances share an entry.
std::string EntriesOf(const Node& node) {
  std::vector<std::pair<DeviceConfig, std::vector<size_t>>> groups;
  for (size_t g = 0; g < node.gpus.size(); ++g) {
    const DeviceConfig config = ConfigOf(node.gpus[g]);
    auto group = groups.begin();
    while (group != groups.end() && group->first != config) ++group;
    if (group == groups.end()) group = groups.insert(group, {config, {}});
    group->second.push_back(g);
  }
  std::string entries;
  for (const auto& [config, gpus] : groups) {
    const std::string devices =
        groups.size() == 1 ? "all" : absl::StrCat("[", absl::StrJoin(gpus, ", "), "]");
    absl::StrAppend(&entries, "    - devices: ", devices,
                    "\n      mig-enabled: ", config.enabled ? "true" : "false", "\n");
    if (!config.enabled) continue;
    std::vector<std::string> counts;
    for (const auto& [profile, count] : config.counts) {
      counts.push_back(absl::StrCat(Quote(profile), ": ", count));
    }
    absl::StrAppend(&entries, "      mig-devices: {", absl::StrJoin(counts, ", "), "}\n");
  }
  return entries;
}

}  // namespace

std::string WriteMigParted(const Snapshot& snapshot) {
  // In order of the first node; the text of the entries tells configurations apart.
  std::vector<std::pair<std::string, std::vector<std::string>>> configs;
  std::map<std::string, size_t> index_of;
  for (int n = 0; n < snapshot.num_nodes(); ++n) {
    const Node& node = snapshot.node(NodeId(n));
    if (node.gpus.empty() || !snapshot.model(snapshot.node_model(NodeId(n))).supports_mig()) {
      continue;
    }
    const auto [at, is_new] = index_of.emplace(EntriesOf(node), configs.size());
    if (is_new) configs.push_back({at->first, {}});
    configs[at->second].second.push_back(Quote(node.name));
  }
  std::string yaml = absl::StrCat("version: v1\nmig-configs:", configs.empty() ? " {}" : "", "\n");
  for (size_t i = 0; i < configs.size(); ++i) {
    absl::StrAppend(&yaml, i == 0 ? "" : "\n", "  # ", absl::StrJoin(configs[i].second, ", "),
                    "\n  layout-", i + 1, ":\n", configs[i].first);
  }
  return yaml;
}

}  // namespace tessera
