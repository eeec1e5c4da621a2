#include "tessera/io/service_json.h"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "src/io/json_reader.h"

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
absl::Status ReadGpus(const Place& at, ServiceSpec& out) {
  return Read(at, OfRole(out.rules.gpus, kRole));
}
template <EngineRole kRole>
absl::Status ReadMinimum(const Place& at, ServiceSpec& out) {
  return Read(at, OfRole(out.rules.minimum, kRole));
}

absl::Status CheckOneModel(const Place& at, bool has_profile, bool has_iteration) {
  if (has_profile && has_iteration) return at.Error("has both \"profile\" and \"iteration\"");
  if (has_profile || has_iteration) return absl::OkStatus();
  return at.Error("has neither \"profile\" nor \"iteration\"");
}

absl::Status ReadPrefill(const Place& at, ServiceSpec& out) {
  static constexpr Field<ServiceSpec> kFields[] = {
      {"gpus", ReadGpus<EngineRole::kPrefill>, kRequired},
      {"minimum", ReadMinimum<EngineRole::kPrefill>},
      {"profile", [](const Place& p, ServiceSpec& s) { return ReadProfile(p, s.prefill); }},
      {"iteration", [](const Place& p, ServiceSpec& s) { return Read(p, s.prefill.iteration); }},
      {"max_batched_tokens",
       [](const Place& p, ServiceSpec& s) { return Read(p, s.limits.max_batched_tokens); }},
  };
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out));
  return CheckOneModel(at, !out.prefill.samples.empty(), out.prefill.iteration.has_value());
}

absl::Status ReadDecode(const Place& at, ServiceSpec& out) {
  static constexpr Field<ServiceSpec> kFields[] = {
      {"gpus", ReadGpus<EngineRole::kDecode>, kRequired},
      {"minimum", ReadMinimum<EngineRole::kDecode>},
      {"max_kv_tokens",
       [](const Place& p, ServiceSpec& s) { return Read(p, s.limits.max_kv_tokens); }, kRequired},
      {"max_sequences",
       [](const Place& p, ServiceSpec& s) { return Read(p, s.limits.max_sequences); }},
      {"max_batched_tokens",
       [](const Place& p, ServiceSpec& s) { return Read(p, s.limits.max_batched_tokens); }},
      {"profile", [](const Place& p, ServiceSpec& s) { return ReadProfile(p, s.decode); }},
      {"iteration", [](const Place& p, ServiceSpec& s) { return Read(p, s.decode.iteration); }},
  };
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out));
  return CheckOneModel(at, !out.decode.samples.empty(), out.decode.iteration.has_value());
}

absl::Status ReadEngines(const Place& at, ServiceSpec& out) {
  static constexpr Field<ServiceSpec> kFields[] = {{"prefill", ReadPrefill},
                                                   {"decode", ReadDecode, kRequired}};
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out));
  const bool has_prefill = FindMember(at.value(), "prefill") != nullptr;
  if (out.rules.mode == ServiceMode::kDisaggregated) {
    if (!has_prefill) return at.ErrorIn("prefill", "is missing");
    if (out.prefill.iteration.has_value() == out.decode.iteration.has_value()) {
      return absl::OkStatus();
    }
    return at.Error("describe one role by a profile and the other by iterations");
  }
  if (has_prefill && out.decode.iteration) {
    return at.ErrorIn("prefill", "is not used: aggregated engines have one cost per iteration");
  }
  if (!has_prefill && !out.decode.iteration) {
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

absl::Status ReadService(const Place& at, ServiceSpec& out) {
  static constexpr Field<ServiceSpec> kFields[] = {
      {"apiVersion"},
      {"kind"},
      {"name", Into<&ServiceSpec::name>, kRequired},
      {"mode", [](const Place& p, ServiceSpec& s) { return ReadEnum(p, kModes, s.rules.mode); }},
      {"sla", Into<&ServiceSpec::sla>, kRequired},
      {"engines", ReadEngines, kRequired},
      {"rules", ReadRules},
      {"predictor", Into<&ServiceSpec::predictor>},
      {"history", ReadHistory, kRequired},
      {"status", ReadStatus, kRequired},
  };
  TESSERA_RETURN_IF_ERROR(CheckHeader(at, "Service", kRequired));
  return ReadFields(at, kFields, out);
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

}  // namespace

absl::StatusOr<ServiceSpec> ParseServiceSpec(std::string_view json) {
  TESSERA_ASSIGN_OR_RETURN(const io_internal::JsonDocument document,
                           io_internal::JsonDocument::Parse(json));
  ServiceSpec spec;
  TESSERA_RETURN_IF_ERROR(io_internal::ReadService(io_internal::Place(document.root()), spec));
  return spec;
}

std::string WriteServiceDecision(const ServiceSpec& spec, const ServiceDecision& decision) {
  const ServiceLoad& forecast = decision.forecast;
  const ReplicaPlan& plan = decision.plan;
  Json notes = Json::array(), steps = Json::array();
  for (const ReplicaNote& note : plan.notes) notes.push_back(Note(note));
  for (const ScalingStep& step : plan.transition.steps) steps.push_back(Step(step));
  return Json{{"service", spec.name},
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
              {"peak_gpus", plan.transition.peak_gpus}}
             .dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace tessera
