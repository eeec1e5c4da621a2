#include "tessera/placement/ranked_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/random_cluster.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;

// Scores that differ a little, depend on all of the node's room, and tie often.
struct Mixed {
  int64_t Score(const ClusterState&, const RequestClass& request, const Candidate& c) const {
    int64_t sum = 5 * c.free_gpus + request.gpu.devices;
    for (int64_t amount : c.free) sum += amount % 7;
    return sum % 4;
  }
};

// As `Mixed`, and by device.
struct MixedByDevice {
  static constexpr bool kEveryDevice = true;
  int64_t Score(const ClusterState& state, const RequestClass& request, const Candidate& c) const {
    return Mixed().Score(state, request, c) * 3 +
           static_cast<int64_t>((c.placement.gpus * 2654435761u >> 3) % 3);
  }
};

// Places, removes and takes back pods at random, asking `ask` in between.
template <typename Ask>
void Churn(RandomCluster& random, ClusterState& state, Ask ask) {
  const Snapshot& snapshot = state.snapshot();
  std::vector<ClusterState::Mark> marks;
  for (int step = 0; step < 20; ++step) {
    const int p = random.Below(std::max(1, snapshot.num_pods()));
    if (p >= snapshot.num_pods()) return;
    const PodSetId s = snapshot.pod_set_of(PodId(p));
    const int begin = random.Below(snapshot.num_nodes());
    const PodQuery everywhere{s, {0, snapshot.num_nodes()}, 0};
    const PodQuery query{s,
                         {begin, begin + random.Below(snapshot.num_nodes() - begin + 1)},
                         random.Chance(20) ? 1u : 0u};
    const auto place = ask(state, everywhere);
    ask(state, query);
    if (random.Chance(15)) {
      marks.push_back(state.GetMark());
    } else if (random.Chance(15) && !marks.empty()) {
      state.RollBack(marks.back());
      marks.pop_back();
    } else if (state.is_placed(PodId(p))) {
      state.Remove(PodId(p));
    } else if (place) {
      state.Place(PodId(p), *place);
    }
  }
}

template <typename Scorer>
void ExpectRankedIsBest(RankingOptions options) {
  const int cases = RandomCases(300, 6000);
  RankedFinder<Scorer> ranked{Scorer(), std::move(options)};
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const Snapshot snapshot = CreateOrDie(random.Draw());
    ClusterState state(std::make_shared<const StateTables>(snapshot), {});
    const auto ask = [&](const ClusterState& asked, const PodQuery& query) {
      const auto best = FindBest(asked, query, Scorer());
      EXPECT_EQ(ranked(asked, query), best) << "seed " << seed << " set " << query.pod_set.value();
      return best;
    };
    Churn(random, state, ask);
    // A copy has the same content and another future; the original goes on.
    ClusterState copy = state;
    Churn(random, copy, ask);
    Churn(random, state, ask);
    state = copy;
    Churn(random, state, ask);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(RankedFinderProperties, FindsWhatAScanFinds) { ExpectRankedIsBest<Mixed>({}); }

TEST(RankedFinderProperties, FindsTheDeviceThatAScanFinds) {
  ExpectRankedIsBest<MixedByDevice>({});
}

TEST(RankedFinderProperties, ForgettingChangesNothing) {
  ExpectRankedIsBest<Mixed>({.order = {}, .max_bytes = 1});
}

class RankedFinderTest : public testing::Test {
 protected:
  // `nodes` nodes of one GPU, and as many pods of one GPU.
  explicit RankedFinderTest(int nodes = 5) {
    SnapshotSpec spec;
    for (int i = 0; i < nodes; ++i) spec.nodes.push_back(MakeNode(std::string(1, 'a' + i), 1));
    spec.workloads = {MakeWorkload("w", "", {MakePodSet("s", nodes, WholeGpus(1))})};
    snapshot_.emplace(CreateOrDie(std::move(spec)));
    state_.emplace(std::make_shared<const StateTables>(*snapshot_), InitialPods());
  }
  PodQuery query() const { return {PodSetId(0), {0, snapshot_->num_nodes()}, 0}; }

  std::optional<Snapshot> snapshot_;
  std::optional<ClusterState> state_;
};

struct Flat {
  int64_t Score(const ClusterState&, const RequestClass&, const Candidate&) const {
    ++*asked;
    return 0;
  }
  int* asked;
};

TEST_F(RankedFinderTest, TiesFallInTheGivenOrder) {
  int asked = 0;
  RankedFinder<Flat> find(Flat{&asked}, {.order = {3, 1, 4, 0, 2}});
  std::vector<int> nodes;
  for (int p = 0; p < 5; ++p) {
    const auto place = find(*state_, query());
    ASSERT_TRUE(place);
    nodes.push_back(place->node.value());
    state_->Place(PodId(p), *place);
  }
  EXPECT_THAT(nodes, ElementsAre(3, 1, 4, 0, 2));
  EXPECT_EQ(find(*state_, query()), std::nullopt);
  // 5 at first, then nothing: a node that was filled has no candidate to score. And
  // every placement shows the winner once more.
  EXPECT_EQ(asked, 5 + 5);
}

TEST_F(RankedFinderTest, OnlyChangedNodesAreScoredAgain) {
  int asked = 0;
  RankedFinder<Flat> find{Flat{&asked}};
  state_->Place(PodId(0), *find(*state_, query()));
  ASSERT_TRUE(find(*state_, query()));
  const int before = asked;
  state_->Remove(PodId(0));
  EXPECT_EQ(find(*state_, query())->node.value(), 0);
  EXPECT_EQ(asked - before, 2) << "node 0 changed, and won";
}

TEST_F(RankedFinderTest, AJournalThatHasForgottenStartsOver) {
  int asked = 0;
  RankedFinder<Flat> find{Flat{&asked}};
  const PodPlacement place = *find(*state_, query());
  for (int i = 0; i < 1000; ++i) {
    state_->Place(PodId(0), place);
    state_->Remove(PodId(0));
  }
  state_->Place(PodId(0), place);
  asked = 0;
  EXPECT_EQ(find(*state_, query())->node.value(), 1);
  EXPECT_EQ(asked, 4 + 1);
}

TEST(SeededOrder, IsAPermutationThatTheSeedDecides) {
  const std::vector<int32_t> order = SeededOrder(100, 42);
  std::vector<int32_t> all(100);
  for (int i = 0; i < 100; ++i) all[static_cast<size_t>(i)] = i;
  EXPECT_THAT(order, UnorderedElementsAreArray(all));
  EXPECT_NE(order, all);
  EXPECT_EQ(order, SeededOrder(100, 42));
  EXPECT_NE(order, SeededOrder(100, 43));
}

}  // namespace
}  // namespace tessera
