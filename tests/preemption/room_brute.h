#ifndef TESSERA_TESTS_PREEMPTION_ROOM_BRUTE_H_
#define TESSERA_TESTS_PREEMPTION_ROOM_BRUTE_H_

// Room for a claimant by trying everything: who leaves, who moves, and every place for all of
// them, on a state of its own. What is legal the referees say.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tessera/placement/gang_placement.h"
#include "tests/preemption/room_brute_cost.h"
#include "tests/preemption/room_support.h"

namespace tessera {

// By which rights others may be made to leave.
struct BruteRights {
  bool reclaim = false;
  bool preempt = false;
  bool move = false;
};

class RoomBrute {
 public:
  RoomBrute(const Snapshot& snapshot, const FairShares& shares, const RoomRules& rules,
            BruteRights rights)
      : snapshot_(snapshot),
        shares_(shares),
        rules_(rules),
        w_(*snapshot.FindWorkload("claim")),
        cost_(snapshot, shares, rules.costs),
        state_(std::make_shared<const StateTables>(snapshot), {}),
        homes_(state_) {
    for (int i = 0; i < snapshot.num_pods(); ++i) {
      const PodId p(i);
      const WorkloadId w = WorkloadOf(p);
      const bool ran = snapshot.now() - snapshot.pod_started(p) >= rules.victims.min_pod_runtime;
      if (w == w_ || !state_.is_placed(p) || !ran) continue;
      const bool same_queue = snapshot.info(w).queue == snapshot.info(w_).queue;
      const bool evictable =
          snapshot.workload(w).is_preemptible() && (same_queue ? rights.preempt : rights.reclaim);
      const bool movable = rights.move && snapshot.workload(w).is_movable();
      if (evictable || movable) pods_.push_back({p, evictable, movable});
    }
  }

  size_t num_pods() const { return pods_.size(); }
  // Whether the claimant lacks anything of its minimum.
  bool lacks() const { return !IsWhole(state_, w_); }
  // Whether it fits and nobody has to yield.
  bool FitsAsItIs() {
    least_ = INT64_MAX;
    for (const std::vector<PodId>& pods : Choices()) Try({}, 0, pods);
    return least_ < INT64_MAX;
  }

  // The least cost, MIG operations included, or nothing if there is no legal plan.
  std::optional<int64_t> Run() {
    struct Attempt {
      int64_t points = 0;
      Fates fates;
      size_t choice = 0;
    };
    const std::vector<std::vector<PodId>> choices = Choices();
    std::vector<Attempt> attempts;
    for (const Fates& fates : AllFates()) {
      for (size_t c = 0; c < choices.size(); ++c) {
        attempts.push_back({cost_.Of(state_, Leaving(fates), choices[c]), fates, c});
      }
    }
    std::ranges::stable_sort(attempts, {}, &Attempt::points);
    least_ = INT64_MAX;
    for (const Attempt& attempt : attempts) {
      if (attempt.points >= least_) break;
      Try(attempt.fates, attempt.points, choices[attempt.choice]);
    }
    return least_ < INT64_MAX ? std::optional(least_) : std::nullopt;
  }

 private:
  enum class Fate : char { kStays, kEvicted, kMoved };
  using Fates = std::vector<Fate>;  // of `pods_`
  struct Candidate {
    PodId pod;
    bool evictable = false;
    bool movable = false;
  };
  struct Target {
    PodId pod;
    PodPlacement place;
  };

  WorkloadId WorkloadOf(PodId p) const {
    return snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
  }

  std::vector<BruteVictim> Leaving(const Fates& fates) const {
    std::vector<BruteVictim> victims;
    for (size_t i = 0; i < pods_.size(); ++i) {
      if (fates[i] != Fate::kStays) victims.push_back({pods_[i].pod, fates[i] == Fate::kMoved});
    }
    return victims;
  }

  std::vector<Fates> AllFates() const {
    std::vector<Fates> all = {{}};
    for (const Candidate& candidate : pods_) {
      std::vector<Fates> longer;
      for (const Fates& fates : all) {
        for (Fate fate : {Fate::kStays, Fate::kEvicted, Fate::kMoved}) {
          if (fate == Fate::kEvicted && !candidate.evictable) continue;
          if (fate == Fate::kMoved && !candidate.movable) continue;
          longer.push_back(fates);
          longer.back().push_back(fate);
        }
      }
      all = std::move(longer);
    }
    return all;
  }

  // The pods that would make up the claimant's minimum, in each way.
  std::vector<std::vector<PodId>> Choices() const {
    if (snapshot_.workload(w_).gang.min_groups != 1) return {MinimumOf(0, 2)};
    return {MinimumOf(0, 1), MinimumOf(1, 2)};
  }

  // The pods that the minimums of pod sets [begin, end) need.
  std::vector<PodId> MinimumOf(int begin, int end) const {
    std::vector<PodId> pods;
    for (int s = begin; s < std::min(end, snapshot_.info(w_).num_pod_sets); ++s) {
      const PodSetId id(snapshot_.info(w_).first_pod_set + s);
      if (!snapshot_.pod_set_spec(id).after.empty()) continue;
      for (int i = 0; i < snapshot_.pod_set(id).min_count; ++i) {
        pods.push_back(snapshot_.pod_set(id).pod(i));
      }
    }
    return pods;
  }

