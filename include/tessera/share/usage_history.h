#ifndef TESSERA_SHARE_USAGE_HISTORY_H_
#define TESSERA_SHARE_USAGE_HISTORY_H_

// What queues used over time, so that time can be shared where GPUs cannot.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tessera/base/ids.h"
#include "tessera/resources/resource_vector.h"

namespace tessera {

// How the past fades.
enum class UsageWindowKind {
  kHalfLife,  // what lies `seconds` further back counts half
  kSliding,   // the last `seconds` count fully, what was before not at all
  kTumbling,  // as much of the current period of `seconds` (from time 0 on) as has passed
};

struct UsageWindow {
  UsageWindowKind kind = UsageWindowKind::kHalfLife;
  int64_t seconds = 7 * 24 * 3600;

  friend bool operator==(const UsageWindow&, const UsageWindow&) = default;
};

// Integrates what queues hold, and the capacity, over time. The result depends on
// what was held when, and on nothing else: not on how often it was recorded or read,
// nor on when the history began. All arithmetic is in integers; a half-life decays
// in 256 steps, whose boundaries are fixed in time.
//
// The form of what is measured (use over capacity over a window) is that of
// KAI-Scheduler's time-based fair share, which samples it.
class UsageHistory {
 public:
  // A history of `num_queues` queues, which hold nothing yet, with no capacity.
  // kInvalidArgument: `window.seconds` not in 1..2^30, or a negative number of queues.
  static absl::StatusOr<UsageHistory> Create(UsageWindow window, int num_queues);

  // From `now` on the queue holds `allocated`, or the cluster has `capacity`, until the
  // next call. Inner queues are recorded like leaves. Nothing changes on
  // kNotFound: no such queue; kInvalidArgument: an amount is negative or above
  // `kMaxTotal`; kOutOfRange: `now` is before the last change recorded there, or
  // not within 2^40 of 0. Amortised O(resources), however long ago that was.
  absl::Status SetAllocated(QueueId q, const ResourceVector& allocated, int64_t now);
  absl::Status SetCapacity(const ResourceVector& capacity, int64_t now);

  // What `q` used up to `now` as a part of the capacity up to `now`, both weighted by
  // the window, in units of 1 / `kUsageOne`, rounded down. 0 where there was no capacity.
  // `now` must not be before the last change. O(resources); a sliding window takes the
  // logarithm of the changes in it.
  ResourceVector PastUse(QueueId q, int64_t now) const;

  // The same of every queue, for `DivideFairShares`.
  std::vector<ResourceVector> PastUse(int64_t now) const;

 private:
  using Sums = std::array<absl::int128, kMaxResources>;

  struct Change {
    int64_t time = 0;
    ResourceVector rate;
    Sums before;  // all that was held up to `time`, times seconds
  };
  // One thing that is integrated: `rate` since `since`, `sums` before.
  struct Meter {
    int64_t since = 0;
    bool started = false;
    ResourceVector rate;
    Sums sums{};                  // weighted, as of `since`
    std::vector<Change> changes;  // of a sliding window: those in it, and one before
  };
  struct DecayTable;

  explicit UsageHistory(UsageWindow window);
  absl::Status Set(Meter& meter, const ResourceVector& rate, int64_t now);
  Sums SumsAt(const Meter& meter, int64_t now) const;
  Sums SlidingSumsAt(const Meter& meter, int64_t now) const;

  UsageWindow window_;
  std::shared_ptr<const DecayTable> decay_;
  std::vector<Meter> queues_;
  Meter capacity_;
};

}  // namespace tessera

#endif  // TESSERA_SHARE_USAGE_HISTORY_H_
