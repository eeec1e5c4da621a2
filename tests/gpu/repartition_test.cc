#include "tessera/gpu/repartition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/gpu/catalogue.h"
#include "tessera/gpu/enumerate.h"
#include "tests/support/random_cases.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Counts = std::vector<int64_t>;
using Layout = std::vector<Instance>;

constexpr RepartitionCosts kCosts = {.destroy = 1, .create = 10, .switch_mig = 100, .reset = 1000};

MigTables TablesOf(std::string_view name) { return *MigTables::Create(*FindGpuModel(name)); }

GpuOperation Destroy(int gpu, Instance instance) {
  return {GpuOperationKind::kDestroy, gpu, instance, false};
}
GpuOperation Create(int gpu, Instance instance) {
  return {GpuOperationKind::kCreate, gpu, instance, false};
}
GpuOperation SetMig(int gpu) { return {GpuOperationKind::kSetMig, gpu, {}, true}; }

Layout AllOf(const SlicedGpu& gpu) {
  Layout all = gpu.idle;
  for (const BusyInstance& busy : gpu.busy) all.push_back(busy.instance);
  return all;
}

// Carries out the operations on `gpus` and checks every step.
void Carry(const MigTables& tables, const std::vector<GpuOperation>& operations,
           std::vector<SlicedGpu>& gpus) {
  for (const GpuOperation& operation : operations) {
    SlicedGpu& gpu = gpus[operation.gpu];
    EXPECT_TRUE(gpu.may_change);
    switch (operation.kind) {
      case GpuOperationKind::kSetMig:
        EXPECT_NE(gpu.mig_enabled, operation.enabled);
        EXPECT_THAT(AllOf(gpu), IsEmpty());
        gpu.mig_enabled = operation.enabled;
        break;
      case GpuOperationKind::kDestroy:
        EXPECT_EQ(std::erase(gpu.idle, operation.instance), 1u);
        break;
      case GpuOperationKind::kCreate:
        EXPECT_TRUE(gpu.mig_enabled);
        gpu.idle.push_back(operation.instance);
        break;
    }
    EXPECT_THAT(tables.KeyOf(AllOf(gpu), ""), IsOk());
  }
}

TEST(PlanRepartition, ByHandOnA100) {
  const MigTables tables = TablesOf("A100-40GB");
  const GpuModel& model = tables.model();
  const int p1g = *model.FindProfile("1g.5gb"), p2g = *model.FindProfile("2g.10gb");
  const int p3g = *model.FindProfile("3g.20gb"), p4g = *model.FindProfile("4g.20gb");
  std::vector<SlicedGpu> gpus(1);
  gpus[0].busy = {{{p1g, 4}}};
  gpus[0].idle = {{p1g, 0}, {p2g, 2}};
  const auto plan_for = [&](const Counts& wanted) {
    return PlanRepartition(tables, gpus, wanted, kCosts, "gpus");
  };
  // The 2g exists; nothing to do.
  Counts wanted(model.profiles.size(), 0);
  wanted[p2g] = 1;
  auto plan = plan_for(wanted);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->operations, IsEmpty());
  // A second one on 0, where an idle 1g is in the way.
  wanted[p2g] = 2;
  plan = plan_for(wanted);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->operations, ElementsAre(Destroy(0, {p1g, 0}), Create(0, {p2g, 0})));
  EXPECT_EQ(plan->latency, 11);
  // If the 1g is wanted too, it moves to where there is room.
  wanted[p1g] = 1;
  plan = plan_for(wanted);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->operations,
              ElementsAre(Destroy(0, {p1g, 0}), Create(0, {p2g, 0}), Create(0, {p1g, 5})));
  // A 4g takes the left half; a 3g may not touch the busy one on the right.
  wanted.assign(model.profiles.size(), 0);
  wanted[p4g] = 1;
  plan = plan_for(wanted);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->operations,
              ElementsAre(Destroy(0, {p1g, 0}), Destroy(0, {p2g, 2}), Create(0, {p4g, 0})));
  wanted[p3g] = 1;
  plan = plan_for(wanted);
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->outcome, RepartitionOutcome::kInfeasible);
  // Switching on an empty GPU is one operation and a reset.
  gpus.emplace_back().mig_enabled = false;
  plan = plan_for(wanted);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->operations, ElementsAre(SetMig(1), Create(1, {p4g, 0}), Create(1, {p3g, 4})));
  EXPECT_EQ(plan->latency, 1100 + 20);
}

