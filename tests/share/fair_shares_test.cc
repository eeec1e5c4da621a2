#include "tessera/share/fair_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/schedule/schedule.h"
#include "tessera/verify/check_shares.h"
#include "tests/support/random_cluster.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Queues that want this much, in a cluster of this size; amounts in base units.
class Division {
 public:
  Division(ResourceVector capacity) : capacity_(capacity) {}

  Queue& Add(Queue queue, ResourceVector demand) {
    demands_.emplace_back(queue.name, demand);
    return queues_.emplace_back(std::move(queue));
  }

  template <DivisionRule Rule>
  FairShares By(const Rule& rule) {
    tree_ = *QueueTree::Create(queues_, space_);
    std::vector<QueueUsage> usage(queues_.size());
    for (const auto& [name, demand] : demands_) {
      usage[static_cast<size_t>(tree_.Find(name)->value())].demand = demand;
    }
    for (const auto& [name, demand] : demands_) {
      // Inner queues get the sum of theirs.
      if (!tree_.is_leaf(*tree_.Find(name))) {
        usage[static_cast<size_t>(tree_.Find(name)->value())] = {};
      }
    }
    SumUpwards(tree_, usage);
    shares_ = DivideFairShares(tree_, space_, capacity_, usage, rule);
    return shares_;
  }

  // Shares of `r` in the order of names, over `unit`.
  template <DivisionRule Rule>
  std::vector<int64_t> Of(int r, int64_t unit, const Rule& rule) {
    By(rule);
    std::vector<int64_t> result;
    for (const QueueShare& share : shares_.queues) result.push_back(share.fair_share[r] / unit);
    return result;
  }

  std::vector<std::string> Check() const { return CheckShares(tree_, space_, shares_); }

 private:
  ResourceSpace space_;
  ResourceVector capacity_;
  std::vector<Queue> queues_;
  std::vector<std::pair<std::string, ResourceVector>> demands_;
  QueueTree tree_;
  FairShares shares_;
};

ResourceVector CpuAndMemory(int64_t cores, int64_t gib) {
  ResourceVector v;
  v[kCpu] = cores * kMillisPerCore;
  v[kMemory] = gib * kBytesPerGiB;
  return v;
}

ResourceVector OnlyGpus(int64_t devices) {
  ResourceVector v;
  v[kGpu] = Gpus(devices);
  return v;
}

Queue Weighted(std::string name, int64_t weight, int priority = 0) {
  Queue queue = MakeQueue(std::move(name));
  queue.weight.all = weight * kWeightOne;
  queue.priority = priority;
  return queue;
}

Queue WithQuota(std::string name, int64_t gpus, int64_t weight = 1) {
  Queue queue = Weighted(std::move(name), weight);
  queue.quota.by_name["gpu"] = Gpus(gpus);
  return queue;
}

TEST(DominantResourceDivisionTest, ExampleOfTheDrfPaper) {
  // 9 CPU, 18 GB. A's tasks need <1 CPU, 4 GB>: memory dominates, 4/18 = 2/9 a
  // task. B's need <3 CPU, 1 GB>: CPU dominates, 3/9 = 1/3 a task. Equal dominant
  // shares: 2/9 a = 1/3 b, CPU a + 3b = 9 -> a = 3, b = 2: both hold 2/3.
  Division division(CpuAndMemory(9, 18));
  division.Add(MakeQueue("a"), CpuAndMemory(1, 4) * 100);
  division.Add(MakeQueue("b"), CpuAndMemory(3, 1) * 100);
  const FairShares shares = division.By(DominantResourceDivision());
  EXPECT_EQ(shares.queues[0].fair_share[kCpu], 3 * kMillisPerCore);
  EXPECT_EQ(shares.queues[1].fair_share[kCpu], 6 * kMillisPerCore);
  // CPU is exhausted; memory is not (12 + 2 of 18), and both go on with it.
  EXPECT_GE(shares.queues[0].fair_share[kMemory], 12 * kBytesPerGiB);
  EXPECT_GE(shares.queues[1].fair_share[kMemory], 2 * kBytesPerGiB);
  EXPECT_EQ(shares.queues[0].fair_share[kMemory] + shares.queues[1].fair_share[kMemory],
            18 * kBytesPerGiB);
  EXPECT_THAT(division.Check(), IsEmpty());
}

