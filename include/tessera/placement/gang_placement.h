#ifndef TESSERA_PLACEMENT_GANG_PLACEMENT_H_
#define TESSERA_PLACEMENT_GANG_PLACEMENT_H_

// Does the whole gang fit, and where?

#include <cstdint>
#include <vector>

#include "tessera/base/ids.h"
#include "tessera/placement/finders.h"
#include "tessera/placement/pod_query.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// How a search ended.
enum class SearchOutcome {
  kPlaced,
  kNoRoom,           // some pod fits nowhere that is allowed
  kTopology,         // pods fit one by one, but no required domain takes them all
  kRefused,          // the account does not permit what would fit
  kDisagreement,     // running pods lie in different domains of a required level
  kFailedPods,       // failed or releasing pods leave too few for the minimum
  kDependency,       // nothing may start before the group named by `after`
  kAwaitsItsPlace,   // its minimum is nominated, and nothing joins it before
  kBudgetExhausted,  // the search ended undecided
};

// `pods` are now placed in the state, in this order. Otherwise the state is as
// it was, and `stuck_at` is the pod set for which no place was found last.
struct GangPlacement {
  SearchOutcome outcome = SearchOutcome::kPlaced;
  std::vector<PodId> pods;
  PodSetId stuck_at;

  bool placed() const { return outcome == SearchOutcome::kPlaced; }
};

// Whoever pays for what is placed. A search charges each pod as it places it, and
// takes charges back with the pods.
class Account {
 public:
  virtual ~Account() = default;

  // Charges `p` at `placement`, or refuses and changes nothing. The same pod may
  // be refused on one GPU model and not on another.
  virtual bool Charge(PodId p, const PodPlacement& placement) = 0;

  virtual size_t GetMark() const = 0;
  virtual void RollBack(size_t mark) = 0;
};

struct GangOptions {
  Account* account = nullptr;  // none: everything is permitted
  // Pods looked for, over all domains tried, before the search gives up.
  int64_t budget = 10000000;
};

// Places what the gang of `w` lacks of its minimum, all or nothing: every pod set
// its `min_count`, every group `min_groups` of its children without `after`.
// Placed and succeeded pods count; an empty result says that the minimum held.
//
// A required level is tried domain by domain, those with the fewest free GPUs
// that can suffice first (pack), and binds what comes later to where pods run; a
// preferred level is tried from the narrowest domains outwards. Within a domain
// the search is greedy with undo: whole GPUs, then slices, fractions, and pods
// without GPU, the larger first. It may miss a placement
// that another order of pods would find. Ties: the lower domain.
// O(pods * log) per domain tried.
GangPlacement PlaceGang(ClusterState& state, WorkloadId w, PodFinder find = FindPacked,
                        const GangOptions& options = {});

// Places one more unit of a gang whose minimum holds: an elastic pod, or a whole
// optional group. Groups with `after` come after those without, and only once
// what they wait for holds; otherwise the child with the smallest part of its
// count goes first, then in order of the gang. kNoRoom when nothing more fits;
// an empty `pods` with kPlaced when the gang is complete.
GangPlacement GrowGang(ClusterState& state, WorkloadId w, PodFinder find = FindPacked,
                       const GangOptions& options = {});

// Whether every minimum of the gang holds with what is placed in `state`.
bool IsWhole(const ClusterState& state, WorkloadId w);

// Whether `p` may be placed: pending, or nominated but not held by the state.
bool MayPlace(const ClusterState& state, PodId p);

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_GANG_PLACEMENT_H_
