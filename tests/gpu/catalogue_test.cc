#include "tessera/gpu/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tessera/gpu/enumerate.h"
#include "tessera/resources/units.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

TEST(GpuCatalogue, HoldsEveryMigProduct) {
  size_t profiles = 0;
  std::set<std::string> names;
  for (const GpuModel& model : GpuCatalogue()) {
    profiles += model.profiles.size();
    names.insert(model.name);
    EXPECT_EQ(FindGpuModel(model.name), &model);
  }
  EXPECT_EQ(GpuCatalogue().size(), 18);
  EXPECT_EQ(names.size(), 18);
  EXPECT_EQ(profiles, 127);
}

TEST(GpuCatalogue, IsValid) {
  for (const GpuModel& model : GpuCatalogue()) {
    if (model.name == "THOR-IGPU") continue;
    EXPECT_THAT(ValidateGpuModel(model, model.name), IsOk());
  }
  // No memory of its own, and thirds.
  const GpuModel& thor = *FindGpuModel("THOR-IGPU");
  EXPECT_THAT(ValidateMigGeometry(thor, "thor"), IsOk());
  EXPECT_EQ(thor.memory_bytes, 0);
  EXPECT_EQ(thor.compute_slices, 3);
}

TEST(FindGpuModel, KnowsShortNames) {
  const std::pair<const char*, const char*> names[] = {
      {"A30", "A30-24GB"},
      {"PG506", "PG506-96GB"},
      {"H100-NVL", "H100-94GB"},
      {"H100-96GB", "H100-96GB-GH200"},
      {"GH200-96GB", "H100-96GB-GH200"},
      {"H20", "H20-96GB"},
      {"H200", "H200-141GB"},
      {"B200", "B200-180GB"},
      {"GB200", "GB200-186GB"},
      {"B300", "B300-269GB"},
      {"GB300", "GB300-278GB"},
      {"RTX-PRO-6000", "RTX-PRO-6000-BLACKWELL-96GB"},
      {"RTX-PRO-5000", "RTX-PRO-5000-BLACKWELL-48GB"},
      {"RTX-PRO-4500", "RTX-PRO-4500-BLACKWELL-32GB"},
      {"THOR", "THOR-IGPU"},
  };
  for (const auto& [alias, name] : names) {
    ASSERT_NE(FindGpuModel(alias), nullptr) << alias;
    EXPECT_EQ(FindGpuModel(alias)->name, name);
  }
  for (const char* ambiguous : {"A100", "H100", "GH200", "RTX-PRO", "", "h200"}) {
    EXPECT_EQ(FindGpuModel(ambiguous), nullptr) << ambiguous;
  }
}

TEST(GpuCatalogue, SaysWhatWasSeenOnHardware) {
  const std::set<std::string> seen = {"A30-24GB",  "A100-40GB", "A100-80GB",
                                      "H100-80GB", "H100-94GB", "RTX-PRO-6000-BLACKWELL-96GB"};
  for (const GpuModel& model : GpuCatalogue()) {
    for (const MigProfile& profile : model.profiles) {
      EXPECT_EQ(profile.evidence == Evidence::kConfirmed, seen.contains(model.name))
          << model.name << " " << profile.name;
    }
  }
}

// Only Ampere needs a reset to change the MIG mode.
TEST(GpuCatalogue, SaysWhereMigModeNeedsAReset) {
  const std::set<std::string> ampere = {"A30-24GB", "A100-40GB", "A100-80GB", "PG506-96GB"};
  for (const GpuModel& model : GpuCatalogue()) {
    EXPECT_EQ(model.mig_toggle_needs_reset, ampere.contains(model.name)) << model.name;
  }
}

struct Counts {
  const char* model;
  LayoutCounts all;
  LayoutCounts plain;  // no variants, doubled memory included
};

