// Dividing a cluster among many queues, and serving them, against their number.
//
// Floor of a division: quota, limit, weight and demand are read once and shares
// written, 40 bytes for each queue and resource, and its room is read some six times
// for the level: 10,000 queues x 8 resources are 3.2 MB and 4 MB, about 0.7 ms.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "tessera/share/fair_shares.h"
#include "tessera/share/queue_order.h"
#include "tessera/share/usage_history.h"

namespace tessera {
namespace {

// Flat siblings with a quota, in a space of 8 resources.
struct Queues {
  explicit Queues(int count) {
    space = *ResourceSpace::Create(
        std::vector<std::string>{"example.com/a", "example.com/b", "example.com/c"});
    std::vector<Queue> queues;
    usage.resize(static_cast<size_t>(count));
    for (int r = 0; r < space.size(); ++r) capacity[r] = int64_t{1000000} * count;
    for (int i = 0; i < count; ++i) {
      Queue& queue = queues.emplace_back();
      queue.name = absl::StrFormat("queue-%07d", i);
      queue.quota.by_name["gpu"] = i % 7 * 10000;
      queue.weight.all = kWeightOne * (1 + i % 3);
      for (int r = 0; r < space.size(); ++r) {
        usage[static_cast<size_t>(i)].demand[r] = 100000 + i * 7919 % 3000017;
      }
    }
    tree = *QueueTree::Create(std::move(queues), space);
  }

  ResourceSpace space;
  QueueTree tree;
  ResourceVector capacity;
  std::vector<QueueUsage> usage;
};

template <typename Rule>
void Divide(benchmark::State& bench) {
  const Queues queues(static_cast<int>(bench.range(0)));
  for (auto _ : bench) {
    benchmark::DoNotOptimize(
        DivideFairShares(queues.tree, queues.space, queues.capacity, queues.usage, Rule()));
  }
}
BENCHMARK_TEMPLATE(Divide, DominantResourceDivision)
    ->RangeMultiplier(10)
    ->Range(100, 100000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(Divide, PerResourceDivision)
    ->RangeMultiplier(10)
    ->Range(100, 100000)
    ->Unit(benchmark::kMillisecond);

// A tree of `depth` levels with about `leaves` leaves, every inner queue with as
// many children.
struct Tree {
  Tree(int leaves, int depth) {
    const int fan = std::max(2, static_cast<int>(std::lround(std::pow(leaves, 1.0 / depth))));
    std::vector<std::string> level = {""};
    std::vector<Queue> queues;
    for (int d = 0; d < depth; ++d) {
      std::vector<std::string> next;
      for (const std::string& parent : level) {
        for (int i = 0; i < fan; ++i) {
          Queue& queue = queues.emplace_back();
          queue.name = absl::StrFormat("%s/%04d", parent, i);
          queue.parent = parent;
          queue.weight.all = kWeightOne * (1 + i % 3);
          next.push_back(queue.name);
        }
      }
      level = std::move(next);
    }
    tree = *QueueTree::Create(std::move(queues), space);
    for (int r = 0; r < space.size(); ++r) capacity[r] = int64_t{1} << 40;
  }

  ResourceSpace space;
  QueueTree tree;
  ResourceVector capacity;
};

// One charge to the leaf that is next, and its new place in the order. Floor: a key
// reads three vectors of 5 resources for each level, and log2(siblings) keys of 100
// bytes are compared: 0.05 us a level from cache.
void ChargeAndNext(benchmark::State& bench) {
  const int depth = static_cast<int>(bench.range(1));
  const Tree queues(static_cast<int>(bench.range(0)), depth);
  const std::vector<QueueUsage> usage(static_cast<size_t>(queues.tree.size()));
  const FairShares shares =
      DivideFairShares(queues.tree, queues.space, queues.capacity, usage, PerResourceDivision());
  QuotaLedger ledger(queues.tree, usage);
  ServiceOrder<DominantShareOrder> order(queues.tree, shares, ledger,
                                         {&queues.space, queues.capacity}, DominantShareOrder());
  ResourceVector job;
  job[kCpu] = job[kGpu] = 1000;
  int leaves = 0;
  for (int q = 0; q < queues.tree.size(); ++q) {
    if (!queues.tree.is_leaf(QueueId(q))) continue;
    order.SetJob(QueueId(q), job);
    ++leaves;
  }
  for (auto _ : bench) {
    const QueueId next = order.Next();
    ledger.Book(next, job, true);
    order.SetJob(next, job);
    ledger.Commit();
  }
  bench.counters["leaves"] = leaves;
  bench.counters["per_level"] =
      benchmark::Counter(static_cast<double>(bench.iterations() * depth),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(ChargeAndNext)->ArgsProduct({{1000, 10000, 100000}, {1, 3, 6}});

// One change of what a queue holds, and one reading, against the half-lives between.
void RecordAndRead(benchmark::State& bench) {
  UsageHistory history = *UsageHistory::Create({UsageWindowKind::kHalfLife, 3600}, 1);
  ResourceVector held;
  held[kGpu] = 7000;
  benchmark::DoNotOptimize(history.SetCapacity(held, 0));
  int64_t now = 0;
  for (auto _ : bench) {
    now += bench.range(0) * 3600 / 10;
    held[kGpu] = 7000 - held[kGpu];
    benchmark::DoNotOptimize(history.SetAllocated(QueueId(0), held, now));
    benchmark::DoNotOptimize(history.PastUse(QueueId(0), now));
  }
}
BENCHMARK(RecordAndRead)->Arg(1)->Arg(10)->Arg(100);

}  // namespace
}  // namespace tessera
