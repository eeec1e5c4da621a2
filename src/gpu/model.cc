#include "tessera/gpu/model.h"

#include <array>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

// The path of a field of `prefix`, which is empty for a model that stands alone.
std::string Field(std::string_view prefix, const char* field) {
  return prefix.empty() ? field : absl::StrCat(ToAbsl(prefix), ".", field);
}

absl::Status CheckRange(const std::string& path, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return InvalidAt(path, absl::StrCat("must be in ", low, "..", high, ", got ", value));
}

absl::Status CheckAtLeast(const std::string& path, int64_t value, int64_t low) {
  if (value >= low) return absl::OkStatus();
  return InvalidAt(path, absl::StrCat("must be at least ", low, ", got ", value));
}

// `limits` null: only the bound of the representation applies.
absl::Status CheckEngines(const std::string& path, const EngineCounts& engines,
                          const EngineCounts* limits) {
  for (const EngineKind& kind : kEngineKinds) {
    const int high = limits == nullptr ? kMaxEngines : limits->*kind.count;
    TESSERA_RETURN_IF_ERROR(
        CheckRange(absl::StrCat(path, ".", ToAbsl(kind.name)), engines.*kind.count, 0, high));
  }
  return absl::OkStatus();
}

absl::Status CheckStarts(const std::string& path, const MigProfile& profile, int units) {
  if (profile.starts.empty()) return InvalidAt(path, "must not be empty");
  for (size_t i = 0; i < profile.starts.size(); ++i) {
    const int start = profile.starts[i];
    const std::string at = absl::StrCat(path, "[", i, "]");
    if (start < 0) return InvalidAt(at, absl::StrCat("must not be negative, got ", start));
    if (start > units - profile.size) {
      return InvalidAt(at, absl::StrCat("start ", start, " + size ", profile.size, " exceeds the ",
                                        units, " units"));
    }
    if (i > 0 && start <= profile.starts[i - 1]) {
      return InvalidAt(at, absl::StrCat("must be above ", profile.starts[i - 1], ", got ", start));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckProfile(const std::string& path, const GpuModel& model, size_t index) {
  const MigProfile& profile = model.profiles[index];
  const std::string name_path = absl::StrCat(path, ".name");
  if (profile.name.empty()) return InvalidAt(name_path, "must not be empty");
  for (size_t i = 0; i < index; ++i) {
    if (model.profiles[i].name != profile.name) continue;
    return InvalidAt(
        name_path, absl::StrCat("\"", profile.name, "\" is already the name of profiles[", i, "]"));
  }
  TESSERA_RETURN_IF_ERROR(CheckRange(absl::StrCat(path, ".size"), profile.size, 1, model.units));
  TESSERA_RETURN_IF_ERROR(CheckRange(absl::StrCat(path, ".compute_slices"), profile.compute_slices,
                                     1, model.compute_slices));
  TESSERA_RETURN_IF_ERROR(CheckRange(absl::StrCat(path, ".memory_slices"), profile.memory_slices, 1,
                                     model.memory_slices));
  TESSERA_RETURN_IF_ERROR(
      CheckRange(absl::StrCat(path, ".memory"), profile.memory_bytes, 0, model.memory_bytes));
  TESSERA_RETURN_IF_ERROR(
      CheckAtLeast(absl::StrCat(path, ".max_instances"), profile.max_instances, 1));
  TESSERA_RETURN_IF_ERROR(CheckStarts(absl::StrCat(path, ".starts"), profile, model.units));
  const bool engines_bind = model.engines != EngineCounts{};
  return CheckEngines(absl::StrCat(path, ".engines"), profile.engines,
                      engines_bind ? &model.engines : nullptr);
}

absl::Status CheckUnpartitioned(std::string_view path, const GpuModel& model) {
  const std::array<std::pair<const char*, int64_t>, 3> fields = {{
      {"compute_slices", model.compute_slices},
      {"memory_slices", model.memory_slices},
      {"profiles", static_cast<int64_t>(model.profiles.size())},
  }};
  for (const auto& [name, count] : fields) {
    if (count == 0) continue;
    return InvalidAt(Field(path, name),
                     absl::StrCat("must be empty on a model without placement units, got ", count));
  }
  return absl::OkStatus();
}

}  // namespace

bool MigProfile::is_variant() const {
  return name.find('+') != std::string::npos || name.ends_with("-me");
}

std::optional<int> GpuModel::FindProfile(std::string_view profile_name) const {
  for (size_t i = 0; i < profiles.size(); ++i) {
    if (profiles[i].name == profile_name) return static_cast<int>(i);
  }
  return std::nullopt;
}

absl::Status ValidateMigGeometry(const GpuModel& model, std::string_view path) {
  TESSERA_RETURN_IF_ERROR(CheckRange(Field(path, "units"), model.units, 0, kMaxPlacementUnits));
  if (!model.supports_mig()) return CheckUnpartitioned(path, model);
  TESSERA_RETURN_IF_ERROR(CheckAtLeast(Field(path, "compute_slices"), model.compute_slices, 1));
  TESSERA_RETURN_IF_ERROR(CheckAtLeast(Field(path, "memory_slices"), model.memory_slices, 1));
  TESSERA_RETURN_IF_ERROR(CheckEngines(Field(path, "engines"), model.engines, nullptr));
  const std::string profiles_path = Field(path, "profiles");
  if (model.profiles.empty()) return InvalidAt(profiles_path, "must not be empty");
  if (model.profiles.size() > size_t{kMaxMigProfiles}) {
    return InvalidAt(profiles_path, absl::StrCat("at most ", kMaxMigProfiles, " profiles, got ",
                                                 model.profiles.size()));
  }
  for (size_t i = 0; i < model.profiles.size(); ++i) {
    TESSERA_RETURN_IF_ERROR(CheckProfile(absl::StrCat(profiles_path, "[", i, "]"), model, i));
  }
  return absl::OkStatus();
}

absl::Status ValidateGpuModel(const GpuModel& model, std::string_view path) {
  if (model.name.empty()) return InvalidAt(Field(path, "name"), "must not be empty");
  if (model.memory_bytes <= 0) {
    return InvalidAt(Field(path, "memory"),
                     absl::StrCat("must be positive, got ", model.memory_bytes));
  }
  TESSERA_RETURN_IF_ERROR(ValidateMigGeometry(model, path));
  if (model.supports_mig() && kGpuUnitsPerDevice % model.compute_slices != 0) {
    return InvalidAt(Field(path, "compute_slices"),
                     absl::StrCat("must divide ", kGpuUnitsPerDevice, " for exact charging, got ",
                                  model.compute_slices));
  }
  return absl::OkStatus();
}

}  // namespace tessera
