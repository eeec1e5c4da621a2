// Dividing a cluster among many queues, and serving them, against their number.
//
// Floor of a division: each queue's room of each resource is read a few times,
// 8 bytes each: 10,000 queues x 8 resources are 640 kB a pass, about 0.1 ms.

#include <benchmark/benchmark.h>

#include "absl/strings/str_format.h"
#include "tessera/share/fair_shares.h"
#include "tessera/share/queue_order.h"

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

void ChargeAndNext(benchmark::State& bench) {
  const Queues queues(static_cast<int>(bench.range(0)));
  const FairShares shares = DivideFairShares(queues.tree, queues.space, queues.capacity,
                                             queues.usage, PerResourceDivision());
  QuotaLedger ledger(queues.tree, queues.usage);
  ServiceOrder<DominantShareOrder> order(queues.tree, shares, ledger,
                                         {&queues.space, queues.capacity}, DominantShareOrder());
  ResourceVector job;
  job[kCpu] = job[kGpu] = 1000;
  for (int q = 0; q < queues.tree.size(); ++q) order.SetJob(QueueId(q), job);
  for (auto _ : bench) {
    const QueueId next = order.Next();
    ledger.Book(next, job, true);
    order.SetJob(next, job);
    ledger.Commit();
  }
}
BENCHMARK(ChargeAndNext)->RangeMultiplier(10)->Range(1000, 100000);

}  // namespace
}  // namespace tessera
