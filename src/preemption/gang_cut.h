#ifndef TESSERA_SRC_PREEMPTION_GANG_CUT_H_
#define TESSERA_SRC_PREEMPTION_GANG_CUT_H_

// What of a gang can leave, and what must leave with it.

#include <vector>

#include "tessera/cluster/snapshot.h"

namespace tessera {

// Pods of one gang, each either up (it held a place before the plan) or not, and of those that
// are up some that are to leave.
//
// What stays must be legal: nothing at all, or a gang whose minimum holds, and within it only
// parts that hold theirs, those with `after` only beside one that holds. So a pod leaves alone
// where its set is above its minimum, else its part goes where the group above can do without,
// else the whole gang.
class GangCut {
 public:
  // `is_up` and `leaves` by PodId; both must outlive the object.
  GangCut(const Snapshot& snapshot, WorkloadId w, const std::vector<char>& is_up,
          std::vector<char>& leaves)
      : snapshot_(snapshot),
        gang_(snapshot.gang(w)),
        info_(snapshot.info(w)),
        is_up_(is_up),
        leaves_(leaves) {}

  // Makes everything leave that cannot stay without what leaves; returns those pods, which
  // were not leaving before. Nothing if nothing leaves. O(pods of the gang * depth).
  std::vector<PodId> Close();

  // The units in which what leaves was given up, the smallest first to go: pods above the
  // minimum of their set, parts that a group can do without, and, if all leaves, the rest. What
  // leaves must be closed. Pods ascending within a unit; the pods of lowest index are the core.
  std::vector<std::vector<PodId>> Units() const;

  // Whether what stays is legal; else nothing of it leaves alone.
  bool IsSound() const { return IsSoundBelow(0); }

 private:
  const GangNode& at(int g) const { return gang_[static_cast<size_t>(g)]; }
  const PodSetInfo& set(int g) const {
    return snapshot_.pod_set(PodSetId(info_.first_pod_set + at(g).pod_set));
  }
  bool up(PodId p) const { return is_up_[static_cast<size_t>(p.value())] != 0; }
  bool leaves(PodId p) const { return leaves_[static_cast<size_t>(p.value())] != 0; }

  template <typename Visit>
  void ForEachPod(int g, Visit visit) const;
  int Stays(int g) const;
  int Leaves(int g) const;
  int Succeeded(int g) const;
  bool Holds(int g) const;
  bool IsSoundBelow(int g) const;
  bool CloseBelow(int g, std::vector<PodId>& added);
  void TakeAll(int g, std::vector<PodId>& added);
  std::vector<PodId> CoreOf(int g, std::vector<std::vector<PodId>>& units) const;
  void AddUnits(int g, std::vector<std::vector<PodId>>& units) const;

  const Snapshot& snapshot_;
  const std::span<const GangNode> gang_;
  const WorkloadInfo& info_;
  const std::vector<char>& is_up_;
  std::vector<char>& leaves_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_GANG_CUT_H_
