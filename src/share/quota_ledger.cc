#include "tessera/share/quota_ledger.h"

#include "absl/strings/str_cat.h"

namespace tessera {

QuotaLedger::QuotaLedger(const QueueTree& tree, const std::vector<QueueUsage>& usage)
    : tree_(&tree) {
  for (const QueueUsage& queue : usage) {
    allocated_.push_back(queue.allocated);
    non_preemptible_.push_back(queue.non_preemptible);
  }
}

std::optional<QuotaRefusal> QuotaLedger::Check(QueueId q, const ResourceVector& charge,
                                               bool preemptible) const {
  for (QueueId at = q; at.valid(); at = tree_->parent(at)) {
    for (int r = 0; r < kMaxResources; ++r) {
      if (charge[r] <= 0) continue;
      const int64_t limit = tree_->limit(at)[r];
      const int64_t held = allocated(at)[r];
      if (held + charge[r] > limit) return QuotaRefusal{at, r, true, held, charge[r], limit};
      if (preemptible || !tree_->is_quota_governed(r)) continue;
      const int64_t quota = tree_->quota(at)[r];
      const int64_t firm = non_preemptible(at)[r];
      if (firm + charge[r] > quota) return QuotaRefusal{at, r, false, firm, charge[r], quota};
    }
  }
  return std::nullopt;
}

void QuotaLedger::Charge(QueueId q, const ResourceVector& charge, bool preemptible) {
  Book(q, charge, preemptible, 1);
  log_.push_back({q, charge, preemptible, 1});
}

absl::Status QuotaLedger::Release(QueueId q, const ResourceVector& charge, bool preemptible) {
  const ResourceVector& held = preemptible ? allocated(q) : non_preemptible(q);
  if (!FitsWithin(charge, held)) {
    return absl::FailedPreconditionError(
        absl::StrCat("queue \"", tree_->queue(q).name, "\" does not hold what is to be released"));
  }
  Book(q, charge, preemptible, -1);
  log_.push_back({q, charge, preemptible, -1});
  return absl::OkStatus();
}

void QuotaLedger::RollBack(Mark mark) {
  for (; log_.size() > mark; log_.pop_back()) {
    const Entry& entry = log_.back();
    Book(entry.queue, entry.charge, entry.preemptible, -entry.sign);
  }
}

void QuotaLedger::Book(QueueId q, const ResourceVector& charge, bool preemptible, int sign) {
  const ResourceVector amount = charge * sign;
  for (QueueId at = q; at.valid(); at = tree_->parent(at)) {
    allocated_[index(at)] += amount;
    if (!preemptible) non_preemptible_[index(at)] += amount;
  }
}

}  // namespace tessera
