#ifndef TESSERA_RESOURCES_UNITS_H_
#define TESSERA_RESOURCES_UNITS_H_

// The base units in which every quantity of tessera is an exact `int64_t`.
//
//   cpu         millicores
//   memory      bytes
//   gpu         1/7000 of a device, so that 1 milli-GPU (7), one compute slice
//               of a 7-slice GPU (1000) and of a 4-slice GPU (1750) are exact
//   gpu_memory  bytes of device memory
//   pods, extended resources   pieces

#include <cstdint>

namespace tessera {

inline constexpr int64_t kMillisPerCore = 1000;
inline constexpr int64_t kGpuUnitsPerDevice = 7000;
inline constexpr int64_t kBytesPerMiB = int64_t{1} << 20;
inline constexpr int64_t kBytesPerGiB = int64_t{1} << 30;

// "No limit" and "all of it" for quotas and limits. Larger than every sum a
// snapshot may hold (`kMaxTotal`), so a plain comparison never refuses it.
inline constexpr int64_t kUnlimited = INT64_MAX;

// Every sum over a snapshot (capacity, demand, charges) stays at or below this;
// `Snapshot::Create` rejects what would not, so additions cannot overflow.
inline constexpr int64_t kMaxTotal = int64_t{1} << 61;

}  // namespace tessera

#endif  // TESSERA_RESOURCES_UNITS_H_
