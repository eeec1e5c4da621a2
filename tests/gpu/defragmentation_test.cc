#include "tessera/gpu/defragmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <random>
#include <set>
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

using Gpus = std::vector<SlicedGpu>;
using Cost = std::pair<int64_t, size_t>;  // of moves, and how many

MigTables TablesOf(std::string_view name) { return *MigTables::Create(*FindGpuModel(name)); }

// A GPU with these busy instances, all movable at cost 1.
SlicedGpu MakeGpu(const GpuModel& model, std::initializer_list<std::pair<const char*, int>> list) {
  SlicedGpu gpu;
  for (const auto& [name, start] : list) {
    gpu.busy.push_back({{*model.FindProfile(name), start}, true, 1});
  }
  return gpu;
}

std::optional<LayoutKey> KeyOfBusy(const MigTables& tables, const SlicedGpu& gpu) {
  std::vector<Instance> instances;
  for (const BusyInstance& busy : gpu.busy) instances.push_back(busy.instance);
  const absl::StatusOr<LayoutKey> key = tables.KeyOf(instances, "");
  if (!key.ok()) return std::nullopt;
  return *key;
}

// Whether an instance may appear at `start` of `gpu`: creation, or a free idle one.
bool IsOpen(const MigTables& tables, const SlicedGpu& gpu, int profile, int start) {
  const std::optional<LayoutKey> key = KeyOfBusy(tables, gpu);
  if (!key || !tables.CanPlace(*key, profile, start)) return false;
  return gpu.may_change || std::count(gpu.idle.begin(), gpu.idle.end(), Instance{profile, start});
}

// Carries out `plan` and checks every step; returns its cost.
Cost Replay(const MigTables& tables, Gpus gpus, std::span<const int> wanted,
            const DefragmentationPlan& plan) {
  Cost cost = {0, plan.moves.size()};
  for (const InstanceMove& move : plan.moves) {
    auto& source = gpus[move.from_gpu].busy;
    EXPECT_TRUE(IsOpen(tables, gpus[move.to_gpu], move.from.profile, move.to_start));
    auto it = std::find_if(source.begin(), source.end(), [&move](const BusyInstance& busy) {
      return busy.instance == move.from && busy.movable;
    });
    EXPECT_NE(it, source.end());
    if (it == source.end()) continue;
    cost.first += it->cost;
    source.erase(it);
    if (!gpus[move.from_gpu].may_change) gpus[move.from_gpu].idle.push_back(move.from);
    // Not movable: nothing moves twice.
    gpus[move.to_gpu].busy.push_back({{move.from.profile, move.to_start}, false, 0});
  }
  EXPECT_EQ(plan.places.size(), wanted.size());
  for (size_t i = 0; i < plan.places.size(); ++i) {
    const auto& [gpu, instance] = plan.places[i];
    EXPECT_EQ(instance.profile, wanted[i]);
    EXPECT_TRUE(IsOpen(tables, gpus[gpu], instance.profile, instance.start));
    gpus[gpu].busy.push_back({instance, false, 0});
  }
  EXPECT_EQ(plan.cost, cost.first);
  return cost;
}

