// What pods ask for.

#include <charconv>
#include <limits>
#include <numeric>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "src/io/amounts.h"
#include "src/io/names.h"
#include "src/io/nouns.h"
#include "tessera/resources/units.h"

namespace tessera::io_internal {
namespace {

constexpr int kBillion = 1000000000;

// Reads a quantity that must be a whole number, or of `scale`ths, up to 2^31 - 1.
absl::Status ReadWhole(const Place& at, int64_t scale, std::string_view message, int& out) {
  int64_t below = 0;
  int64_t above = 0;
  TESSERA_RETURN_IF_ERROR(ReadQuantity(at, scale, Rounding::kDown, below));
  TESSERA_RETURN_IF_ERROR(ReadQuantity(at, scale, Rounding::kUp, above));
  if (below != above) return at.Error(message);
  if (below > std::numeric_limits<int>::max()) return at.Error("is too large");
  out = static_cast<int>(below);
  return absl::OkStatus();
}

absl::Status ReadWholeGpus(const Place& at, GpuRequest& out) {
  int devices = 0;
  TESSERA_RETURN_IF_ERROR(ReadWhole(
      at, 1, "must be a whole number; for a part of a GPU use \"gpu_fraction\"", devices));
  if (devices > 0) out = GpuRequest::Whole(devices);
  return absl::OkStatus();
}

absl::Status ReadFraction(const Place& at, GpuRequest& out) {
  int64_t share = 0;
  TESSERA_RETURN_IF_ERROR(ReadQuantity(at, kGpuUnitsPerDevice, Rounding::kUp, share));
  out = GpuRequest::Fraction(share);
  return absl::OkStatus();
}

absl::Status ReadGpuMemory(const Place& at, GpuRequest& out) {
  int64_t bytes = 0;
  TESSERA_RETURN_IF_ERROR(ReadQuantity(at, 1, Rounding::kUp, bytes));
  out = GpuRequest::Memory(bytes);
  return absl::OkStatus();
}

absl::Status ReadProfile(const Place& at, GpuRequest& out) {
  std::vector<std::string> profiles;
  TESSERA_RETURN_IF_ERROR(at.kind() == JsonKind::kArray ? Read(at, profiles)
                                                        : Read(at, profiles.emplace_back()));
  out = GpuRequest::Profiles(std::move(profiles));
  return absl::OkStatus();
}

absl::Status ReadSlice(const Place& at, GpuRequest& out) {
  SliceRequirement requirement;
  TESSERA_RETURN_IF_ERROR(Read(at, requirement));
  out = GpuRequest::Requirement(requirement);
  return absl::OkStatus();
}

// "2/7", or a decimal such as 0.25 as the ratio that it is.
absl::Status ReadCompute(const Place& at, SliceRequirement& out) {
  if (at.kind() == JsonKind::kNumber) {
    int billionths = 0;
    TESSERA_RETURN_IF_ERROR(ReadWhole(at, kBillion, "has more than 9 decimal places", billionths));
    const int divisor = std::gcd(billionths, kBillion);
    out.compute_num = billionths / divisor;
    out.compute_den = kBillion / divisor;
    return absl::OkStatus();
  }
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kString));
  const std::string_view text = at.value().text;
  const char* const end = text.data() + text.size();
  const auto num = std::from_chars(text.data(), end, out.compute_num);
  if (num.ec == std::errc() && num.ptr != end && *num.ptr == '/') {
    const auto den = std::from_chars(num.ptr + 1, end, out.compute_den);
    if (den.ec == std::errc() && den.ptr == end) return absl::OkStatus();
  }
  return at.Error(
      absl::StrCat("must be a ratio like \"2/7\" or a number, not \"", ToAbsl(text), "\""));
}

// The part of a request that is about GPUs.
absl::Status ReadGpuRequest(const Place& at, GpuRequest& out) {
  static constexpr Field<GpuRequest> kKinds[] = {
      {"gpu", ReadWholeGpus}, {"gpu_fraction", ReadFraction}, {"gpu_memory", ReadGpuMemory},
      {"mig", ReadProfile},   {"slice", ReadSlice},
  };
  std::string_view stated;
  for (const Field<GpuRequest>& kind : kKinds) {
    const JsonValue* member = FindMember(at.value(), kind.name);
    if (member == nullptr) continue;
    const Place place(at, *member);
    GpuRequest request;
    TESSERA_RETURN_IF_ERROR(kind.read(place, request));
    if (request.kind == GpuRequestKind::kNone) continue;
    if (!stated.empty()) {
      return place.Error(absl::StrCat("cannot stand beside \"", ToAbsl(stated), "\""));
    }
    stated = kind.name;
    out = std::move(request);
  }
  if (const JsonValue* larger = FindMember(at.value(), "allow_larger")) {
    const Place place(at, *larger);
    if (!out.is_slice()) return place.Error("needs \"mig\" or \"slice\"");
    TESSERA_RETURN_IF_ERROR(Read(place, out.allow_larger));
  }
  const JsonValue* devices = FindMember(at.value(), "gpu_devices");
  if (devices == nullptr) return absl::OkStatus();
  const Place place(at, *devices);
  if (!out.is_shared()) return place.Error("needs \"gpu_fraction\" or \"gpu_memory\"");
  return Read(place, out.devices);
}

