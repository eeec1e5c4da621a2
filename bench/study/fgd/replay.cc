#include "bench/study/fgd/replay.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <tuple>

#include "tessera/placement/foresight.h"
#include "tessera/placement/fragmentation.h"
#include "tessera/placement/published_scorers.h"
#include "tessera/placement/ranked_finder.h"

namespace tessera::study {
namespace {

// Means over what falls into a bin.
class Bins {
 public:
  void Add(int bin, double value) {
    if (bin > kArrivedPercent) return;
    sum_[static_cast<size_t>(bin)] += value;
    ++count_[static_cast<size_t>(bin)];
  }
  std::array<double, kArrivedPercent + 1> Means() const {
    std::array<double, kArrivedPercent + 1> means{};
    for (size_t b = 0; b < means.size(); ++b) {
      means[b] = count_[b] > 0 ? sum_[b] / count_[b] : b > 0 ? means[b - 1] : 0;
    }
    return means;
  }

 private:
  std::array<double, kArrivedPercent + 1> sum_{};
  std::array<int, kArrivedPercent + 1> count_{};
};

class Run {
 public:
  explicit Run(const Trace& trace)
      : trace_(trace),
        state_(trace.tables, {}),
        measure_(trace.mix, trace.tables->snapshot().num_models()),
        hosted_(static_cast<size_t>(trace.tables->snapshot().num_nodes())),
        next_(trace.kinds.size()) {
    for (size_t n = 0; n < hosted_.size(); ++n) {
      of_node_.push_back(measure_.FragmentsOf(RoomOf(state_, NodeId(static_cast<int32_t>(n)))));
      fragments_ += of_node_.back();
    }
  }

  const std::vector<uint8_t>& hosted() const { return hosted_; }

  Curve Offer(const std::vector<int>& arrivals, PodFinder find) {
    Curve curve;
    Bins allocated, fragments;
    const std::clock_t start = std::clock();
    const double capacity = static_cast<double>(trace_.capacity);
    for (int k : arrivals) {
      const Kind& kind = trace_.kinds[static_cast<size_t>(k)];
      arrived_ += kind.amount();
      const auto place = find(state_, {kind.pod_set, {0, num_nodes()}, 0});
      if (place) Bind(k, *place);
      if (place) Account(kind, place->node);
      curve.turned_away += place ? 0 : 1;
      const int bin = static_cast<int>(std::lround(100 * static_cast<double>(arrived_) / capacity));
      allocated.Add(bin, 100 * static_cast<double>(allocated_) / capacity);
      fragments.Add(bin, 100 * static_cast<double>(fragments_) / capacity /
                             static_cast<double>(measure_.total_weight()));
    }
    curve.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    curve.allocated = allocated.Means();
    curve.fragments = fragments.Means();
    return curve;
  }

  double allocated_percent() const {
    return 100 * static_cast<double>(allocated_) / static_cast<double>(trace_.capacity);
  }

 private:
  int num_nodes() const { return trace_.tables->snapshot().num_nodes(); }

  void Bind(int k, const PodPlacement& place) {
    const PodSetInfo& set =
        trace_.tables->snapshot().pod_set(trace_.kinds[static_cast<size_t>(k)].pod_set);
    int& next = next_[static_cast<size_t>(k)];
    if (next == set.count) {
      std::fprintf(stderr, "more pods of one kind arrive than the study provides for\n");
      std::abort();
    }
    state_.Place(set.pod(next++), place);
    state_.Commit();
    const RequestClass& request = trace_.tables->snapshot().request_class(set.request_class);
    if (request.gpu.kind != GpuRequestKind::kNone) {
      hosted_[static_cast<size_t>(place.node.value())] |= GpuClustering::ClassBit(request.gpu);
    }
  }

  void Account(const Kind& kind, NodeId n) {
    allocated_ += kind.amount();
    const int64_t now = measure_.FragmentsOf(RoomOf(state_, n));
    fragments_ += now - of_node_[static_cast<size_t>(n.value())];
    of_node_[static_cast<size_t>(n.value())] = now;
  }

  const Trace& trace_;
  ClusterState state_;
  FragmentMeasure measure_;
  std::vector<uint8_t> hosted_;
  std::vector<int> next_;  // by kind, the pod that comes next
  std::vector<int64_t> of_node_;
  int64_t fragments_ = 0;
  int64_t allocated_ = 0;
  int64_t arrived_ = 0;
};

// A node that is drawn from those that fit, then a device of it.
class RandomFinder {
 public:
  explicit RandomFinder(uint64_t seed) : random_(seed) {}

