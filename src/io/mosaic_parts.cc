#include "src/io/mosaic_parts.h"

#include <algorithm>
#include <array>

namespace tessera::io_internal {
namespace {

// Okabe and Ito's palette without black, neighbours far apart.
constexpr std::array<Rgb, 7> kPalette = {{{0, 114, 178},
                                          {230, 159, 0},
                                          {0, 158, 115},
                                          {204, 121, 167},
                                          {86, 180, 233},
                                          {213, 94, 0},
                                          {240, 228, 66}}};

}  // namespace

Rgb ColourOf(size_t rank) {
  Rgb rgb = kPalette[rank % kPalette.size()];
  const size_t form = rank / kPalette.size() % 3;
  for (int Rgb::*channel : {&Rgb::red, &Rgb::green, &Rgb::blue}) {
    int& value = rgb.*channel;
    if (form == 1) value = value * 55 / 100;
    if (form == 2) value += (255 - value) * 55 / 100;
  }
  return rgb;
}

Span UnitsOf(const GpuModel& model, int profile, int start) {
  const int end = start + model.profiles[static_cast<size_t>(profile)].size;
  return {start * kGpuUnitsPerDevice / model.units, end * kGpuUnitsPerDevice / model.units};
}

std::vector<std::pair<Tile, Span>> Arrange(const GpuModel& model, const std::vector<Tile>& tiles) {
  std::vector<std::pair<Tile, Span>> arranged;
  int64_t running = 0;
  for (PodPhase phase : {PodPhase::kRunning, PodPhase::kReleasing, PodPhase::kNominated}) {
    int64_t used = running;
    for (const Tile& tile : tiles) {
      if (tile.phase != phase) continue;
      Span span;
      if (tile.is_slice()) {
        span = UnitsOf(model, tile.profile, tile.start);
      } else if (tile.share > 0) {
        span.from = std::min(used, kGpuUnitsPerDevice);
        span.to = std::min(used += tile.share, kGpuUnitsPerDevice);
      }
      arranged.emplace_back(tile, span);
    }
    if (phase == PodPhase::kRunning) running = used;
  }
  return arranged;
}

std::vector<Span> Rest(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::from);
  spans.push_back({kGpuUnitsPerDevice, kGpuUnitsPerDevice});
  std::vector<Span> rest;
  int64_t covered = 0;
  for (const Span& span : spans) {
    if (span.from > covered) rest.push_back({covered, span.from});
    covered = std::max(covered, span.to);
  }
  return rest;
}

}  // namespace tessera::io_internal
