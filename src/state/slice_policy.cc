#include "tessera/state/slice_policy.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "tessera/gpu/enumerate.h"

namespace tessera {
namespace {

int64_t Weight(int64_t stated) { return std::clamp<int64_t>(stated, 0, kMaxDemandWeight); }

// Pods of a set that ask for a place or hold one.
int64_t Asking(const Snapshot& snapshot, const PodSetInfo& set) {
  int64_t pods = 0;
  for (int i = 0; i < set.count; ++i) pods += IsOver(snapshot.pod_phase(set.pod(i))) ? 0 : 1;
  return pods;
}

// The gradient in `kWorthOfEmptyGpu`ths.
struct NormalGradient {
  FragmentationGradient gradient;
  int64_t whole = 0;  // what being free is worth, in the gradient's unit

  int64_t Normal(int64_t worth, const MigTables& tables) const {
    const absl::int128 all = absl::int128{gradient.Worth(tables.empty())} + whole;
    return all == 0 ? 0 : static_cast<int64_t>(absl::int128{worth} * kWorthOfEmptyGpu / all);
  }
};

NormalGradient GradientOf(const MigTables& tables, const SliceDemand& demand) {
  const GpuModel& model = tables.model();
  std::vector<int64_t> mix;
  int64_t total = 0;
  for (const MigProfile& profile : model.profiles) {
    const auto it = demand.profiles.find(profile.name);
    mix.push_back(it == demand.profiles.end() ? 0 : Weight(it->second));
    total += mix.back();
  }
  // As the gradient weighs a profile: half by the mix, half like all others.
  const int64_t plain = std::popcount(PlainProfiles(model));
  const int64_t weight = plain * Weight(demand.whole) + std::max<int64_t>(total, 1);
  return {*FragmentationGradient::Create(tables, mix, "demand"),
          weight * model.units * model.units};
}

}  // namespace

SliceDemand EstimateSliceDemand(const Snapshot& snapshot, ModelId m) {
  SliceDemand demand;
  for (int s = 0; s < snapshot.num_pod_sets(); ++s) {
    const PodSetInfo& set = snapshot.pod_set(PodSetId(s));
    const RequestClass& request = snapshot.request_class(set.request_class);
    const bool whole = request.gpu.kind == GpuRequestKind::kWhole;
    if (!whole && !request.gpu.is_slice()) continue;
    const ModelFit& fit = request.models[static_cast<size_t>(m.value())];
    if (!fit.fits) continue;
    const int64_t pods = Asking(snapshot, set);
    if (whole) {
      demand.whole += pods * request.gpu.devices;
    } else {
      demand.profiles[snapshot.model(m).profiles[static_cast<size_t>(fit.profile)].name] += pods;
    }
  }
  return demand;
}

SliceCostTable MakeSliceCostTable(const Snapshot& snapshot, ModelId m, const SlicePolicy& policy) {
  const MigTables& tables = snapshot.mig(m);
  SliceCosts costs = {policy.open.value_or(0), policy.set_mig, policy.create, policy.destroy};
  std::vector<int64_t> fixed(tables.model().profiles.size(), 0);
  if (policy.score) {
    const auto score = [tables, by = policy.score](LayoutKey before, int profile, int start) {
      return by(tables, before, profile, start);
    };
    return SliceCostTable(tables, score, std::move(fixed), costs);
  }
  const auto stated = policy.demand.find(tables.model().name);
  const auto gradient = std::make_shared<const NormalGradient>(GradientOf(
      tables, stated != policy.demand.end() ? stated->second : EstimateSliceDemand(snapshot, m)));
  for (size_t p = 0; p < fixed.size(); ++p) {
    fixed[p] = gradient->Normal(gradient->gradient.RoomWorth(static_cast<int>(p)), tables);
  }
  if (!policy.open) costs.open = gradient->Normal(gradient->whole, tables);
  const auto score = [tables, gradient](LayoutKey before, int profile, int start) {
    return gradient->Normal(gradient->gradient.Score(tables, before, profile, start), tables);
  };
  return SliceCostTable(tables, score, std::move(fixed), costs);
}

}  // namespace tessera