TEST(PlanDefragmentation, ByHandOnOneA100) {
  const MigTables tables = TablesOf("A100-40GB");
  const GpuModel& model = tables.model();
  const int p1g = *model.FindProfile("1g.5gb"), p4g = *model.FindProfile("4g.20gb");
  const int p3g = *model.FindProfile("3g.20gb"), p7g = *model.FindProfile("7g.40gb");
  const Gpus gpus = {MakeGpu(model, {{"1g.5gb", 0}, {"1g.5gb", 1}, {"1g.5gb", 5}})};
  auto plan = PlanDefragmentation(tables, gpus, std::vector{p4g}, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->outcome, DefragmentationOutcome::kPlanned);
  EXPECT_THAT(plan->moves,
              ElementsAre(InstanceMove{0, {p1g, 0}, 0, 4}, InstanceMove{0, {p1g, 1}, 0, 6}));
  EXPECT_THAT(plan->places, ElementsAre(InstancePlace{0, {p4g, 0}}));
  EXPECT_EQ(plan->cost, 2);
  // A 3g needs but the one at 5 to leave.
  plan = PlanDefragmentation(tables, gpus, std::vector{p3g}, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->moves, ElementsAre(InstanceMove{0, {p1g, 5}, 0, 2}));
  EXPECT_THAT(plan->places, ElementsAre(InstancePlace{0, {p3g, 4}}));
  // A 1g needs nothing, a 7g cannot be had.
  plan = PlanDefragmentation(tables, gpus, std::vector{p1g}, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->moves, IsEmpty());
  EXPECT_THAT(plan->places, ElementsAre(InstancePlace{0, {p1g, 2}}));
  plan = PlanDefragmentation(tables, gpus, std::vector{p7g}, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->outcome, DefragmentationOutcome::kInfeasible);
}

TEST(PlanDefragmentation, EmptiesOneOfTwoHalfUsedGpus) {
  const MigTables tables = TablesOf("H100-80GB");
  const GpuModel& model = tables.model();
  const int p7g = *model.FindProfile("7g.80gb");
  Gpus gpus = {MakeGpu(model, {{"2g.20gb", 0}, {"1g.10gb", 2}}),
               MakeGpu(model, {{"2g.20gb", 4}, {"1g.10gb", 6}})};
  auto plan = PlanDefragmentation(tables, gpus, std::vector{p7g}, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->places, ElementsAre(InstancePlace{0, {p7g, 0}}));
  EXPECT_EQ(Replay(tables, gpus, std::vector{p7g}, *plan), Cost(2, 2));
  // The dearer GPU stays, and so does one with an occupant that must.
  gpus[0].busy[0].cost = 5;
  plan = PlanDefragmentation(tables, gpus, std::vector{p7g}, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->places[0].gpu, 1);
  gpus[1].busy[1].movable = false;
  plan = PlanDefragmentation(tables, gpus, std::vector{p7g}, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->places[0].gpu, 0);
  EXPECT_EQ(plan->cost, 6);
  gpus[0].busy[1].movable = false;
  plan = PlanDefragmentation(tables, gpus, std::vector{p7g}, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->outcome, DefragmentationOutcome::kInfeasible);
}

// A chain: the 2g fits only where a 1g stands, which goes to the last free unit.
TEST(PlanDefragmentation, MakesRoomForWhatItMoves) {
  const MigTables tables = TablesOf("A30");
  const GpuModel& model = tables.model();
  const int p1g = *model.FindProfile("1g.6gb"), p2g = *model.FindProfile("2g.12gb");
  const int p4g = *model.FindProfile("4g.24gb");
  const Gpus gpus = {MakeGpu(model, {{"2g.12gb", 0}}),
                     MakeGpu(model, {{"2g.12gb", 0}, {"1g.6gb", 2}}),
                     MakeGpu(model, {{"2g.12gb", 0}, {"1g.6gb", 2}})};
  const auto plan = PlanDefragmentation(tables, gpus, std::vector{p4g}, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->moves,
              ElementsAre(InstanceMove{1, {p1g, 2}, 2, 3}, InstanceMove{0, {p2g, 0}, 1, 2}));
  EXPECT_THAT(plan->places, ElementsAre(InstancePlace{0, {p4g, 0}}));
}

