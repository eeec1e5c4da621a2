#ifndef TESSERA_PLACEMENT_FRAGMENTATION_H_
#define TESSERA_PLACEMENT_FRAGMENTATION_H_

// How much of what is left of a node's GPUs the expected pods cannot use, and the
// scorer that follows its gradient (FGD: Weng et al., "Beware of Fragmentation",
// USENIX ATC '23).

#include <array>
#include <cstdint>
#include <vector>

#include "tessera/placement/demand_mix.h"
#include "tessera/placement/node_room.h"
#include "tessera/placement/node_scorer.h"

namespace tessera {

// The fragments of a node, for one mix:
//
//   F(node) = sum over shapes m of weight(m) x F(node, m)
//   F(node, m) = all that is left, if m uses no GPU, may not run on the model, asks for
//                more CPU than is free, or for more devices than can serve it;
//                else what is left of the devices that cannot serve it.
//
// As published, and beyond it: whole GPUs, fractions and MIG slices count alike, by
// what is left of a device as a part of it, so one cluster may mix them. Memory stays
// out, as published.
class FragmentMeasure {
 public:
  // `num_models` of the snapshot that the mix belongs to.
  FragmentMeasure(const DemandMix& mix, int num_models);

  // In 1/7000 device times weight. O(shapes * devices).
  int64_t FragmentsOf(const NodeRoom& room) const;

  int64_t total_weight() const { return total_weight_; }

 private:
  struct ModelShapes {
    std::vector<ModelDemand> shapes;
    int64_t hopeless = 0;  // weight of all other shapes
  };

  std::vector<ModelShapes> models_;
  int64_t total_weight_ = 0;
};

// FGD as published: a place is worth floor(100 / (1 + exp(-d))), d the fragments that
// it avoids (F before - F after), in devices; the best device of a node counts, ties:
// the lowest. Exact: the 99 steps of the curve are compared as integers.
//
// Its floor makes places tie that differ by less than about 0.04 devices, and its
// quality depends on that: untruncated it allocates two per cent of the GPUs less.
class FragmentationGradientDescent {
 public:
  static constexpr bool kEveryDevice = true;

  FragmentationGradientDescent(const DemandMix& mix, int num_models);

  int64_t Score(const ClusterState& state, const RequestClass& request,
                const Candidate& candidate) const;

  // The score of avoiding `fragments`, 1/7000 device times weight; 0 to 99.
  int64_t ScoreOf(int64_t fragments) const;

 private:
  FragmentMeasure measure_;
  std::array<int64_t, 99> steps_;  // the least fragments for a score of 1, 2, ...
};

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_FRAGMENTATION_H_
