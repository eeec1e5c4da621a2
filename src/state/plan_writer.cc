#include "tessera/state/plan_writer.h"

#include <utility>

namespace tessera {
namespace {

void WriteMigChange(const Snapshot& snapshot, const MigChange& change,
                    std::vector<Action>& actions) {
  const std::string& node = snapshot.node(change.node).name;
  const GpuModel& model = snapshot.model(snapshot.node_model(change.node));
  const auto name = [&model](int8_t profile) {
    return model.profiles[static_cast<size_t>(profile)].name;
  };
  for (size_t s = 0; s < change.before.size(); ++s) {
    if (change.before[s] < 0 || change.before[s] == change.after[s]) continue;
    actions.push_back(DestroyAction{node, change.gpu, name(change.before[s]), static_cast<int>(s)});
  }
  if (change.enabled_before != change.enabled_after) {
    actions.push_back(SetMigAction{node, change.gpu, change.enabled_after});
  }
  for (size_t s = 0; s < change.after.size(); ++s) {
    if (change.after[s] < 0 || change.before[s] == change.after[s]) continue;
    actions.push_back(CreateAction{node, change.gpu, name(change.after[s]), static_cast<int>(s)});
  }
}

}  // namespace

void WriteBinds(const ClusterState& state, ClusterState::Mark mark, std::span<const PodId> pods,
                std::vector<Action>& actions) {
  const Snapshot& snapshot = state.snapshot();
  const std::vector<MigChange> changes = state.MigChangesSince(mark);
  auto change = changes.begin();
  for (PodId p : pods) {
    for (; change != changes.end() && change->pod == p; ++change) {
      WriteMigChange(snapshot, *change, actions);
    }
    const PodPlacement& placement = state.placement(p);
    actions.push_back(BindAction{snapshot.pod_ref(p), snapshot.node(placement.node).name,
                                 DevicesOf(snapshot, placement)});
  }
}

void WriteNominations(const ClusterState& state, std::span<const PodId> pods,
                      std::vector<Action>& actions) {
  const Snapshot& snapshot = state.snapshot();
  for (PodId p : pods) {
    const PodPlacement& placement = state.placement(p);
    actions.push_back(NominateAction{snapshot.pod_ref(p), snapshot.node(placement.node).name,
                                     DevicesOf(snapshot, placement)});
  }
}

}  // namespace tessera
