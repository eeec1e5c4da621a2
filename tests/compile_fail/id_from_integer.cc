// An integer becomes an id only where somebody writes which kind.

#include "tessera/base/ids.h"

namespace tessera {

constexpr bool IsFirst(NodeId node) { return node == NodeId(0); }

#ifdef MUST_FAIL
static_assert(IsFirst(0));
#else
static_assert(IsFirst(NodeId(0)));
#endif

}  // namespace tessera
