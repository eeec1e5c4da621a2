#include "tessera/gpu/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tessera/gpu/catalogue.h"
#include "tests/support/largest_model.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

static_assert(sizeof(LayoutKey) == 4);
static_assert(std::is_trivially_copyable_v<LayoutKey>);
static_assert(std::is_trivially_copyable_v<Instance>);

MigTables TablesOf(std::string_view name) { return *MigTables::Create(*FindGpuModel(name)); }

using Layout = std::vector<Instance>;

Layout MakeLayout(const GpuModel& model, std::initializer_list<std::pair<const char*, int>> list) {
  Layout layout;
  for (const auto& [name, start] : list) layout.push_back({*model.FindProfile(name), start});
  return layout;
}

// --- The rules, once more and slowly. ---------------------------------------

bool IsLegal(const GpuModel& model, const Layout& layout) {
  std::vector<int> owners(model.units, 0), count(model.profiles.size(), 0);
  EngineCounts used;
  for (const Instance& instance : layout) {
    const MigProfile& profile = model.profiles[instance.profile];
    if (std::count(profile.starts.begin(), profile.starts.end(), instance.start) == 0) return false;
    if (++count[instance.profile] > profile.max_instances) return false;
    for (int u = instance.start; u < instance.start + profile.size; ++u) {
      if (++owners[u] > 1) return false;
    }
    for (const EngineKind& kind : kEngineKinds) {
      used.*kind.count += profile.engines.*kind.count;
      if (model.engines != EngineCounts{} && used.*kind.count > model.engines.*kind.count) {
        return false;
      }
    }
  }
  return true;
}

Layout With(Layout layout, Instance instance) {
  layout.push_back(instance);
  return layout;
}

int SlowCapacity(const GpuModel& model, const Layout& layout, int profile, int from = 0) {
  int most = 0;
  for (const int start : model.profiles[profile].starts) {
    const Layout next = With(layout, {profile, start});
    if (start < from || !IsLegal(model, next)) continue;
    most = std::max(most, 1 + SlowCapacity(model, next, profile, start + 1));
  }
  return most;
}

int SlowLoss(const GpuModel& model, const Layout& layout, Instance instance) {
  int loss = 0;
  for (int q = 0; q < static_cast<int>(model.profiles.size()); ++q) {
    if (model.profiles[q].is_variant()) continue;
    loss += model.profiles[q].size *
            (SlowCapacity(model, layout, q) - SlowCapacity(model, With(layout, instance), q));
  }
  return loss;
}

// Calls `visit` on every legal layout once, growing them to the right.
void ForEachLayout(const GpuModel& model, const Layout& layout, int from,
                   const std::function<void(const Layout&)>& visit) {
  visit(layout);
  for (int start = from; start < model.units; ++start) {
    for (int p = 0; p < static_cast<int>(model.profiles.size()); ++p) {
      const Layout next = With(layout, {p, start});
      if (IsLegal(model, next)) ForEachLayout(model, next, start + 1, visit);
    }
  }
}

void ExpectKeyAgrees(const MigTables& tables, const Layout& layout, LayoutKey key) {
  const GpuModel& model = tables.model();
  for (int p = 0; p < static_cast<int>(model.profiles.size()); ++p) {
    unsigned legal = 0;
    for (int start = -1; start <= kMaxPlacementUnits; ++start) {
      const bool is_legal = IsLegal(model, With(layout, {p, start}));
      ASSERT_EQ(tables.CanPlace(key, p, start), is_legal);
      if (!is_legal) continue;
      legal |= 1u << start;
      const LayoutKey next = tables.Add(key, p, start);
      ASSERT_THAT(tables.KeyOf(With(layout, {p, start}), ""), IsOkAndHolds(next));
      ASSERT_EQ(tables.Remove(next, p, start), key);
    }
    ASSERT_EQ(tables.LegalStarts(key, p), legal);
    ASSERT_EQ(((tables.Placeable(key) >> p) & 1) != 0, legal != 0);
    ASSERT_EQ(tables.Capacity(key, p), SlowCapacity(model, layout, p));
  }
}