TEST(DominantResourceDivisionTest, WeightsScaleDominantShares) {
  // One resource: 12 GPUs 3:1 -> 9 and 3.
  Division division(OnlyGpus(12));
  division.Add(Weighted("a", 3), OnlyGpus(100));
  division.Add(Weighted("b", 1), OnlyGpus(100));
  EXPECT_THAT(division.Of(kGpu, Gpus(1), DominantResourceDivision()), ElementsAre(9, 3));
}

TEST(PerResourceDivisionTest, MaxMinGivesWhatASmallDemandLeaves) {
  // 10 GPUs: c wants 1 and gets it; 9 are left, 4.5 each.
  Division division(OnlyGpus(10));
  division.Add(MakeQueue("a"), OnlyGpus(9));
  division.Add(MakeQueue("b"), OnlyGpus(9));
  division.Add(MakeQueue("c"), OnlyGpus(1));
  EXPECT_THAT(division.Of(kGpu, Gpus(1) / 2, PerResourceDivision()), ElementsAre(9, 9, 2));
}

TEST(PerResourceDivisionTest, QuotaComesFirstThenSurplusByWeight) {
  // 10 GPUs: 4 to a's quota, the other 6 are shared 1:2 -> 4 + 2 and 4.
  Division division(OnlyGpus(10));
  division.Add(WithQuota("a", 4), OnlyGpus(100));
  division.Add(WithQuota("b", 0, 2), OnlyGpus(100));
  EXPECT_THAT(division.Of(kGpu, Gpus(1), PerResourceDivision()), ElementsAre(6, 4));
}

TEST(PerResourceDivisionTest, OversubscribedQuotasAreMetInProportion) {
  // Quotas 6 and 2 on 4 GPUs: half of each.
  Division division(OnlyGpus(4));
  division.Add(WithQuota("a", 6), OnlyGpus(100));
  division.Add(WithQuota("b", 2), OnlyGpus(100));
  EXPECT_THAT(division.Of(kGpu, Gpus(1), PerResourceDivision()), ElementsAre(3, 1));
}

TEST(PerResourceDivisionTest, LimitsCapAndPrioritiesOrderTheSurplus) {
  // 8 GPUs: priority 2 first, up to its limit of 5; the rest below.
  Division division(OnlyGpus(8));
  Queue limited = Weighted("a", 1, 2);
  limited.limit.by_name["gpu"] = Gpus(5);
  division.Add(std::move(limited), OnlyGpus(100));
  division.Add(Weighted("b", 1, 1), OnlyGpus(100));
  division.Add(Weighted("c", 1, 0), OnlyGpus(100));
  EXPECT_THAT(division.Of(kGpu, Gpus(1), PerResourceDivision()), ElementsAre(5, 3, 0));
}

TEST(PerResourceDivisionTest, WeightZeroGetsWhatNobodyElseWants) {
  Division division(OnlyGpus(8));
  division.Add(Weighted("a", 0, 5), OnlyGpus(100));
  division.Add(Weighted("b", 1), OnlyGpus(6));
  EXPECT_THAT(division.Of(kGpu, Gpus(1), PerResourceDivision()), ElementsAre(2, 6));
}

TEST(PerResourceDivisionTest, ChildrenShareWhatTheirParentGot) {
  // 12 GPUs: a and b get 6 each; a's children 2:1 -> 4 and 2.
  Division division(OnlyGpus(12));
  division.Add(MakeQueue("a"), {});
  division.Add(MakeQueue("b"), OnlyGpus(100));
  Queue first = Weighted("a1", 2);
  first.parent = "a";
  division.Add(std::move(first), OnlyGpus(100));
  division.Add(MakeQueue("a2", "a"), OnlyGpus(100));
  EXPECT_THAT(division.Of(kGpu, Gpus(1), PerResourceDivision()), ElementsAre(6, 4, 2, 6));
}

