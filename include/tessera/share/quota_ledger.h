#ifndef TESSERA_SHARE_QUOTA_LEDGER_H_
#define TESSERA_SHARE_QUOTA_LEDGER_H_

// The accounts of all queues: what is held, and whether more may be charged.

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "tessera/base/ids.h"
#include "tessera/cluster/queue_tree.h"
#include "tessera/resources/resource_vector.h"
#include "tessera/resources/units.h"
#include "tessera/share/usage.h"

namespace tessera {

// What bounds a queue.
enum class QuotaBound {
  kLimit,           // the hard ceiling on all that it holds
  kQuota,           // of its non-preemptible work
  kBorrowingLimit,  // of what it holds beyond its quota
  kLending,         // what queues keep for themselves, and the capacity
};

// The first thing that refuses a charge, from the leaf upwards, by resource.
struct QuotaRefusal {
  QueueId queue;  // invalid: the cluster, above all queues
  int resource = 0;
  QuotaBound by = QuotaBound::kLimit;
  int64_t held = 0;  // of what is bounded, before the charge
  int64_t asked = 0;
  int64_t bound = 0;

  friend bool operator==(const QuotaRefusal&, const QuotaRefusal&) = default;
};

// Charges are booked at the leaf and at every ancestor. A limit bounds all that
// a queue holds; quota bounds its non-preemptible part, on governed resources
// (`QueueTree::is_quota_governed`). Only resources that a charge uses are
// checked, so a queue over its limit may still take what it is not short of.
//
// Borrowing and lending, on resources for which some queue states such a limit
// (`QueueTree::bounds_lending`), after Kueue's quota algebra: a queue keeps the part
// of its quota that it does not lend, quota - lending limit, for itself. What it
// holds beyond that comes out of a pool that its parent's children share: what they
// lend, and what the parent has beyond their quotas. It may take from the pool what
// it put in and `borrowing limit` more. An inner queue passes on what its pool does
// not cover; the cluster, above the top level, has its capacity. We differ from Kueue
// in that the quota of an inner queue includes its children's, and in that a queue may
// always take what it keeps, even where the pool is overdrawn.
class QuotaLedger {
 public:
  // Starts from what is held; `usage` by queue id, ancestors included. `capacity` is
  // the cluster's; only borrowing asks for it. `tree` must outlive the ledger.
  QuotaLedger(const QueueTree& tree, const std::vector<QueueUsage>& usage,
              const ResourceVector& capacity = ResourceVector::Filled(kUnlimited));

  // Whether `charge` may be booked to leaf `q`, and if not, who refuses.
  // O(depth * resources).
  std::optional<QuotaRefusal> Check(QueueId q, const ResourceVector& charge,
                                    bool preemptible) const;

  // Books a workload's charge without asking whether it may. Nothing changes on
  // kNotFound: `q` is no leaf of the tree; kAlreadyExists: `w` has a charge;
  // kInvalidArgument: a negative amount; kOutOfRange: a queue would hold more than
  // `kMaxTotal`. O(depth * resources).
  absl::Status Charge(WorkloadId w, QueueId q, const ResourceVector& charge, bool preemptible);

  // Takes back all that was charged to `w`. kNotFound, and nothing changes, if it has
  // no charge. O(depth * resources).
  absl::Status Release(WorkloadId w);

  // Books to leaf `q` in nobody's name, for searches that charge pod by pod and take
  // their trials back. The caller keeps sums below `kMaxTotal`. O(depth * resources).
  void Book(QueueId q, const ResourceVector& charge, bool preemptible);

  const ResourceVector& allocated(QueueId q) const { return allocated_[index(q)]; }
  const ResourceVector& non_preemptible(QueueId q) const { return non_preemptible_[index(q)]; }

  using Mark = size_t;
  Mark GetMark() const { return log_.size(); }
  void RollBack(Mark mark);
  // Forgets how to undo what was booked so far.
  void Commit() { log_.clear(); }

 private:
  struct Account {
    QueueId queue;
    ResourceVector charge;
    bool preemptible = true;
  };
  struct Entry {
    Account account;
    int sign;
    WorkloadId workload;  // invalid for `Book`
  };

  static size_t index(QueueId q) { return static_cast<size_t>(q.value()); }
  bool IsLeaf(QueueId q) const {
    return q.valid() && q.value() < tree_->size() && tree_->is_leaf(q);
  }
  // What backs `q`: the quota of a leaf, the pool of an inner queue; and what is used.
  int64_t Subtree(QueueId q, int r) const;
  int64_t Use(QueueId q, int r) const;
  std::optional<QuotaRefusal> CheckLending(QueueId q, int r, int64_t asked) const;
  void Post(const Account& account, int sign);
  void PostToPools(QueueId q, const ResourceVector& from, const ResourceVector& to);

  const QueueTree* tree_;
  std::vector<ResourceVector> allocated_;
  std::vector<ResourceVector> non_preemptible_;
  // By queue, on resources with bounded lending; the last is the cluster's.
  std::vector<ResourceVector> kept_;      // of its quota, for itself
  std::vector<ResourceVector> pool_;      // what its children may share
  std::vector<ResourceVector> pool_use_;  // what they hold beyond what they keep
  absl::flat_hash_map<WorkloadId, Account> accounts_;
  std::vector<Entry> log_;
};

}  // namespace tessera

#endif  // TESSERA_SHARE_QUOTA_LEDGER_H_
