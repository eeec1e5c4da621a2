#ifndef TESSERA_SRC_IO_AMOUNTS_H_
#define TESSERA_SRC_IO_AMOUNTS_H_

// Amounts of resources in a file: `"500m"`, `0.5`, `"64Gi"`, `"unlimited"`.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "src/io/json_reader.h"
#include "src/io/json_writer.h"
#include "tessera/cluster/queue.h"
#include "tessera/resources/quantity.h"

namespace tessera::io_internal {

using AmountMap = std::map<std::string, int64_t, std::less<>>;

// Base units per unit of a file: cores, devices, bytes, pieces.
int64_t ScaleOf(std::string_view resource);

// A number or string, times `scale`.
absl::Status ReadQuantity(const Place& at, int64_t scale, Rounding rounding, int64_t& out);

// Reads the quantity `Member`.
template <auto Member, int64_t kScale, Rounding kRounding>
absl::Status Quantity(const Place& at, decltype(OwnerOf(Member))& out) {
  return ReadQuantity(at, kScale, kRounding, out.*Member);
}

// A member of an object with the fields `known` that is none of them, and so an extended
// resource, unless it looks like a field misspelt.
absl::Status ReadExtended(const Place& member, std::span<const std::string_view> known,
                          Rounding rounding, AmountMap& out);
// The object `extended`, whose members are resources whatever their names.
absl::Status ReadAllExtended(const Place& at, Rounding rounding, AmountMap& out);

// A quota or limit: `"unlimited"`, one number (of GPUs; 0: of everything), or a map.
absl::Status ReadGuarantee(const Place& at, ResourceAmounts& out);
// A weight: one number for every resource, or a map.
absl::Status ReadWeight(const Place& at, ResourceAmounts& out);
absl::Status ReadUsage(const Place& at, AmountMap& out);

// The value that `ReadQuantity` reads back as `amount`. Bytes are written in GiB or MiB
// where that is exact.
void WriteAmount(JsonWriter& json, std::string_view resource, int64_t amount, Rounding rounding);
// Members of the innermost object, those with simple names under `extended`.
void WriteExtended(JsonWriter& json, const AmountMap& amounts);
// Members called `key`; nothing for empty amounts.
void WriteGuarantee(JsonWriter& json, std::string_view key, const ResourceAmounts& amounts);
void WriteWeight(JsonWriter& json, const ResourceAmounts& weight);
void WriteUsage(JsonWriter& json, const AmountMap& usage);

}  // namespace tessera::io_internal

#endif  // TESSERA_SRC_IO_AMOUNTS_H_
