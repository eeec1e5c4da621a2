#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/cluster/plan.h"

namespace tessera {
namespace {

// Carries out actions one by one on the nouns of a snapshot.
class Applier {
 public:
  Applier(const Snapshot& snapshot, std::optional<int64_t> start)
      : snapshot_(snapshot),
        spec_(snapshot.spec()),
        start_(start),
        entries_(static_cast<size_t>(snapshot.num_pods()), kNone) {
    for (const Workload& workload : spec_.workloads) {
      for (size_t i = 0; i < workload.pods.size(); ++i) {
        const Pod& pod = workload.pods[i];
        if (pod.phase == PodPhase::kReleasing) continue;
        const PodId p = *snapshot.FindPod({workload.name, pod.pod_set, pod.index});
        entries_[At(p)] = static_cast<int>(i);
        // A nomination that has expired is none.
        if (pod.phase != snapshot.pod_phase(p)) Drop(p);
      }
    }
  }

  absl::Status operator()(const EvictAction& action) {
    TESSERA_ASSIGN_OR_RETURN(const PodId p, FindHolding(action.pod));
    // A nomination holds nothing yet, so there is nothing to wait for.
    if (Entry(p).phase == PodPhase::kNominated) {
      Drop(p);
    } else {
      Release(p);
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const MoveAction& action) {
    TESSERA_ASSIGN_OR_RETURN(const PodId p, FindHolding(action.pod));
    if (Entry(p).phase == PodPhase::kRunning) Release(p);
    return Add(action.pod, action.node, action.devices, PodPhase::kNominated);
  }

  absl::Status operator()(const BindAction& action) {
    return Add(action.pod, action.node, action.devices, PodPhase::kRunning);
  }

  absl::Status operator()(const NominateAction& action) {
    return Add(action.pod, action.node, action.devices, PodPhase::kNominated, action.expires);
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

  // Ends releasing pods and binds nominated ones, on devices made ready for them.
  void Settle() {
    for (Workload& workload : spec_.workloads) {
      std::erase_if(workload.pods,
                    [](const Pod& pod) { return pod.phase == PodPhase::kReleasing; });
    }
    for (Workload& workload : spec_.workloads) {
      for (Pod& pod : workload.pods) {
        if (pod.phase != PodPhase::kNominated || pod.index == kNone) continue;
        MakeReady(pod);
        pod.phase = PodPhase::kRunning;
        pod.started = start_;
        pod.expires.reset();
      }
    }
  }

  absl::StatusOr<Snapshot> Finish() && {
    for (Workload& workload : spec_.workloads) {
      std::erase_if(workload.pods, [](const Pod& pod) { return pod.index == kNone; });
    }
    return Snapshot::Create(std::move(spec_));
  }

 private:
  static constexpr int kNone = -1;

  static size_t At(PodId p) { return static_cast<size_t>(p.value()); }

  Workload& WorkloadOf(PodId p) {
    const WorkloadId w = snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
    return spec_.workloads[static_cast<size_t>(w.value())];
  }
  bool HasEntry(PodId p) const { return entries_[At(p)] != kNone; }
  Pod& Entry(PodId p) { return WorkloadOf(p).pods[static_cast<size_t>(entries_[At(p)])]; }

  // Takes the entry out when all actions are done; until then it has no index.
  void Drop(PodId p) {
    Entry(p).index = kNone;
    entries_[At(p)] = kNone;
  }

  void Release(PodId p) {
    Entry(p).phase = PodPhase::kReleasing;
    entries_[At(p)] = kNone;
  }

  absl::StatusOr<PodId> Find(const PodRef& ref) {
    const std::optional<PodId> pod = snapshot_.FindPod(ref);
    if (pod) return *pod;
    return absl::InvalidArgumentError(absl::StrCat("there is no pod ", ref.index, " of pod set \"",
                                                   ref.pod_set, "\" of workload \"", ref.workload,
                                                   "\""));
  }

  absl::StatusOr<PodId> FindHolding(const PodRef& ref) {
    TESSERA_ASSIGN_OR_RETURN(const PodId p, Find(ref));
    if (HasEntry(p)) {
      const PodPhase phase = Entry(p).phase;
      if (phase == PodPhase::kRunning || phase == PodPhase::kNominated) return p;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("pod ", ref.pod_set, "/", ref.index, " of ", ref.workload, " is nowhere"));
  }

  // A pod that was nominated, or has ended, starts over; a releasing one keeps its
  // entry beside the new one.
  absl::Status Add(const PodRef& ref, const std::string& node, const Devices& devices,
                   PodPhase phase, std::optional<int64_t> expires = std::nullopt) {
    TESSERA_ASSIGN_OR_RETURN(const PodId p, Find(ref));
    TESSERA_RETURN_IF_ERROR(CheckPlace(node, devices));
    if (HasEntry(p)) {
      if (Entry(p).phase == PodPhase::kRunning) {
        return absl::InvalidArgumentError(absl::StrCat("pod ", ref.pod_set, "/", ref.index, " of ",
                                                       ref.workload, " runs already"));
      }
      Drop(p);
    }
    Pod pod;
    pod.pod_set = ref.pod_set;
    pod.index = ref.index;
    pod.phase = phase;
    pod.node = node;
    pod.devices = devices;
    if (phase == PodPhase::kRunning) pod.started = start_;
    pod.expires = expires;
    std::vector<Pod>& pods = WorkloadOf(p).pods;
    entries_[At(p)] = static_cast<int>(pods.size());
    pods.push_back(std::move(pod));
    return absl::OkStatus();
  }

  absl::StatusOr<NodeId> FindNode(const std::string& node) {
    const std::optional<NodeId> n = snapshot_.FindNode(node);
    if (n) return *n;
    return absl::InvalidArgumentError(absl::StrCat("no node is named \"", node, "\""));
  }

  absl::Status CheckPlace(const std::string& node, const Devices& devices) {
    TESSERA_RETURN_IF_ERROR(FindNode(node).status());
    std::vector<int> gpus = devices.gpus;
    for (const GpuShare& share : devices.shares) gpus.push_back(share.gpu);
    for (const GpuSlice& slice : devices.slices) gpus.push_back(slice.gpu);
    for (int gpu : gpus) TESSERA_RETURN_IF_ERROR(FindGpu(node, gpu).status());
    return absl::OkStatus();
  }

  // Takes the devices of a nominated pod out of MIG mode, or carves its slice.
  void MakeReady(const Pod& pod) {
    const std::optional<NodeId> n = snapshot_.FindNode(pod.node);
    if (!n) return;  // reported when the result is validated
    std::vector<Gpu>& gpus = spec_.nodes[static_cast<size_t>(n->value())].gpus;
    const auto exists = [&gpus](int g) { return g >= 0 && g < static_cast<int>(gpus.size()); };
    const auto end_mig = [&](int g) {
      if (!exists(g) || !gpus[static_cast<size_t>(g)].is_mig_enabled()) return;
      gpus[static_cast<size_t>(g)].instances.clear();
      gpus[static_cast<size_t>(g)].mig_enabled = false;
    };
    for (int g : pod.devices.gpus) end_mig(g);
    for (const GpuShare& share : pod.devices.shares) end_mig(share.gpu);
    for (const GpuSlice& slice : pod.devices.slices) {
      if (exists(slice.gpu)) Carve(*n, slice, gpus[static_cast<size_t>(slice.gpu)]);
    }
  }

  // Creates the instance of `slice` unless it exists; idle instances stay where
  // they still fit beside it and those that are held.
  void Carve(NodeId n, const GpuSlice& slice, Gpu& gpu) {
    const GpuInstance wanted{slice.profile, slice.start};
    if (std::ranges::find(gpu.instances, wanted) != gpu.instances.end()) return;
    const MigTables& mig = snapshot_.mig(snapshot_.node_model(n));
    LayoutKey key;
    std::vector<GpuInstance> kept;
    const auto keep = [&](const GpuInstance& instance) {
      const std::optional<int> profile = mig.model().FindProfile(instance.profile);
      if (!profile || !mig.CanPlace(key, *profile, instance.start)) return;
      key = mig.Add(key, *profile, instance.start);
      kept.push_back(instance);
    };
    const std::vector<GpuInstance> held = Held(snapshot_.node(n).name, slice.gpu);
    for (const GpuInstance& instance : gpu.instances) {
      if (std::ranges::find(held, instance) != held.end()) keep(instance);
    }
    keep(wanted);
    for (const GpuInstance& instance : gpu.instances) {
      if (std::ranges::find(held, instance) == held.end()) keep(instance);
    }
    gpu.instances = std::move(kept);
    gpu.mig_enabled.reset();
  }

  // The instances of a GPU that running pods hold.
  std::vector<GpuInstance> Held(const std::string& node, int gpu) const {
    std::vector<GpuInstance> held;
    for (const Workload& workload : spec_.workloads) {
      for (const Pod& pod : workload.pods) {
        if (pod.node != node || pod.phase != PodPhase::kRunning || pod.index == kNone) continue;
        for (const GpuSlice& slice : pod.devices.slices) {
          if (slice.gpu == gpu) held.push_back({slice.profile, slice.start});
        }
      }
    }
    return held;
  }

  absl::StatusOr<Gpu*> FindGpu(const std::string& node, int gpu) {
    TESSERA_ASSIGN_OR_RETURN(const NodeId n, FindNode(node));
    std::vector<Gpu>& gpus = spec_.nodes[static_cast<size_t>(n.value())].gpus;
    if (gpu < 0 || gpu >= static_cast<int>(gpus.size())) {
      return absl::InvalidArgumentError(absl::StrCat("node ", node, " has no GPU ", gpu));
    }
    return &gpus[static_cast<size_t>(gpu)];
  }

  const Snapshot& snapshot_;
  SnapshotSpec spec_;
  const std::optional<int64_t> start_;  // of what starts
  std::vector<int> entries_;  // by PodId: its entry that is not releasing, in its workload's pods
};

absl::StatusOr<Snapshot> Carry(const Snapshot& snapshot, const Plan& plan, bool settle,
                               std::optional<int64_t> start) {
  Applier applier(snapshot, start);
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
  return Carry(snapshot, plan, false, snapshot.now());
}

absl::StatusOr<Snapshot> ApplyAndSettle(const Snapshot& snapshot, const Plan& plan) {
  return Carry(snapshot, plan, true, snapshot.now());
}

absl::StatusOr<Snapshot> ApplyAndSettleUndated(const Snapshot& snapshot, const Plan& plan) {
  return Carry(snapshot, plan, true, std::nullopt);
}

}  // namespace tessera
