#include "src/verify/plan_replay.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "src/verify/plan_target.h"
#include "src/verify/text.h"
#include "src/verify/victim_units.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

std::string_view PhaseText(PodPhase phase) {
  static constexpr std::array<std::string_view, 6> kTexts = {
      "is pending", "is nominated", "is running", "is releasing", "has succeeded", "has failed"};
  return kTexts[static_cast<size_t>(phase)];
}

std::string InstanceText(std::string_view verb, const std::string& profile, int start,
                         const std::string& node, int gpu) {
  return absl::StrCat(ToAbsl(verb), " ", profile, " at slice ", start, " of GPU ", gpu, " of ",
                      node);
}

}  // namespace

PlanReplay::PlanReplay(const Snapshot& snapshot, const CheckPlanOptions& options,
                       ViolationList& violations)
    : snapshot_(snapshot),
      options_(options),
      violations_(violations),
      changes_(static_cast<size_t>(snapshot.num_pods()), Change::kNone),
      layouts_(snapshot),
      now_(snapshot, layouts_),
      later_(snapshot, layouts_) {
  phases_.reserve(static_cast<size_t>(snapshot.num_pods()));
  for (const ReleasingPod& leaving : snapshot.releasing()) {
    now_.Add(leaving.pod, leaving.placement);
  }
  for (int i = 0; i < snapshot.num_pods(); ++i) {
    const PodId p(i);
    PodPhase phase = snapshot.pod_phase(p);
    if (phase == PodPhase::kNominated && !options.honour_nominations) {
      phase = now_.holds(p) ? PodPhase::kReleasing : PodPhase::kPending;
    }
    phases_.push_back(phase);
    if (phase == PodPhase::kRunning) now_.Add(p, snapshot.pod_placement(p));
    if (was_up(p)) later_.Add(p, snapshot.pod_placement(p));
  }
}

bool PlanReplay::was_up(PodId p) const {
  const PodPhase phase = snapshot_.pod_phase(p);
  return phase == PodPhase::kRunning ||
         (phase == PodPhase::kNominated && options_.honour_nominations);
}

void PlanReplay::Run(const std::vector<Action>& actions) {
  for (size_t i = 0; i < actions.size() && !violations_.full(); ++i) {
    action_ = static_cast<int>(i);
    std::visit(*this, actions[i]);
  }
}

void PlanReplay::Report(std::string_view problem) {
  violations_.Add(action_, absl::StrCat(subject_, ": ", ToAbsl(problem)));
}

std::optional<PodId> PlanReplay::Find(const PodRef& ref) {
  const std::optional<PodId> p = snapshot_.FindPod(ref);
  if (!p) Report("there is no such pod");
  return p;
}

void PlanReplay::operator()(const EvictAction& action) {
  Speak(absl::StrCat("evict ", NameOf(action.pod)));
  if (!action.on_behalf_of.empty() && !snapshot_.FindWorkload(action.on_behalf_of)) {
    Report(absl::StrCat("there is no workload \"", action.on_behalf_of, "\" to evict it for"));
  }
  const std::optional<PodId> p = Find(action.pod);
  if (!p) return;
  const bool is_ignored_nomination =
      snapshot_.pod_phase(*p) == PodPhase::kNominated && !options_.honour_nominations;
  if (!later_.holds(*p) && !is_ignored_nomination) return Report(PhaseText(phase(*p)));
  const Workload& workload =
      snapshot_.workload(snapshot_.pod_set(snapshot_.pod_set_of(*p)).workload);
  if (action.reason == kStaleReason) {
    const auto before = [this](PodId other) { return was_up(other); };
    const WorkloadId w = snapshot_.pod_set(snapshot_.pod_set_of(*p)).workload;
    if (IsWholeAfter({snapshot_, w, before, before})) {
      Report(workload.name + " is not below its minimum");
    }
  } else if (!workload.is_preemptible()) {
    Report(workload.name + " is not preemptible");
  }
  later_.Remove(*p);
  SetPhase(*p, now_.holds(*p) ? PodPhase::kReleasing : PodPhase::kPending);
  SetChange(*p, Change::kNone);
}