TEST(PerResourceDivisionTest, UnitsThatDoNotDivideGoByLargestRemainderThenId) {
  // 7000 units among three: 2333 each, the last one to the first.
  Division division(OnlyGpus(1));
  for (const char* name : {"a", "b", "c"}) division.Add(MakeQueue(name), OnlyGpus(1));
  EXPECT_THAT(division.Of(kGpu, 1, PerResourceDivision()), ElementsAre(2334, 2333, 2333));
}

// --- KAI-Scheduler's arithmetic, and ours in the same case -------------------

TEST(KaiDivisionTest, ARemainderLeaksToALowerPriority) {
  // 3 GPUs, two hungry queues of priority 2: floor(1.5) each, and the remainder
  // drops to priority 1. Ours keeps it: 1.5, 1.5, 0.
  Division division(OnlyGpus(3));
  division.Add(Weighted("a", 1, 2), OnlyGpus(9));
  division.Add(Weighted("b", 1, 2), OnlyGpus(9));
  division.Add(Weighted("c", 1, 1), OnlyGpus(9));
  EXPECT_THAT(division.Of(kGpu, Gpus(1), KaiDivision()), ElementsAre(1, 1, 1));
  EXPECT_THAT(division.Of(kGpu, Gpus(1) / 2, PerResourceDivision()), ElementsAre(3, 3, 0));
}

TEST(KaiDivisionTest, TheLeftoverPassIgnoresTheRequest) {
  // One GPU, two queues of 0.6: floor(0.5) = 0 each, then the older gets a whole
  // one. Ours gives each a half.
  Division division(OnlyGpus(1));
  ResourceVector part;
  part[kGpu] = kGpuUnitsPerDevice * 6 / 10;
  division.Add(MakeQueue("a"), part).created = 1;
  division.Add(MakeQueue("b"), part).created = 0;
  EXPECT_THAT(division.Of(kGpu, Gpus(1), KaiDivision()), ElementsAre(0, 1));
  EXPECT_THAT(division.Of(kGpu, 1, PerResourceDivision()), ElementsAre(3500, 3500));
}

