#include "bench/study/fgd/bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace tessera::study {
namespace {

enum Limit { kDevices, kCpuLimit, kMemoryLimit, kHalves, kThirds, kFifths, kLimits };
using Amounts = std::array<double, kLimits>;

// Nodes of one model and shape.
struct Pool {
  NodeId example;
  Amounts has{};
  Amounts price{};
  Amounts slope_squares{};
};

double Halves(double x) { return x > 0.5 ? 1 : x == 0.5 ? 0.5 : 0; }
double Thirds(double x) { return 3 * x > 2 ? 1 : 3 * x > 1 ? 0.5 : 0; }
double Fifths(double x) { return 5 * x > 4 ? 1 : 5 * x < 1 ? 0 : x; }

std::vector<Pool> PoolsOf(const Snapshot& snapshot) {
  std::map<std::tuple<int, size_t, int64_t, int64_t>, Pool> pools;
  for (int i = 0; i < snapshot.num_nodes(); ++i) {
    const NodeId n(i);
    const Node& node = snapshot.node(n);
    Pool& pool = pools[{snapshot.node_model(n).value(), node.gpus.size(), node.capacity.cpu,
                        node.capacity.memory}];
    pool.example = n;
    const double gpus = static_cast<double>(node.gpus.size());
    for (const Limit limit : {kDevices, kHalves, kThirds, kFifths}) pool.has[limit] += gpus;
    pool.has[kCpuLimit] += static_cast<double>(node.capacity.cpu);
    pool.has[kMemoryLimit] += static_cast<double>(node.capacity.memory);
  }
  std::vector<Pool> list;
  for (const auto& [key, pool] : pools) list.push_back(pool);
  return list;
}

// A kind of pod with what each takes, and the pools that can hold one.
struct Demand {
  double count = 0;
  double worth = 0;  // devices
  Amounts takes{};
  std::vector<size_t> pools;
};

std::vector<Demand> DemandsOf(const Trace& trace, const std::vector<int>& pods,
                              const std::vector<Pool>& pools) {
  const Snapshot& snapshot = trace.tables->snapshot();
  std::vector<Demand> demands(trace.kinds.size());
  for (int k : pods) ++demands[static_cast<size_t>(k)].count;
  for (size_t k = 0; k < demands.size(); ++k) {
    const Kind& kind = trace.kinds[k];
    Demand& demand = demands[k];
    const double share = static_cast<double>(kind.share) / kGpuUnitsPerDevice;
    demand.worth = kind.devices * share;
    demand.takes = {demand.worth,
                    static_cast<double>(kind.cpu),
                    static_cast<double>(kind.memory),
                    kind.devices * Halves(share),
                    kind.devices * Thirds(share),
                    kind.devices * Fifths(share)};
    for (size_t p = 0; p < pools.size(); ++p) {
      const Node& node = snapshot.node(pools[p].example);
      const int signature = trace.tables->signature_of(pools[p].example);
      const bool fits =
          trace.tables->eligibility(kind.request_class, signature) == Eligibility::kEligible &&
          kind.cpu <= node.capacity.cpu && kind.memory <= node.capacity.memory &&
          kind.devices <= static_cast<int>(node.gpus.size());
      if (fits) demand.pools.push_back(p);
    }
  }
  std::erase_if(demands, [](const Demand& d) { return d.count == 0 || d.worth == 0; });
  return demands;
}

// The bound at the pools' prices. Adds to `use[pool]` what the pods take if each goes
// where it is worth most above its costs.
double BoundAt(const std::vector<Pool>& pools, const std::vector<Demand>& demands,
               std::vector<Amounts>& use) {
  double bound = 0;
  for (const Pool& pool : pools) {
    for (int l = 0; l < kLimits; ++l) bound += pool.price[l] * pool.has[l];
  }
  for (const Demand& demand : demands) {
    double best = 0;
    size_t at = pools.size();
    for (const size_t p : demand.pools) {
      double gain = demand.worth;
      for (int l = 0; l < kLimits; ++l) gain -= pools[p].price[l] * demand.takes[l];
      if (gain > best) {
        best = gain;
        at = p;
      }
    }
    bound += best * demand.count;
    if (at == pools.size()) continue;
    for (int l = 0; l < kLimits; ++l) use[at][l] += demand.count * demand.takes[l];
  }
  return bound;
}

// The least bound along a descent (AdaGrad: each price moves by its own history of
// slopes, ever less). Prices of a limit are per what a pool has of it per device, so
// that all are of one size; a device starts at a little below its worth.
double Descend(std::vector<Pool> pools, const std::vector<Demand>& demands, double rate,
               int steps) {
  for (Pool& pool : pools) pool.price[kFifths] = 0.9;
  double least = std::numeric_limits<double>::infinity();
  for (int step = 0; step < steps; ++step) {
    std::vector<Amounts> use(pools.size(), Amounts{});
    least = std::min(least, BoundAt(pools, demands, use));
    for (size_t p = 0; p < pools.size(); ++p) {
      for (int l = 0; l < kLimits; ++l) {
        const double unit = pools[p].has[l] / pools[p].has[kDevices];
        const double slope = 1 - use[p][l] / pools[p].has[l];
        pools[p].slope_squares[l] += slope * slope;
        const double move = rate * slope / std::sqrt(pools[p].slope_squares[l] + 1e-12);
        pools[p].price[l] = std::max(0.0, pools[p].price[l] - move / unit);
      }
    }
  }
  return least;
}

}  // namespace

double BoundPercent(const Trace& trace, const std::vector<int>& pods, int steps) {
  const std::vector<Pool> pools = PoolsOf(trace.tables->snapshot());
  const std::vector<Demand> demands = DemandsOf(trace, pods, pools);
  const double gpus = static_cast<double>(trace.tables->num_gpus());
  double least = gpus;
  for (const double rate : {0.3, 0.1, 0.03}) {
    least = std::min(least, Descend(pools, demands, rate, steps));
  }
  return 100 * least / gpus;
}

}  // namespace tessera::study
