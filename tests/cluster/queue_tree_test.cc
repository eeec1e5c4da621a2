#include "tessera/cluster/queue_tree.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/support/snapshot_builder_for_tests.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// top has a and b, b has c; other stands alone.
std::vector<Queue> FiveQueues() {
  return {MakeQueue("top"), MakeQueue("b", "top"), MakeQueue("c", "b"), MakeQueue("a", "top"),
          MakeQueue("other")};
}

std::vector<std::string> Names(const QueueTree& tree, std::span<const QueueId> ids) {
  std::vector<std::string> names;
  for (QueueId q : ids) names.push_back(tree.queue(q).name);
  return names;
}

TEST(QueueTreeTest, Shape) {
  const ResourceSpace space;
  const QueueTree tree = *QueueTree::Create(FiveQueues(), space);
  ASSERT_EQ(tree.size(), 5);
  // Ids are ranks by name: a, b, c, other, top.
  EXPECT_EQ(tree.Find("a"), QueueId(0));
  EXPECT_EQ(tree.Find("top"), QueueId(4));
  EXPECT_EQ(tree.Find("z"), std::nullopt);
  EXPECT_EQ(tree.parent(QueueId(2)), QueueId(1));
  EXPECT_FALSE(tree.parent(QueueId(4)).valid());
  EXPECT_THAT(Names(tree, tree.children(QueueId())), ElementsAre("other", "top"));
  EXPECT_THAT(Names(tree, tree.children(QueueId(4))), ElementsAre("a", "b"));
  EXPECT_THAT(Names(tree, tree.children(QueueId(1))), ElementsAre("c"));
  EXPECT_THAT(tree.children(QueueId(0)), IsEmpty());
  EXPECT_TRUE(tree.is_leaf(QueueId(3)));
  EXPECT_FALSE(tree.is_leaf(QueueId(1)));
  EXPECT_EQ(tree.depth(QueueId(4)), 0);
  EXPECT_EQ(tree.depth(QueueId(2)), 2);
  EXPECT_THAT(Names(tree, tree.top_down()), ElementsAre("other", "top", "a", "b", "c"));
}

TEST(QueueTreeTest, OrderOfTheListMeansNothing) {
  const ResourceSpace space;
  std::vector<Queue> queues = FiveQueues();
  const QueueTree tree = *QueueTree::Create(queues, space);
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(queues.begin(), queues.end(), random);
    EXPECT_EQ(*QueueTree::Create(queues, space), tree);
  }
}

TEST(QueueTreeTest, NoQueuesAreOneWithoutBounds) {
  const ResourceSpace space;
  const QueueTree tree = *QueueTree::Create({}, space);
  ASSERT_EQ(tree.size(), 1);
  EXPECT_EQ(tree.queue(QueueId(0)).name, "default");
  EXPECT_EQ(tree.quota(QueueId(0))[kGpu], kUnlimited);
  EXPECT_EQ(tree.limit(QueueId(0))[kGpu], kUnlimited);
}

TEST(QueueTreeTest, AmountsAreResolved) {
  const std::vector<std::string> extra = {"ib"};
  const ResourceSpace space = *ResourceSpace::Create(extra);
  std::vector<Queue> queues = {MakeQueue("a"), MakeQueue("b")};
  queues[0].quota.by_name = {{"ib", 3}};
  queues[0].limit.all = 9;
  queues[0].limit.by_name = {{"cpu", 5}};
  queues[0].weight.by_name = {{"memory", 0}};
  const QueueTree tree = *QueueTree::Create(queues, space);
  const QueueId a(0), b(1);
  const int ib = *space.Find("ib");
  EXPECT_EQ(tree.quota(a)[ib], 3);
  EXPECT_EQ(tree.quota(a)[kCpu], 0);
  EXPECT_EQ(tree.limit(a)[kCpu], 5);
  EXPECT_EQ(tree.limit(a)[ib], 9);
  EXPECT_EQ(tree.limit(b)[ib], kUnlimited);
  EXPECT_EQ(tree.weight(a)[kMemory], 0);
  EXPECT_EQ(tree.weight(b)[kMemory], kWeightOne);
  // Quota of `ib` is stated somewhere, of cpu nowhere, of gpu it always counts.
  EXPECT_TRUE(tree.is_quota_governed(ib));
  EXPECT_TRUE(tree.is_quota_governed(kGpu));
  EXPECT_FALSE(tree.is_quota_governed(kCpu));
}

struct ErrorCase {
  std::function<void(std::vector<Queue>&)> change;
  std::string message;
};

TEST(QueueTreeTest, Errors) {
  const ErrorCase kCases[] = {
      {[](auto& q) { q[3].name = ""; }, "queues[3].name: is empty"},
      {[](auto& q) { q[3].name = "b"; }, "queues[3].name: \"b\" is the name of another queue"},
      {[](auto& q) { q[1].parent = "tip"; }, "queues[1].parent: no queue is named \"tip\""},
      {[](auto& q) { q[0].parent = "c"; }, "queues[1].parent: queue \"b\" is below itself"},
      {[](auto& q) { q[4].parent = "other"; }, "queues[4].parent: queue \"other\" is below itself"},
      {[](auto& q) { q[2].quota.by_name["ib"] = 1; },
       "queues[2].quota.ib: is not a resource of the snapshot"},
      {[](auto& q) { q[2].usage["ib"] = 1; },
       "queues[2].usage.ib: is not a resource of the snapshot"},
      {[](auto& q) { q[2].usage["gpu"] = -1; }, "queues[2].usage.gpu: is negative"},
      {[](auto& q) { q[2].quota.all = -1; }, "queues[2].quota: is negative"},
      {[](auto& q) { q[2].limit.by_name["gpu"] = -1; }, "queues[2].limit.gpu: is negative"},
      {[](auto& q) { q[2].limit.all = kMaxTotal + 1; }, "queues[2].limit: is too large"},
      {[](auto& q) { q[2].weight.all = kMaxWeight + 1; }, "queues[2].weight: is too large"},
      {[](auto& q) { q[2].weight.all = kUnlimited; }, "queues[2].weight: is too large"},
      {[](auto& q) { q[2].preempt_min_runtime = -1; },
       "queues[2].preempt_min_runtime: is negative"},
      {[](auto& q) { q[2].reclaim_min_runtime = -1; },
       "queues[2].reclaim_min_runtime: is negative"},
  };
  const ResourceSpace space;
  for (const ErrorCase& test : kCases) {
    std::vector<Queue> queues = FiveQueues();
    test.change(queues);
    EXPECT_THAT(QueueTree::Create(queues, space),
                StatusIs(absl::StatusCode::kInvalidArgument, test.message));
  }
}

TEST(QueueTreeTest, LimitBelowQuotaIsNoError) {
  const ResourceSpace space;
  std::vector<Queue> queues = {MakeQueue("a")};
  queues[0].quota.all = kUnlimited;
  queues[0].limit.all = 0;
  EXPECT_THAT(QueueTree::Create(queues, space), IsOk());
}

}  // namespace
}  // namespace tessera
