#ifndef TESSERA_SRC_PLACEMENT_NODE_CLASSES_H_
#define TESSERA_SRC_PLACEMENT_NODE_CLASSES_H_

// The nodes of a cluster as one gang sees them: nodes that take the same pods of
// it are one class, so that a search need not tell them apart.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "src/placement/device_packing.h"
#include "src/placement/gang_view.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// Pods that a node cannot tell apart: one request class, and one pod set if that
// bounds its pods per node or domain.
struct PodType {
  PodSetId example;
  RequestClassId request_class;
  int max_per_node = 0;  // 0: no bound
  int max_per_domain = 0;
  int domain_level = -1;
  int wanted = 0;  // pods of the type that the gang could place at most
};

// Nodes with equal room for every type.
struct NodeClass {
  ModelId model;              // invalid: no GPUs
  std::vector<int64_t> room;  // `StateTables::node_resources()`, cut to what can be used
  std::vector<int> limits;    // by type: 0 where no node of the class is eligible
  DevicePool pool;
  std::vector<int> most;  // by type: pods of it alone that fit
};

// The types of one gang's missing pods, and the classes of the nodes they see.
class NodeClasses {
 public:
  static constexpr int kNone = -1;

  // For the pod sets of gang nodes `leaves` on the nodes of `range`.
  // O(nodes * types + GPUs of nodes with room).
  NodeClasses(const ClusterState& state, const GangView& view, std::span<const int> leaves,
              NodeRange range, int64_t& budget);

  // A count that ran out of budget makes every proof void.
  bool undecided() const { return undecided_; }

  std::span<const PodType> types() const { return types_; }
  // The type of a leaf of the gang.
  int type_of(int g) const { return type_of_[static_cast<size_t>(g)]; }
  // The class of a node, `kNone` where no type fits.
  int class_of(int node) const { return class_of_[static_cast<size_t>(node - range_.begin)]; }
  const NodeClass& at(int c) const { return classes_[static_cast<size_t>(c)]; }
  int size() const { return static_cast<int>(classes_.size()); }
  NodeRange range() const { return range_; }

  // Pods of type `t` alone that the nodes of `within` take. O(1), or O(domains) if the
  // type is bounded in each.
  int64_t MostIn(int t, NodeRange within) const;
  // More pods that the bound of type `t` allows in domain `d` of its level.
  int LeftIn(int t, DomainId d) const;
  // On nodes of `model` only. O(nodes).
  int64_t MostIn(int t, NodeRange within, ModelId model) const;

  // Whether one node of class `c` takes `counts[t]` pods of every type together.
  Verdict Fits(int c, std::span<const int> counts);

  // What type `t` asks of the devices of `model`.
  DeviceNeed NeedOn(int t, ModelId model) const {
    const RequestClassId c = types_[static_cast<size_t>(t)].request_class;
    return tessera::NeedOn(snapshot_, snapshot_.request_class(c), model);
  }
  // The same in 1/7000 device, a slice by its part of the placement axis.
  int64_t UnitsOn(int t, ModelId model) const;
  // What a pod needs of `StateTables::node_resources()[i]`.
  size_t num_amounts() const { return state_.tables().node_resources().size(); }
  int64_t NeedOf(const PodType& type, size_t i) const {
    return std::max<int64_t>(state_.tables().need(type.request_class)[i], 0);
  }

 private:
  void AddType(const GangView& view, int g);
  void CountOwnPods();
  bool MayTake(NodeId n, int t) const;
  int LimitOf(NodeId n, int t) const;
  int64_t SumIn(int t, NodeRange within) const;
  void ClassifyAll();
  void Classify(NodeId n, std::span<const bool> takes);
  NodeClass SeeNode(NodeId n, std::span<const bool> takes) const;
  void CountMost(NodeClass& c, int id);
  Verdict Decide(const NodeClass& c, std::span<const int> counts);

  const ClusterState& state_;
  const Snapshot& snapshot_;
  const WorkloadId workload_;
  const NodeRange range_;
  int64_t& budget_;
  bool undecided_ = false;
  std::vector<PodType> types_;
  std::vector<int> type_of_;
  std::vector<int32_t> class_of_;
  std::vector<NodeClass> classes_;
  absl::flat_hash_map<std::string, int> ids_;
  // Pods of bounded types that nodes hold already.
  absl::flat_hash_map<std::pair<int, int>, int> own_;            // (type, node)
  absl::flat_hash_map<std::pair<int, int>, int> own_in_domain_;  // (type, domain)
  std::vector<std::vector<int64_t>> sums_;             // [type][node - begin + 1] of `most`
  absl::flat_hash_map<std::string, Verdict> decided_;  // by (class, counts)
};

}  // namespace tessera

#endif  // TESSERA_SRC_PLACEMENT_NODE_CLASSES_H_
