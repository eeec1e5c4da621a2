#ifndef TESSERA_CLUSTER_SNAPSHOT_H_
#define TESSERA_CLUSTER_SNAPSHOT_H_

// An immutable instant of a cluster: nodes, queues, workloads, and the time.
//
//   SnapshotSpec spec;
//   spec.nodes = {...};
//   absl::StatusOr<Snapshot> snapshot = Snapshot::Create(std::move(spec));
//
// Everything else in the library takes a `Snapshot` and trusts it.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/base/ids.h"
#include "tessera/cluster/gang_tree.h"
#include "tessera/cluster/node.h"
#include "tessera/cluster/queue_tree.h"
#include "tessera/cluster/request_class.h"
#include "tessera/cluster/topology.h"
#include "tessera/cluster/workload.h"
#include "tessera/gpu/layout.h"
#include "tessera/gpu/model.h"
#include "tessera/resources/resource_space.h"

namespace tessera {

// What a host states about its cluster, as plain values. The order of nodes,
// queues, workloads and pods means nothing; that of levels, gpus, pod sets and
// groups does.
struct SnapshotSpec {
  int64_t now = 0;                   // seconds
  std::vector<std::string> levels;   // topology, outermost first
  std::vector<GpuModel> gpu_models;  // beside, or instead of, the catalogue's
  std::vector<Node> nodes;
  std::vector<Queue> queues;
  std::vector<Workload> workloads;

  friend bool operator==(const SnapshotSpec&, const SnapshotSpec&) = default;
};

// A place that a pod is leaving.
struct ReleasingPod {
  PodId pod;
  PodPlacement placement;

  friend bool operator==(const ReleasingPod&, const ReleasingPod&) = default;
};

// A validated `SnapshotSpec`. Cheap to copy (shared and immutable) and safe to
// share between threads. Ids are dense ranks: nodes by (topology path, name),
// queues and workloads by name, pod sets and pods in the order of their
// workload's gang tree.
class Snapshot {
 public:
  // Validates `spec` and resolves every name in it.
  //
  // kInvalidArgument, with the path of the field in the given order
  // (`nodes[3].gpus[1].instances[0]: 3g.40gb cannot start at slice 2`): what
  // contradicts itself or names what does not exist. A snapshot states what is:
  // a node or a queue may hold more than its capacity or limit.
  // O(n log n) in the size of the spec.
  static absl::StatusOr<Snapshot> Create(SnapshotSpec spec);

  int64_t now() const { return data_->spec.now; }
  // The nouns as given, sorted by id (pods by pod set and index).
  const SnapshotSpec& spec() const { return data_->spec; }
  const ResourceSpace& resources() const { return data_->resources; }
  const QueueTree& queues() const { return data_->queues; }
  const Topology& topology() const { return data_->topology; }

  int num_nodes() const { return static_cast<int>(data_->spec.nodes.size()); }
  const Node& node(NodeId n) const { return data_->spec.nodes[at(n)]; }
  std::optional<NodeId> FindNode(std::string_view name) const;
  // Invalid for a node without GPUs.
  ModelId node_model(NodeId n) const { return data_->node_models[at(n)]; }
  // Capacity less what others reserve; the GPU part is zero.
  const ResourceVector& node_capacity(NodeId n) const { return data_->node_capacities[at(n)]; }

  // GPU models that nodes have, by name, and their layout tables.
  int num_models() const { return static_cast<int>(data_->models.size()); }
  const GpuModel& model(ModelId m) const { return data_->models[at(m)].model(); }
  const MigTables& mig(ModelId m) const { return data_->models[at(m)]; }

  int num_workloads() const { return static_cast<int>(data_->spec.workloads.size()); }
  const Workload& workload(WorkloadId w) const { return data_->spec.workloads[at(w)]; }
  const WorkloadInfo& info(WorkloadId w) const { return data_->workload_infos[at(w)]; }
  std::optional<WorkloadId> FindWorkload(std::string_view name) const;
  std::span<const GangNode> gang(WorkloadId w) const;
  std::span<const PodSetInfo> pod_sets(WorkloadId w) const;

  int num_pod_sets() const { return static_cast<int>(data_->pod_sets.size()); }
  const PodSetInfo& pod_set(PodSetId s) const { return data_->pod_sets[at(s)]; }
  // The pod set as given. O(1).
  const PodSet& pod_set_spec(PodSetId s) const { return *data_->pod_set_specs[at(s)]; }

  int num_pods() const { return static_cast<int>(data_->pod_phases.size()); }
  PodPhase pod_phase(PodId p) const { return data_->pod_phases[at(p)]; }
  // Meaningful for nominated, running and releasing pods.
  const PodPlacement& pod_placement(PodId p) const { return data_->pod_placements[at(p)]; }
  // Since when a running pod runs; INT64_MAX: unknown, or it does not run.
  int64_t pod_started(PodId p) const { return data_->pod_starts[at(p)]; }
  PodSetId pod_set_of(PodId p) const { return data_->pod_set_of[at(p)]; }
  // What releasing pods still hold. A moved pod is nominated and also here.
  std::span<const ReleasingPod> releasing() const { return data_->releasing; }
  PodRef pod_ref(PodId p) const;
  std::optional<PodId> FindPod(const PodRef& ref) const;

  int num_request_classes() const { return static_cast<int>(data_->request_classes.size()); }
  const RequestClass& request_class(RequestClassId c) const {
    return data_->request_classes[at(c)];
  }

  friend bool operator==(const Snapshot& a, const Snapshot& b) {
    return a.data_ == b.data_ || a.spec() == b.spec();
  }

 private:
  friend class SnapshotBuilder;
  struct Data {
    SnapshotSpec spec;
    ResourceSpace resources;
    QueueTree queues;
    Topology topology;
    std::vector<MigTables> models;
    std::vector<ModelId> node_models;
    std::vector<NodeId> nodes_by_name;
    std::vector<ResourceVector> node_capacities;
    std::vector<WorkloadInfo> workload_infos;
    std::vector<GangNode> gang_nodes;
    std::vector<PodSetInfo> pod_sets;
    std::vector<const PodSet*> pod_set_specs;  // into `spec`
    std::vector<PodPhase> pod_phases;
    std::vector<PodPlacement> pod_placements;
    std::vector<int64_t> pod_starts;
    std::vector<PodSetId> pod_set_of;
    std::vector<ReleasingPod> releasing;
    std::vector<RequestClass> request_classes;
  };

  template <typename Tag>
  static size_t at(Id<Tag> id) {
    return static_cast<size_t>(id.value());
  }
  explicit Snapshot(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

  std::shared_ptr<const Data> data_;
};

// The devices of `placement` as a host names them.
Devices DevicesOf(const Snapshot& snapshot, const PodPlacement& placement);

}  // namespace tessera

#endif  // TESSERA_CLUSTER_SNAPSHOT_H_
