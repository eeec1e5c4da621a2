#include "tessera/gpu/geometry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tessera/gpu/catalogue.h"
#include "tessera/gpu/enumerate.h"
#include "tests/support/largest_model.h"
#include "tests/support/random_cases.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using Demand = std::vector<int64_t>;

MigTables TablesOf(std::string_view name) { return *MigTables::Create(*FindGpuModel(name)); }

Demand MakeDemand(const GpuModel& model, std::initializer_list<std::pair<const char*, int>> list) {
  Demand demand(model.profiles.size(), 0);
  for (const auto& [name, count] : list) demand[*model.FindProfile(name)] += count;
  return demand;
}

// The plan for `demand`, after a check that it is one: legal layouts, exactly the slices.
GeometryPlan CheckedPlan(const MigTables& tables, const Demand& demand) {
  const absl::StatusOr<GeometryPlan> plan = PlanGeometry(tables, demand, "demand");
  EXPECT_THAT(plan, IsOk());
  Demand held(demand.size(), 0);
  int64_t gpus = 0;
  for (const LayoutShare& share : plan->layouts) {
    EXPECT_THAT(tables.KeyOf(share.instances, ""), IsOk());
    EXPECT_TRUE(
        std::is_sorted(share.instances.begin(), share.instances.end(),
                       [](const Instance& a, const Instance& b) { return a.start < b.start; }));
    EXPECT_GT(share.gpus, 0);
    gpus += share.gpus;
    for (const Instance& instance : share.instances) held[instance.profile] += share.gpus;
  }
  for (size_t i = 1; i < plan->layouts.size(); ++i) {
    EXPECT_LT(plan->layouts[i - 1].instances, plan->layouts[i].instances);
  }
  EXPECT_EQ(held, demand);
  EXPECT_EQ(gpus, plan->gpus);
  EXPECT_LE(plan->lower_bound, plan->gpus);
  return *plan;
}

struct Row {
  std::vector<std::pair<const char*, int>> demand;
  int64_t gpus;
};

void ExpectGpus(std::string_view name, std::initializer_list<Row> rows) {
  const MigTables tables = TablesOf(name);
  for (const Row& row : rows) {
    Demand demand(tables.model().profiles.size(), 0);
    std::string text;
    for (const auto& [profile, count] : row.demand) {
      demand[*tables.model().FindProfile(profile)] += count;
      absl::StrAppend(&text, count, " x ", profile, " ");
    }
    const GeometryPlan plan = CheckedPlan(tables, demand);
    EXPECT_EQ(plan.gpus, row.gpus) << text;
    EXPECT_TRUE(plan.optimal()) << text;
  }
}

TEST(PlanGeometry, ByHandOnA100) {
  ExpectGpus("A100-40GB", {
                              {{}, 0},
                              {{{"1g.5gb", 7}}, 1},
                              {{{"1g.5gb", 8}}, 2},
                              {{{"3g.20gb", 1}, {"1g.5gb", 4}}, 1},   // 3g on the right
                              {{{"4g.20gb", 1}, {"1g.5gb", 4}}, 2},   // three starts remain
                              {{{"3g.20gb", 2}, {"1g.5gb", 1}}, 2},   // no unit remains
                              {{{"4g.20gb", 3}, {"3g.20gb", 3}}, 3},  // one of each
                              {{{"4g.20gb", 3}, {"3g.20gb", 5}}, 4},  // and two 3g
                              {{{"1g.5gb+me", 3}, {"1g.5gb", 18}}, 3},
                              {{{"1g.5gb+me", 3}, {"1g.5gb", 19}}, 4},
                              {{{"1g.5gb+me", 5}}, 5},
                              {{{"7g.40gb", 2}, {"1g.5gb+me", 1}}, 3},
                              {{{"1g.10gb", 9}}, 3},
                              {{{"2g.10gb", 7}}, 3},                  // three to a GPU
                              {{{"2g.10gb", 6}, {"1g.10gb", 2}}, 2},  // the double takes unit 6
                              {{{"2g.10gb", 6}, {"1g.5gb", 2}}, 2},   // so does the 1g
                              {{{"2g.10gb", 6}, {"1g.5gb", 3}}, 3},   // 15 units, but 2 x 6
                              {{{"4g.20gb", 10}, {"2g.10gb", 10}, {"1g.5gb", 10}}, 10},
                              {{{"1g.5gb", 7000}}, 1000},
                              {{{"1g.5gb", 700000000}, {"7g.40gb", 1}}, 100000001},
                          });
}

