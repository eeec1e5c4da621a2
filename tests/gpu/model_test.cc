#include "tessera/gpu/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

// Two halves or the whole, with one optical flow engine.
GpuModel Halves() {
  GpuModel model;
  model.name = "halves";
  model.memory_bytes = 32;
  model.units = 2;
  model.compute_slices = 2;
  model.memory_slices = 2;
  model.engines = {.copy = 2, .decoder = 2, .encoder = 0, .jpeg = 0, .ofa = 1};
  model.profiles.resize(2);
  model.profiles[0].name = "1g.16b";
  model.profiles[0].memory_bytes = 16;
  model.profiles[0].max_instances = 2;
  model.profiles[0].starts = {0, 1};
  model.profiles[0].engines = {.copy = 1, .decoder = 1};
  model.profiles[1].name = "2g.32b";
  model.profiles[1].size = 2;
  model.profiles[1].compute_slices = 2;
  model.profiles[1].memory_slices = 2;
  model.profiles[1].memory_bytes = 32;
  model.profiles[1].starts = {0};
  model.profiles[1].engines = {.copy = 2, .decoder = 2, .ofa = 1};
  return model;
}

TEST(ValidateGpuModel, AcceptsAWholeAndAPartitionedModel) {
  EXPECT_THAT(ValidateGpuModel(Halves(), "m"), IsOk());
  GpuModel whole;
  whole.name = "T4";
  whole.memory_bytes = int64_t{16} << 30;
  EXPECT_THAT(ValidateGpuModel(whole, "m"), IsOk());
  EXPECT_FALSE(whole.supports_mig());
}

TEST(ValidateGpuModel, EnginesBindOnlyWhenTheModelHasSome) {
  GpuModel model = Halves();
  model.engines = {};
  EXPECT_THAT(ValidateGpuModel(model, "m"), IsOk());
}

struct Fault {
  const char* field;
  const char* text;
  std::function<void(GpuModel&)> make;
};