TEST(GpuCatalogue, HasTheKnownNumberOfLayouts) {
  constexpr LayoutCounts kBoard = {2319, 239};
  constexpr LayoutCounts kPlainBoard = {723, 78};
  const Counts expected[] = {
      {"A30-24GB", {76, 17}, {26, 5}},
      {"A100-40GB", kBoard, kPlainBoard},
      {"A100-80GB", kBoard, kPlainBoard},
      {"PG506-96GB", kBoard, kPlainBoard},
      {"H100-80GB", kBoard, kPlainBoard},
      {"H100-94GB", kBoard, kPlainBoard},
      {"H100-96GB-GH200", kBoard, kPlainBoard},
      {"H20-96GB", kBoard, kPlainBoard},
      {"GH200-144GB", kBoard, kPlainBoard},
      {"H200-141GB", kBoard, kPlainBoard},
      {"B200-180GB", kBoard, kPlainBoard},
      {"GB200-186GB", kBoard, kPlainBoard},
      {"B300-269GB", kBoard, kPlainBoard},
      {"GB300-278GB", kBoard, kPlainBoard},
      {"RTX-PRO-6000-BLACKWELL-96GB", {717, 302}, {26, 5}},
      // Two halves from {1g, +me, +gfx, -me} without two +me: 15; +me.all beside -me: 2;
      // one half: 5 x 2; the two 2g; nothing. Maximal: the pairs and the 2g.
      {"RTX-PRO-5000-BLACKWELL-48GB", {15 + 2 + 10 + 2 + 1, 19}, {5, 2}},
      // Likewise with 3 x 3 and 4 x 2, since there is no +me.
      {"RTX-PRO-4500-BLACKWELL-32GB", {9 + 2 + 8 + 2 + 1, 13}, {5, 2}},
      // {nothing, 1g, +me, 2g} x {nothing, 1g+gfx, 2g+gfx} less the pair that has four
      // slices, and the two 3g. Maximal: 5 pairs and the 3g.
      {"THOR-IGPU", {11 + 2, 7}, {4, 3}},
  };
  ASSERT_EQ(std::size(expected), GpuCatalogue().size());
  for (size_t i = 0; i < std::size(expected); ++i) {
    const GpuModel& model = GpuCatalogue()[i];
    EXPECT_EQ(model.name, expected[i].model);
    const absl::StatusOr<MigTables> tables = MigTables::Create(model);
    ASSERT_THAT(tables, IsOk());
    EXPECT_EQ(CountLayouts(*tables, ~0u), expected[i].all) << model.name;
    EXPECT_EQ(CountLayouts(*tables, PlainProfiles(model)), expected[i].plain) << model.name;
  }
}

// --- Against the collection of sources that the catalogue was written from. --

using nlohmann::json;

void CheckPlacements(const MigProfile& profile, const json& placements) {
  if (placements.is_null()) {
    EXPECT_EQ(profile.evidence, Evidence::kInferred);
    return;
  }
  std::vector<int> starts;
  for (const json& placement : placements) {
    starts.push_back(placement["start"].get<int>());
    EXPECT_EQ(profile.size, placement["size"].get<int>());
  }
  EXPECT_EQ(profile.starts, starts);
}

void CheckProfile(const MigProfile& profile, const json& row) {
  EXPECT_EQ(profile.name, row["name"].get<std::string>());
  EXPECT_EQ(profile.compute_slices, row["compute_slices"].get<int>());
  EXPECT_EQ(profile.memory_slices, row["memory_slices"].get<int>());
  EXPECT_EQ(profile.max_instances, row["max_instances"].get<int>());
  const json& mib = row["memory_mib"];
  const int64_t nominal = row["memory_gb_in_name"].get<int64_t>() * 1024;
  EXPECT_EQ(profile.memory_bytes, (mib.is_null() ? nominal : mib.get<int64_t>()) * kBytesPerMiB);
  CheckPlacements(profile, row["placements"]);
  for (const EngineKind& kind : kEngineKinds) {
    const json& count = row["engines"][std::string(kind.name)];
    if (count.is_null()) continue;
    EXPECT_EQ(profile.engines.*kind.count, count.get<int>()) << kind.name;
  }
  const std::string evidence = row["placements_evidence"].get<std::string>();
  const bool seen = evidence.starts_with("observed") || evidence.find("capture") != evidence.npos;
  EXPECT_EQ(profile.evidence == Evidence::kConfirmed, seen);
}

void CheckModel(const GpuModel& model, const json& product) {
  const json& mib = product["total_memory_mib"];
  const int64_t nominal = product["memory_gb_marketing"].get<int64_t>() * 1024;
  EXPECT_EQ(model.memory_bytes, (mib.is_null() ? nominal : mib.get<int64_t>()) * kBytesPerMiB);
  EXPECT_EQ(model.compute_slices, product["compute_slices"].get<int>());
  EXPECT_EQ(model.memory_slices, product["memory_slices"].get<int>());
  const json& units = product["nvml_placement_units"];
  EXPECT_TRUE(units.is_null() || model.units == units.get<int>()) << model.units;
  const json& reset = product["mig_mode_toggle_needs_gpu_reset"];
  EXPECT_EQ(model.mig_toggle_needs_reset, !reset.is_null() && reset.get<bool>());
  const json& rows = product["profiles"];
  ASSERT_EQ(model.profiles.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(model.profiles[i].name);
    CheckProfile(model.profiles[i], rows[i]);
  }
}

TEST(GpuCatalogue, AgreesWithTheCollectedSources) {
  const std::string path = TESSERA_SOURCE_DIR "/../shared/data/mig_profiles.json";
  std::ifstream file(path);
  if (!file) GTEST_SKIP() << "the collected sources are not in this checkout: " << path;
  const json sources = json::parse(file);
  const json& products = sources["products"];
  ASSERT_EQ(products.size(), GpuCatalogue().size());
  for (size_t i = 0; i < products.size(); ++i) {
    const GpuModel& model = GpuCatalogue()[i];
    SCOPED_TRACE(model.name);
    EXPECT_EQ(model.name, products[i]["id"].get<std::string>());
    CheckModel(model, products[i]);
  }
}

}  // namespace
}  // namespace tessera
