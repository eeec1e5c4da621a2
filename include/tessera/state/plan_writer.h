#ifndef TESSERA_STATE_PLAN_WRITER_H_
#define TESSERA_STATE_PLAN_WRITER_H_

// Turns what a search did to a state into actions.

#include <span>
#include <vector>

#include "tessera/cluster/plan.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// Appends to `actions` what a host must do to start the `pods` placed in `state`
// since `mark`: for each its MIG operations, then the bind.
void WriteBinds(const ClusterState& state, ClusterState::Mark mark, std::span<const PodId> pods,
                std::vector<Action>& actions);

// Appends a nomination for each of `pods`, placed in `state`.
void WriteNominations(const ClusterState& state, std::span<const PodId> pods,
                      std::vector<Action>& actions);

}  // namespace tessera

#endif  // TESSERA_STATE_PLAN_WRITER_H_
