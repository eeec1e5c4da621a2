#include "tessera/cluster/diagnosis.h"

#include <array>

namespace tessera {
namespace {

constexpr std::array<std::string_view, 15> kNames = {"queue_limit",
                                                     "quota",
                                                     "no_matching_node",
                                                     "insufficient_gpus",
                                                     "insufficient_gpu_share",
                                                     "insufficient_slices",
                                                     "insufficient_resources",
                                                     "isolation",
                                                     "topology",
                                                     "gang",
                                                     "dependency",
                                                     "failed_pods",
                                                     "releasing",
                                                     "held",
                                                     "budget_exhausted"};

}  // namespace

std::string_view ToString(PendingReason reason) { return kNames[static_cast<size_t>(reason)]; }

std::optional<PendingReason> PendingReasonFromString(std::string_view text) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<PendingReason>(i);
  }
  return std::nullopt;
}

}  // namespace tessera
