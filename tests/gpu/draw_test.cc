#include "tessera/gpu/draw.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/gpu/catalogue.h"
#include "tessera/gpu/enumerate.h"

namespace tessera {
namespace {

std::string Draw(std::string_view name,
                 std::initializer_list<std::pair<const char*, int>> instances) {
  const GpuModel& model = *FindGpuModel(name);
  std::vector<Instance> layout;
  for (const auto& [profile, start] : instances) {
    layout.push_back({*model.FindProfile(profile), start});
  }
  return DrawLayout(model, layout);
}

TEST(DrawLayout, ShowsInstancesAndFreeUnits) {
  EXPECT_EQ(Draw("A30", {}), "|.........|.........|.........|.........|");
  EXPECT_EQ(Draw("A30", {{"1g.6gb+me", 1}, {"2g.12gb", 2}}),
            "|.........|1g.6gb+me|2g.12gb            |");
  EXPECT_EQ(
      Draw("H100-80GB", {{"3g.40gb", 4}, {"1g.10gb", 0}, {"1g.10gb", 1}}),
      "|1g.10gb   |1g.10gb   |..........|..........|3g.40gb                                    |");
  // Three units to a quarter share the width of a name.
  EXPECT_EQ(Draw("RTX-PRO-6000", {{"1g.24gb+me.all", 3}, {"1g.24gb-me", 9}}),
            "|....|....|....|1g.24gb+me.all|....|....|....|1g.24gb-me    |");
}

TEST(DrawLayout, WithoutMigThereIsNoAxis) {
  GpuModel model;
  model.name = "T4";
  EXPECT_EQ(DrawLayout(model, {}), "");
}

TEST(DrawLayout, EveryNameFitsAndAllLinesHaveOneWidth) {
  for (const GpuModel& model : GpuCatalogue()) {
    const MigTables tables = *MigTables::Create(model);
    const size_t width = DrawLayout(model, {}).size();
    for (const std::vector<Instance>& layout : EnumerateLayouts(tables, ~0u)) {
      const std::string line = DrawLayout(model, layout);
      EXPECT_EQ(line.size(), width);
      for (const Instance& instance : layout) {
        EXPECT_NE(line.find("|" + model.profiles[instance.profile].name), line.npos) << line;
      }
    }
  }
}

}  // namespace
}  // namespace tessera