TEST(PlanRepartition, OfWhatMayNotChangeOnlyCountsWhatIsIdle) {
  const MigTables tables = TablesOf("A30");
  std::vector<SlicedGpu> gpus(2);
  gpus[0].may_change = false;
  gpus[0].idle = {{0, 0}};
  gpus[1].idle = {{0, 0}, {0, 3}};
  // A 2g and two 1g: the one of the first GPU lets one of the second go.
  auto plan = PlanRepartition(tables, gpus, Counts{2, 0, 1, 0, 0}, kCosts, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->operations, ElementsAre(Destroy(1, {0, 0}), Create(1, {2, 0})));
  plan = PlanRepartition(tables, gpus, Counts{0, 0, 3, 0, 0}, kCosts, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->outcome, RepartitionOutcome::kInfeasible);
  plan = PlanRepartition(tables, gpus, Counts{int64_t{1} << 60, 0, 0, 0, 0}, kCosts, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->outcome, RepartitionOutcome::kInfeasible);
  plan = PlanRepartition(tables, gpus, Counts{0, 0, 1, 0, 0}, kCosts, "gpus", 1);
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->outcome, RepartitionOutcome::kBudgetExhausted);
}

TEST(PlanRepartition, RejectsWhatCannotBe) {
  const MigTables tables = TablesOf("A30");
  const auto error_of = [&tables](const SlicedGpu& gpu, const Counts& wanted,
                                  const RepartitionCosts& costs) {
    return std::string(
        PlanRepartition(tables, std::vector{gpu}, wanted, costs, "gpus").status().message());
  };
  SlicedGpu gpu;
  EXPECT_EQ(error_of(gpu, {1}, kCosts), "wanted: 1 counts for the 5 profiles of A30-24GB");
  EXPECT_EQ(error_of(gpu, {0, 0, -2, 0, 0}, kCosts), "wanted[2]: count -2 is negative");
  EXPECT_EQ(error_of(gpu, Counts(5, 0), {.destroy = 0, .create = -1}),
            "costs.create: -1 is not in 0..1099511627776");
  gpu.idle = {{2, 1}};
  EXPECT_EQ(error_of(gpu, Counts(5, 0), kCosts),
            "gpus[0].idle[0]: 2g.12gb cannot start at slice 1");
  EXPECT_THAT(PlanLayout(tables, SlicedGpu(), Layout{{0, 0}, {2, 0}}, kCosts, "gpus"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "layout[1]: 2g.12gb at slice 0 overlaps 1g.6gb at slice 0"));
}

TEST(PlanLayout, SwitchesMigAndLeavesFixedGpusAlone) {
  const MigTables tables = TablesOf("H100-80GB");
  SlicedGpu gpu;
  gpu.mig_enabled = false;
  auto plan = PlanLayout(tables, gpu, Layout{{0, 1}, {0, 0}}, kCosts, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->operations, ElementsAre(SetMig(0), Create(0, {0, 0}), Create(0, {0, 1})));
  EXPECT_EQ(plan->latency, 120);  // no reset on Hopper
  gpu.may_change = false;
  plan = PlanLayout(tables, gpu, Layout{{0, 0}}, kCosts, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->outcome, RepartitionOutcome::kInfeasible);
  EXPECT_THAT(plan->operations, IsEmpty());
  plan = PlanLayout(tables, gpu, Layout(), kCosts, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->outcome, RepartitionOutcome::kPlanned);
}

// --- Against brute force: breadth-first search over layouts. --------------------