void ExpectAllLayoutsAgree(const MigTables& tables, int expected_layouts) {
  int layouts = 0;
  ForEachLayout(tables.model(), {}, 0, [&](const Layout& layout) {
    ++layouts;
    if (::testing::Test::HasFatalFailure()) return;
    Layout reversed(layout.rbegin(), layout.rend());
    const absl::StatusOr<LayoutKey> key = tables.KeyOf(reversed, "");
    ASSERT_THAT(key, IsOk());
    ExpectKeyAgrees(tables, layout, *key);
    for (size_t i = 0; i < layout.size(); ++i) {
      Layout less = layout;
      less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
      ASSERT_THAT(tables.KeyOf(less, ""),
                  IsOkAndHolds(tables.Remove(*key, layout[i].profile, layout[i].start)));
    }
  });
  EXPECT_EQ(layouts, expected_layouts);
}

TEST(MigTables, AgreeWithBruteForceOnA30) { ExpectAllLayoutsAgree(TablesOf("A30"), 76); }
TEST(MigTables, AgreeWithBruteForceOnA100) { ExpectAllLayoutsAgree(TablesOf("A100-40GB"), 2319); }
TEST(MigTables, AgreeWithBruteForceOnH100) { ExpectAllLayoutsAgree(TablesOf("H100-80GB"), 2319); }
TEST(MigTables, AgreeWithBruteForceOnRtxPro6000) {
  ExpectAllLayoutsAgree(TablesOf("RTX-PRO-6000"), 717);
}
TEST(MigTables, AgreeWithBruteForceOnRtxPro5000) {
  ExpectAllLayoutsAgree(TablesOf("RTX-PRO-5000"), 30);
}
TEST(MigTables, AgreeWithBruteForceOnThor) { ExpectAllLayoutsAgree(TablesOf("THOR"), 13); }

// A GPU on which limits of instances and of engines bind side by side.
TEST(MigTables, AgreeWithBruteForceWhereManyLimitsBind) {
  GpuModel model;
  model.name = "limits";
  model.memory_bytes = 5;
  model.units = model.compute_slices = model.memory_slices = 5;
  model.engines = {.decoder = 4, .ofa = 2};
  model.profiles.resize(3);
  model.profiles[0].name = "a";
  model.profiles[0].max_instances = 3;
  model.profiles[0].engines = {.decoder = 1};
  model.profiles[0].starts = {0, 1, 2, 3, 4};
  model.profiles[1].name = "b";
  model.profiles[1].size = 2;
  model.profiles[1].max_instances = 5;
  model.profiles[1].engines = {.decoder = 2, .ofa = 1};
  model.profiles[1].starts = {0, 1, 3};
  model.profiles[2].name = "c";
  model.profiles[2].max_instances = 2;
  model.profiles[2].engines = {.ofa = 1};
  model.profiles[2].starts = {1, 2, 3, 4};
  const absl::StatusOr<MigTables> tables = MigTables::Create(model);
  ASSERT_THAT(tables, IsOk());
  int layouts = 0;
  ForEachLayout(model, {}, 0, [&](const Layout&) { ++layouts; });
  ExpectAllLayoutsAgree(*tables, layouts);
}

TEST(MigTables, LossAndBestStartFollowTheirDefinition) {
  for (const char* name : {"A30", "A100-40GB", "RTX-PRO-6000"}) {
    const MigTables tables = TablesOf(name);
    const GpuModel& model = tables.model();
    int visited = 0;
    ForEachLayout(model, {}, 0, [&](const Layout& layout) {
      if (++visited % 5 != 0) return;  // the slow rules are very slow here
      const LayoutKey key = *tables.KeyOf(layout, "");
      for (int p = 0; p < static_cast<int>(model.profiles.size()); ++p) {
        std::optional<int> best;
        int least = 0;
        for (const int start : model.profiles[p].starts) {
          if (!tables.CanPlace(key, p, start)) continue;
          const int loss = SlowLoss(model, layout, {p, start});
          EXPECT_EQ(tables.Loss(key, p, start), loss);
          EXPECT_GE(loss, 0);
          if (best && loss >= least) continue;
          best = start;
          least = loss;
        }
        EXPECT_EQ(tables.BestStart(key, p), best);
      }
    });
  }
}

