#include "tessera/placement/foresight.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/numeric/int128.h"

namespace tessera {
namespace {

constexpr int64_t kMilli = 1000;
// Above this CPU is plenty: 10^6 cores on one node.
constexpr int64_t kMaxCpu = 1000000000;

uint32_t Code(LayoutKey key) { return uint32_t{key.mask} << 16 | key.engines; }

// What a pod of the demand takes, in 1/7000 device.
int64_t AmountOf(const ModelDemand& demand, const MigTables& mig) {
  if (demand.share > 0) return int64_t{demand.share} * demand.devices;
  if (demand.profile < 0) return kGpuUnitsPerDevice * demand.devices;
  const GpuModel& model = mig.model();
  return kGpuUnitsPerDevice * model.profiles[static_cast<size_t>(demand.profile)].size /
         model.units;
}

int64_t FloorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// Healthy GPUs of schedulable nodes, by model.
std::vector<int64_t> CountGpus(const Snapshot& snapshot) {
  std::vector<int64_t> gpus(static_cast<size_t>(snapshot.num_models()));
  for (int i = 0; i < snapshot.num_nodes(); ++i) {
    const NodeId n(i);
    const Node& node = snapshot.node(n);
    if (!node.schedulable || !snapshot.node_model(n).valid()) continue;
    gpus[static_cast<size_t>(snapshot.node_model(n).value())] +=
        std::ranges::count(node.gpus, true, &Gpu::healthy);
  }
  return gpus;
}

// The GPUs of the models that a shape may run on.
int64_t GpusFor(const DemandShape& shape, const std::vector<int64_t>& gpus) {
  int64_t allowed = 0;
  for (size_t m = 0; m < gpus.size(); ++m) allowed += shape.models[m].fits ? gpus[m] : 0;
  return allowed;
}

// How much of each model constrained pods ask for, if the mix fills the cluster: per
// mille of the model's GPUs. A pod asks of its models in proportion to their GPUs.
std::vector<int64_t> ScarcityOf(const Snapshot& snapshot, const DemandMix& mix) {
  const std::vector<int64_t> gpus = CountGpus(snapshot);
  int64_t all_gpus = 0;
  for (int64_t count : gpus) all_gpus += count;
  absl::int128 asked = 0;
  std::vector<absl::int128> by_name(gpus.size());
  for (const DemandShape& shape : mix.shapes) {
    if (shape.kind == GpuRequestKind::kNone) continue;
    const int64_t allowed = GpusFor(shape, gpus);
    if (allowed == 0) continue;
    absl::int128 most = 0;
    for (size_t m = 0; m < gpus.size(); ++m) {
      if (gpus[m] == 0 || !shape.models[m].fits) continue;
      const ModelId model(static_cast<int32_t>(m));
      const DemandMix alone{{shape}};
      const absl::int128 amount = absl::int128(shape.weight) *
                                  AmountOf(DemandOn(alone, model).front(), snapshot.mig(model));
      most = std::max(most, amount);
      if (allowed < all_gpus) by_name[m] += amount * gpus[m] / allowed;
    }
    asked += most;
  }
  std::vector<int64_t> scarcity(gpus.size());
  for (size_t m = 0; m < gpus.size(); ++m) {
    if (by_name[m] == 0) continue;
    const absl::int128 ratio = by_name[m] * all_gpus * kMilli / (asked * gpus[m]);
    scarcity[m] = static_cast<int64_t>(std::min<absl::int128>(ratio, kMilli));
  }
  return scarcity;
}

// CPU per device of the mix, pods without GPU included; 0 if it has no GPU pods.
int64_t CpuPerDevice(const Snapshot& snapshot, const DemandMix& mix) {
  absl::int128 cpu = 0, amount = 0;
  for (const DemandShape& shape : mix.shapes) {
    cpu += absl::int128(shape.weight) * std::min(shape.cpu, kMaxCpu);
    const DemandMix alone{{shape}};
    for (int m = 0; m < snapshot.num_models(); ++m) {
      const std::vector<ModelDemand> demand = DemandOn(alone, ModelId(m));
      if (demand.empty()) continue;
      amount += absl::int128(shape.weight) * AmountOf(demand.front(), snapshot.mig(ModelId(m)));
      break;  // the first model that may serve it stands for all
    }
  }
  if (amount == 0) return 0;
  const absl::int128 rate = cpu * kGpuUnitsPerDevice / amount;
  return static_cast<int64_t>(std::min<absl::int128>(rate, kMaxCpu));
}

}  // namespace

// The recurrence, over ever fuller devices.
class WasteTable::Builder {
 public:
  Builder(std::vector<ModelDemand> demand, int64_t gpu_weight, int64_t pods_before_stop,
          const MigTables& mig, WasteTable& table)
      : demand_(std::move(demand)),
        gpu_weight_(gpu_weight),
        pods_before_stop_(pods_before_stop),
        mig_(mig),
        table_(table) {
    std::erase_if(demand_, [](const ModelDemand& d) { return d.devices > 1 && d.share > 0; });
    // Shapes that differ in CPU or in the number of whole devices are one here.
    for (ModelDemand& d : demand_) d.cpu = d.devices = 0;
    const auto kind = [](const ModelDemand& d) { return std::pair(d.share, d.profile); };
    std::ranges::sort(demand_, {}, kind);
    for (size_t i = demand_.size(); i-- > 1;) {
      if (kind(demand_[i]) != kind(demand_[i - 1])) continue;
      demand_[i - 1].weight += demand_[i].weight;
      demand_.erase(demand_.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  void Run() {
    for (int left = 0; left < kGpuUnitsPerDevice; ++left) {
      Sum sum = Stop(left);
      AddShares(left, sum);
      table_.shared_.push_back(MeanOf(sum));
    }
    Sum sum = Stop(kGpuUnitsPerDevice);
    AddShares(kGpuUnitsPerDevice, sum);
    for (const ModelDemand& d : demand_) {
      if (d.share == 0 && d.profile < 0) sum.weight += pods_before_stop_ * d.weight;
    }
    table_.free_ = MeanOf(sum);
    table_.fresh_ = table_.free_;
    const bool slices = std::ranges::any_of(
        demand_, [](const ModelDemand& d) { return d.share == 0 && d.profile >= 0; });
    if (!slices) return;
    Visit(mig_.empty());
    AddSlices(mig_.empty(), sum);
    table_.fresh_ = MeanOf(sum);
  }

 private:
  struct Sum {
    int64_t waste = 0;
    int64_t weight = 0;
  };

  Sum Stop(int64_t left) const { return {gpu_weight_ * left * kMilli, gpu_weight_}; }
  static int64_t MeanOf(const Sum& sum) { return sum.waste / std::max<int64_t>(sum.weight, 1); }

  void Add(const ModelDemand& d, int64_t waste_after, Sum& sum) const {
    sum.weight += pods_before_stop_ * d.weight;
    sum.waste += pods_before_stop_ * d.weight * waste_after;
  }

  void AddShares(int64_t left, Sum& sum) const {
    for (const ModelDemand& d : demand_) {
      if (d.share > 0 && d.share <= left) {
        Add(d, table_.shared_[static_cast<size_t>(left - d.share)], sum);
      }
    }
  }

  void AddSlices(LayoutKey key, Sum& sum) {
    for (const ModelDemand& d : demand_) {
      if (d.share > 0 || d.profile < 0) continue;
      const std::optional<int> start = mig_.BestStart(key, d.profile);
      if (start) Add(d, OfLayout(mig_.Add(key, d.profile, *start)), sum);
    }
  }

  int64_t OfLayout(LayoutKey key) {
    const auto known = table_.layouts_.find(Code(key));
    if (known != table_.layouts_.end()) return known->second;
    Sum sum = Stop(PartLeft(key, mig_));
    AddSlices(key, sum);
    const int64_t waste = MeanOf(sum);
    table_.layouts_.emplace(Code(key), waste);
    return waste;
  }

  // Every layout that can come about, whoever chose the starts.
  void Visit(LayoutKey key) {
    if (!visited_.insert(Code(key)).second) return;
    OfLayout(key);
    for (int p = 0; p < static_cast<int>(mig_.model().profiles.size()); ++p) {
      for (int start : mig_.model().profiles[static_cast<size_t>(p)].starts) {
        if (mig_.CanPlace(key, p, start)) Visit(mig_.Add(key, p, start));
      }
    }
  }

  std::vector<ModelDemand> demand_;
  const int64_t gpu_weight_;
  const int64_t pods_before_stop_;
  const MigTables& mig_;
  WasteTable& table_;
  std::set<uint32_t> visited_;
};

WasteTable::WasteTable(std::vector<ModelDemand> demand, int64_t gpu_weight,
                       int64_t pods_before_stop, const MigTables& mig) {
  Builder(std::move(demand), gpu_weight, pods_before_stop, mig, *this).Run();
}

int64_t WasteTable::WasteOf(const DeviceRoom& device) const {
  if (device.left == 0) return 0;
  if (device.whole) return device.profiles != 0 ? fresh_ : free_;
  if (device.shares) return shared_[static_cast<size_t>(device.left)];
  const auto layout = layouts_.find(Code(device.held));
  return layout != layouts_.end() ? layout->second : device.left * kMilli;
}

Foresight::Foresight(const Snapshot& snapshot, const DemandMix& mix,
                     const ForesightWeights& weights)
    : weights_(weights),
      measure_(mix, snapshot.num_models()),
      scarcity_(ScarcityOf(snapshot, mix)),
      cpu_per_device_(CpuPerDevice(snapshot, mix) * weights.cpu_rate_percent / 100) {
  int64_t gpu_weight = 0;
  for (const DemandShape& shape : mix.shapes) {
    if (shape.kind != GpuRequestKind::kNone) gpu_weight += shape.weight;
  }
  for (int m = 0; m < snapshot.num_models(); ++m) {
    waste_.emplace_back(DemandOn(mix, ModelId(m)), gpu_weight, weights.pods_before_stop,
                        snapshot.mig(ModelId(m)));
  }
}

int64_t Foresight::WasteOf(const NodeRoom& room) const {
  if (!room.model.valid()) return 0;
  const WasteTable& table = waste_[static_cast<size_t>(room.model.value())];
  int64_t waste = 0;
  for (const DeviceRoom& device : room.devices()) waste += table.WasteOf(device);
  return waste;
}

// T C / (C + r T): T of the devices are left, C is the CPU, r the CPU that one needs.
int64_t Foresight::UsableOf(const NodeRoom& room) const {
  const int64_t left = room.left();
  const int64_t cpu = std::min(room.cpu, kMaxCpu);
  const int64_t needed = cpu_per_device_ * left / kGpuUnitsPerDevice;
  return left == 0 || needed == 0 ? left * kMilli : left * kMilli * cpu / (cpu + needed);
}

int64_t Foresight::FragmentsOf(const NodeRoom& room) const {
  return measure_.FragmentsOf(room) * kMilli / std::max<int64_t>(measure_.total_weight(), 1);
}

int64_t Foresight::Score(const ClusterState& state, const RequestClass& request,
                         const Candidate& candidate) const {
  const NodeRoom before = RoomOf(state, candidate.node);
  if (!before.model.valid()) return 0;
  const NodeRoom after = RoomAfter(state, before, request, candidate);
  const int64_t taken = before.left() - after.left();
  const int64_t loss = weights_.waste * (WasteOf(after) - WasteOf(before)) +
                       weights_.balance * (UsableOf(before) - UsableOf(after)) +
                       weights_.fragments * (FragmentsOf(after) - FragmentsOf(before)) +
                       weights_.scarcity * scarcity(before.model) * taken;
  return -FloorDiv(loss, weights_.step_milli * kGpuUnitsPerDevice);
}

}  // namespace tessera
