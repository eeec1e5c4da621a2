#ifndef TESSERA_SRC_PREEMPTION_EXACT_PLACES_H_
#define TESSERA_SRC_PREEMPTION_EXACT_PLACES_H_

// Places for a claimant and for those who move on its account, together.

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/preemption/make_room.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

// Tries every place of every pod, like devices once: for small cases, where greedy choices miss
// what there is. It heeds all that `PlaceGang` does, keeps those who move to GPUs of their model
// and to slices of their profile, and keeps together what their gang requires to be: a gang that
// moves altogether may change its domain. It takes only moves that can be carried out one after
// the other.
class ExactPlaces {
 public:
  struct Result {
    std::vector<PodTarget> placed;  // pods of the claimant
    std::vector<PodTarget> moved;
    int64_t operations = 0;  // on MIG instances
  };

  // `homes`: who moves, and from where; in `state` they hold no place, nor does who is evicted.
  // `account` pays for the claimant, and `permits` has the last word on what it paid.
  ExactPlaces(ClusterState& state, WorkloadId w, std::span<const PodTarget> homes, Account& account,
              absl::FunctionRef<bool()> permits, int64_t budget);

  // Places with fewer MIG operations than `below`, the fewest there are if `is_least`, or
  // nothing. State and account are as before.
  std::optional<Result> Run(int64_t below);

  // Whether the search was not cut short.
  bool is_complete() const { return budget_ > 0; }
  int64_t budget() const { return budget_; }
  // Whether it looks for the fewest operations. Where the claimant would take one of several
  // profiles, which one counts for more than operations, and the first places found do.
  bool is_least() const { return is_least_; }

 private:
  struct Task {
    int g = 0;  // part of the gang
    NodeRange range;
    bool tied = false;  // to a domain of the level that it requires
  };
  struct Seeker {
    PodId pod;
    NodeRange range;
    const PodPlacement* home = nullptr;  // of who moves
  };
  // Whole devices, size of a slice, share of a device, cores.
  using Size = std::tuple<int, int, int64_t, int64_t>;

  const GangNode& at(int g) const { return gang_[static_cast<size_t>(g)]; }
  PodSetId set_id(int g) const { return PodSetId(first_pod_set_ + at(g).pod_set); }
  bool Spend() { return !done_ && --budget_ > 0; }
  bool Holds(int g) const;
  bool IsWithin(int g, NodeRange range) const;
  void Expand(std::vector<Task> agenda);
  void ExpandDomains(const Task& task, std::vector<Task> agenda);
  void ExpandSet(const Task& task, const std::vector<Task>& agenda);
  void ExpandChoice(const Task& task, int child, int missing, std::vector<Task> agenda);
  Size SizeOf(const Seeker& seeker) const;
  void Search();
  void PlaceFrom(size_t next);
  bool IsHome(NodeId n, int g) const;
  bool AreAlike(NodeId n, int a, int b) const;
  std::vector<PodPlacement> PlacesOn(NodeId n, const Seeker& seeker) const;
  void AddDevices(const Seeker& seeker, const std::vector<int>& gpus, size_t from, int count,
                  PodPlacement place, std::vector<PodPlacement>& places) const;
  void AddSlices(NodeId n, const Seeker& seeker, const std::vector<int>& gpus,
                 std::vector<PodPlacement>& places) const;
  void Accept();
  bool IsInOrder();

  ClusterState& state_;
  const Snapshot& snapshot_;
  const std::span<const GangNode> gang_;
  const int first_pod_set_;
  const std::span<const PodTarget> homes_;
  Account& account_;
  const absl::FunctionRef<bool()> permits_;
  int64_t budget_;
  bool is_least_ = true;
  const ClusterState::Mark start_;
  std::vector<Seeker> wanted_;   // pods of the claimant
  std::vector<Seeker> seekers_;  // all, the larger first
  std::vector<PodTarget> path_;  // where the first of them are
  int64_t below_ = 0;
  bool done_ = false;
  std::optional<Result> result_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_EXACT_PLACES_H_
