#ifndef TESSERA_CLUSTER_GANG_H_
#define TESSERA_CLUSTER_GANG_H_

// A gang: the tree of pod sets that starts together or waits.
//
// Leaves are pod sets (identical pods), inner nodes are groups. One LLM service
// is one gang: router, prefill workers, multi-node decode workers.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/cluster/labels.h"

namespace tessera {

// A slice asked for by what it must offer. Each GPU model answers with its
// smallest sufficient profile.
struct SliceRequirement {
  int64_t memory = 0;  // bytes, exact
  // At least compute_num/compute_den of the model's compute slices.
  int compute_num = 0;
  int compute_den = 1;

  friend bool operator==(const SliceRequirement&, const SliceRequirement&) = default;
};

enum class GpuRequestKind {
  kNone,          // a pod without GPU
  kWhole,         // `devices` whole GPUs of one node
  kFraction,      // `share` of each of `devices` GPUs of one node
  kDeviceMemory,  // `memory` bytes of each of `devices` GPUs of one node
  kProfile,       // one MIG instance of one of `profiles`
  kRequirement,   // one MIG instance that meets `requirement`
};

// What a pod asks of GPUs. Only the fields of its kind are meaningful; the rest
// keep their defaults, so that equal requests compare equal.
struct GpuRequest {
  GpuRequestKind kind = GpuRequestKind::kNone;
  int devices = 0;
  int64_t share = 0;   // 1/7000 of a device
  int64_t memory = 0;  // bytes
  // The first that there is a place for, in this order.
  std::vector<std::string> profiles;
  SliceRequirement requirement;
  // Of a slice: a larger one will do. What it gets is then what is cheapest to give
  // (`SliceCosts`), and is charged as what is held. Larger: no variant, and with at
  // least the compute slices, memory slices and bytes of the one asked for.
  bool allow_larger = false;

  static GpuRequest Whole(int devices);
  static GpuRequest Fraction(int64_t share, int devices = 1);
  static GpuRequest Memory(int64_t bytes, int devices = 1);
  static GpuRequest Profile(std::string name);
  static GpuRequest Profiles(std::vector<std::string> names);
  static GpuRequest Requirement(SliceRequirement requirement);

  bool is_slice() const {
    return kind == GpuRequestKind::kProfile || kind == GpuRequestKind::kRequirement;
  }
  bool is_shared() const {
    return kind == GpuRequestKind::kFraction || kind == GpuRequestKind::kDeviceMemory;
  }

  friend bool operator==(const GpuRequest&, const GpuRequest&) = default;
};

// What one pod asks for, in base units.
struct Request {
  int64_t cpu = 0;
  int64_t memory = 0;
  GpuRequest gpu;
  std::map<std::string, int64_t, std::less<>> extended;

  friend bool operator==(const Request&, const Request&) = default;
};

// Topology levels by name; empty means none. `required`: all pods below in one
// domain of that level. `preferred`: in as narrow a domain as possible, from
// that level outwards; never a reason to stay pending.
struct TopologyConstraint {
  std::string required;
  std::string preferred;

  friend bool operator==(const TopologyConstraint&, const TopologyConstraint&) = default;
};

// At most `pods` in one domain of `level`, and none outside its domains.
struct DomainLimit {
  std::string level;
  int pods = 1;

  friend bool operator==(const DomainLimit&, const DomainLimit&) = default;
};

// `count` identical pods, of which `min_count` (default: all) must hold.
struct PodSet {
  std::string name;
  int count = 1;
  std::optional<int> min_count;
  Request request;
  std::vector<std::string> gpu_models;  // allowed models; empty: any
  Selector selector;
  std::vector<Toleration> tolerations;
  std::optional<int> max_per_node;
  std::optional<DomainLimit> max_per_domain;
  // Name of a sibling whose minimum must hold first; this one is then outside
  // the gang's minimum.
  std::string after;
  TopologyConstraint topology;

  friend bool operator==(const PodSet&, const PodSet&) = default;
};

// An inner node of a gang, and the gang itself (whose name is empty). Holds when
// `min_groups` (default: all) of its children without `after` hold.
struct PodGroup {
  std::string name;
  std::optional<int> min_groups;
  std::string after;
  TopologyConstraint topology;
  std::vector<PodSet> pod_sets;
  std::vector<PodGroup> groups;

  friend bool operator==(const PodGroup&, const PodGroup&) = default;
};

using Gang = PodGroup;

}  // namespace tessera

#endif  // TESSERA_CLUSTER_GANG_H_
