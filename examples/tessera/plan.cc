// `tessera plan`, `tessera check` and `tessera explain`.

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "examples/tessera/commands.h"
#include "tessera/base/status.h"
#include "tessera/io/mig_formats.h"
#include "tessera/io/mosaic.h"
#include "tessera/io/mosaic_svg.h"
#include "tessera/io/plan_json.h"
#include "tessera/placement/near_miss.h"

namespace tessera::cli {
namespace {

// Longer lists are summed up.
constexpr size_t kMaxListed = 40;

std::string DevicesText(const Devices& devices) {
  std::vector<std::string> parts;
  for (int gpu : devices.gpus) parts.push_back(absl::StrCat("GPU ", gpu));
  for (const GpuShare& share : devices.shares) {
    parts.push_back(absl::StrCat(100 * share.share / kGpuUnitsPerDevice, "% of GPU ", share.gpu));
  }
  for (const GpuSlice& slice : devices.slices) {
    parts.push_back(absl::StrCat(slice.profile, " at slice ", slice.start, " of GPU ", slice.gpu));
  }
  return absl::StrJoin(parts, ", ");
}

// What a plan does, in numbers and per workload.
struct PlanSummary {
  int bound = 0;
  int nominated = 0;
  int mig_operations = 0;
  std::map<std::string, std::map<std::string, int>> pods_on;  // workload -> node -> pods
};

class Summarizer {
 public:
  explicit Summarizer(PlanSummary& summary) : summary_(summary) {}

  void operator()(const BindAction& action) const {
    ++summary_.bound;
    ++summary_.pods_on[action.pod.workload][action.node];
  }
  void operator()(const NominateAction& action) const {
    ++summary_.nominated;
    ++summary_.pods_on[action.pod.workload][action.node];
  }
  void operator()(const CreateAction&) const { ++summary_.mig_operations; }
  void operator()(const DestroyAction&) const { ++summary_.mig_operations; }
  void operator()(const SetMigAction&) const { ++summary_.mig_operations; }
  void operator()(const EvictAction&) const {}
  void operator()(const MoveAction&) const {}