// What each start costs on an empty A100 40GB, by hand. Capacities there: 7 1g, 4
// doubled 1g, 3 2g, 2 3g, one 4g, one 7g.
TEST(MigTables, LossByHand) {
  const MigTables tables = TablesOf("A100-40GB");
  const GpuModel& model = tables.model();
  const int p1g = *model.FindProfile("1g.5gb"), p3g = *model.FindProfile("3g.20gb");
  const LayoutKey empty = tables.empty();
  // 1g at 6: one 1g (1), one double (2), one 3g (4), the 7g (8).
  EXPECT_EQ(tables.Loss(empty, p1g, 6), 1 + 2 + 4 + 8);
  // At 4: besides these a 2g (2).
  EXPECT_EQ(tables.Loss(empty, p1g, 4), 1 + 2 + 2 + 4 + 8);
  // At 0: besides these the 4g (4).
  EXPECT_EQ(tables.Loss(empty, p1g, 0), 1 + 2 + 2 + 4 + 4 + 8);
  EXPECT_EQ(tables.BestStart(empty, p1g), 6);
  // 3g at 4: three 1g (3), two doubles (4), one 2g (2), itself (4), the 7g (8).
  EXPECT_EQ(tables.Loss(empty, p3g, 4), 3 + 4 + 2 + 4 + 8);
  // At 0: four 1g (4), two doubles (4), two 2g (4), itself (4), the 4g (4), the 7g (8).
  EXPECT_EQ(tables.Loss(empty, p3g, 0), 4 + 4 + 4 + 4 + 4 + 8);
  EXPECT_EQ(tables.BestStart(empty, p3g), 4);
  const LayoutKey full = tables.Add(empty, *model.FindProfile("7g.40gb"), 0);
  EXPECT_EQ(tables.BestStart(full, p1g), std::nullopt);
}

TEST(MigTables, BestStartBreaksTiesByTheLowestStart) {
  const MigTables tables = TablesOf("A30");
  const int p1g = *tables.model().FindProfile("1g.6gb");
  EXPECT_EQ(tables.Loss(tables.empty(), p1g, 0), tables.Loss(tables.empty(), p1g, 3));
  EXPECT_EQ(tables.BestStart(tables.empty(), p1g), 0);
}

// --- What NVIDIA's boards of 8 units can and cannot hold. --------------------

// How many ways there are to place this multiset, by position.
int WaysToPlace(const MigTables& tables, const std::vector<std::string>& names) {
  std::vector<int> wanted(tables.model().profiles.size(), 0);
  for (const std::string& name : names) ++wanted[*tables.model().FindProfile(name)];
  int ways = 0;
  ForEachLayout(tables.model(), {}, 0, [&](const Layout& layout) {
    if (layout.size() != names.size() || !tables.KeyOf(layout, "").ok()) return;
    std::vector<int> held(wanted.size(), 0);
    for (const Instance& instance : layout) ++held[instance.profile];
    if (held == wanted) ++ways;
  });
  return ways;
}

TEST(BoardGeometry, LegalAndIllegalSets) {
  const std::string g1 = "1g.5gb", d1 = "1g.10gb", g2 = "2g.10gb", g3 = "3g.20gb", g4 = "4g.20gb";
  const std::string g7 = "7g.40gb", me = "1g.5gb+me";
  const MigTables tables = TablesOf("A100-40GB");
  EXPECT_EQ(WaysToPlace(tables, {g3, g1, g1, g1, g1}), 1);
  EXPECT_EQ(WaysToPlace(tables, {g4, g1, g1, g1}), 1);
  EXPECT_EQ(WaysToPlace(tables, {g4, g1, g1, g1, g1}), 0);
  EXPECT_EQ(WaysToPlace(tables, {g4, g3}), 1);
  EXPECT_EQ(WaysToPlace(tables, {g4, g2, g1}), 1);
  EXPECT_EQ(WaysToPlace(tables, {g3, g3}), 1);
  for (const std::string& more : {g1, me, d1, g2, g3, g4, g7}) {
    EXPECT_EQ(WaysToPlace(tables, {g3, g3, more}), 0) << more;
  }
  EXPECT_EQ(WaysToPlace(tables, {g3, g2, g2}), 1);
  EXPECT_GT(WaysToPlace(tables, {g2, g2, g2, g1}), 0);
  EXPECT_EQ(WaysToPlace(tables, {d1, d1, d1, d1}), 1);
  EXPECT_EQ(WaysToPlace(tables, {d1, d1, d1, d1, g1}), 0);
  EXPECT_GT(WaysToPlace(tables, {d1, d1, d1, g1, g1}), 0);
  EXPECT_EQ(WaysToPlace(tables, {me, me}), 0);
  EXPECT_EQ(WaysToPlace(tables, {g1, g1, g1, g1, g1, g1, g1}), 1);
  EXPECT_EQ(WaysToPlace(tables, {g7}), 1);
  EXPECT_EQ(WaysToPlace(tables, {g7, g1}), 0);
}

