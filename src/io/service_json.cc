#include "tessera/io/service_json.h"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "src/io/json_reader.h"
#include "src/io/nouns.h"

// Not in an unnamed namespace: the templates of json_reader.h find `Read` by argument.
namespace tessera::io_internal {

constexpr std::array<std::string_view, 2> kModes = {"disaggregated", "aggregated"};
constexpr std::array<std::string_view, 3> kPredictors = {"constant", "trend", "seasonal"};

absl::Status Read(const Place& at, Sla& out) {
  static constexpr Field<Sla> kFields[] = {{"ttft", Into<&Sla::ttft>, kRequired},
                                           {"itl", Into<&Sla::itl>, kRequired}};
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, ReplicaCounts& out) {
  static constexpr Field<ReplicaCounts> kFields[] = {{"prefill", Into<&ReplicaCounts::prefill>},
                                                     {"decode", Into<&ReplicaCounts::decode>}};
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, PrefillSample& out) {
  static constexpr Field<PrefillSample> kFields[] = {
      {"input_tokens", Into<&PrefillSample::input_tokens>, kRequired},
      {"ttft", Into<&PrefillSample::ttft>, kRequired},
      {"tokens_per_second_per_gpu", Into<&PrefillSample::tokens_per_second_per_gpu>, kRequired},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, DecodeSample& out) {
  static constexpr Field<DecodeSample> kFields[] = {
      {"context_tokens", Into<&DecodeSample::context_tokens>, kRequired},
      {"kv_usage", Into<&DecodeSample::kv_usage>, kRequired},
      {"itl", Into<&DecodeSample::itl>, kRequired},
      {"tokens_per_second_per_gpu", Into<&DecodeSample::tokens_per_second_per_gpu>, kRequired},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, IterationCost& out) {
  static constexpr Field<IterationCost> kFields[] = {
      {"fixed", Into<&IterationCost::fixed>},
      {"per_prefill_token", Into<&IterationCost::per_prefill_token>},
      {"per_sequence", Into<&IterationCost::per_sequence>},
      {"per_kv_token", Into<&IterationCost::per_kv_token>},
  };
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out));
  for (const double cost : {out.fixed, out.per_prefill_token, out.per_sequence, out.per_kv_token}) {
    if (!(cost >= 0 && cost <= kMaxMeasure))
      return at.Error("has a cost that is negative or absurd");
  }
  return absl::OkStatus();
}

absl::Status Read(const Place& at, DecodeEngineLoad& out) {
  static constexpr Field<DecodeEngineLoad> kFields[] = {
      {"requests", Into<&DecodeEngineLoad::requests>, kRequired},
      {"kv_tokens", Into<&DecodeEngineLoad::kv_tokens>, kRequired},
  };
  return ReadFields(at, kFields, out);
}

template <typename Spec>
absl::Status ReadProfile(const Place& at, Spec& out) {
  static constexpr Field<Spec> kFields[] = {{"samples", Into<&Spec::samples>, kRequired}};
  return ReadFields(at, kFields, out);
}

// The members of `engines.prefill` and `engines.decode` about GPUs.
template <EngineRole kRole>
absl::Status ReadGpus(const Place& at, ServiceFile& out) {
  return Read(at, OfRole(out.service.rules.gpus, kRole));
}
template <EngineRole kRole>
absl::Status ReadMinimum(const Place& at, ServiceFile& out) {
  return Read(at, OfRole(out.service.rules.minimum, kRole));
}

// What one engine is made of.
absl::Status ReadPods(const Place& at, EngineShape& out) {
  static constexpr Field<EngineShape> kFields[] = {
      {"count", Into<&EngineShape::pods>},
      {"request", [](const Place& p, EngineShape& e) { return Read(p, e.pod.request); }, kRequired},
      {"gpu_models", [](const Place& p, EngineShape& e) { return Read(p, e.pod.gpu_models); }},
      {"selector", [](const Place& p, EngineShape& e) { return Read(p, e.pod.selector); }},
      {"tolerations", [](const Place& p, EngineShape& e) { return Read(p, e.pod.tolerations); }},
      {"max_per_node", [](const Place& p, EngineShape& e) { return Read(p, e.pod.max_per_node); }},
      {"topology", Into<&EngineShape::topology>},
  };
  return ReadFields(at, kFields, out);
}
template <EngineRole kRole>
absl::Status ReadPodsOf(const Place& at, ServiceFile& out) {
  return ReadPods(at, OfRole(*out.shape, kRole));
}

// The GPUs of an engine: stated, or those of its pods, and if both, the same.
absl::Status SettleGpus(const Place& at, EngineRole role, ServiceFile& out) {
  const bool has_gpus = FindMember(at.value(), "gpus") != nullptr;
  const bool has_pods = FindMember(at.value(), "pods") != nullptr;
  if (!has_pods) return has_gpus ? absl::OkStatus() : at.ErrorIn("gpus", "is missing");
  const EngineGpus of_pods = EngineGpusOf(*out.shape);
  int64_t& gpus = OfRole(out.service.rules.gpus, role);
  if (has_gpus && gpus != OfRole(of_pods, role)) {
    return at.ErrorIn("gpus", absl::StrCat("is ", gpus, ", but the pods of an engine have ",
                                           OfRole(of_pods, role)));
  }
  gpus = OfRole(of_pods, role);
  return absl::OkStatus();
}

absl::Status CheckOneModel(const Place& at, bool has_profile, bool has_iteration) {
  if (has_profile && has_iteration) return at.Error("has both \"profile\" and \"iteration\"");
  if (has_profile || has_iteration) return absl::OkStatus();
  return at.Error("has neither \"profile\" nor \"iteration\"");
}

absl::Status ReadPrefill(const Place& at, ServiceFile& out) {
  static constexpr Field<ServiceFile> kFields[] = {
      {"gpus", ReadGpus<EngineRole::kPrefill>},
      {"pods", ReadPodsOf<EngineRole::kPrefill>},
      {"minimum", ReadMinimum<EngineRole::kPrefill>},
      {"profile", [](const Place& p, ServiceFile& s) { return ReadProfile(p, s.service.prefill); }},
      {"iteration",
       [](const Place& p, ServiceFile& s) { return Read(p, s.service.prefill.iteration); }},
      {"max_batched_tokens",
       [](const Place& p, ServiceFile& s) { return Read(p, s.service.limits.max_batched_tokens); }},
  };
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out));
  TESSERA_RETURN_IF_ERROR(SettleGpus(at, EngineRole::kPrefill, out));
  return CheckOneModel(at, !out.service.prefill.samples.empty(),
                       out.service.prefill.iteration.has_value());
}

