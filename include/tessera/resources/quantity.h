#ifndef TESSERA_RESOURCES_QUANTITY_H_
#define TESSERA_RESOURCES_QUANTITY_H_

// Reading and printing quantities, exactly.

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tessera {

// Requests round up and what is offered (capacity, quota, limit) rounds down,
// so that rounding never lets a request in that does not truly fit.
enum class Rounding { kUp, kDown };

// Reads a non-negative decimal with an optional exponent or a Kubernetes suffix
// (`m`, `k`, `M`, `G`, `T`, `P`, `E`, `Ki` ... `Ei`), times `scale` base units:
// `ParseQuantity("500m", 1000, ...)` is 500 millicores. No floating point is
// involved. kInvalidArgument: not such a number ("NaN", "-1", "1e", "5 Gi"),
// more than 18 decimal places, or a result above `kMaxTotal`.
// O(length of text).
absl::StatusOr<int64_t> ParseQuantity(std::string_view text, int64_t scale, Rounding rounding);

// Prints `amount / scale` as the shortest decimal of at most 6 places that
// `ParseQuantity` with the same scale and rounding reads back as `amount`:
// `FormatQuantity(3500, kGpuUnitsPerDevice, ...)` is "0.5". `scale` <= 10^6.
std::string FormatQuantity(int64_t amount, int64_t scale, Rounding rounding);

// Prints bytes for people: "64 GiB", "1.5 TiB", "100 B"; at most one decimal.
std::string FormatBytes(int64_t bytes);

}  // namespace tessera

#endif  // TESSERA_RESOURCES_QUANTITY_H_
