#include "src/placement/short_of.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "src/placement/device_packing.h"
#include "tessera/placement/near_miss.h"

namespace tessera {
namespace {

// Pods of `set` that the devices of `n` take if those are all that counts.
int64_t ByDevices(const ClusterState& state, const PodSetInfo& set, NodeId n) {
  const Snapshot& snapshot = state.snapshot();
  const ModelId model = snapshot.node_model(n);
  const DeviceNeed need = NeedOn(snapshot, snapshot.request_class(set.request_class), model);
  const Isolation isolation = snapshot.workload(set.workload).isolation;
  const DevicePool pool = PoolOf(state, n, snapshot.info(set.workload).tenant, isolation);
  int64_t count = 0;
  for (const Device& d : pool.devices) {
    if (need.kind == DeviceNeed::kWhole) count += d.free ? 1 : 0;
    if (need.kind == DeviceNeed::kShare) count += d.room / need.share;
    int slices = 0;  // of the profile that fits most often
    for (uint32_t rest = d.carvable ? need.profiles : 0; rest != 0; rest &= rest - 1) {
      slices = std::max(slices, snapshot.mig(model).Capacity(d.key, std::countr_zero(rest)));
    }
    count += slices;
  }
  for (const Instance& idle : pool.idle) count += (need.profiles >> idle.profile) & 1;
  return count / std::max(need.devices, 1);
}

// Pods of `s` that the nodes of `range` take by one measure at a time.
class Measures {
 public:
  Measures(const ClusterState& state, PodSetId s, NodeRange range)
      : state_(state),
        tables_(state.tables()),
        s_(s),
        set_(state.snapshot().pod_set(s)),
        need_(tables_.need(set_.request_class)),
        amounts_(tables_.node_resources().size()) {
    const GpuRequest& gpu = state.snapshot().request_class(set_.request_class).gpu;
    asks_gpu_ = gpu.kind != GpuRequestKind::kNone;
    for (int i = range.begin; i < range.end; ++i) {
      const NodeId n(i);
      const Eligibility may = tables_.eligibility(set_.request_class, tables_.signature_of(n));
      if (may == Eligibility::kEligible) Add(n);
    }
  }

  // The one by which they take the fewest, as `Shortfall::short_of`.
  int Least() const {
    int least_of = asks_gpu_ ? kGpu : kPods;
    int64_t least = asks_gpu_ ? devices_ : INT64_MAX;
    for (size_t r = 0; r < amounts_.size(); ++r) {
      if (need_[r] <= 0 || amounts_[r] >= least) continue;
      least = amounts_[r];
      least_of = tables_.node_resources()[r];
    }
    return own_ < least && set_.is_spread() ? Shortfall::kOwnBound : least_of;
  }

 private:
  void Add(NodeId n) {
    if (asks_gpu_) devices_ += ByDevices(state_, set_, n);
    for (size_t r = 0; r < amounts_.size(); ++r) {
      if (need_[r] <= 0) continue;
      amounts_[r] += std::max<int64_t>(state_.free_amount(n, static_cast<int>(r)), 0) / need_[r];
    }
    if (set_.is_spread()) AddOwn(n);
  }

  // What the bounds of the set leave; nodes come domain by domain.
  void AddOwn(NodeId n) {
    const int on_node = state_.LeftOn(n, s_);
    if (set_.max_per_domain == 0) {
      own_ += on_node;
      return;
    }
    const DomainId d = state_.snapshot().topology().domain_of(n, set_.domain_level);
    if (d != domain_) left_in_domain_ = state_.LeftIn(d, s_);
    domain_ = d;
    own_ += std::min(on_node, left_in_domain_);
    left_in_domain_ -= std::min(on_node, left_in_domain_);
  }

  const ClusterState& state_;
  const StateTables& tables_;
  const PodSetId s_;
  const PodSetInfo& set_;
  const std::span<const int64_t> need_;
  bool asks_gpu_ = false;
  int64_t devices_ = 0;
  std::vector<int64_t> amounts_;  // by `StateTables::node_resources()`
  int64_t own_ = 0;
  DomainId domain_;
  int left_in_domain_ = 0;
};

}  // namespace

int ShortOf(const ClusterState& state, PodSetId s, NodeRange range) {
  return Measures(state, s, range).Least();
}

}  // namespace tessera
