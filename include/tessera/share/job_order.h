#ifndef TESSERA_SHARE_JOB_ORDER_H_
#define TESSERA_SHARE_JOB_ORDER_H_

// Which job of a queue is served first?

#include <concepts>
#include <cstdint>

#include "tessera/base/ids.h"

namespace tessera {

// Where a gang stands.
enum class GangStage : uint8_t { kBelowMinimum, kAtMinimum, kAboveMinimum };

// One workload that waits in a leaf queue.
struct Job {
  int priority = 0;
  GangStage stage = GangStage::kBelowMinimum;
  int64_t submitted = 0;  // seconds
  WorkloadId workload;

  friend bool operator==(const Job&, const Job&) = default;
};

// Whether `a` is served before `b`: a strict weak order. Ties fall to the lower id
// (ids are ranks by name).
template <typename T>
concept JobOrder = requires(const T& order, const Job& a, const Job& b) {
  { order.Before(a, b) } -> std::same_as<bool>;
};

// Higher priority first, then gangs that do not run yet before those that only grow,
// then the older.
struct PriorityThenAge {
  bool Before(const Job& a, const Job& b) const {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.stage != b.stage) return a.stage < b.stage;
    return a.submitted < b.submitted;
  }
};

}  // namespace tessera

#endif  // TESSERA_SHARE_JOB_ORDER_H_
