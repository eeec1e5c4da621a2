#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/cluster/plan.h"

namespace tessera {
namespace {

bool IsThere(const Pod& pod) {
  return pod.phase == PodPhase::kRunning || pod.phase == PodPhase::kNominated;
}

// Carries out actions one by one on the nouns of a snapshot.
class Applier {
 public:
  explicit Applier(const Snapshot& snapshot) : snapshot_(snapshot), spec_(snapshot.spec()) {}

  absl::Status operator()(const EvictAction& action) {
    TESSERA_ASSIGN_OR_RETURN(Pod * pod, FindHolding(action.pod));
    // A nomination holds nothing yet, so there is nothing to wait for.
    if (pod->phase == PodPhase::kNominated) return Drop(action.pod, PodPhase::kNominated);
    pod->phase = PodPhase::kReleasing;
    return absl::OkStatus();
  }

  absl::Status operator()(const MoveAction& action) {
    TESSERA_ASSIGN_OR_RETURN(Pod * pod, FindHolding(action.pod));
    pod->phase = PodPhase::kReleasing;
    return Add(action.pod, action.node, action.devices, PodPhase::kNominated);
  }

  absl::Status operator()(const BindAction& action) {
    return Add(action.pod, action.node, action.devices, PodPhase::kRunning);
  }

  absl::Status operator()(const NominateAction& action) {
    return Add(action.pod, action.node, action.devices, PodPhase::kNominated);
  }

  absl::Status operator()(const SetMigAction& action) {
    TESSERA_ASSIGN_OR_RETURN(Gpu * gpu, FindGpu(action.node, action.gpu));
    gpu->mig_enabled = action.enabled;
    return absl::OkStatus();
  }

  absl::Status operator()(const CreateAction& action) {
    TESSERA_ASSIGN_OR_RETURN(Gpu * gpu, FindGpu(action.node, action.gpu));
    // An instance is proof of MIG mode; keeps "on by default" and "switched on" apart.
    gpu->instances.push_back({action.profile, action.start});
    return absl::OkStatus();
  }

  absl::Status operator()(const DestroyAction& action) {
    TESSERA_ASSIGN_OR_RETURN(Gpu * gpu, FindGpu(action.node, action.gpu));
    const GpuInstance instance{action.profile, action.start};
    const auto it = std::ranges::find(gpu->instances, instance);
    if (it == gpu->instances.end()) {
      return absl::InvalidArgumentError(absl::StrCat("GPU ", action.gpu, " of ", action.node,
                                                     " has no instance ", action.profile,
                                                     " at slice ", action.start));
    }
    // MIG mode does not end with the last instance.
    gpu->mig_enabled = true;
    gpu->instances.erase(it);
    return absl::OkStatus();
  }

  // Ends releasing pods and binds nominated ones.
  void Settle() {
    for (Workload& workload : spec_.workloads) {
      std::erase_if(workload.pods,
                    [](const Pod& pod) { return pod.phase == PodPhase::kReleasing; });
      for (Pod& pod : workload.pods) {
        if (pod.phase != PodPhase::kNominated) continue;
        pod.phase = PodPhase::kRunning;
        pod.started = spec_.now;
        pod.expires.reset();
      }
    }
  }

  absl::StatusOr<Snapshot> Finish() && { return Snapshot::Create(std::move(spec_)); }

 private:
  absl::StatusOr<Workload*> FindWorkload(const PodRef& ref) {
    const std::optional<PodId> pod = snapshot_.FindPod(ref);
    if (pod) {
      const WorkloadId w = snapshot_.pod_set(snapshot_.pod_set_of(*pod)).workload;
      return &spec_.workloads[static_cast<size_t>(w.value())];
    }
    return absl::InvalidArgumentError(absl::StrCat("there is no pod ", ref.index, " of pod set \"",
                                                   ref.pod_set, "\" of workload \"",
                                                   ref.workload, "\""));
  }

  absl::StatusOr<Pod*> FindHolding(const PodRef& ref) {
    TESSERA_ASSIGN_OR_RETURN(Workload * workload, FindWorkload(ref));
    for (Pod& pod : workload->pods) {
      if (pod.pod_set == ref.pod_set && pod.index == ref.index && IsThere(pod)) return &pod;
    }
    return absl::InvalidArgumentError(absl::StrCat("pod ", ref.pod_set, "/", ref.index, " of ",
                                                   ref.workload, " is nowhere"));
  }

  absl::Status Drop(const PodRef& ref, PodPhase phase) {
    TESSERA_ASSIGN_OR_RETURN(Workload * workload, FindWorkload(ref));
    std::erase_if(workload->pods, [&](const Pod& pod) {
      return pod.pod_set == ref.pod_set && pod.index == ref.index && pod.phase == phase;
    });
    return absl::OkStatus();
  }

  absl::Status Add(const PodRef& ref, const std::string& node, const Devices& devices,
                   PodPhase phase) {
    // A pod that was nominated, or has ended, starts over; a releasing one keeps its entry.
    for (PodPhase old : {PodPhase::kNominated, PodPhase::kSucceeded, PodPhase::kFailed,
                         PodPhase::kPending}) {
      TESSERA_RETURN_IF_ERROR(Drop(ref, old));
    }
    TESSERA_ASSIGN_OR_RETURN(Workload * workload, FindWorkload(ref));
    Pod pod;
    pod.pod_set = ref.pod_set;
    pod.index = ref.index;
    pod.phase = phase;
    pod.node = node;
    pod.devices = devices;
    if (phase == PodPhase::kRunning) pod.started = spec_.now;
    workload->pods.push_back(std::move(pod));
    return absl::OkStatus();
  }

  absl::StatusOr<Gpu*> FindGpu(const std::string& node, int gpu) {
    const std::optional<NodeId> n = snapshot_.FindNode(node);
    if (!n) {
      return absl::InvalidArgumentError(absl::StrCat("no node is named \"", node, "\""));
    }
    std::vector<Gpu>& gpus = spec_.nodes[static_cast<size_t>(n->value())].gpus;
    if (gpu < 0 || gpu >= static_cast<int>(gpus.size())) {
      return absl::InvalidArgumentError(absl::StrCat("node ", node, " has no GPU ", gpu));
    }
    return &gpus[static_cast<size_t>(gpu)];
  }

  const Snapshot& snapshot_;
  SnapshotSpec spec_;
};

absl::StatusOr<Snapshot> Carry(const Snapshot& snapshot, const Plan& plan, bool settle) {
  Applier applier(snapshot);
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    const absl::Status status = std::visit(applier, plan.actions[i]);
    if (!status.ok()) {
      return InvalidAt(absl::StrCat("actions[", i, "]"), ToStd(status.message()));
    }
  }
  if (settle) applier.Settle();
  return std::move(applier).Finish();
}

}  // namespace

absl::StatusOr<Snapshot> Apply(const Snapshot& snapshot, const Plan& plan) {
  return Carry(snapshot, plan, false);
}

absl::StatusOr<Snapshot> ApplyAndSettle(const Snapshot& snapshot, const Plan& plan) {
  return Carry(snapshot, plan, true);
}

}  // namespace tessera
