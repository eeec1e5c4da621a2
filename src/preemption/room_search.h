#ifndef TESSERA_SRC_PREEMPTION_ROOM_SEARCH_H_
#define TESSERA_SRC_PREEMPTION_ROOM_SEARCH_H_

// One attempt to make room: all that may yield is released, the claimant is placed where that
// costs least, and everything that is not in its way stays.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/preemption/node_costs.h"
#include "src/preemption/yield_book.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/preemption/make_room.h"
#include "tessera/share/quota_ledger.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// The claimant, and where it may go in this attempt.
struct RoomClaim {
  WorkloadId workload;
  bool grows = false;  // its minimum holds; one more unit is asked for
  NodeRange range;     // only here
  bool narrow = true;  // false: preferred domains are not asked for
  MigCharge mig_charge = MigCharge::kByComputeSlices;
  int64_t budget = 0;
  // Whoever may yield stays in the state until its node is looked at. Where it is asked how much
  // is free in domains, as for topology levels, all have to be released at once.
  bool lazily = false;
  std::span<const char> barred = {};  // by pod set of the gang: not to be placed; empty: none

  bool is_barred(const Snapshot& snapshot, PodSetId s) const {
    const int index = s.value() - snapshot.info(workload).first_pod_set;
    return !barred.empty() && barred[static_cast<size_t>(index)] != 0;
  }
};

class RoomSearch final : public Account {
 public:
  // The caller rolls back `state`, `ledger` and `book` where it does not want the result.
  RoomSearch(ClusterState& state, QuotaLedger& ledger, YieldBook& book, const RoomClaim& claim);

  // For the next claim of a row, which may go to the same nodes. `touched`: where the state or
  // those that may yield have changed since. O(touched * tables * log nodes).
  void Retarget(const RoomClaim& claim, std::span<const NodeId> touched);
  // Forgets the last claim, before `book` is rolled back.
  void Forget();

  // If placed: the claimant holds its place in the state, `book` has what leaves (which holds
  // none), and no unit of it can stay. Otherwise kRefused where queues do not permit it.
  GangPlacement Run();

  // Takes over a placement that was found elsewhere, for which victims have left.
  void Adopt(std::span<const PodTarget> placed);
  // Keeps the place of a pod that was moved, as if it were the claimant's.
  void Keep(PodId p) {
    guests_[static_cast<size_t>(state_.placement(p).node.value())].push_back(p);
  }
  // Puts back what leaves and could stay, the dearest first.
  void RestoreWhatCanStay();

  // What the claimant is charged, and the last thing that refused it.
  const ResourceVector& charged() const { return charged_; }
  const std::optional<QuotaRefusal>& refusal() const { return refusal_; }
  const std::optional<Overreach>& overreach() const { return overreach_; }

  // Whether queues permit the claim beside what stays.
  bool IsPermitted() {
    return IsPermitted(charged_) &&
           (!book_.asks_entitlement() || book_.entitlements().IsBalanced(charged_));
  }
  // Whether the claimant's pods on `n` still fit beside what is there.
  bool Coexists(NodeId n);

  bool Charge(PodId p, const PodPlacement& placement) override;
  size_t GetMark() const override { return claims_.size(); }
  void RollBack(size_t mark) override;

 private:
  struct Claim {
    PodId pod;
    NodeId node;
    ResourceVector charge;
    YieldBook::Mark before = 0;
    std::vector<NodeId> touched;
  };
  // A node that can take one more pod, and who has to leave for it.
  struct Fit {
    PodPlacement placement;
    std::vector<PodId> displaced;
    RoomCost cost;
  };
  struct CostTable {
    RequestClassId request;
    PodSetId pod_set;  // where more than the request decides
    NodeCosts costs;
  };

  // Limits, quotas and entitlement; tells in `refusal_` or `overreach_` what refuses.
  bool IsPermitted(const ResourceVector& charge);
  std::optional<PodPlacement> Find(const PodQuery& query);
  CostTable& CostsOf(PodSetId s);
  std::optional<PodPlacement> Choose(PodSetId s, NodeId n, const PodPlacement* fixed);
  std::optional<Fit> Evaluate(PodSetId s, NodeId n, const PodPlacement* fixed);
  std::optional<Fit> EvaluateLegally(PodSetId s, NodeId n, const PodPlacement* fixed);
  std::vector<PodId> Prune(PodSetId s, NodeId n, const PodPlacement* fixed,
                           std::vector<PodId> dearest_first);
  bool IsLegal(std::span<const PodId> displaced);
  std::vector<PodId> ByCost(NodeId n);
  void MarkStale(NodeId n);
  void MarkDomainStale(NodeId n, CostTable& table);
  void Release(PodId p);
  void ReleaseAll(std::span<const PodId> pods);
  bool MakeHeadroom(QueueId q, int resource);
  bool MeetEntitlement();
  void PutBack();
  bool TryRestore(WorkloadId w);
  bool TryRestorePods(std::span<const PodId> pods);
  bool IsBelow(QueueId q, QueueId ancestor) const;

  ClusterState& state_;
  const Snapshot& snapshot_;
  QuotaLedger& ledger_;
  YieldBook& book_;
  RoomClaim claim_;
  QueueId leaf_;
  bool preemptible_;
  std::vector<std::vector<PodId>> residents_;  // by node: candidates
  std::vector<std::vector<PodId>> guests_;     // by node: pods of the claimant that were placed
  std::vector<char> released_;                 // by pod
  std::vector<PodId> cheapest_;                // candidates by cost; made when needed
  std::vector<CostTable> tables_;
  std::vector<std::pair<size_t, NodeId>> barred_;  // table and node: too much is taken already
  std::optional<Fit> last_;                        // what `Find` returned last
  std::vector<Claim> claims_;
  ResourceVector charged_;
  std::optional<QuotaRefusal> refusal_;
  std::optional<Overreach> overreach_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_ROOM_SEARCH_H_
