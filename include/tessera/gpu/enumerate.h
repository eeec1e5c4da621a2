#ifndef TESSERA_GPU_ENUMERATE_H_
#define TESSERA_GPU_ENUMERATE_H_

// All the layouts that a GPU can have.

#include <cstdint>
#include <vector>

#include "tessera/gpu/layout.h"

namespace tessera {

// An alphabet is a set of profiles, bit p = profile p; this one holds the profiles
// that are no variants, doubled memory included.
uint32_t PlainProfiles(const GpuModel& model);

// Every legal layout whose profiles are all in `alphabet`, the empty one first. The
// instances of a layout ascend by start; layouts are in lexicographic order of their
// (start, profile) pairs, a prefix before its extensions.
//
// Time and space in the size of the result: 2,319 layouts on an A100 or H100, 717 on
// an RTX PRO 6000, the largest of the catalogue. An invented model of 16 units may
// have more than fit in memory, so ask `CountLayouts` about it first.
std::vector<std::vector<Instance>> EnumerateLayouts(const MigTables& tables, uint32_t alphabet);

// Whether no instance of a profile in `alphabet` can be added to `key`.
bool IsMaximal(const MigTables& tables, LayoutKey key, uint32_t alphabet);

// How many layouts `EnumerateLayouts` returns, and how many of these are maximal.
struct LayoutCounts {
  int64_t states = 0;
  int64_t maximal = 0;

  bool operator==(const LayoutCounts&) const = default;
};

// The counts without the layouts; what exceeds an `int64_t` counts as INT64_MAX.
// O(units x keys x profiles x log keys) time, where keys counts the different
// `LayoutKey`s, at most 2^22.
//
// The 19 "MIG configurations" of an A100 that NVIDIA's material speaks of are the
// maximal layouts, told apart by position, of 1g, 2g, 3g, 4g and 7g.
LayoutCounts CountLayouts(const MigTables& tables, uint32_t alphabet);

}  // namespace tessera

#endif  // TESSERA_GPU_ENUMERATE_H_
