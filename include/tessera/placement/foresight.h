#ifndef TESSERA_PLACEMENT_FORESIGHT_H_
#define TESSERA_PLACEMENT_FORESIGHT_H_

// Tessera's own scorer. On the public trace of FGD's authors it leaves less of the GPUs
// unallocated than FGD does, on all four variants tried (`./dev fgd-study`).
//
// What works, with the GPUs that it gains, in per cent of all:
// 1. Scarce models (+6 where a third of the pods name theirs). A device costs in
//    proportion to how much of its model constrained pods will ask for. To FGD they
//    are a few shapes among many.
// 2. Balance of CPU and GPU (+0.2 to +0.6). Pods hungry for CPU belong where there is much
//    of it per GPU. What a node can still use is the harmonic sum of its GPUs and of the
//    GPUs that its CPU can feed at the rate of the mix; losing that has a price. FGD
//    leaves GPUs without CPU on some nodes and CPU without GPUs on others.
// 3. Looking to the end rather than one pod ahead (+0.1 to +0.8, the more fractions). FGD
//    asks what the *next* pod cannot use. This asks what will be lost of a device in
//    the end: the expected waste of one that goes on taking random pods of the mix that
//    fit until pods stop coming. So 650 beside 320 (30 lost) is told from 650 beside
//    230 (120 that hardly anything will fill). A table per GPU model; MIG layouts have
//    their entries, too, so a free device is worth what either kind can make of it.
// 4. A little of FGD's gradient, which keeps whole nodes for pods of many GPUs.
// 5. Coarse steps, and ties to the lowest node: smaller differences are noise, and
//    falling to one side packs.
//
// What did not help: finer steps; choosing the pods of item 3 by how well they fill; small
// nodes first in ties.

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/placement/demand_mix.h"
#include "tessera/placement/fragmentation.h"
#include "tessera/placement/node_room.h"
#include "tessera/placement/node_scorer.h"

namespace tessera {

// Weights of the parts, and the step in which their sum counts; never negative, the step
// above zero. Found by a search on other arrivals than the study's.
struct ForesightWeights {
  int64_t waste = 60;        // of expected waste
  int64_t balance = 3;       // of room usable with the CPU at hand
  int64_t fragments = 2;     // of FGD's fragments
  int64_t scarcity = 7;      // of a device whose model is asked for by name alone
  int64_t step_milli = 400;  // of the weighted sum
  // A device stops taking pods with 1/81: one stop for 80 GPU pods.
  int64_t pods_before_stop = 80;
  int64_t cpu_rate_percent = 70;  // of the mix's CPU per GPU that a GPU is held to need

  friend bool operator==(const ForesightWeights&, const ForesightWeights&) = default;
};

// The expected waste of devices of one model, in 1/1000 of 1/7000 device: how much
// nobody will hold once pods have stopped coming.
//
//   waste(d) = (left(d) + s x sum of p(m) x waste(d with m)) / (1 + s x sum of p(m))
//
// over the GPU shapes m that fit on d alone; p their probabilities among all GPU shapes
// of the mix, s the pods before a stop. Slices go where `MigTables::BestStart` puts
// them, as if idle instances did not exist.
class WasteTable {
 public:
  // `demand` on the model; `gpu_weight` of all GPU shapes, on whichever model.
  // O(7000 * shapes + layouts of the model * shapes).
  WasteTable(std::vector<ModelDemand> demand, int64_t gpu_weight, int64_t pods_before_stop,
             const MigTables& mig);

  // O(1).
  int64_t WasteOf(const DeviceRoom& device) const;

 private:
  class Builder;

  std::vector<int64_t> shared_;                     // by what is left of a shared device
  absl::flat_hash_map<uint32_t, int64_t> layouts_;  // by what slices hold of a device
  int64_t free_ = 0;                                // of a free device without slices
  int64_t fresh_ = 0;                               // of one that may take slices, too
};

// The scorer: minus the weighted sum of what a placement makes worse, in steps.
class Foresight {
 public:
  static constexpr bool kEveryDevice = true;

  // `snapshot` says which models the cluster has and how many; it is not kept. The mix is
  // of its models, its weights sum to at most 10^9.
  Foresight(const Snapshot& snapshot, const DemandMix& mix, const ForesightWeights& weights = {});

  int64_t Score(const ClusterState& state, const RequestClass& request,
                const Candidate& candidate) const;

  // The parts, for tests and explanations; 1/1000 of 1/7000 device.
  int64_t WasteOf(const NodeRoom& room) const;
  int64_t UsableOf(const NodeRoom& room) const;
  int64_t FragmentsOf(const NodeRoom& room) const;
  // How much of `model` is asked for by name, per mille of what there is; at most 1000.
  int64_t scarcity(ModelId model) const { return scarcity_[static_cast<size_t>(model.value())]; }
  // Millicores that a device is held to need.
  int64_t cpu_per_device() const { return cpu_per_device_; }

 private:
  ForesightWeights weights_;
  FragmentMeasure measure_;
  std::vector<WasteTable> waste_;  // by model
  std::vector<int64_t> scarcity_;  // by model
  int64_t cpu_per_device_ = 0;
};

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_FORESIGHT_H_
