#include "tessera/io/mosaic.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/io/tiles.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

constexpr int kBarWidth = 64;
constexpr int kNameWidth = 10;

using io_internal::Tile;
using Tiles = std::vector<Tile>;

// `label` in exactly `width` columns, filled up with `fill`.
std::string Cell(std::string_view label, int width, char fill) {
  std::string cell(label.substr(0, static_cast<size_t>(std::max(width, 0))));
  cell.resize(static_cast<size_t>(std::max(width, 0)), fill);
  return cell;
}

std::string LabelOf(const Snapshot& snapshot, const Tile& tile) {
  const PodRef ref = snapshot.pod_ref(tile.pod);
  const std::string name = absl::StrCat(ref.workload, "/", ref.pod_set);
  if (tile.phase == PodPhase::kReleasing) return absl::StrCat("(", name, ")");
  return tile.phase == PodPhase::kNominated ? "?" + name : name;
}

std::string DrawShares(const Snapshot& snapshot, const Tiles& tiles) {
  std::string bar = "|";
  int64_t drawn = 0;
  for (const Tile& tile : tiles) {
    const int64_t share = tile.share > 0 ? tile.share : kGpuUnitsPerDevice;
    const int width = static_cast<int>((drawn + share) * kBarWidth / kGpuUnitsPerDevice -
                                       drawn * kBarWidth / kGpuUnitsPerDevice);
    absl::StrAppend(&bar, Cell(LabelOf(snapshot, tile), width - 1, ' '), "|");
    drawn += share;
  }
  const int left = kBarWidth + 1 - static_cast<int>(bar.size());
  if (left > 1) absl::StrAppend(&bar, Cell("", left - 1, '.'), "|");
  return bar;
}

std::string DrawSlices(const Snapshot& snapshot, const GpuModel& model, const Gpu& gpu,
                       const Tiles& tiles) {
  // What starts at each unit: held or idle.
  std::vector<std::string> labels(static_cast<size_t>(model.units));
  std::vector<int> sizes(labels.size(), 0);
  const auto put = [&](int profile, int start, std::string label) {
    const int size = model.profiles[static_cast<size_t>(profile)].size;
    // A nominated slice takes the place of idle instances.
    for (int other = 0; other < start + size; ++other) {
      if (other + sizes[static_cast<size_t>(other)] > start) sizes[static_cast<size_t>(other)] = 0;
    }
    labels[static_cast<size_t>(start)] = std::move(label);
    sizes[static_cast<size_t>(start)] = size;
  };
  for (const GpuInstance& instance : gpu.instances) {
    put(*model.FindProfile(instance.profile), instance.start,
        absl::StrCat("<", instance.profile, ">"));
  }
  for (const Tile& tile : tiles) {
    const std::string& profile = model.profiles[static_cast<size_t>(tile.profile)].name;
    put(tile.profile, tile.start, absl::StrCat(LabelOf(snapshot, tile), " ", profile));
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

// `tiles` are all slices or all none.
std::string DrawBar(const Snapshot& snapshot, NodeId n, const Gpu& gpu, const Tiles& tiles) {
  const bool sliced = tiles.empty() ? !gpu.instances.empty() : tiles[0].is_slice();
  if (sliced) return DrawSlices(snapshot, snapshot.model(snapshot.node_model(n)), gpu, tiles);
  return tiles.empty() ? std::string(FreeText(gpu)) : DrawShares(snapshot, tiles);
}

// A bar, or two where nominated pods wait for releasing ones: now and then.
std::string DrawGpu(const Snapshot& snapshot, NodeId n, const Gpu& gpu, const Tiles& tiles) {
  const auto without = [&tiles](PodPhase phase) {
    Tiles others = tiles;
    std::erase_if(others, [phase](const Tile& tile) { return tile.phase == phase; });
    return others;
  };
  const Tiles now = without(PodPhase::kNominated);
  const Tiles then = without(PodPhase::kReleasing);
  const bool changes = now.size() < tiles.size() && then.size() < tiles.size();
  std::string text = DrawBar(snapshot, n, gpu, changes ? now : tiles);
  if (changes) {
    absl::StrAppend(&text, "\n  ", Cell("  then", kNameWidth, ' '),
                    DrawBar(snapshot, n, gpu, then));
  }
  return gpu.healthy || (tiles.empty() && gpu.instances.empty()) ? text : text + " unhealthy";
}

void DrawNode(const Snapshot& snapshot, NodeId n, const std::vector<Tiles>& tiles,
              std::string& picture) {
  const Node& node = snapshot.node(n);
  absl::StrAppend(&picture, node.name, " ", io_internal::NodeNote(snapshot, n, tiles), "\n");
  for (size_t g = 0; g < tiles.size();) {
    const std::string bar = DrawGpu(snapshot, n, node.gpus[g], tiles[g]);
    size_t last = g;
    while (tiles[g].empty() && last + 1 < tiles.size() && tiles[last + 1].empty() &&
           node.gpus[last + 1] == node.gpus[g]) {
      ++last;
    }
    const std::string name =
        last > g ? absl::StrCat("gpu ", g, "-", last) : absl::StrCat("gpu ", g);
    absl::StrAppend(&picture, "  ", Cell(name, kNameWidth, ' '), bar, "\n");
    g = last + 1;
  }
}

}  // namespace

std::string DrawMosaic(const Snapshot& snapshot) {
  const std::vector<std::vector<Tiles>> tiles = io_internal::CollectTiles(snapshot);
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
