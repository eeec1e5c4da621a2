// What others published about dividing a cluster, computed by our code.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "absl/numeric/int128.h"
#include "tessera/share/queue_order.h"
#include "tests/support/siblings_for_tests.h"

namespace tessera {
namespace {

using testing::ElementsAre;

constexpr DominantResourceDivision kAsInThePaper{.work_conserving = false};

// The instance of the DRF paper: 9 CPU, 18 GB; A's tasks need <1 CPU, 4 GB>, B's
// <3 CPU, 1 GB>, and both have more of them than fit.
const ResourceVector kPool = CpuAndGiB(9, 18), kTaskA = CpuAndGiB(1, 4), kTaskB = CpuAndGiB(3, 1);

Siblings Paper(int64_t weight_a = 1, int64_t weight_b = 1) {
  Siblings paper(kPool);
  paper.Add(MakeQueue("a"), kTaskA * 100).weight.all = weight_a * kWeightOne;
  paper.Add(MakeQueue("b"), kTaskB * 100).weight.all = weight_b * kWeightOne;
  return paper;
}

// Whether `share` is `numerator / denominator` tasks, to one unit of each resource.
void ExpectTasks(const ResourceVector& share, const ResourceVector& task, int64_t numerator,
                 int64_t denominator) {
  for (int r : {kCpu, kMemory}) {
    EXPECT_LE(std::abs(share[r] * denominator - task[r] * numerator), denominator)
        << "resource " << r << ": " << share[r];
  }
}

// --- Divisible tasks ---------------------------------------------------------------

TEST(DrfPaperTest, EqualDominantShares) {
  // A: memory dominates, 4/18 = 2/9 a task; B: CPU, 3/9 = 1/3 a task. 2/9 a = 1/3 b
  // and CPU a + 3 b = 9: a = 3, b = 2, both at 2/3; memory 12 + 2 of 18.
  const std::vector<ResourceVector> shares = Paper().Shares(kAsInThePaper);
  ExpectTasks(shares[0], kTaskA, 3, 1);
  ExpectTasks(shares[1], kTaskB, 2, 1);
}

TEST(DrfPaperTest, WeightedTwoToOne) {
  // 2/9 a = 2 * 1/3 b: a = 3 b. CPU would allow 6 b = 9; memory 13 b = 18 runs out
  // first: a = 54/13, b = 18/13; dominant shares 12/13 and 6/13, CPU 108/13 of 9.
  const std::vector<ResourceVector> shares = Paper(2, 1).Shares(kAsInThePaper);
  ExpectTasks(shares[0], kTaskA, 54, 13);
  ExpectTasks(shares[1], kTaskB, 18, 13);
  EXPECT_EQ(shares[0][kMemory] + shares[1][kMemory], kPool[kMemory]);
}

TEST(DrfPaperTest, WithOneResourceItIsMaxMin) {
  // 9 CPU: c wants 1, the others half of the other 8 each.
  Siblings siblings(CpuAndGiB(9, 0));
  siblings.Add(MakeQueue("a"), CpuAndGiB(100, 0));
  siblings.Add(MakeQueue("b"), CpuAndGiB(9, 0));
  siblings.Add(MakeQueue("c"), CpuAndGiB(1, 0));
  EXPECT_THAT(siblings.Shares(kAsInThePaper),
              ElementsAre(CpuAndGiB(4, 0), CpuAndGiB(4, 0), CpuAndGiB(1, 0)));
  EXPECT_EQ(siblings.Shares(kAsInThePaper), siblings.Shares(PerResourceDivision()));
}

TEST(DrfPaperTest, NoResourceMonotonicity) {
  // Tasks <2, 1> and <1, 2> of 12 and 12: 2/12 each a task, 4 and 4 tasks. With
  // twice the memory B's task is 1/12 of either, A's 2/12 of CPU: b = 2 a, CPU
  // 2 a + 2 a = 12: A falls from 4 tasks to 3, though there is more.
  const ResourceVector task_a = CpuAndGiB(2, 1), task_b = CpuAndGiB(1, 2);
  Siblings siblings(CpuAndGiB(12, 12));
  siblings.Add(MakeQueue("a"), task_a * 100);
  siblings.Add(MakeQueue("b"), task_b * 100);
  std::vector<ResourceVector> shares = siblings.Shares(kAsInThePaper);
  ExpectTasks(shares[0], task_a, 4, 1);
  ExpectTasks(shares[1], task_b, 4, 1);
  siblings.capacity = CpuAndGiB(12, 24);
  shares = siblings.Shares(kAsInThePaper);
  ExpectTasks(shares[0], task_a, 3, 1);
  ExpectTasks(shares[1], task_b, 6, 1);
}

TEST(DrfPaperTest, NoPartsOfTasksWhereAHigherPriorityTookTheRest) {
  // 10 CPU, 10 GB: a, of priority 1, takes all CPU with its tasks <2, 1>: 5 tasks. b
  // needs CPU as well, so memory is of no use to it. Work-conserving, a takes all of it,
  // and b only what a does not want.
  Siblings siblings(CpuAndGiB(10, 10));
  siblings.Add(MakeQueue("a"), CpuAndGiB(2, 1) * 100).priority = 1;
  siblings.Add(MakeQueue("b"), CpuAndGiB(1, 1) * 100);
  const std::vector<ResourceVector> shares = siblings.Shares(kAsInThePaper);
  ExpectTasks(shares[0], CpuAndGiB(2, 1), 5, 1);
  EXPECT_EQ(shares[1], ResourceVector());
  EXPECT_EQ(siblings.Shares(DominantResourceDivision())[0], CpuAndGiB(10, 10));
  siblings.demands[0] = CpuAndGiB(10, 5);
  EXPECT_EQ(siblings.Shares(DominantResourceDivision())[1], CpuAndGiB(0, 5));
}

TEST(DrfPaperTest, NoPartsOfTasksWhereQuotasTookTheRest) {
  // 10 CPU, 10 GB: all CPU is a's by quota; nobody else can run anything.
  Siblings siblings(CpuAndGiB(10, 10));
  siblings.Add(MakeQueue("a"), CpuAndGiB(10, 5)).quota.by_name["cpu"] = Cores(10);
  siblings.Add(MakeQueue("b"), CpuAndGiB(1, 1) * 100);
  EXPECT_THAT(siblings.Shares(kAsInThePaper), ElementsAre(CpuAndGiB(10, 5), ResourceVector()));
}

// --- The rules that the paper compares with ----------------------------------------

// Queues raise the sum of their shares of all resources together, until one is
// exhausted.
struct AssetFairness {
  void Divide(const Division& division, Claims& claims) const {
    std::vector<long double> sum(claims.size());
    const auto part = [&](int r, size_t i) {
      return static_cast<long double>(claims.ceiling[r][i]) /
             static_cast<long double>(std::max<int64_t>(division.capacity[r], 1));
    };
    for (int r = 0; r < claims.resources(); ++r) {
      for (size_t i = 0; i < claims.size(); ++i) sum[i] += part(r, i);
    }
    long double level = std::numeric_limits<long double>::max();
    for (int r = 0; r < claims.resources(); ++r) {
      long double speed = 0;
      for (size_t i = 0; i < claims.size(); ++i) speed += part(r, i) / sum[i];
      if (speed > 0) level = std::min(level, 1 / speed);
    }
    for (int r = 0; r < claims.resources(); ++r) {
      for (size_t i = 0; i < claims.size(); ++i) {
        claims.share[r][i] = static_cast<int64_t>(static_cast<long double>(claims.ceiling[r][i]) *
                                                  std::min(level / sum[i], 1.0L));
      }
    }
  }
};

// Competitive equilibrium from equal incomes: the largest product of what two hungry
// queues get of cpu and memory. It lies in the middle of one resource's line, where
// the other resource allows that, else where the lines cross (Cramer's rule).
struct EqualIncomes {
  void Divide(const Division& division, Claims& claims) const {
    const auto wanted = [&](int r, size_t i) { return absl::int128{claims.ceiling[r][i]}; };
    for (int r : {kCpu, kMemory}) {
      const int s = r == kCpu ? kMemory : kCpu;
      // Half of r each: C_r / 2 d_r of the demand.
      const absl::int128 of_s = wanted(s, 0) * wanted(r, 1) + wanted(s, 1) * wanted(r, 0);
      if (division.total[r] * of_s <= division.total[s] * 2 * wanted(r, 0) * wanted(r, 1)) {
        for (size_t i : {0, 1}) Grant(claims, i, division.total[r], 2 * wanted(r, i));
        return;
      }
    }
    const absl::int128 determinant =
        wanted(kCpu, 0) * wanted(kMemory, 1) - wanted(kCpu, 1) * wanted(kMemory, 0);
    for (size_t i : {0, 1}) {
      const absl::int128 minor = division.total[kCpu] * wanted(kMemory, 1 - i) -
                                 division.total[kMemory] * wanted(kCpu, 1 - i);
      Grant(claims, i, i == 0 ? minor : -minor, determinant);
    }
  }