void PlanReplay::operator()(const MoveAction& action) {
  Speak(absl::StrCat("move ", NameOf(action.pod)));
  const std::optional<PodId> p = Find(action.pod);
  if (!p) return;
  if (phase(*p) != PodPhase::kRunning) return Report(PhaseText(phase(*p)));
  const Workload& workload =
      snapshot_.workload(snapshot_.pod_set(snapshot_.pod_set_of(*p)).workload);
  if (!workload.is_movable()) Report(workload.name + " is not movable");
  Place(*p, action.node, action.devices, false);
  if (phase(*p) == PodPhase::kNominated && !is_new(*p)) SetChange(*p, Change::kMoved);
}

void PlanReplay::operator()(const BindAction& action) {
  Speak(absl::StrCat("bind ", NameOf(action.pod)));
  const std::optional<PodId> p = Find(action.pod);
  if (!p || !MayStart(*p)) return;
  if (now_.holds(*p)) return Report("is still releasing its old place");
  Place(*p, action.node, action.devices, true);
  if (phase(*p) == PodPhase::kRunning) SetChange(*p, Change::kNew);
}

void PlanReplay::operator()(const NominateAction& action) {
  Speak(absl::StrCat("nominate ", NameOf(action.pod)));
  const std::optional<PodId> p = Find(action.pod);
  if (!p || !MayStart(*p)) return;
  Place(*p, action.node, action.devices, false);
  if (phase(*p) == PodPhase::kNominated) SetChange(*p, Change::kNew);
}

// A pod that the plan itself evicts may get another place; one that was leaving before ends
// first.
bool PlanReplay::MayStart(PodId p) {
  const bool evicted = phase(p) == PodPhase::kReleasing && was_up(p);
  const bool may = evicted || phase(p) == PodPhase::kPending || phase(p) == PodPhase::kNominated;
  if (!may) Report(PhaseText(phase(p)));
  return may;
}

// Puts `p` on `devices` of `node`, running or else nominated, and reports what
// speaks against it. Nothing changes where the names describe no place.
void PlanReplay::Place(PodId p, const std::string& node, const Devices& devices, bool now) {
  std::vector<std::string> problems;
  const std::optional<PodPlacement> target =
      ResolveTarget(snapshot_, layouts_, p, node, devices, now, problems);
  if (target) {
    later_.Remove(p);
    const size_t so_far = problems.size();
    if (now) now_.Judge(p, *target, problems);
    // What lacks room now need not be told again of a time with more pods.
    if (problems.size() == so_far) later_.Judge(p, *target, problems);
    if (now) now_.Add(p, *target);
    later_.Add(p, *target);
    SetPhase(p, now ? PodPhase::kRunning : PodPhase::kNominated);
  }
  for (const std::string& problem : problems) Report(problem);
}

PlanReplay::Device PlanReplay::FindDevice(const std::string& node, int gpu) {
  const std::optional<NodeId> n = snapshot_.FindNode(node);
  if (!n) {
    Report(absl::StrCat("no node is named \"", node, "\""));
    return {};
  }
  const std::vector<Gpu>& gpus = snapshot_.node(*n).gpus;
  if (gpu < 0 || gpu >= static_cast<int>(gpus.size())) {
    Report(absl::StrCat(node, " has no GPU ", gpu));
    return {};
  }
  const Gpu& found = gpus[static_cast<size_t>(gpu)];
  if (found.mig != MigMode::kDynamic) Report("the GPU is not `dynamic`");
  return {*n, gpu, &found, &layouts_.at(*n, gpu)};
}

void PlanReplay::ReportHolder(std::string_view text, PodId holder) {
  Report(absl::StrCat(ToAbsl(text), " ", NameOf(snapshot_, holder)));
}

