#include "tessera/share/quota_ledger.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"

namespace tessera {
namespace {

// The part of `subtree` that is not lent.
int64_t Kept(int64_t subtree, int64_t lending_limit) {
  return lending_limit == kUnlimited ? 0 : std::max<int64_t>(subtree - lending_limit, 0);
}

int64_t Saturated(absl::int128 amount) {
  return static_cast<int64_t>(std::min<absl::int128>(amount, kUnlimited));
}

}  // namespace

QuotaLedger::QuotaLedger(const QueueTree& tree, const std::vector<QueueUsage>& usage,
                         const ResourceVector& capacity)
    : tree_(&tree) {
  for (const QueueUsage& queue : usage) {
    allocated_.push_back(queue.allocated);
    non_preemptible_.push_back(queue.non_preemptible);
  }
  const size_t cluster = static_cast<size_t>(tree.size());
  kept_.resize(cluster);
  pool_.resize(cluster + 1);
  pool_use_.resize(cluster + 1);
  std::vector<QueueId> bottom_up(tree.top_down().rbegin(), tree.top_down().rend());
  bottom_up.push_back(QueueId());
  for (QueueId q : bottom_up) {
    const size_t at = q.valid() ? index(q) : cluster;
    for (int r = 0; r < kMaxResources; ++r) {
      if (!tree.bounds_lending(r)) continue;
      absl::int128 quotas = 0, lent = 0;
      for (QueueId child : tree.children(q)) {
        quotas += tree.quota(child)[r];
        lent += Subtree(child, r) - kept_[index(child)][r];
      }
      const int64_t own = q.valid() ? tree.quota(q)[r] : capacity[r];
      pool_[at][r] = Saturated(lent + std::max<absl::int128>(own - quotas, 0));
      if (q.valid()) kept_[at][r] = Kept(Subtree(q, r), tree.lending_limit(q)[r]);
    }
  }
  for (int q = 0; q < tree.size(); ++q) {
    if (tree.is_leaf(QueueId(q))) PostToPools(QueueId(q), ResourceVector(), allocated(QueueId(q)));
  }
}

int64_t QuotaLedger::Subtree(QueueId q, int r) const {
  return tree_->is_leaf(q) ? tree_->quota(q)[r] : pool_[index(q)][r];
}

int64_t QuotaLedger::Use(QueueId q, int r) const {
  return tree_->is_leaf(q) ? allocated(q)[r] : pool_use_[index(q)][r];
}

std::optional<QuotaRefusal> QuotaLedger::Check(QueueId q, const ResourceVector& charge,
                                               bool preemptible) const {
  for (QueueId at = q; at.valid(); at = tree_->parent(at)) {
    for (int r = 0; r < kMaxResources; ++r) {
      if (charge[r] <= 0) continue;
      const int64_t limit = tree_->limit(at)[r];
      const int64_t held = allocated(at)[r];
      if (held + charge[r] > limit) {
        return QuotaRefusal{at, r, QuotaBound::kLimit, held, charge[r], limit};
      }
      if (preemptible || !tree_->is_quota_governed(r)) continue;
      const int64_t quota = tree_->quota(at)[r];
      const int64_t firm = non_preemptible(at)[r];
      if (firm + charge[r] > quota) {
        return QuotaRefusal{at, r, QuotaBound::kQuota, firm, charge[r], quota};
      }
    }
  }
  for (int r = 0; r < kMaxResources; ++r) {
    if (charge[r] <= 0 || !tree_->bounds_lending(r)) continue;
    if (const std::optional<QuotaRefusal> refusal = CheckLending(q, r, charge[r])) return refusal;
  }
  return std::nullopt;
}

// `asked` of a queue is what it does not cover by what it keeps, then its parent's.
std::optional<QuotaRefusal> QuotaLedger::CheckLending(QueueId q, int r, int64_t asked) const {
  for (QueueId at = q; at.valid(); at = tree_->parent(at)) {
    const int64_t kept = kept_[index(at)][r];
    const int64_t borrowed = std::max<int64_t>(Use(at, r) - kept, 0);
    asked = std::max<int64_t>(Use(at, r) + asked - kept, 0) - borrowed;
    if (asked == 0) return std::nullopt;
    const int64_t limit = tree_->borrowing_limit(at)[r];
    if (limit == kUnlimited) continue;
    const int64_t bound = Saturated(absl::int128{Subtree(at, r)} - kept + limit);
    if (borrowed + asked > bound) {
      return QuotaRefusal{at, r, QuotaBound::kBorrowingLimit, borrowed, asked, bound};
    }
  }
  const int64_t held = pool_use_.back()[r];
  if (held + asked <= pool_.back()[r]) return std::nullopt;
  return QuotaRefusal{QueueId(), r, QuotaBound::kLending, held, asked, pool_.back()[r]};
}

absl::Status QuotaLedger::Charge(WorkloadId w, QueueId q, const ResourceVector& charge,
                                 bool preemptible) {
  const auto text = [w] { return absl::StrCat("the charge of workload ", w.value()); };
  if (!IsLeaf(q)) {
    return absl::NotFoundError(absl::StrCat(text(), " names queue ", q.value(),
                                            ", which is not a leaf of the queue tree"));
  }
  if (accounts_.contains(w)) {
    return absl::AlreadyExistsError(absl::StrCat(text(), " is already booked"));
  }
  for (int r = 0; r < kMaxResources; ++r) {
    if (charge[r] < 0) {
      return absl::InvalidArgumentError(absl::StrCat(text(), " is negative: ", charge[r]));
    }
    for (QueueId at = q; at.valid(); at = tree_->parent(at)) {
      if (charge[r] <= kMaxTotal - allocated(at)[r]) continue;
      return absl::OutOfRangeError(absl::StrCat(text(), " overflows queue \"",
                                                tree_->queue(at).name, "\": ", charge[r],
                                                " beside ", allocated(at)[r]));
    }
  }
  const Account account{q, charge, preemptible};
  accounts_.emplace(w, account);
  Post(account, 1);
  log_.push_back({account, 1, w});
  return absl::OkStatus();
}

absl::Status QuotaLedger::Release(WorkloadId w) {
  const auto found = accounts_.find(w);
  if (found == accounts_.end()) {
    return absl::NotFoundError(absl::StrCat("workload ", w.value(), " has no charge"));
  }
  Post(found->second, -1);
  log_.push_back({found->second, -1, w});
  accounts_.erase(found);
  return absl::OkStatus();
}

void QuotaLedger::Book(QueueId q, const ResourceVector& charge, bool preemptible) {
  const Account account{q, charge, preemptible};
  Post(account, 1);
  log_.push_back({account, 1, WorkloadId()});
}

void QuotaLedger::RollBack(Mark mark) {
  for (; log_.size() > mark; log_.pop_back()) {
    const Entry& entry = log_.back();
    Post(entry.account, -entry.sign);
    if (!entry.workload.valid()) continue;
    if (entry.sign > 0) {
      accounts_.erase(entry.workload);
    } else {
      accounts_.emplace(entry.workload, entry.account);
    }
  }
}

void QuotaLedger::Post(const Account& account, int sign) {
  const ResourceVector amount = account.charge * sign;
  const ResourceVector& held = allocated(account.queue);
  PostToPools(account.queue, held, held + amount);
  for (QueueId at = account.queue; at.valid(); at = tree_->parent(at)) {
    allocated_[index(at)] += amount;
    if (!account.preemptible) non_preemptible_[index(at)] += amount;
  }
}

// What it changes in the pools above leaf `q` that it holds `to` instead of `from`.
void QuotaLedger::PostToPools(QueueId q, const ResourceVector& from, const ResourceVector& to) {
  for (int r = 0; r < kMaxResources; ++r) {
    if (!tree_->bounds_lending(r)) continue;
    int64_t before = from[r], after = to[r];
    for (QueueId at = q; at.valid() && before != after; at = tree_->parent(at)) {
      const int64_t kept = kept_[index(at)][r];
      const int64_t change =
          std::max<int64_t>(after - kept, 0) - std::max<int64_t>(before - kept, 0);
      const QueueId parent = tree_->parent(at);
      int64_t& use = pool_use_[parent.valid() ? index(parent) : pool_use_.size() - 1][r];
      before = use;
      use += change;
      after = use;
    }
  }
}

}  // namespace tessera
