// Every set of victims of small clusters is tried: a legal plan is found exactly when there is
// one, and none costs less.

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <optional>

#include "tessera/io/snapshot_json.h"
#include "tessera/placement/gang_placement.h"
#include "tests/preemption/room_support.h"

namespace tessera {
namespace {

// Tries sets of victims on a state of its own, and all places for the claimant.
class BruteForce {
 public:
  BruteForce(const Snapshot& snapshot, const FairShares& shares, const RoomRules& rules,
             bool reclaim)
      : snapshot_(snapshot),
        shares_(shares),
        rules_(rules),
        reclaim_(reclaim),
        w_(*snapshot.FindWorkload("claim")),
        state_(std::make_shared<const StateTables>(snapshot), {}) {
    for (int i = 0; i < snapshot.num_pods(); ++i) {
      const PodId p(i);
      const WorkloadId w = snapshot.pod_set(snapshot.pod_set_of(p)).workload;
      const bool same_queue = snapshot.info(w).queue == snapshot.info(w_).queue;
      if (w == w_ || !state_.is_placed(p) || same_queue == reclaim) continue;
      const bool ran = snapshot.now() - snapshot.pod_started(p) >= rules.victims.min_pod_runtime;
      if (ran && snapshot.workload(w).is_preemptible()) pods_.push_back(p);
    }
  }

  size_t num_pods() const { return pods_.size(); }
  // Whether the claimant lacks anything of its minimum.
  bool lacks() const { return !IsWhole(state_, w_); }
  // Whether it fits and nobody has to yield.
  bool FitsAsItIs() {
    least_ = INT64_MAX;
    for (const std::vector<PodId>& pods : Choices()) Try(0, 0, pods);
    return least_ < INT64_MAX;
  }

  // The least cost, MIG operations included, or nothing if there is no legal plan.
  std::optional<int64_t> Run() {
    struct Attempt {
      int64_t points = 0;
      uint32_t set = 0;
      size_t choice = 0;
    };
    const std::vector<std::vector<PodId>> choices = Choices();
    std::vector<Attempt> attempts;
    for (uint32_t set = 0; set < uint32_t{1} << pods_.size(); ++set) {
      for (size_t c = 0; c < choices.size(); ++c) {
        attempts.push_back({CostOf(set, choices[c]), set, c});
      }
    }
    std::ranges::sort(attempts, {}, [](const Attempt& a) { return std::pair(a.points, a.set); });
    least_ = INT64_MAX;
    for (const Attempt& attempt : attempts) {
      if (attempt.points >= least_) break;
      Try(attempt.set, attempt.points, choices[attempt.choice]);
    }
    return least_ < INT64_MAX ? std::optional(least_) : std::nullopt;
  }

 private:
  bool in(uint32_t set, size_t i) const { return ((set >> i) & 1) != 0; }

  Victim VictimOf(PodId p) const {
    const WorkloadId w = snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
    const Workload& workload = snapshot_.workload(w);
    Victim victim{p, w, workload.priority, 0, 0, 0, false};
    const RequestClassId c = snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class;
    const ResourceVector charge = ChargeOf(snapshot_, c, state_.placement(p), {});
    victim.gpu_units = charge[kGpu];
    victim.cpu = charge[kCpu];
    for (const Pod& pod : workload.pods) {
      if (*snapshot_.FindPod({workload.name, pod.pod_set, pod.index}) != p) continue;
      const int64_t since = std::max(*pod.started, workload.last_checkpoint.value_or(0));
      victim.seconds_lost = snapshot_.now() - since;
    }
    return victim;
  }

  QueueId BranchOf(QueueId q) const {
    const QueueTree& tree = snapshot_.queues();
    const QueueId own = snapshot_.info(w_).queue;
    return tree.parent(q) == tree.parent(own) ? q : tree.parent(q);
  }

