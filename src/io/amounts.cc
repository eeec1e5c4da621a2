#include "src/io/amounts.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "src/io/names.h"
#include "tessera/resources/resource_space.h"
#include "tessera/resources/units.h"

namespace tessera::io_internal {
namespace {

// What a quota may name without a slash or a point.
constexpr std::array<std::string_view, 7> kQuotaNames = {
    "cpu", "memory", "pods", "gpu", "gpu_memory", kExtendedKey, kAllResources};

// Reads the amount of `resource` in a map.
using AmountReader = absl::Status (*)(const Place& at, std::string_view resource, int64_t& out);
using AmountWriter = void (*)(JsonWriter& json, std::string_view resource, int64_t amount);

// Whether a name tells by its form that it is a resource of the host.
bool IsQualified(std::string_view name) {
  return name.find_first_of("/.") != name.npos || name.starts_with(kGpuModelPrefix);
}

bool IsFixed(std::string_view name) { return ResourceSpace().Find(name).has_value(); }

absl::Status CheckName(const Place& member, std::span<const std::string_view> known) {
  const std::string_view name = member.value().key;
  if (IsQualified(name) || std::ranges::find(known, name) != known.end()) return absl::OkStatus();
  const bool misspelt = name == kAllResources || !DidYouMean(name, known).empty();
  return misspelt ? UnknownField(member, known) : absl::OkStatus();
}

absl::Status ReadUp(const Place& at, std::string_view resource, int64_t& out) {
  return ReadQuantity(at, ScaleOf(resource), Rounding::kUp, out);
}

absl::Status ReadDown(const Place& at, std::string_view resource, int64_t& out) {
  return ReadQuantity(at, ScaleOf(resource), Rounding::kDown, out);
}

absl::Status ReadGuaranteed(const Place& at, std::string_view resource, int64_t& out) {
  if (at.kind() == JsonKind::kString && at.value().text == kUnlimitedWord) {
    out = kUnlimited;
    return absl::OkStatus();
  }
  return ReadDown(at, resource, out);
}

absl::Status ReadOneWeight(const Place& at, std::string_view, int64_t& out) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kNumber));
  int64_t above = 0;
  TESSERA_RETURN_IF_ERROR(ReadQuantity(at, kWeightOne, Rounding::kDown, out));
  TESSERA_RETURN_IF_ERROR(ReadQuantity(at, kWeightOne, Rounding::kUp, above));
  if (above != out) return at.Error("has more than 3 decimal places");
  return absl::OkStatus();
}

// The entry of `out` for the resource that `member` is about. It may stand there
// already, once under `extended` and once beside it.
absl::StatusOr<int64_t*> NewEntry(const Place& member, AmountMap& out) {
  const auto [entry, is_new] = out.try_emplace(std::string(member.value().key));
  if (!is_new) return member.Error("is given twice");
  return &entry->second;
}

absl::Status ReadEntry(const Place& member, AmountReader read, AmountMap& out) {
  TESSERA_ASSIGN_OR_RETURN(int64_t* const amount, NewEntry(member, out));
  return read(member, member.value().key, *amount);
}

// The members of an object `extended`.
absl::Status ReadEntries(const Place& at, AmountReader read, AmountMap& out) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kObject));
  for (const JsonValue& member : at.value().children()) {
    TESSERA_RETURN_IF_ERROR(ReadEntry(Place(at, member), read, out));
  }
  return absl::OkStatus();
}

// A map of amounts by resource. `all` receives that of `*`; null: there is none.
absl::Status ReadByName(const Place& at, AmountReader read, AmountMap& out,
                        std::optional<int64_t>* all) {
  const auto known = std::span(kQuotaNames).first(kQuotaNames.size() - (all == nullptr ? 1 : 0));
  for (const JsonValue& member : at.value().children()) {
    const Place place(at, member);
    if (member.key == kExtendedKey) {
      TESSERA_RETURN_IF_ERROR(ReadEntries(place, read, out));
      continue;
    }
    TESSERA_RETURN_IF_ERROR(CheckName(place, known));
    if (member.key == kAllResources) {
      TESSERA_RETURN_IF_ERROR(read(place, member.key, all->emplace()));
    } else {
      TESSERA_RETURN_IF_ERROR(ReadEntry(place, read, out));
    }
  }
  return absl::OkStatus();
}

void WriteByName(JsonWriter& json, const AmountMap& amounts, AmountWriter write) {
  bool nested = false;
  for (const auto& [name, amount] : amounts) {
    if (!IsFixed(name) && !IsQualified(name)) {
      nested = true;
      continue;
    }
    json.Key(name);
    write(json, name, amount);
  }
  if (!nested) return;
  json.Key(kExtendedKey);
  json.BeginObject();
  for (const auto& [name, amount] : amounts) {
    if (IsFixed(name) || IsQualified(name)) continue;
    json.Key(name);
    write(json, name, amount);
  }
  json.EndObject();
}

