#ifndef TESSERA_IO_PLAN_JSON_H_
#define TESSERA_IO_PLAN_JSON_H_

// Plan files (`tessera/v1`, kind `Plan`): actions in the order to carry them out, and
// why the rest waits.
//
//   {"apiVersion": "tessera/v1", "kind": "Plan",
//    "actions": [
//      {"do": "evict", "workload": "w", "pod_set": "s", "index": 0,
//       "reason": "reclaim", "for": "llama"},
//      {"do": "bind", "workload": "llama", "pod_set": "prefill", "index": 0,
//       "node": "n1", "gpus": [0]}],
//    "pending": [{"workload": "big", "reason": "insufficient_gpus",
//                 "counts": {"too few free GPUs": 840}}]}
//
// `do` is one of evict, destroy, set_mig, create, move, bind and nominate. GPUs are
// numbered from 0 on their node; devices are whole (`gpus`), fractions (`shares`) or
// MIG instances (`slices`).

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tessera/cluster/plan.h"

namespace tessera {

// The plan that `json` states. Whether it can be carried out is not asked here, but by
// `Apply` and the referee.
//
// kInvalidArgument: as for `ParseSnapshotSpec`, with paths like `actions[3].gpu`, and an
// unknown action or reason. O(size of text).
absl::StatusOr<Plan> ParsePlan(std::string_view json);

// The file of `plan`, every action and every pending workload on a line of its own.
// Equal plans give equal bytes; `ParsePlan` reads back an equal plan if all texts are
// UTF-8 (ill-formed bytes come out as U+FFFD). O(size of the plan).
std::string WritePlan(const Plan& plan);

}  // namespace tessera

#endif  // TESSERA_IO_PLAN_JSON_H_
