#ifndef TESSERA_SRC_PREEMPTION_YIELD_BOOK_H_
#define TESSERA_SRC_PREEMPTION_YIELD_BOOK_H_

// Who may yield for a claimant, who has to so far, what that costs, and whether it is legal.
// It serves one claim, or one after another of those for which the same pods may yield.

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/preemption/entitlements.h"
#include "tessera/cluster/certificate.h"
#include "tessera/preemption/victim_order.h"
#include "tessera/share/quota_ledger.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// By which rights others may have to leave.
struct YieldRights {
  bool reclaim = false;
  bool preempt = false;
  bool move = false;  // who need not yield otherwise, but to another place only

  bool only_moves() const { return move && !reclaim && !preempt; }
};

// What a plan costs; what costs the same is told apart by age, the younger first.
struct RoomCost {
  int64_t points = 0;
  int64_t age = 0;

  RoomCost& operator+=(const RoomCost& other) {
    points += other.points;
    age += other.age;
    return *this;
  }
  RoomCost& operator-=(const RoomCost& other) {
    points -= other.points;
    age -= other.age;
    return *this;
  }
  friend RoomCost operator+(RoomCost a, const RoomCost& b) { return a += b; }
  friend RoomCost operator-(RoomCost a, const RoomCost& b) { return a -= b; }
  friend auto operator<=>(const RoomCost&, const RoomCost&) = default;
};

// By workload: its rank by age, the youngest is 1. O(workloads * log).
std::vector<int32_t> RankByAge(const Snapshot& snapshot);

inline constexpr RoomCost kNoCost{INT64_MAX, 0};

// What a search asks of the host's policy.
struct YieldPolicy {
  const VictimRules& rules;
  const RoomCosts& costs;
  VictimCost cost;
  bool honour_nominations = true;
  std::span<const char> spared;  // `RoomDesk`
  std::span<const char> open;
  std::span<const char> unmoved;
  std::span<const int32_t> ages;  // `RankByAge`; empty: ranked anew
};

class YieldBook {
 public:
  // `ledger` is charged for what leaves, and must be rolled back by the caller in the end. All
  // must outlive the object.
  // O(pods + queues).
  YieldBook(const ClusterState& state, QuotaLedger& ledger, const FairShares& shares,
            const YieldPolicy& policy, YieldRights rights, WorkloadId claimant,
            const ClaimantNeed& need);

  // Between claims, while nothing leaves: looks anew at a pod that has left its place, or has
  // got one. Appends to `touched` the nodes of its gang where that matters to the rest of it.
  void Review(PodId p, std::vector<NodeId>& touched);
  // For the next claimant, for which the same may yield as for the last but for what changed
  // since. Appends to `touched` the nodes of those that may not any more. False: others may.
  // O(queues), and the pods that are appended.
  bool Retarget(WorkloadId claimant, std::vector<NodeId>& touched);

  // Nodes at which it may cost something else to make room once what leaves stays: those of gangs
  // of which so much leaves that it matters to the rest.
  std::vector<NodeId> Affected() const;

  // Pods that may have to leave, ascending, and where they are.
  std::span<const PodId> candidates() const { return candidates_; }
  const PodPlacement& home(PodId p) const { return homes_[at(p)]; }
  bool is_candidate(PodId p) const { return homes_[at(p)].node.valid(); }
  bool leaves(PodId p) const { return leaves_[at(p)] != 0; }
  YieldRule rule(PodId p) const { return gangs_[at(workload_of(p))].rule; }
  std::span<const PodId> leaving(WorkloadId w) const { return gangs_[at(w)].leaving; }
  // Workloads of which something leaves, ascending.
  std::vector<WorkloadId> Yielding() const;

  // Makes `pods` leave and all that cannot stay without them. False, and nothing changes, if
  // one of them may not or the set would not be legal.
  bool Displace(std::span<const PodId> pods);

  // Lets `pods`, all leaving and of one workload, stay. What leaves besides must be closed.
  void Restore(std::span<const PodId> pods);

  // The subset of `pods`, leaving and of one workload, that may stay if only they do.
  std::vector<PodId> Restorable(std::span<const PodId> pods);

  // By what the total grows if `p` leaves, share of queues apart; `kNoCost` if it may not.
  RoomCost MarginalCost(PodId p);
  // The same for several pods, which need not be legal together.
  RoomCost MarginalCost(std::vector<PodId> pods);

  // Whether two pods, both candidates and each all that its gang has, may yield alike.
  bool AreInterchangeable(PodId a, PodId b) const;

