#include "tessera/gpu/draw.h"

#include <algorithm>
#include <cassert>

namespace tessera {
namespace {

// Characters per unit, without the bar, so that each name fits between its bars.
int CellWidth(const GpuModel& model) {
  int width = 1;
  for (const MigProfile& profile : model.profiles) {
    const int letters = static_cast<int>(profile.name.size()) - (profile.size - 1);
    width = std::max(width, (letters + profile.size - 1) / profile.size);
  }
  return width;
}

}  // namespace

std::string DrawLayout(const GpuModel& model, std::span<const Instance> instances) {
  if (!model.supports_mig()) return "";
  const size_t cell = static_cast<size_t>(CellWidth(model)) + 1;
  std::string line = "|";
  for (int unit = 0; unit < model.units; ++unit) line.append(cell - 1, '.').append(1, '|');
  for (const Instance& instance : instances) {
    const MigProfile& profile = model.profiles[instance.profile];
    assert(instance.start >= 0 && instance.start + profile.size <= model.units);
    std::string label = profile.name;
    label.resize(profile.size * cell - 1, ' ');
    std::copy(label.begin(), label.end(),
              line.begin() + static_cast<std::ptrdiff_t>(instance.start * cell + 1));
  }
  return line;
}

}  // namespace tessera
