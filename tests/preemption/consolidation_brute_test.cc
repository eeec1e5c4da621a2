// Every set of moves of small clusters is tried, with every place for all that moves: what the
// planner finds is possible and costs no less than the best, and it seldom misses one. (Moves
// that would have to wait for each other in a circle count as missed here.)

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <optional>

#include "tessera/io/snapshot_json.h"
#include "tessera/placement/gang_placement.h"
#include "tests/preemption/room_support.h"

namespace tessera {
namespace {

class BruteForce {
 public:
  explicit BruteForce(const Snapshot& snapshot)
      : snapshot_(snapshot),
        w_(*snapshot.FindWorkload("claim")),
        state_(std::make_shared<const StateTables>(snapshot), {}) {
    for (int i = 0; i < snapshot.num_pods(); ++i) {
      const PodId p(i);
      const Workload& workload =
          snapshot.workload(snapshot.pod_set(snapshot.pod_set_of(p)).workload);
      if (state_.is_placed(p) && workload.is_movable()) pods_.push_back(p);
    }
  }

  size_t num_pods() const { return pods_.size(); }

  // The fewest points for which pods can be moved so that the claimant's pods fit, if any.
  std::optional<int64_t> Run() {
    std::vector<std::pair<int64_t, uint32_t>> sets;
    for (uint32_t set = 0; set < uint32_t{1} << pods_.size(); ++set) {
      int64_t cost = 0;
      for (size_t i = 0; i < pods_.size(); ++i) cost += in(set, i) ? CostOf(pods_[i]) : 0;
      sets.emplace_back(cost, set);
    }
    std::ranges::sort(sets);
    for (const auto& [cost, set] : sets) {
      if (Fits(set)) return cost;
    }
    return std::nullopt;
  }

 private:
  bool in(uint32_t set, size_t i) const { return ((set >> i) & 1) != 0; }

  // By priority alone; see `Weights` below.
  int64_t CostOf(PodId p) const {
    const WorkloadId w = snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
    return 100 * (snapshot_.workload(w).priority + 1);
  }

  // Whether no workload has more pods disrupted than it permits.
  bool IsPermitted(uint32_t set) const {
    std::map<WorkloadId, int> moved;
    for (size_t i = 0; i < pods_.size(); ++i) {
      if (in(set, i)) ++moved[snapshot_.pod_set(snapshot_.pod_set_of(pods_[i])).workload];
    }
    return std::ranges::all_of(moved, [this](const auto& entry) {
      return entry.second <= snapshot_.workload(entry.first).max_disrupted.value_or(entry.second);
    });
  }

  bool Fits(uint32_t set) {
    if (!IsPermitted(set)) return false;
    std::vector<PodId> pods;
    const PodSetId s(snapshot_.info(w_).first_pod_set);
    for (int i = 0; i < snapshot_.pod_set(s).min_count; ++i) {
      pods.push_back(snapshot_.pod_set(s).pod(i));
    }
    const ClusterState::Mark mark = state_.GetMark();
    for (size_t i = 0; i < pods_.size(); ++i) {
      if (!in(set, i)) continue;
      state_.Remove(pods_[i]);
      pods.push_back(pods_[i]);
    }
    const bool fits = PlaceFrom(0, pods);
    state_.RollBack(mark);
    return fits;
  }

  bool PlaceFrom(size_t next, const std::vector<PodId>& pods) {
    if (next == pods.size()) return true;
    const PodSetId s = snapshot_.pod_set_of(pods[next]);
    const GpuRequest& gpu = snapshot_.request_class(snapshot_.pod_set(s).request_class).gpu;
    for (int n = 0; n < snapshot_.num_nodes(); ++n) {
      const int gpus = state_.tables().num_gpus(NodeId(n));
      for (uint64_t set = 0; set < uint64_t{1} << gpus; ++set) {
        if (std::popcount(set) != gpu.devices) continue;
        PodPlacement place;
        place.node = NodeId(n);
        place.gpus = set;
        if (gpu.is_shared()) place.share = static_cast<int32_t>(gpu.share);
        if (!IsFree(state_, s, place)) continue;
        const ClusterState::Mark mark = state_.GetMark();
        state_.Place(pods[next], place);
        const bool found = PlaceFrom(next + 1, pods);
        state_.RollBack(mark);
        if (found) return true;
      }
    }
    return false;
  }

  const Snapshot& snapshot_;
  const WorkloadId w_;
  ClusterState state_;
  std::vector<PodId> pods_;
};

// Crowds of one-set gangs without limits, topology or slices.
std::optional<Snapshot> DrawCase(uint32_t seed) {
  RandomCluster random(seed);
  SnapshotSpec spec = Crowd(random, {.nodes = 4, .workloads = 8, .slices = false}).Draw();
  for (Queue& queue : spec.queues) queue.limit = {};
  for (Workload& workload : spec.workloads) {
    workload.preemption_delay = 0;
    if (workload.gang.pod_sets.size() > 1 || !workload.gang.topology.required.empty()) {
      return std::nullopt;
    }
  }
  if (spec.workloads.empty()) return std::nullopt;
  return CreateOrDie(std::move(spec));
}

struct PriorityAlone {
  int64_t Cost(const Victim& victim) const { return 100 * (victim.priority + 1); }
};

TEST(ConsolidationBruteForce, FindsWhatIsPossibleAndSeldomMissesTheBest) {
  const int cases = RandomCases(1000, 20000);
  int found = 0, missed = 0, dearer = 0;
  for (int seed = 0; seed < cases; ++seed) {
    const std::optional<Snapshot> snapshot = DrawCase(static_cast<uint32_t>(seed));
    if (!snapshot) continue;
    const WorkloadId w = *snapshot->FindWorkload("claim");
    const FairShares shares = DivideFairShares(*snapshot);
    ClusterState later(std::make_shared<const StateTables>(*snapshot), {});
    BruteForce brute(*snapshot);
    if (IsWhole(later, w) || brute.num_pods() > 6) continue;
    QuotaLedger ledger(snapshot->queues(), MeasureUsage(*snapshot, {}), shares.capacity);
    const RoomPlan plan =
        PlanConsolidation({nullptr, &later, &ledger, &shares}, w, {},
                          [](const Victim& v) { return PriorityAlone().Cost(v); });
    const std::optional<int64_t> best = brute.Run();
    if (plan.found()) {
      ASSERT_TRUE(best.has_value()) << "seed " << seed << "\n" << WriteSnapshot(*snapshot);
      ASSERT_GE(plan.certificate.cost, *best) << "seed " << seed;
      ASSERT_EQ(Objections(*snapshot, shares, {}, plan.actions), "") << "seed " << seed;
    }
    found += plan.found() && *best > 0 ? 1 : 0;
    missed += best && !plan.found() ? 1 : 0;
    dearer += plan.found() && plan.certificate.cost > *best ? 1 : 0;
  }
  EXPECT_GE(found, cases / 1000);
  EXPECT_LE(missed, 2 + found / 5);
  EXPECT_LE(dearer, 1 + found / 10);
  RecordProperty("found", found);
  RecordProperty("missed", missed);
  RecordProperty("dearer", dearer);
}

}  // namespace
}  // namespace tessera