  // Of what leaves. A gang that moves is not closed and pays by pod.
  RoomCost total() const { return total_ + RoomCost{ShareCost(), 0}; }
  RoomCost pod_cost(PodId p) const { return pod_costs_[at(p)]; }
  int64_t moved_cost(PodId p) const;

  const Entitlements& entitlements() const { return entitlements_; }
  // Whether the claimant's entitlement is asked: something is taken from another queue or, where
  // the rules say so, from its own.
  bool asks_entitlement() const {
    return num_reclaimed_ > 0 || (policy_.rules.preempt_within_share && num_preempted_ > 0);
  }

  using Mark = size_t;
  Mark GetMark() const { return log_.size(); }
  void RollBack(Mark mark);
  // Pods that leave now and did not at `mark`.
  std::vector<PodId> LeavingSince(Mark mark) const;

 private:
  struct Gang {
    YieldRule rule = YieldRule::kMoved;
    bool may_yield = false;
    bool only_surplus = false;   // its minimum is protected
    bool is_sound = true;        // before the plan, it and each of its parts held their minimum
    int most = INT32_MAX;        // pods that may leave
    int up = 0;                  // pods that there were
    bool ends = false;           // all of it leaves
    int64_t version = 0;         // another one after every change
    std::vector<PodId> leaving;  // ascending
    std::vector<ResourceVector> units;  // of what leaves, where it is reclaimed
  };
  // What follows when one more pod of a set leaves that is at its minimum.
  struct Break {
    int64_t version = -1;  // of the gang; else out of date
    RoomCost cost;
    bool ends = false;  // nothing of the gang is left
  };
  struct Entry {
    WorkloadId workload;
    Gang before;  // units only where they are replaced
    size_t ledger_mark = 0;
    bool appended = false;  // one pod, one unit: the last ones
    PodId pod;
    int64_t version = 0;  // of the gang, before
  };

  template <typename Tag>
  static size_t at(Id<Tag> id) {
    return static_cast<size_t>(id.value());
  }
  WorkloadId workload_of(PodId p) const {
    return snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
  }
  QueueId queue_of(PodId p) const { return snapshot_.info(workload_of(p)).queue; }

  void JudgeGangs(YieldRights rights, WorkloadId claimant);
  void JudgeGang(YieldRights rights, WorkloadId claimant, WorkloadId w);
  void AddAffected(WorkloadId w, std::vector<NodeId>& nodes) const;
  int CountDisrupted(WorkloadId w) const;
  void SetMost(WorkloadId w);
  void AddCandidates(WorkloadId claimant);
  void PriceCandidates();
  Victim VictimOf(PodId p, bool is_moved) const;
  // Whether `p` is in one of the sets of a `RoomDesk`.
  static bool Has(std::span<const char> set, PodId p) { return !set.empty() && set[at(p)] != 0; }
  bool Stands(PodId p) const;
  bool MayMoveNow(PodId p) const;
  bool IsProtected(WorkloadId w, QueueId scope, bool reclaim) const;
  bool IsSurplus(PodId p) const;
  void SetEnds(Gang& gang, bool ends);
  const Break& BreakOf(PodId p);
  RoomCost CostOfGroup(WorkloadId w, std::span<const PodId> pods);
  ResourceVector ChargeOfPod(PodId p) const;
  void Append(PodId p);
  void Assign(WorkloadId w, std::vector<PodId> leaving);
  void SetLeaves(PodId p, bool leaves);
  void TakeUnits(const Gang& gang, QueueId q, int count);
  void CountShare(WorkloadId w, int pods);
  bool IsLegal(WorkloadId w) const;
  int64_t ShareCost() const;

  const ClusterState& state_;
  const Snapshot& snapshot_;
  QuotaLedger& ledger_;
  const YieldPolicy policy_;
  const YieldRights rights_;
  Entitlements entitlements_;
  std::vector<char> yields_;  // by queue: something of it may be reclaimed
  std::vector<PodId> candidates_;
  bool has_dropped_ = false;          // some of them are none any more
  std::vector<PodPlacement> homes_;   // by pod; of candidates
  std::vector<char> is_up_, leaves_;  // by pod
  std::vector<RoomCost> pod_costs_;   // by pod; of candidates
  std::vector<int32_t> up_, gone_;    // by pod set: pods that were up, that leave
  std::vector<Gang> gangs_;           // by workload
  std::vector<Break> breaks_;         // by pod set
  int64_t last_version_ = 0;
  std::vector<std::pair<QueueId, int64_t>> lost_;  // reclaimed pods by branch
  int64_t num_reclaimed_ = 0, num_preempted_ = 0;
  RoomCost total_;
  std::vector<Entry> log_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_YIELD_BOOK_H_
