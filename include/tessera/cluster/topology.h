#ifndef TESSERA_CLUSTER_TOPOLOGY_H_
#define TESSERA_CLUSTER_TOPOLOGY_H_

// Topology levels and their domains.
//
// Node ids are ranks by (domain path, name), so every domain is an interval of
// node ids, at every level.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/ids.h"
#include "tessera/cluster/node.h"

namespace tessera {

// A level of this name, if innermost, is the node itself where a node does not
// say otherwise.
inline constexpr std::string_view kNodeLevel = "node";

// Nodes [begin, end).
struct NodeRange {
  int begin = 0;
  int end = 0;

  bool empty() const { return begin >= end; }
  int size() const { return end - begin; }
  bool contains(NodeId n) const { return begin <= n.value() && n.value() < end; }

  friend bool operator==(const NodeRange&, const NodeRange&) = default;
};

inline NodeRange Intersect(NodeRange a, NodeRange b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

// One domain of one level. Its path tells it from a domain of the same name
// elsewhere (racks are often numbered per block).
struct TopologyDomain {
  std::string path;  // "b1/r2"
  NodeRange nodes;

  friend bool operator==(const TopologyDomain&, const TopologyDomain&) = default;
};

// Levels, outermost first, over nodes that are sorted by `DomainPath`.
class Topology {
 public:
  Topology() = default;

  // `nodes` must be in order of (DomainPath, name). O(nodes * levels).
  Topology(std::vector<std::string> levels, std::span<const Node> nodes);

  // The domain names of `node`, outermost first; "" where it has none.
  static std::vector<std::string> DomainPath(std::span<const std::string> levels, const Node& node);

  std::span<const std::string> levels() const { return levels_; }
  int num_levels() const { return static_cast<int>(levels_.size()); }
  std::optional<int> FindLevel(std::string_view name) const;

  // Domains of `level` in order of their nodes.
  std::span<const TopologyDomain> domains(int level) const {
    return domains_[static_cast<size_t>(level)];
  }
  // The nodes of domain `d` of `level`; none if `d` is invalid.
  NodeRange NodesOf(int level, DomainId d) const {
    return d.valid() ? domains(level)[static_cast<size_t>(d.value())].nodes : NodeRange();
  }
  // The domain of `node` at `level`; invalid if it is in none.
  DomainId domain_of(NodeId node, int level) const {
    return domain_of_[static_cast<size_t>(level)][static_cast<size_t>(node.value())];
  }
  // The domains of `level` that lie within `range`, as an interval of domain
  // indices. O(log domains).
  NodeRange DomainsWithin(int level, NodeRange range) const;

  friend bool operator==(const Topology&, const Topology&) = default;

 private:
  std::vector<std::string> levels_;
  std::vector<std::vector<TopologyDomain>> domains_;
  std::vector<std::vector<DomainId>> domain_of_;
};

}  // namespace tessera

#endif  // TESSERA_CLUSTER_TOPOLOGY_H_
