// TESSERA_RETURN_IF_ERROR does not drop the value of a StatusOr.

#include "tessera/base/status.h"

namespace tessera {

absl::StatusOr<int> Value();

absl::Status Check() {
#ifdef MUST_FAIL
  TESSERA_RETURN_IF_ERROR(Value());
#else
  TESSERA_RETURN_IF_ERROR(Value().status());
#endif
  return absl::OkStatus();
}

}  // namespace tessera
