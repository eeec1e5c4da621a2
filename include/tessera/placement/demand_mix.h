#ifndef TESSERA_PLACEMENT_DEMAND_MIX_H_
#define TESSERA_PLACEMENT_DEMAND_MIX_H_

// What pods are expected to come: the yardstick of scorers that look ahead.

#include <cstdint>
#include <vector>

#include "tessera/cluster/request_class.h"
#include "tessera/cluster/snapshot.h"

namespace tessera {

// Pods of one kind, as far as scorers that look ahead can tell them apart.
struct DemandShape {
  int64_t weight = 0;  // how often it comes, relative to the others
  int64_t cpu = 0;     // millicores
  GpuRequestKind kind = GpuRequestKind::kNone;
  int devices = 0;
  std::vector<ModelFit> models;  // by ModelId; empty without GPU

  friend bool operator==(const DemandShape&, const DemandShape&) = default;
};

struct DemandMix {
  std::vector<DemandShape> shapes;  // heaviest first

  int64_t total_weight() const {
    int64_t total = 0;
    for (const DemandShape& shape : shapes) total += shape.weight;
    return total;
  }

  friend bool operator==(const DemandMix&, const DemandMix&) = default;
};

// The shapes of all pods of the snapshot, running, pending or ended, counted; of them
// the most frequent that together make up at least `percent` of the pods, in order of
// count, then of request class. Memory, other resources, selectors and tolerations are
// left out: shapes that differ in these alone are one. (FGD does the same: Weng et al.,
// USENIX ATC '23, count to 95 %.) O(pod sets * shapes).
DemandMix MixOf(const Snapshot& snapshot, int percent = 95);

// One shape as GPUs of one model see it.
struct ModelDemand {
  int64_t weight = 0;
  int64_t cpu = 0;
  int devices = 0;
  int32_t share = 0;      // above zero: of each device; else a slice, or whole devices
  int profile = -1;       // of a slice: the one asked for first
  uint32_t profiles = 0;  // of a slice, whichever serves: bit p = profile p
};

// The GPU shapes of `mix` that may run on `model`, in order of the mix.
std::vector<ModelDemand> DemandOn(const DemandMix& mix, ModelId model);

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_DEMAND_MIX_H_