absl::Status ReadDecode(const Place& at, ServiceFile& out) {
  static constexpr Field<ServiceFile> kFields[] = {
      {"gpus", ReadGpus<EngineRole::kDecode>},
      {"pods", ReadPodsOf<EngineRole::kDecode>},
      {"minimum", ReadMinimum<EngineRole::kDecode>},
      {"max_kv_tokens",
       [](const Place& p, ServiceFile& s) { return Read(p, s.service.limits.max_kv_tokens); },
       kRequired},
      {"max_sequences",
       [](const Place& p, ServiceFile& s) { return Read(p, s.service.limits.max_sequences); }},
      {"max_batched_tokens",
       [](const Place& p, ServiceFile& s) { return Read(p, s.service.limits.max_batched_tokens); }},
      {"profile", [](const Place& p, ServiceFile& s) { return ReadProfile(p, s.service.decode); }},
      {"iteration",
       [](const Place& p, ServiceFile& s) { return Read(p, s.service.decode.iteration); }},
  };
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out));
  TESSERA_RETURN_IF_ERROR(SettleGpus(at, EngineRole::kDecode, out));
  return CheckOneModel(at, !out.service.decode.samples.empty(),
                       out.service.decode.iteration.has_value());
}

absl::Status ReadEngines(const Place& at, ServiceFile& out) {
  static constexpr Field<ServiceFile> kFields[] = {{"prefill", ReadPrefill},
                                                   {"decode", ReadDecode, kRequired}};
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out));
  const bool has_prefill = FindMember(at.value(), "prefill") != nullptr;
  if (out.service.rules.mode == ServiceMode::kDisaggregated) {
    if (!has_prefill) return at.ErrorIn("prefill", "is missing");
    if (out.service.prefill.iteration.has_value() == out.service.decode.iteration.has_value()) {
      return absl::OkStatus();
    }
    return at.Error("describe one role by a profile and the other by iterations");
  }
  if (has_prefill && out.service.decode.iteration) {
    return at.ErrorIn("prefill", "is not used: aggregated engines have one cost per iteration");
  }
  if (!has_prefill && !out.service.decode.iteration) {
    return at.ErrorIn("prefill", "is missing: its profile says what prompts cost such an engine");
  }
  return absl::OkStatus();
}