  std::optional<PodPlacement> operator()(const ClusterState& state, const PodQuery& query) {
    const RequestClassId c = state.snapshot().pod_set(query.pod_set).request_class;
    std::vector<PodPlacement> places;
    for (int n = 0; n < state.snapshot().num_nodes(); ++n) {
      const int signature = state.tables().signature_of(NodeId(n));
      if (state.tables().eligibility(c, signature) != Eligibility::kEligible) continue;
      const auto place = ChooseDevices(state, query, NodeId(n), DevicePreference::kPack);
      if (place) places.push_back(*place);
    }
    if (places.empty()) return std::nullopt;
    PodPlacement place = places[random_() % places.size()];
    if (place.share == 0) return place;
    std::vector<uint64_t> devices;
    for (int g = 0; g < state.tables().num_gpus(place.node); ++g) {
      if (state.gpu(place.node, g).RoomForShare() >= place.share) {
        devices.push_back(uint64_t{1} << g);
      }
    }
    place.gpus = devices[random_() % devices.size()];
    return place;
  }

 private:
  std::mt19937_64 random_;
};

// Pods of several GPUs first, the largest first; then those that few GPUs can serve;
// whole GPUs before fractions; else in the order of arrival. (Fractions sorted by size
// would leave the large ones without small ones to go beside them.)
std::vector<int> BatchOrder(const Trace& trace, std::vector<int> pods) {
  const Snapshot& snapshot = trace.tables->snapshot();
  std::vector<int64_t> gpus(trace.kinds.size());
  for (size_t k = 0; k < gpus.size(); ++k) {
    for (int s : trace.tables->eligible(trace.kinds[k].request_class)) {
      for (int32_t n : trace.tables->signatures()[static_cast<size_t>(s)].nodes) {
        gpus[k] += static_cast<int64_t>(snapshot.node(NodeId(n)).gpus.size());
      }
    }
  }
  std::ranges::stable_sort(pods, {}, [&](int k) {
    const Kind& kind = trace.kinds[static_cast<size_t>(k)];
    return std::tuple(kind.devices > 1 ? -kind.devices : 0, gpus[static_cast<size_t>(k)],
                      kind.share < kGpuUnitsPerDevice);
  });
  return pods;
}

template <typename Scorer>
Curve Ranked(Run& run, const std::vector<int>& arrivals, const Trace& trace, Scorer scorer,
             uint64_t seed) {
  RankedFinder<Scorer> find(std::move(scorer),
                            {.order = SeededOrder(trace.tables->snapshot().num_nodes(), seed)});
  return run.Offer(arrivals, find.AsFinder());
}

}  // namespace

std::vector<int> UpToCapacity(const Trace& trace, const std::vector<int>& arrivals) {
  int64_t demand = 0;
  std::vector<int> pods;
  for (int k : arrivals) {
    if (demand >= trace.capacity) break;
    demand += trace.kinds[static_cast<size_t>(k)].amount();
    pods.push_back(k);
  }
  return pods;
}

Curve Replay(const Trace& trace, const std::vector<int>& arrivals, Policy policy, uint64_t seed) {
  Run run(trace);
  const Snapshot& snapshot = trace.tables->snapshot();
  switch (policy) {
    case kDotProduct:
      return Ranked(run, arrivals, trace, DotProduct(), seed);
    case kClustering:
      return Ranked(run, arrivals, trace, GpuClustering{run.hosted()}, seed);
    case kPacking:
      return Ranked(run, arrivals, trace, GpuPacking(), seed);
    case kBestFit:
      return Ranked(run, arrivals, trace, BestFit(), seed);
    case kFgd:
      return Ranked(run, arrivals, trace,
                    FragmentationGradientDescent(trace.mix, snapshot.num_models()), seed);
    case kForesight:
      return Ranked(run, arrivals, trace, Foresight(snapshot, trace.mix), seed);
    case kBatch: {
      const std::vector<int> order = BatchOrder(trace, UpToCapacity(trace, arrivals));
      Curve curve = Ranked(run, order, trace, Foresight(snapshot, trace.mix), seed);
      curve.allocated.fill(run.allocated_percent());
      return curve;
    }
    case kRandom:
    case kPolicies:
      break;
  }
  RandomFinder find(seed);
  return run.Offer(arrivals, [&find](const ClusterState& state, const PodQuery& query) {
    return find(state, query);
  });
}

}  // namespace tessera::study
