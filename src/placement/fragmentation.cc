#include "tessera/placement/fragmentation.h"

#include <algorithm>

#include "absl/numeric/int128.h"

namespace tessera {
namespace {

// ln(k / (100 - k)) for k from 50 to 99, times 10^9: where 100 / (1 + exp(-d)) reaches
// k. Below 50 the curve is the same, mirrored.
constexpr int64_t kScale = 1000000000;
constexpr std::array<int64_t, 50> kSteps = {
    0,          40005335,   80042708,   120144312,  160342650,  200670695,  241162057,  281851152,
    322773392,  363965377,  405465108,  447312218,  489548225,  532216814,  575364145,  619039208,
    663294217,  708185058,  753771802,  800119300,  847297860,  895384047,  944461609,  994622575,
    1045968555, 1098612289, 1152679510, 1208311206, 1265666373, 1324925415, 1386294361, 1450010176,
    1516347489, 1585627264, 1658228077, 1734601055, 1815289967, 1900958761, 1992430165, 2090741097,
    2197224577, 2313634929, 2442347035, 2586689344, 2751535313, 2944438979, 3178053830, 3476098690,
    3891820298, 4595119850};

bool Serves(const DeviceRoom& device, const ModelDemand& demand) {
  if (demand.share > 0) return device.shares && device.left >= demand.share;
  if (demand.profile >= 0) return (device.profiles & demand.profiles) != 0;
  return device.whole;
}

// The least integer that is not below value * weight * 7000 / 10^9.
int64_t StepUp(int64_t value, int64_t weight) {
  const absl::int128 exact = absl::int128(value) * weight * kGpuUnitsPerDevice;
  const absl::int128 down = exact / kScale;  // towards zero
  return static_cast<int64_t>(down) + (exact > 0 && down * kScale != exact ? 1 : 0);
}

}  // namespace

FragmentMeasure::FragmentMeasure(const DemandMix& mix, int num_models)
    : total_weight_(mix.total_weight()) {
  for (int m = 0; m < num_models; ++m) {
    ModelShapes& of = models_.emplace_back();
    of.shapes = DemandOn(mix, ModelId(m));
    of.hopeless = total_weight_;
    for (const ModelDemand& shape : of.shapes) of.hopeless -= shape.weight;
  }
}

int64_t FragmentMeasure::FragmentsOf(const NodeRoom& room) const {
  if (!room.model.valid()) return 0;
  const ModelShapes& of = models_[static_cast<size_t>(room.model.value())];
  const int64_t left = room.left();
  int64_t fragments = of.hopeless * left;
  for (const ModelDemand& shape : of.shapes) {
    int serving = 0;
    int64_t usable = 0;
    for (const DeviceRoom& device : room.devices()) {
      if (!Serves(device, shape)) continue;
      ++serving;
      usable += device.left;
    }
    const bool fits = serving >= shape.devices && room.cpu >= shape.cpu;
    fragments += shape.weight * (fits ? left - usable : left);
  }
  return fragments;
}

FragmentationGradientDescent::FragmentationGradientDescent(const DemandMix& mix, int num_models)
    : measure_(mix, num_models) {
  for (int k = 1; k < 100; ++k) {
    const int64_t step = kSteps[static_cast<size_t>(k < 50 ? 50 - k : k - 50)];
    steps_[static_cast<size_t>(k - 1)] = StepUp(k < 50 ? -step : step, measure_.total_weight());
  }
}

int64_t FragmentationGradientDescent::ScoreOf(int64_t fragments) const {
  return std::ranges::upper_bound(steps_, fragments) - steps_.begin();
}

int64_t FragmentationGradientDescent::Score(const ClusterState& state, const RequestClass& request,
                                            const Candidate& candidate) const {
  const NodeRoom before = RoomOf(state, candidate.node);
  const NodeRoom after = RoomAfter(state, before, request, candidate);
  return ScoreOf(measure_.FragmentsOf(before) - measure_.FragmentsOf(after));
}

}  // namespace tessera