// What may not change offers its idle instances, and keeps its occupants.
TEST(PlanDefragmentation, UsesIdleInstancesOfFixedGpus) {
  const MigTables tables = TablesOf("A30");
  const GpuModel& model = tables.model();
  const int p1g = *model.FindProfile("1g.6gb"), p2g = *model.FindProfile("2g.12gb");
  Gpus gpus = {MakeGpu(model, {{"2g.12gb", 0}, {"1g.6gb", 2}}), MakeGpu(model, {{"1g.6gb", 0}})};
  gpus[1].may_change = false;
  auto plan = PlanDefragmentation(tables, gpus, std::vector{p2g}, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->outcome, DefragmentationOutcome::kInfeasible);
  gpus[1].idle = {{p1g, 3}};
  plan = PlanDefragmentation(tables, gpus, std::vector{p2g}, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->moves, ElementsAre(InstanceMove{0, {p1g, 2}, 1, 3}));
  // An idle instance of a GPU that may change is as good as free room.
  gpus[0] = MakeGpu(model, {{"2g.12gb", 0}});
  gpus[0].idle = {{p1g, 2}, {p1g, 3}};
  plan = PlanDefragmentation(tables, gpus, std::vector{p2g}, "gpus");
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->moves, IsEmpty());
  EXPECT_THAT(plan->places, ElementsAre(InstancePlace{0, {p2g, 2}}));
}

TEST(PlanDefragmentation, SaysWhenItGivesUp) {
  const MigTables tables = TablesOf("A100-40GB");
  const Gpus gpus(1, MakeGpu(tables.model(), {{"1g.5gb", 0}, {"1g.5gb", 4}}));
  const int p4g = *tables.model().FindProfile("4g.20gb");
  auto plan = PlanDefragmentation(tables, gpus, std::vector{p4g}, "gpus", 1);
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->outcome, DefragmentationOutcome::kBudgetExhausted);
  EXPECT_THAT(plan->moves, IsEmpty());
}

TEST(PlanDefragmentation, RejectsWhatCannotBe) {
  const MigTables tables = TablesOf("A30");
  const auto error_of = [&tables](const SlicedGpu& gpu, int wanted) {
    const auto plan = PlanDefragmentation(tables, Gpus{SlicedGpu(), gpu}, std::vector{0, wanted},
                                          "nodes[2].gpus");
    return std::string(plan.status().message());
  };
  EXPECT_EQ(error_of({.busy = {{{0, 4}}}, .idle = {}}, 0),
            "nodes[2].gpus[1].busy[0]: 1g.6gb cannot start at slice 4");
  EXPECT_EQ(error_of({.busy = {{{9, 0}}}, .idle = {}}, 0),
            "nodes[2].gpus[1].busy[0]: no profile 9 on A30-24GB");
  EXPECT_EQ(error_of({.busy = {{{0, 0}, true, -1}}, .idle = {}}, 0),
            "nodes[2].gpus[1].busy[0].cost: -1 is not in 0..1099511627776");
  EXPECT_EQ(error_of({.busy = {{{0, 0}}}, .idle = {{0, 1}, {2, 0}}}, 0),
            "nodes[2].gpus[1].idle[1]: 2g.12gb at slice 0 overlaps 1g.6gb at slice 1");
  EXPECT_EQ(error_of({.busy = {{{0, 0}}}, .idle = {{0, 1}, {0, 0}}}, 0),
            "nodes[2].gpus[1].idle[1]: 1g.6gb at slice 0 does not fit beside the busy instances");
  EXPECT_EQ(error_of({.busy = {{{0, 0}}}, .idle = {}, .mig_enabled = false}, 0),
            "nodes[2].gpus[1].mig_enabled: false though there are instances");
  EXPECT_EQ(error_of({}, 5), "wanted[1]: no profile 5 on A30-24GB");
}

// --- Against brute force. -----------------------------------------------------

// All that moves can lead to, cheapest first: where each busy instance stands, and
// whether it has moved.
class AllMoves {
 public:
  AllMoves(const MigTables& tables, const Gpus& gpus) : tables_(tables), gpus_(gpus) {
    State start;
    for (size_t g = 0; g < gpus.size(); ++g) {
      for (const BusyInstance& busy : gpus[g].busy) {
        busy_.push_back(busy);
        start.push_back({static_cast<int>(g), busy.instance.start, false});
      }
    }
    queue_.insert({Cost(0, 0), start});
  }

