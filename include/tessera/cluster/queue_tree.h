#ifndef TESSERA_CLUSTER_QUEUE_TREE_H_
#define TESSERA_CLUSTER_QUEUE_TREE_H_

// The queues of a snapshot as a validated tree of any depth.

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/base/ids.h"
#include "tessera/cluster/queue.h"
#include "tessera/resources/resource_space.h"
#include "tessera/resources/resource_vector.h"

namespace tessera {

// Queues by dense id. Ids are ranks by name, so the order in which queues are
// listed means nothing. Regular value.
class QueueTree {
 public:
  QueueTree() = default;

  // Validates `queues` and resolves their amounts in `space`. An empty list
  // gives one queue "default" with unlimited quota.
  //
  // kInvalidArgument, naming the field (`queues[2].parent: ...`): an empty or
  // duplicate name, an unknown parent, a cycle, a resource that `space` lacks,
  // an amount that is negative or above `kMaxTotal` (and not `kUnlimited`), a
  // weight outside [0, kMaxWeight], a negative min-runtime. A limit below the
  // quota is no error: the limit holds. O(Q log Q + Q * resources).
  static absl::StatusOr<QueueTree> Create(std::vector<Queue> queues, const ResourceSpace& space);

  int size() const { return static_cast<int>(queues_.size()); }
  const Queue& queue(QueueId q) const { return queues_[index(q)]; }
  std::optional<QueueId> Find(std::string_view name) const;

  // Invalid for a top-level queue.
  QueueId parent(QueueId q) const { return parents_[index(q)]; }
  // Sub-queues by id; of the top level for an invalid id.
  std::span<const QueueId> children(QueueId q) const;
  bool is_leaf(QueueId q) const { return children(q).empty(); }
  // 0 for a top-level queue.
  int depth(QueueId q) const { return depths_[index(q)]; }
  // All queues, each after its parent.
  std::span<const QueueId> top_down() const { return top_down_; }

  // What the queue was given, every resource resolved: absent quota 0, limit
  // `kUnlimited`, weight `kWeightOne`.
  const ResourceVector& quota(QueueId q) const { return quotas_[index(q)]; }
  const ResourceVector& limit(QueueId q) const { return limits_[index(q)]; }
  const ResourceVector& weight(QueueId q) const { return weights_[index(q)]; }

  // Whether some queue states a borrowing or lending limit for resource `r`; both
  // are `kUnlimited` where absent.
  bool bounds_lending(int r) const { return bounds_lending_[static_cast<size_t>(r)]; }
  const ResourceVector& borrowing_limit(QueueId q) const { return borrowing_limits_[index(q)]; }
  const ResourceVector& lending_limit(QueueId q) const { return lending_limits_[index(q)]; }

  // Whether quota restricts non-preemptible use of resource `r`: always for
  // `gpu`, for the others once any queue states a quota for it. (A host that
  // gives quotas in GPUs alone does not mean "and no CPU".)
  bool is_quota_governed(int r) const { return governed_[static_cast<size_t>(r)]; }

  friend bool operator==(const QueueTree&, const QueueTree&) = default;

 private:
  static size_t index(QueueId q) { return static_cast<size_t>(q.value()); }
  absl::Status LinkParents(std::span<const int> given_index);
  void ResolveAmounts(const ResourceSpace& space);

  std::vector<Queue> queues_;
  std::vector<QueueId> parents_;
  std::vector<QueueId> children_;    // grouped by parent, the top level first
  std::vector<int> children_begin_;  // of queue q at q + 1; size + 2 entries
  std::vector<QueueId> top_down_;
  std::vector<int> depths_;
  std::vector<ResourceVector> quotas_;
  std::vector<ResourceVector> limits_;
  std::vector<ResourceVector> weights_;
  std::vector<ResourceVector> borrowing_limits_;
  std::vector<ResourceVector> lending_limits_;
  std::vector<char> governed_;
  std::vector<char> bounds_lending_;
};

}  // namespace tessera

#endif  // TESSERA_CLUSTER_QUEUE_TREE_H_
