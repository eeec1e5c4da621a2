#ifndef TESSERA_STATE_STATE_TABLES_H_
#define TESSERA_STATE_STATE_TABLES_H_

// What a search needs to know of a snapshot and never changes, worked out once.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/ids.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/state/node_index.h"
#include "tessera/state/slice_policy.h"

namespace tessera {

// Why no node of a signature can ever serve a request class; the first that
// holds, in this order.
enum class Eligibility : uint8_t { kEligible, kUnschedulable, kSelector, kTaint, kGpuModel };

// Of one node, from what its signature holds: not from its capacity.
Eligibility EligibilityOf(const Snapshot& snapshot, const RequestClass& request, NodeId n);

// Nodes that no selector, toleration or model list can tell apart: one GPU
// model, the same taints, and the same values of those labels that some selector
// mentions. (Labels that nobody asks for, such as host names, do not count.)
struct NodeSignature {
  ModelId model;               // invalid: no GPUs
  NodeId example;              // one of them
  std::vector<int32_t> nodes;  // ascending

  friend bool operator==(const NodeSignature&, const NodeSignature&) = default;
};

// The immutable part of every `ClusterState` of one snapshot.
class StateTables {
 public:
  // O(nodes * log + classes * signatures), and a table for each GPU model on which
  // slices are asked for (`SliceCostTable`).
  explicit StateTables(Snapshot snapshot, const SlicePolicy& slices = {});

  const Snapshot& snapshot() const { return snapshot_; }

  std::span<const NodeSignature> signatures() const { return signatures_; }
  int signature_of(NodeId n) const { return signature_of_[static_cast<size_t>(n.value())]; }
  // The position of `n` among the nodes of its signature.
  int slot_of(NodeId n) const { return slot_of_[static_cast<size_t>(n.value())]; }

  Eligibility eligibility(RequestClassId c, int signature) const {
    return eligibility_[static_cast<size_t>(c.value()) * signatures_.size() +
                        static_cast<size_t>(signature)];
  }
  // Signatures that class `c` may run on, ascending.
  std::span<const int> eligible(RequestClassId c) const {
    return eligible_[static_cast<size_t>(c.value())];
  }

  // GPUs of all nodes in one array; those of `n` start here.
  int first_gpu(NodeId n) const { return first_gpu_[static_cast<size_t>(n.value())]; }
  int num_gpus(NodeId n) const {
    return first_gpu_[static_cast<size_t>(n.value()) + 1] - first_gpu(n);
  }
  int num_gpus() const { return first_gpu_.back(); }
  // O(log nodes).
  NodeId node_of_gpu(int gpu) const {
    const auto after = std::upper_bound(first_gpu_.begin(), first_gpu_.end(), gpu);
    return NodeId(static_cast<int32_t>(after - first_gpu_.begin()) - 1);
  }
  int max_gpus_per_node() const { return max_gpus_per_node_; }

  // The resources that nodes hold, as indices of a `ResourceVector`. The amounts of
  // a node in the index are those in this order, then the best partial GPU share,
  // then for each kind of slice asked for how well the node can serve it.
  std::span<const int> node_resources() const { return node_resources_; }
  size_t share_column() const { return node_resources_.size(); }
  size_t num_columns() const { return share_column() + 1 + asks_.size(); }
  // Where class `c`, which asks for a slice, finds its own.
  size_t slice_column(RequestClassId c) const {
    return share_column() + 1 + static_cast<size_t>(ask_of_[static_cast<size_t>(c.value())]);
  }
  // What class `c` needs of the columns; `NodeIndex::kNoNeed` where it asks nothing, and
  // for the share and slices.
  std::span<const int64_t> need(RequestClassId c) const {
    return std::span(needs_).subspan(static_cast<size_t>(c.value()) * num_columns(), num_columns());
  }

  // The different answers of the GPU models to requests for slices, by slice column:
  // `ModelFit`s by ModelId.
  std::span<const std::vector<ModelFit>> slice_asks() const { return asks_; }
  // None where no slice can be had, or none is asked for.
  const SliceCostTable* slice_costs(ModelId m) const {
    const std::optional<SliceCostTable>& costs = slice_costs_[static_cast<size_t>(m.value())];
    return costs ? &*costs : nullptr;
  }

  // Pods of a set that have succeeded, and those that can never be placed in this
  // snapshot: succeeded, failed, or merely releasing.
  int succeeded(PodSetId s) const { return succeeded_[static_cast<size_t>(s.value())]; }
  int ended(PodSetId s) const { return ended_[static_cast<size_t>(s.value())]; }

  // Whether any workload asks for isolation, so that tenants must be tracked.
  bool tracks_tenants() const { return tracks_tenants_; }

 private:
  void SignNodes();
  void JudgeClasses();
  void CountEnded();
  void CollectAsks();
  void CostSlices(const SlicePolicy& policy);

  Snapshot snapshot_;
  std::vector<NodeSignature> signatures_;
  std::vector<int32_t> signature_of_;
  std::vector<int32_t> slot_of_;
  std::vector<Eligibility> eligibility_;
  std::vector<std::vector<int>> eligible_;
  std::vector<int> first_gpu_;
  int max_gpus_per_node_ = 0;
  std::vector<int> node_resources_;
  std::vector<int64_t> needs_;
  std::vector<std::vector<ModelFit>> asks_;
  std::vector<int> ask_of_;  // by class; -1: no slice
  std::vector<std::optional<SliceCostTable>> slice_costs_;
  std::vector<int32_t> succeeded_;
  std::vector<int32_t> ended_;
  bool tracks_tenants_ = false;
};

}  // namespace tessera

#endif  // TESSERA_STATE_STATE_TABLES_H_
