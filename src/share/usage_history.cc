#include "tessera/share/usage_history.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "tessera/resources/units.h"
#include "tessera/share/division.h"

namespace tessera {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 30;
constexpr int64_t kMaxTime = int64_t{1} << 40;

int64_t PeriodOf(int64_t time, int64_t seconds) {
  return time >= 0 ? time / seconds : -((seconds - 1 - time) / seconds);
}

// floor(sqrt(value)) by Newton's method from above.
absl::uint128 SquareRoot(absl::uint128 value) {
  absl::uint128 root = absl::uint128{1} << 64;
  while (true) {
    const absl::uint128 next = (root + value / root) / 2;
    if (next >= root) return root;
    root = next;
  }
}

}  // namespace

// Weights of the seconds of one half-life, from 1 up to 2, constant over each of 256
// steps; a second of the half-life before counts half of that, and so on. Counting
// upwards, only the turn of a half-life changes what was summed before.
struct UsageHistory::DecayTable {
  static constexpr int kSteps = 256;
  static constexpr int kWeightBits = 30;

  int64_t seconds = 0;
  std::array<int64_t, kSteps> weight{};
  std::array<int64_t, kSteps + 1> start{};  // of a step within the half-life
  std::array<absl::int128, kSteps + 1> before{};

  explicit DecayTable(int64_t half_life) : seconds(half_life) {
    constexpr int kBits = 62;
    absl::uint128 step = absl::uint128{2} << kBits;
    for (int i = 1; i < kSteps; i *= 2) step = SquareRoot(step << kBits);
    absl::uint128 exact = absl::uint128{1} << kBits;
    for (size_t i = 0; i < kSteps; ++i) {
      weight[i] = static_cast<int64_t>(exact >> (kBits - kWeightBits));
      exact = (exact * step) >> kBits;
      start[i + 1] = (half_life * static_cast<int64_t>(i + 1) + kSteps - 1) / kSteps;
      before[i + 1] = before[i] + absl::int128{weight[i]} * (start[i + 1] - start[i]);
    }
  }

  // The weights of the first `offset` seconds of a half-life, summed.
  absl::int128 SumUpTo(int64_t offset) const {
    const size_t i = static_cast<size_t>(offset * kSteps / seconds);
    if (i == kSteps) return before[i];
    return before[i] + absl::int128{weight[i]} * (offset - start[i]);
  }

  // `sum` of the past as of `since`, and `rate` from then until `now`.
  absl::int128 Advance(absl::int128 sum, int64_t rate, int64_t since, int64_t now) const {
    const int64_t first = PeriodOf(since, seconds), last = PeriodOf(now, seconds);
    const absl::int128 at_start = SumUpTo(since - first * seconds);
    const absl::int128 at_end = SumUpTo(now - last * seconds);
    if (first == last) return sum + rate * (at_end - at_start);
    const absl::int128 whole = rate * before.back();
    sum = (sum + whole - rate * at_start) / 2;
    // Comes to rest at `whole` after some 120 halvings, if not before.
    for (int64_t period = first + 1; period < last; ++period) {
      const absl::int128 next = (sum + whole) / 2;
      if (next == sum) break;
      sum = next;
    }
    return sum + rate * at_end;
  }
};

UsageHistory::UsageHistory(UsageWindow window)
    : window_(window),
      decay_(window.kind == UsageWindowKind::kHalfLife
                 ? std::make_shared<const DecayTable>(window.seconds)
                 : nullptr) {}

absl::StatusOr<UsageHistory> UsageHistory::Create(UsageWindow window, int num_queues) {
  if (window.seconds < 1 || window.seconds > kMaxWindow) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window of ", window.seconds, " seconds is not in 1..", kMaxWindow));
  }
  if (num_queues < 0) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", num_queues, " queues"));
  }
  UsageHistory history(window);
  history.queues_.resize(static_cast<size_t>(num_queues));
  return history;
}

absl::Status UsageHistory::SetAllocated(QueueId q, const ResourceVector& allocated, int64_t now) {
  if (q.value() < 0 || q.value() >= static_cast<int>(queues_.size())) {
    return absl::NotFoundError(
        absl::StrCat("there is no queue ", q.value(), " among ", queues_.size()));
  }
  return Set(queues_[static_cast<size_t>(q.value())], allocated, now);
}

absl::Status UsageHistory::SetCapacity(const ResourceVector& capacity, int64_t now) {
  return Set(capacity_, capacity, now);
}

