// The search for a gang against trying everything, all features mixed.

#include "tests/placement/brute_force.h"

#include <gtest/gtest.h>

#include "tessera/io/snapshot_json.h"
#include "tessera/schedule/schedule.h"
#include "tests/support/random_cluster.h"

namespace tessera {
namespace {

constexpr size_t kMaxNodes = 4;
constexpr int kMaxPods = 6;

int PodsOf(const PodGroup& group) {
  int pods = 0;
  for (const PodSet& set : group.pod_sets) pods += set.count;
  for (const PodGroup& child : group.groups) pods += PodsOf(child);
  return pods;
}

// A cluster with pods of all phases, and a gang "x" that waits; or one of those that
// lost pods.
std::pair<Snapshot, WorkloadId> DrawCase(RandomCluster& random) {
  SnapshotSpec spec = random.Draw();
  if (spec.nodes.size() > kMaxNodes) spec.nodes.resize(kMaxNodes);
  const size_t others = static_cast<size_t>(random.Below(3));
  if (spec.workloads.size() > others && random.Chance(70)) spec.workloads.resize(others);
  const Snapshot before = CreateOrDie(spec);
  spec = ApplyAndSettle(before, Schedule(before).plan)->spec();
  random.Disturb(spec);
  Workload gang = random.DrawWorkload("x", spec);
  while (PodsOf(gang.gang) > kMaxPods) gang = random.DrawWorkload("x", spec);
  spec.workloads.push_back(gang);
  const Snapshot snapshot = CreateOrDie(spec);
  WorkloadId w = *snapshot.FindWorkload("x");
  if (random.Chance(30)) {
    const WorkloadId other(random.Below(snapshot.num_workloads()));
    if (snapshot.info(other).num_pods <= kMaxPods) w = other;
  }
  return {snapshot, w};
}

// Few devices, and a gang that about fills them: where a greedy search fails.
class TightCluster {
 public:
  explicit TightCluster(uint32_t seed) : random_(seed) {}

  std::pair<Snapshot, WorkloadId> Draw() {
    SnapshotSpec spec;
    spec.levels = {"rack"};
    const int nodes = 2 + random_.Below(3);
    for (int i = 0; i < nodes; ++i) {
      Node node = MakeNode(absl::StrCat("n", i), 0);
      node.topology["rack"] = absl::StrCat("r", i / 2);
      node.capacity.cpu = Cores(3 + random_.Below(6));
      node.gpu_model = random_.Chance(70) ? "H100-80GB" : "A100-40GB";
      const int gpus = 1 + random_.Below(2);
      for (int g = 0; g < gpus; ++g) {
        node.gpus.push_back(MakeMigGpu(random_.Chance(70) ? MigMode::kDynamic : MigMode::kOff));
      }
      spec.nodes.push_back(std::move(node));
    }
    for (int i = random_.Below(3); i > 0; --i) {
      spec.workloads.push_back(
          MakeWorkload(absl::StrCat("old", i), "", {MakePodSet("s", 1, DrawRequest())}));
    }
    const Snapshot before = CreateOrDie(spec);
    spec = ApplyAndSettle(before, Schedule(before).plan)->spec();
    Workload& gang = spec.workloads.emplace_back();
    gang.name = "x";
    int pods = 2 + random_.Below(kMaxPods - 1);
    while (pods > 0) DrawChild(gang.gang, pods, 1);
    const int children = static_cast<int>(gang.gang.pod_sets.size() + gang.gang.groups.size());
    if (children > 2 && random_.Chance(20)) gang.gang.min_groups = children - 1;
    const Snapshot snapshot = CreateOrDie(spec);
    return {snapshot, *snapshot.FindWorkload("x")};
  }

  RandomCluster& random() { return random_; }

 private:
  void DrawChild(PodGroup& group, int& pods, int depth) {
    if (depth > 0 && random_.Chance(30)) {
      PodGroup& child = group.groups.emplace_back();
      child.name = absl::StrCat("g", names_++);
      if (random_.Chance(70)) child.topology.required = "rack";
      for (int i = 1 + random_.Below(2); i > 0 && pods > 0; --i) DrawChild(child, pods, 0);
      return;
    }
    const int count = std::min(1 + random_.Below(3), pods);
    pods -= count;
    group.pod_sets.push_back(MakePodSet(absl::StrCat("s", names_++), count, DrawRequest()));
    if (random_.Chance(10)) group.pod_sets.back().max_per_node = 1 + random_.Below(2);
    if (random_.Chance(10)) group.pod_sets.back().topology.required = "rack";
    if (random_.Chance(15)) {
      group.pod_sets.back().max_per_domain = DomainLimit{"rack", 1 + random_.Below(2)};
    }
  }

