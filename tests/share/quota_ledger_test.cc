#include "tessera/share/quota_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/random_cluster.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

ResourceVector Charge(int64_t gpus, int64_t cores = 0) {
  ResourceVector charge;
  charge[kGpu] = Gpus(gpus);
  charge[kCpu] = Cores(cores);
  return charge;
}

// org (limit 8 GPUs) -> team (quota 4, limit 6).
class QuotaLedgerTest : public testing::Test {
 protected:
  QuotaLedgerTest() {
    Queue org = MakeQueue("org"), team = MakeQueue("team", "org");
    org.limit.by_name["gpu"] = Gpus(8);
    org.quota.by_name["gpu"] = Gpus(8);
    team.quota.by_name["gpu"] = Gpus(4);
    team.limit.by_name["gpu"] = Gpus(6);
    tree_ = *QueueTree::Create({org, team}, ResourceSpace());
    usage_.resize(2);
  }

  QueueId org() const { return *tree_.Find("org"); }
  QueueId team() const { return *tree_.Find("team"); }

  QueueTree tree_;
  std::vector<QueueUsage> usage_;
};

TEST_F(QuotaLedgerTest, TheLeafRefusesFirst) {
  QuotaLedger ledger(tree_, usage_);
  ledger.Book(team(), Charge(5), true);
  EXPECT_EQ(ledger.Check(team(), Charge(1), true), std::nullopt);
  EXPECT_EQ(ledger.Check(team(), Charge(2), true),
            (QuotaRefusal{team(), kGpu, QuotaBound::kLimit, Gpus(5), Gpus(2), Gpus(6)}));
}

TEST_F(QuotaLedgerTest, AnAncestorRefusesWhatOthersHold) {
  usage_[static_cast<size_t>(org().value())].allocated = Charge(7);
  const QuotaLedger ledger(tree_, usage_);
  EXPECT_EQ(ledger.Check(team(), Charge(2), true),
            (QuotaRefusal{org(), kGpu, QuotaBound::kLimit, Gpus(7), Gpus(2), Gpus(8)}));
}

TEST_F(QuotaLedgerTest, QuotaBoundsNonPreemptibleWork) {
  QuotaLedger ledger(tree_, usage_);
  EXPECT_EQ(ledger.Check(team(), Charge(4), false), std::nullopt);
  ledger.Book(team(), Charge(3), false);
  EXPECT_EQ(ledger.Check(team(), Charge(2), false),
            (QuotaRefusal{team(), kGpu, QuotaBound::kQuota, Gpus(3), Gpus(2), Gpus(4)}));
  EXPECT_EQ(ledger.Check(team(), Charge(2), true), std::nullopt);
}

TEST_F(QuotaLedgerTest, QuotaOnGpusAloneDoesNotMeanNoCpu) {
  const QuotaLedger ledger(tree_, usage_);
  EXPECT_EQ(ledger.Check(team(), Charge(1, 64), false), std::nullopt);
}

TEST_F(QuotaLedgerTest, OnlyWhatIsAskedForIsChecked) {
  usage_[static_cast<size_t>(team().value())].allocated = Charge(60);
  const QuotaLedger ledger(tree_, usage_);
  EXPECT_EQ(ledger.Check(team(), Charge(0, 4), true), std::nullopt);
}

TEST_F(QuotaLedgerTest, ReleaseUndoesAChargeAtEveryAncestor) {
  QuotaLedger ledger(tree_, usage_);
  EXPECT_THAT(ledger.Charge(WorkloadId(1), team(), Charge(3, 2), false), IsOk());
  EXPECT_THAT(ledger.Charge(WorkloadId(2), team(), Charge(1), true), IsOk());
  EXPECT_EQ(ledger.allocated(org()), Charge(4, 2));
  EXPECT_EQ(ledger.non_preemptible(org()), Charge(3, 2));
  EXPECT_THAT(ledger.Release(WorkloadId(1)), IsOk());
  EXPECT_EQ(ledger.allocated(org()), Charge(1));
  EXPECT_EQ(ledger.non_preemptible(team()), ResourceVector());
}

