#ifndef TESSERA_TESTS_SUPPORT_LARGEST_MODEL_H_
#define TESSERA_TESTS_SUPPORT_LARGEST_MODEL_H_

#include "absl/strings/str_cat.h"
#include "tessera/gpu/model.h"

namespace tessera {

// An invented GPU with the widest axis and the most profiles that the representation
// allows, any of which starts anywhere.
inline GpuModel LargestModel() {
  GpuModel model;
  model.name = "large";
  model.units = model.compute_slices = model.memory_slices = kMaxPlacementUnits;
  model.profiles.resize(kMaxMigProfiles);
  for (size_t p = 0; p < model.profiles.size(); ++p) {
    model.profiles[p].name = absl::StrCat("p", p);
    model.profiles[p].max_instances = kMaxPlacementUnits;
    for (int start = 0; start < kMaxPlacementUnits; ++start) {
      model.profiles[p].starts.push_back(start);
    }
  }
  return model;
}

}  // namespace tessera

#endif  // TESSERA_TESTS_SUPPORT_LARGEST_MODEL_H_