  // Lowers `least_` if pods may meet these fates, which cost `points`, for `pods`.
  void Try(const Fates& fates, int64_t points, std::vector<PodId> pods) {
    const ClusterState::Mark mark = state_.GetMark(), home_mark = homes_.GetMark();
    actions_.clear();
    for (size_t i = 0; i < fates.size(); ++i) {
      if (fates[i] == Fate::kStays) continue;
      const PodId p = pods_[i].pod;
      state_.Remove(p);
      if (fates[i] == Fate::kMoved) {
        pods.push_back(p);
        continue;
      }
      homes_.Remove(p);
      const bool reclaimed = snapshot_.info(WorkloadOf(p)).queue != snapshot_.info(w_).queue;
      actions_.push_back(
          EvictAction{snapshot_.pod_ref(p), reclaimed ? "reclaim" : "preempt", "claim"});
    }
    first_ = state_.GetMark();
    points_ = points;
    PlaceFrom(0, pods);
    state_.RollBack(mark);
    homes_.RollBack(home_mark);
  }

  // With what MIG operations cost.
  int64_t CostSoFar() const {
    int64_t cost = points_;
    for (const MigChange& change : state_.MigChangesSince(first_)) {
      for (size_t s = 0; s < change.before.size(); ++s) {
        if (change.before[s] == change.after[s]) continue;
        cost += change.before[s] >= 0 ? rules_.costs.mig_operation : 0;
        cost += change.after[s] >= 0 ? rules_.costs.mig_operation : 0;
      }
    }
    return cost;
  }

  // Tries every place of every pod.
  void PlaceFrom(size_t next, const std::vector<PodId>& pods) {
    const int64_t cost = CostSoFar();
    if (cost >= least_) return;
    if (next == pods.size()) return Judge(cost);
    const PodSetId s = snapshot_.pod_set_of(pods[next]);
    const RequestClass& request = snapshot_.request_class(snapshot_.pod_set(s).request_class);
    for (int n = 0; n < snapshot_.num_nodes(); ++n) {
      for (const PodPlacement& place : PlacesOn(NodeId(n), request.gpu)) {
        const bool at_home = homes_.is_placed(pods[next]) && homes_.placement(pods[next]) == place;
        if (at_home || !IsFree(state_, s, place)) continue;
        const ClusterState::Mark mark = state_.GetMark();
        state_.Place(pods[next], place);
        path_.push_back({pods[next], place});
        PlaceFrom(next + 1, pods);
        path_.pop_back();
        state_.RollBack(mark);
      }
    }
  }

  // All have a place: the plan counts if those who move can do so in some order, and the
  // referees have no objections.
  void Judge(int64_t cost) {
    const size_t evictions = actions_.size();
    std::vector<Target> moves;
    for (const Target& target : path_) {
      if (WorkloadOf(target.pod) != w_) moves.push_back(target);
    }
    const ClusterState::Mark mark = homes_.GetMark();
    if (MoveAll(moves)) {
      for (const auto& [p, place] : path_) {
        if (WorkloadOf(p) != w_) continue;
        actions_.push_back(NominateAction{snapshot_.pod_ref(p), snapshot_.node(place.node).name,
                                          DevicesOf(snapshot_, place)});
      }
      if (Objections(snapshot_, shares_, rules_, actions_).empty()) least_ = cost;
    }
    homes_.RollBack(mark);
    actions_.resize(evictions);
  }

  bool MoveAll(const std::vector<Target>& moves) {
    if (moves.empty()) return true;
    for (size_t i = 0; i < moves.size(); ++i) {
      const auto& [p, place] = moves[i];
      const ClusterState::Mark mark = homes_.GetMark();
      homes_.Remove(p);
      if (IsFree(homes_, snapshot_.pod_set_of(p), place)) {
        homes_.Place(p, place);
        actions_.push_back(MoveAction{snapshot_.pod_ref(p), snapshot_.node(place.node).name,
                                      DevicesOf(snapshot_, place)});
        std::vector<Target> rest = moves;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
        if (MoveAll(rest)) return true;
        actions_.pop_back();
      }
      homes_.RollBack(mark);
    }
    return false;
  }

  std::vector<PodPlacement> PlacesOn(NodeId n, const GpuRequest& gpu) const {
    PodPlacement place;
    place.node = n;
    std::vector<PodPlacement> places;
    const int gpus = state_.tables().num_gpus(n);
    if (gpu.kind == GpuRequestKind::kNone) return {place};
    if (gpu.kind == GpuRequestKind::kWhole) {
      for (uint64_t set = 1; set < uint64_t{1} << gpus; ++set) {
        place.gpus = set;
        if (std::popcount(set) == gpu.devices) places.push_back(place);
      }
      return places;
    }
    for (int g = 0; g < gpus; ++g) {
      place.gpus = uint64_t{1} << g;
      if (gpu.is_shared()) {
        place.share = static_cast<int32_t>(gpu.share);
        places.push_back(place);
        continue;
      }
      const GpuModel& model = snapshot_.model(snapshot_.node_model(n));
      place.profile = static_cast<int16_t>(*model.FindProfile(gpu.profiles.front()));
      for (int start = 0; start < model.units; ++start) {
        const auto& starts = model.profiles[static_cast<size_t>(place.profile)].starts;
        if (std::ranges::find(starts, start) == starts.end()) continue;
        place.start = static_cast<int16_t>(start);
        places.push_back(place);
      }
    }
    return places;
  }

  const Snapshot& snapshot_;
  const FairShares& shares_;
  const RoomRules& rules_;
  const WorkloadId w_;
  const BruteCost cost_;
  ClusterState state_;  // the end of a plan
  ClusterState homes_;  // its beginning: who moves is still at home
  std::vector<Candidate> pods_;
  std::vector<Action> actions_;
  std::vector<Target> path_;
  ClusterState::Mark first_ = {};
  int64_t points_ = 0;
  int64_t least_ = INT64_MAX;
};

}  // namespace tessera

#endif  // TESSERA_TESTS_PREEMPTION_ROOM_BRUTE_H_