  // The least cost, if below `limit`, after which all of `wanted` fits. Sets `gave_up`
  // when there are too many states.
  std::optional<Cost> Least(std::span<const int> wanted, std::optional<Cost> limit,
                            size_t max_states, bool& gave_up) {
    for (auto it = queue_.begin(); it != queue_.end(); it = queue_.erase(it)) {
      const auto [cost, state] = *it;
      if (limit && cost >= *limit) return std::nullopt;
      if (!seen_.insert(state).second) continue;
      if (seen_.size() > max_states) {
        gave_up = true;
        return std::nullopt;
      }
      const Gpus now = GpusAt(state);
      if (Fit(now, wanted)) return cost;
      Extend(cost, state, now);
    }
    return std::nullopt;
  }

 private:
  struct Spot {
    int gpu, start;
    bool moved;
    auto operator<=>(const Spot&) const = default;
  };
  using State = std::vector<Spot>;

  Gpus GpusAt(const State& state) const {
    Gpus gpus = gpus_;
    for (SlicedGpu& gpu : gpus) gpu.busy.clear();
    for (size_t i = 0; i < state.size(); ++i) {
      const int profile = busy_[i].instance.profile;
      gpus[state[i].gpu].busy.push_back({{profile, state[i].start}, false, 0});
    }
    size_t i = 0;
    for (size_t g = 0; g < gpus.size(); ++g) {
      for (const BusyInstance& busy : gpus_[g].busy) {
        if (state[i++].moved && !gpus[g].may_change) gpus[g].idle.push_back(busy.instance);
      }
    }
    return gpus;
  }

  bool Fit(const Gpus& gpus, std::span<const int> wanted) const {
    if (wanted.empty()) return true;
    for (size_t g = 0; g < gpus.size(); ++g) {
      for (int start = 0; start < tables_.model().units; ++start) {
        if (!IsOpen(tables_, gpus[g], wanted[0], start)) continue;
        if (wanted.size() == 1) return true;
        Gpus next = gpus;
        next[g].busy.push_back({{wanted[0], start}, false, 0});
        if (Fit(next, wanted.subspan(1))) return true;
      }
    }
    return false;
  }

  void Extend(const Cost& cost, const State& state, const Gpus& now) {
    for (size_t i = 0; i < state.size(); ++i) {
      if (!busy_[i].movable || state[i].moved) continue;
      for (size_t g = 0; g < now.size(); ++g) {
        for (int start = 0; start < tables_.model().units; ++start) {
          if (!IsOpen(tables_, now[g], busy_[i].instance.profile, start)) continue;
          State next = state;
          next[i] = {static_cast<int>(g), start, true};
          queue_.insert({Cost(cost.first + busy_[i].cost, cost.second + 1), next});
        }
      }
    }
  }

  const MigTables& tables_;
  const Gpus& gpus_;
  std::vector<BusyInstance> busy_;
  std::set<std::pair<Cost, State>> queue_;
  std::set<State> seen_;
};

// Compares the plan with brute force; false when that gives up.
bool Agrees(const MigTables& tables, const Gpus& gpus, std::vector<int> wanted, size_t max_states) {
  const auto plan = PlanDefragmentation(tables, gpus, wanted, "gpus");
  EXPECT_THAT(plan, IsOk());
  EXPECT_NE(plan->outcome, DefragmentationOutcome::kBudgetExhausted);
  std::optional<Cost> limit;
  if (plan->outcome == DefragmentationOutcome::kPlanned) {
    limit = Replay(tables, gpus, wanted, *plan);
  }
  bool gave_up = false;
  const std::optional<Cost> better =
      AllMoves(tables, gpus).Least(wanted, limit, max_states, gave_up);
  EXPECT_EQ(better, std::nullopt);
  return !gave_up;
}

