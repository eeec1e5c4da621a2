#ifndef TESSERA_RESOURCES_RESOURCE_SPACE_H_
#define TESSERA_RESOURCES_RESOURCE_SPACE_H_

// Which resource is which component of a `ResourceVector`.
//
// The first five are fixed (`cpu`, `memory`, `pods`, `gpu`, `gpu_memory`). The
// rest are names of the host: extended resources (`nvidia.com/ib`), and
// `gpu:MODEL`, the part of `gpu` held on one GPU model, which only quotas,
// limits and weights may mention.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/resources/resource_vector.h"

namespace tessera {

// Prefix of the dimensions that count GPUs of one model.
inline constexpr std::string_view kGpuModelPrefix = "gpu:";

// A set of named resources. Regular value; equal names give equal spaces.
class ResourceSpace {
 public:
  // The five fixed dimensions.
  ResourceSpace();

  // The fixed dimensions and `extra`, in order of name; duplicates and fixed
  // names count once. kInvalidArgument: an empty name, or more than
  // `kMaxResources` dimensions in all (the message lists the count).
  static absl::StatusOr<ResourceSpace> Create(std::span<const std::string> extra);

  // Number of dimensions in use.
  int size() const { return static_cast<int>(names_.size()); }
  const std::string& name(int r) const { return names_[static_cast<size_t>(r)]; }

  // The component of `name`, if it is a resource of this space. O(size).
  std::optional<int> Find(std::string_view name) const;

  // For a `gpu:MODEL` dimension its MODEL, else an empty view.
  std::string_view gpu_model(int r) const;

  // Whether amounts of `r` are GPUs: `gpu` and `gpu:MODEL`.
  bool counts_gpus(int r) const { return r == kGpu || !gpu_model(r).empty(); }

  friend bool operator==(const ResourceSpace&, const ResourceSpace&) = default;

 private:
  std::vector<std::string> names_;
};

// True when a `gpu:MODEL` dimension written as `quota_model` counts GPUs of
// `model`: the same name, or a family of it ("H100" counts "H100-80GB").
bool CountsGpuModel(std::string_view quota_model, std::string_view model);

}  // namespace tessera

#endif  // TESSERA_RESOURCES_RESOURCE_SPACE_H_
