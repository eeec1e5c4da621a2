#ifndef TESSERA_SRC_PREEMPTION_ENTITLEMENTS_H_
#define TESSERA_SRC_PREEMPTION_ENTITLEMENTS_H_

// Whether what is taken from queues may be taken: their accounts during a search.

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tessera/cluster/fair_shares.h"
#include "tessera/cluster/queue_tree.h"
#include "tessera/cluster/victim_rules.h"
#include "tessera/share/quota_ledger.h"

namespace tessera {

// A queue above its entitlement: the proof that something may be taken from it.
struct Excess {
  QueueId queue;
  int resource = 0;
};

// Where the claimant would end above its entitlement.
struct Overreach {
  QueueId queue;
  int resource = 0;
  int64_t amount = 0;  // too much
};

// What a claimant asks for, before its place is known.
struct ClaimantNeed {
  ResourceVector least;         // it is charged this at least
  std::vector<char> resources;  // by resource: it may be charged some of it
};

// Sets of units that are legal stay legal when a unit is left out, so a search may add them
// one by one and give up where a set is not legal.
class Entitlements {
 public:
  // `ledger`: what queues hold before the plan, read now.
  Entitlements(const QueueTree& tree, const FairShares& shares, const VictimRules& rules,
               const QuotaLedger& ledger, QueueId claimant, const ClaimantNeed& need);

  // For the next claimant, a sibling of the last with the same needs, while nothing is taken:
  // reads anew what queues hold. O(queues).
  void Retarget(const QuotaLedger& ledger, QueueId claimant);

  // A unit of leaf `q` leaves (`count` 1) or does not after all (-1).
  void Take(QueueId q, const ResourceVector& unit, int count);

  // Whether all units taken from the queues above `q`, below its common ancestor with the
  // claimant, are legal. For the claimant's own leaf: true. O(distinct units^2) at worst.
  bool IsLegal(QueueId q) const;

  // What could be taken from leaf `q` at best, before anything is.
  bool MayYield(QueueId q) const;

  // The first of the claimant's queues that ends above its entitlement with `charge`. Strict:
  // those below the highest common ancestor with a queue that lost something, its leaf at least.
  // Where only its own leaf lost something and the rules say so: that ends above its entitlement
  // and with more than it had.
  std::optional<Overreach> FindOverreach(const ResourceVector& charge) const;

  // What KAI-Scheduler asks once the charge is known; true for other rules.
  bool IsBalanced(const ResourceVector& charge) const;

  // By which excess `q` yields: before the plan, at the queue nearest to the common ancestor.
  Excess ExcessOf(QueueId q) const;

  // The child of the lowest common ancestor of `q` and the claimant, on the side of `q`.
  QueueId Branch(QueueId q) const;

  int64_t held(QueueId q, int r) const { return before_[index(q)][r]; }
  int64_t left(QueueId q, int r) const { return held(q, r) - taken(q, r); }
  int64_t entitled(QueueId q, int r) const { return shares_.of(q).fair_share[r]; }
  // Thousandths of its entitlement over what `q` keeps, at most 1000, where it is furthest
  // above it, of what the claimant needs.
  int64_t Need(QueueId q) const;

 private:
  using Amounts = std::array<int64_t, kMaxResources>;
  struct Account {
    ResourceVector taken;
    int units = 0;
    std::array<int, kMaxResources> holders{};  // units that hold some of a resource
    std::map<Amounts, int> kinds;              // units by what they hold
  };

  static size_t index(QueueId q) { return static_cast<size_t>(q.value()); }
  bool counts(int r) const { return counts_[static_cast<size_t>(r)]; }
  int64_t taken(QueueId q, int r) const {
    const auto it = accounts_.find(q);
    return it == accounts_.end() ? 0 : it->second.taken[r];
  }
  bool IsOnPath(QueueId q) const;
  bool HasOrder(QueueId q, const Account& account) const;
  bool HasOrderBefore(QueueId q, const Account& account, ResourceVector state,
                      const Amounts* last) const;
  bool IsLegalByKai(QueueId q, const Account& account, const ResourceVector& charge) const;
  std::optional<Overreach> FindGrowth(const ResourceVector& charge) const;
  int64_t Allocatable(QueueId q, int r) const;
  bool ClaimantWithinQuota(QueueId side, const ResourceVector& charge) const;

  const QueueTree& tree_;
  const FairShares& shares_;
  const VictimRules& rules_;
  std::vector<ResourceVector> before_;  // by queue
  QueueId claimant_;
  const ResourceVector need_;
  std::vector<char> counts_;  // by resource: the claimant needs it
  absl::flat_hash_map<QueueId, Account> accounts_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_ENTITLEMENTS_H_
