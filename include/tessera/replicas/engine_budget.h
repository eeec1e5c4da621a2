#ifndef TESSERA_REPLICAS_ENGINE_BUDGET_H_
#define TESSERA_REPLICAS_ENGINE_BUDGET_H_

// How many engines of each role a number of GPUs pays for, and how to get there.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tessera/replicas/service.h"

namespace tessera {

// Most GPUs of one engine, so that sums stay far below 2^63.
inline constexpr int64_t kMaxGpusPerEngine = 1000000;

// Roles in the order in which they are planned. An aggregated engine counts as decode.
enum class EngineRole { kPrefill, kDecode };
inline constexpr std::array kEngineRoles = {EngineRole::kPrefill, EngineRole::kDecode};

// "prefill".
std::string_view ToString(EngineRole role);

// The part of `by_role`, which has members `prefill` and `decode`, that is about `role`.
template <typename T>
constexpr auto& OfRole(T& by_role, EngineRole role) {
  return role == EngineRole::kPrefill ? by_role.prefill : by_role.decode;
}

// GPUs of `counts` engines.
constexpr int64_t GpusOf(const EngineGpus& gpus, const ReplicaCounts& counts) {
  return gpus.prefill * counts.prefill + gpus.decode * counts.decode;
}

// A service, as a budget sees it; for each role 0 <= least <= wanted <= `kMaxReplicas` and
// 1 <= gpus <= `kMaxGpusPerEngine`.
struct EngineClaims {
  EngineGpus gpus;
  ReplicaCounts least;   // never below
  ReplicaCounts wanted;  // never above

  friend bool operator==(const EngineClaims&, const EngineClaims&) = default;
};

// The engines that `ceiling` GPUs pay for, or nothing if they do not pay for `least`.
//
// Roles work in series, so a service serves the smaller of the parts that its roles have
// of what they want. Both are cut to the same part of `wanted`, rounded up to whole engines
// and not below `least`: the largest part that `ceiling` pays for. So
//   - the GPUs never exceed `ceiling`, and no count exceeds `wanted`;
//   - no other counts serve a larger part, and none that serve as much cost less: one more
//     engine of the role that is not the narrower would stand idle;
//   - a higher ceiling lowers no count.
// There are no ties: the part determines the counts.
//
// Differs from Dynamo's planner, which scales by ceiling / GPUs wanted and gives what
// prefill leaves to decode: rounded half to even (which can exceed the ceiling), later
// rounded down (which can raise decode above what it wants, and starve prefill: of prefill
// 2 and decode 6 at 2 and 4 GPUs it makes 1 and 5 out of 22 GPUs, which serve half; 2 and 4
// serve two thirds, with 20). O(log of the counts).
std::optional<ReplicaCounts> FitToCeiling(const EngineClaims& claims, int64_t ceiling);

// What `FitToCeiling` grants next, as the ceiling rises above that for which it granted
// `granted`; nothing if that is all that is wanted. O(1).
std::optional<ReplicaCounts> NextLarger(const EngineClaims& claims, const ReplicaCounts& granted);

// `counts`, raised until their GPUs reach `floor`, but never beyond `ceiling` or
// `claims.wanted`. What grows first goes back to `claims.least`, so that a floor keeps
// engines that run before it starts others; then both roles grow by the same part; then
// single engines fill the gap, those with more GPUs first (ties: prefill). Where no counts on
// that way lie between floor and ceiling, the result is below the floor: the ceiling
// outranks it. `counts` must keep the ceiling. O(log of the counts).
ReplicaCounts RaiseToFloor(const EngineClaims& claims, int64_t floor, int64_t ceiling,
                           const ReplicaCounts& counts);

// One change of one role on the way from what is held to what is granted.
struct ScalingStep {
  EngineRole role = EngineRole::kPrefill;
  int64_t from = 0;  // engines
  int64_t to = 0;
  int64_t gpus_after = 0;  // held by both roles once this step is done

  friend bool operator==(const ScalingStep&, const ScalingStep&) = default;
};

// The way from `held` to `target`. A role that shrinks does so before one that grows, and
// a step starts when the one before it is done (an engine that drains still holds its
// GPUs). So the GPUs fall, then rise, and never exceed the larger of both ends.
struct Transition {
  std::vector<ScalingStep> steps;
  int64_t peak_gpus = 0;

  friend bool operator==(const Transition&, const Transition&) = default;
};
Transition PlanTransition(const EngineGpus& gpus, const ReplicaCounts& held,
                          const ReplicaCounts& target);

}  // namespace tessera

#endif  // TESSERA_REPLICAS_ENGINE_BUDGET_H_