TEST_F(QuotaLedgerTest, WhatCannotBeBookedChangesNothing) {
  QuotaLedger ledger(tree_, usage_);
  ASSERT_THAT(ledger.Charge(WorkloadId(1), team(), Charge(3), true), IsOk());
  const struct {
    absl::Status status;
    absl::StatusCode code;
    const char* message;
  } cases[] = {
      {ledger.Charge(WorkloadId(1), team(), Charge(1), true), absl::StatusCode::kAlreadyExists,
       "the charge of workload 1 is already booked"},
      {ledger.Charge(WorkloadId(2), QueueId(7), Charge(1), true), absl::StatusCode::kNotFound,
       "the charge of workload 2 names queue 7, which is not a leaf of the queue tree"},
      {ledger.Charge(WorkloadId(2), org(), Charge(1), true), absl::StatusCode::kNotFound,
       "the charge of workload 2 names queue 0, which is not a leaf of the queue tree"},
      {ledger.Charge(WorkloadId(2), QueueId(), Charge(1), true), absl::StatusCode::kNotFound,
       "the charge of workload 2 names queue -1, which is not a leaf of the queue tree"},
      {ledger.Charge(WorkloadId(2), team(), Charge(-1), true), absl::StatusCode::kInvalidArgument,
       "the charge of workload 2 is negative: -7000"},
      {ledger.Charge(WorkloadId(2), team(), ResourceVector::Filled(kMaxTotal - 1), true),
       absl::StatusCode::kOutOfRange,
       "the charge of workload 2 overflows queue \"team\": 2305843009213693951 beside 21000"},
      {ledger.Release(WorkloadId(2)), absl::StatusCode::kNotFound, "workload 2 has no charge"},
  };
  for (const auto& c : cases) EXPECT_THAT(c.status, StatusIs(c.code, c.message));
  EXPECT_EQ(ledger.allocated(team()), Charge(3));
  EXPECT_EQ(ledger.allocated(org()), Charge(3));
  EXPECT_THAT(ledger.Release(WorkloadId(1)), IsOk());
  EXPECT_THAT(ledger.Release(WorkloadId(1)), StatusIs(absl::StatusCode::kNotFound, testing::_));
  EXPECT_EQ(ledger.allocated(org()), ResourceVector());
}

TEST_F(QuotaLedgerTest, RollBackReturnsToTheMark) {
  QuotaLedger ledger(tree_, usage_);
  ASSERT_THAT(ledger.Charge(WorkloadId(1), team(), Charge(1), true), IsOk());
  const QuotaLedger::Mark mark = ledger.GetMark();
  ledger.Book(team(), Charge(2), false);
  ASSERT_THAT(ledger.Charge(WorkloadId(2), team(), Charge(1), true), IsOk());
  ASSERT_THAT(ledger.Release(WorkloadId(1)), IsOk());
  ledger.RollBack(mark);
  EXPECT_EQ(ledger.allocated(team()), Charge(1));
  EXPECT_EQ(ledger.non_preemptible(org()), ResourceVector());
  EXPECT_THAT(ledger.Release(WorkloadId(2)), StatusIs(absl::StatusCode::kNotFound, testing::_));
  EXPECT_THAT(ledger.Release(WorkloadId(1)), IsOk());
}

// --- Borrowing and lending ---------------------------------------------------

Queue Lender(std::string name, int64_t quota, int64_t lending, int64_t borrowing,
             std::string parent = "") {
  Queue queue = MakeQueue(std::move(name), std::move(parent));
  queue.quota.by_name["gpu"] = Gpus(quota);
  if (lending >= 0) queue.lending_limit.by_name["gpu"] = Gpus(lending);
  if (borrowing >= 0) queue.borrowing_limit.by_name["gpu"] = Gpus(borrowing);
  return queue;
}

TEST(LendingTest, AQueueKeepsWhatItDoesNotLend) {
  // 10 GPUs: a has 6 and lends 2, b has 4. The pool: 2 + 4. b may take all of it, not
  // the 4 that a keeps.
  const QueueTree tree =
      *QueueTree::Create({Lender("a", 6, 2, -1), Lender("b", 4, -1, -1)}, ResourceSpace());
  QuotaLedger ledger(tree, std::vector<QueueUsage>(2), Charge(10));
  const QueueId a = *tree.Find("a"), b = *tree.Find("b");
  EXPECT_EQ(ledger.Check(b, Charge(6), true), std::nullopt);
  EXPECT_EQ(ledger.Check(b, Charge(7), true),
            (QuotaRefusal{QueueId(), kGpu, QuotaBound::kLending, 0, Gpus(7), Gpus(6)}));
  ledger.Book(b, Charge(5), true);
  // a has its own 4 and the 1 that b left in the pool.
  EXPECT_EQ(ledger.Check(a, Charge(5), true), std::nullopt);
  EXPECT_EQ(ledger.Check(a, Charge(6), true),
            (QuotaRefusal{QueueId(), kGpu, QuotaBound::kLending, Gpus(5), Gpus(2), Gpus(6)}));
}

TEST(LendingTest, ABorrowingLimitBoundsWhatIsHeldBeyondQuota) {
  // b may go 1 GPU beyond its quota of 4, whatever a leaves.
  const QueueTree tree =
      *QueueTree::Create({Lender("a", 6, -1, -1), Lender("b", 4, -1, 1)}, ResourceSpace());
  QuotaLedger ledger(tree, std::vector<QueueUsage>(2), Charge(10));
  const QueueId b = *tree.Find("b");
  ledger.Book(b, Charge(3), true);
  EXPECT_EQ(ledger.Check(b, Charge(2), true), std::nullopt);
  EXPECT_EQ(ledger.Check(b, Charge(3), true),
            (QuotaRefusal{b, kGpu, QuotaBound::kBorrowingLimit, Gpus(3), Gpus(3), Gpus(5)}));
}

