#include "tessera/share/queue_order.h"

#include <algorithm>
#include <array>
#include <functional>

#include "tessera/cluster/queue.h"
#include "tessera/resources/units.h"
#include "tessera/share/fair_shares.h"
#include "tessera/share/fraction.h"

namespace tessera {
namespace {

constexpr std::array<int, 3> kKaiResources = {kCpu, kMemory, kGpu};

// Three-way results of the rules of a sequence: below zero puts `a` first.
int Sign(std::strong_ordering order) { return order < 0 ? -1 : order > 0 ? 1 : 0; }
int TrueFirst(bool a, bool b) { return a == b ? 0 : a ? -1 : 1; }

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

// A fraction and what it is about; comparisons decide exactly where that is close.
struct Share {
  Fraction exact{0, 1};
  double about = 0;
};

std::strong_ordering CompareShares(const Share& a, const Share& b) {
  // Far beyond the error of a quotient of two conversions.
  constexpr double kClose = 1e-9;
  const double difference = a.about - b.about, size = a.about + b.about;
  if (difference > kClose * size) return std::strong_ordering::greater;
  if (difference < -kClose * size) return std::strong_ordering::less;
  return Compare(a.exact, b.exact);
}

// The largest part of capacity over weight that `q` would hold, or holds.
Share SurplusShare(const QueueOrderContext& context, const QueueStanding& q, bool with_job,
                   bool beyond_quota) {
  Share dominant;
  for (int r = 0; r < context.resources->size(); ++r) {
    if (!IsDominanceResource(*context.resources, r)) continue;
    int64_t held = (*q.allocated)[r] + (with_job ? (*q.job)[r] : 0);
    if (beyond_quota) held -= std::min((*q.quota)[r], held);
    if (held <= 0) continue;
    const int64_t weight = std::max<int64_t>((*q.weight)[r], 1);
    const int64_t capacity = std::max<int64_t>(context.capacity[r], 1);
    const double about = static_cast<double>(held) * static_cast<double>(kWeightOne) /
                         (static_cast<double>(capacity) * static_cast<double>(weight));
    const Share share{{absl::int128{held} * kWeightOne, absl::int128{capacity} * weight}, about};
    if (CompareShares(share, dominant) > 0) dominant = share;
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

Fraction KaiShare(const QueueOrderContext& context, const QueueStanding& q, bool with_job) {
  constexpr int64_t kNoSharePenalty = 1000;
  Fraction dominant{0, 1};
  for (int r : kKaiResources) {
    const int64_t held = (*q.allocated)[r] + (with_job ? (*q.job)[r] : 0);
    int64_t share = Allocatable(q, r);
    if (share == kUnlimited) share = context.capacity[r];
    const Fraction part =
        share > 0 ? Fraction{held, share} : Fraction{absl::int128{held} * kNoSharePenalty, 1};
    if (Compare(part, dominant) > 0) dominant = part;
  }
  return dominant;
}

int KaiParetoSmaller(const QueueStanding& a, const QueueStanding& b) {
  bool a_within = true, b_within = true;
  for (int r : kKaiResources) {
    a_within &= Allocatable(a, r) <= Allocatable(b, r);
    b_within &= Allocatable(b, r) <= Allocatable(a, r);
  }
  return a_within == b_within ? 0 : a_within ? -1 : 1;
}

}  // namespace

bool DominantShareOrder::Before(const QueueOrderContext& context, const QueueStanding& a,
                                const QueueStanding& b) const {
  const bool a_within = WithinQuota(context, a), b_within = WithinQuota(context, b);
  if (a_within != b_within) return a_within;
  if (a.queue->priority != b.queue->priority) return a.queue->priority > b.queue->priority;
  for (const bool with_job : {true, false}) {
    const int order = Sign(CompareShares(SurplusShare(context, a, with_job, !a_within),
                                         SurplusShare(context, b, with_job, !b_within)));
    if (order != 0) return order < 0;
  }
  return a.queue->created < b.queue->created;
}

bool KaiQueueOrder::Before(const QueueOrderContext& context, const QueueStanding& a,
                           const QueueStanding& b) const {
  const std::array<std::function<int()>, 8> rules = {
      [&] { return TrueFirst(!KaiOverUsed(a), !KaiOverUsed(b)); },
      [&] { return TrueFirst(KaiStarved(a), KaiStarved(b)); },
      [&] { return Sign(b.queue->priority <=> a.queue->priority); },
      [&] { return TrueFirst(!KaiUsesWithoutShare(a), !KaiUsesWithoutShare(b)); },
      [&] { return Sign(Compare(KaiShare(context, a, true), KaiShare(context, b, true))); },
      [&] { return Sign(Compare(KaiShare(context, a, false), KaiShare(context, b, false))); },
      [&] { return KaiParetoSmaller(a, b); },
      [&] { return Sign(a.queue->created <=> b.queue->created); }};
  for (const auto& rule : rules) {
    const int order = rule();
    if (order != 0) return order < 0;
  }
  return false;
}

}  // namespace tessera