TEST(BoardGeometry, WhereTheFirstInstanceGoesDecides) {
  for (const auto& [model, g1, g2, g3, g4] :
       {std::tuple{"A100-40GB", "1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb"},
        std::tuple{"H100-80GB", "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb"}}) {
    const MigTables tables = TablesOf(model);
    const auto index = [&tables](const char* name) { return *tables.model().FindProfile(name); };
    const LayoutKey left = tables.Add(tables.empty(), index(g3), 0);
    EXPECT_EQ(tables.LegalStarts(left, index(g1)), 0b1110000);  // only 4, 5, 6
    EXPECT_EQ(tables.Capacity(left, index(g2)), 1);
    const LayoutKey right = tables.Add(tables.empty(), index(g3), 4);
    EXPECT_EQ(tables.LegalStarts(right, index(g1)), 0b1111);
    EXPECT_EQ(tables.Capacity(right, index(g2)), 2);
    EXPECT_TRUE(tables.CanPlace(right, index(g4), 0));
    for (int start = 0; start < 4; ++start) {  // a 1g there kills the 4g
      const LayoutKey key = tables.Add(tables.empty(), index(g1), start);
      EXPECT_EQ(tables.Capacity(key, index(g4)), 0);
    }
    const LayoutKey four = tables.Add(tables.empty(), index(g4), 0);
    EXPECT_EQ(tables.LegalStarts(four, index(g1)), 0b1110000);
    EXPECT_EQ(tables.LegalStarts(tables.Add(four, index(g2), 4), index(g1)), 0b1000000);
  }
}

// One OFA serves one +me, whatever else is free; the 7g needs it too.
TEST(BoardGeometry, AtMostOneMediaInstance) {
  const MigTables tables = TablesOf("H100-80GB");
  const int me = *tables.model().FindProfile("1g.10gb+me");
  const LayoutKey key = tables.Add(tables.empty(), me, 3);
  EXPECT_EQ(tables.Capacity(tables.empty(), me), 1);
  EXPECT_EQ(tables.Capacity(key, me), 0);
  EXPECT_EQ(tables.Capacity(key, *tables.model().FindProfile("1g.10gb")), 6);
}

// Four quarters of three units; engines bind among the variants.
TEST(RtxPro6000, MediaEnginesArePooled) {
  const MigTables tables = TablesOf("RTX-PRO-6000");
  const auto index = [&tables](const char* name) { return *tables.model().FindProfile(name); };
  EXPECT_EQ(tables.LegalStarts(tables.empty(), index("1g.24gb")), 0b1001001001);
  const LayoutKey all = tables.Add(tables.empty(), index("1g.24gb+me.all"), 0);
  EXPECT_EQ(tables.Placeable(all), (1u << index("1g.24gb-me")) | (1u << index("2g.48gb-me")));
  EXPECT_EQ(tables.Capacity(all, index("1g.24gb-me")), 3);
  // Two 2g take all four decoders; a half of the GPU is free only of them.
  LayoutKey key = tables.Add(tables.empty(), index("2g.48gb"), 0);
  EXPECT_EQ(tables.Capacity(key, index("1g.24gb")), 2);
  EXPECT_EQ(tables.Capacity(key, index("2g.48gb+me.all")), 0);
  key = tables.Add(key, index("1g.24gb+me"), 6);
  EXPECT_EQ(tables.Capacity(key, index("1g.24gb+me")), 0);
  EXPECT_EQ(tables.Capacity(key, index("1g.24gb+gfx")), 1);
}

TEST(MigTables, ForAModelWithoutMigNothingFits) {
  GpuModel model;
  model.name = "T4";
  model.memory_bytes = int64_t{16} << 30;
  const absl::StatusOr<MigTables> tables = MigTables::Create(model);
  ASSERT_THAT(tables, IsOk());
  EXPECT_EQ(tables->Placeable(tables->empty()), 0u);
  EXPECT_EQ(tables->SmallestSufficient(1, 0, 1), std::nullopt);
  EXPECT_THAT(tables->KeyOf({}, "x"), IsOkAndHolds(tables->empty()));
}

