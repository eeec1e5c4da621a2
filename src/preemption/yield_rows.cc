// What a book of who yields takes over from one claim to the next.

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/preemption/gang_cut.h"
#include "src/preemption/yield_book.h"

namespace tessera {
namespace {

// Pods of one set that a node holds, at most. If there are more, some plans are dearer than need
// be, no more.
constexpr int kMostOnNode = 256;

}  // namespace

std::vector<int32_t> RankByAge(const Snapshot& snapshot) {
  std::vector<int32_t> order(static_cast<size_t>(snapshot.num_workloads())), rank(order.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&snapshot](int32_t a, int32_t b) {
    const int64_t left = snapshot.workload(WorkloadId(a)).submitted;
    const int64_t right = snapshot.workload(WorkloadId(b)).submitted;
    return left != right ? left > right : a > b;
  });
  for (size_t i = 0; i < order.size(); ++i) {
    rank[static_cast<size_t>(order[i])] = static_cast<int32_t>(i) + 1;
  }
  return rank;
}

void YieldBook::Review(PodId p, std::vector<NodeId>& touched) {
  const WorkloadId w = workload_of(p);
  Gang& gang = gangs_[at(w)];
  const char up = state_.is_placed(p) ? 1 : 0;
  const int change = up - is_up_[at(p)];
  is_up_[at(p)] = up;
  up_[at(snapshot_.pod_set_of(p))] += change;
  gang.up += change;
  gang.version = ++last_version_;
  if (is_candidate(p) && !Stands(p)) {
    homes_[at(p)] = PodPlacement();
    has_dropped_ = true;
  }
  SetMost(w);
  has_dropped_ |= gang.most == 0;
  AddAffected(w, touched);
  if (gang.may_yield && gang.rule != YieldRule::kMoved) {
    gang.is_sound = GangCut(snapshot_, w, is_up_, leaves_).IsSound();
  }
}

bool YieldBook::Retarget(WorkloadId claimant, std::vector<NodeId>& touched) {
  const QueueId own = snapshot_.info(claimant).queue;
  entitlements_.Retarget(ledger_, own);
  lost_.clear();
  bool fewer = std::exchange(has_dropped_, false);
  for (size_t i = 0; i < yields_.size() && rights_.reclaim; ++i) {
    const QueueId q(static_cast<int32_t>(i));
    if (q == own && yields_[i] != 0) return false;
    const char may = q != own && entitlements_.MayYield(q) ? 1 : 0;
    if (may > yields_[i] && snapshot_.queues().is_leaf(q)) return false;
    fewer |= may < yields_[i];
    yields_[i] = may;
  }
  if (!fewer) return true;
  std::erase_if(candidates_, [&](PodId p) {
    if (!is_candidate(p)) return true;
    Gang& gang = gangs_[at(workload_of(p))];
    gang.may_yield &= !rights_.reclaim || yields_[at(queue_of(p))] != 0;
    if (gang.may_yield && gang.most > 0) return false;
    touched.push_back(homes_[at(p)].node);
    homes_[at(p)] = PodPlacement();
    return true;
  });
  return true;
}

void YieldBook::AddAffected(WorkloadId w, std::vector<NodeId>& nodes) const {
  const WorkloadInfo& info = snapshot_.info(w);
  if (info.num_pod_sets == 1) {
    const PodSetId s(info.first_pod_set);
    const int stays = up_[at(s)] - gone_[at(s)] + state_.tables().succeeded(s);
    if (stays > snapshot_.pod_set(s).min_count + kMostOnNode) return;
  }
  for (int i = info.first_pod; i < info.first_pod + info.num_pods; ++i) {
    if (is_candidate(PodId(i))) nodes.push_back(home(PodId(i)).node);
  }
}

std::vector<NodeId> YieldBook::Affected() const {
  std::vector<NodeId> nodes;
  for (WorkloadId w : Yielding()) AddAffected(w, nodes);
  return nodes;
}

}  // namespace tessera
