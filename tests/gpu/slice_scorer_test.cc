#include "tessera/gpu/slice_scorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tessera/gpu/catalogue.h"
#include "tessera/gpu/enumerate.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

static_assert(SliceScorer<FirstFitSlice>);
static_assert(SliceScorer<BestFitSlice>);
static_assert(SliceScorer<WorstFitSlice>);
static_assert(SliceScorer<RandomSlice>);
static_assert(SliceScorer<FragmentationGradient>);

MigTables TablesOf(std::string_view name) { return *MigTables::Create(*FindGpuModel(name)); }

// An A100 40GB: 1g, 2g, 3g, 4g and 7g, beside 1g with double memory.
class OnA100 : public ::testing::Test {
 protected:
  int P(std::string_view name) const { return *tables_.model().FindProfile(name); }

  LayoutKey Key(std::initializer_list<std::pair<const char*, int>> list) const {
    LayoutKey key = tables_.empty();
    for (const auto& [name, start] : list) key = tables_.Add(key, P(name), start);
    return key;
  }

  std::vector<int64_t> Mix(std::initializer_list<std::pair<const char*, int64_t>> list) const {
    std::vector<int64_t> mix(tables_.model().profiles.size(), 0);
    for (const auto& [name, weight] : list) mix[P(name)] = weight;
    return mix;
  }

  FragmentationGradient Gradient(const std::vector<int64_t>& mix) const {
    return *FragmentationGradient::Create(tables_, mix, "mix");
  }

  const MigTables tables_ = TablesOf("A100-40GB");
};

TEST_F(OnA100, WorthIsSquaredSizeTimesCapacity) {
  const FragmentationGradient uniform = Gradient({});
  // 1 x 7 x 1g, 4 x (4 double 1g + 3 x 2g), 16 x (2 x 3g + 1 x 4g), 64 x 1 x 7g.
  EXPECT_EQ(uniform.Worth(tables_.empty()), 7 + 4 * (4 + 3) + 16 * (2 + 1) + 64);
  EXPECT_EQ(uniform.Worth(Key({{"3g.20gb", 4}})), 4 + 4 * (2 + 2) + 16 * (1 + 1));
  EXPECT_EQ(uniform.Worth(Key({{"7g.40gb", 0}})), 0);
}

TEST_F(OnA100, HalfTheWeightFollowsTheMix) {
  // Six profiles are no variants, 7 is the sum of the mix: 2g weighs 6 x 5 + 7, 3g 6 x 2 + 7.
  const FragmentationGradient some = Gradient(Mix({{"2g.10gb", 5}, {"3g.20gb", 2}}));
  const int64_t others = 7 * (7 + 4 * 4 + 16 * 1 + 64 * 1);
  EXPECT_EQ(some.Worth(tables_.empty()), 37 * 4 * 3 + 19 * 16 * 2 + others);
  // 1g at 6 costs a 1g, a double 1g, a 3g and the 7g.
  EXPECT_EQ(some.Score(tables_, tables_.empty(), P("1g.5gb"), 6), 7 * (1 + 4 + 64) + 19 * 16);
}

TEST_F(OnA100, ScoreIsTheWorthThatIsLost) {
  const FragmentationGradient uniform = Gradient({});
  const auto score = [&](LayoutKey before, const char* name, int start) {
    return uniform.Score(tables_, before, P(name), start);
  };
  // 1g at 0 costs one 1g, a double 1g, a 2g, a 3g, the 4g and the 7g; at 6 neither 2g nor 4g.
  EXPECT_EQ(score(tables_.empty(), "1g.5gb", 0), 1 + 4 + 4 + 16 + 16 + 64);
  EXPECT_EQ(score(tables_.empty(), "1g.5gb", 6), 1 + 4 + 0 + 16 + 0 + 64);
  // The second 1g of a half costs no large one any more.
  EXPECT_EQ(score(Key({{"1g.5gb", 6}}), "1g.5gb", 5), 1 + 4 + 4);
  // Beside a 3g at 4, the 1g at 3 blocks the 4g that could follow; beside 4g nothing large.
  EXPECT_EQ(score(Key({{"3g.20gb", 4}}), "1g.5gb", 3), 1 + 4 + 4 + 16 + 16);
  EXPECT_EQ(score(Key({{"4g.20gb", 0}}), "1g.5gb", 6), 1 + 4 + 0 + 16);
}

