#ifndef TESSERA_SRC_VERIFY_PLAN_TARGET_H_
#define TESSERA_SRC_VERIFY_PLAN_TARGET_H_

// Where a plan puts a pod, judged without regard to who else is there.

#include <optional>
#include <string>
#include <vector>

#include "src/verify/plan_layouts.h"
#include "tessera/cluster/snapshot.h"

namespace tessera {

// The place that `node` and `devices` name, and in `problems` why `p` must not be
// there: the node refuses it, or the devices are missing, broken, in the wrong
// mode, or not what it asks for. None if the names describe no place at all.
// `now`: it starts at once. Else it may wait for a dynamic GPU to be switched or
// carved, which cannot happen before the pods there have left.
std::optional<PodPlacement> ResolveTarget(const Snapshot& snapshot, const PlanLayouts& layouts,
                                          PodId p, const std::string& node, const Devices& devices,
                                          bool now, std::vector<std::string>& problems);

}  // namespace tessera

#endif  // TESSERA_SRC_VERIFY_PLAN_TARGET_H_
