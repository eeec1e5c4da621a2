// Whole cycles in which others yield. `Reclaim`: N nodes of 8 GPUs full of one-GPU jobs of one
// queue, as many wait in another that is entitled to half. `Queues`: N nodes, N/50 queues, ten
// gangs of 50 pods each wait in all of them; some fifth finds no room. `QueuesTakeBack`: half of
// the queues hold everything, the gangs of the others wait. `Idle`: the cycle after `Queues`,
// which has nothing left to do.

#include <benchmark/benchmark.h>

#include <variant>

#include "absl/strings/str_format.h"
#include "bench/support/clusters.h"
#include "tessera/schedule/schedule.h"

namespace tessera {
namespace {

Queue QueueOf(std::string name, int64_t gpus) {
  Queue queue;
  queue.name = std::move(name);
  queue.quota.by_name["gpu"] = gpus * kGpuUnitsPerDevice;
  return queue;
}

SnapshotSpec Nodes(int nodes) {
  SnapshotSpec spec = H100Cluster(nodes);
  for (Node& node : spec.nodes) {
    for (Gpu& gpu : node.gpus) gpu.mig = MigMode::kOff;
  }
  spec.now = 100000;
  return spec;
}

Workload JobOf(std::string queue, int index, int pods) {
  Workload job = PendingGang(absl::StrFormat("%s-%07d", queue, index), pods, GpuRequest::Whole(1));
  job.queue = std::move(queue);
  job.submitted = index;
  return job;
}

// Runs `cycle` on what `spec` says, and carries out what it plans a while later.
Snapshot Settled(SnapshotSpec spec) {
  const Snapshot snapshot = *Snapshot::Create(std::move(spec));
  SnapshotSpec after = ApplyAndSettle(snapshot, Schedule(snapshot).plan)->spec();
  after.now += 3600;
  return *Snapshot::Create(std::move(after));
}

void RunCycles(benchmark::State& bench, const Snapshot& snapshot) {
  size_t bound = 0, nominated = 0, evicted = 0;
  for (auto _ : bench) {
    const CycleResult cycle = Schedule(snapshot);
    bound = nominated = evicted = 0;
    for (const Action& action : cycle.plan.actions) {
      bound += std::holds_alternative<BindAction>(action) ? 1 : 0;
      nominated += std::holds_alternative<NominateAction>(action) ? 1 : 0;
      evicted += std::holds_alternative<EvictAction>(action) ? 1 : 0;
    }
  }
  bench.counters["bound"] = static_cast<double>(bound);
  bench.counters["nominated"] = static_cast<double>(nominated);
  bench.counters["evicted"] = static_cast<double>(evicted);
}

void Reclaim(benchmark::State& bench) {
  const int nodes = static_cast<int>(bench.range(0));
  SnapshotSpec spec = Nodes(nodes);
  spec.queues = {QueueOf("a", 4 * nodes), QueueOf("b", 4 * nodes)};
  for (int i = 0; i < 8 * nodes; ++i) spec.workloads.push_back(JobOf("a", i, 1));
  spec = Settled(std::move(spec)).spec();
  for (int i = 0; i < 8 * nodes; ++i) spec.workloads.push_back(JobOf("b", i, 1));
  RunCycles(bench, *Snapshot::Create(std::move(spec)));
}
BENCHMARK(Reclaim)->Arg(100)->Arg(500)->Arg(2000)->Unit(benchmark::kMillisecond);

SnapshotSpec Gangs(int nodes, int first, int last) {
  SnapshotSpec spec = Nodes(nodes);
  const int queues = nodes / 50;
  for (int q = 0; q < queues; ++q) {
    spec.queues.push_back(QueueOf(absl::StrFormat("q%03d", q), 8 * nodes / queues));
  }
  for (int q = first; q < last; ++q) {
    for (int i = 0; i < 10; ++i) spec.workloads.push_back(JobOf(spec.queues[q].name, i, 50));
  }
  return spec;
}

void Queues(benchmark::State& bench) {
  const int nodes = static_cast<int>(bench.range(0));
  RunCycles(bench, *Snapshot::Create(Gangs(nodes, 0, nodes / 50)));
}
BENCHMARK(Queues)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

void QueuesTakeBack(benchmark::State& bench) {
  const int nodes = static_cast<int>(bench.range(0));
  SnapshotSpec spec = Gangs(nodes, 0, nodes / 100);
  for (int i = 0; i < nodes / 100 * 10; ++i) {
    Workload job = spec.workloads[static_cast<size_t>(i)];
    job.name += "-more";
    spec.workloads.push_back(std::move(job));
  }
  spec = Settled(std::move(spec)).spec();
  SnapshotSpec more = Gangs(nodes, nodes / 100, nodes / 50);
  for (Workload& job : more.workloads) spec.workloads.push_back(std::move(job));
  RunCycles(bench, *Snapshot::Create(std::move(spec)));
}
BENCHMARK(QueuesTakeBack)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

void Idle(benchmark::State& bench) {
  const int nodes = static_cast<int>(bench.range(0));
  RunCycles(bench, Settled(Gangs(nodes, 0, nodes / 50)));
}
BENCHMARK(Idle)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tessera