absl::Status UsageHistory::Set(Meter& meter, const ResourceVector& rate, int64_t now) {
  for (int r = 0; r < kMaxResources; ++r) {
    if (rate[r] >= 0 && rate[r] <= kMaxTotal) continue;
    return absl::InvalidArgumentError(absl::StrCat("an amount of ", rate[r], " is not in 0..2^61"));
  }
  if (now < -kMaxTime || now > kMaxTime) {
    return absl::OutOfRangeError(absl::StrCat("time ", now, " is not within 2^40 seconds of 0"));
  }
  if (meter.started && now < meter.since) {
    return absl::OutOfRangeError(
        absl::StrCat("time ", now, " is before the last change, at ", meter.since));
  }
  if (meter.started && rate == meter.rate) return absl::OkStatus();
  if (meter.started) meter.sums = SumsAt(meter, now);
  if (window_.kind == UsageWindowKind::kSliding) {
    // Of those that the window has left behind the last is still its start.
    const auto left_behind =
        std::ranges::upper_bound(meter.changes, now - window_.seconds, {}, &Change::time) -
        meter.changes.begin();
    // Dropped in bulk, so that each is moved at most once on average.
    if (left_behind > 1 && left_behind * 2 > static_cast<std::ptrdiff_t>(meter.changes.size())) {
      meter.changes.erase(meter.changes.begin(), meter.changes.begin() + left_behind - 1);
    }
    meter.changes.push_back({now, rate, meter.sums});
  }
  meter.since = now;
  meter.started = true;
  meter.rate = rate;
  return absl::OkStatus();
}

// As of `now`: of a half-life and a tumbling window what is in the window, of a
// sliding one everything so far.
UsageHistory::Sums UsageHistory::SumsAt(const Meter& meter, int64_t now) const {
  Sums sums = meter.sums;
  int64_t since = meter.since;
  if (window_.kind == UsageWindowKind::kTumbling) {
    const int64_t period = PeriodOf(now, window_.seconds) * window_.seconds;
    if (period > since) {
      sums = {};
      since = period;
    }
  }
  for (int r = 0; r < kMaxResources; ++r) {
    absl::int128& sum = sums[static_cast<size_t>(r)];
    sum = decay_ ? decay_->Advance(sum, meter.rate[r], since, now)
                 : sum + absl::int128{meter.rate[r]} * (now - since);
  }
  return sums;
}

// Everything up to `now` less everything up to the start of the window.
UsageHistory::Sums UsageHistory::SlidingSumsAt(const Meter& meter, int64_t now) const {
  Sums sums = SumsAt(meter, now);
  const int64_t start = now - window_.seconds;
  const auto after = std::ranges::upper_bound(meter.changes, start, {}, &Change::time);
  if (after == meter.changes.begin()) return sums;
  const Change& change = *(after - 1);
  for (int r = 0; r < kMaxResources; ++r) {
    sums[static_cast<size_t>(r)] -= change.before[static_cast<size_t>(r)] +
                                    absl::int128{change.rate[r]} * (start - change.time);
  }
  return sums;
}

ResourceVector UsageHistory::PastUse(QueueId q, int64_t now) const {
  const Meter& meter = queues_[static_cast<size_t>(q.value())];
  ResourceVector past_use;
  if (!meter.started || !capacity_.started) return past_use;
  const bool sliding = window_.kind == UsageWindowKind::kSliding;
  const Sums used = sliding ? SlidingSumsAt(meter, now) : SumsAt(meter, now);
  const Sums had = sliding ? SlidingSumsAt(capacity_, now) : SumsAt(capacity_, now);
  for (int r = 0; r < kMaxResources; ++r) {
    absl::int128 part = used[static_cast<size_t>(r)], whole = had[static_cast<size_t>(r)];
    // Leaves room for the product below, and 64 bits and more of precision.
    constexpr absl::int128 kLargest = absl::int128{1} << 96;
    for (; part > kLargest || whole > kLargest; part /= 2) whole /= 2;
    if (whole <= 0) continue;
    past_use[r] = static_cast<int64_t>(
        std::min<absl::int128>(part * kUsageOne / whole, absl::int128{kMaxTotal}));
  }
  return past_use;
}

std::vector<ResourceVector> UsageHistory::PastUse(int64_t now) const {
  std::vector<ResourceVector> past_use;
  past_use.reserve(queues_.size());
  for (size_t q = 0; q < queues_.size(); ++q) {
    past_use.push_back(PastUse(QueueId(static_cast<int32_t>(q)), now));
  }
  return past_use;
}

}  // namespace tessera