  // Of the victims alone, where the claimant places `pods`.
  int64_t CostOf(uint32_t set, const std::vector<PodId>& pods) const {
    int64_t cost = 0;
    std::map<WorkloadId, int> gone;
    std::map<QueueId, std::pair<int, ResourceVector>> branches;
    for (size_t i = 0; i < pods_.size(); ++i) {
      if (!in(set, i)) continue;
      const PodId p = pods_[i];
      const WorkloadId w = snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
      cost += VictimWeights().Cost(VictimOf(p));
      ++gone[w];
      auto& [count, charge] = branches[BranchOf(snapshot_.info(w).queue)];
      ++count;
      charge += ChargeOf(snapshot_, snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class,
                         state_.placement(p), {});
    }
    for (const auto& [w, count] : gone) {
      int up = 0;
      for (int i = 0; i < snapshot_.info(w).num_pods; ++i) {
        up += state_.is_placed(PodId(snapshot_.info(w).first_pod + i)) ? 1 : 0;
      }
      if (count == up) cost += rules_.costs.ended_gang;
    }
    if (!reclaim_) return cost;
    for (const auto& [q, lost] : branches) {
      int64_t need = 1000;
      for (int r = 0; r < snapshot_.resources().size(); ++r) {
        const int64_t left = shares_.of(q).allocated[r] - lost.second[r];
        if (!Asks(pods, r) || left <= 0) continue;
        need = std::min(need, shares_.of(q).fair_share[r] * 1000 / left);
      }
      cost += lost.first * need * rules_.costs.share / 1000;
    }
    return cost;
  }