// All layouts of a model and which are one operation apart.
class LayoutGraph {
 public:
  explicit LayoutGraph(std::string_view name)
      : tables(TablesOf(name)), layouts(EnumerateLayouts(tables, ~0u)), less_(layouts.size()) {
    std::map<Layout, int> index;
    for (size_t i = 0; i < layouts.size(); ++i) index[layouts[i]] = static_cast<int>(i);
    more_.resize(layouts.size());
    for (size_t i = 0; i < layouts.size(); ++i) {
      for (size_t k = 0; k < layouts[i].size(); ++k) {
        Layout less = layouts[i];
        less.erase(less.begin() + static_cast<std::ptrdiff_t>(k));
        less_[i].push_back({index.at(less), layouts[i][k]});
        more_[index.at(less)].push_back(static_cast<int>(i));
      }
    }
  }

  // Operations from layout `from` to each other while `busy` stand; -1 = impossible.
  std::vector<int> Distances(int from, const Layout& busy) const {
    std::vector<int> distance(layouts.size(), -1), queue = {from};
    distance[from] = 0;
    for (size_t i = 0; i < queue.size(); ++i) {
      const auto reach = [&, at = queue[i]](int next) {
        if (distance[next] >= 0) return;
        distance[next] = distance[at] + 1;
        queue.push_back(next);
      };
      for (const auto& [less, removed] : less_[queue[i]]) {
        if (std::count(busy.begin(), busy.end(), removed) == 0) reach(less);
      }
      for (const int more : more_[queue[i]]) reach(more);
    }
    return distance;
  }

  const MigTables tables;
  const std::vector<Layout> layouts;

 private:
  std::vector<std::vector<std::pair<int, Instance>>> less_;  // and what is destroyed
  std::vector<std::vector<int>> more_;
};

// One GPU with the layout `from`, of which the instances in `mask` are busy.
struct Start {
  SlicedGpu gpu;
  Layout busy;
  std::map<Counts, int> least;  // operations until these instances are idle
};

Start MakeStart(const LayoutGraph& graph, int from, unsigned mask, bool may_change,
                bool mig_enabled) {
  Start start;
  start.gpu.may_change = may_change;
  start.gpu.mig_enabled = mig_enabled || !graph.layouts[from].empty();
  for (size_t i = 0; i < graph.layouts[from].size(); ++i) {
    const Instance& instance = graph.layouts[from][i];
    if (((mask >> i) & 1) == 0) {
      start.gpu.idle.push_back(instance);
    } else {
      start.gpu.busy.push_back({instance});
      start.busy.push_back(instance);
    }
  }
  const std::vector<int> distances = graph.Distances(from, start.busy);
  for (size_t to = 0; to < distances.size(); ++to) {
    if (distances[to] < 0 || (distances[to] > 0 && !may_change)) continue;
    Counts idle(graph.tables.model().profiles.size(), 0);
    for (const Instance& instance : graph.layouts[to]) ++idle[instance.profile];
    for (const Instance& instance : start.busy) --idle[instance.profile];
    const int switches = start.gpu.mig_enabled || distances[to] == 0 ? 0 : 1;
    const auto [it, is_new] = start.least.try_emplace(idle, distances[to] + switches);
    it->second = std::min(it->second, distances[to] + switches);
  }
  return start;
}

bool Covers(const Counts& a, const Counts& b, const Counts& wanted) {
  for (size_t p = 0; p < wanted.size(); ++p) {
    if (a[p] + b[p] < wanted[p]) return false;
  }
  return true;
}

// Compares the plan for `wanted` on two GPUs with the least by brute force.
void ExpectFewest(const LayoutGraph& graph, const Start& a, const Start& b, const Counts& wanted) {
  std::optional<int> least;
  for (const auto& [idle_a, operations_a] : a.least) {
    for (const auto& [idle_b, operations_b] : b.least) {
      const int operations = operations_a + operations_b;
      if (least && *least <= operations) continue;
      if (Covers(idle_a, idle_b, wanted)) least = operations;
    }
  }
  std::vector<SlicedGpu> gpus = {a.gpu, b.gpu};
  const auto plan = PlanRepartition(graph.tables, gpus, wanted, kCosts, "gpus");
  ASSERT_THAT(plan, IsOk());
  if (!least) {
    ASSERT_EQ(plan->outcome, RepartitionOutcome::kInfeasible);
    return;
  }
  ASSERT_EQ(plan->outcome, RepartitionOutcome::kPlanned);
  ASSERT_EQ(static_cast<int>(plan->operations.size()), *least);
  Carry(graph.tables, plan->operations, gpus);
  Counts idle(wanted.size(), 0);
  for (const SlicedGpu& gpu : gpus) {
    for (const Instance& instance : gpu.idle) ++idle[instance.profile];
  }
  ASSERT_TRUE(Covers(idle, Counts(wanted.size(), 0), wanted));
}

