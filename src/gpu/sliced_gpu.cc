#include "tessera/gpu/sliced_gpu.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

// Adds `instance` to `key` if it is legal there; the quick half of `MigTables::KeyOf`.
bool TryAdd(const MigTables& tables, const Instance& instance, LayoutKey& key) {
  const int profiles = static_cast<int>(tables.model().profiles.size());
  if (instance.profile < 0 || instance.profile >= profiles) return false;
  if (!tables.CanPlace(key, instance.profile, instance.start)) return false;
  key = tables.Add(key, instance.profile, instance.start);
  return true;
}

bool IsLegal(const MigTables& tables, const SlicedGpu& gpu) {
  LayoutKey key = tables.empty();
  for (const BusyInstance& busy : gpu.busy) {
    if (!TryAdd(tables, busy.instance, key)) return false;
    if (busy.cost < 0 || busy.cost > kMaxMoveCost) return false;
  }
  for (const Instance& idle : gpu.idle) {
    if (!TryAdd(tables, idle, key)) return false;
  }
  return gpu.mig_enabled || (gpu.busy.empty() && gpu.idle.empty());
}

// Why `gpu`, which is not legal, is not.
absl::Status Offence(const MigTables& tables, const SlicedGpu& gpu, const std::string& path) {
  std::vector<Instance> busy;
  for (const BusyInstance& b : gpu.busy) busy.push_back(b.instance);
  TESSERA_RETURN_IF_ERROR(tables.KeyOf(busy, absl::StrCat(path, ".busy")).status());
  for (size_t i = 0; i < gpu.busy.size(); ++i) {
    const int64_t cost = gpu.busy[i].cost;
    if (cost >= 0 && cost <= kMaxMoveCost) continue;
    return InvalidAt(absl::StrCat(path, ".busy[", i, "].cost"),
                     absl::StrCat(cost, " is not in 0..", kMaxMoveCost));
  }
  TESSERA_RETURN_IF_ERROR(tables.KeyOf(gpu.idle, absl::StrCat(path, ".idle")).status());
  if (!gpu.mig_enabled) {
    return InvalidAt(absl::StrCat(path, ".mig_enabled"), "false though there are instances");
  }
  LayoutKey key = tables.empty();
  for (const Instance& instance : busy) key = tables.Add(key, instance.profile, instance.start);
  size_t i = 0;
  while (TryAdd(tables, gpu.idle[i], key)) ++i;
  return InvalidAt(absl::StrCat(path, ".idle[", i, "]"),
                   absl::StrCat(tables.model().profiles[gpu.idle[i].profile].name, " at slice ",
                                gpu.idle[i].start, " does not fit beside the busy instances"));
}

}  // namespace

absl::Status CheckSlicedGpus(const MigTables& tables, std::span<const SlicedGpu> gpus,
                             std::string_view path) {
  for (size_t g = 0; g < gpus.size(); ++g) {
    if (IsLegal(tables, gpus[g])) continue;
    return Offence(tables, gpus[g], absl::StrCat(ToAbsl(path), "[", g, "]"));
  }
  return absl::OkStatus();
}

}  // namespace tessera
