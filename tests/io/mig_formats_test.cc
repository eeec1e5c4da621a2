#include "tessera/io/mig_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tessera/gpu/catalogue.h"
#include "tessera/gpu/enumerate.h"
#include "tessera/io/snapshot_json.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

MigTables TablesOf(std::string_view model) { return *MigTables::Create(*FindGpuModel(model)); }

constexpr char kBorder[] = "+-------------------------------------------------------+\n";
constexpr char kHead[] =
    "+-------------------------------------------------------+\n"
    "| GPU instances:                                        |\n"
    "| GPU   Name             Profile  Instance   Placement  |\n"
    "|                          ID       ID       Start:Size |\n"
    "|=======================================================|\n";

std::string Row(int gpu, std::string_view profile, int start, int size) {
  return absl::StrFormat("| %3d  MIG %-18s  9  %8d %10d:%d     |\n", gpu, std::string(profile),
                         7 + start, start, size);
}

std::string Listing(const GpuModel& model, const LayoutsByGpu& layouts) {
  std::string text = kHead;
  for (const auto& [gpu, layout] : layouts) {
    for (const Instance& instance : layout) {
      const MigProfile& profile = model.profiles[static_cast<size_t>(instance.profile)];
      text += Row(gpu, profile.name, instance.start, profile.size) + kBorder;
    }
  }
  return text + (text == kHead ? kBorder : "");
}

TEST(MigListingTest, OfTheUserGuide) {
  const MigTables tables = TablesOf("A100-40GB");
  const int p3g = *tables.model().FindProfile("3g.20gb");
  const absl::StatusOr<LayoutsByGpu> layouts =
      ParseMigListing(std::string(kHead) + Row(0, "3g.20gb", 4, 4) + kBorder +
                          Row(0, "3g.20gb", 0, 4) + kBorder + Row(7, "3g.20gb", 0, 4) + kBorder,
                      tables);
  ASSERT_THAT(layouts, IsOk());
  EXPECT_THAT(*layouts, ElementsAre(Pair(0, ElementsAre(Instance{p3g, 0}, Instance{p3g, 4})),
                                    Pair(7, ElementsAre(Instance{p3g, 0}))));
}

TEST(MigListingTest, EveryLayoutComesBack) {
  for (const char* name : {"A100-40GB", "A30-24GB", "H200-141GB", "RTX-PRO-6000"}) {
    const MigTables tables = TablesOf(name);
    for (const std::vector<Instance>& layout : EnumerateLayouts(tables, ~0u)) {
      LayoutsByGpu layouts;
      if (!layout.empty()) layouts = {{3, layout}, {12, layout}};
      ASSERT_THAT(ParseMigListing(Listing(tables.model(), layouts), tables), IsOkAndHolds(layouts));
    }
  }
}

