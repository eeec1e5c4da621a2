#include "bench/study/rearrangement.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "tessera/gpu/catalogue.h"
#include "tessera/gpu/enumerate.h"

namespace tessera::study {
namespace {

// What one GPU can hold, by enumeration of all its layouts.
std::set<SliceCounts> HeldByOneGpu() {
  const MigTables tables = *MigTables::Create(*FindGpuModel("H100-80GB"));
  std::vector<int> kind_of(tables.model().profiles.size(), -1);
  uint32_t alphabet = 0;
  for (int kind = 0; kind < kKinds; ++kind) {
    const int profile = *tables.model().FindProfile(kKindNames[kind]);
    kind_of[profile] = kind;
    alphabet |= uint32_t{1} << profile;
  }
  std::set<SliceCounts> held;
  for (const std::vector<Instance>& layout : EnumerateLayouts(tables, alphabet)) {
    SliceCounts counts{};
    for (const Instance& instance : layout) ++counts[kind_of[instance.profile]];
    held.insert(counts);
  }
  return held;
}

// What `gpus` GPUs can hold: every sum of what each of them can.
std::set<SliceCounts> HeldBy(int gpus) {
  const std::set<SliceCounts> one = HeldByOneGpu();
  std::set<SliceCounts> all = {SliceCounts{}};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    std::set<SliceCounts> next;
    for (const SliceCounts& a : all) {
      for (const SliceCounts& b : one) {
        SliceCounts sum;
        for (int kind = 0; kind < kKinds; ++kind) sum[kind] = a[kind] + b[kind];
        next.insert(sum);
      }
    }
    all = std::move(next);
  }
  return all;
}

// Calls `check` for all counts that pass no kind's own bound by more than one.
template <typename Check>
void ForAllCounts(int gpus, const Check& check) {
  for (int n1 = 0; n1 <= 7 * gpus + 1; ++n1) {
    for (int n2 = 0; n2 <= 3 * gpus + 1; ++n2) {
      for (int n3 = 0; n3 <= 2 * gpus + 1; ++n3) {
        for (int n4 = 0; n4 <= gpus + 1; ++n4) {
          for (int n7 = 0; n7 <= gpus + 1; ++n7) check(SliceCounts{n1, n2, n3, n4, n7});
        }
      }
    }
  }
}

TEST(FitRearranged, OneGpuHoldsThe38SetsOfTheGuide) { EXPECT_EQ(HeldByOneGpu().size(), 38u); }

TEST(FitRearranged, AgreesWithEnumerationOnFewGpus) {
  for (int gpus = 0; gpus <= 4; ++gpus) {
    const std::set<SliceCounts> held = HeldBy(gpus);
    ForAllCounts(gpus, [&](const SliceCounts& counts) {
      ASSERT_EQ(FitRearranged(counts, gpus), held.count(counts) == 1)
          << gpus << " GPUs: " << counts[k1g] << " 1g, " << counts[k2g] << " 2g, " << counts[k3g]
          << " 3g, " << counts[k4g] << " 4g, " << counts[k7g] << " 7g";
    });
  }
}

TEST(RoomRearranged, CountsWhatFits) {
  ForAllCounts(2, [](const SliceCounts& counts) {
    if (!FitRearranged(counts, 2)) return;
    for (int kind = 0; kind < kKinds; ++kind) {
      SliceCounts more = counts;
      int room = -1;
      while (FitRearranged(more, 2)) {
        ++more[kind];
        ++room;
      }
      ASSERT_EQ(RoomRearranged(counts, 2, kind), room);
    }
  });
}

}  // namespace
}  // namespace tessera::study
