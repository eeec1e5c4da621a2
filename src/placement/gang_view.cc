#include "src/placement/gang_view.h"

#include <algorithm>
#include <numeric>

namespace tessera {

PodSetId GangView::FirstSet(int g) const {
  while (!at(g).is_pod_set()) g = at(g).first_child;
  return set_id(g);
}

bool GangView::Holds(int g) const {
  if (at(g).is_pod_set()) return Standing(g) >= set(g).min_count;
  int holding = 0;
  for (int c = first_child(g); c < end_child(g); ++c) {
    if (at(c).after < 0 && Holds(c)) ++holding;
  }
  return holding >= at(g).min_children;
}

std::pair<int64_t, int64_t> GangView::Filled(int g) const {
  if (at(g).is_pod_set()) return {Standing(g), set(g).count};
  std::pair<int64_t, int64_t> sum{0, 0};
  for (int c = first_child(g); c < end_child(g); ++c) {
    const std::pair<int64_t, int64_t> below = Filled(c);
    sum.first += below.first;
    sum.second += below.second;
  }
  return sum;
}

NodeRange GangView::Occupied(int g) const {
  NodeRange range{snapshot_.num_nodes(), 0};
  const auto extend = [&range](NodeRange more) {
    if (more.empty()) return;
    range.begin = std::min(range.begin, more.begin);
    range.end = std::max(range.end, more.end);
  };
  if (!at(g).is_pod_set()) {
    for (int c = first_child(g); c < end_child(g); ++c) extend(Occupied(c));
    return range;
  }
  for (int i = 0; i < set(g).count; ++i) {
    const NodeId n = state_.placement(set(g).pod(i)).node;
    if (n.valid()) extend({n.value(), n.value() + 1});
  }
  return range;
}

int64_t GangView::GpusLacking(int g) const {
  if (at(g).is_pod_set()) {
    if (gpu(g).kind != GpuRequestKind::kWhole) return 0;
    return int64_t{std::max(set(g).min_count - Standing(g), 0)} * gpu(g).devices;
  }
  std::vector<int64_t> lacking;
  int holding = 0;
  for (int c = first_child(g); c < end_child(g); ++c) {
    if (at(c).after >= 0) continue;
    if (Holds(c)) {
      ++holding;
    } else {
      lacking.push_back(GpusLacking(c));
    }
  }
  // The cheapest children that could still make up the minimum.
  const size_t missing = static_cast<size_t>(std::max(at(g).min_children - holding, 0));
  if (missing > lacking.size()) return 0;
  std::ranges::sort(lacking);
  return std::accumulate(lacking.begin(), lacking.begin() + static_cast<ptrdiff_t>(missing),
                         int64_t{0});
}

int GangView::Difficulty(int g) const {
  if (!at(g).is_pod_set()) {
    int hardest = 0;
    for (int c = first_child(g); c < end_child(g); ++c) hardest = std::max(hardest, Difficulty(c));
    return hardest;
  }
  // Bands wide enough for the number of devices and the size of a slice.
  constexpr int kFractionBand = 1, kSliceBand = 2, kWholeBand = kSliceBand + 64;
  if (gpu(g).kind == GpuRequestKind::kWhole) return kWholeBand + gpu(g).devices;
  if (!gpu(g).is_slice()) return gpu(g).is_shared() ? kFractionBand : 0;
  int largest = 0;
  const std::vector<ModelFit>& models = snapshot_.request_class(set(g).request_class).models;
  for (size_t m = 0; m < models.size(); ++m) {
    if (!models[m].fits) continue;
    const GpuModel& model = snapshot_.model(ModelId(static_cast<int32_t>(m)));
    largest = std::max(largest, model.profiles[static_cast<size_t>(models[m].profile)].size);
  }
  return kSliceBand + largest;
}

}  // namespace tessera
