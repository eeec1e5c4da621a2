#ifndef TESSERA_PLACEMENT_GANG_PLACEMENT_H_
#define TESSERA_PLACEMENT_GANG_PLACEMENT_H_

// Does the whole gang fit, and where?

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tessera/base/ids.h"
#include "tessera/cluster/request_class.h"
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
// it was, and `stuck_at` is a pod set that fits nowhere by itself, or else the one
// for which no place was found last.
struct GangPlacement {
  SearchOutcome outcome = SearchOutcome::kPlaced;
  std::vector<PodId> pods;
  PodSetId stuck_at;
  // Nothing was placed, and nothing can be: no choice of nodes and devices is left
  // untried. Never set with kPlaced or kBudgetExhausted.
  bool proven = false;

  bool placed() const { return outcome == SearchOutcome::kPlaced; }

  friend bool operator==(const GangPlacement&, const GangPlacement&) = default;
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

// What searches found out about a state, for later searches of the same state. What
// it holds stays true while the state only fills: whoever takes a pod away starts
// anew.
class SearchMemory {
 public:
  // Request classes of which the state takes not one pod more.
  bool is_hopeless(RequestClassId c) const {
    return static_cast<size_t>(c.value()) < hopeless_.size() &&
           hopeless_[static_cast<size_t>(c.value())];
  }
  void NoteHopeless(RequestClassId c) {
    const size_t at = static_cast<size_t>(c.value());
    if (at >= hopeless_.size()) hopeless_.resize(at + 1);
    hopeless_[at] = true;
  }

  // Gangs that the second gear has tried in vain, by what they lack: from how many
  // pods on there is no place, and from how many on it did not come to an end.
  struct InVain {
    int64_t none_from = INT64_MAX;
    int64_t unknown_from = INT64_MAX;
  };
  absl::flat_hash_map<std::string, InVain> gangs;

 private:
  std::vector<bool> hopeless_;
};

struct GangOptions {
  Account* account = nullptr;  // none: everything is permitted
  // Pods looked for, over all domains tried, before the search gives up.
  int64_t budget = 10000000;
  // Steps of the exact search that follows where the first one fails; 0: none.
  int64_t exact_budget = 100000;
  // The finder withholds places that are free: then a failure proves nothing, and
  // no other place is looked for.
  bool finder_withholds = false;
  SearchMemory* memory = nullptr;  // of the same state; may be shared by many calls
};

// Places what the gang of `w` lacks of its minimum, all or nothing: every pod set
// its `min_count`, every group `min_groups` of its children without `after`.
// Placed and succeeded pods count; an empty result says that the minimum held.
//
// First gear: a required level is tried domain by domain, those with the fewest
// free GPUs that can suffice first (pack), and binds what comes later to where pods
// run; a preferred level is tried from the narrowest domains outwards. Within a
// domain the search is greedy with undo: whole GPUs, then slices, fractions, and
// pods without GPU, the larger first. Ties: the lower domain. O(pods * log) per
// domain tried.
//
// Second gear, where that fails: an exact search over domains, groups, nodes and
// devices, which knows nodes only by what they can take. It finds a place if there
// is one, or proves that there is none, or ends with its budget (kBudgetExhausted).
// It heeds every constraint, but neither preferred levels nor the finder's
// preferences. An account must decide by pod and GPU model alone for a refusal to be
// proven. O(nodes) to count what fits at most, which decides most hopeless gangs;
// beyond that O(exact_budget).
GangPlacement PlaceGang(ClusterState& state, WorkloadId w, PodFinder find = FindPacked,
                        const GangOptions& options = {});

// Places one more unit of a gang whose minimum holds: an elastic pod, or a whole
// optional group. Groups with `after` come after those without, and only once
// what they wait for holds; otherwise the child with the smallest part of its
// count goes first, then in order of the gang. An optional group for which no unit
// of the gang is found that way has the exact search, too. kNoRoom when nothing more
// fits; an empty `pods` with kPlaced when the gang is complete.
GangPlacement GrowGang(ClusterState& state, WorkloadId w, PodFinder find = FindPacked,
                       const GangOptions& options = {});

// `PlaceGang` for each of `workloads` in order, as a loop would place them, in one
// result each. What one search finds out spares the next its work: a request that
// fits nowhere, a gang that lacks the same as one that was tried in vain. (Where a
// loop would exhaust its budget, this may know the proof of an earlier search.)
std::vector<GangPlacement> PlaceMany(ClusterState& state, std::span<const WorkloadId> workloads,
                                     PodFinder find = FindPacked, const GangOptions& options = {});

// Whether every minimum of the gang holds with what is placed in `state`.
bool IsWhole(const ClusterState& state, WorkloadId w);

// Whether `p` may be placed: pending, or else nominated or running, but no longer held by the
// state.
bool MayPlace(const ClusterState& state, PodId p);

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_GANG_PLACEMENT_H_
