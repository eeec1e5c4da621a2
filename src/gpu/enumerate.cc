#include "tessera/gpu/enumerate.h"

#include <map>
#include <utility>

namespace tessera {
namespace {

bool Contains(uint32_t alphabet, int profile) { return ((alphabet >> profile) & 1) != 0; }

int ProfileCount(const MigTables& tables) {
  return static_cast<int>(tables.model().profiles.size());
}

// Appends `layout`, whose key is `key` and whose instances end at or before `from`,
// and all its extensions to the right. The depth is at most the number of units.
void Extend(const MigTables& tables, uint32_t alphabet, LayoutKey key, int from,
            std::vector<Instance>& layout, std::vector<std::vector<Instance>>& layouts) {
  layouts.push_back(layout);
  for (int start = from; start < tables.model().units; ++start) {
    for (int p = 0; p < ProfileCount(tables); ++p) {
      if (!Contains(alphabet, p) || !tables.CanPlace(key, p, start)) continue;
      layout.push_back({p, start});
      Extend(tables, alphabet, tables.Add(key, p, start), start + tables.model().profiles[p].size,
             layout, layouts);
      layout.pop_back();
    }
  }
}

int64_t SaturatingAdd(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

}  // namespace

uint32_t PlainProfiles(const GpuModel& model) {
  uint32_t alphabet = 0;
  for (size_t p = 0; p < model.profiles.size(); ++p) {
    if (!model.profiles[p].is_variant()) alphabet |= uint32_t{1} << p;
  }
  return alphabet;
}

std::vector<std::vector<Instance>> EnumerateLayouts(const MigTables& tables, uint32_t alphabet) {
  std::vector<std::vector<Instance>> layouts;
  std::vector<Instance> layout;
  Extend(tables, alphabet, tables.empty(), 0, layout, layouts);
  return layouts;
}

bool IsMaximal(const MigTables& tables, LayoutKey key, uint32_t alphabet) {
  return (tables.Placeable(key) & alphabet) == 0;
}

LayoutCounts CountLayouts(const MigTables& tables, uint32_t alphabet) {
  // ways[u][mask, engines]: layouts of the first u units. A layout passes each u
  // where none of its instances is cut, by one way, so that it is counted once.
  using Ways = std::map<std::pair<uint16_t, uint16_t>, int64_t>;
  const int units = tables.model().units;
  std::vector<Ways> ways(units + 1);
  ways[0][{0, 0}] = 1;
  for (int u = 0; u < units; ++u) {
    for (const auto& [state, count] : ways[u]) {
      int64_t& skipped = ways[u + 1][state];
      skipped = SaturatingAdd(skipped, count);
      const LayoutKey key = {state.first, state.second};
      for (int p = 0; p < ProfileCount(tables); ++p) {
        if (!Contains(alphabet, p) || !tables.CanPlace(key, p, u)) continue;
        const LayoutKey next = tables.Add(key, p, u);
        int64_t& placed = ways[u + tables.model().profiles[p].size][{next.mask, next.engines}];
        placed = SaturatingAdd(placed, count);
      }
    }
    ways[u].clear();
  }
  LayoutCounts counts;
  for (const auto& [state, count] : ways[units]) {
    counts.states = SaturatingAdd(counts.states, count);
    if (!IsMaximal(tables, {state.first, state.second}, alphabet)) continue;
    counts.maximal = SaturatingAdd(counts.maximal, count);
  }
  return counts;
}

}  // namespace tessera
