// Claims one after another, with what planners keep for the next and without.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <memory>

#include "tessera/io/snapshot_json.h"
#include "tessera/preemption/room_memory.h"
#include "tests/preemption/room_support.h"

namespace tessera {
namespace {

// A crowd, and many who claim room in it.
Snapshot CrowdWithClaims(RandomCluster& random) {
  Crowd crowd(random, {.nodes = 12, .workloads = 30});
  SnapshotSpec spec = crowd.Draw();
  const int kinds = 1 + random.Below(3);
  std::vector<Workload> claims;
  for (int i = 0; i < kinds; ++i) claims.push_back(crowd.DrawWorkload(absl::StrCat("c", i)));
  for (int i = 0; i < 12; ++i) {
    Workload claim = claims[static_cast<size_t>(random.Below(kinds))];
    claim.name = absl::StrCat("claim-", i);
    if (random.Chance(30)) claim.queue = random.Chance(50) ? "a1" : "b2";
    spec.workloads.push_back(std::move(claim));
  }
  return CreateOrDie(std::move(spec));
}

// What a cycle keeps.
struct Desk {
  explicit Desk(const Snapshot& snapshot)
      : shares(DivideFairShares(snapshot)),
        ledger(snapshot.queues(), MeasureUsage(snapshot, {}), shares.capacity),
        later(std::make_shared<const StateTables>(snapshot),
              {.nominated = true, .releasing = false}),
        memory(snapshot) {}

  RoomDesk Without() { return {nullptr, &later, &ledger, &shares}; }
  RoomDesk With() {
    RoomDesk desk = Without();
    desk.memory = &memory;
    return desk;
  }

  void CarryOut(const RoomPlan& plan, const RoomRules& rules) {
    tessera::CarryOut(plan, rules, With());
    later.Commit();
    ledger.Commit();
  }

  FairShares shares;
  QuotaLedger ledger;
  ClusterState later;
  RoomMemory memory;
};

TEST(ClaimRow, PlansAsIfEachClaimWereTheFirst) {
  const VictimWeights weights;
  const auto cost = [&weights](const Victim& victim) { return weights.Cost(victim); };
  // Where the cheapest are searched for, greedy plans would hardly show.
  const RoomRules rules{.exact_candidates = 0};
  int found = 0;
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const Snapshot snapshot = CrowdWithClaims(random);
    Desk desk(snapshot);
    for (int i = 0; i < 12; ++i) {
      const WorkloadId w = *snapshot.FindWorkload(absl::StrCat("claim-", i));
      const RoomPlan alone = PlanMakeRoom(desk.Without(), w, rules, cost);
      const RoomPlan in_row = PlanMakeRoom(desk.With(), w, rules, cost);
      ASSERT_EQ(alone, in_row) << "seed " << seed << " claim " << i << "\n"
                               << ToText(alone.certificate) << "\n"
                               << ToText(in_row.certificate) << "\n"
                               << WriteSnapshot(snapshot);
      if (!alone.found()) continue;
      found += alone.evicted.empty() ? 0 : 1;
      desk.CarryOut(alone, rules);
    }
  }
  EXPECT_GT(found, cases / 4);
}

}  // namespace
}  // namespace tessera