absl::Status ReadRules(const Place& at, ServiceSpec& out) {
  static constexpr Field<ReplicaRules> kFields[] = {
      {"max_gpus", Into<&ReplicaRules::max_gpus>},
      {"min_gpus", Into<&ReplicaRules::min_gpus>},
      {"max_step", Into<&ReplicaRules::max_step>},
      {"down_delay", Into<&ReplicaRules::down_delay>},
      {"pending_timeout", Into<&ReplicaRules::pending_timeout>},
      {"utilization"},
  };
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out.rules));
  const JsonValue* utilization = FindMember(at.value(), "utilization");
  return utilization == nullptr ? absl::OkStatus() : Read(Place(at, *utilization), out.utilization);
}

absl::Status Read(const Place& at, PredictorSpec& out) {
  static constexpr Field<PredictorSpec> kFields[] = {
      {"kind", [](const Place& p, PredictorSpec& s) { return ReadEnum(p, kPredictors, s.kind); },
       kRequired},
      {"ahead", Into<&PredictorSpec::ahead>},
      {"level_noise",
       [](const Place& p, PredictorSpec& s) { return Read(p, s.trend.level_noise); }},
      {"trend_noise",
       [](const Place& p, PredictorSpec& s) { return Read(p, s.trend.trend_noise); }},
      {"observation_noise",
       [](const Place& p, PredictorSpec& s) { return Read(p, s.trend.observation_noise); }},
      {"initial_variance",
       [](const Place& p, PredictorSpec& s) { return Read(p, s.trend.initial_variance); }},
      {"season", [](const Place& p, PredictorSpec& s) { return Read(p, s.seasonal.season); }},
      {"level_gain",
       [](const Place& p, PredictorSpec& s) { return Read(p, s.seasonal.level_gain); }},
      {"trend_gain",
       [](const Place& p, PredictorSpec& s) { return Read(p, s.seasonal.trend_gain); }},
      {"season_gain",
       [](const Place& p, PredictorSpec& s) { return Read(p, s.seasonal.season_gain); }},
  };
  return ReadFields(at, kFields, out);
}

// A column of the history: what one number, a list, or nothing says of each interval.
struct Column {
  std::optional<double> all;
  std::vector<double> each;
  bool is_list = false;

  double at(size_t i) const { return is_list ? each[i] : all.value_or(0); }
};

absl::Status ReadMeasured(const Place& at, double& out) {
  if (at.kind() != JsonKind::kNull) return Read(at, out);
  out = std::numeric_limits<double>::quiet_NaN();
  return absl::OkStatus();
}

absl::Status Read(const Place& at, Column& out) {
  out.is_list = at.kind() == JsonKind::kArray;
  if (!out.is_list) return Read(at, out.all);
  size_t index = 0;
  for (const JsonValue& element : at.value().children()) {
    TESSERA_RETURN_IF_ERROR(ReadMeasured(Place(at, element, index++), out.each.emplace_back()));
  }
  return absl::OkStatus();
}

struct History {
  int64_t interval = 0;
  Column requests, input_tokens, output_tokens, prefix_hit_rate;
};

