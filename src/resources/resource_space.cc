#include "tessera/resources/resource_space.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tessera {

ResourceSpace::ResourceSpace() : names_({"cpu", "memory", "pods", "gpu", "gpu_memory"}) {}

absl::StatusOr<ResourceSpace> ResourceSpace::Create(std::span<const std::string> extra) {
  ResourceSpace space;
  std::vector<std::string> names(extra.begin(), extra.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (std::string& name : names) {
    if (name.empty()) return absl::InvalidArgumentError("a resource name is empty");
    if (!space.Find(name)) space.names_.push_back(std::move(name));
  }
  if (space.size() > kMaxResources) {
    return absl::InvalidArgumentError(absl::StrCat("the snapshot names ", space.size(),
                                                   " resources; at most ", kMaxResources,
                                                   " are supported"));
  }
  return space;
}

std::optional<int> ResourceSpace::Find(std::string_view name) const {
  for (int r = 0; r < size(); ++r) {
    if (names_[static_cast<size_t>(r)] == name) return r;
  }
  return std::nullopt;
}

std::string_view ResourceSpace::gpu_model(int r) const {
  std::string_view text = name(r);
  if (!text.starts_with(kGpuModelPrefix)) return {};
  return text.substr(kGpuModelPrefix.size());
}

bool CountsGpuModel(std::string_view quota_model, std::string_view model) {
  if (!model.starts_with(quota_model)) return false;
  return model.size() == quota_model.size() || model[quota_model.size()] == '-';
}

}  // namespace tessera
