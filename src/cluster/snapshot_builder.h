#ifndef TESSERA_SRC_CLUSTER_SNAPSHOT_BUILDER_H_
#define TESSERA_SRC_CLUSTER_SNAPSHOT_BUILDER_H_

// Validates a `SnapshotSpec` step by step. Each step trusts those before it.
// Paths in messages use the indices of the spec as given, before sorting.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tessera/cluster/snapshot.h"

namespace tessera {

class SnapshotBuilder {
 public:
  explicit SnapshotBuilder(SnapshotSpec spec) : data_(std::make_shared<Snapshot::Data>()) {
    data_->spec = std::move(spec);
  }

  absl::StatusOr<Snapshot> Build();

 private:
  // build_nodes.cc
  absl::Status CheckLevels();
  absl::Status CollectResources();
  absl::Status CheckGpuModels();
  absl::Status SortNodes();
  absl::Status ResolveNodes();
  absl::Status ResolveModel(NodeId n);
  absl::Status CheckGpus(NodeId n) const;
  std::string NodePath(NodeId n) const;

  // build_workloads.cc
  absl::Status SortWorkloads();
  absl::Status ResolveWorkloads();
  absl::Status ResolveWorkload(WorkloadId w);
  absl::Status FlattenGang(WorkloadId w, WorkloadInfo& info);
  absl::Status AddGroupChildren(WorkloadId w, const PodGroup& group, const std::string& path,
                                WorkloadInfo& info, int self);
  absl::Status AddPodSet(WorkloadId w, const PodSet& pod_set, const std::string& path,
                         WorkloadInfo& info, int parent);
  absl::StatusOr<int> ResolveLevel(const std::string& name, std::string_view path,
                                   std::string_view field) const;
  absl::Status LinkAfter(const PodGroup& group, const std::string& path, int first_child);
  std::string WorkloadPath(WorkloadId w) const;

  // build_requests.cc
  absl::Status CheckRequest(const PodSet& pod_set, const std::string& path) const;
  absl::Status CheckGpuRequest(const GpuRequest& gpu, const std::string& path) const;
  absl::Status CheckProfiles(const std::vector<std::string>& profiles,
                             const std::string& path) const;
  RequestClassId ClassOf(const PodSet& pod_set);
  ModelFit FitModel(const GpuRequest& gpu, const std::vector<std::string>& allowed,
                    ModelId m) const;
  absl::Status CheckTotals() const;

  // build_pods.cc
  absl::Status PlacePods();
  absl::StatusOr<PodId> FindEntry(WorkloadId w, size_t i) const;
  absl::Status SortPods(WorkloadId w);
  absl::Status PlacePod(WorkloadId w, const Pod& pod, int given, PodId id);
  absl::StatusOr<PodPlacement> ResolveDevices(const Pod& pod, const RequestClass& request,
                                              NodeId node, const std::string& path) const;
  absl::Status ResolveSlice(const Pod& pod, NodeId node, const std::string& path,
                            PodPlacement& placement) const;
  absl::Status OccupyGpus(const PodPlacement& placement, const RequestClass& request,
                          PodPhase phase, const std::string& path);
  absl::Status CheckPhysical(NodeId node, int gpu, const PodPlacement& placement,
                             const std::string& path) const;

  // What the pods so far hold of a GPU, so that contradictions are found.
  struct GpuUse {
    enum Kind : uint8_t { kFree, kWhole, kShared, kSliced } kind = kFree;
    uint16_t units = 0;  // occupied units of the placement axis
  };

  std::shared_ptr<Snapshot::Data> data_;
  std::vector<int> node_given_;      // index in the spec, by NodeId
  std::vector<int> workload_given_;  // by WorkloadId
  absl::flat_hash_map<std::string, ModelId> model_ids_;
  absl::flat_hash_map<std::string, RequestClassId> class_ids_;
  absl::flat_hash_map<std::string, int> tenant_ids_;
  std::vector<std::string> profile_names_;  // of all known models, sorted
  std::vector<int> first_gpu_;              // by NodeId
  std::vector<GpuUse> present_;             // running and releasing pods
  std::vector<GpuUse> coming_;              // running and nominated pods
};

}  // namespace tessera

#endif  // TESSERA_SRC_CLUSTER_SNAPSHOT_BUILDER_H_