TEST(ValidateGpuModel, NamesTheOffendingField) {
  const Fault faults[] = {
      {"name", "must not be empty", [](GpuModel& m) { m.name = ""; }},
      {"memory", "must be positive, got 0", [](GpuModel& m) { m.memory_bytes = 0; }},
      {"memory", "must be positive, got -5", [](GpuModel& m) { m.memory_bytes = -5; }},
      {"units", "must be in 0..16, got 17", [](GpuModel& m) { m.units = 17; }},
      {"units", "must be in 0..16, got -1", [](GpuModel& m) { m.units = -1; }},
      {"compute_slices", "must be at least 1, got 0", [](GpuModel& m) { m.compute_slices = 0; }},
      {"compute_slices", "must divide 7000 for exact charging, got 3",
       [](GpuModel& m) { m.compute_slices = 3; }},
      {"memory_slices", "must be at least 1, got 0", [](GpuModel& m) { m.memory_slices = 0; }},
      {"compute_slices", "must be empty on a model without placement units, got 2",
       [](GpuModel& m) { m.units = 0; }},
      {"memory_slices", "must be empty on a model without placement units, got 2",
       [](GpuModel& m) { m.units = m.compute_slices = 0; }},
      {"profiles", "must be empty on a model without placement units, got 2",
       [](GpuModel& m) { m.units = m.compute_slices = m.memory_slices = 0; }},
      {"engines.jpeg", "must be in 0..16, got -1", [](GpuModel& m) { m.engines.jpeg = -1; }},
      {"engines.copy", "must be in 0..16, got 17", [](GpuModel& m) { m.engines.copy = 17; }},
      {"profiles", "must not be empty", [](GpuModel& m) { m.profiles.clear(); }},
      {"profiles", "at most 32 profiles, got 33", [](GpuModel& m) { m.profiles.resize(33); }},
      {"profiles[1].name", "must not be empty", [](GpuModel& m) { m.profiles[1].name = ""; }},
      {"profiles[1].name", "\"1g.16b\" is already the name of profiles[0]",
       [](GpuModel& m) { m.profiles[1].name = "1g.16b"; }},
      {"profiles[0].size", "must be in 1..2, got 0", [](GpuModel& m) { m.profiles[0].size = 0; }},
      {"profiles[0].size", "must be in 1..2, got 3", [](GpuModel& m) { m.profiles[0].size = 3; }},
      {"profiles[0].compute_slices", "must be in 1..2, got 0",
       [](GpuModel& m) { m.profiles[0].compute_slices = 0; }},
      {"profiles[1].compute_slices", "must be in 1..2, got 3",
       [](GpuModel& m) { m.profiles[1].compute_slices = 3; }},
      {"profiles[1].memory_slices", "must be in 1..2, got 3",
       [](GpuModel& m) { m.profiles[1].memory_slices = 3; }},
      {"profiles[1].memory", "must be in 0..32, got 33",
       [](GpuModel& m) { m.profiles[1].memory_bytes = 33; }},
      {"profiles[1].memory", "must be in 0..32, got -1",
       [](GpuModel& m) { m.profiles[1].memory_bytes = -1; }},
      {"profiles[0].max_instances", "must be at least 1, got 0",
       [](GpuModel& m) { m.profiles[0].max_instances = 0; }},
      {"profiles[0].starts", "must not be empty", [](GpuModel& m) { m.profiles[0].starts = {}; }},
      {"profiles[0].starts[0]", "must not be negative, got -1",
       [](GpuModel& m) { m.profiles[0].starts = {-1}; }},
      {"profiles[0].starts[1]", "start 2 + size 1 exceeds the 2 units",
       [](GpuModel& m) {
         m.profiles[0].starts = {0, 2};
       }},
      {"profiles[1].starts[1]", "start 1 + size 2 exceeds the 2 units",
       [](GpuModel& m) {
         m.profiles[1].starts = {0, 1};
       }},
      {"profiles[0].starts[1]", "must be above 1, got 0",
       [](GpuModel& m) {
         m.profiles[0].starts = {1, 0};
       }},
      {"profiles[0].starts[1]", "must be above 0, got 0",
       [](GpuModel& m) {
         m.profiles[0].starts = {0, 0};
       }},
      {"profiles[1].engines.copy", "must be in 0..2, got 3",
       [](GpuModel& m) { m.profiles[1].engines.copy = 3; }},
      {"profiles[0].engines.jpeg", "must be in 0..0, got 1",
       [](GpuModel& m) { m.profiles[0].engines.jpeg = 1; }},
      {"profiles[0].engines.ofa", "must be in 0..1, got -1",
       [](GpuModel& m) { m.profiles[0].engines.ofa = -1; }},
      {"profiles[0].engines.ofa", "must be in 0..16, got 17",
       [](GpuModel& m) {
         m.engines = {};
         m.profiles[0].engines.ofa = 17;
       }},
  };
  for (const Fault& fault : faults) {
    GpuModel model = Halves();
    fault.make(model);
    EXPECT_THAT(ValidateGpuModel(model, "gpu_models[0]"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         absl::StrCat("gpu_models[0].", fault.field, ": ", fault.text)));
  }
}

TEST(ValidateGpuModel, AnEmptyPathLeavesTheFieldAlone) {
  GpuModel model = Halves();
  model.profiles[0].size = 0;
  EXPECT_THAT(ValidateGpuModel(model, ""), StatusIs(absl::StatusCode::kInvalidArgument,
                                                    "profiles[0].size: must be in 1..2, got 0"));
}

TEST(ValidateMigGeometry, AsksForNeitherNameNorMemoryNorExactSlices) {
  GpuModel model = Halves();
  model.name = "";
  model.compute_slices = 3;
  EXPECT_THAT(ValidateMigGeometry(model, "m"), IsOk());
  model.profiles[0].size = 0;
  EXPECT_THAT(ValidateMigGeometry(model, "m"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FindProfile, IsByExactName) {
  const GpuModel model = Halves();
  EXPECT_EQ(model.FindProfile("2g.32b"), 1);
  EXPECT_EQ(model.FindProfile("2g"), std::nullopt);
  EXPECT_EQ(model.FindProfile(""), std::nullopt);
}

TEST(IsVariant, IsInTheName) {
  MigProfile profile;
  for (const char* name : {"1g.10gb+me", "1g.24gb+me.all", "1g.24gb+gfx", "1g.24gb-me"}) {
    profile.name = name;
    EXPECT_TRUE(profile.is_variant()) << name;
  }
  for (const char* name : {"1g.10gb", "7g.80gb", "1g.20gb", "half-memory"}) {
    profile.name = name;
    EXPECT_FALSE(profile.is_variant()) << name;
  }
}

}  // namespace
}  // namespace tessera
