// A queue's id is not a node's.

#include "tessera/base/ids.h"

namespace tessera {

#ifdef MUST_FAIL
constexpr NodeId kNode = NodeId(QueueId(1));
#else
constexpr NodeId kNode = NodeId(QueueId(1).value());
#endif

static_assert(kNode.valid());

}  // namespace tessera
