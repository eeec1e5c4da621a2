#ifndef TESSERA_TESTS_SUPPORT_SNAPSHOT_BUILDER_FOR_TESTS_H_
#define TESSERA_TESTS_SUPPORT_SNAPSHOT_BUILDER_FOR_TESTS_H_

// Small clusters in few words.
//
//   SnapshotSpec spec;
//   spec.nodes = {MakeNode("n1", 8), MakeNode("n2", 8)};
//   spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", 2, WholeGpus(4))})};
//   spec.workloads[0].pods = {MakePod("s", 0, "n1", OnGpus({0, 1, 2, 3}))};
//   const Snapshot snapshot = CreateOrDie(spec);

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tessera/cluster/plan.h"
#include "tessera/cluster/snapshot.h"

namespace tessera {

// 64 cores, 512 GiB, and `gpus` whole GPUs without MIG.
inline Node MakeNode(std::string name, int gpus = 0, std::string model = "H100-80GB") {
  Node node;
  node.name = std::move(name);
  node.capacity.cpu = 64 * kMillisPerCore;
  node.capacity.memory = 512 * kBytesPerGiB;
  if (gpus > 0) node.gpu_model = std::move(model);
  node.gpus.resize(static_cast<size_t>(gpus));
  return node;
}

// A GPU of this MIG mode, enabled exactly when it has instances.
inline Gpu MakeMigGpu(MigMode mode, std::vector<GpuInstance> instances = {}) {
  Gpu gpu;
  gpu.mig = mode;
  gpu.instances = std::move(instances);
  return gpu;
}

inline Queue MakeQueue(std::string name, std::string parent = "") {
  Queue queue;
  queue.name = std::move(name);
  queue.parent = std::move(parent);
  return queue;
}

inline constexpr int64_t Gpus(int64_t devices) { return devices * kGpuUnitsPerDevice; }
inline constexpr int64_t Cores(int64_t cores) { return cores * kMillisPerCore; }

// Requests that ask for nothing but this.
inline Request WithGpu(GpuRequest gpu) {
  Request request;
  request.gpu = std::move(gpu);
  return request;
}
inline Request WholeGpus(int devices) { return WithGpu(GpuRequest::Whole(devices)); }
inline Request Fraction(int64_t share) { return WithGpu(GpuRequest::Fraction(share)); }
inline Request SliceOfProfile(std::string name) {
  return WithGpu(GpuRequest::Profile(std::move(name)));
}
inline Request CpuOnly(int64_t cores) {
  Request request;
  request.cpu = Cores(cores);
  return request;
}

inline PodSet MakePodSet(std::string name, int count, Request request) {
  PodSet set;
  set.name = std::move(name);
  set.count = count;
  set.request = std::move(request);
  return set;
}

inline PodSet WithMinCount(PodSet set, int min_count) {
  set.min_count = min_count;
  return set;
}

inline PodGroup MakeGroup(std::string name, std::vector<PodSet> pod_sets, std::string after = "") {
  PodGroup group;
  group.name = std::move(name);
  group.pod_sets = std::move(pod_sets);
  group.after = std::move(after);
  return group;
}

// An empty queue name means the only queue of a snapshot that lists none.
inline Workload MakeWorkload(std::string name, std::string queue, std::vector<PodSet> pod_sets) {
  Workload workload;
  workload.name = std::move(name);
  workload.queue = std::move(queue);
  workload.gang.pod_sets = std::move(pod_sets);
  return workload;
}

inline Devices OnGpus(std::vector<int> gpus) {
  Devices devices;
  devices.gpus = std::move(gpus);
  return devices;
}
inline Devices OnShare(int gpu, int64_t share) {
  Devices devices;
  devices.shares = {{gpu, share}};
  return devices;
}
inline Devices OnSlice(int gpu, std::string profile, int start) {
  Devices devices;
  devices.slices = {{gpu, std::move(profile), start}};
  return devices;
}

inline Pod MakePod(std::string pod_set, int index, std::string node, Devices devices = {},
                   PodPhase phase = PodPhase::kRunning) {
  Pod pod;
  pod.pod_set = std::move(pod_set);
  pod.index = index;
  pod.phase = phase;
  pod.node = std::move(node);
  pod.devices = std::move(devices);
  return pod;
}

// A pod that has ended: nowhere.
inline Pod MakeEndedPod(std::string pod_set, int index, PodPhase phase) {
  return MakePod(std::move(pod_set), index, "", {}, phase);
}

inline PendingWorkload MakePending(std::string workload, bool below_minimum) {
  PendingWorkload pending;
  pending.workload = std::move(workload);
  pending.text = "waits";
  pending.counts = {{"nodes", 1}};
  pending.below_minimum = below_minimum;
  return pending;
}

// For specs that are right: ends the program, saying why, if one is not.
inline Snapshot CreateOrDie(SnapshotSpec spec) {
  absl::StatusOr<Snapshot> snapshot = Snapshot::Create(std::move(spec));
  if (!snapshot.ok()) {
    std::fprintf(stderr, "%s\n", snapshot.status().ToString().c_str());
    std::abort();
  }
  return *std::move(snapshot);
}

}  // namespace tessera

#endif  // TESSERA_TESTS_SUPPORT_SNAPSHOT_BUILDER_FOR_TESTS_H_