TEST(KaiDivisionTest, SixteenEqualQueuesOnEightGpus) {
  Division division(OnlyGpus(8));
  for (int i = 0; i < 16; ++i) {
    division.Add(MakeQueue(absl::StrCat("q", 10 + i)), OnlyGpus(4)).created = 16 - i;
  }
  EXPECT_THAT(division.Of(kGpu, Gpus(1), KaiDivision()),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(division.Of(kGpu, 1, PerResourceDivision()), testing::Each(3500));
}

TEST(KaiDivisionTest, UnlimitedQuotasMayExceedTheTotal) {
  Division division(OnlyGpus(8));
  for (const char* name : {"a", "b"}) {
    Queue queue = MakeQueue(name);
    queue.quota.all = kUnlimited;
    division.Add(std::move(queue), OnlyGpus(8));
  }
  EXPECT_THAT(division.Of(kGpu, Gpus(1), KaiDivision()), ElementsAre(8, 8));
  EXPECT_THAT(division.Of(kGpu, Gpus(1), DominantResourceDivision()), ElementsAre(4, 4));
}

TEST(KaiDivisionTest, PendingWorkThatCannotRunInflatesShares) {
  // 8 GPUs on one node. a wants 8 by single pods; b has 8 pending as one pod of 16
  // GPUs that no node can ever hold. KAI counts it, and b's share lies idle.
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n", 8)};
  spec.queues = {MakeQueue("a"), MakeQueue("b")};
  spec.workloads = {MakeWorkload("many", "a", {MakePodSet("s", 8, WholeGpus(1))}),
                    MakeWorkload("wide", "b", {MakePodSet("s", 1, WholeGpus(16))})};
  const Snapshot snapshot = CreateOrDie(spec);
  const FairShares ours = DivideFairShares(snapshot);
  EXPECT_EQ(ours.queues[0].fair_share[kGpu], Gpus(8));
  EXPECT_EQ(ours.queues[1].demand[kGpu], 0);
  const CycleRules rules = KaiCompatible().rules;
  const FairShares kai = DivideFairShares(snapshot, rules.usage, KaiDivision(), rules.division);
  EXPECT_EQ(kai.queues[0].fair_share[kGpu], Gpus(4));
  EXPECT_EQ(kai.queues[1].fair_share[kGpu], Gpus(4));
}

// --- Any tree ------------------------------------------------------------------

// A random tree and what its leaves want.
SnapshotSpec RandomTree(RandomCluster& random, std::vector<ResourceVector>& demands) {
  SnapshotSpec spec;
  const int queues = 1 + random.Below(12);
  for (int i = 0; i < queues; ++i) {
    Queue queue = MakeQueue(absl::StrCat("q", 10 + i));
    if (i > 0 && random.Chance(60)) queue.parent = absl::StrCat("q", 10 + random.Below(i));
    if (random.Chance(50)) queue.quota.by_name["gpu"] = Gpus(random.Below(9));
    if (random.Chance(30)) queue.quota.by_name["cpu"] = Cores(random.Below(90));
    if (random.Chance(10)) queue.quota.all = kUnlimited;
    if (random.Chance(30)) queue.limit.by_name["gpu"] = Gpus(random.Below(9));
    if (random.Chance(40)) queue.weight.all = random.Below(5000);
    queue.priority = random.Below(3);
    spec.queues.push_back(std::move(queue));
    ResourceVector demand;
    demand[kCpu] = 10 * random.Below(9000);
    demand[kMemory] = int64_t{random.Below(1 << 20)} << random.Below(20);
    demand[kGpu] = random.Below(2) * random.Below(100000);
    demand[kGpuMemory] = demand[kGpu] * random.Below(1000000);
    demands.push_back(demand);
  }
  return spec;
}

template <DivisionRule Rule>
void CheckOnRandomTrees(const Rule& rule) {
  const int cases = RandomCases(1000, 20000);
  const ResourceSpace space;
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    std::vector<ResourceVector> demands;
    const SnapshotSpec spec = RandomTree(random, demands);
    ResourceVector capacity = CpuAndMemory(random.Below(300), random.Below(4000));
    capacity[kGpu] = Gpus(random.Below(20));
    capacity[kGpuMemory] = random.Below(20) * 80 * kBytesPerGiB;
    const auto divide = [&](std::vector<Queue> queues) {
      const QueueTree tree = *QueueTree::Create(std::move(queues), space);
      std::vector<QueueUsage> usage(demands.size());
      for (size_t i = 0; i < demands.size(); ++i) {
        const QueueId q = *tree.Find(absl::StrCat("q", 10 + i));
        if (tree.is_leaf(q)) usage[static_cast<size_t>(q.value())].demand = demands[i];
      }
      SumUpwards(tree, usage);
      const FairShares shares = DivideFairShares(tree, space, capacity, usage, rule);
      EXPECT_THAT(CheckShares(tree, space, shares), IsEmpty()) << "seed " << seed;
      return shares;
    };
    ASSERT_EQ(divide(spec.queues), divide(random.Shuffled(spec).queues)) << "seed " << seed;
    if (testing::Test::HasFailure()) return;
  }
}

TEST(DivisionProperties, DominantResourceOnRandomTrees) {
  CheckOnRandomTrees(DominantResourceDivision());
}
TEST(DivisionProperties, PerResourceOnRandomTrees) { CheckOnRandomTrees(PerResourceDivision()); }

}  // namespace
}  // namespace tessera
