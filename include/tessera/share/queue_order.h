#ifndef TESSERA_SHARE_QUEUE_ORDER_H_
#define TESSERA_SHARE_QUEUE_ORDER_H_

// Who is served next?

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/ids.h"
#include "tessera/cluster/fair_shares.h"
#include "tessera/cluster/queue_tree.h"
#include "tessera/resources/resource_space.h"
#include "tessera/share/quota_ledger.h"
#include "tessera/share/rational.h"
#include "tessera/share/weighted_share.h"

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

// Whether a queue is served before its sibling, by keys that are made once for each
// change of a queue. `Before` must be a strict weak order for the result to be
// independent of how siblings are paired; ties fall to the lower id.
//
//   struct OldestQueueFirst {
//     using Key = int64_t;
//     Key KeyOf(const QueueOrderContext&, const QueueStanding& q) const { return q.queue->created;
//     } bool Before(const Key& a, const Key& b) const { return a < b; }
//   };
template <typename T>
concept QueueOrder = std::default_initializable<typename T::Key> &&
    requires(const T& order, const QueueOrderContext& context, const QueueStanding& queue,
             const typename T::Key& key) {
  { order.KeyOf(context, queue) } -> std::same_as<typename T::Key>;
  { order.Before(key, key) } -> std::same_as<bool>;
};

// Queues that stay within quota with their next job come first, then higher
// priority, then the smaller dominant share with that job, then without it, then
// the older. The dominant share is the largest part of the cluster's capacity
// over weight, quota not counted for queues beyond it (DRF, Ghodsi et al., NSDI
// '11, on the surplus). Compared as exact rationals. A key is O(resources).
struct DominantShareOrder {
  struct Key {
    bool within_quota = false;
    int priority = 0;
    WeightedShare with_job, held;
    int64_t created = 0;
  };
  Key KeyOf(const QueueOrderContext& context, const QueueStanding& queue) const;
  bool Before(const Key& a, const Key& b) const;
};

// KAI-Scheduler's documented sequence (v0.17, `queue_order`), on cpu, memory and
// gpu; exact ties by id, where KAI takes either.
struct KaiQueueOrder {
  struct Key {
    bool over_used = false, starved = false, uses_without_share = false;
    int priority = 0;
    Rational with_job, held;
    std::array<int64_t, 3> allocatable{};
    int64_t created = 0;
  };
  Key KeyOf(const QueueOrderContext& context, const QueueStanding& queue) const;
  bool Before(const Key& a, const Key& b) const;
};

// Who is served next, whatever the order.
class QueueServer {
 public:
  virtual ~QueueServer() = default;

  // Sets what leaf `q` would run next, if anything, and re-ranks it. Also to be
  // called after the ledger changed for `q`.
  virtual void SetJob(QueueId q, const std::optional<ResourceVector>& job) = 0;

  // The leaf to serve next; invalid when none has a job.
  virtual QueueId Next() const = 0;
};

// The next leaf to serve, kept as a tournament among the siblings of each level:
// an inner queue stands for the best of its children, with that child's job and
// its own allocation, so a child that has nothing to run, or may not, never
// counts against its siblings. Next is O(depth); an update is O(depth * (resources
// + log siblings)).
template <QueueOrder Order>
class ServiceOrder final : public QueueServer {
 public:
  // The arguments must outlive the object.
  ServiceOrder(const QueueTree& tree, const FairShares& shares, const QuotaLedger& ledger,
               QueueOrderContext context, Order order)
      : tree_(&tree), shares_(&shares), ledger_(&ledger), context_(context), order_(order) {
    jobs_.resize(static_cast<size_t>(tree.size()));
    keys_.resize(jobs_.size());
    seats_.resize(jobs_.size());
    first_.push_back(0);
    for (int q = -1; q < tree.size(); ++q) {
      const std::span<const QueueId> children = tree.children(QueueId(q));
      for (size_t i = 0; i < children.size(); ++i) seats_[index(children[i])] = children.size() + i;
      first_.push_back(first_.back() + 2 * children.size());
    }
    winners_.assign(first_.back(), QueueId());
  }

  void SetJob(QueueId q, const std::optional<ResourceVector>& job) override {
    jobs_[index(q)] = job;
    for (QueueId at = q;; at = tree_->parent(at)) {
      const QueueId parent = tree_->parent(at);
      Replay(parent, at);
      if (!parent.valid()) return;
      const QueueId best = Best(parent);
      jobs_[index(parent)] = best.valid() ? jobs_[index(best)] : std::nullopt;
    }
  }

  QueueId Next() const override {
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
    return order_.Before(keys_[index(b)], keys_[index(a)]) ? b : a;
  }

  // Replays the matches of `child` up to the final of its siblings. Slots
  // [n, 2n) hold the siblings, slot 1 the winner (as in a binary heap).
  void Replay(QueueId parent, QueueId child) {
    const size_t base = first(parent);
    size_t at = seats_[index(child)];
    const bool waits = jobs_[index(child)].has_value();
    if (waits) keys_[index(child)] = order_.KeyOf(context_, Standing(child));
    winners_[base + at] = waits ? child : QueueId();
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
  std::vector<typename Order::Key> keys_;            // by queue; of those that wait
  std::vector<size_t> seats_;                        // by queue: its slot among its siblings
  std::vector<size_t> first_;                        // by parent + 1
  std::vector<QueueId> winners_;
};

}  // namespace tessera

#endif  // TESSERA_SHARE_QUEUE_ORDER_H_
