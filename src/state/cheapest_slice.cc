// The price of slices on one node.

#include <bit>

#include "tessera/state/cluster_state.h"

namespace tessera {
namespace {

// The offers of one GPU for the slices that a pod accepts.
class Offers {
 public:
  Offers(const MigTables& mig, const SliceCostTable& costs, const GpuState& gpu,
         const InstanceRow& row, int g)
      : mig_(mig),
        costs_(costs),
        gpu_(gpu),
        row_(row),
        g_(g),
        fresh_(gpu.is_fresh()),
        open_(gpu.mig == MigMode::kDynamic && gpu.busy_starts != 0),
        idle_(gpu.exist_starts & static_cast<uint16_t>(~gpu.busy_starts)) {}

  void Collect(const ModelFit& fit, std::optional<SlicePlacement>& best) const {
    int64_t base = fresh_ ? costs_.costs().open : 0;
    for (size_t t = 0; t < fit.tiers.size(); ++t, base += kCostOfTier) {
      for (uint32_t idle = idle_; idle != 0; idle &= idle - 1) {
        Idle(fit.tiers[t], std::countr_zero(idle), base, best);
      }
      if (!fresh_ && !open_) continue;
      for (uint32_t p = fit.tiers[t]; p != 0; p &= p - 1) {
        Carve(std::countr_zero(p), base, best);
      }
    }
  }

 private:
  static void Offer(const SlicePlacement& place, std::optional<SlicePlacement>& best) {
    if (!best || place < *best) best = place;
  }

  void Idle(uint32_t tier, int start, int64_t base, std::optional<SlicePlacement>& best) const {
    const int profile = row_[static_cast<size_t>(start)];
    if (((tier >> profile) & 1) == 0) return;
    const int64_t score = gpu_.mig == MigMode::kDynamic ? costs_.ScoreOf(gpu_.busy, profile, start)
                                                        : costs_.FixedScore(profile);
    Offer({base + score, SliceSource::kIdle, g_, start, profile}, best);
  }

  void Carve(int profile, int64_t base, std::optional<SlicePlacement>& best) const {
    base += costs_.costs().create + (gpu_.mig_enabled ? 0 : costs_.costs().set_mig);
    const SliceSource source = open_ ? SliceSource::kOpen : SliceSource::kFresh;
    if (idle_ == 0) {
      const SliceCostTable::Best& cheapest = costs_.BestOf(gpu_.busy, profile);
      if (cheapest.start < 0) return;
      return Offer({base + cheapest.score, source, g_, cheapest.start, profile}, best);
    }
    for (uint32_t s = mig_.LegalStarts(gpu_.busy, profile); s != 0; s &= s - 1) {
      const int start = std::countr_zero(s);
      // What is there already needs no carving.
      if (((idle_ >> start) & 1) != 0 && row_[static_cast<size_t>(start)] == profile) continue;
      const int64_t cost = base + costs_.ScoreOf(gpu_.busy, profile, start) +
                           InTheWay({profile, start}) * costs_.costs().destroy;
      Offer({cost, source, g_, start, profile}, best);
    }
  }

  int64_t InTheWay(const Instance& wanted) const {
    int64_t count = 0;
    for (uint32_t idle = idle_; idle != 0; idle &= idle - 1) {
      const int start = std::countr_zero(idle);
      count += Overlap(mig_.model(), wanted, {row_[static_cast<size_t>(start)], start}) ? 1 : 0;
    }
    return count;
  }

  const MigTables& mig_;
  const SliceCostTable& costs_;
  const GpuState& gpu_;
  const InstanceRow& row_;
  const int g_;
  const bool fresh_, open_;
  const uint16_t idle_;
};

}  // namespace

std::optional<SlicePlacement> ClusterState::CheapestSlice(NodeId n, const ModelFit& fit,
                                                          uint64_t gpus) const {
  const ModelId m = snapshot().node_model(n);
  const SliceCostTable* costs = tables_->slice_costs(m);
  std::optional<SlicePlacement> best;
  if (costs == nullptr) return best;
  for (int g = 0; g < tables_->num_gpus(n); ++g) {
    const GpuState& state = gpu(n, g);
    if (((gpus >> g) & 1) == 0 || !state.serves_slices()) continue;
    Offers(snapshot().mig(m), *costs, state, instances(n, g), g).Collect(fit, best);
  }
  return best;
}

}  // namespace tessera