void WriteMap(JsonWriter& json, const ResourceAmounts& amounts, AmountWriter write) {
  json.BeginObject();
  if (amounts.all) {
    json.Key(kAllResources);
    write(json, kAllResources, *amounts.all);
  }
  WriteByName(json, amounts.by_name, write);
  json.EndObject();
}

}  // namespace

int64_t ScaleOf(std::string_view resource) {
  if (resource == "cpu") return kMillisPerCore;
  if (resource == "gpu" || resource.starts_with(kGpuModelPrefix)) return kGpuUnitsPerDevice;
  return 1;
}

absl::Status ReadQuantity(const Place& at, int64_t scale, Rounding rounding, int64_t& out) {
  if (at.kind() != JsonKind::kNumber && at.kind() != JsonKind::kString) {
    return Expect(at, JsonKind::kNumber);
  }
  const absl::StatusOr<int64_t> quantity = ParseQuantity(at.value().text, scale, rounding);
  if (!quantity.ok()) return at.Error(ToStd(quantity.status().message()));
  out = *quantity;
  return absl::OkStatus();
}

absl::Status ReadExtended(const Place& member, std::span<const std::string_view> known,
                          Rounding rounding, AmountMap& out) {
  TESSERA_RETURN_IF_ERROR(CheckName(member, known));
  return ReadEntry(member, rounding == Rounding::kUp ? ReadUp : ReadDown, out);
}

absl::Status ReadAllExtended(const Place& at, Rounding rounding, AmountMap& out) {
  return ReadEntries(at, rounding == Rounding::kUp ? ReadUp : ReadDown, out);
}

absl::Status ReadGuarantee(const Place& at, ResourceAmounts& out) {
  if (at.kind() == JsonKind::kObject) {
    return ReadByName(at, ReadGuaranteed, out.by_name, &out.all);
  }
  int64_t amount = 0;
  TESSERA_RETURN_IF_ERROR(ReadGuaranteed(at, "gpu", amount));
  if (amount == 0 || amount == kUnlimited) {
    out.all = amount;
  } else {
    out.by_name["gpu"] = amount;
  }
  return absl::OkStatus();
}

absl::Status ReadWeight(const Place& at, ResourceAmounts& out) {
  if (at.kind() == JsonKind::kObject) return ReadByName(at, ReadOneWeight, out.by_name, &out.all);
  return ReadOneWeight(at, kAllResources, out.all.emplace());
}

absl::Status ReadUsage(const Place& at, AmountMap& out) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kObject));
  return ReadByName(at, ReadUp, out, nullptr);
}

void WriteAmount(JsonWriter& json, std::string_view resource, int64_t amount, Rounding rounding) {
  const bool bytes = resource == "memory" || resource == "gpu_memory";
  if (amount == kUnlimited) {
    json.String(kUnlimitedWord);
  } else if (bytes && amount > 0 && amount % kBytesPerGiB == 0) {
    json.String(absl::StrCat(amount / kBytesPerGiB, "Gi"));
  } else if (bytes && amount > 0 && amount % kBytesPerMiB == 0) {
    json.String(absl::StrCat(amount / kBytesPerMiB, "Mi"));
  } else {
    json.Number(FormatQuantity(amount, ScaleOf(resource), rounding));
  }
}

void WriteExtended(JsonWriter& json, const AmountMap& amounts) {
  WriteByName(json, amounts,
              [](JsonWriter& to, std::string_view, int64_t amount) { to.Integer(amount); });
}

void WriteGuarantee(JsonWriter& json, std::string_view key, const ResourceAmounts& amounts) {
  if (amounts.empty()) return;
  const auto write = [](JsonWriter& to, std::string_view resource, int64_t amount) {
    WriteAmount(to, resource, amount, Rounding::kDown);
  };
  json.Key(key);
  const bool plain = amounts.by_name.empty();
  if (plain && (amounts.all == 0 || amounts.all == kUnlimited)) {
    write(json, kAllResources, *amounts.all);
  } else {
    WriteMap(json, amounts, write);
  }
}

void WriteWeight(JsonWriter& json, const ResourceAmounts& weight) {
  if (weight.empty()) return;
  const auto write = [](JsonWriter& to, std::string_view, int64_t amount) {
    to.Number(FormatQuantity(amount, kWeightOne, Rounding::kDown));
  };
  json.Key("weight");
  if (weight.by_name.empty()) {
    write(json, kAllResources, *weight.all);
  } else {
    WriteMap(json, weight, write);
  }
}

void WriteUsage(JsonWriter& json, const AmountMap& usage) {
  if (usage.empty()) return;
  json.Key("usage");
  json.BeginObject();
  WriteByName(json, usage, [](JsonWriter& to, std::string_view resource, int64_t amount) {
    WriteAmount(to, resource, amount, Rounding::kUp);
  });
  json.EndObject();
}

}  // namespace tessera::io_internal