 private:
  PlanSummary& summary_;
};

PlanSummary Summarize(const Plan& plan) {
  PlanSummary summary;
  for (const Action& action : plan.actions) std::visit(Summarizer(summary), action);
  return summary;
}

void PrintPlaced(const Snapshot& snapshot, const PlanSummary& summary) {
  if (summary.pods_on.empty()) {
    std::puts("\nNothing new is placed.");
    return;
  }
  std::puts("\nPlaced");
  if (summary.pods_on.size() > kMaxListed) {
    std::map<std::string, int> per_queue;
    for (const auto& [workload, nodes] : summary.pods_on) {
      const Workload& w = snapshot.workload(*snapshot.FindWorkload(workload));
      for (const auto& [node, pods] : nodes) per_queue[w.queue] += pods;
    }
    for (const auto& [queue, pods] : per_queue) {
      std::printf("  %-20s %d pods\n", queue.c_str(), pods);
    }
    return;
  }
  for (const auto& [workload, nodes] : summary.pods_on) {
    std::vector<std::string> places;
    for (const auto& [node, pods] : nodes) {
      places.push_back(absl::StrCat(pods, pods == 1 ? " pod on " : " pods on ", node));
    }
    const Workload& w = snapshot.workload(*snapshot.FindWorkload(workload));
    std::printf("  %-20s %s (%s)\n", workload.c_str(), absl::StrJoin(places, ", ").c_str(),
                w.queue.c_str());
  }
}

// For whom others yield, who does, and why each of them.
void PrintYielding(const CycleResult& cycle) {
  if (!cycle.certificates.empty()) std::puts("\nWho yields");
  for (size_t i = 0; i < cycle.certificates.size() && i < kMaxListed; ++i) {
    const std::string text = ToText(cycle.certificates[i]);
    std::printf("  %s\n", absl::StrReplaceAll(text, {{"\n", "\n    "}}).c_str());
  }
  if (cycle.certificates.size() > kMaxListed) {
    std::printf("  and for %zu more\n", cycle.certificates.size() - kMaxListed);
  }
  std::map<std::string, int> stale;
  for (const Action& action : cycle.plan.actions) {
    const auto* evict = std::get_if<EvictAction>(&action);
    if (evict != nullptr && evict->on_behalf_of.empty()) ++stale[evict->pod.workload];
  }
  if (!stale.empty()) std::puts("\nEnded, below their minimum for too long");
  for (const auto& [victim, pods] : stale) std::printf("  %-20s %d pods\n", victim.c_str(), pods);
}

void PrintPending(const Plan& plan) {
  if (plan.pending.empty()) {
    std::puts("\nEverything runs.");
    return;
  }
  std::puts("\nNot complete");
  std::map<std::string, int> by_reason;
  for (const PendingWorkload& pending : plan.pending) {
    ++by_reason[std::string(ToString(pending.reason))];
  }
  for (size_t i = 0; i < plan.pending.size() && i < kMaxListed; ++i) {
    const PendingWorkload& pending = plan.pending[i];
    std::printf("  %-20s %s%s: %s\n", pending.workload.c_str(),
                pending.below_minimum ? "" : "(runs, could grow) ",
                std::string(ToString(pending.reason)).c_str(), pending.text.c_str());
  }
  if (plan.pending.size() <= kMaxListed) return;
  std::printf("  and %zu more; in all:\n", plan.pending.size() - kMaxListed);
  for (const auto& [reason, count] : by_reason) {
    std::printf("  %7d %s\n", count, reason.c_str());
  }
}

void PrintReservations(const Snapshot& snapshot, const CycleResult& cycle) {
  if (!cycle.reservations.empty()) std::puts("\nHeld for who waits for long");
  for (const Reservation& held : cycle.reservations) {
    const std::string until =
        held.free_by == kUnlimited
            ? std::string("what runs there may run on")
            : absl::StrCat("free in ", held.free_by - snapshot.now(), " seconds at the latest");
    std::printf("  %-20s %s kept free on %s; %s\n", held.workload.c_str(),
                AmountOf("gpu", held.idle_gpu_units).c_str(),
                absl::StrJoin(held.nodes, ", ").c_str(), until.c_str());
  }
}

void PrintPlan(const Snapshot& snapshot, const CycleResult& cycle) {
  const PlanSummary summary = Summarize(cycle.plan);
  int gpus = 0;
  for (const Node& node : snapshot.spec().nodes) gpus += static_cast<int>(node.gpus.size());
  std::printf(
      "%d nodes, %d GPUs, %d workloads with %d pods: %d pods bound, %d nominated, %d MIG "
      "operations, %zu workloads not complete\n",
      snapshot.num_nodes(), gpus, snapshot.num_workloads(), snapshot.num_pods(), summary.bound,
      summary.nominated, summary.mig_operations, cycle.plan.pending.size());
  std::puts("\nShares before the plan (- is no limit)");
  std::fputs(SharesTable(snapshot, cycle.shares).c_str(), stdout);
  PrintPlaced(snapshot, summary);
  PrintYielding(cycle);
  PrintReservations(snapshot, cycle);
  PrintPending(cycle.plan);
}

int PrintMosaic(const Snapshot& snapshot, const Plan& plan) {
  const absl::StatusOr<Snapshot> after = Apply(snapshot, plan);
  if (!after.ok()) return Reject("the plan", after.status());
  std::puts(
      "\nEvery GPU after the plan: workload/pod set, <idle MIG instance>, (leaving), ?waiting, "
      "... free");
  std::fputs(DrawMosaic(*after).c_str(), stdout);
  return kPlanned;
}

int WritePicture(const Snapshot& snapshot, const Plan& plan, const std::string& file) {
  const absl::StatusOr<Snapshot> after = ApplyAndSettle(snapshot, plan);
  if (!after.ok()) return Reject("the plan", after.status());
  return WriteOutput(file, DrawPlanSvg(snapshot, *after));
}

// The MIG operations of `plan`, or the MIG layouts after it.
int PrintExport(const Snapshot& snapshot, const Plan& plan, const std::string& format) {
  if (format == "nvidia-smi") {
    const absl::StatusOr<std::string> commands = WriteMigCommands(snapshot, plan);
    if (!commands.ok()) return Reject("the plan", commands.status());
    std::fputs(commands->c_str(), stdout);
    return kPlanned;
  }
  const absl::StatusOr<Snapshot> after = ApplyAndSettle(snapshot, plan);
  if (!after.ok()) return Reject("the plan", after.status());
  std::fputs(WriteMigParted(*after).c_str(), stdout);
  return kPlanned;
}

// Where the pods of a workload are after the plan, and by which action.
class PodLister {
 public:
  explicit PodLister(const std::string& workload) : workload_(workload) {}

