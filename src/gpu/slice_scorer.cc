#include "tessera/gpu/slice_scorer.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/gpu/enumerate.h"

namespace tessera {
namespace {

absl::Status CheckMix(const GpuModel& model, std::span<const int64_t> mix, std::string_view path) {
  if (!mix.empty() && mix.size() != model.profiles.size()) {
    return InvalidAt(path, absl::StrCat(mix.size(), " weights for the ", model.profiles.size(),
                                        " profiles of ", model.name));
  }
  for (size_t p = 0; p < mix.size(); ++p) {
    if (mix[p] >= 0 && mix[p] <= kMaxDemandWeight) continue;
    return InvalidAt(absl::StrCat(ToAbsl(path), "[", p, "]"),
                     absl::StrCat("weight ", mix[p], " is not in 0..", kMaxDemandWeight));
  }
  return absl::OkStatus();
}

// What one instance's room is worth, by profile: half by `mix`, half the same for all.
std::vector<int64_t> RoomWeights(const GpuModel& model, std::span<const int64_t> mix) {
  const int64_t plain = std::popcount(PlainProfiles(model));
  const int64_t total = std::accumulate(mix.begin(), mix.end(), int64_t{0});
  std::vector<int64_t> weights;
  for (size_t p = 0; p < model.profiles.size(); ++p) {
    const MigProfile& profile = model.profiles[p];
    const int64_t asked = mix.empty() ? 0 : plain * mix[p];
    const int64_t floor = profile.is_variant() ? 0 : std::max<int64_t>(total, 1);
    weights.push_back((asked + floor) * profile.size * profile.size);
  }
  return weights;
}

using KeySet = std::set<std::pair<uint16_t, uint16_t>>;  // (mask, engines)

// Every key that a GPU can have.
KeySet ReachableKeys(const MigTables& tables) {
  KeySet keys = {{tables.empty().mask, tables.empty().engines}};
  // Adding an instance makes the mask larger, so one ascending pass sees them all.
  for (const auto& [mask, engines] : keys) {
    const LayoutKey key = {mask, engines};
    for (int p = 0; p < static_cast<int>(tables.model().profiles.size()); ++p) {
      for (uint32_t open = tables.LegalStarts(key, p); open != 0; open &= open - 1) {
        const LayoutKey next = tables.Add(key, p, std::countr_zero(open));
        keys.emplace(next.mask, next.engines);
      }
    }
  }
  return keys;
}

}  // namespace

absl::StatusOr<FragmentationGradient> FragmentationGradient::Create(const MigTables& tables,
                                                                    std::span<const int64_t> mix,
                                                                    std::string_view path) {
  TESSERA_RETURN_IF_ERROR(CheckMix(tables.model(), mix, path));
  const std::vector<int64_t> weights = RoomWeights(tables.model(), mix);
  const KeySet keys = ReachableKeys(tables);
  FragmentationGradient gradient;
  gradient.rank_.assign(size_t{1} << tables.model().units, 0);
  size_t masks = 0;
  int last_mask = -1;
  for (const auto& [mask, engines] : keys) {
    if (mask != last_mask) gradient.rank_[mask] = static_cast<uint16_t>(masks++);
    last_mask = mask;
    gradient.codes_ = std::max<size_t>(gradient.codes_, engines + 1);
  }
  gradient.worth_.assign(masks * gradient.codes_, 0);
  for (const auto& [mask, engines] : keys) {
    const LayoutKey key = {mask, engines};
    int64_t& worth = gradient.worth_[gradient.rank_[mask] * gradient.codes_ + engines];
    for (size_t p = 0; p < weights.size(); ++p) {
      worth += weights[p] * tables.Capacity(key, static_cast<int>(p));
    }
  }
  return gradient;
}

}  // namespace tessera
