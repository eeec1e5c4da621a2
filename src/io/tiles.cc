#include "src/io/tiles.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"

namespace tessera::io_internal {
namespace {

using Tiles = std::vector<std::vector<std::vector<Tile>>>;

void AddTile(PodId pod, const PodPlacement& placement, PodPhase phase, Tiles& tiles) {
  const Tile tile = {pod, phase, placement.share, placement.profile, placement.start};
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    tiles[static_cast<size_t>(placement.node.value())][static_cast<size_t>(std::countr_zero(rest))]
        .push_back(tile);
  }
}

std::string Where(const Snapshot& snapshot, NodeId n) {
  const Topology& topology = snapshot.topology();
  std::string where = snapshot.node(n).gpu_model;
  for (int level = topology.num_levels() - 1; level >= 0; --level) {
    const DomainId d = topology.domain_of(n, level);
    if (!d.valid()) continue;
    return absl::StrCat(where, ", ", topology.domains(level)[static_cast<size_t>(d.value())].path);
  }
  return where;
}

}  // namespace

Tiles CollectTiles(const Snapshot& snapshot) {
  Tiles tiles;
  for (int n = 0; n < snapshot.num_nodes(); ++n) {
    tiles.emplace_back(snapshot.node(NodeId(n)).gpus.size());
  }
  for (const ReleasingPod& pod : snapshot.releasing()) {
    AddTile(pod.pod, pod.placement, PodPhase::kReleasing, tiles);
  }
  for (int i = 0; i < snapshot.num_pods(); ++i) {
    const PodId p(i);
    const PodPhase phase = snapshot.pod_phase(p);
    if (phase != PodPhase::kRunning && phase != PodPhase::kNominated) continue;
    AddTile(p, snapshot.pod_placement(p), phase, tiles);
  }
  return tiles;
}

std::string NodeNote(const Snapshot& snapshot, NodeId n,
                     const std::vector<std::vector<Tile>>& tiles) {
  const auto free = std::ranges::count_if(tiles, [](const auto& on_gpu) { return on_gpu.empty(); });
  return absl::StrCat("(", Where(snapshot, n), ")  ", free, " of ", tiles.size(),
                      " GPUs without pods", snapshot.node(n).schedulable ? "" : ", unschedulable");
}

}  // namespace tessera::io_internal