  void operator()(const BindAction& a) const { Print(a.pod, "starts on", a.node, a.devices); }
  void operator()(const NominateAction& a) const { Print(a.pod, "waits for", a.node, a.devices); }
  void operator()(const MoveAction& a) const { Print(a.pod, "moves to", a.node, a.devices); }
  void operator()(const EvictAction& a) const {
    if (a.pod.workload == workload_) {
      std::printf("  %s/%d is evicted (%s)\n", a.pod.pod_set.c_str(), a.pod.index,
                  a.reason.c_str());
    }
  }
  template <typename Other>
  void operator()(const Other&) const {}

 private:
  void Print(const PodRef& pod, const char* what, const std::string& node,
             const Devices& devices) const {
    if (pod.workload != workload_) return;
    const std::string text = DevicesText(devices);
    std::printf("  %s/%d %s %s%s%s\n", pod.pod_set.c_str(), pod.index, what, node.c_str(),
                text.empty() ? "" : ", ", text.c_str());
  }

  const std::string& workload_;
};

// Why there is no place for a workload, in lines. The cycle proves it for the first of many
// that wait; for the others it is done here, and the nearest miss is told with it.
std::vector<std::string> ProofOf(const Snapshot& snapshot, const Plan& plan,
                                 const PendingWorkload& pending) {
  if (!pending.proof.empty()) return {pending.proof};
  const bool by_queue =
      pending.reason == PendingReason::kQuota || pending.reason == PendingReason::kQueueLimit;
  const absl::StatusOr<Snapshot> after = Apply(snapshot, plan);
  if (by_queue || !after.ok()) return {};
  const ClusterState state(std::make_shared<const StateTables>(*after), {});
  NearMissFinder finder(state);
  const WorkloadId w = *after->FindWorkload(pending.workload);
  const std::optional<RoomShortage> proof = finder.Certify(w);
  const std::optional<NearMiss> nearest = proof ? finder.Find(w) : std::nullopt;
  if (!nearest) return {};
  return {absl::StrCat("nearest: ", Describe(state, *nearest)), Describe(state, *proof)};
}

}  // namespace

int RunPlan(const PlanArguments& arguments) {
  const absl::StatusOr<Snapshot> snapshot = ReadSnapshot(arguments.file);
  if (!snapshot.ok()) return Reject(arguments.file, snapshot.status());
  const CycleResult cycle = RunPreset(*snapshot, arguments.preset);
  const std::string findings = RefereeFindings(*snapshot, cycle, arguments.preset);
  if (!findings.empty()) {
    std::fprintf(stderr, "tessera: the plan failed the referee:\n%s", findings.c_str());
    return kPlanFailed;
  }
  const std::string json = WritePlan(cycle.plan);
  if (!arguments.out.empty()) {
    if (const int code = WriteOutput(arguments.out, json); code != kPlanned) return code;
  }
  if (!arguments.svg.empty()) {
    if (const int code = WritePicture(*snapshot, cycle.plan, arguments.svg); code != kPlanned) {
      return code;
    }
  }
  if (!arguments.export_as.empty()) {
    return PrintExport(*snapshot, cycle.plan, arguments.export_as);
  }
  if (arguments.json) {
    std::fputs(json.c_str(), stdout);
    return kPlanned;
  }
  PrintPlan(*snapshot, cycle);
  if (arguments.room) {
    const int code = PrintRoom(*snapshot, cycle, arguments.preset);
    if (code != kPlanned) return code;
  }
  return arguments.mosaic ? PrintMosaic(*snapshot, cycle.plan) : static_cast<int>(kPlanned);
}

int RunCheck(const std::string& file, const std::string& plan_file, const std::string& preset) {
  const absl::StatusOr<Snapshot> snapshot = ReadSnapshot(file);
  if (!snapshot.ok()) return Reject(file, snapshot.status());
  const absl::StatusOr<std::string> text = ReadInput(plan_file);
  if (!text.ok()) return Reject(plan_file, text.status());
  const absl::StatusOr<Plan> plan = ParsePlan(*text);
  if (!plan.ok()) return Reject(plan_file, plan.status());
  const std::vector<PlanViolation> violations = CheckPlan(*snapshot, *plan, RefereeOptions(preset));
  for (const PlanViolation& v : violations) {
    const std::string where = v.action < 0 ? "" : absl::StrCat("actions[", v.action, "]: ");
    std::printf("%s%s\n", where.c_str(), v.text.c_str());
  }
  if (!violations.empty()) return kPlanFailed;
  std::printf("the plan is legal: %zu actions, %zu workloads not complete\n", plan->actions.size(),
              plan->pending.size());
  return kPlanned;
}

int RunExplain(const std::string& file, const std::string& name, const std::string& preset) {
  const absl::StatusOr<Snapshot> snapshot = ReadSnapshot(file);
  if (!snapshot.ok()) return Reject(file, snapshot.status());
  const std::optional<WorkloadId> w = snapshot->FindWorkload(name);
  if (!w) {
    std::vector<std::string_view> known;
    for (const Workload& other : snapshot->spec().workloads) known.push_back(other.name);
    return Reject(file, absl::NotFoundError(absl::StrCat("no workload is named \"", name, "\"",
                                                         DidYouMean(name, known))));
  }
  const Workload& workload = snapshot->workload(*w);
  const CycleResult cycle = RunPreset(*snapshot, preset);
  std::printf("%s: queue %s, priority %d, %s, tenant %s\n", name.c_str(), workload.queue.c_str(),
              workload.priority, workload.is_preemptible() ? "preemptible" : "not preemptible",
              workload.tenant_name().c_str());
  for (const Pod& pod : workload.pods) {
    if (pod.phase != PodPhase::kRunning) continue;
    std::printf("  %s/%d runs on %s %s\n", pod.pod_set.c_str(), pod.index, pod.node.c_str(),
                DevicesText(pod.devices).c_str());
  }
  for (const Action& action : cycle.plan.actions) std::visit(PodLister(name), action);
  for (const PendingWorkload& pending : cycle.plan.pending) {
    if (pending.workload != name) continue;
    std::printf("%s, %s: %s\n", pending.below_minimum ? "pending" : "runs, but is not complete",
                std::string(ToString(pending.reason)).c_str(), pending.text.c_str());
    for (const std::string& line : ProofOf(*snapshot, cycle.plan, pending)) {
      std::printf("  %s\n", line.c_str());
    }
    for (const auto& [label, count] : pending.counts) {
      std::printf("  %7lld %s\n", static_cast<long long>(count), label.c_str());
    }
  }
  ExplainYielding(cycle, name);
  if (const int code = ExplainRoom(*snapshot, cycle, name, preset); code != kPlanned) return code;
  std::puts("\nIts queue among all (- is no limit)");
  std::fputs(SharesTable(*snapshot, cycle.shares).c_str(), stdout);
  return kPlanned;
}

}  // namespace tessera::cli
