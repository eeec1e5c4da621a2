#ifndef TESSERA_TESTS_PLACEMENT_BRUTE_FORCE_H_
#define TESSERA_TESTS_PLACEMENT_BRUTE_FORCE_H_

// Whether a gang's minimum fits, by trying every place of every pod. For a handful
// of nodes and pods: what it has seen fail it does not try twice, nothing more.

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/placement/pod_query.h"

namespace tessera {

// Permits so many devices, slices or fractions of each GPU model.
class ModelQuota : public Account {
 public:
  ModelQuota(const Snapshot& snapshot, std::vector<int> quota)
      : snapshot_(snapshot), quota_(std::move(quota)) {}

  bool Charge(PodId, const PodPlacement& placement) override {
    if (placement.gpus == 0) return true;
    const ModelId m = snapshot_.node_model(placement.node);
    const int devices = std::popcount(placement.gpus);
    int& left = quota_[static_cast<size_t>(m.value())];
    if (left < devices) return false;
    left -= devices;
    log_.emplace_back(m.value(), devices);
    return true;
  }
  size_t GetMark() const override { return log_.size(); }
  void RollBack(size_t mark) override {
    for (; log_.size() > mark; log_.pop_back()) {
      quota_[static_cast<size_t>(log_.back().first)] += log_.back().second;
    }
  }
  const std::vector<int>& quota() const { return quota_; }

 private:
  const Snapshot& snapshot_;
  std::vector<int> quota_;  // left, by model
  std::vector<std::pair<int, int>> log_;
};

class BruteForce {
 public:
  BruteForce(ClusterState state, WorkloadId w, ModelQuota* account)
      : state_(std::move(state)),
        snapshot_(state_.snapshot()),
        gang_(snapshot_.gang(w)),
        info_(snapshot_.info(w)),
        account_(account) {}

  bool Fits() { return Choose({0}); }

  // Whether `pods` may be placed one after another where they are in `placed`.
  bool Accepts(const ClusterState& placed, const std::vector<PodId>& pods) {
    for (PodId p : pods) {
      if (!MayPlace(state_, p) || !IsFree(state_, snapshot_.pod_set_of(p), placed.placement(p))) {
        return false;
      }
      state_.Place(p, placed.placement(p));
      if (!KeepsDomains(p)) return false;
    }
    return true;
  }

 private:
  PodSetId set_of(int g) const { return PodSetId(info_.first_pod_set + at(g).pod_set); }
  const GangNode& at(int g) const { return gang_[static_cast<size_t>(g)]; }

  int Lacking(int g) const {
    return std::max(snapshot_.pod_set(set_of(g)).min_count - state_.standing(set_of(g)), 0);
  }
  bool Holds(int g) const {
    if (at(g).is_pod_set()) return Lacking(g) == 0;
    int holding = 0;
    for (int c = at(g).first_child; c < at(g).first_child + at(g).num_children; ++c) {
      holding += at(c).after < 0 && Holds(c) ? 1 : 0;
    }
    return holding >= at(g).min_children;
  }

  // Resolves the groups of `open` in every way into leaves, then places those.
  bool Choose(std::vector<int> open) {
    const auto group = std::ranges::find_if(open, [this](int g) { return !at(g).is_pod_set(); });
    if (group == open.end()) {
      std::vector<PodId> pods;
      for (int leaf : open) {
        const PodSetInfo& set = snapshot_.pod_set(set_of(leaf));
        int lacking = Lacking(leaf);
        for (int i = 0; i < set.count && lacking > 0; ++i) {
          if (!MayPlace(state_, set.pod(i))) continue;
          pods.push_back(set.pod(i));
          --lacking;
        }
        if (lacking > 0) return false;
      }
      failed_.clear();
      return Place(pods, 0);
    }
    const int g = *group;
    open.erase(group);
    std::vector<int> children;
    int missing = at(g).min_children;
    for (int c = at(g).first_child; c < at(g).first_child + at(g).num_children; ++c) {
      if (at(c).after >= 0) continue;
      if (Holds(c)) {
        --missing;
      } else {
        children.push_back(c);
      }
    }
    if (missing <= 0) return Choose(open);
    for (uint32_t subset = 0; subset < (1u << children.size()); ++subset) {
      if (std::popcount(subset) != missing) continue;
      std::vector<int> next = open;
      for (size_t i = 0; i < children.size(); ++i) {
        if (((subset >> i) & 1) != 0) next.push_back(children[i]);
      }
      if (Choose(next)) return true;
    }
    return false;
  }