TEST(MigTables, CreateRejectsWhatItCannotTabulate) {
  GpuModel model = *FindGpuModel("A30");
  model.profiles[1].starts[3] = 4;
  EXPECT_THAT(MigTables::Create(model),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "A30-24GB.profiles[1].starts[3]: start 4 + size 1 exceeds the 4 units"));
  // Sixteen profiles, at most one of each, anywhere: 2^16 usages on 2^16 masks.
  GpuModel many;
  many.name = "many";
  many.units = many.compute_slices = many.memory_slices = 16;
  many.profiles.resize(16);
  for (int p = 0; p < 16; ++p) {
    many.profiles[p].name = absl::StrCat("p", p);
    for (int start = 0; start < 16; ++start) many.profiles[p].starts.push_back(start);
  }
  EXPECT_THAT(MigTables::Create(many),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 4 states")));
}

TEST(MigTables, HoldTheLargestModel) {
  const GpuModel model = LargestModel();
  const absl::StatusOr<MigTables> tables = MigTables::Create(model);
  ASSERT_THAT(tables, IsOk());
  LayoutKey key = tables->empty();
  for (int start = kMaxPlacementUnits; start-- > 0;) {
    EXPECT_EQ(tables->Capacity(key, start), start + 1);
    key = tables->Add(key, start + 16, start);
  }
  EXPECT_EQ(key.mask, 0xFFFF);
  EXPECT_EQ(tables->Placeable(key), 0u);
}

// --- Lists of instances. ------------------------------------------------------

struct BadList {
  std::vector<std::pair<const char*, int>> list;
  const char* error;
};

void ExpectErrors(const MigTables& tables, std::initializer_list<BadList> lists) {
  for (const BadList& bad : lists) {
    Layout layout;
    for (const auto& [name, start] : bad.list) {
      layout.push_back({*tables.model().FindProfile(name), start});
    }
    EXPECT_THAT(tables.KeyOf(layout, "nodes[3].gpus[1].mig.instances"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         absl::StrCat("nodes[3].gpus[1].mig.instances", bad.error)));
  }
}

TEST(KeyOf, NamesTheOffendingInstance) {
  ExpectErrors(
      TablesOf("H100-80GB"),
      {{{{"3g.40gb", 2}}, "[0]: 3g.40gb cannot start at slice 2"},
       {{{"1g.10gb", 0}, {"1g.10gb", 7}}, "[1]: 1g.10gb cannot start at slice 7"},
       {{{"1g.10gb", -1}}, "[0]: 1g.10gb cannot start at slice -1"},
       {{{"1g.10gb", 99}}, "[0]: 1g.10gb cannot start at slice 99"},
       {{{"1g.10gb", 0}, {"3g.40gb", 4}, {"2g.20gb", 4}},
        "[2]: 2g.20gb at slice 4 overlaps 3g.40gb at slice 4"},
       {{{"1g.10gb", 5}, {"3g.40gb", 4}}, "[1]: 3g.40gb at slice 4 overlaps 1g.10gb at slice 5"},
       {{{"7g.80gb", 0}, {"7g.80gb", 0}}, "[1]: 7g.80gb at slice 0 overlaps 7g.80gb at slice 0"},
       {{{"1g.10gb+me", 0}, {"1g.10gb", 1}, {"1g.10gb+me", 2}},
        "[2]: one H100-80GB holds at most 1 of 1g.10gb+me"}});
  ExpectErrors(TablesOf("RTX-PRO-6000"),
               {{{{"1g.24gb+me.all", 0}, {"1g.24gb", 3}},
                 "[1]: 1g.24gb needs 1 of the decoder engines, 0 of 4 left"},
                {{{"1g.24gb", 0}, {"2g.48gb+me.all", 6}},
                 "[1]: 2g.48gb+me.all needs 4 of the decoder engines, 3 of 4 left"}});
  ExpectErrors(TablesOf("A30"), {{{{"1g.6gb+me", 0}, {"2g.12gb+me", 2}},
                                  "[1]: 2g.12gb+me needs 1 of the jpeg engines, 0 of 1 left"}});
}

TEST(KeyOf, RejectsProfilesOutOfRange) {
  const MigTables tables = TablesOf("A30");
  EXPECT_THAT(tables.KeyOf(Layout{{5, 0}}, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument, "x[0]: no profile 5 on A30-24GB"));
  EXPECT_THAT(tables.KeyOf(Layout{{-1, 0}}, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument, "x[0]: no profile -1 on A30-24GB"));
}

