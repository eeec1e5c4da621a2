#include "tessera/gpu/enumerate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tessera/gpu/catalogue.h"
#include "tests/support/largest_model.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Layouts = std::vector<std::vector<Instance>>;

MigTables TablesOf(std::string_view name) { return *MigTables::Create(*FindGpuModel(name)); }

uint32_t Alphabet(const MigTables& tables, std::initializer_list<std::string_view> names) {
  uint32_t alphabet = 0;
  for (const std::string_view name : names) alphabet |= 1u << *tables.model().FindProfile(name);
  return alphabet;
}

// The counts, told apart by position, and by profile alone (multisets).
struct Numbers {
  LayoutCounts layouts;
  size_t multisets;
  size_t maximal_multisets;  // of the maximal layouts, those that no other contains
};

std::vector<int> Profiles(const std::vector<Instance>& layout) {
  std::vector<int> profiles;
  for (const Instance& instance : layout) profiles.push_back(instance.profile);
  std::sort(profiles.begin(), profiles.end());
  return profiles;
}

void ExpectNumbers(const MigTables& tables, uint32_t alphabet, const Numbers& expected) {
  EXPECT_EQ(CountLayouts(tables, alphabet), expected.layouts);
  LayoutCounts counts;
  std::set<std::vector<int>> multisets;
  for (const std::vector<Instance>& layout : EnumerateLayouts(tables, alphabet)) {
    const absl::StatusOr<LayoutKey> key = tables.KeyOf(layout, "");
    ASSERT_THAT(key, IsOk());
    ++counts.states;
    if (IsMaximal(tables, *key, alphabet)) ++counts.maximal;
    multisets.insert(Profiles(layout));
  }
  EXPECT_EQ(counts, expected.layouts);
  EXPECT_EQ(multisets.size(), expected.multisets);
  const auto is_contained = [&multisets](const std::vector<int>& inner) {
    return std::any_of(multisets.begin(), multisets.end(), [&](const std::vector<int>& outer) {
      return outer.size() > inner.size() &&
             std::includes(outer.begin(), outer.end(), inner.begin(), inner.end());
    });
  };
  EXPECT_EQ(multisets.size() - static_cast<size_t>(
                                   std::count_if(multisets.begin(), multisets.end(), is_contained)),
            expected.maximal_multisets);
}

TEST(EnumerateLayouts, FindsTheKnownLayoutsOfA100) {
  const MigTables tables = TablesOf("A100-40GB");
  const uint32_t plain = Alphabet(tables, {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"});
  const uint32_t doubled = Alphabet(tables, {"1g.10gb"});
  const uint32_t media = Alphabet(tables, {"1g.5gb+me"});
  ExpectNumbers(tables, plain, {{298, 19}, 38, 12});
  ExpectNumbers(tables, plain | doubled, {{723, 78}, 78, 28});
  ExpectNumbers(tables, plain | media, {{1089, 67}, 64, 20});
  ExpectNumbers(tables, plain | doubled | media, {{2319, 239}, 128, 44});
  EXPECT_EQ(PlainProfiles(tables.model()), plain | doubled);
}

TEST(EnumerateLayouts, FindsTheSameOnH100ThoughItsEnginesDiffer) {
  const MigTables tables = TablesOf("H100-80GB");
  const uint32_t plain = Alphabet(tables, {"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"});
  ExpectNumbers(tables, plain, {{298, 19}, 38, 12});
  ExpectNumbers(tables, ~0u, {{2319, 239}, 128, 44});
}

TEST(EnumerateLayouts, FindsTheKnownLayoutsOfA30) {
  const MigTables tables = TablesOf("A30");
  ExpectNumbers(tables, PlainProfiles(tables.model()), {{26, 5}, 10, 4});
  ExpectNumbers(tables, ~0u, {{76, 17}, 20, 8});
}

TEST(EnumerateLayouts, FindsTheKnownLayoutsOfRtxPro6000) {
  const MigTables tables = TablesOf("RTX-PRO-6000");
  ExpectNumbers(tables, PlainProfiles(tables.model()), {{26, 5}, 10, 4});
  ExpectNumbers(tables, ~0u, {{717, 302}, 115, 64});
}

// Slices of compute are never short before units are: the sum stays within 7, though
// nothing in the tables checks it.
TEST(EnumerateLayouts, ComputeSlicesNeverBind) {
  for (const GpuModel& model : GpuCatalogue()) {
    const MigTables tables = *MigTables::Create(model);
    for (const std::vector<Instance>& layout : EnumerateLayouts(tables, ~0u)) {
      int compute = 0, memory = 0;
      for (const Instance& instance : layout) {
        compute += model.profiles[instance.profile].compute_slices;
        memory += model.profiles[instance.profile].memory_slices;
      }
      EXPECT_LE(compute, model.compute_slices) << model.name;
      EXPECT_LE(memory, model.memory_slices) << model.name;
    }
  }
}

TEST(EnumerateLayouts, ComesInLexicographicOrder) {
  GpuModel model;
  model.name = "small";
  model.units = model.compute_slices = model.memory_slices = 2;
  model.profiles.resize(2);
  model.profiles[0].name = "whole";
  model.profiles[0].size = 2;
  model.profiles[0].starts = {0};
  model.profiles[1].name = "half";
  model.profiles[1].max_instances = 2;
  model.profiles[1].starts = {0, 1};
  const MigTables tables = *MigTables::Create(model);
  EXPECT_THAT(
      EnumerateLayouts(tables, ~0u),
      ElementsAre(IsEmpty(), ElementsAre(Instance{0, 0}), ElementsAre(Instance{1, 0}),
                  ElementsAre(Instance{1, 0}, Instance{1, 1}), ElementsAre(Instance{1, 1})));
  EXPECT_THAT(EnumerateLayouts(tables, 0), ElementsAre(IsEmpty()));
  EXPECT_EQ(CountLayouts(tables, 0), (LayoutCounts{1, 1}));
}

TEST(CountLayouts, Saturates) {
  const MigTables tables = *MigTables::Create(LargestModel());
  EXPECT_EQ(CountLayouts(tables, 1), (LayoutCounts{int64_t{1} << 16, 1}));
  EXPECT_EQ(CountLayouts(tables, 0b111), (LayoutCounts{int64_t{1} << 32, 43046721}));  // 3^16
  EXPECT_EQ(CountLayouts(tables, ~0u), (LayoutCounts{INT64_MAX, INT64_MAX}));
}

}  // namespace
}  // namespace tessera