absl::Status ReadHistory(const Place& at, ServiceSpec& out) {
  static constexpr Field<History> kFields[] = {
      {"interval", Into<&History::interval>, kRequired},
      {"requests", Into<&History::requests>, kRequired},
      {"input_tokens", Into<&History::input_tokens>, kRequired},
      {"output_tokens", Into<&History::output_tokens>, kRequired},
      {"prefix_hit_rate", Into<&History::prefix_hit_rate>},
  };
  History history;
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, history));
  if (history.interval < 1 || history.interval > kMaxHistory) {
    return at.ErrorIn("interval",
                      absl::StrCat("is ", history.interval, ", not within 1 and ", kMaxHistory));
  }
  if (!history.requests.is_list) return at.ErrorIn("requests", "must be an array");
  const size_t size = history.requests.each.size();
  if (size > static_cast<size_t>(kMaxHistory)) return at.ErrorIn("requests", "is too long");
  const std::pair<std::string_view, const Column*> others[] = {
      {"input_tokens", &history.input_tokens},
      {"output_tokens", &history.output_tokens},
      {"prefix_hit_rate", &history.prefix_hit_rate}};
  for (const auto& [name, column] : others) {
    if (!column->is_list || column->each.size() == size) continue;
    return at.ErrorIn(
        name, absl::StrCat("has ", column->each.size(), " entries, but \"requests\" ", size));
  }
  out.interval = history.interval;
  for (size_t i = 0; i < size; ++i) {
    out.history.push_back({history.requests.at(i) / static_cast<double>(history.interval),
                           history.input_tokens.at(i), history.output_tokens.at(i),
                           history.prefix_hit_rate.at(i)});
  }
  return absl::OkStatus();
}

absl::Status ReadStatus(const Place& at, ServiceSpec& out) {
  static constexpr Field<ServiceSpec> kFields[] = {
      {"now", [](const Place& p, ServiceSpec& s) { return Read(p, s.status.now); }},
      {"expected", [](const Place& p, ServiceSpec& s) { return Read(p, s.status.expected); },
       kRequired},
      {"ready", [](const Place& p, ServiceSpec& s) { return Read(p, s.status.ready); }},
      {"queued_tokens", Into<&ServiceSpec::queued_tokens>},
      {"decoding", Into<&ServiceSpec::decoding>},
  };
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out));
  if (FindMember(at.value(), "ready") == nullptr) out.status.ready = out.status.expected;
  return absl::OkStatus();
}

// Who asks.
absl::Status ReadWorkload(const Place& at, ServiceFile& out) {
  static constexpr Field<ServiceFile> kFields[] = {
      {"queue", [](const Place& p, ServiceFile& s) { return Read(p, s.workload.queue); }},
      {"priority", [](const Place& p, ServiceFile& s) { return Read(p, s.workload.priority); }},
      {"preemptible",
       [](const Place& p, ServiceFile& s) { return Read(p, s.workload.preemptible); }},
      {"tenant", [](const Place& p, ServiceFile& s) { return Read(p, s.workload.tenant); }},
      {"router", [](const Place& p, ServiceFile& s) { return Read(p, s.shape->router); }},
      {"topology", [](const Place& p, ServiceFile& s) { return Read(p, s.shape->topology); }},
      {"pods", [](const Place& p, ServiceFile& s) { return Read(p, s.workload.pods); }},
  };
  return ReadFields(at, kFields, out);
}

// Whether every role says what its engines are made of.
bool HasPods(const JsonValue& engines, ServiceMode mode) {
  for (EngineRole role : kEngineRoles) {
    if (mode == ServiceMode::kAggregated && role == EngineRole::kPrefill) continue;
    const JsonValue* engine = FindMember(engines, ToString(role));
    if (engine == nullptr || FindMember(*engine, "pods") == nullptr) return false;
  }
  return true;
}

// The member `Member` of the service of a file.
template <auto Member>
absl::Status IntoService(const Place& at, ServiceFile& out) {
  return Read(at, out.service.*Member);
}

absl::Status ReadService(const Place& at, ServiceFile& out) {
  static constexpr Field<ServiceFile> kFields[] = {
      {"apiVersion"},
      {"kind"},
      {"name", IntoService<&ServiceSpec::name>, kRequired},
      {"mode",
       [](const Place& p, ServiceFile& f) { return ReadEnum(p, kModes, f.service.rules.mode); }},
      {"sla", IntoService<&ServiceSpec::sla>, kRequired},
      {"engines", ReadEngines, kRequired},
      {"rules", [](const Place& p, ServiceFile& f) { return ReadRules(p, f.service); }},
      {"predictor", IntoService<&ServiceSpec::predictor>},
      {"history", [](const Place& p, ServiceFile& f) { return ReadHistory(p, f.service); },
       kRequired},
      {"status", [](const Place& p, ServiceFile& f) { return ReadStatus(p, f.service); },
       kRequired},
      {"workload", ReadWorkload},
  };
  TESSERA_RETURN_IF_ERROR(CheckHeader(at, "Service", kRequired));
  out.shape.emplace();
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out));
  out.workload.name = out.service.name;
  out.shape->mode = out.service.rules.mode;
  out.shape->minimum = out.service.rules.minimum;
  const bool has_pods = HasPods(*FindMember(at.value(), "engines"), out.service.rules.mode);
  if (!has_pods) out.shape.reset();
  return absl::OkStatus();
}

}  // namespace tessera::io_internal

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