void PlanReplay::operator()(const DestroyAction& action) {
  Speak(InstanceText("destroy", action.profile, action.start, action.node, action.gpu));
  const Device device = FindDevice(action.node, action.gpu);
  if (device.gpu == nullptr) return;
  const MigTables& tables = snapshot_.mig(snapshot_.node_model(device.node));
  const std::optional<int> profile = tables.model().FindProfile(action.profile);
  const Instance instance = {profile.value_or(0), action.start};
  if (!profile || !device.layout->has(instance)) return Report("there is no such instance");
  const auto on_it = [&](const PlanOccupancy::Hold& hold) {
    return now_.Overlaps(device.node, hold, instance);
  };
  if (const auto* hold = now_.FindHold(device.node, device.index, on_it)) {
    ReportHolder("it is held by", hold->pod);
  } else if (const auto* coming = later_.FindHold(device.node, device.index, on_it)) {
    ReportHolder("it is reserved for", coming->pod);
  }
  device.layout->key = tables.Remove(device.layout->key, instance.profile, instance.start);
  std::erase(device.layout->instances, instance);
}

void PlanReplay::operator()(const SetMigAction& action) {
  Speak(absl::StrCat("set_mig ", action.enabled ? "on" : "off", " of GPU ", action.gpu, " of ",
                     action.node));
  const Device device = FindDevice(action.node, action.gpu);
  if (device.gpu == nullptr) return;
  const GpuModel& model = snapshot_.model(snapshot_.node_model(device.node));
  if (!model.supports_mig()) return Report(absl::StrCat("a ", model.name, " has no MIG"));
  if (!device.gpu->healthy) Report("the GPU is not healthy");
  if (device.layout->mig_enabled == action.enabled) Report("that is its state already");
  if (!device.layout->instances.empty()) return Report("the GPU has instances");
  if (const auto* hold = now_.FindHold(device.node, device.index,
                                       [](const PlanOccupancy::Hold&) { return true; })) {
    ReportHolder("the GPU is held by", hold->pod);
  } else if (const auto* coming = later_.FindHold(device.node, device.index,
                                                  [&action](const PlanOccupancy::Hold& reserved) {
                                                    return reserved.is_slice() != action.enabled;
                                                  })) {
    ReportHolder("the GPU is reserved, in its present mode, for", coming->pod);
  }
  device.layout->mig_enabled = action.enabled;
}

void PlanReplay::operator()(const CreateAction& action) {
  Speak(InstanceText("create", action.profile, action.start, action.node, action.gpu));
  const Device device = FindDevice(action.node, action.gpu);
  if (device.gpu == nullptr) return;
  const MigTables& tables = snapshot_.mig(snapshot_.node_model(device.node));
  if (!device.gpu->healthy) Report("the GPU is not healthy");
  if (!device.layout->mig_enabled) Report("the GPU is not in MIG mode");
  const std::optional<int> profile = tables.model().FindProfile(action.profile);
  if (!profile) return Report(absl::StrCat("a ", tables.model().name, " has no such profile"));
  const Instance instance = {*profile, action.start};
  if (!tables.CanPlace(tables.empty(), instance.profile, instance.start)) {
    return Report("it cannot start there");
  }
  if (!tables.CanPlace(device.layout->key, instance.profile, instance.start)) {
    return Report("the instances that exist leave no room for it");
  }
  if (const auto* coming =
          later_.FindHold(device.node, device.index, [&](const PlanOccupancy::Hold& reserved) {
            const Instance other = {reserved.profile, reserved.start};
            return other != instance && later_.Overlaps(device.node, reserved, instance);
          })) {
    ReportHolder("it covers what is reserved for", coming->pod);
  }
  device.layout->key = tables.Add(device.layout->key, instance.profile, instance.start);
  device.layout->instances.push_back(instance);
}

}  // namespace tessera
