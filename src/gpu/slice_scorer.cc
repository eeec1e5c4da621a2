#include "tessera/gpu/slice_scorer.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

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

}  // namespace

absl::StatusOr<FragmentationGradient> FragmentationGradient::Create(const MigTables& tables,
                                                                    std::span<const int64_t> mix,
                                                                    std::string_view path) {
  TESSERA_RETURN_IF_ERROR(CheckMix(tables.model(), mix, path));
  FragmentationGradient gradient(tables);
  gradient.weights_ = RoomWeights(tables.model(), mix);
  gradient.worth_.assign(tables.num_states(), 0);
  for (const LayoutKey key : tables.ReachableKeys()) {
    int64_t& worth = gradient.worth_[tables.StateOf(key)];
    for (size_t p = 0; p < gradient.weights_.size(); ++p) {
      worth += gradient.weights_[p] * tables.Capacity(key, static_cast<int>(p));
    }
  }
  return gradient;
}

}  // namespace tessera