 private:
  static void Grant(Claims& claims, size_t i, absl::int128 numerator, absl::int128 denominator) {
    for (int r : {kCpu, kMemory}) {
      claims.share[r][i] = static_cast<int64_t>(claims.ceiling[r][i] * numerator / denominator);
    }
  }
};

TEST(DrfPaperTest, AssetFairnessIsAnotherRule) {
  // A task of A is 1/9 + 4/18 = 1/3, one of B 3/9 + 1/18 = 7/18: a = 7/6 b. CPU
  // 7/6 b + 3 b = 9: b = 54/25 = 2.16, a = 63/25 = 2.52. DRF: 3 and 2.
  const std::vector<ResourceVector> shares = Paper().Shares(AssetFairness());
  ExpectTasks(shares[0], kTaskA, 63, 25);
  ExpectTasks(shares[1], kTaskB, 54, 25);
  EXPECT_NE(shares, Paper().Shares(kAsInThePaper));
}

TEST(DrfPaperTest, AssetFairnessHasNoSharingIncentive) {
  // 30 of each; tasks <1, 3> and <1, 1> (the paper's Theorem 1): 4/30 and 2/30 a
  // task, b = 2 a, memory 3 a + 2 a = 30: a = 6, b = 12. B holds less than half of
  // either resource; half of everything would run 15 of its tasks.
  Siblings siblings(CpuAndGiB(30, 30));
  siblings.Add(MakeQueue("a"), CpuAndGiB(1, 3) * 100);
  siblings.Add(MakeQueue("b"), CpuAndGiB(1, 1) * 100);
  const std::vector<ResourceVector> by_assets = siblings.Shares(AssetFairness());
  ExpectTasks(by_assets[0], CpuAndGiB(1, 3), 6, 1);
  ExpectTasks(by_assets[1], CpuAndGiB(1, 1), 12, 1);
  // Dominant shares 3 a = b, memory 3 a + b = 30: a = 5, b = 15.
  const std::vector<ResourceVector> by_drf = siblings.Shares(kAsInThePaper);
  ExpectTasks(by_drf[0], CpuAndGiB(1, 3), 5, 1);
  ExpectTasks(by_drf[1], CpuAndGiB(1, 1), 15, 1);
}

TEST(DrfPaperTest, EqualIncomesIsAnotherRule) {
  // The largest a * b under a + 3 b <= 9 and 4 a + b <= 18. In the middle of the
  // first line, a = 9/2, b = 3/2: memory 19.5 > 18. Of the second, a = 9/4, b = 9:
  // CPU > 9. So where they cross: a = (9 - 54) / (1 - 12) = 45/11, b = 18/11.
  const std::vector<ResourceVector> shares = Paper().Shares(EqualIncomes());
  ExpectTasks(shares[0], kTaskA, 45, 11);
  ExpectTasks(shares[1], kTaskB, 18, 11);
  EXPECT_NE(shares, Paper().Shares(kAsInThePaper));
  EXPECT_NE(shares, Paper().Shares(AssetFairness()));
}

// --- Task by task ------------------------------------------------------------------

// Serves the smallest dominant share that is held, as in the paper's Algorithm 1;
// `DominantShareOrder` counts the next task as well.
struct HeldShareOrder : DominantShareOrder {
  bool Before(const Key& a, const Key& b) const {
    if (const auto order = Compare(a.held, b.held); order != 0) return order < 0;
    return a.created < b.created;
  }
};

struct Step {
  std::string served;
  int64_t cores = 0, gib = 0;  // used by all, afterwards