  // Whether one of these pods asks for some of resource `r`.
  bool Asks(const std::vector<PodId>& pods, int r) const {
    return std::ranges::any_of(pods, [&](PodId p) {
      const RequestClassId c = snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class;
      const RequestClass& request = snapshot_.request_class(c);
      const bool gpu = request.gpu.kind != GpuRequestKind::kNone;
      return r == kGpu ? gpu : r != kPods && request.need[r] > 0;
    });
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

  // Lowers `least_` if the pods of `set`, which cost `points`, may leave for `pods`.
  void Try(uint32_t set, int64_t points, const std::vector<PodId>& pods) {
    const ClusterState::Mark mark = state_.GetMark();
    std::vector<Action> actions;
    for (size_t i = 0; i < pods_.size(); ++i) {
      if (!in(set, i)) continue;
      state_.Remove(pods_[i]);
      actions.push_back(
          EvictAction{snapshot_.pod_ref(pods_[i]), reclaim_ ? "reclaim" : "preempt", "claim"});
    }
    PlaceFrom(0, pods, points, state_.GetMark(), actions);
    state_.RollBack(mark);
  }

  // With what the MIG operations since `mark` cost.
  int64_t WithOperations(int64_t points, ClusterState::Mark mark) const {
    for (const MigChange& change : state_.MigChangesSince(mark)) {
      for (size_t s = 0; s < change.before.size(); ++s) {
        if (change.before[s] == change.after[s]) continue;
        points += change.before[s] >= 0 ? rules_.costs.mig_operation : 0;
        points += change.after[s] >= 0 ? rules_.costs.mig_operation : 0;
      }
    }
    return points;
  }

  // Tries every place of every pod.
  void PlaceFrom(size_t next, const std::vector<PodId>& pods, int64_t points,
                 ClusterState::Mark first, std::vector<Action>& actions) {
    const int64_t cost = WithOperations(points, first);
    if (cost >= least_) return;
    if (next == pods.size()) {
      if (Objections(snapshot_, shares_, rules_, actions).empty()) least_ = cost;
      return;
    }
    const PodSetId s = snapshot_.pod_set_of(pods[next]);
    const RequestClass& request = snapshot_.request_class(snapshot_.pod_set(s).request_class);
    for (int n = 0; n < snapshot_.num_nodes(); ++n) {
      for (const PodPlacement& place : PlacesOn(NodeId(n), request.gpu)) {
        if (!IsFree(state_, s, place)) continue;
        const ClusterState::Mark mark = state_.GetMark();
        state_.Place(pods[next], place);
        actions.push_back(NominateAction{snapshot_.pod_ref(pods[next]),
                                         snapshot_.node(NodeId(n)).name,
                                         DevicesOf(snapshot_, place)});
        PlaceFrom(next + 1, pods, points, first, actions);
        actions.pop_back();
        state_.RollBack(mark);
      }
    }
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
  const bool reclaim_;
  const WorkloadId w_;
  ClusterState state_;
  std::vector<PodId> pods_;
  int64_t least_ = INT64_MAX;
};

std::string TextOf(const Snapshot& snapshot, const RoomPlan& plan) {
  std::string text = ToText(plan.certificate);
  for (PodId p : plan.evicted) {
    const PodRef ref = snapshot.pod_ref(p);
    absl::StrAppend(&text, "\nevict ", ref.workload, "/", ref.pod_set, "/", ref.index);
  }
  for (const PodTarget& target : plan.placed) {
    const PodRef ref = snapshot.pod_ref(target.pod);
    absl::StrAppend(&text, "\nplace ", ref.pod_set, "/", ref.index, " on ",
                    snapshot.node(target.placement.node).name);
  }
  return text + "\n" + WriteSnapshot(snapshot);
}

// Cases in which somebody has to yield, of those: the claimant needs one of two parts; and is
// carved for.
struct Tally {
  int plans = 0;
  int with_choice = 0;
  int carved = 0;
};

void Compare(bool reclaim, uint32_t seed, Tally& tally) {
  RandomCluster random(seed);
  const Snapshot snapshot = CreateOrDie(Crowd(random, {}).Draw());
  const FairShares shares = DivideFairShares(snapshot);
  const RoomRules rules{.exact_budget = 100000000};
  const WorkloadId w = *snapshot.FindWorkload("claim");
  BruteForce brute(snapshot, shares, rules, reclaim);
  if (brute.num_pods() > 9 || !brute.lacks() || brute.FitsAsItIs()) return;
  const RoomPlan plan = reclaim ? PlanReclaim(snapshot, shares, w, rules)
                                : PlanPreemption(snapshot, shares, w, rules);
  const std::optional<int64_t> best = brute.Run();
  ASSERT_EQ(plan.found(), best.has_value()) << "seed " << seed << "\n" << TextOf(snapshot, plan);
  if (!best) {
    ASSERT_TRUE(plan.certificate.proven) << "seed " << seed << "\n" << TextOf(snapshot, plan);
    return;
  }
  tally.plans += plan.evicted.empty() ? 0 : 1;
  tally.with_choice += !plan.evicted.empty() && snapshot.workload(w).gang.min_groups ? 1 : 0;
  tally.carved += plan.certificate.mig_operations > 0 ? 1 : 0;
  ASSERT_EQ(Objections(snapshot, shares, rules, plan.actions), "") << "seed " << seed << "\n"
                                                                   << TextOf(snapshot, plan);
  ASSERT_EQ(plan.certificate.minimality, Minimality::kCheapest) << "seed " << seed;
  ASSERT_EQ(plan.certificate.cost, *best) << "seed " << seed << "\n" << TextOf(snapshot, plan);
}

void CompareAll(bool reclaim) {
  Tally tally;
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases && !testing::Test::HasFatalFailure(); ++seed) {
    Compare(reclaim, static_cast<uint32_t>(seed), tally);
  }
  EXPECT_GT(tally.plans, cases / 50);
  testing::Test::RecordProperty("plans", tally.plans);
  testing::Test::RecordProperty("with_choice", tally.with_choice);
  testing::Test::RecordProperty("carved", tally.carved);
}

TEST(RoomBruteForce, ReclaimFindsTheCheapestLegalVictimsExactlyWhenThereAreAny) {
  CompareAll(/*reclaim=*/true);
}

TEST(RoomBruteForce, PreemptionFindsTheCheapestLegalVictimsExactlyWhenThereAreAny) {
  CompareAll(/*reclaim=*/false);
}

}  // namespace
}  // namespace tessera