TEST_F(OnA100, ScorersChooseAsTheirNamesSay) {
  const std::vector<LayoutKey> gpus = {
      tables_.empty(),                        // 0: 8 units free
      Key({{"3g.20gb", 4}, {"2g.10gb", 0}}),  // 1: 2 free
      Key({{"4g.20gb", 0}}),                  // 2: 4 free
      Key({{"4g.20gb", 0}, {"2g.10gb", 4}}),  // 3: 2 free, one of them usable
      Key({{"4g.20gb", 0}, {"3g.20gb", 4}}),  // 4: none free
      Key({{"3g.20gb", 4}, {"3g.20gb", 0}}),  // 5: none free
  };
  const int p1g = P("1g.5gb");
  const auto choose = [&](int profile, const auto& scorer) {
    const auto place = ChooseSlice(tables_, gpus, profile, scorer);
    return place ? std::pair(place->gpu, place->start) : std::pair(-1, -1);
  };
  EXPECT_EQ(choose(p1g, FirstFitSlice()), std::pair(0, 0));
  EXPECT_EQ(choose(p1g, BestFitSlice()), std::pair(1, 2));
  EXPECT_EQ(choose(p1g, WorstFitSlice()), std::pair(0, 0));
  // Beside 4g and 2g a 1g takes what nobody else can use.
  EXPECT_EQ(choose(p1g, Gradient({})), std::pair(3, 6));
  EXPECT_EQ(choose(P("2g.10gb"), FirstFitSlice()), std::pair(0, 0));
  EXPECT_EQ(choose(P("2g.10gb"), BestFitSlice()), std::pair(1, 2));
  EXPECT_EQ(choose(P("2g.10gb"), WorstFitSlice()), std::pair(0, 0));
  EXPECT_EQ(choose(P("2g.10gb"), Gradient({})), std::pair(1, 2));
  EXPECT_EQ(choose(P("3g.20gb"), FirstFitSlice()), std::pair(0, 0));
  EXPECT_EQ(choose(P("3g.20gb"), Gradient({})), std::pair(2, 4));
  EXPECT_EQ(choose(P("4g.20gb"), Gradient({})), std::pair(0, 0));
}

TEST_F(OnA100, TiesFallToTheLowestGpuAndStart) {
  const LayoutKey full = Key({{"7g.40gb", 0}});
  const LayoutKey free = tables_.empty();
  const FragmentationGradient gradient = Gradient({});
  const int p1g = P("1g.5gb");
  // 1g at 4 and 5 cost the same, 6 less; with 6 taken, 4 and 5 are left.
  const LayoutKey six = Key({{"1g.5gb", 6}});
  const auto place = ChooseSlice(tables_, std::vector{full, six, six}, p1g, gradient);
  EXPECT_EQ(place, (ScoredSlice{1, 4, 1 + 4 + 4}));
  EXPECT_EQ(ChooseSlice(tables_, std::vector{full, free, free}, p1g, gradient)->gpu, 1);
  EXPECT_EQ(ChooseSlice(tables_, std::vector{full}, p1g, gradient), std::nullopt);
  EXPECT_EQ(ChooseSlice(tables_, {}, p1g, gradient), std::nullopt);
}

TEST_F(OnA100, AMixDecidesWhatToBreak) {
  // 1g beside a 3g at 4 costs a 1g, a double 1g, a 2g, a 3g and the 4g; on a free GPU at 6
  // a 1g, a double 1g, a 3g and the 7g.
  const std::vector<LayoutKey> gpus = {Key({{"3g.20gb", 4}}), tables_.empty()};
  const auto choose = [&](int64_t weight_4g, int64_t weight_7g) {
    const auto gradient = Gradient(Mix({{"4g.20gb", weight_4g}, {"7g.40gb", weight_7g}}));
    return *ChooseSlice(tables_, gpus, P("1g.5gb"), gradient);
  };
  EXPECT_EQ(choose(1, 1), (ScoredSlice{0, 0, 2 * (1 + 4 + 4 + 16) + (6 * 1 + 2) * 16}));
  EXPECT_EQ(choose(9, 0), (ScoredSlice{1, 6, 9 * (1 + 4 + 16 + 64)}));
}

TEST_F(OnA100, OnlyProportionsOfAMixMatterAndNoneIsUniform) {
  const std::vector<int64_t> mix = Mix({{"1g.5gb", 4}, {"2g.10gb", 3}, {"7g.40gb", 1}});
  std::vector<int64_t> large = mix;
  for (int64_t& weight : large) weight *= kMaxDemandWeight / 4;
  const FragmentationGradient a = Gradient(mix), b = Gradient(large);
  const LayoutKey key = Key({{"3g.20gb", 4}});
  EXPECT_EQ(b.Worth(key), a.Worth(key) * (kMaxDemandWeight / 4));
  EXPECT_GT(b.Worth(tables_.empty()), 0);
  const std::vector<int64_t> zero(mix.size(), 0);
  EXPECT_EQ(Gradient(zero).Worth(key), Gradient({}).Worth(key));
}

