#include "tessera/base/version.h"

namespace tessera {

std::string_view Version() { return kVersion; }

}  // namespace tessera