  // All that decides whether the pods from `next` on can be placed.
  std::string Key(size_t next) const {
    std::string key = absl::StrCat(next, ":");
    for (int n = 0; n < snapshot_.num_nodes(); ++n) {
      for (int64_t amount : state_.room(NodeId(n))) absl::StrAppend(&key, amount, ",");
      for (int g = 0; g < state_.tables().num_gpus(NodeId(n)); ++g) {
        const GpuState& gpu = state_.gpu(NodeId(n), g);
        absl::StrAppend(&key, gpu.share, "/", gpu.wholes, "/", gpu.busy_starts, "/", gpu.busy.mask,
                        "/", gpu.busy.engines, ";");
      }
    }
    for (int i = info_.first_pod; i < info_.first_pod + info_.num_pods; ++i) {
      absl::StrAppend(&key, state_.placement(PodId(i)).node.value(), " ");
    }
    if (account_ != nullptr) {
      for (int left : account_->quota()) absl::StrAppend(&key, "$", left);
    }
    return key;
  }

  bool Place(const std::vector<PodId>& pods, size_t next) {
    if (next == pods.size()) return true;
    std::string key = Key(next);
    if (failed_.contains(key)) return false;
    for (const PodPlacement& place : PlacesOf(pods[next])) {
      const size_t mark = state_.GetMark();
      const size_t charges = account_ != nullptr ? account_->GetMark() : 0;
      if (account_ != nullptr && !account_->Charge(pods[next], place)) continue;
      state_.Place(pods[next], place);
      const bool found = KeepsDomains(pods[next]) && Place(pods, next + 1);
      state_.RollBack(mark);
      if (account_ != nullptr) account_->RollBack(charges);
      if (found) return true;
    }
    failed_.insert(std::move(key));
    return false;
  }

  std::vector<PodPlacement> PlacesOf(PodId p) const {
    const PodSetId s = snapshot_.pod_set_of(p);
    const RequestClassId c = snapshot_.pod_set(s).request_class;
    const RequestClass& request = snapshot_.request_class(c);
    std::vector<PodPlacement> places;
    for (int n = 0; n < snapshot_.num_nodes(); ++n) {
      const NodeId node(n);
      if (EligibilityOf(snapshot_, request, node) != Eligibility::kEligible) continue;
      PodPlacement place;
      place.node = node;
      if (request.gpu.kind == GpuRequestKind::kNone) {
        places.push_back(place);
        continue;
      }
      const ModelFit& fit = request.models[static_cast<size_t>(snapshot_.node_model(node).value())];
      place.share = static_cast<int32_t>(request.gpu.is_shared() ? fit.share : 0);
      const int devices = request.gpu.is_slice() ? 1 : request.gpu.devices;
      for (uint64_t gpus = 1; gpus < (uint64_t{1} << state_.tables().num_gpus(node)); ++gpus) {
        if (std::popcount(gpus) != devices) continue;
        place.gpus = gpus;
        if (!request.gpu.is_slice()) places.push_back(place);
        for (int slice = 0; request.gpu.is_slice() && slice < 32 * 16; ++slice) {
          place.profile = static_cast<int16_t>(slice / 16);
          place.start = static_cast<int16_t>(slice % 16);
          if (fit.Accepts(place.profile)) places.push_back(place);
        }
      }
    }
    std::erase_if(places, [&](const PodPlacement& place) { return !IsFree(state_, s, place); });
    return places;
  }

  // Whether all pods of each part that `p` belongs to are in one required domain.
  bool KeepsDomains(PodId p) const {
    const Topology& topology = snapshot_.topology();
    for (int g = snapshot_.pod_set(snapshot_.pod_set_of(p)).gang_node; g >= 0; g = at(g).parent) {
      const int level = at(g).required_level;
      if (level < 0) continue;
      const DomainId d = topology.domain_of(state_.placement(p).node, level);
      if (!d.valid()) return false;
      for (int i = info_.first_pod; i < info_.first_pod + info_.num_pods; ++i) {
        const NodeId n = state_.placement(PodId(i)).node;
        if (n.valid() && IsBelow(PodId(i), g) && topology.domain_of(n, level) != d) return false;
      }
    }
    return true;
  }

  bool IsBelow(PodId p, int g) const {
    int part = snapshot_.pod_set(snapshot_.pod_set_of(p)).gang_node;
    while (part >= 0 && part != g) part = at(part).parent;
    return part == g;
  }

  ClusterState state_;
  const Snapshot snapshot_;
  const std::span<const GangNode> gang_;
  const WorkloadInfo info_;
  ModelQuota* const account_;
  std::set<std::string> failed_;
};

}  // namespace tessera

#endif  // TESSERA_TESTS_PLACEMENT_BRUTE_FORCE_H_
