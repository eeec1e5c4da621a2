#include "tessera/share/queue_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/share/fair_shares.h"
#include "tests/support/random_cluster.h"

namespace tessera {
namespace {

ResourceVector Job(int64_t cores, int64_t gpus) {
  ResourceVector job;
  job[kCpu] = Cores(cores);
  job[kGpu] = Gpus(gpus);
  return job;
}

// A tree, its accounts, and the order over them.
template <typename Order>
class Service {
 public:
  Service(const std::vector<Queue>& queues, ResourceVector capacity)
      : tree_(*QueueTree::Create(queues, space_)),
        usage_(queues.size()),
        shares_(DivideFairShares(tree_, space_, capacity, usage_, PerResourceDivision())),
        ledger_(tree_, usage_),
        order_(tree_, shares_, ledger_, {&space_, capacity}, Order()) {}

  void Offer(const std::string& queue, std::optional<ResourceVector> job) {
    order_.SetJob(*tree_.Find(queue), job);
  }
  std::string Next() const {
    const QueueId q = order_.Next();
    return q.valid() ? tree_.queue(q).name : "";
  }
  // Serves the next queue once, with the job it offered.
  std::string Serve(const ResourceVector& job) {
    const std::string next = Next();
    ledger_.Book(*tree_.Find(next), job, true);
    Offer(next, job);
    return next;
  }
  const QueueTree& tree() const { return tree_; }

 private:
  ResourceSpace space_;
  QueueTree tree_;
  std::vector<QueueUsage> usage_;
  FairShares shares_;
  QuotaLedger ledger_;
  ServiceOrder<Order> order_;
};

TEST(DominantShareOrderTest, TheSmallerDominantShareIsServed) {
  // 10 cores, 10 GPUs. a uses 1 core a job (1/10), b 2 GPUs (2/10). With the next
  // job: 1 < 2: a. 2 = 2, without it 1 > 0: b. 2 < 4: a. 3 < 4: a. 4 = 4, 3 > 2: b.
  Service<DominantShareOrder> service({MakeQueue("a"), MakeQueue("b")}, Job(10, 10));
  std::string served;
  service.Offer("a", Job(1, 0));
  service.Offer("b", Job(0, 2));
  for (int i = 0; i < 6; ++i)
    served += service.Serve(service.Next() == "a" ? Job(1, 0) : Job(0, 2));
  EXPECT_EQ(served, "abaaba");
}

TEST(DominantShareOrderTest, QuotaThenPriorityThenShareThenAge) {
  std::vector<Queue> queues = {MakeQueue("a"), MakeQueue("b"), MakeQueue("c"), MakeQueue("d")};
  queues[3].quota.by_name["gpu"] = Gpus(1);
  queues[2].priority = 1;
  queues[1].created = -5;
  Service<DominantShareOrder> service(queues, Job(10, 10));
  for (const char* name : {"a", "b", "c", "d"}) service.Offer(name, Job(0, 1));
  EXPECT_EQ(service.Next(), "d");  // within its quota
  service.Offer("d", Job(0, 2));   // no longer
  EXPECT_EQ(service.Next(), "c");  // priority
  service.Offer("c", std::nullopt);
  EXPECT_EQ(service.Next(), "b");  // equal shares: older
  service.Offer("b", std::nullopt);
  service.Offer("a", std::nullopt);
  service.Offer("d", std::nullopt);
  EXPECT_EQ(service.Next(), "");
}

TEST(DominantShareOrderTest, ABlockedChildDoesNotStarveItsSibling) {
  // The example of hierarchical DRF: n1 wants CPU; n2's children want GPU (n2a)
  // and CPU (n2b). A naive sum charges n2 with n2a's GPUs even after n2a has all
  // it can get, and n2b would never be served. Here an inner queue competes with
  // its own dominant share, and n2b gets its turns once n1 has caught up.
  std::vector<Queue> queues = {MakeQueue("n1"), MakeQueue("n2"), MakeQueue("n2a", "n2"),
                               MakeQueue("n2b", "n2")};
  Service<DominantShareOrder> service(queues, Job(10, 10));
  service.Offer("n2a", Job(0, 1));
  for (int i = 0; i < 5; ++i) service.Serve(Job(0, 1));
  service.Offer("n2a", std::nullopt);  // nothing more to run
  service.Offer("n1", Job(1, 0));
  service.Offer("n2b", Job(1, 0));
  std::string served;
  for (int i = 0; i < 8; ++i) served += service.Serve(Job(1, 0)) + " ";
  EXPECT_THAT(served, testing::HasSubstr("n2b"));
}

// The best child by a linear scan at every level.
template <typename Order>
QueueId Scan(const QueueTree& tree, const std::vector<std::optional<ResourceVector>>& jobs,
             const FairShares& shares, const QuotaLedger& ledger, const QueueOrderContext& context,
             QueueId parent, ResourceVector& job) {
  QueueId best, best_leaf;
  ResourceVector best_job;
  const auto standing = [&](QueueId q, const ResourceVector& j) {
    return QueueStanding{&tree.queue(q),
                         &tree.quota(q),
                         &tree.limit(q),
                         &tree.weight(q),
                         &ledger.allocated(q),
                         &shares.of(q).fair_share,
                         &j};
  };
  for (QueueId q : tree.children(parent)) {
    QueueId leaf = q;
    ResourceVector j;
    if (tree.is_leaf(q)) {
      if (!jobs[static_cast<size_t>(q.value())]) continue;
      j = *jobs[static_cast<size_t>(q.value())];
    } else {
      leaf = Scan<Order>(tree, jobs, shares, ledger, context, q, j);
      if (!leaf.valid()) continue;
    }
    if (!best.valid() || Order().Before(Order().KeyOf(context, standing(q, j)),
                                        Order().KeyOf(context, standing(best, best_job)))) {
      best = q;
      best_leaf = leaf;
      best_job = j;
    }
  }
  job = best_job;
  return best_leaf;
}

TEST(ServiceOrderTest, AgreesWithALinearScan) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const SnapshotSpec spec = random.Draw();
    const ResourceSpace space =
        *ResourceSpace::Create(std::vector<std::string>{"gpu:H100", "example.com/nic"});
    const QueueTree tree = *QueueTree::Create(spec.queues, space);
    const std::vector<QueueUsage> usage(static_cast<size_t>(tree.size()));
    const ResourceVector capacity = Job(40, 20);
    const FairShares shares = DivideFairShares(tree, space, capacity, usage, PerResourceDivision());
    QuotaLedger ledger(tree, usage);
    const QueueOrderContext context{&space, capacity};
    ServiceOrder<DominantShareOrder> order(tree, shares, ledger, context, DominantShareOrder());
    std::vector<std::optional<ResourceVector>> jobs(usage.size());
    for (int step = 0; step < 20; ++step) {
      const QueueId q(random.Below(tree.size()));
      if (!tree.is_leaf(q)) continue;
      if (random.Chance(50)) ledger.Book(q, Job(random.Below(3), random.Below(3)), true);
      std::optional<ResourceVector>& job = jobs[static_cast<size_t>(q.value())];
      job.reset();
      if (random.Chance(80)) job = Job(random.Below(3), random.Below(3));
      order.SetJob(q, job);
      ResourceVector ignored;
      ASSERT_EQ(order.Next(),
                Scan<DominantShareOrder>(tree, jobs, shares, ledger, context, QueueId(), ignored))
          << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace tessera
