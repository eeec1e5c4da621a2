// What dominant-resource fairness promises, on random siblings.
//
// Shares are whole units, so each promise holds to one unit of each resource: a
// queue may have one less than it says, its neighbour one more.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/random_cluster.h"
#include "tests/support/siblings_for_tests.h"

namespace tessera {
namespace {

using Tasks = long double;

constexpr DominantResourceDivision kAsInThePaper{.work_conserving = false};
constexpr DominantResourceDivision kWorkConserving;
constexpr Tasks kRounding = 1e-9L;  // of long doubles, not of shares

// How many tasks run in `bundle` with `extra` units more of each resource.
Tasks TasksIn(const ResourceVector& bundle, const ResourceVector& task, int64_t extra) {
  Tasks tasks = std::numeric_limits<Tasks>::max();
  for (int r = 0; r < kMaxResources; ++r) {
    if (task[r] == 0) continue;
    tasks = std::min(tasks, static_cast<Tasks>(bundle[r] + extra) / static_cast<Tasks>(task[r]));
  }
  return tasks;
}

// Siblings that run as many tasks of one kind as they can, up to a number.
class Agents : public Siblings {
 public:
  // Large: a unit is less than 10^-6 of a capacity and 10^-4 of a task. Small: a
  // task may be a few units, a few tasks all there is.
  enum class Size { kSmall, kLarge };

  Agents(RandomCluster& random, Size size, bool all_hungry)
      : Siblings({}, *ResourceSpace::Create(std::vector<std::string>{"example.com/nic"})) {
    std::vector<int> used = {kCpu, kMemory, kGpu, kFirstNamedResource};
    for (int drop = random.Below(3); drop > 0; --drop) {
      used.erase(used.begin() + random.Below(static_cast<int>(used.size())));
    }
    const bool large = size == Size::kLarge;
    for (int r : used) capacity[r] = large ? 100000000 + random.Below(900000000) : Few(random);
    const int count = 2 + random.Below(7);
    for (int i = 0; i < count; ++i) {
      ResourceVector task;
      int64_t all = 0;
      for (int r : used) {
        const int64_t most = capacity[r] / (large ? 100 : 4);
        task[r] = (large ? most / 100 : 0) + 1 + random.Below(static_cast<int>(most));
        all = std::max(all, capacity[r] / task[r] + 1);
      }
      const bool hungry = all_hungry || random.Chance(50);
      tasks.push_back(task);
      wanted.push_back(hungry ? all : 1 + random.Below(static_cast<int>(all)) / count);
      Add(MakeQueue(absl::StrCat("q", i)), task * wanted.back());
    }
  }

  // What is promised: at least so many tasks of queue `i`, for all it wants.
  void ExpectAtLeast(const ResourceVector& share, size_t i, Tasks promised) const {
    EXPECT_GE(TasksIn(share, tasks[i], 1) + kRounding,
              std::min(promised, static_cast<Tasks>(wanted[i])))
        << "queue " << i;
  }

  bool satisfied(const ResourceVector& share, size_t i) const { return share == demands[i]; }

  std::vector<ResourceVector> tasks;  // one, by queue
  std::vector<int64_t> wanted;        // how many

 private:
  static int64_t Few(RandomCluster& random) { return 8 + random.Below(100000); }
};

// Calls `check` on random siblings; every other time some may be satisfied.
template <typename Check>
void OnRandomAgents(Agents::Size size, const Check& check) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    Agents agents(random, size, seed % 2 == 0);
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    check(agents, random);
    if (testing::Test::HasFailure()) return;
  }
}

// --- What a division promises ------------------------------------------------------

// Everybody runs as many tasks as in a part of everything that is its part of the
// weights.
void ExpectSharingIncentive(const Agents& agents, const std::vector<ResourceVector>& shares) {
  int64_t weights = 0;
  for (const Queue& queue : agents.queues) weights += queue.weight.all.value_or(kWeightOne);
  for (size_t i = 0; i < shares.size(); ++i) {
    const int64_t weight = agents.queues[i].weight.all.value_or(kWeightOne);
    const Tasks all = TasksIn(agents.capacity, agents.tasks[i], 0);
    agents.ExpectAtLeast(shares[i], i,
                         all * static_cast<Tasks>(weight) / static_cast<Tasks>(weights));
  }
}

// Nobody would run more tasks in what another has.
void ExpectNoEnvy(const Agents& agents, const std::vector<ResourceVector>& shares) {
  for (size_t i = 0; i < shares.size(); ++i) {
    for (const ResourceVector& other : shares) {
      agents.ExpectAtLeast(shares[i], i, TasksIn(other, agents.tasks[i], -1));
    }
  }
}

