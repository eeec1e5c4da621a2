// `tessera mig SNAPSHOT --want` and `--defragment`.

#include <cstdio>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "examples/tessera/commands.h"
#include "tessera/base/status.h"
#include "tessera/io/plan_json.h"
#include "tessera/preemption/defragmentation.h"
#include "tessera/preemption/repartition.h"

namespace tessera::cli {
namespace {

std::string TextOf(const Action& action) {
  if (const auto* a = std::get_if<SetMigAction>(&action)) {
    return absl::StrCat(a->enabled ? "MIG on" : "MIG off", "   GPU ", a->gpu, " of ", a->node);
  }
  const auto instance = [](const char* verb, const auto& a) {
    return absl::StrCat(verb, a.profile, " at slice ", a.start, " of GPU ", a.gpu, " of ", a.node);
  };
  if (const auto* a = std::get_if<DestroyAction>(&action)) return instance("destroy  ", *a);
  if (const auto* a = std::get_if<CreateAction>(&action)) return instance("create   ", *a);
  const MoveAction& move = std::get<MoveAction>(action);
  const GpuSlice& to = move.devices.slices.front();
  return absl::StrCat("move     ", move.pod.workload, "/", move.pod.pod_set, "/", move.pod.index,
                      " to ", to.profile, " at slice ", to.start, " of GPU ", to.gpu, " of ",
                      move.node);
}

// Prints the actions, refereed: as text, or as a plan file.
int PrintActions(const Snapshot& snapshot, const std::vector<Action>& actions, bool json) {
  if (json) std::fputs(WritePlan({actions, {}}).c_str(), stdout);
  for (const Action& action : actions) {
    if (!json) std::printf("%s\n", TextOf(action).c_str());
  }
  int code = kPlanned;
  for (const PlanViolation& violation : CheckPlan(snapshot, {actions, {}})) {
    if (violation.action < 0) continue;  // the actions alone say nothing of who is pending
    std::fprintf(stderr, "tessera: action %d: %s\n", violation.action, violation.text.c_str());
    code = kPlanFailed;
  }
  return code;
}

// "3g.40gb=2,1g.10gb": a count that is left out is 1.
absl::StatusOr<std::vector<WantedInstances>> ParseWanted(const std::string& text) {
  std::vector<WantedInstances> wanted;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(entry, absl::MaxSplits('=', 1));
    WantedInstances& instances = wanted.emplace_back();
    instances.profile = parts.first;
    if (entry.find('=') == absl::string_view::npos) continue;
    if (absl::SimpleAtoi(parts.second, &instances.count)) continue;
    return absl::InvalidArgumentError(absl::StrCat("\"", parts.second, "\" is not a number"));
  }
  return wanted;
}

int Repartition(const Snapshot& snapshot, const MigArguments& arguments) {
  const absl::StatusOr<std::vector<WantedInstances>> wanted = ParseWanted(arguments.want);
  if (!wanted.ok()) return Reject("--want", wanted.status());
  ClusterRepartitionOptions options;
  options.node = arguments.node;
  const absl::StatusOr<ClusterRepartition> plan = PlanRepartition(snapshot, *wanted, options);
  if (!plan.ok()) return Reject("--want", plan.status());
  FILE* const remarks = arguments.json ? stderr : stdout;
  if (plan->outcome != RepartitionOutcome::kPlanned) {
    std::fprintf(remarks, "%s\n", plan->text.c_str());
  } else if (plan->actions.empty()) {
    std::fputs("they are idle already\n", remarks);
  }
  return PrintActions(snapshot, plan->actions, arguments.json);
}

int Defragment(const Snapshot& snapshot, const MigArguments& arguments) {
  ClusterDefragmentationOptions options;
  options.node = arguments.node;
  const absl::StatusOr<ClusterDefragmentation> plan =
      PlanDefragmentation(snapshot, arguments.defragment, options);
  if (!plan.ok()) return Reject("--defragment", plan.status());
  FILE* const remarks = arguments.json ? stderr : stdout;
  if (plan->outcome != ClusterDefragmentationOutcome::kPlanned) {
    std::fprintf(remarks, "%s\n", plan->text.c_str());
    return PrintActions(snapshot, {}, arguments.json);
  }
  const int code = PrintActions(snapshot, plan->actions, arguments.json);
  std::fprintf(remarks, "%d %s%s; %s %s at slice %d of GPU %d of %s\n", plan->moves,
               plan->moves == 1 ? "move" : "moves", plan->optimal() ? ", no fewer suffice" : "",
               plan->place.profile.c_str(),
               plan->exists ? "is then idle" : "fits, when that is done,", plan->place.start,
               plan->place.gpu, plan->node.c_str());
  return code;
}

}  // namespace

int RunMigChanges(const MigArguments& arguments) {
  const absl::StatusOr<Snapshot> snapshot = ReadSnapshot(arguments.model);
  if (!snapshot.ok()) return Reject(arguments.model, snapshot.status());
  return arguments.want.empty() ? Defragment(*snapshot, arguments)
                                : Repartition(*snapshot, arguments);
}

}  // namespace tessera::cli