// Some of the instances become idle, some immovable; costs of 0 to 3.
SlicedGpu DrawGpu(std::mt19937& engine, const std::vector<Instance>& layout) {
  SlicedGpu gpu;
  gpu.may_change = engine() % 8 != 0;
  for (const Instance& instance : layout) {
    if (engine() % 6 == 0) {
      gpu.idle.push_back(instance);
    } else {
      gpu.busy.push_back({instance, engine() % 6 != 0, static_cast<int64_t>(engine() % 4)});
    }
  }
  if (layout.empty()) gpu.mig_enabled = engine() % 2 == 0;
  return gpu;
}

TEST(PlanDefragmentation, AgreesWithBruteForceOnEveryPairOfA30) {
  const MigTables tables = TablesOf("A30");
  const auto layouts =
      EnumerateLayouts(tables, RandomCases(0, 1) == 1 ? ~0u : PlainProfiles(tables.model()));
  std::mt19937 engine(1);
  for (const std::vector<Instance>& a : layouts) {
    for (const std::vector<Instance>& b : layouts) {
      for (int profile = 0; profile < 5; ++profile) {
        SlicedGpu all_a, all_b;
        for (const Instance& instance : a) all_a.busy.push_back({instance, true, 1});
        for (const Instance& instance : b) all_b.busy.push_back({instance, true, 1});
        ASSERT_TRUE(Agrees(tables, {all_a, all_b}, {profile}, 100000));
        std::vector<int> wanted = {profile};
        if (engine() % 3 == 0) wanted.push_back(static_cast<int>(engine() % 5));
        ASSERT_TRUE(Agrees(tables, {DrawGpu(engine, a), DrawGpu(engine, b)}, wanted, 100000));
      }
    }
    if (HasFailure()) return;
  }
}

TEST(PlanDefragmentation, AgreesWithBruteForceOnRandomPairs) {
  const std::vector<MigTables> models = {TablesOf("A100-40GB"), TablesOf("H100-80GB"),
                                         TablesOf("RTX-PRO-6000")};
  std::vector<std::vector<std::vector<Instance>>> layouts;
  for (const MigTables& tables : models) layouts.push_back(EnumerateLayouts(tables, ~0u));
  std::mt19937 engine(2);
  int decided = 0;
  const int cases = RandomCases(1000, 10000);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    const size_t m = engine() % 8 == 0 ? 2 : engine() % 2;
    Gpus gpus;
    for (int g = 0; g < 2; ++g) {
      gpus.push_back(DrawGpu(engine, layouts[m][engine() % layouts[m].size()]));
    }
    const auto profiles = static_cast<unsigned>(models[m].model().profiles.size());
    if (Agrees(models[m], gpus, {static_cast<int>(engine() % profiles)}, 3000)) ++decided;
  }
  RecordProperty("decided", decided);
  EXPECT_GE(decided, cases * 9 / 10);
}

// Several GPUs of two kinds, so that some are alike.
TEST(PlanDefragmentation, AgreesWithBruteForceAmongLikeGpus) {
  const MigTables tables = TablesOf("A30");
  const std::vector<std::vector<Instance>> layouts = EnumerateLayouts(tables, ~0u);
  std::mt19937 engine(3);
  int decided = 0;
  const int cases = RandomCases(300, 3000);
  for (int i = 0; i < cases && !HasFailure(); ++i) {
    const SlicedGpu kinds[] = {DrawGpu(engine, layouts[engine() % layouts.size()]),
                               DrawGpu(engine, layouts[engine() % layouts.size()])};
    Gpus gpus;
    for (size_t g = 3 + engine() % 2; g > 0; --g) gpus.push_back(kinds[engine() % 2]);
    std::vector<int> wanted(1 + engine() % 2);
    for (int& profile : wanted) profile = static_cast<int>(engine() % 5);
    if (Agrees(tables, gpus, wanted, 3000)) ++decided;
  }
  EXPECT_GE(decided, cases * 8 / 10);
}

}  // namespace
}  // namespace tessera