// Nobody can have more unless another has less: each unsatisfied queue needs
// something that is exhausted.
void ExpectNothingLeft(const Agents& agents, const std::vector<ResourceVector>& shares) {
  ResourceVector sum;
  for (const ResourceVector& share : shares) sum += share;
  EXPECT_TRUE(FitsWithin(sum, agents.capacity));
  for (size_t i = 0; i < shares.size(); ++i) {
    bool bound = agents.satisfied(shares[i], i);
    for (int r = 0; r < kMaxResources; ++r) {
      bound |= agents.tasks[i][r] > 0 && sum[r] == agents.capacity[r];
    }
    EXPECT_TRUE(bound) << "queue " << i;
  }
}

// Nobody has what it cannot use.
void ExpectNothingUseless(const Agents& agents, const std::vector<ResourceVector>& shares) {
  for (size_t i = 0; i < shares.size(); ++i) {
    const Tasks tasks = TasksIn(shares[i], agents.tasks[i], 1) + kRounding;
    for (int r = 0; r < kMaxResources; ++r) {
      EXPECT_LE(static_cast<Tasks>(shares[i][r] - 1),
                tasks * static_cast<Tasks>(agents.tasks[i][r]))
          << "queue " << i << " resource " << r;
    }
  }
}

// Queue `liar` claims to want something else.
Agents Lying(const Agents& agents, RandomCluster& random, size_t liar) {
  Agents lying = agents;
  const int scale = 1 + random.Below(300);
  const bool only_scaled = random.Chance(30);
  for (int r = 0; r < kMaxResources; ++r) {
    int64_t& claim = lying.demands[liar][r];
    if (only_scaled || random.Chance(70)) claim = claim * (only_scaled ? scale : random.Below(300));
    claim = claim / 100;
  }
  return lying;
}

// --- As in the paper ---------------------------------------------------------------

TEST(DrfProperties, SharingIncentive) {
  OnRandomAgents(Agents::Size::kLarge, [](const Agents& agents, RandomCluster&) {
    ExpectSharingIncentive(agents, agents.Shares(kAsInThePaper));
  });
}

TEST(DrfProperties, SharingIncentiveByWeight) {
  OnRandomAgents(Agents::Size::kLarge, [](Agents& agents, RandomCluster& random) {
    for (Queue& queue : agents.queues) queue.weight.all = 1 + random.Below(5 * kWeightOne);
    ExpectSharingIncentive(agents, agents.Shares(kAsInThePaper));
    ExpectSharingIncentive(agents, agents.Shares(kWorkConserving));
  });
}

TEST(DrfProperties, NoEnvy) {
  OnRandomAgents(Agents::Size::kLarge, [](const Agents& agents, RandomCluster&) {
    ExpectNoEnvy(agents, agents.Shares(kAsInThePaper));
  });
}

TEST(DrfProperties, ParetoEfficiency) {
  OnRandomAgents(Agents::Size::kLarge, [](const Agents& agents, RandomCluster&) {
    const std::vector<ResourceVector> shares = agents.Shares(kAsInThePaper);
    ExpectNothingLeft(agents, shares);
    ExpectNothingUseless(agents, shares);
  });
}

TEST(DrfProperties, StrategyProofness) {
  OnRandomAgents(Agents::Size::kLarge, [](const Agents& agents, RandomCluster& random) {
    const std::vector<ResourceVector> honest = agents.Shares(kAsInThePaper);
    for (size_t liar = 0; liar < honest.size(); ++liar) {
      const Agents lying = Lying(agents, random, liar);
      const ResourceVector won = lying.Shares(kAsInThePaper)[liar];
      agents.ExpectAtLeast(honest[liar], liar, TasksIn(won, agents.tasks[liar], -1));
    }
  });
}

TEST(DrfProperties, PopulationMonotonicity) {
  // Who leaves hurts nobody, as all need every resource. (Else one that goes on
  // longer without him could take what a third needs.)
  OnRandomAgents(Agents::Size::kLarge, [](const Agents& agents, RandomCluster& random) {
    const std::vector<ResourceVector> before = agents.Shares(kAsInThePaper);
    const size_t leaver = static_cast<size_t>(random.Below(static_cast<int>(before.size())));
    Agents left = agents;
    // One that wants nothing is not there.
    left.demands[leaver] = {};
    const std::vector<ResourceVector> after = left.Shares(kAsInThePaper);
    for (size_t i = 0; i < after.size(); ++i) {
      if (i != leaver) agents.ExpectAtLeast(after[i], i, TasksIn(before[i], agents.tasks[i], -1));
    }
    left.queues.erase(left.queues.begin() + static_cast<std::ptrdiff_t>(leaver));
    left.demands.erase(left.demands.begin() + static_cast<std::ptrdiff_t>(leaver));
    std::vector<ResourceVector> others = after;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(leaver));
    EXPECT_EQ(left.Shares(kAsInThePaper), others);
  });
}

