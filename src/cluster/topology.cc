#include "tessera/cluster/topology.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace tessera {

Topology::Topology(std::vector<std::string> levels, std::span<const Node> nodes)
    : levels_(std::move(levels)), domains_(levels_.size()), domain_of_(levels_.size()) {
  for (size_t level = 0; level < levels_.size(); ++level) {
    domain_of_[level].assign(nodes.size(), DomainId());
  }
  std::vector<std::string> previous;
  for (size_t n = 0; n < nodes.size(); ++n) {
    std::vector<std::string> path = DomainPath(levels_, nodes[n]);
    bool same = !previous.empty();
    for (size_t level = 0; level < levels_.size(); ++level) {
      same = same && path[level] == previous[level];
      if (path[level].empty()) continue;
      std::vector<TopologyDomain>& domains = domains_[level];
      if (!same) {
        const std::span outer = std::span(path).first(level + 1);
        domains.push_back({absl::StrJoin(outer.begin(), outer.end(), "/"),
                           {static_cast<int>(n), static_cast<int>(n)}});
      }
      domains.back().nodes.end = static_cast<int>(n) + 1;
      domain_of_[level][n] = DomainId(static_cast<int32_t>(domains.size()) - 1);
    }
    previous = std::move(path);
  }
}

std::vector<std::string> Topology::DomainPath(std::span<const std::string> levels,
                                              const Node& node) {
  std::vector<std::string> path;
  path.reserve(levels.size());
  for (size_t level = 0; level < levels.size(); ++level) {
    const auto it = node.topology.find(levels[level]);
    if (it != node.topology.end()) {
      path.push_back(it->second);
    } else {
      const bool is_node = level + 1 == levels.size() && levels[level] == kNodeLevel;
      path.push_back(is_node ? node.name : std::string());
    }
  }
  return path;
}

std::optional<int> Topology::FindLevel(std::string_view name) const {
  for (size_t level = 0; level < levels_.size(); ++level) {
    if (levels_[level] == name) return static_cast<int>(level);
  }
  return std::nullopt;
}

NodeRange Topology::DomainsWithin(int level, NodeRange range) const {
  const std::span<const TopologyDomain> all = domains(level);
  const auto first = std::ranges::partition_point(
      all, [&range](const TopologyDomain& d) { return d.nodes.begin < range.begin; });
  const auto last = std::partition_point(
      first, all.end(), [&range](const TopologyDomain& d) { return d.nodes.end <= range.end; });
  return {static_cast<int>(first - all.begin()), static_cast<int>(last - all.begin())};
}

}  // namespace tessera
