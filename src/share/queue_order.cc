#include "tessera/share/queue_order.h"

#include <algorithm>
#include <array>

#include "tessera/cluster/queue.h"
#include "tessera/resources/units.h"
#include "tessera/share/fair_shares.h"

namespace tessera {
namespace {

constexpr std::array<int, 3> kKaiResources = {kCpu, kMemory, kGpu};

bool WithinQuota(const QueueOrderContext& context, const QueueStanding& q) {
  for (int r = 0; r < context.resources->size(); ++r) {
    const int64_t job = (*q.job)[r];
    if (IsDominanceResource(*context.resources, r) && job > 0 &&
        (*q.allocated)[r] + job > (*q.quota)[r]) {
      return false;
    }
  }
  return true;
}

// The largest part of capacity over weight that `q` would hold, or holds.
WeightedShare SurplusShare(const QueueOrderContext& context, const QueueStanding& q, bool with_job,
                           bool beyond_quota) {
  WeightedShare dominant;
  for (int r = 0; r < context.resources->size(); ++r) {
    if (!IsDominanceResource(*context.resources, r)) continue;
    int64_t held = (*q.allocated)[r] + (with_job ? (*q.job)[r] : 0);
    if (beyond_quota) held -= std::min((*q.quota)[r], held);
    if (held <= 0) continue;
    const WeightedShare share = WeightedShare::Of(held, std::max<int64_t>(context.capacity[r], 1),
                                                  std::max<int64_t>((*q.weight)[r], 1));
    if (Compare(share, dominant) > 0) dominant = share;
  }
  return dominant;
}

int64_t Allocatable(const QueueStanding& q, int r) {
  const int64_t limit = (*q.limit)[r];
  if ((*q.quota)[r] == kUnlimited) return limit;
  return std::min(limit, std::max((*q.quota)[r], (*q.fair_share)[r]));
}

bool KaiOverUsed(const QueueStanding& q) {
  return std::ranges::all_of(kKaiResources,
                             [&q](int r) { return (*q.allocated)[r] > (*q.fair_share)[r]; });
}

bool KaiStarved(const QueueStanding& q) {
  return std::ranges::all_of(
      kKaiResources, [&q](int r) { return (*q.allocated)[r] + (*q.job)[r] <= (*q.quota)[r]; });
}

bool KaiUsesWithoutShare(const QueueStanding& q) {
  return std::ranges::any_of(kKaiResources, [&q](int r) {
    return Allocatable(q, r) == 0 && (*q.allocated)[r] + (*q.job)[r] > 0;
  });
}

Rational KaiShare(const QueueOrderContext& context, const QueueStanding& q, bool with_job) {
  constexpr int64_t kNoSharePenalty = 1000;
  Rational dominant{0, 1};
  for (int r : kKaiResources) {
    const int64_t held = (*q.allocated)[r] + (with_job ? (*q.job)[r] : 0);
    int64_t share = Allocatable(q, r);
    if (share == kUnlimited) share = context.capacity[r];
    const Rational part =
        share > 0 ? Rational{held, share} : Rational{absl::int128{held} * kNoSharePenalty, 1};
    if (Compare(part, dominant) > 0) dominant = part;
  }
  return dominant;
}

int KaiParetoSmaller(const KaiQueueOrder::Key& a, const KaiQueueOrder::Key& b) {
  bool a_within = true, b_within = true;
  for (size_t i = 0; i < a.allocatable.size(); ++i) {
    a_within &= a.allocatable[i] <= b.allocatable[i];
    b_within &= b.allocatable[i] <= a.allocatable[i];
  }
  return a_within == b_within ? 0 : a_within ? -1 : 1;
}

}  // namespace

DominantShareOrder::Key DominantShareOrder::KeyOf(const QueueOrderContext& context,
                                                  const QueueStanding& queue) const {
  Key key;
  key.within_quota = WithinQuota(context, queue);
  key.priority = queue.queue->priority;
  key.with_job = SurplusShare(context, queue, true, !key.within_quota);
  key.held = SurplusShare(context, queue, false, !key.within_quota);
  key.created = queue.queue->created;
  return key;
}

bool DominantShareOrder::Before(const Key& a, const Key& b) const {
  if (a.within_quota != b.within_quota) return a.within_quota;
  if (a.priority != b.priority) return a.priority > b.priority;
  if (const auto order = Compare(a.with_job, b.with_job); order != 0) return order < 0;
  if (const auto order = Compare(a.held, b.held); order != 0) return order < 0;
  return a.created < b.created;
}

KaiQueueOrder::Key KaiQueueOrder::KeyOf(const QueueOrderContext& context,
                                        const QueueStanding& queue) const {
  Key key;
  key.over_used = KaiOverUsed(queue);
  key.starved = KaiStarved(queue);
  key.uses_without_share = KaiUsesWithoutShare(queue);
  key.priority = queue.queue->priority;
  key.with_job = KaiShare(context, queue, true);
  key.held = KaiShare(context, queue, false);
  for (size_t i = 0; i < kKaiResources.size(); ++i) {
    key.allocatable[i] = Allocatable(queue, kKaiResources[i]);
  }
  key.created = queue.queue->created;
  return key;
}

bool KaiQueueOrder::Before(const Key& a, const Key& b) const {
  if (a.over_used != b.over_used) return b.over_used;
  if (a.starved != b.starved) return a.starved;
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.uses_without_share != b.uses_without_share) return b.uses_without_share;
  if (const auto order = Compare(a.with_job, b.with_job); order != 0) return order < 0;
  if (const auto order = Compare(a.held, b.held); order != 0) return order < 0;
  if (const int order = KaiParetoSmaller(a, b); order != 0) return order < 0;
  return a.created < b.created;
}

}  // namespace tessera
