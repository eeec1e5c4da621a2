#include "src/verify/text.h"

#include "absl/strings/str_cat.h"
#include "tessera/resources/quantity.h"
#include "tessera/resources/units.h"

namespace tessera {

std::string NameOf(const PodRef& pod) {
  return absl::StrCat(pod.workload, "/", pod.pod_set, "/", pod.index);
}

std::string NameOf(const Snapshot& snapshot, PodId pod) { return NameOf(snapshot.pod_ref(pod)); }

std::string AmountText(const ResourceSpace& resources, int r, int64_t amount) {
  if (amount < 0) return absl::StrCat("-", AmountText(resources, r, -amount));
  const bool bytes = r == kMemory || r == kGpuMemory;
  const bool gpu = resources.counts_gpus(r);
  const int64_t scale = r == kCpu ? kMillisPerCore : gpu ? kGpuUnitsPerDevice : 1;
  const std::string number =
      bytes ? FormatBytes(amount) : FormatQuantity(amount, scale, Rounding::kUp);
  return absl::StrCat(number, " ", resources.name(r));
}

}  // namespace tessera
