// `tessera replicas`.

#include <array>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "examples/tessera/commands.h"
#include "tessera/base/status.h"
#include "tessera/io/service_json.h"
#include "tessera/replicas/decide_replicas.h"

namespace tessera::cli {
namespace {

// Four digits, or that nobody knows.
std::string Measured(double value) {
  return std::isnan(value) ? "unknown" : absl::StrFormat("%.4g", value);
}

void PrintForecast(const ServiceSpec& spec, const ServiceLoad& load) {
  static constexpr std::array<const char*, 3> kPredictors = {"constant", "trend", "seasonal"};
  std::printf("%s: forecast of the next %lld s (%s, from %zu intervals)\n", spec.name.c_str(),
              static_cast<long long>(spec.interval),
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

}  // namespace

int RunReplicas(const ReplicasArguments& arguments) {
  const absl::StatusOr<std::string> text = ReadInput(arguments.file);
  if (!text.ok()) return Reject(arguments.file, text.status());
  const absl::StatusOr<ServiceSpec> spec = ParseServiceSpec(*text);
  if (!spec.ok()) return Reject(arguments.file, spec.status());
  const absl::StatusOr<ServiceDecision> decision = DecideReplicas(*spec);
  if (!decision.ok()) return Reject(arguments.file, decision.status());
  if (arguments.json) {
    std::fputs(WriteServiceDecision(*spec, *decision).c_str(), stdout);
    return kPlanned;
  }
  PrintForecast(*spec, decision->forecast);
  PrintCounts(*spec, *decision);
  PrintReasons(decision->plan);
  return kPlanned;
}

}  // namespace tessera::cli
