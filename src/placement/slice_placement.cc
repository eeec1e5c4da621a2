#include "tessera/placement/slice_placement.h"

#include <bit>
#include <tuple>

namespace tessera {
namespace {

// Where a carved instance comes from, in the order of preference; an idle
// instance is always rank 0.
int RankOf(const GpuState& gpu, DevicePreference preference) {
  const bool open = gpu.busy_starts != 0;
  if (open) return preference == DevicePreference::kPack ? 1 : 4;
  return gpu.mig_enabled ? 2 : 3;
}

// The best place so far.
class Best {
 public:
  void Offer(int rank, const SlicePlacement& place) {
    const auto key = std::tuple(rank, place.loss, place.gpu, place.start);
    if (found_ && key_ <= key) return;
    found_ = place;
    key_ = key;
  }
  const std::optional<SlicePlacement>& found() const { return found_; }

 private:
  std::optional<SlicePlacement> found_;
  std::tuple<int, int, int, int> key_;
};

}  // namespace

std::optional<SlicePlacement> PlaceSlice(const ClusterState& state, NodeId n, int profile,
                                         DevicePreference preference, uint64_t gpus) {
  const MigTables& mig = state.snapshot().mig(state.snapshot().node_model(n));
  Best best;
  for (int g = 0; g < state.tables().num_gpus(n); ++g) {
    const GpuState& gpu = state.gpu(n, g);
    if (((gpus >> g) & 1) == 0 || !gpu.serves_slices()) continue;
    for (uint32_t idle = gpu.exist_starts & ~gpu.busy_starts; idle != 0; idle &= idle - 1) {
      const int start = std::countr_zero(idle);
      if (state.instances(n, g)[static_cast<size_t>(start)] != profile) continue;
      best.Offer(0, {g, start, SliceSource::kIdle, mig.Loss(gpu.busy, profile, start)});
    }
    const bool open = gpu.mig == MigMode::kDynamic && gpu.busy_starts != 0;
    if (!open && !gpu.is_fresh()) continue;
    const std::optional<int> start = mig.BestStart(gpu.busy, profile);
    if (!start) continue;
    best.Offer(RankOf(gpu, preference), {g, *start, open ? SliceSource::kOpen : SliceSource::kFresh,
                                         mig.Loss(gpu.busy, profile, *start)});
  }
  return best.found();
}

}  // namespace tessera