// NaN, which JSON lacks, as null.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json Counts(const ReplicaCounts& counts) {
  return {{"prefill", counts.prefill}, {"decode", counts.decode}};
}

Json Required(const RequiredReplicas& required) {
  Json out = required.counts ? Counts(*required.counts) : Json::object();
  out["prefill_reason"] = ToString(required.prefill);
  out["decode_reason"] = ToString(required.decode);
  out["ttft"] = Number(required.ttft);
  out["itl"] = Number(required.itl);
  return out;
}

Json Note(const ReplicaNote& note) {
  return {{"role", note.role ? Json(ToString(*note.role)) : Json()},
          {"reason", ToString(note.reason)},
          {"from", note.from},
          {"to", note.to},
          {"text", Describe(note)}};
}

Json Step(const ScalingStep& step) {
  return {{"role", ToString(step.role)},
          {"from", step.from},
          {"to", step.to},
          {"gpus_after", step.gpus_after}};
}

Json Bound(const RoleBound& bound) {
  return {{"bound", ToString(bound.bound)}, {"text", bound.text}};
}

Json Pods(const std::vector<PodRef>& pods) {
  Json out = Json::array();
  for (const PodRef& pod : pods) out.push_back({{"pod_set", pod.pod_set}, {"index", pod.index}});
  return out;
}

Json Placeable(const PlaceableReplicas& placeable) {
  Json out = Counts(placeable.counts);
  out["prefill_bound"] = Bound(placeable.prefill);
  out["decode_bound"] = Bound(placeable.decode);
  out["placed"] = Pods(placeable.placed);
  out["removed"] = Pods(placeable.removed);
  return out;
}

}  // namespace

absl::StatusOr<ServiceFile> ParseServiceFile(std::string_view json) {
  TESSERA_ASSIGN_OR_RETURN(const io_internal::JsonDocument document,
                           io_internal::JsonDocument::Parse(json));
  ServiceFile file;
  TESSERA_RETURN_IF_ERROR(io_internal::ReadService(io_internal::Place(document.root()), file));
  return file;
}

std::string WriteServiceDecision(const ServiceSpec& spec, const ServiceDecision& decision,
                                 const std::optional<PlaceableReplicas>& placeable) {
  const ServiceLoad& forecast = decision.forecast;
  const ReplicaPlan& plan = decision.plan;
  Json notes = Json::array(), steps = Json::array();
  for (const ReplicaNote& note : plan.notes) notes.push_back(Note(note));
  for (const ScalingStep& step : plan.transition.steps) steps.push_back(Step(step));
  Json out = {{"service", spec.name},
              {"outcome", ToString(plan.outcome)},
              {"forecast",
               {{"requests_per_second", Number(forecast.request_rate)},
                {"input_tokens", Number(forecast.input_tokens)},
                {"output_tokens", Number(forecast.output_tokens)},
                {"prefix_hit_rate", Number(forecast.prefix_hit_rate)}}},
              {"expected", Counts(spec.status.expected)},
              {"required", Required(decision.required)},
              {"reactions",
               {{"prefill", ToString(decision.reactions.prefill)},
                {"decode", ToString(decision.reactions.decode)}}},
              {"needed", Counts(plan.needed)},
              {"granted", Counts(plan.granted)},
              {"notes", std::move(notes)},
              {"steps", std::move(steps)},
              {"gpus_before", plan.gpus_before},
              {"gpus_after", plan.gpus_after},
              {"peak_gpus", plan.transition.peak_gpus}};
  if (placeable) out["placeable"] = Placeable(*placeable);
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tessera