  Request DrawRequest() {
    Request request;
    request.cpu = 500 * random_.Below(8);
    const int kind = random_.Below(10);
    if (kind == 0) return request;
    if (kind < 3) request.gpu = GpuRequest::Whole(1 + random_.Below(4) / 3);
    if (kind >= 3 && kind < 7) {
      const int64_t share = kGpuUnitsPerDevice * (2 + random_.Below(6)) / 10;
      request.gpu = GpuRequest::Fraction(share, 1 + random_.Below(3) / 2);
    }
    if (kind >= 7) {
      request.gpu = GpuRequest::Requirement({.memory = (4 + random_.Below(16)) * kBytesPerGiB,
                                             .compute_num = random_.Below(5),
                                             .compute_den = 7});
      request.gpu.allow_larger = random_.Chance(25);
    }
    return request;
  }

  RandomCluster random_;
  int names_ = 0;
};

// How cases ended.
struct Tally {
  int placed = 0;
  int by_exact = 0;  // of those
  int refused = 0;
};

// Compares one search with brute force.
void Check(const Snapshot& snapshot, WorkloadId w, RandomCluster& random, Tally& tally) {
  const InitialPods initial{.nominated = random.Chance(80), .releasing = random.Chance(70)};
  ClusterState state(std::make_shared<const StateTables>(snapshot), initial);
  std::vector<int> quota(static_cast<size_t>(snapshot.num_models()));
  for (int& left : quota) left = random.Below(4);
  ModelQuota account(snapshot, quota);
  const bool charged = random.Chance(30);
  const bool fits = BruteForce(state, w, charged ? &account : nullptr).Fits();

  const ClusterState before = state;
  GangOptions options;
  if (charged) options.account = &account;
  options.exact_budget = 0;
  const bool greedy = PlaceGang(state, w, FindPacked, options).placed();
  state.RollBack(0);
  account.RollBack(0);
  ASSERT_TRUE(state == before);
  options.exact_budget = 1000000;
  const GangPlacement found = PlaceGang(state, w, FindPacked, options);
  ASSERT_NE(found.outcome, SearchOutcome::kBudgetExhausted);
  ASSERT_EQ(found.placed(), fits) << WriteSnapshot(snapshot);
  ASSERT_EQ(found.proven, !fits);
  ASSERT_TRUE(!greedy || fits);
  if (found.placed()) {
    ASSERT_TRUE(IsWhole(state, w));
    ASSERT_TRUE(BruteForce(before, w, nullptr).Accepts(state, found.pods));
  } else {
    ASSERT_TRUE(state == before && account.quota() == quota);
  }
  state.RollBack(0);
  ASSERT_TRUE(state == before);
  tally.placed += fits ? 1 : 0;
  tally.by_exact += fits && !greedy ? 1 : 0;
  tally.refused += found.outcome == SearchOutcome::kRefused ? 1 : 0;
}

TEST(BruteForceTest, AGangFitsExactlyWhenTryingEverythingFindsAPlace) {
  const int cases = RandomCases(500, 10000);
  Tally tally;
  for (int seed = 0; seed < cases && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomCluster random(static_cast<uint32_t>(seed));
    const auto [snapshot, w] = DrawCase(random);
    Check(snapshot, w, random, tally);
  }
  EXPECT_GT(tally.placed, cases / 4);
  EXPECT_LT(tally.placed, 3 * cases / 4);
  EXPECT_GT(tally.refused, cases / 100);
}

TEST(BruteForceTest, TheExactSearchFindsWhatTheGreedyOneMisses) {
  const int cases = RandomCases(500, 10000);
  Tally tally;
  for (int seed = 0; seed < cases && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    TightCluster tight(static_cast<uint32_t>(seed));
    const auto [snapshot, w] = tight.Draw();
    Check(snapshot, w, tight.random(), tally);
  }
  EXPECT_GT(tally.placed, cases / 5);
  EXPECT_LT(tally.placed, 4 * cases / 5);
  EXPECT_GT(tally.by_exact, cases / 100);
}

}  // namespace
}  // namespace tessera
