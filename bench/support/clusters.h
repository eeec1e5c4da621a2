#ifndef TESSERA_BENCH_SUPPORT_CLUSTERS_H_
#define TESSERA_BENCH_SUPPORT_CLUSTERS_H_

// Clusters of any size for benchmarks, made here and always the same.

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/resources/units.h"

namespace tessera {

// `nodes` nodes of 8 H100 in dynamic MIG mode, 16 nodes a rack.
inline SnapshotSpec H100Cluster(int nodes) {
  SnapshotSpec spec;
  spec.levels = {"rack"};
  for (int i = 0; i < nodes; ++i) {
    Node node;
    node.name = absl::StrFormat("node-%07d", i);
    node.topology["rack"] = absl::StrFormat("rack-%06d", i / 16);
    node.capacity = {
        .cpu = 128 * kMillisPerCore, .memory = 2048 * kBytesPerGiB, .pods = 110, .extended = {}};
    node.gpu_model = "H100-80GB";
    node.gpus.assign(
        8, Gpu{.healthy = true, .mig = MigMode::kDynamic, .mig_enabled = {}, .instances = {}});
    spec.nodes.push_back(std::move(node));
  }
  return spec;
}

// A pending workload of `count` equal pods.
inline Workload PendingGang(std::string name, int count, GpuRequest gpu) {
  PodSet set;
  set.name = "workers";
  set.count = count;
  set.request.cpu = 4 * kMillisPerCore;
  set.request.memory = 16 * kBytesPerGiB;
  set.request.gpu = std::move(gpu);
  Workload workload;
  workload.name = std::move(name);
  workload.gang.pod_sets.push_back(std::move(set));
  return workload;
}

// A mixed cluster and load in the proportions of a public production trace
// (Weng et al., USENIX ATC '23): several GPU models, a fifth of the nodes
// without GPUs, most pods fractions or single GPUs. `pods` pods for `nodes`
// nodes; 5.35 pods a node fill it about as the trace does.
inline SnapshotSpec MixedCluster(int nodes, int pods) {
  SnapshotSpec spec;
  for (const auto& [name, gib] :
       {std::pair("T4", 16), std::pair("V100", 32), std::pair("A10", 24)}) {
    GpuModel& model = spec.gpu_models.emplace_back();
    model.name = name;
    model.memory_bytes = gib * kBytesPerGiB;
  }
  uint64_t random = 1;
  const auto next = [&random](int bound) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((random >> 33) % static_cast<uint64_t>(bound));
  };
  for (int i = 0; i < nodes; ++i) {
    Node node;
    node.name = absl::StrFormat("node-%07d", i);
    const int kind = i % 5;
    const int gpus = kind == 0 ? 0 : kind == 1 ? 2 : kind == 2 ? 4 : 8;
    node.capacity = {.cpu = (32 + 16 * kind) * kMillisPerCore,
                     .memory = (128 + 128 * kind) * kBytesPerGiB,
                     .pods = 110,
                     .extended = {}};
    if (gpus > 0) node.gpu_model = spec.gpu_models[static_cast<size_t>(next(3))].name;
    node.gpus.assign(static_cast<size_t>(gpus), Gpu());
    spec.nodes.push_back(std::move(node));
  }
  for (int i = 0; i < pods; ++i) {
    const int kind = next(100);
    GpuRequest gpu;
    if (kind < 40) gpu = GpuRequest::Fraction(kGpuUnitsPerDevice * (1 + next(19)) / 20);
    if (kind >= 40 && kind < 80) gpu = GpuRequest::Whole(1);
    if (kind >= 80 && kind < 86) gpu = GpuRequest::Whole(1 << (1 + next(3)));
    Workload workload = PendingGang(absl::StrFormat("pod-%08d", i), 1, std::move(gpu));
    workload.gang.pod_sets[0].request.cpu = (1 + next(12)) * kMillisPerCore;
    workload.gang.pod_sets[0].request.memory = (2 + 2 * next(16)) * kBytesPerGiB;
    workload.submitted = i;
    spec.workloads.push_back(std::move(workload));
  }
  return spec;
}

}  // namespace tessera

#endif  // TESSERA_BENCH_SUPPORT_CLUSTERS_H_