// From each layout with each set of busy instances to each other layout.
TEST(PlanLayout, AgreesWithBruteForceOnEveryPairOfA30) {
  const LayoutGraph graph("A30");
  for (size_t from = 0; from < graph.layouts.size(); ++from) {
    for (unsigned mask = 0; mask < 1u << graph.layouts[from].size(); ++mask) {
      const Start start = MakeStart(graph, static_cast<int>(from), mask, true, true);
      const std::vector<int> distances = graph.Distances(static_cast<int>(from), start.busy);
      for (size_t to = 0; to < graph.layouts.size(); ++to) {
        const auto plan = PlanLayout(graph.tables, start.gpu, graph.layouts[to], kCosts, "gpus");
        ASSERT_THAT(plan, IsOk());
        ASSERT_EQ(plan->outcome == RepartitionOutcome::kPlanned, distances[to] >= 0);
        if (distances[to] < 0) continue;
        ASSERT_EQ(static_cast<int>(plan->operations.size()), distances[to]);
        std::vector<SlicedGpu> gpus = {start.gpu};
        Carry(graph.tables, plan->operations, gpus);
        Layout result = AllOf(gpus[0]);
        std::sort(result.begin(), result.end(),
                  [](const Instance& a, const Instance& b) { return a.start < b.start; });
        ASSERT_EQ(result, graph.layouts[to]);
      }
    }
  }
}

// From each layout with each set of busy instances, alone and beside another GPU, to
// what each layout holds.
TEST(PlanRepartition, AgreesWithBruteForceOnEveryPairOfA30) {
  const LayoutGraph graph("A30");
  const Start none = MakeStart(graph, 0, 0, false, true);
  std::mt19937 engine(1);
  for (size_t from = 0; from < graph.layouts.size(); ++from) {
    for (unsigned mask = 0; mask < 1u << graph.layouts[from].size(); ++mask) {
      const Start start = MakeStart(graph, static_cast<int>(from), mask, true, engine() % 2 == 0);
      const size_t other = engine() % graph.layouts.size();
      const Start beside =
          MakeStart(graph, static_cast<int>(other), engine() % (1u << graph.layouts[other].size()),
                    engine() % 4 != 0, engine() % 2 == 0);
      for (size_t to = 0; to < graph.layouts.size(); ++to) {
        Counts wanted(graph.tables.model().profiles.size(), 0);
        for (const Instance& instance : graph.layouts[to]) ++wanted[instance.profile];
        ExpectFewest(graph, start, none, wanted);
        ExpectFewest(graph, start, beside, wanted);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(PlanRepartition, AgreesWithBruteForceOnRandomPairs) {
  const LayoutGraph graphs[] = {LayoutGraph("A100-40GB"), LayoutGraph("H100-80GB"),
                                LayoutGraph("RTX-PRO-6000")};
  std::mt19937 engine(2);
  for (int i = 0; i < RandomCases(1000, 10000) && !HasFailure(); ++i) {
    const LayoutGraph& graph = graphs[engine() % 8 == 0 ? 2 : engine() % 2];
    const auto draw = [&] {
      const size_t from = engine() % graph.layouts.size();
      return MakeStart(graph, static_cast<int>(from), engine() & engine(), engine() % 8 != 0,
                       engine() % 2 == 0);
    };
    const Start a = draw(), b = draw();
    Counts wanted(graph.tables.model().profiles.size(), 0);
    for (int l = 0; l < 2; ++l) {
      for (const Instance& instance : graph.layouts[engine() % graph.layouts.size()]) {
        if (engine() % 3 == 0) ++wanted[instance.profile];
      }
    }
    ExpectFewest(graph, a, b, wanted);
  }
}

}  // namespace
}  // namespace tessera
