#ifndef TESSERA_PLACEMENT_PUBLISHED_SCORERS_H_
#define TESSERA_PLACEMENT_PUBLISHED_SCORERS_H_

// The baselines that FGD was compared with (Weng et al., USENIX ATC '23), as scorers in
// exact integers: for comparison, not for use. All floor to whole points, which makes
// ties, and take the fullest device of a node that suffices. CPU is measured against
// 128 cores, GPUs against 8 devices. The fifth baseline, a random node, needs no scorer.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "absl/numeric/int128.h"
#include "tessera/placement/node_room.h"
#include "tessera/placement/node_scorer.h"

namespace tessera {

// What a pod takes of CPU (millicores) and GPUs (1/7000 device), and what is free.
struct PublishedVectors {
  static constexpr int64_t kFullCpu = 128 * kMillisPerCore;
  static constexpr int64_t kFullGpu = 8 * kGpuUnitsPerDevice;

  PublishedVectors(const ClusterState& state, const RequestClass& request, const Candidate& c)
      : cpu(request.need[kCpu]), free_cpu(c.free[kCpu]) {
    const NodeRoom room = RoomOf(state, c.node);
    free_gpu = room.left();
    gpu = free_gpu - RoomAfter(state, room, request, c).left();
  }

  int64_t cpu = 0, gpu = 0;
  int64_t free_cpu = 0, free_gpu = 0;
};

// 100 (1 - (free . request) / 2): the less of what the pod wants is free, the better.
struct DotProduct {
  int64_t Score(const ClusterState& state, const RequestClass& request, const Candidate& c) const {
    const absl::int128 cpu_square =
        absl::int128(PublishedVectors::kFullCpu) * PublishedVectors::kFullCpu;
    const absl::int128 gpu_square =
        absl::int128(PublishedVectors::kFullGpu) * PublishedVectors::kFullGpu;
    const PublishedVectors v(state, request, c);
    const absl::int128 product = absl::int128(v.free_cpu) * v.cpu * gpu_square +
                                 absl::int128(v.free_gpu) * v.gpu * cpu_square;
    const absl::int128 scale = cpu_square * gpu_square;
    return 100 - static_cast<int64_t>((50 * product + scale - 1) / scale);
  }
};

// 100 (1 - (what stays free of CPU + of GPUs) / 2). (As published it is then stretched
// over the candidates to 0 .. 100, which changes no order.)
struct BestFit {
  int64_t Score(const ClusterState& state, const RequestClass& request, const Candidate& c) const {
    constexpr int64_t kScale = PublishedVectors::kFullCpu * PublishedVectors::kFullGpu;
    const PublishedVectors v(state, request, c);
    const int64_t stays = (v.free_cpu - v.cpu) * PublishedVectors::kFullGpu +
                          (v.free_gpu - v.gpu) * PublishedVectors::kFullCpu;
    return 100 - (50 * stays + kScale - 1) / kScale;
  }
};

// Used devices before free devices of used nodes before unused nodes.
struct GpuPacking {
  int64_t Score(const ClusterState& state, const RequestClass& request, const Candidate& c) const {
    if (request.gpu.kind == GpuRequestKind::kNone) return 0;
    const NodeRoom room = RoomOf(state, c.node);
    const int64_t all = room.num_devices;
    if (std::ranges::count(room.devices(), true, &DeviceRoom::whole) == all) {
      return std::max(33 - all, all);
    }
    int64_t opened = 0, free_tenths = 0;
    for (uint64_t rest = c.placement.gpus; rest != 0; rest &= rest - 1) {
      const DeviceRoom& device = room.device[static_cast<size_t>(std::countr_zero(rest))];
      opened += device.whole ? 1 : 0;
      free_tenths += device.left * 10 / kGpuUnitsPerDevice;
    }
    return opened > 0 ? std::max<int64_t>(50 - opened, 33)
                      : std::max<int64_t>(100 - free_tenths, 50);
  }
};

// Pods beside their like. A class is: shared, or whole devices by number (1, 2, 4, 8).
struct GpuClustering {
  // By node, the classes of its pods: bit `ClassBit`. Kept by the caller, and changed
  // only together with the node.
  std::span<const uint8_t> hosted;

  static uint8_t ClassBit(const GpuRequest& gpu) {
    if (gpu.kind != GpuRequestKind::kWhole) return 1;
    return static_cast<uint8_t>(1u << std::bit_width(static_cast<unsigned>(gpu.devices)));
  }

  int64_t Score(const ClusterState& state, const RequestClass& request, const Candidate& c) const {
    if (request.gpu.kind == GpuRequestKind::kNone) return 0;
    const uint8_t there = hosted[static_cast<size_t>(c.node.value())];
    const uint8_t own = ClassBit(request.gpu);
    const int64_t tier = there == own ? 75 : (there & own) != 0 ? 50 : there == 0 ? 25 : 0;
    const int64_t free = RoomOf(state, c.node).left();
    return tier + 25 * (PublishedVectors::kFullGpu - free) / PublishedVectors::kFullGpu;
  }
};

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_PUBLISHED_SCORERS_H_
