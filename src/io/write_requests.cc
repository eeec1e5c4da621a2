// What pods ask for.

#include <set>

#include "absl/strings/str_cat.h"
#include "src/io/amounts.h"
#include "src/io/names.h"
#include "src/io/nouns.h"

namespace tessera::io_internal {
namespace {

void WriteRequirement(JsonWriter& json, const SliceRequirement& need) {
  json.Key("slice");
  json.BeginObject();
  if (need.memory != 0) {
    json.Key("memory");
    WriteAmount(json, "memory", need.memory, Rounding::kUp);
  }
  if (need.compute_num != 0 || need.compute_den != 1) {
    json.Member("compute", absl::StrCat(need.compute_num, "/", need.compute_den));
  }
  json.EndObject();
}

void WriteProfiles(JsonWriter& json, const std::vector<std::string>& profiles) {
  if (profiles.size() == 1) return json.Member("mig", profiles.front());
  WriteTexts(json, "mig", profiles);
}

void WriteGpuMembers(JsonWriter& json, const GpuRequest& gpu) {
  switch (gpu.kind) {
    case GpuRequestKind::kNone:
      break;
    case GpuRequestKind::kWhole:
      json.Member("gpu", gpu.devices);
      break;
    case GpuRequestKind::kFraction:
      json.Key("gpu_fraction");
      WriteAmount(json, "gpu", gpu.share, Rounding::kUp);
      break;
    case GpuRequestKind::kDeviceMemory:
      json.Key("gpu_memory");
      WriteAmount(json, "gpu_memory", gpu.memory, Rounding::kUp);
      break;
    case GpuRequestKind::kProfile:
      WriteProfiles(json, gpu.profiles);
      break;
    case GpuRequestKind::kRequirement:
      WriteRequirement(json, gpu.requirement);
      break;
  }
  if (gpu.allow_larger) json.Flag("allow_larger", true);
  if (gpu.is_shared() && gpu.devices != 1) json.Member("gpu_devices", gpu.devices);
}

void WriteRequest(JsonWriter& json, const Request& request) {
  if (request == Request{}) return;
  json.Key("request");
  json.BeginObject();
  if (request.cpu != 0) {
    json.Key("cpu");
    WriteAmount(json, "cpu", request.cpu, Rounding::kUp);
  }
  if (request.memory != 0) {
    json.Key("memory");
    WriteAmount(json, "memory", request.memory, Rounding::kUp);
  }
  WriteGpuMembers(json, request.gpu);
  WriteExtended(json, request.extended);
  json.EndObject();
}

// The condition of `term`; within a list its label stands beside it.
void WriteTerm(JsonWriter& json, const SelectorTerm& term, bool in_list) {
  if (term.op == SelectorOperator::kIn && !in_list) {
    const bool many = term.values.size() != 1;
    if (many) json.BeginArray();
    for (const std::string& value : term.values) json.String(value);
    if (many) json.EndArray();
    return;
  }
  json.BeginObject();
  if (in_list) json.Member("key", term.key);
  switch (term.op) {
    case SelectorOperator::kIn:
      WriteTexts(json, "in", term.values);
      break;
    case SelectorOperator::kNotIn:
      WriteTexts(json, "not_in", term.values);
      break;
    case SelectorOperator::kExists:
      json.Flag("exists", true);
      break;
    case SelectorOperator::kDoesNotExist:
      json.Flag("exists", false);
      break;
  }
  json.EndObject();
}

void WriteSelector(JsonWriter& json, const Selector& selector) {
  if (selector.empty()) return;
  std::set<std::string_view> keys;
  for (const SelectorTerm& term : selector) keys.insert(term.key);
  json.Key("selector");
  if (keys.size() < selector.size()) {
    json.BeginArray();
    for (const SelectorTerm& term : selector) WriteTerm(json, term, true);
    json.EndArray();
    return;
  }
  json.BeginObject();
  for (const SelectorTerm& term : selector) {
    json.Key(term.key);
    WriteTerm(json, term, false);
  }
  json.EndObject();
}

void WriteToleration(JsonWriter& json, const Toleration& toleration) {
  json.BeginObject();
  WriteText(json, "key", toleration.key);
  if (toleration.exists) {
    json.Member("operator", NameOf(kTolerationOperators, toleration.exists));
  }
  WriteText(json, "value", toleration.value);
  if (!toleration.any_effect) json.Member("effect", NameOf(kEffects, toleration.effect));
  json.EndObject();
}

}  // namespace

void WriteRequestMembers(JsonWriter& json, const PodSet& set) {
  WriteRequest(json, set.request);
  WriteTexts(json, "gpu_models", set.gpu_models);
  WriteSelector(json, set.selector);
  WriteList(json, "tolerations", set.tolerations, WriteToleration);
}

}  // namespace tessera::io_internal
