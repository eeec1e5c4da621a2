#ifndef TESSERA_CLUSTER_DIAGNOSIS_H_
#define TESSERA_CLUSTER_DIAGNOSIS_H_

// Why a workload is pending, as a typed reason, a sentence and counts.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// The constraint that binds: the first that no node or queue satisfies.
enum class PendingReason {
  kQueueLimit,             // a queue on the path would exceed its limit
  kQuota,                  // non-preemptible work would exceed a queue's quota
  kNoMatchingNode,         // models, selectors, taints leave no node
  kInsufficientGpus,       // too few free whole GPUs
  kInsufficientGpuShare,   // no GPU with enough of it free
  kInsufficientSlices,     // no instance free, and none can be carved
  kInsufficientResources,  // CPU, memory, pods or an extended resource
  kIsolation,              // tenants that do not accept each other
  kTopology,               // fits the cluster, but no single required domain
  kGang,                   // pods fit one by one, but not all minimums together
  kDependency,             // waits for the group named by `after`
  kFailedPods,             // failed pods leave too few for the minimum
  kReleasing,              // waits for its own pods to end
  kHeld,                   // would fit, but where a gang that has waited for long holds places
  kBudgetExhausted,        // the search ended before an answer was found
};

// "insufficient_gpus", as in plan files.
std::string_view ToString(PendingReason reason);
std::optional<PendingReason> PendingReasonFromString(std::string_view text);

// Counts by label. Node labels count nodes, each once, under the first thing
// that excludes it; their sum is the number of nodes looked at.
using ReasonCounts = std::map<std::string, int64_t, std::less<>>;

// One workload that is not complete after a plan.
struct PendingWorkload {
  std::string workload;
  PendingReason reason = PendingReason::kGang;
  std::string text;  // one line: what binds, and the nearest miss
  ReasonCounts counts;
  bool below_minimum = false;
  // The proof by counting that its minimum has no place: which domain takes how many pods,
  // and what is short there. Empty where there is none.
  std::string proof;

  friend bool operator==(const PendingWorkload&, const PendingWorkload&) = default;
};

}  // namespace tessera

#endif  // TESSERA_CLUSTER_DIAGNOSIS_H_
