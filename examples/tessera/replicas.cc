// `tessera replicas`.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "examples/tessera/commands.h"
#include "tessera/base/status.h"
#include "tessera/io/replicas_svg.h"
#include "tessera/io/service_json.h"
#include "tessera/replicas/decide_replicas.h"
#include "tessera/replicas/service_replay.h"

namespace tessera::cli {
namespace {

// Four digits, or that nobody knows.
std::string Measured(double value) {
  return std::isnan(value) ? "unknown" : absl::StrFormat("%.4g", value);
}

void PrintForecast(const ServiceSpec& spec, const ServiceLoad& load) {
  static constexpr std::array<const char*, 3> kPredictors = {"constant", "trend", "seasonal"};
  std::printf("%s: forecast of the next %lld s (%s, from %zu intervals)\n", spec.name.c_str(),
              static_cast<long long>(spec.interval * spec.predictor.ahead),
              kPredictors[static_cast<size_t>(spec.predictor.kind)], spec.history.size());
  std::printf("  %s requests/s of %s input and %s output tokens, %s %% of the input cached\n",
              Measured(load.request_rate).c_str(), Measured(load.input_tokens).c_str(),
              Measured(load.output_tokens).c_str(), Measured(100 * load.prefix_hit_rate).c_str());
}

void PrintCounts(const ServiceSpec& spec, const ServiceDecision& decision) {
  std::printf("\n  %-8s %8s %8s %9s %9s %8s %8s\n", "engines", "ready", "expected", "required",
              "reaction", "needed", "granted");
  for (EngineRole role : kEngineRoles) {
    const bool is_aggregated = spec.rules.mode == ServiceMode::kAggregated;
    if (is_aggregated && role == EngineRole::kPrefill) continue;
    const std::string required =
        decision.required.counts ? absl::StrCat(OfRole(*decision.required.counts, role)) : "-";
    std::printf("  %-8s %8lld %8lld %9s %9s %8lld %8lld\n",
                is_aggregated ? "both" : std::string(ToString(role)).c_str(),
                static_cast<long long>(OfRole(spec.status.ready, role)),
                static_cast<long long>(OfRole(spec.status.expected, role)), required.c_str(),
                std::string(ToString(OfRole(decision.reactions, role))).c_str(),
                static_cast<long long>(OfRole(decision.plan.needed, role)),
                static_cast<long long>(OfRole(decision.plan.granted, role)));
  }
  if (!decision.required.counts || decision.forecast.request_rate == 0) return;
  std::printf(
      "  as required: %s ms to the first token (SLA %s), %s ms between tokens (SLA %s)\n",
      Measured(1000 * decision.required.ttft).c_str(), Measured(1000 * spec.sla.ttft).c_str(),
      Measured(1000 * decision.required.itl).c_str(), Measured(1000 * spec.sla.itl).c_str());
}

void PrintReasons(const ReplicaPlan& plan) {
  std::printf("\n%s:\n", std::string(ToString(plan.outcome)).c_str());
  for (const ReplicaNote& note : plan.notes) std::printf("  %s\n", Describe(note).c_str());
  std::printf("\n%lld GPUs before, %lld after, at most %lld on the way\n",
              static_cast<long long>(plan.gpus_before), static_cast<long long>(plan.gpus_after),
              static_cast<long long>(plan.transition.peak_gpus));
  for (const ScalingStep& step : plan.transition.steps) {
    std::printf("  %s %lld -> %lld, %lld GPUs then\n", std::string(ToString(step.role)).c_str(),
                static_cast<long long>(step.from), static_cast<long long>(step.to),
                static_cast<long long>(step.gpus_after));
  }
}

absl::StatusOr<PlaceableReplicas> AskCluster(const ServiceFile& file, const ReplicaCounts& granted,
                                             const Snapshot& snapshot) {
  if (!file.shape) return InvalidAt("engines", "every role needs \"pods\" to be placed");
  return PlanPlaceableReplicas(snapshot, file.workload, *file.shape, granted);
}

void PrintPlaceable(const PlaceableReplicas& placeable, const ReplicaCounts& granted) {
  std::puts("\nin the cluster:");
  for (EngineRole role : kEngineRoles) {
    const RoleBound& bound = OfRole(placeable, role);
    if (OfRole(granted, role) == 0) continue;
    std::printf("  %s: %lld of %lld can run", std::string(ToString(role)).c_str(),
                static_cast<long long>(OfRole(placeable.counts, role)),
                static_cast<long long>(OfRole(granted, role)));
    if (bound.bound != ReplicaBound::kNone) {
      std::printf(" (%s): %s", std::string(ToString(bound.bound)).c_str(), bound.text.c_str());
    }
    std::puts("");
  }
  for (const PodRef& pod : placeable.removed) {
    std::printf("  %s/%d is not needed any more\n", pod.pod_set.c_str(), pod.index);
  }
}

// The last day of the history as loads per tick, and the service as it was before it.
struct Day {
  ServiceSpec service;
  std::vector<ServiceLoad> loads;
  int64_t ticks = 1;  // per interval
  int64_t tick = 1;   // seconds
};

absl::StatusOr<Day> SplitDay(const ServiceSpec& spec) {
  constexpr int64_t kDay = 86400, kTicks = 10;
  if (spec.history.empty()) return InvalidAt("history.requests", "is empty");
  Day day{spec, {}, spec.interval % kTicks == 0 ? kTicks : 1, spec.interval};
  day.tick = spec.interval / day.ticks;
  const size_t wanted = static_cast<size_t>(std::max<int64_t>(kDay / spec.interval, 1));
  const size_t first = spec.history.size() - std::min(wanted, spec.history.size());
  day.service.history.resize(first);
  ServiceLoad last;
  for (size_t i = 0; i < spec.history.size(); ++i) {
    // Where nothing was measured the load stays as it was.
    for (const auto part : {&ServiceLoad::request_rate, &ServiceLoad::input_tokens,
                            &ServiceLoad::output_tokens, &ServiceLoad::prefix_hit_rate}) {
      if (!std::isnan(spec.history[i].*part)) last.*part = spec.history[i].*part;
    }
    if (i >= first) day.loads.insert(day.loads.end(), static_cast<size_t>(day.ticks), last);
  }
  return day;
}

// Draws how this planner, with reactions, would have gone through the last day.
absl::StatusOr<std::string> DrawDay(const ServiceSpec& spec, std::string& summary) {
  TESSERA_ASSIGN_OR_RETURN(Day day, SplitDay(spec));
  ReplayOptions options;
  options.tick = day.tick;
  TESSERA_ASSIGN_OR_RETURN(const ReplayResult ideal,
                           ClairvoyantReplay(day.service, day.loads, options));
  // It begins with the engines that this took.
  day.service.status.expected = day.service.status.ready = ideal.ticks.front().expected;
  TESSERA_ASSIGN_OR_RETURN(const ReplayResult replay,
                           ReplayService(day.service, day.loads, options));
  summary = absl::StrFormat(
      "%.2f %% of the requests within the SLA, %.1f GPU-hours; with the load known before: "
      "%.2f %%, %.1f GPU-hours",
      100 * replay.attainment(), replay.gpu_hours, 100 * ideal.attainment(), ideal.gpu_hours);
  ReplicaTrace trace = TraceOf(replay, ideal, day.tick, day.ticks);
  trace.title = spec.name + ": the last day, replayed";
  trace.note = summary;
  return DrawReplicaTrace(trace);
}

}  // namespace

int RunReplicas(const ReplicasArguments& arguments) {
  const absl::StatusOr<std::string> text = ReadInput(arguments.file);
  if (!text.ok()) return Reject(arguments.file, text.status());
  const absl::StatusOr<ServiceFile> file = ParseServiceFile(*text);
  if (!file.ok()) return Reject(arguments.file, file.status());
  const absl::StatusOr<ServiceDecision> decision = DecideReplicas(file->service);
  if (!decision.ok()) return Reject(arguments.file, decision.status());
  std::optional<PlaceableReplicas> placeable;
  if (!arguments.cluster.empty()) {
    const absl::StatusOr<Snapshot> snapshot = ReadSnapshot(arguments.cluster);
    if (!snapshot.ok()) return Reject(arguments.cluster, snapshot.status());
    absl::StatusOr<PlaceableReplicas> asked = AskCluster(*file, decision->plan.granted, *snapshot);
    if (!asked.ok()) return Reject(arguments.file, asked.status());
    placeable = *std::move(asked);
  }
  std::string summary;
  if (!arguments.svg.empty()) {
    Progress("replaying a day");
    const absl::StatusOr<std::string> picture = DrawDay(file->service, summary);
    if (!picture.ok()) return Reject(arguments.file, picture.status());
    if (const int code = WriteOutput(arguments.svg, *picture); code != kPlanned) return code;
  }
  if (arguments.json) {
    std::fputs(WriteServiceDecision(file->service, *decision, placeable).c_str(), stdout);
    return kPlanned;
  }
  PrintForecast(file->service, decision->forecast);
  PrintCounts(file->service, *decision);
  PrintReasons(decision->plan);
  if (placeable) PrintPlaceable(*placeable, decision->plan.granted);
  if (!summary.empty()) std::printf("\nthe last day, replayed: %s\n", summary.c_str());
  return kPlanned;
}

}  // namespace tessera::cli
