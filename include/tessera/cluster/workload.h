#ifndef TESSERA_CLUSTER_WORKLOAD_H_
#define TESSERA_CLUSTER_WORKLOAD_H_

// A workload: a gang that somebody submitted to a queue, and where its pods are.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/cluster/gang.h"

namespace tessera {

// Work of this priority and above is not preemptible unless it says so.
inline constexpr int kNonPreemptiblePriority = 100;
inline constexpr int kDefaultPriority = 50;

// What a tenant accepts beside it while its pod holds its place. Each level
// restricts pods of other tenants, both ways.
enum class Isolation {
  kAny,        // anything
  kHardware,   // no fraction of another tenant on a GPU where I hold one
  kGpuAlone,   // "gpu": no other tenant on the GPU, slices included
  kNodeAlone,  // "node": no other tenant on the node
};

// A pod without an entry is pending. Releasing pods hold their place but count
// in no usage and no minimum; a nominated pod reserves its place.
enum class PodPhase { kPending, kNominated, kRunning, kReleasing, kSucceeded, kFailed };

// Whether a pod is never placed in its snapshot: it has ended, or it is merely leaving.
inline bool IsOver(PodPhase phase) {
  return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed ||
         phase == PodPhase::kReleasing;
}

// A part of one GPU held by a pod, in 1/7000 of the device.
struct GpuShare {
  int gpu = 0;
  int64_t share = 0;

  friend bool operator==(const GpuShare&, const GpuShare&) = default;
};

// A MIG instance held by a pod.
struct GpuSlice {
  int gpu = 0;
  std::string profile;
  int start = 0;

  friend bool operator==(const GpuSlice&, const GpuSlice&) = default;
};

// The devices a pod holds on its node; at most one of the lists is non-empty.
struct Devices {
  std::vector<int> gpus;  // whole devices
  std::vector<GpuShare> shares;
  std::vector<GpuSlice> slices;

  friend bool operator==(const Devices&, const Devices&) = default;
};

// Names pod `index` of a pod set of a workload.
struct PodRef {
  std::string workload;
  std::string pod_set;
  int index = 0;

  friend bool operator==(const PodRef&, const PodRef&) = default;
  friend auto operator<=>(const PodRef&, const PodRef&) = default;
};

// A pod that is, or was, somewhere.
struct Pod {
  std::string pod_set;
  int index = 0;
  PodPhase phase = PodPhase::kRunning;
  std::string node;  // empty only for succeeded and failed pods
  Devices devices;
  std::optional<int64_t> started;
  std::optional<int64_t> expires;  // of a nomination

  friend bool operator==(const Pod&, const Pod&) = default;
};

// A gang in a queue. Times are seconds from any common origin.
struct Workload {
  std::string name;
  std::string queue;
  int priority = kDefaultPriority;
  std::optional<bool> preemptible;  // absent: priority < kNonPreemptiblePriority
  int64_t submitted = 0;
  Isolation isolation = Isolation::kAny;
  std::string tenant;  // empty: the queue
  int64_t preemption_delay = 0;
  std::optional<int64_t> stale_since;
  std::optional<int64_t> stale_grace;  // kUnlimited: never stale
  std::optional<int> max_disrupted;
  std::optional<int64_t> last_checkpoint;
  std::optional<int64_t> max_runtime;
  std::optional<bool> movable;  // absent: preemptible
  Gang gang;
  std::vector<Pod> pods;

  bool is_preemptible() const { return preemptible.value_or(priority < kNonPreemptiblePriority); }
  bool is_movable() const { return movable.value_or(is_preemptible()); }
  const std::string& tenant_name() const { return tenant.empty() ? queue : tenant; }

  friend bool operator==(const Workload&, const Workload&) = default;
};

}  // namespace tessera

#endif  // TESSERA_CLUSTER_WORKLOAD_H_