TEST(PlanGeometry, ByHandElsewhere) {
  ExpectGpus("A30", {
                        {{{"1g.6gb", 5}}, 2},
                        {{{"2g.12gb", 3}, {"1g.6gb", 2}}, 2},
                        {{{"2g.12gb+me", 1}, {"1g.6gb+me", 1}}, 2},  // one media engine each
                        {{{"2g.12gb+me", 2}, {"1g.6gb", 4}}, 2},
                        {{{"4g.24gb", 2}, {"1g.6gb+me", 2}, {"2g.12gb", 2}, {"1g.6gb", 2}}, 4},
                    });
  ExpectGpus("RTX-PRO-6000",
             {
                 {{{"1g.24gb", 4}}, 1},
                 {{{"1g.24gb", 2}, {"1g.24gb+gfx", 2}}, 1},
                 {{{"1g.24gb+me.all", 1}, {"1g.24gb", 1}}, 2},  // all four decoders are gone
                 {{{"1g.24gb+me.all", 1}, {"1g.24gb-me", 3}}, 1},
                 {{{"2g.48gb+me.all", 2}, {"2g.48gb-me", 1}, {"1g.24gb-me", 2}}, 2},
                 {{{"4g.96gb+gfx", 3}, {"2g.48gb", 2}}, 4},
             });
  ExpectGpus("THOR",
             {{{{"1g.0gb", 2}, {"2g.0gb+gfx", 2}}, 2}, {{{"1g.0gb", 1}, {"2g.0gb", 1}}, 2}});
}

TEST(PlanGeometry, NamesTheLayout) {
  const MigTables tables = TablesOf("A100-40GB");
  const GpuModel& model = tables.model();
  const int p1g = *model.FindProfile("1g.5gb"), p3g = *model.FindProfile("3g.20gb");
  const GeometryPlan plan = CheckedPlan(tables, MakeDemand(model, {{"1g.5gb", 4}, {"3g.20gb", 1}}));
  const std::vector<Instance> layout = {{p1g, 0}, {p1g, 1}, {p1g, 2}, {p1g, 3}, {p3g, 4}};
  EXPECT_EQ(plan.layouts, (std::vector<LayoutShare>{{layout, 1}}));
}

