#include "tessera/placement/demand_mix.h"

#include <algorithm>

namespace tessera {

DemandMix MixOf(const Snapshot& snapshot, int percent) {
  DemandMix mix;
  int64_t pods = 0;
  std::vector<int64_t> counts(static_cast<size_t>(snapshot.num_request_classes()));
  for (int s = 0; s < snapshot.num_pod_sets(); ++s) {
    const PodSetInfo& set = snapshot.pod_set(PodSetId(s));
    counts[static_cast<size_t>(set.request_class.value())] += set.count;
    pods += set.count;
  }
  for (int c = 0; c < snapshot.num_request_classes(); ++c) {
    const RequestClass& request = snapshot.request_class(RequestClassId(c));
    DemandShape shape{0, request.need[kCpu], request.gpu.kind, request.gpu.devices, request.models};
    const auto same = std::ranges::find_if(mix.shapes, [&shape](const DemandShape& other) {
      shape.weight = other.weight;
      return shape == other;
    });
    shape.weight = counts[static_cast<size_t>(c)];
    if (same != mix.shapes.end()) {
      same->weight += shape.weight;
    } else {
      mix.shapes.push_back(std::move(shape));
    }
  }
  std::ranges::stable_sort(mix.shapes, std::ranges::greater(), &DemandShape::weight);
  size_t kept = 0;
  for (int64_t covered = 0; kept < mix.shapes.size() && covered * 100 < percent * pods; ++kept) {
    covered += mix.shapes[kept].weight;
  }
  mix.shapes.resize(kept);
  return mix;
}

std::vector<ModelDemand> DemandOn(const DemandMix& mix, ModelId model) {
  std::vector<ModelDemand> demand;
  for (const DemandShape& shape : mix.shapes) {
    if (shape.kind == GpuRequestKind::kNone) continue;
    const ModelFit& fit = shape.models[static_cast<size_t>(model.value())];
    if (!fit.fits) continue;
    demand.push_back({shape.weight, shape.cpu, std::max(shape.devices, 1),
                      static_cast<int32_t>(fit.share), fit.profile, fit.accepted()});
  }
  return demand;
}

}  // namespace tessera