TEST_F(OnA100, RandomDependsOnTheSeedAlone) {
  std::set<int> gpus;
  std::set<int> starts;
  const std::vector<LayoutKey> keys = {tables_.empty(), Key({{"3g.20gb", 4}}),
                                       Key({{"4g.20gb", 0}})};
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto place = ChooseSlice(tables_, keys, P("1g.5gb"), RandomSlice{seed});
    EXPECT_EQ(place, ChooseSlice(tables_, keys, P("1g.5gb"), RandomSlice{seed}));
    EXPECT_GE(place->score, 0);
    gpus.insert(place->gpu);
    starts.insert(place->start);
  }
  EXPECT_EQ(gpus, (std::set<int>{0, 1, 2}));
  EXPECT_EQ(starts, (std::set<int>{0, 1, 2, 3, 4, 5, 6}));
}

TEST_F(OnA100, BadMixesAreRefused) {
  const auto create = [&](const std::vector<int64_t>& mix) {
    return FragmentationGradient::Create(tables_, mix, "mix").status();
  };
  EXPECT_THAT(create({1, 2}), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("mix: 2 weights for the 7 profiles")));
  EXPECT_THAT(create({1, 0, -1, 0, 0, 0, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mix[2]: weight -1")));
  EXPECT_THAT(create({kMaxDemandWeight + 1, 0, 0, 0, 0, 0, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mix[0]: weight")));
  EXPECT_THAT(create({kMaxDemandWeight, 0, 0, 0, 0, 0, 0}), IsOk());
}

// --- The table against the sums that it stands for, on every layout. --------

int64_t SlowWorth(const MigTables& tables, LayoutKey key, const std::vector<int64_t>& mix) {
  const std::vector<MigProfile>& profiles = tables.model().profiles;
  int64_t worth = 0;
  for (size_t p = 0; p < profiles.size(); ++p) {
    const int64_t room =
        int64_t{profiles[p].size} * profiles[p].size * tables.Capacity(key, static_cast<int>(p));
    for (size_t q = 0; q < profiles.size(); ++q) {
      if (!profiles[p].is_variant()) worth += mix[q] * room;
      if (!profiles[q].is_variant()) worth += mix[p] * room;
    }
  }
  return worth;
}

void ExpectTableAgrees(std::string_view name) {
  SCOPED_TRACE(std::string(name));
  const MigTables tables = TablesOf(name);
  const GpuModel& model = tables.model();
  std::vector<int64_t> mix;
  for (size_t p = 0; p < model.profiles.size(); ++p) mix.push_back(int64_t(p * p * 7 % 11));
  const FragmentationGradient gradient = *FragmentationGradient::Create(tables, mix, "mix");
  const uint32_t all = (uint32_t{1} << model.profiles.size()) - 1;
  for (const std::vector<Instance>& layout : EnumerateLayouts(tables, all)) {
    const LayoutKey key = *tables.KeyOf(layout, "");
    ASSERT_EQ(gradient.Worth(key), SlowWorth(tables, key, mix));
    for (int p = 0; p < static_cast<int>(model.profiles.size()); ++p) {
      for (const int start : model.profiles[p].starts) {
        if (!tables.CanPlace(key, p, start)) continue;
        const int64_t after = SlowWorth(tables, tables.Add(key, p, start), mix);
        ASSERT_EQ(gradient.Score(tables, key, p, start), SlowWorth(tables, key, mix) - after);
        ASSERT_GE(gradient.Score(tables, key, p, start), 0);
      }
    }
  }
}

TEST(FragmentationGradient, TableAgreesWithTheSums) {
  for (const char* name : {"A30-24GB", "A100-40GB", "H100-80GB", "RTX-PRO-6000"}) {
    ExpectTableAgrees(name);
  }
}

TEST(FragmentationGradient, AGpuWithoutMigIsWorthNothing) {
  GpuModel model;
  model.name = "T4";
  const MigTables tables = *MigTables::Create(model);
  EXPECT_EQ(FragmentationGradient::Create(tables, {}, "mix")->Worth(tables.empty()), 0);
}

}  // namespace
}  // namespace tessera
