#include "tessera/replicas/service.h"

#include <array>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 6> kReasonNames = {
    "ok",
    "ttft_unreachable",
    "itl_unreachable",
    "context_too_long",
    "model_not_ready",
    "missing_metrics",
};

absl::Status ValidateTime(double seconds, std::string_view path, std::string_view field) {
  if (std::isfinite(seconds) && seconds > 0) return absl::OkStatus();
  return InvalidAt(absl::StrCat(ToAbsl(path), path.empty() ? "" : ".", ToAbsl(field)),
                   absl::StrCat(seconds, " is not a time above 0"));
}

}  // namespace

absl::Status ValidateSla(const Sla& sla, std::string_view path) {
  TESSERA_RETURN_IF_ERROR(ValidateTime(sla.ttft, path, "ttft"));
  return ValidateTime(sla.itl, path, "itl");
}

std::string_view ToString(RequirementReason reason) {
  return kReasonNames[static_cast<size_t>(reason)];
}

std::optional<RequirementReason> RequirementReasonFromString(std::string_view text) {
  for (size_t i = 0; i < kReasonNames.size(); ++i) {
    if (kReasonNames[i] == text) return static_cast<RequirementReason>(i);
  }
  return std::nullopt;
}

}  // namespace tessera
