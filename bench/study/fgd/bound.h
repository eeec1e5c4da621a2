#ifndef TESSERA_BENCH_STUDY_FGD_BOUND_H_
#define TESSERA_BENCH_STUDY_FGD_BOUND_H_

// The headroom: what no placement can exceed, online or not.

#include <vector>

#include "bench/study/fgd/trace.h"

namespace tessera::study {

// An upper bound on the GPUs, per cent of all, that any choice among `pods` can hold at
// once.
//
// A relaxation: pods may be split over nodes, and nodes of equal model and shape pool
// what they have. Of a pool are kept: its devices, CPU and memory, and three more limits
// on its devices, by dual feasible functions f (whatever shares x fit on one device,
// the sum of f(x) is at most 1): halves (f = 1 above 1/2), thirds (1 above 2/3, 1/2 above
// 1/3), and fifths (1 above 4/5, 0 below 1/5, else x). The last says that beside 0.81
// goes less than a fifth.
//
// The linear program is bounded by weak duality, so no solver has to be trusted: any
// prices of the pools' limits bound it, by what the limits cost at these prices plus
// what each pod is worth above its cheapest pool. A subgradient method looks for good
// prices, at three rates and `steps` steps each. O(steps * kinds * pools).
double BoundPercent(const Trace& trace, const std::vector<int>& pods, int steps = 20000);

}  // namespace tessera::study

#endif  // TESSERA_BENCH_STUDY_FGD_BOUND_H_