TEST(LendingTest, AChargeOfNothingTakesNothingFromThePool) {
  const QueueTree tree =
      *QueueTree::Create({Lender("a", 6, 2, -1), Lender("b", 4, -1, -1)}, ResourceSpace());
  QuotaLedger ledger(tree, std::vector<QueueUsage>(2), Charge(10));
  const QueueId b = *tree.Find("b");
  ledger.Book(b, Charge(3), true);
  ledger.Book(b, ResourceVector(), true);
  EXPECT_EQ(ledger.Check(b, Charge(3), true), std::nullopt);
}

TEST(LendingTest, CapacityBeyondAllQuotasIsInThePool) {
  const QueueTree tree = *QueueTree::Create({Lender("a", 2, 0, -1)}, ResourceSpace());
  const QuotaLedger ledger(tree, std::vector<QueueUsage>(1), Charge(5));
  EXPECT_EQ(ledger.Check(QueueId(0), Charge(5), true), std::nullopt);
  EXPECT_NE(ledger.Check(QueueId(0), Charge(6), true), std::nullopt);
}

// Kueue's recursion, from the top down: what `q` may still take of the GPUs.
class KueueReference {
 public:
  KueueReference(const QueueTree& tree, const QuotaLedger& ledger, int64_t capacity)
      : tree_(tree), ledger_(ledger), capacity_(capacity) {}

  int64_t Available(QueueId q) const {
    if (!q.valid()) return Subtree(q) - Use(q);
    const int64_t free = std::max<int64_t>(Kept(q) - Use(q), 0);
    int64_t above = Available(tree_.parent(q));
    const int64_t limit = tree_.borrowing_limit(q)[kGpu];
    if (limit != kUnlimited) above = std::min(above, Subtree(q) - Kept(q) + limit - Borrowed(q));
    // Kueue lets this be negative; what a queue keeps is always its own here.
    return free + std::max<int64_t>(above, 0);
  }

 private:
  int64_t Kept(QueueId q) const {
    const int64_t lending = tree_.lending_limit(q)[kGpu];
    return lending == kUnlimited ? 0 : std::max<int64_t>(Subtree(q) - lending, 0);
  }
  int64_t Borrowed(QueueId q) const { return std::max<int64_t>(Use(q) - Kept(q), 0); }
  int64_t Subtree(QueueId q) const {
    if (q.valid() && tree_.is_leaf(q)) return tree_.quota(q)[kGpu];
    int64_t own = q.valid() ? tree_.quota(q)[kGpu] : capacity_, lent = 0;
    for (QueueId c : tree_.children(q)) {
      own -= tree_.quota(c)[kGpu];
      lent += Subtree(c) - Kept(c);
    }
    return std::max<int64_t>(own, 0) + lent;
  }
  int64_t Use(QueueId q) const {
    if (q.valid() && tree_.is_leaf(q)) return ledger_.allocated(q)[kGpu];
    int64_t use = 0;
    for (QueueId c : tree_.children(q)) use += Borrowed(c);
    return use;
  }

  const QueueTree& tree_;
  const QuotaLedger& ledger_;
  int64_t capacity_;
};

TEST(LendingTest, AgreesWithTheRecursionOnRandomTrees) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const int count = 1 + random.Below(9);
    std::vector<Queue> queues;
    for (int i = 0; i < count; ++i) {
      const std::string parent =
          i > 0 && random.Chance(60) ? absl::StrCat("q", random.Below(i)) : "";
      queues.push_back(Lender(absl::StrCat("q", i), random.Below(8), random.Below(6) - 2,
                              random.Below(6) - 2, parent));
    }
    queues[0].lending_limit.by_name["gpu"] = Gpus(random.Below(4));
    const QueueTree tree = *QueueTree::Create(queues, ResourceSpace());
    const int64_t capacity = random.Below(30);
    QuotaLedger ledger(tree, std::vector<QueueUsage>(queues.size()), Charge(capacity));
    const KueueReference reference(tree, ledger, Gpus(capacity));
    for (int step = 0; step < 20; ++step) {
      const QueueId q(random.Below(count));
      if (!tree.is_leaf(q)) continue;
      const ResourceVector charge = Charge(1 + random.Below(4));
      const bool fits = charge[kGpu] <= reference.Available(q);
      ASSERT_EQ(!ledger.Check(q, charge, true), fits) << "seed " << seed;
      const QuotaLedger::Mark mark = ledger.GetMark();
      if (fits || random.Chance(20)) ledger.Book(q, charge, true);
      if (random.Chance(20)) ledger.RollBack(mark);
    }
  }
}

}  // namespace
}  // namespace tessera
