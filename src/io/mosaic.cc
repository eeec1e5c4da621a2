#include "tessera/io/mosaic.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

constexpr int kBarWidth = 64;

// One pod's part of a GPU.
struct Tile {
  std::string label;
  int32_t share = 0;  // fractions
  int profile = -1;   // slices
  int start = 0;
};

using Tiles = std::vector<std::vector<std::vector<Tile>>>;  // [node][gpu]

// `label` in exactly `width` columns, filled up with `fill`.
std::string Cell(std::string_view label, int width, char fill) {
  std::string cell(label.substr(0, static_cast<size_t>(std::max(width, 0))));
  cell.resize(static_cast<size_t>(std::max(width, 0)), fill);
  return cell;
}

void AddTile(const Snapshot& snapshot, PodId p, const PodPlacement& placement, PodPhase phase,
             Tiles& tiles) {
  const PodRef ref = snapshot.pod_ref(p);
  Tile tile;
  tile.label = absl::StrCat(ref.workload, "/", ref.pod_set);
  if (phase == PodPhase::kReleasing) tile.label = absl::StrCat("(", tile.label, ")");
  if (phase == PodPhase::kNominated) tile.label = "?" + tile.label;
  tile.share = placement.share;
  tile.profile = placement.profile;
  tile.start = placement.start;
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    tiles[static_cast<size_t>(placement.node.value())][static_cast<size_t>(std::countr_zero(rest))]
        .push_back(tile);
  }
}

Tiles CollectTiles(const Snapshot& snapshot) {
  Tiles tiles;
  for (int n = 0; n < snapshot.num_nodes(); ++n) {
    tiles.emplace_back(snapshot.node(NodeId(n)).gpus.size());
  }
  for (const ReleasingPod& pod : snapshot.releasing()) {
    AddTile(snapshot, pod.pod, pod.placement, PodPhase::kReleasing, tiles);
  }
  for (int i = 0; i < snapshot.num_pods(); ++i) {
    const PodId p(i);
    const PodPhase phase = snapshot.pod_phase(p);
    if (phase != PodPhase::kRunning && phase != PodPhase::kNominated) continue;
    AddTile(snapshot, p, snapshot.pod_placement(p), phase, tiles);
  }
  return tiles;
}

std::string DrawShares(std::vector<Tile> tiles) {
  std::string bar = "|";
  int64_t drawn = 0;
  for (const Tile& tile : tiles) {
    const int64_t share = tile.share > 0 ? tile.share : kGpuUnitsPerDevice;
    const int width = static_cast<int>((drawn + share) * kBarWidth / kGpuUnitsPerDevice -
                                       drawn * kBarWidth / kGpuUnitsPerDevice);
    absl::StrAppend(&bar, Cell(tile.label, width - 1, ' '), "|");
    drawn += share;
  }
  const int left = kBarWidth + 1 - static_cast<int>(bar.size());
  if (left > 1) absl::StrAppend(&bar, Cell("", left - 1, '.'), "|");
  return bar;
}

std::string DrawSlices(const GpuModel& model, const Gpu& gpu, const std::vector<Tile>& tiles) {
  // What starts at each unit: held or idle.
  std::vector<std::string> labels(static_cast<size_t>(model.units));
  std::vector<int> sizes(labels.size(), 0);
  const auto put = [&](int profile, int start, std::string label) {
    labels[static_cast<size_t>(start)] = std::move(label);
    sizes[static_cast<size_t>(start)] = model.profiles[static_cast<size_t>(profile)].size;
  };
  for (const GpuInstance& instance : gpu.instances) {
    put(*model.FindProfile(instance.profile), instance.start,
        absl::StrCat("<", instance.profile, ">"));
  }
  for (const Tile& tile : tiles) {
    const std::string& profile = model.profiles[static_cast<size_t>(tile.profile)].name;
    put(tile.profile, tile.start, absl::StrCat(tile.label, " ", profile));
  }
  const int unit = kBarWidth / model.units;
  std::string bar = "|";
  for (int at = 0; at < model.units;) {
    const int size = sizes[static_cast<size_t>(at)];
    if (size > 0) {
      absl::StrAppend(&bar, Cell(labels[static_cast<size_t>(at)], size * unit - 1, ' '), "|");
    } else {
      absl::StrAppend(&bar, Cell("", unit - 1, '.'), "|");
    }
    at += std::max(size, 1);
  }
  return bar;
}

std::string_view FreeText(const Gpu& gpu) {
  if (!gpu.healthy) return "unhealthy";
  if (gpu.is_mig_enabled()) return "free, MIG mode on";
  return gpu.mig == MigMode::kDynamic ? "free, MIG on demand" : "free";
}

std::string DrawGpu(const Snapshot& snapshot, NodeId n, const Gpu& gpu,
                    const std::vector<Tile>& tiles) {
  const GpuModel& model = snapshot.model(snapshot.node_model(n));
  const bool sliced = !gpu.instances.empty() ||
                      std::ranges::any_of(tiles, [](const Tile& t) { return t.profile >= 0; });
  std::string text;
  if (sliced) {
    text = DrawSlices(model, gpu, tiles);
  } else if (!tiles.empty()) {
    text = DrawShares(tiles);
  } else {
    return std::string(FreeText(gpu));
  }
  return gpu.healthy ? text : text + " unhealthy";
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

void DrawNode(const Snapshot& snapshot, NodeId n, const std::vector<std::vector<Tile>>& tiles,
              std::string& picture) {
  const Node& node = snapshot.node(n);
  const auto free = std::ranges::count_if(tiles, [](const auto& on_gpu) { return on_gpu.empty(); });
  absl::StrAppend(&picture, node.name, " (", Where(snapshot, n), ")  ", free, " of ", tiles.size(),
                  " GPUs without pods", node.schedulable ? "" : ", unschedulable", "\n");
  for (size_t g = 0; g < tiles.size();) {
    const std::string bar = DrawGpu(snapshot, n, node.gpus[g], tiles[g]);
    size_t last = g;
    while (tiles[g].empty() && last + 1 < tiles.size() && tiles[last + 1].empty() &&
           node.gpus[last + 1] == node.gpus[g]) {
      ++last;
    }
    const std::string name =
        last > g ? absl::StrCat("gpu ", g, "-", last) : absl::StrCat("gpu ", g);
    absl::StrAppend(&picture, "  ", Cell(name, 10, ' '), bar, "\n");
    g = last + 1;
  }
}

}  // namespace

std::string DrawMosaic(const Snapshot& snapshot) {
  const Tiles tiles = CollectTiles(snapshot);
  std::string picture;
  int without = 0;
  for (int n = 0; n < snapshot.num_nodes(); ++n) {
    if (tiles[static_cast<size_t>(n)].empty()) {
      ++without;
    } else {
      DrawNode(snapshot, NodeId(n), tiles[static_cast<size_t>(n)], picture);
    }
  }
  if (without > 0) absl::StrAppend(&picture, "and ", without, " nodes without GPUs\n");
  return picture;
}

}  // namespace tessera