  friend bool operator==(const Step&, const Step&) = default;
  friend void PrintTo(const Step& step, std::ostream* os) {
    *os << step.served << " " << step.cores << " " << step.gib;
  }
};

// Runs tasks of the two queues until none of either fits.
template <QueueOrder Order>
std::vector<Step> PlayTasks(const Siblings& siblings) {
  const QueueTree tree = siblings.Tree();
  const std::array<ResourceVector, 2> tasks = {kTaskA, kTaskB};
  const FairShares shares{kPool, std::vector<QueueShare>(2)};
  QuotaLedger ledger(tree, std::vector<QueueUsage>(2));
  ServiceOrder<Order> order(tree, shares, ledger, {&siblings.space, kPool}, Order());
  for (int q : {0, 1}) order.SetJob(QueueId(q), tasks[static_cast<size_t>(q)]);
  ResourceVector used;
  std::vector<Step> steps;
  while (order.Next().valid()) {
    const QueueId q = order.Next();
    const ResourceVector& task = tasks[static_cast<size_t>(q.value())];
    if (!FitsWithin(used + task, kPool)) {
      order.SetJob(q, std::nullopt);
      continue;
    }
    used += task;
    ledger.Book(q, task, true);
    order.SetJob(q, task);
    steps.push_back(
        {tree.queue(q).name, used[kCpu] / kMillisPerCore, used[kMemory] / kBytesPerGiB});
  }
  return steps;
}

TEST(DrfPaperTest, TheTableOfThePaper) {
  // Dominant shares before each step: 0 = 0 (the older: B); 0 < 1/3; 2/9 < 1/3;
  // 4/9 > 1/3; 4/9 < 2/3. Then CPU is exhausted: A 3 tasks, B 2, both at 2/3.
  Siblings paper = Paper();
  paper.queues[1].created = -1;
  EXPECT_THAT(PlayTasks<HeldShareOrder>(paper),
              ElementsAre(Step{"b", 3, 1}, Step{"a", 4, 5}, Step{"a", 5, 9}, Step{"b", 8, 10},
                          Step{"a", 9, 14}));
}

TEST(DrfPaperTest, TheFirstTieDoesNotChangeTheEnd) {
  // 0 = 0 (by id: A); 0 < 2/9: B; 2/9 < 1/3: A; 1/3 < 4/9: B; 4/9 < 2/3: A.
  EXPECT_THAT(PlayTasks<HeldShareOrder>(Paper()),
              ElementsAre(Step{"a", 1, 4}, Step{"b", 4, 5}, Step{"a", 5, 9}, Step{"b", 8, 10},
                          Step{"a", 9, 14}));
}

TEST(DrfPaperTest, CountingTheNextTaskEndsThere) {
  // With the next task: 2/9 < 1/3: A; 4/9 > 1/3: B; 4/9 < 2/3: A; 6/9 = 2/3, and
  // held 4/9 > 1/3: B; 6/9 < 1: A.
  EXPECT_THAT(PlayTasks<DominantShareOrder>(Paper()),
              ElementsAre(Step{"a", 1, 4}, Step{"b", 4, 5}, Step{"a", 5, 9}, Step{"b", 8, 10},
                          Step{"a", 9, 14}));
}

TEST(DrfPaperTest, WeightedTaskByTask) {
  // Over weights 2 and 1 a task is 1/9 of A, 1/3 of B. 0 = 0: A; 0 < 1/9: B; then
  // 1/9, 2/9 and, by id, 1/3 = 1/3 to A. Neither fits into 2 CPU and 1 GB.
  EXPECT_THAT(PlayTasks<HeldShareOrder>(Paper(2, 1)),
              ElementsAre(Step{"a", 1, 4}, Step{"b", 4, 5}, Step{"a", 5, 9}, Step{"a", 6, 13},
                          Step{"a", 7, 17}));
  // With the next task: 1/9, 2/9 < 1/3: A, A; 1/3 = 1/3, held 2/9 > 0: B; then A.
  EXPECT_THAT(PlayTasks<DominantShareOrder>(Paper(2, 1)),
              ElementsAre(Step{"a", 1, 4}, Step{"a", 2, 8}, Step{"b", 5, 9}, Step{"a", 6, 13},
                          Step{"a", 7, 17}));
}

// --- The sorter of Mesos -----------------------------------------------------------

struct Client {
  std::string name;
  int64_t cores, gib;
  int64_t weight = kWeightOne;
};

// The order in which clients of a pool of 100 and 100 are served. Their next jobs
// are empty, so that what they hold decides, as in Mesos.
std::string Sorted(const std::vector<Client>& clients) {
  const ResourceVector pool = CpuAndGiB(100, 100);
  Siblings siblings(pool);
  for (const Client& client : clients) {
    siblings.Add(MakeQueue(client.name), {}).weight.all = client.weight;
  }
  const QueueTree tree = siblings.Tree();
  QuotaLedger ledger(tree, std::vector<QueueUsage>(clients.size()));
  const FairShares shares{pool, std::vector<QueueShare>(clients.size())};
  ServiceOrder<DominantShareOrder> order(tree, shares, ledger, {&siblings.space, pool},
                                         DominantShareOrder());
  for (const Client& client : clients) {
    ledger.Book(*tree.Find(client.name), CpuAndGiB(client.cores, client.gib), true);
    order.SetJob(*tree.Find(client.name), ResourceVector());
  }
  std::string sorted;
  for (QueueId q = order.Next(); q.valid(); q = order.Next()) {
    sorted += tree.queue(q).name;
    order.SetJob(q, std::nullopt);
  }
  return sorted;
}

TEST(MesosSorterTest, ByDominantShare) {
  // .05, .06, .01, and .03 of CPU.
  EXPECT_EQ(Sorted({{"a", 5, 5}, {"b", 6, 6}, {"c", 1, 1}, {"d", 3, 1}}), "cdab");
}

TEST(MesosSorterTest, ByDominantShareOverWeight) {
  const Client a{"a", 5, 5}, c{"c", 4, 4};
  // .05, .06/2 = .03, .04, .20/10 = .02.
  EXPECT_EQ(Sorted({a, {"b", 6, 6, 2 * kWeightOne}, c, {"d", 10, 20, 10 * kWeightOne}}), "dbca");
  // Without b, and d at .45/10 = .045.
  const Client d{"d", 20, 45, 10 * kWeightOne};
  EXPECT_EQ(Sorted({a, c, d}), "cda");
  // e at .01/.1 = .1.
  EXPECT_EQ(Sorted({a, c, d, {"e", 1, 1, kWeightOne / 10}}), "cdae");
}

// --- KAI-Scheduler's arithmetic, and ours in the same case -------------------------

ResourceVector Devices(int64_t devices) {
  ResourceVector v;
  v[kGpu] = Gpus(devices);
  return v;
}

std::vector<int64_t> GpusOf(const std::vector<ResourceVector>& shares) {
  std::vector<int64_t> result;
  for (const ResourceVector& share : shares) result.push_back(share[kGpu]);
  return result;
}

TEST(KaiExamplesTest, WeightZeroNeverGetsAny) {
  // 8 GPUs; a has weight 0, b wants 6. KAI leaves 2 idle, ours lets a have them.
  Siblings siblings(Devices(8));
  siblings.Add(MakeQueue("a"), Devices(9)).weight.all = 0;
  siblings.Add(MakeQueue("b"), Devices(6));
  EXPECT_THAT(GpusOf(siblings.Shares(KaiDivision())), ElementsAre(0, Gpus(6)));
  EXPECT_THAT(GpusOf(siblings.Shares(PerResourceDivision())), ElementsAre(Gpus(2), Gpus(6)));
  EXPECT_THAT(GpusOf(siblings.Shares(kAsInThePaper)), ElementsAre(Gpus(2), Gpus(6)));
}

TEST(KaiExamplesTest, ABucketWhosePartsSumToZeroGetsNothing) {
  // Both of priority 1 have weight 0: all 8 go to priority 0. Ours passes weight 0
  // over as well while anybody else wants some, but then gives what is left.
  Siblings siblings(Devices(8));
  for (const char* name : {"a", "b"}) {
    Queue& queue = siblings.Add(MakeQueue(name), Devices(9));
    queue.weight.all = 0;
    queue.priority = 1;
  }
  siblings.Add(MakeQueue("c"), Devices(4));
  EXPECT_THAT(GpusOf(siblings.Shares(KaiDivision())), ElementsAre(0, 0, Gpus(4)));
  EXPECT_THAT(GpusOf(siblings.Shares(PerResourceDivision())),
              ElementsAre(Gpus(2), Gpus(2), Gpus(4)));
}

TEST(KaiExamplesTest, PastUseMayTakeAQueuesWholePart) {
  // nW = 1/2 each, k = 1; a used all of the cluster: 1/2 + (1/2 - 1) = 0, and b
  // 1/2 + 1/2 = 1. Ours leaves a a thousandth, so that it is never starved: its
  // part of 8 GPUs = 56000 units is 56000/1025 = 54.6.
  Siblings siblings(Devices(8));
  siblings.Add(MakeQueue("a"), Devices(9));
  siblings.Add(MakeQueue("b"), Devices(9));
  const DivisionOptions options{.usage_strength = 1000, .usage_window = 1};
  std::vector<ResourceVector> past_use(2);
  past_use[0][kGpu] = kUsageOne;
  EXPECT_THAT(GpusOf(siblings.Shares(KaiDivision(), options, past_use)), ElementsAre(0, Gpus(8)));
  EXPECT_THAT(GpusOf(siblings.Shares(PerResourceDivision(), options, past_use)),
              ElementsAre(55, 56000 - 55));
}

TEST(KaiExamplesTest, QuotasAreMetInFullEvenBeyondTheTotal) {
  // Quotas 6 and 5 on 8 GPUs: KAI hands out 11; ours 6/11 and 5/11 of the 56000 units,
  // 30545.45 and 25454.55.
  Siblings siblings(Devices(8));
  siblings.Add(MakeQueue("a"), Devices(9)).quota.by_name["gpu"] = Gpus(6);
  siblings.Add(MakeQueue("b"), Devices(9)).quota.by_name["gpu"] = Gpus(5);
  EXPECT_THAT(GpusOf(siblings.Shares(KaiDivision())), ElementsAre(Gpus(6), Gpus(5)));
  EXPECT_THAT(GpusOf(siblings.Shares(PerResourceDivision())), ElementsAre(30545, 25455));
}

TEST(KaiExamplesTest, RoundsGoOnWhileAQueueWantsLessThanItsPart) {
  // 10 GPUs, weights 1, 1, 2: parts 2.5, 2.5 and 5. a wants 1, the others get
  // floor(2.5) and 5; of the 2 left in the next round, 2/3 and 4/3, c gets 1; the
  // leftover goes to b, whose part 2/3 was larger.
  Siblings siblings(Devices(10));
  siblings.Add(MakeQueue("a"), Devices(1));
  siblings.Add(MakeQueue("b"), Devices(9));
  siblings.Add(MakeQueue("c"), Devices(9)).weight.all = 2 * kWeightOne;
  EXPECT_THAT(GpusOf(siblings.Shares(KaiDivision())), ElementsAre(Gpus(1), Gpus(3), Gpus(6)));
  EXPECT_THAT(GpusOf(siblings.Shares(PerResourceDivision())),
              ElementsAre(Gpus(1), Gpus(3), Gpus(6)));
}

}  // namespace
}  // namespace tessera
