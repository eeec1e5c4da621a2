// Ids of different kinds do not compare.

#include "tessera/base/ids.h"

namespace tessera {

#ifdef MUST_FAIL
static_assert(PodId(1) == WorkloadId(1));
#else
static_assert(PodId(1) == PodId(1));
#endif

}  // namespace tessera