// {"in": [...]}, {"not_in": [...]} or {"exists": true}; in a list a `key` stands beside it.
absl::Status ReadCondition(const Place& at, bool in_list, SelectorTerm& out) {
  struct Condition {
    SelectorTerm& term;
    int stated = 0;
  };
  static constexpr Field<Condition> kFields[] = {
      {"in",
       [](const Place& field, Condition& condition) {
         ++condition.stated;
         condition.term.op = SelectorOperator::kIn;
         return Read(field, condition.term.values);
       }},
      {"not_in",
       [](const Place& field, Condition& condition) {
         ++condition.stated;
         condition.term.op = SelectorOperator::kNotIn;
         return Read(field, condition.term.values);
       }},
      {"exists",
       [](const Place& field, Condition& condition) {
         ++condition.stated;
         bool exists = true;
         TESSERA_RETURN_IF_ERROR(Read(field, exists));
         condition.term.op = exists ? SelectorOperator::kExists : SelectorOperator::kDoesNotExist;
         return absl::OkStatus();
       }},
  };
  Condition condition{out};
  const auto other = [in_list](const Place& member, Condition& to) {
    if (in_list && member.value().key == "key") return Read(member, to.term.key);
    return UnknownField(member, NamesOf(kFields));
  };
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, condition, other));
  if (condition.stated == 1) return absl::OkStatus();
  return at.Error("must have exactly one of \"in\", \"not_in\" and \"exists\"");
}

// The condition on one label; of a term in a list the label too.
absl::Status ReadTerm(const Place& at, bool in_list, SelectorTerm& out) {
  if (at.kind() == JsonKind::kObject || in_list) {
    TESSERA_RETURN_IF_ERROR(ReadCondition(at, in_list, out));
  } else if (at.kind() == JsonKind::kString) {
    out.values.emplace_back(at.value().text);
  } else if (at.kind() == JsonKind::kArray) {
    TESSERA_RETURN_IF_ERROR(Read(at, out.values));
  } else {
    return at.Error("must be a string, an array or an object");
  }
  const bool needs_values = out.op == SelectorOperator::kIn || out.op == SelectorOperator::kNotIn;
  if (needs_values && out.values.empty()) return at.Error("lists no value");
  return out.key.empty() ? at.Error("has no label") : absl::OkStatus();
}

}  // namespace

absl::Status Read(const Place& at, SliceRequirement& out) {
  static constexpr Field<SliceRequirement> kFields[] = {
      {"memory", Quantity<&SliceRequirement::memory, 1, Rounding::kUp>},
      {"compute", ReadCompute},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, Request& out) {
  static constexpr Field<Request> kFields[] = {
      {"cpu", Quantity<&Request::cpu, kMillisPerCore, Rounding::kUp>},
      {"memory", Quantity<&Request::memory, 1, Rounding::kUp>},
      {"gpu"},
      {"gpu_fraction"},
      {"gpu_memory"},
      {"gpu_devices"},
      {"mig"},
      {"slice"},
      {"allow_larger"},
      {kExtendedKey,
       [](const Place& field, Request& request) {
         return ReadAllExtended(field, Rounding::kUp, request.extended);
       }},
  };
  const auto other = [](const Place& member, Request& request) {
    return ReadExtended(member, NamesOf(kFields), Rounding::kUp, request.extended);
  };
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out, other));
  return ReadGpuRequest(at, out.gpu);
}

absl::Status Read(const Place& at, Selector& out) {
  if (at.kind() == JsonKind::kArray) {
    size_t index = 0;
    for (const JsonValue& element : at.value().children()) {
      TESSERA_RETURN_IF_ERROR(ReadTerm(Place(at, element, index++), true, out.emplace_back()));
    }
    return absl::OkStatus();
  }
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kObject));
  for (const JsonValue& member : at.value().children()) {
    SelectorTerm term;
    term.key = member.key;
    TESSERA_RETURN_IF_ERROR(ReadTerm(Place(at, member), false, term));
    out.push_back(std::move(term));
  }
  return absl::OkStatus();
}

absl::Status Read(const Place& at, Toleration& out) {
  static constexpr Field<Toleration> kFields[] = {
      {"key", Into<&Toleration::key>},
      {"operator",
       [](const Place& field, Toleration& toleration) {
         return ReadEnum(field, kTolerationOperators, toleration.exists);
       }},
      {"value", Into<&Toleration::value>},
      {"effect",
       [](const Place& field, Toleration& toleration) {
         toleration.any_effect = false;
         return ReadEnum(field, kEffects, toleration.effect);
       }},
  };
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out));
  if (!out.exists || out.value.empty()) return absl::OkStatus();
  return at.ErrorIn("value", "means nothing beside the operator \"Exists\"");
}

}  // namespace tessera::io_internal
