#include "tessera/state/node_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/random_cluster.h"

namespace tessera {
namespace {

constexpr int kAmounts = 3;

std::vector<int64_t> Room(int64_t a, int64_t b, int64_t c) { return {a, b, c}; }

TEST(NodeIndexTest, FindsTheLowestNodeOfAShelfThatHasTheRoom) {
  const std::vector<int> groups = {200, 5};
  NodeIndex index(groups, 3, kAmounts);
  index.Set(0, 150, 2, Room(4, 4, 4));
  index.Set(0, 180, 2, Room(9, 9, 9));
  const std::vector<int64_t> small = {4, 1, NodeIndex::kNoNeed}, big = {5, 1, 1};
  EXPECT_EQ(index.FindFirst(0, 2, 0, 200, small), 150);
  EXPECT_EQ(index.FindFirst(0, 2, 151, 200, small), 180);
  EXPECT_EQ(index.FindFirst(0, 2, 0, 200, big), 180);
  EXPECT_EQ(index.FindFirst(0, 2, 0, 180, big), NodeIndex::kNone);
  EXPECT_EQ(index.FindFirst(0, 1, 0, 200, small), NodeIndex::kNone);
  EXPECT_EQ(index.FindFirst(1, 2, 0, 5, small), NodeIndex::kNone);
  EXPECT_EQ(index.count(0, 0), 198);
  EXPECT_EQ(index.count(0, 2), 2);
}

TEST(NodeIndexTest, AZeroNeedIsMetWhereTheAmountIsNegative) {
  const std::vector<int> groups = {1};
  NodeIndex index(groups, 1, kAmounts);
  index.Set(0, 0, 0, Room(-5, 1, 1));
  const std::vector<int64_t> none = {NodeIndex::kNoNeed, 1, 1}, some = {1, 1, 1};
  EXPECT_EQ(index.FindFirst(0, 0, 0, 1, none), 0);
  EXPECT_EQ(index.FindFirst(0, 0, 0, 1, some), NodeIndex::kNone);
}

TEST(NodeIndexTest, AgreesWithAScanAndForgetsWhatIsUndone) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const std::vector<int> groups = {1 + random.Below(300), 1 + random.Below(70)};
    NodeIndex index(groups, 4, kAmounts);
    const auto draw_room = [&random] {
      return Room(random.Below(6), random.Below(6) - 1, random.Below(6));
    };
    for (int step = 0; step < 60; ++step) {
      const int g = random.Below(2);
      index.Set(g, random.Below(groups[static_cast<size_t>(g)]), random.Below(4), draw_room());
    }
    const NodeIndex before = index;
    for (int step = 0; step < 20; ++step) {
      const int g = random.Below(2);
      const int size = groups[static_cast<size_t>(g)];
      const int shelf = random.Below(4), begin = random.Below(size);
      int end = begin + random.Below(size);
      const std::vector<int64_t> amounts = {random.Below(6), NodeIndex::kNoNeed, random.Below(4)};
      const int64_t above = random.Below(4) - 2;
      // What a node is worth lies up to `slack` below its bound.
      const int slack = random.Below(3);
      const auto worth = [&](int n) { return index.room(g, n)[1] - (slack > 0 ? n % slack : 0); };
      int first = NodeIndex::kNone, best = NodeIndex::kNone;
      for (int n = begin; n < std::min(end, size); ++n) {
        const std::span<const int64_t> room = index.room(g, n);
        if (index.shelf(g, n) != shelf || room[0] < amounts[0] || room[2] < amounts[2]) continue;
        if (first == NodeIndex::kNone) first = n;
        const int64_t least = best == NodeIndex::kNone ? above : worth(best);
        if (worth(n) > least) best = n;
      }
      end = std::min(end, size);
      ASSERT_EQ(index.FindFirst(g, shelf, begin, end, amounts), first) << "seed " << seed;
      const NodeIndex::Best found = index.FindBest(g, shelf, begin, end, amounts, 1, above, worth);
      ASSERT_EQ(found.slot == NodeIndex::kNone, best == NodeIndex::kNone) << "seed " << seed;
      if (best != NodeIndex::kNone) {
        ASSERT_EQ(found.value, worth(best)) << "seed " << seed;
        ASSERT_EQ(found.slot, best) << "seed " << seed;
      }
      // Change a node and change it back.
      const int n = random.Below(size);
      const std::vector<int64_t> old(index.room(g, n).begin(), index.room(g, n).end());
      const int old_shelf = index.shelf(g, n);
      index.Set(g, n, random.Below(4), draw_room());
      index.Set(g, n, old_shelf, old);
      ASSERT_TRUE(index == before) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tessera
