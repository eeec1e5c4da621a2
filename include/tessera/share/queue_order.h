#ifndef TESSERA_SHARE_QUEUE_ORDER_H_
#define TESSERA_SHARE_QUEUE_ORDER_H_

// Who is served next?

#include <algorithm>
#include <concepts>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/ids.h"
#include "tessera/cluster/fair_shares.h"
#include "tessera/cluster/queue_tree.h"
#include "tessera/resources/resource_space.h"
#include "tessera/share/quota_ledger.h"

namespace tessera {

// What an order compares: one queue with work, among its siblings.
struct QueueStanding {
  const Queue* queue = nullptr;
  const ResourceVector* quota = nullptr;
  const ResourceVector* limit = nullptr;
  const ResourceVector* weight = nullptr;
  const ResourceVector* allocated = nullptr;
  const ResourceVector* fair_share = nullptr;
  const ResourceVector* job = nullptr;  // what its next job would add
};

// What all queues are measured by.
struct QueueOrderContext {
  const ResourceSpace* resources = nullptr;
  ResourceVector capacity;
};

// Whether `a` is served before `b`. Must be a strict weak order for the result
// to be independent of how siblings are paired; ties fall to the lower id.
template <typename T>
concept QueueOrder = requires(const T& order, const QueueOrderContext& context,
                              const QueueStanding& a, const QueueStanding& b) {
  { order.Before(context, a, b) } -> std::same_as<bool>;
};

// Queues that stay within quota with their next job come first, then higher
// priority, then the smaller dominant share with that job, then without it, then
// the older. The dominant share is the largest part of the cluster's capacity
// over weight, quota not counted for queues beyond it (DRF, Ghodsi et al., NSDI
// '11, on the surplus). Compared as exact rationals. O(resources).
struct DominantShareOrder {
  bool Before(const QueueOrderContext& context, const QueueStanding& a,
              const QueueStanding& b) const;
};

// KAI-Scheduler's documented sequence (v0.17, `queue_order`), on cpu, memory and
// gpu; exact ties by id, where KAI takes either.
struct KaiQueueOrder {
  bool Before(const QueueOrderContext& context, const QueueStanding& a,
              const QueueStanding& b) const;
};

// The next leaf to serve, kept as a tournament among the siblings of each level:
// an inner queue stands for the best of its children, with that child's job and
// its own allocation, so a child that has nothing to run, or may not, never
// counts against its siblings. Next is O(depth); an update is O(depth * log
// siblings * resources).
template <QueueOrder Order>
class ServiceOrder {
 public:
  // The arguments must outlive the object.
  ServiceOrder(const QueueTree& tree, const FairShares& shares, const QuotaLedger& ledger,
               QueueOrderContext context, Order order)
      : tree_(&tree), shares_(&shares), ledger_(&ledger), context_(context), order_(order) {
    jobs_.resize(static_cast<size_t>(tree.size()));
    first_.push_back(0);
    for (int q = -1; q < tree.size(); ++q) {
      const size_t children = tree.children(QueueId(q)).size();
      first_.push_back(first_.back() + 2 * children);
    }
    winners_.assign(first_.back(), QueueId());
  }

  // Sets what leaf `q` would run next, if anything, and re-ranks it. Also to be
  // called after the ledger changed for `q`.
  void SetJob(QueueId q, const std::optional<ResourceVector>& job) {
    jobs_[index(q)] = job;
    for (QueueId at = q;; at = tree_->parent(at)) {
      const QueueId parent = tree_->parent(at);
      Replay(parent, at);
      if (!parent.valid()) return;
      const QueueId best = Best(parent);
      jobs_[index(parent)] = best.valid() ? jobs_[index(best)] : std::nullopt;
    }
  }

  // The leaf to serve next; invalid when none has a job.
  QueueId Next() const {
    QueueId at = Best(QueueId());
    while (at.valid() && !tree_->is_leaf(at)) at = Best(at);
    return at;
  }

 private:
  static size_t index(QueueId q) { return static_cast<size_t>(q.value()); }
  size_t first(QueueId parent) const { return first_[static_cast<size_t>(parent.value() + 1)]; }

  QueueId Best(QueueId parent) const {
    return tree_->children(parent).empty() ? QueueId() : winners_[first(parent) + 1];
  }

  QueueStanding Standing(QueueId q) const {
    return {&tree_->queue(q),       &tree_->quota(q),           &tree_->limit(q), &tree_->weight(q),
            &ledger_->allocated(q), &shares_->of(q).fair_share, &*jobs_[index(q)]};
  }

  QueueId Winner(QueueId a, QueueId b) const {
    if (!a.valid() || !b.valid()) return a.valid() ? a : b;
    // Ties fall to the lower id, so the higher one has to be strictly before.
    if (b < a) std::swap(a, b);
    return order_.Before(context_, Standing(b), Standing(a)) ? b : a;
  }

  // Replays the matches of `child` up to the final of its siblings. Slots
  // [n, 2n) hold the siblings, slot 1 the winner (as in a binary heap).
  void Replay(QueueId parent, QueueId child) {
    const std::span<const QueueId> siblings = tree_->children(parent);
    const size_t n = siblings.size();
    // Siblings are in order of id.
    size_t at =
        n + static_cast<size_t>(std::ranges::lower_bound(siblings, child) - siblings.begin());
    const size_t base = first(parent);
    winners_[base + at] = jobs_[index(child)] ? child : QueueId();
    for (at /= 2; at >= 1; at /= 2) {
      winners_[base + at] = Winner(winners_[base + 2 * at], winners_[base + 2 * at + 1]);
    }
  }

  const QueueTree* tree_;
  const FairShares* shares_;
  const QuotaLedger* ledger_;
  QueueOrderContext context_;
  [[no_unique_address]] Order order_;
  std::vector<std::optional<ResourceVector>> jobs_;  // by queue
  std::vector<size_t> first_;                        // by parent + 1
  std::vector<QueueId> winners_;
};

}  // namespace tessera

#endif  // TESSERA_SHARE_QUEUE_ORDER_H_
