#ifndef TESSERA_PREEMPTION_VICTIM_ORDER_H_
#define TESSERA_PREEMPTION_VICTIM_ORDER_H_

// What it costs that a pod yields.

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "tessera/base/ids.h"
#include "tessera/resources/units.h"

namespace tessera {

// Most that one pod may cost; sums over a cluster stay within 64 bits.
inline constexpr int64_t kMaxVictimCost = int64_t{1} << 40;

// A pod that may have to leave its place, and what is lost then.
struct Victim {
  PodId pod;
  WorkloadId workload;
  int priority = 0;
  int64_t gpu_units = 0;     // 1/7000 device
  int64_t cpu = 0;           // millicores
  int64_t seconds_lost = 0;  // since its start or, if later, the last checkpoint
  bool is_moved = false;     // it starts again elsewhere at once
};

// Costs of pods, added up over all that leave; within [0, kMaxVictimCost], else clamped.
template <typename T>
concept VictimOrder = requires(const T& order, const Victim& victim) {
  { order.Cost(victim) } -> std::same_as<int64_t>;
};

using VictimCost = absl::FunctionRef<int64_t(const Victim&)>;

// The default, as a sum:
//
//   | for each                                              | points |
//   |-------------------------------------------------------|--------|
//   | evicted pod, per step of priority from 0 on, plus one |   1000 |
//   | moved pod, the same                                   |    100 |
//   | GPU-hour of work that a pod loses                     |     10 |
//   | core-hour of work that a pod without GPU loses        |      1 |
//   | gang that ends altogether (`RoomCosts`)               |   2000 |
//   | unit that a queue loses, times its fair share over    |        |
//   | what it keeps, at most 1 (`RoomCosts`)                |   1000 |
//   | MIG instance to create or to destroy (`RoomCosts`)    |     20 |
//
// So one victim rather than two, lower priorities before higher ones, then the queue furthest
// above its share, then the least work lost. What still costs the same is told apart by age:
// the younger workload yields.
struct VictimWeights {
  int64_t evicted_priority = 1000;
  int64_t moved_priority = 100;
  int64_t gpu_hour = 10;
  int64_t core_hour = 1;

  int64_t Cost(const Victim& victim) const {
    const int64_t priority = std::clamp<int64_t>(victim.priority, 0, 1000000) + 1;
    const int64_t seconds = std::clamp<int64_t>(victim.seconds_lost, 0, int64_t{1} << 31);
    const int64_t units = victim.gpu_units > 0 ? victim.gpu_units : victim.cpu;
    const int64_t per_hour = victim.gpu_units > 0 ? kGpuUnitsPerDevice : kMillisPerCore;
    const int64_t weight = victim.gpu_units > 0 ? gpu_hour : core_hour;
    const int64_t hours = std::min(units, int64_t{1} << 24) * seconds / 3600 / per_hour;
    return priority * (victim.is_moved ? moved_priority : evicted_priority) +
           std::min(hours, int64_t{1} << 30) * weight;
  }
};

// Costs beside those of pods.
struct RoomCosts {
  int64_t ended_gang = 2000;
  int64_t share = 1000;  // times fair share over what the queue keeps, at most 1, per pod
  int64_t mig_operation = 20;

  friend bool operator==(const RoomCosts&, const RoomCosts&) = default;
};

}  // namespace tessera

#endif  // TESSERA_PREEMPTION_VICTIM_ORDER_H_
