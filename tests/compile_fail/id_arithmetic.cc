// Ids are names, not numbers.

#include "tessera/base/ids.h"

namespace tessera {

constexpr NodeId kNode(1);

#ifdef MUST_FAIL
constexpr NodeId kNext = kNode + 1;
#else
constexpr NodeId kNext = NodeId(kNode.value() + 1);
#endif

static_assert(kNode < kNext);

}  // namespace tessera