TEST(MigListingTest, CrLfBlankLinesAndWordsInPlaceOfTheTable) {
  const MigTables tables = TablesOf("A100-40GB");
  std::string text = "\n" + std::string(kHead) + Row(0, "1g.5gb", 6, 1) + kBorder + "\n\n";
  for (size_t at = 0; (at = text.find('\n', at)) != text.npos; at += 2) text.insert(at, "\r");
  EXPECT_THAT(ParseMigListing(text, tables), IsOk());
  EXPECT_THAT(ParseMigListing("No GPU instances found: Not Found\n", tables),
              IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(ParseMigListing("No MIG-enabled devices found.\n", tables), IsOkAndHolds(IsEmpty()));
}

TEST(MigListingTest, NamesTheLineAndWhatIsWrongWithIt) {
  const std::string head = kHead, border = kBorder;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "the listing is empty"},
      {"\n \r\n", "the listing is empty"},
      {"$ nvidia-smi mig -lgi\n" + head + border, "line 1: is no part of a listing"},
      {border + "| GPU profiles: |\n", "line 2: is no part of a listing"},
      // Broken off in the head, after the head, in a row, and after it.
      {border + "| GPU instances:       |\n", "line 2: the listing breaks off"},
      {border, "line 1: the listing breaks off"},
      {head + "|   0  MIG 1g.5gb       1", "line 6: is no part of a listing"},
      {head + Row(0, "1g.5gb", 0, 1), "line 6: the listing breaks off"},
      {border + Row(0, "1g.5gb", 0, 1) + border,
       "line 2: an instance before the head of the table"},
      {head + "|   0  MIG 1g.5gb  19  0:1 |\n" + border, "line 6: an instance has 6 columns"},
      {head + "|  -1  MIG 1g.5gb  19  7  0:1 |\n" + border,
       R"(line 6: "-1" is not the number of a GPU)"},
      {head + "|  64  MIG 1g.5gb  19  7  0:1 |\n" + border,
       R"(line 6: "64" is not the number of a GPU)"},
      {head + "|   0  MIG 1g.5gb  19  7  0-1 |\n" + border, R"(line 6: "0-1" is no start:size)"},
      {head + "|   0  MIG 1g.5gb  19  7  9999999999:1 |\n" + border,
       R"(line 6: "9999999999:1" is no start:size)"},
      {head + Row(0, "1g.5g", 0, 1) + border,
       R"(line 6: "1g.5g" is no profile of A100-40GB; did you mean "1g.5gb"?)"},
      // A profile of other products, and one that differs from its namesake.
      {head + Row(0, "4g.71gb", 0, 4) + border,
       R"(line 6: "4g.71gb" is no profile of A100-40GB; did you mean "4g.20gb"? )"
       "(it is one of H200-141GB)"},
      {head + Row(0, "1g.10gb", 0, 1) + border,
       "line 6: 1g.10gb has size 2 on A100-40GB, here 1: the listing is of another model"},
      {head + Row(0, "3g.20gb", 2, 4) + border, "line 6: 3g.20gb cannot start at slice 2"},
      {head + Row(0, "3g.20gb", 4, 4) + border + Row(1, "2g.10gb", 4, 2) + border +
           Row(0, "2g.10gb", 4, 2) + border,
       "line 10: 2g.10gb at slice 4 overlaps 3g.20gb at slice 4"},
      {head + Row(0, "1g.5gb+me", 0, 1) + border + Row(0, "1g.5gb+me", 1, 1) + border,
       "line 8: one A100-40GB holds at most 1 of 1g.5gb+me"},
  };
  const MigTables tables = TablesOf("A100-40GB");
  for (const auto& [listing, message] : cases) {
    EXPECT_THAT(ParseMigListing(listing, tables),
                StatusIs(absl::StatusCode::kInvalidArgument, ::testing::StartsWith(message)));
  }
}

TEST(MigListingTest, NoPrefixOfAListingIsMisread) {
  const MigTables tables = TablesOf("H100-80GB");
  const std::string text =
      std::string(kHead) + Row(0, "3g.40gb", 4, 4) + kBorder + Row(0, "1g.10gb+me", 1, 1) + kBorder;
  const LayoutsByGpu whole = *ParseMigListing(text, tables);
  for (size_t length = 0; length < text.size(); ++length) {
    const absl::StatusOr<LayoutsByGpu> layouts = ParseMigListing(text.substr(0, length), tables);
    if (!layouts.ok()) continue;
    // Cut at the end of a row, it is the listing of what stands before.
    for (const auto& [gpu, layout] : *layouts) {
      for (const Instance& instance : layout) {
        EXPECT_THAT(whole.at(gpu), ::testing::Contains(instance)) << length;
      }
    }
  }
}

TEST(ParseLayoutTest, InstancesAscendByStart) {
  const MigTables tables = TablesOf("H100-80GB");
  const int p1g = *tables.model().FindProfile("1g.10gb");
  const int p3g = *tables.model().FindProfile("3g.40gb");
  EXPECT_THAT(ParseLayout(" 3g.40gb@4 ,1g.10gb@0", tables),
              IsOkAndHolds(ElementsAre(Instance{p1g, 0}, Instance{p3g, 4})));
  EXPECT_THAT(ParseLayout(" ", tables), IsOkAndHolds(IsEmpty()));
}

TEST(ParseLayoutTest, NamesTheInstanceThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"1g.10gb", "1g.10gb: an instance is PROFILE@START, such as 1g.10gb@0"},
      {"1g.10gb@0,", "\"\": an instance is PROFILE@START, such as 1g.10gb@0"},
      {"1g.10gb@x", "1g.10gb@x: an instance is PROFILE@START, such as 1g.10gb@0"},
      {"1g.10g@0", R"(1g.10g@0: "1g.10g" is no profile of H100-80GB; did you mean "1g.10gb"?)"},
      {"@0", R"(@0: "" is no profile of H100-80GB)"},
      {"1g.10gb@99", "1g.10gb@99: 1g.10gb cannot start at slice 99"},
      {"3g.40gb@2", "3g.40gb@2: 3g.40gb cannot start at slice 2"},
      {"3g.40gb@4,1g.10gb@6", "1g.10gb@6: 1g.10gb at slice 6 overlaps 3g.40gb at slice 4"},
  };
  const MigTables tables = TablesOf("H100-80GB");
  for (const auto& [layout, message] : cases) {
    EXPECT_THAT(ParseLayout(layout, tables), StatusIs(absl::StatusCode::kInvalidArgument, message));
  }
}

