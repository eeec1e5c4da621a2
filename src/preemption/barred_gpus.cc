#include "tessera/preemption/barred_gpus.h"

#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 7> kNames = {
    "unschedulable", "unhealthy", "MIG off", "in use", "reserved", "alone", "static"};

}  // namespace

std::string_view NameOf(GpuBar bar) { return kNames[static_cast<size_t>(bar)]; }

std::string DescribeBarred(int gpus, const std::vector<BarredGpu>& barred) {
  std::array<int, kNames.size()> counts{};
  for (const BarredGpu& gpu : barred) ++counts[static_cast<size_t>(gpu.bar)];
  std::string text = absl::StrCat("of ", gpus, gpus == 1 ? " GPU " : " GPUs ",
                                  gpus - static_cast<int>(barred.size()), " may change");
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    absl::StrAppend(&text, ", ", counts[i], counts[i] == 1 ? " is " : " are ", ToAbsl(kNames[i]));
  }
  return text;
}

}  // namespace tessera