TEST(PlanGeometry, RejectsWhatIsNoDemand) {
  const MigTables tables = TablesOf("A30");
  EXPECT_THAT(PlanGeometry(tables, Demand{1, 2}, "forecast"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "forecast: 2 counts for the 5 profiles of A30-24GB"));
  EXPECT_THAT(PlanGeometry(tables, Demand{1, 0, -1, 0, 0}, "forecast"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "forecast[2]: count -1 is not in 0..1000000000"));
  EXPECT_THAT(PlanGeometry(tables, Demand{kMaxGeometrySlices + 1, 0, 0, 0, 0}, "forecast"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(PlanGeometry, RefusesMoreLayoutsThanItCanWeigh) {
  const MigTables tables = *MigTables::Create(LargestModel());
  EXPECT_THAT(PlanGeometry(tables, Demand(32, 1), "forecast"),
              StatusIs(absl::StatusCode::kResourceExhausted));
  Demand one(32, 0);
  one[3] = 33;
  EXPECT_EQ(CheckedPlan(tables, one).gpus, 3);
}

TEST(PlanGeometry, WithoutBudgetSaysWhatIsOpen) {
  const MigTables tables = TablesOf("A100-40GB");
  const Demand demand = {9, 2, 3, 5, 4, 3, 1};
  const absl::StatusOr<GeometryPlan> plan = PlanGeometry(tables, demand, "demand", 0);
  ASSERT_THAT(plan, IsOk());
  EXPECT_LT(plan->lower_bound, plan->gpus);
  EXPECT_FALSE(plan->optimal());
  EXPECT_TRUE(CheckedPlan(tables, demand).optimal());
}

// --- Against brute force. -----------------------------------------------------

// Every multiset of profiles that one GPU holds.
std::set<Demand> HeldByOneGpu(const MigTables& tables) {
  std::set<Demand> held;
  for (const std::vector<Instance>& layout : EnumerateLayouts(tables, ~0u)) {
    Demand counts(tables.model().profiles.size(), 0);
    for (const Instance& instance : layout) ++counts[instance.profile];
    held.insert(counts);
  }
  return held;
}

// The fewest GPUs by dynamic programming over all demands of up to three GPUs.
TEST(PlanGeometry, AgreesWithBruteForceOnAllSmallDemands) {
  for (const char* name : {"A30", "RTX-PRO-5000", "THOR"}) {
    const MigTables tables = TablesOf(name);
    const std::set<Demand> one = HeldByOneGpu(tables);
    std::map<Demand, int64_t> least = {{Demand(tables.model().profiles.size(), 0), 0}};
    std::set<Demand> frontier = {least.begin()->first};
    for (int64_t gpus = 1; gpus <= 3; ++gpus) {
      std::set<Demand> next;
      for (const Demand& demand : frontier) {
        for (const Demand& more : one) {
          Demand sum = demand;
          for (size_t p = 0; p < sum.size(); ++p) sum[p] += more[p];
          if (least.try_emplace(sum, gpus).second) next.insert(sum);
        }
      }
      frontier = std::move(next);
    }
    for (const auto& [demand, gpus] : least) {
      const GeometryPlan plan = CheckedPlan(tables, demand);
      ASSERT_EQ(plan.gpus, gpus) << name;
      ASSERT_TRUE(plan.optimal()) << name;
    }
  }
}

// --- Against an integer program. ----------------------------------------------

// Up to 40 slices of some of the profiles of some model.
std::pair<const GpuModel*, Demand> DrawDemand(std::mt19937& engine) {
  const std::span<const GpuModel> models = GpuCatalogue();
  const GpuModel& model = models[engine() % models.size()];
  Demand demand(model.profiles.size(), 0);
  const uint32_t likely = engine();
  for (int slices = 1 + static_cast<int>(engine() % 40); slices > 0; --slices) {
    size_t p = engine() % demand.size();
    if (((likely >> p) & 1) == 0) p = engine() % demand.size();
    ++demand[p];
  }
  return {&model, demand};
}

// Writes one program: the x of case k count GPUs per multiset of profiles, maximal ones
// only, as `x<k>_<column>`. Cases share nothing, so that the optimum is the sum of theirs.
class ProgramFile {
 public:
  void AddCase(int k, const std::set<Demand>& held, const Demand& demand) {
    std::vector<std::string> rows(demand.size());
    int column = 0;
    for (const Demand& counts : held) {
      const std::string x = absl::StrCat("x", k, "_", column++);
      absl::StrAppend(&objective_, " + ", x, "\n");
      absl::StrAppend(&integers_, " ", x, "\n");
      for (size_t p = 0; p < demand.size(); ++p) {
        if (counts[p] > 0) absl::StrAppend(&rows[p], " + ", counts[p], " ", x);
      }
    }
    for (size_t p = 0; p < demand.size(); ++p) {
      absl::StrAppend(&rows_, "c", k, "_", p, ":", rows[p], " >= ", demand[p], "\n");
    }
  }

  std::string Text() const {
    return absl::StrCat("Minimize\nobj:", objective_, "Subject To\n", rows_, "General\n", integers_,
                        "End\n");
  }

 private:
  std::string objective_, rows_, integers_;
};

// Runs cbc on `program` and returns the least number of GPUs of each case.
std::map<int, int64_t> SolveByCbc(const ProgramFile& program) {
  const std::string base = absl::StrCat(::testing::TempDir(), "tessera_geometry");
  std::ofstream(base + ".lp") << program.Text();
  const std::string command = absl::StrCat("cbc ", base, ".lp ratioGap 0 allowableGap 0 solve ",
                                           "solution ", base, ".sol > ", base, ".log 2>&1");
  std::map<int, int64_t> gpus;
  if (std::system(command.c_str()) != 0) return gpus;
  std::ifstream solution(base + ".sol");
  std::string line;
  std::getline(solution, line);
  EXPECT_EQ(line.rfind("Optimal", 0), 0u) << line;
  std::string index, name;
  double value = 0, reduced = 0;
  while (solution >> index >> name >> value >> reduced) {
    gpus[std::atoi(name.c_str() + 1)] += static_cast<int64_t>(value + 0.5);
  }
  return gpus;
}

TEST(PlanGeometry, AgreesWithAnIntegerProgram) {
  if (std::system("command -v cbc > /dev/null 2>&1") != 0) GTEST_SKIP() << "no cbc";
  constexpr int kBatch = 5;
  std::map<std::string, std::set<Demand>> held;
  std::mt19937 engine(1);
  const int cases = RandomCases(50, 500);
  for (int first = 0; first < cases; first += kBatch) {
    ProgramFile program;
    std::map<int, GeometryPlan> plans;
    for (int k = first; k < first + kBatch; ++k) {
      const auto [model, demand] = DrawDemand(engine);
      const MigTables tables = *MigTables::Create(*model);
      std::set<Demand>& columns = held[model->name];
      if (columns.empty()) columns = HeldByOneGpu(tables);
      program.AddCase(k, columns, demand);
      plans[k] = CheckedPlan(tables, demand);
    }
    const std::map<int, int64_t> least = SolveByCbc(program);
    for (const auto& [k, plan] : plans) {
      ASSERT_TRUE(least.contains(k)) << k;
      ASSERT_EQ(plan.gpus, least.at(k)) << k;
      ASSERT_TRUE(plan.optimal()) << k;
    }
  }
}

// Beyond 64 GPUs only the distance from the bound is promised.
TEST(PlanGeometry, StaysWithinOneOfTheBoundOnLargeDemands) {
  std::mt19937 engine(2);
  for (int k = 0; k < RandomCases(50, 1000); ++k) {
    auto [model, demand] = DrawDemand(engine);
    for (int64_t& count : demand) count *= 1 + static_cast<int64_t>(engine() % 1000);
    const GeometryPlan plan = CheckedPlan(*MigTables::Create(*model), demand);
    ASSERT_LE(plan.gpus, plan.lower_bound + 1) << k;
  }
}

}  // namespace
}  // namespace tessera