TEST(DrfProperties, Scaling) {
  // c times everything: the exact shares are c times as large, ours off by one unit.
  OnRandomAgents(Agents::Size::kLarge, [](const Agents& agents, RandomCluster& random) {
    const int64_t c = 2 + random.Below(9);
    Agents scaled = agents;
    scaled.capacity = scaled.capacity * c;
    for (ResourceVector& demand : scaled.demands) demand = demand * c;
    for (const DominantResourceDivision& rule : {kAsInThePaper, kWorkConserving}) {
      const std::vector<ResourceVector> shares = agents.Shares(rule);
      const std::vector<ResourceVector> larger = scaled.Shares(rule);
      for (size_t i = 0; i < shares.size(); ++i) {
        for (int r = 0; r < kMaxResources; ++r) {
          EXPECT_LE(std::abs(larger[i][r] - c * shares[i][r]), c + 1)
              << "queue " << i << " resource " << r;
        }
      }
    }
  });
}

TEST(DrfProperties, WholeTasksWithinOne) {
  // Tasks of a few units on a few devices: the same promises, to one task.
  OnRandomAgents(Agents::Size::kSmall, [](const Agents& agents, RandomCluster& random) {
    const std::vector<ResourceVector> shares = agents.Shares(kAsInThePaper);
    const auto count = static_cast<Tasks>(shares.size());
    for (size_t i = 0; i < shares.size(); ++i) {
      const ResourceVector& task = agents.tasks[i];
      const auto whole = [&](Tasks tasks) {
        return std::floor(std::min(tasks, static_cast<Tasks>(agents.wanted[i])) + kRounding);
      };
      const Tasks got = whole(TasksIn(shares[i], task, 0)) + 1;
      EXPECT_GE(got, whole(TasksIn(agents.capacity, task, 0) / count)) << "queue " << i;
      for (const ResourceVector& other : shares) {
        EXPECT_GE(got, whole(TasksIn(other, task, 0))) << "queue " << i;
      }
      const ResourceVector won = Lying(agents, random, i).Shares(kAsInThePaper)[i];
      EXPECT_GE(got, whole(TasksIn(won, task, 0))) << "queue " << i;
    }
    ExpectNothingLeft(agents, shares);
  });
}

// --- Work-conserving ---------------------------------------------------------------

TEST(WorkConservingProperties, SharingIncentiveAndNothingLeft) {
  OnRandomAgents(Agents::Size::kLarge, [](const Agents& agents, RandomCluster&) {
    const std::vector<ResourceVector> shares = agents.Shares(kWorkConserving);
    ExpectSharingIncentive(agents, shares);
    ExpectNothingLeft(agents, shares);
  });
}

TEST(WorkConservingProperties, NobodyHasMoreOfWhatDominatesAnother) {
  // The weaker form of envy-freeness that is left: an unsatisfied queue has at least
  // as much as any other of the resource that dominates its demand.
  OnRandomAgents(Agents::Size::kLarge, [](const Agents& agents, RandomCluster&) {
    const std::vector<ResourceVector> shares = agents.Shares(kWorkConserving);
    for (size_t i = 0; i < shares.size(); ++i) {
      const int r = DominantShareOf(agents.space, agents.demands[i], agents.capacity).resource;
      if (shares[i][r] == agents.demands[i][r]) continue;
      for (const ResourceVector& other : shares) EXPECT_GE(shares[i][r] + 2, other[r]);
    }
  });
}

