#ifndef TESSERA_SHARE_QUOTA_LEDGER_H_
#define TESSERA_SHARE_QUOTA_LEDGER_H_

// The accounts of all queues: what is held, and whether more may be charged.

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "tessera/base/ids.h"
#include "tessera/cluster/queue_tree.h"
#include "tessera/resources/resource_vector.h"
#include "tessera/share/usage.h"

namespace tessera {

// The first thing that refuses a charge, from the leaf upwards, by resource.
struct QuotaRefusal {
  QueueId queue;
  int resource = 0;
  bool is_limit = true;  // false: the quota, for non-preemptible work
  int64_t held = 0;      // of the kind that is bounded, before the charge
  int64_t asked = 0;
  int64_t bound = 0;

  friend bool operator==(const QuotaRefusal&, const QuotaRefusal&) = default;
};

// Charges are booked at the leaf and at every ancestor. A limit bounds all that
// a queue holds; quota bounds its non-preemptible part, on governed resources
// (`QueueTree::is_quota_governed`). Only resources that a charge uses are
// checked, so a queue over its limit may still take what it is not short of.
class QuotaLedger {
 public:
  // Starts from what is held; `usage` by queue id, ancestors included. `tree`
  // must outlive the ledger.
  QuotaLedger(const QueueTree& tree, const std::vector<QueueUsage>& usage);

  // Whether `charge` may be booked to leaf `q`, and if not, who refuses.
  // O(depth * resources).
  std::optional<QuotaRefusal> Check(QueueId q, const ResourceVector& charge,
                                    bool preemptible) const;

  // Books without asking. O(depth * resources).
  void Charge(QueueId q, const ResourceVector& charge, bool preemptible);

  // Takes a charge back. kFailedPrecondition, and nothing changes, if `q` does
  // not hold that much.
  absl::Status Release(QueueId q, const ResourceVector& charge, bool preemptible);

  const ResourceVector& allocated(QueueId q) const { return allocated_[index(q)]; }
  const ResourceVector& non_preemptible(QueueId q) const { return non_preemptible_[index(q)]; }

  using Mark = size_t;
  Mark GetMark() const { return log_.size(); }
  void RollBack(Mark mark);
  // Forgets how to undo what was booked so far.
  void Commit() { log_.clear(); }

 private:
  struct Entry {
    QueueId queue;
    ResourceVector charge;
    bool preemptible;
    int sign;
  };

  static size_t index(QueueId q) { return static_cast<size_t>(q.value()); }
  void Book(QueueId q, const ResourceVector& charge, bool preemptible, int sign);

  const QueueTree* tree_;
  std::vector<ResourceVector> allocated_;
  std::vector<ResourceVector> non_preemptible_;
  std::vector<Entry> log_;
};

}  // namespace tessera

#endif  // TESSERA_SHARE_QUOTA_LEDGER_H_