// Two equal nodes, one of another layout, one that differs in its starts alone, and
// two that cannot be partitioned.
constexpr char kCluster[] = R"({"apiVersion": "tessera/v1",
  "gpu_models": [{"name": "T4", "memory": "16Gi"}],
  "nodes": [
    {"name": "b", "gpu_model": "A100-40GB", "mig": "dynamic", "gpus": [
      {"instances": [{"profile": "1g.5gb", "start": 0}, {"profile": "3g.20gb", "start": 4},
                     {"profile": "1g.5gb", "start": 1}]}, {}, {"mig_enabled": true}, {}]},
    {"name": "a", "gpu_model": "A100-40GB", "mig": "static", "gpus": [
      {"instances": [{"profile": "3g.20gb", "start": 0}, {"profile": "1g.5gb", "start": 4},
                     {"profile": "1g.5gb", "start": 5}]}, {}, {"mig_enabled": true}, {}]},
    {"name": "it's\n# c", "gpu_model": "H100-80GB", "mig": "dynamic", "gpus": 8},
    {"name": "d", "gpu_model": "T4", "gpus": 2},
    {"name": "e"}]})";

TEST(MigPartedTest, EqualNodesShareAConfigurationAndEqualGpusAnEntry) {
  const absl::StatusOr<Snapshot> snapshot = ParseSnapshot(kCluster);
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_EQ(WriteMigParted(*snapshot), R"(version: v1
mig-configs:
  # "a", "b"
  layout-1:
    - devices: [0]
      mig-enabled: true
      mig-devices: {"1g.5gb": 2, "3g.20gb": 1}
    - devices: [1, 3]
      mig-enabled: false
    - devices: [2]
      mig-enabled: true
      mig-devices: {}

  # "it's\n# c"
  layout-2:
    - devices: all
      mig-enabled: false
)");
}

TEST(MigPartedTest, NothingToConfigure) {
  const absl::StatusOr<Snapshot> snapshot =
      ParseSnapshot(R"({"apiVersion": "tessera/v1", "nodes": [{"name": "e"}]})");
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_EQ(WriteMigParted(*snapshot), "version: v1\nmig-configs: {}\n");
}

TEST(MigCommandsTest, OneCaseForEachNodeInTheOrderOfThePlan) {
  const absl::StatusOr<Snapshot> snapshot = ParseSnapshot(kCluster);
  ASSERT_THAT(snapshot, IsOk());
  Plan plan;
  plan.actions = {SetMigAction{"it's\n# c", 7, true},
                  DestroyAction{"b", 0, "1g.5gb", 0},
                  CreateAction{"it's\n# c", 7, "1g.10gb+me", 6},
                  BindAction{{"w", "s", 0}, "b", {}},
                  SetMigAction{"b", 2, false},
                  CreateAction{"b", 0, "2g.10gb", 0}};
  const absl::StatusOr<std::string> script = WriteMigCommands(*snapshot, plan);
  ASSERT_THAT(script, IsOk());
  EXPECT_THAT(*script, HasSubstr(R"(case $node in
'b')
  destroy 0 '1g.5gb' 0
  set_mig 2 0 reset
  create 0 '2g.10gb' 0
  ;;
'it'\''s
# c')
  set_mig 7 1 keep
  create 7 '1g.10gb+me' 6
  ;;
*)
)"));
}

TEST(MigCommandsTest, NamesTheActionThatIsWrong) {
  const absl::StatusOr<Snapshot> snapshot = ParseSnapshot(kCluster);
  ASSERT_THAT(snapshot, IsOk());
  const std::vector<std::pair<Action, std::string>> cases = {
      {SetMigAction{"bb", 0, true}, R"(no node is named "bb"; did you mean "b"?)"},
      {SetMigAction{"b", 4, true}, "b has no GPU 4"},
      {DestroyAction{"b", -1, "1g.5gb", 0}, "b has no GPU -1"},
      {CreateAction{"d", 0, "1g.5gb", 0}, "a T4 has no MIG"},
      {CreateAction{"e", 0, "1g.5gb", 0}, "e has no GPU 0"},
      {CreateAction{"b", 0, "1g.6gb", 0},
       R"(a A100-40GB has no profile "1g.6gb"; did you mean "1g.5gb"?)"},
      {CreateAction{"b", 0, "1g.5gb", 7}, "1g.5gb cannot start at slice 7"},
  };
  for (const auto& [action, message] : cases) {
    Plan plan;
    plan.actions = {SetMigAction{"b", 1, true}, action};
    EXPECT_THAT(WriteMigCommands(*snapshot, plan),
                StatusIs(absl::StatusCode::kInvalidArgument, "actions[1]: " + message));
  }
}

}  // namespace
}  // namespace tessera