TEST(WorkConservingProperties, EnvyIsPossible) {
  // 60 CPU, 60 GB; tasks <1, 2>, <1, 1>, <10, 4>. At level 1 they hold 30, 60, 60 CPU
  // and 60, 60, 24 GB, so CPU runs out at level 60/150 and memory at 60/144:
  // <12, 25>, <24, 25>, <24, 10>. a runs 12 tasks and would run 12.5 in what b has.
  // The paper's rule stops all at 60/150: a <12, 24>, b <24, 24>.
  const ResourceVector task = CpuAndGiB(1, 2);
  Siblings siblings(CpuAndGiB(60, 60));
  siblings.Add(MakeQueue("a"), task * 100);
  siblings.Add(MakeQueue("b"), CpuAndGiB(1, 1) * 100);
  siblings.Add(MakeQueue("c"), CpuAndGiB(10, 4) * 100);
  std::vector<ResourceVector> shares = siblings.Shares(kWorkConserving);
  EXPECT_NEAR(static_cast<double>(TasksIn(shares[0], task, 0)), 12, 0.002);
  EXPECT_NEAR(static_cast<double>(TasksIn(shares[1], task, 0)), 12.5, 0.002);
  shares = siblings.Shares(kAsInThePaper);
  EXPECT_NEAR(static_cast<double>(TasksIn(shares[0], task, 0)), 12, 0.002);
  EXPECT_NEAR(static_cast<double>(TasksIn(shares[1], task, 0)), 12, 0.002);
}

TEST(WorkConservingProperties, LyingMayPay) {
  // 10 CPU, 100 GB; a's tasks need <0.5, 10>, b's <1, 1>. At level 1 a holds 5 CPU
  // and 100 GB, b 10 CPU and 10 GB: CPU runs out at level 10/15, memory at 100/110.
  // a gets 10/3 CPU: 20/3 tasks; its 91 GB would do for 9.1. If it claims <0.9, 10>,
  // CPU runs out at 10/19 and it gets 90/19 CPU, enough for 9.09 tasks.
  const ResourceVector task = CpuAndGiB(1, 20);  // two of them, for whole numbers
  Siblings siblings(CpuAndGiB(10, 100));
  siblings.Add(MakeQueue("a"), task * 100);
  siblings.Add(MakeQueue("b"), CpuAndGiB(1, 1) * 100);
  const auto pairs = [&](const DominantResourceDivision& rule) {
    return static_cast<double>(TasksIn(siblings.Shares(rule)[0], task, 0));
  };
  EXPECT_NEAR(pairs(kWorkConserving), 10.0 / 3, 0.002);
  EXPECT_NEAR(pairs(kAsInThePaper), 10.0 / 3, 0.002);
  siblings.demands[0] = CpuAndGiB(9, 100) * 20;
  EXPECT_NEAR(pairs(kWorkConserving), 100.0 / 22, 0.002);
  // The paper's rule stops a's memory with its CPU, at 10/19.
  EXPECT_NEAR(pairs(kAsInThePaper), 50.0 / 19, 0.002);
}

// --- Each resource alone -----------------------------------------------------------

TEST(PerResourceProperties, ResourceMonotonicity) {
  // More of one resource lowers no share of it (but for the last unit, which goes by
  // largest remainder), and changes no other.
  OnRandomAgents(Agents::Size::kSmall, [](Agents& agents, RandomCluster& random) {
    const int r = kCpu;
    for (Queue& queue : agents.queues) {
      queue.weight.all = random.Below(3 * kWeightOne);
      queue.priority = random.Below(2);
      queue.quota.all = random.Below(10000);
    }
    const std::vector<ResourceVector> before = agents.Shares(PerResourceDivision());
    agents.capacity[r] += 1 + random.Below(1 + static_cast<int>(agents.capacity[r]));
    std::vector<ResourceVector> after = agents.Shares(PerResourceDivision());
    for (size_t i = 0; i < after.size(); ++i) {
      EXPECT_GE(after[i][r] + 1, before[i][r]) << "queue " << i;
      after[i][r] = before[i][r];
    }
    EXPECT_EQ(after, before);
  });
}

// --- Any rule ----------------------------------------------------------------------

TEST(RenamingProperties, NamesDecideTheLastUnitOnly) {
  OnRandomAgents(Agents::Size::kSmall, [](const Agents& agents, RandomCluster& random) {
    Agents renamed = agents;
    for (size_t i = 0; i < renamed.queues.size(); ++i) {
      renamed.queues[i].name = absl::StrCat(random.Below(10), "_", i);
    }
    const auto check = [&](const auto& rule) {
      const std::vector<ResourceVector> before = agents.Shares(rule), after = renamed.Shares(rule);
      for (size_t i = 0; i < before.size(); ++i) {
        for (int r = 0; r < kMaxResources; ++r) {
          EXPECT_LE(std::abs(after[i][r] - before[i][r]), 1) << "queue " << i << " resource " << r;
        }
      }
    };
    check(kAsInThePaper);
    check(kWorkConserving);
    check(PerResourceDivision());
  });
}

}  // namespace
}  // namespace tessera