TEST(KeyOf, OrderOfTheListDoesNotMatter) {
  const MigTables tables = TablesOf("A100-40GB");
  Layout layout =
      MakeLayout(tables.model(), {{"1g.5gb", 1}, {"1g.5gb+me", 0}, {"2g.10gb", 2}, {"3g.20gb", 4}});
  const absl::StatusOr<LayoutKey> key = tables.KeyOf(layout, "");
  ASSERT_THAT(key, IsOk());
  EXPECT_EQ(key->mask, 0xFF);
  std::sort(layout.begin(), layout.end());
  do {
    EXPECT_THAT(tables.KeyOf(layout, ""), IsOkAndHolds(*key));
  } while (std::next_permutation(layout.begin(), layout.end()));
}

// --- Requirements. ------------------------------------------------------------

std::string Smallest(std::string_view model, int64_t mib, int num, int den) {
  const MigTables tables = TablesOf(model);
  const std::optional<int> profile = tables.SmallestSufficient(mib << 20, num, den);
  return profile ? tables.model().profiles[*profile].name : "none";
}

TEST(SmallestSufficient, LooksAtMemoryThenComputeThenName) {
  // 18 GiB and 2/7 of the compute, everywhere.
  constexpr int64_t k18GiB = 18 * 1024;
  EXPECT_EQ(Smallest("A100-40GB", k18GiB, 2, 7), "3g.20gb");
  EXPECT_EQ(Smallest("A100-80GB", k18GiB, 2, 7), "2g.20gb");
  EXPECT_EQ(Smallest("H100-80GB", k18GiB, 2, 7), "2g.20gb");
  EXPECT_EQ(Smallest("H200", k18GiB, 2, 7), "2g.35gb");
  EXPECT_EQ(Smallest("A30", k18GiB, 2, 7), "4g.24gb");
  EXPECT_EQ(Smallest("RTX-PRO-6000", k18GiB, 2, 7), "2g.48gb");
  // Memory alone: of the two with a quarter of it, the one with less compute.
  EXPECT_EQ(Smallest("A100-40GB", 8 * 1024, 0, 1), "1g.10gb");
  EXPECT_EQ(Smallest("A100-40GB", 8 * 1024, 2, 7), "2g.10gb");
  EXPECT_EQ(Smallest("A100-40GB", 0, 0, 1), "1g.5gb");
}

TEST(SmallestSufficient, ComparesExactly) {
  // Memory is what the driver reports, to the byte.
  EXPECT_EQ(Smallest("A100-40GB", 4864, 0, 1), "1g.5gb");
  EXPECT_EQ(Smallest("A100-40GB", 4865, 0, 1), "1g.10gb");
  EXPECT_EQ(Smallest("A100-40GB", 40192, 0, 1), "7g.40gb");
  EXPECT_EQ(Smallest("A100-40GB", 40193, 0, 1), "none");
  // 3/7 < 1/2 <= 4/7; 2/4 is 1/2.
  EXPECT_EQ(Smallest("A100-40GB", 0, 3, 7), "3g.20gb");
  EXPECT_EQ(Smallest("A100-40GB", 0, 1, 2), "4g.20gb");
  EXPECT_EQ(Smallest("A30", 0, 1, 2), "2g.12gb");
  EXPECT_EQ(Smallest("A30", 0, 500'000'001, 1'000'000'000), "4g.24gb");
  EXPECT_EQ(Smallest("A30", 0, 1, 1), "4g.24gb");
  EXPECT_EQ(Smallest("A30", 0, 2'000'000'001, 2'000'000'000), "none");
  EXPECT_EQ(Smallest("A100-40GB", 0, 5, 7), "7g.40gb");
}

TEST(SmallestSufficient, IsNeverAVariantAndEqualsGoByName) {
  GpuModel model = *FindGpuModel("RTX-PRO-6000");
  model.profiles[0].name = "1g.24gb+x";  // only variants of a quarter are left
  EXPECT_EQ(MigTables::Create(model)->SmallestSufficient(1, 0, 1), 5);
  model = *FindGpuModel("A30");
  model.profiles[1].name = "1g.5gb";
  EXPECT_EQ(MigTables::Create(model)->SmallestSufficient(1, 0, 1), 1);
}

}  // namespace
}  // namespace tessera
