#ifndef TESSERA_CLUSTER_NODE_H_
#define TESSERA_CLUSTER_NODE_H_

// A node of the cluster and its GPUs, as stated by the host.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/cluster/labels.h"
#include "tessera/resources/units.h"

namespace tessera {

// Most GPUs of one node; device sets are 64-bit masks.
inline constexpr int kMaxGpusPerNode = 64;

// What MIG may do on a GPU: nothing; only the instances that exist are used; or
// idle instances may be destroyed and new ones carved while others run.
enum class MigMode { kOff, kStatic, kDynamic };

// An existing MIG instance: a profile of the node's GPU model and its start on
// the placement axis.
struct GpuInstance {
  std::string profile;
  int start = 0;

  friend bool operator==(const GpuInstance&, const GpuInstance&) = default;
};

// One GPU. `mig` is permission, `mig_enabled` is state; by default MIG mode is
// on when there are instances. Whole GPUs and fractions need it off, slices on.
struct Gpu {
  bool healthy = true;
  MigMode mig = MigMode::kOff;
  std::optional<bool> mig_enabled;
  std::vector<GpuInstance> instances;

  bool is_mig_enabled() const { return mig_enabled.value_or(!instances.empty()); }

  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// Amounts of node resources, in base units. `pods` counts pods.
struct NodeResources {
  int64_t cpu = 0;
  int64_t memory = 0;
  int64_t pods = kMaxTotal >> 32;  // no bound worth the name
  std::map<std::string, int64_t, std::less<>> extended;

  friend bool operator==(const NodeResources&, const NodeResources&) = default;
};

// A node. `topology` maps a level to the node's domain on it; a level that is
// absent places the node in no domain of that level. `reserved` is what others
// than the snapshot's workloads consume (its `pods` defaults to 0).
struct Node {
  std::string name;
  std::map<std::string, std::string, std::less<>> topology;
  Labels labels;
  std::vector<Taint> taints;
  NodeResources capacity;
  NodeResources reserved = {.cpu = 0, .memory = 0, .pods = 0, .extended = {}};
  bool schedulable = true;
  std::string gpu_model;  // empty: no GPUs
  std::vector<Gpu> gpus;

  friend bool operator==(const Node&, const Node&) = default;
};

}  // namespace tessera

#endif  // TESSERA_CLUSTER_NODE_H_
