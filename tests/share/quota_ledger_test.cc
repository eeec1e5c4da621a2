#include "tessera/share/quota_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/snapshot_builder_for_tests.h"
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
  ledger.Charge(team(), Charge(5), true);
  EXPECT_EQ(ledger.Check(team(), Charge(1), true), std::nullopt);
  EXPECT_EQ(ledger.Check(team(), Charge(2), true),
            (QuotaRefusal{team(), kGpu, true, Gpus(5), Gpus(2), Gpus(6)}));
}

TEST_F(QuotaLedgerTest, AnAncestorRefusesWhatOthersHold) {
  usage_[static_cast<size_t>(org().value())].allocated = Charge(7);
  const QuotaLedger ledger(tree_, usage_);
  EXPECT_EQ(ledger.Check(team(), Charge(2), true),
            (QuotaRefusal{org(), kGpu, true, Gpus(7), Gpus(2), Gpus(8)}));
}

TEST_F(QuotaLedgerTest, QuotaBoundsNonPreemptibleWork) {
  QuotaLedger ledger(tree_, usage_);
  EXPECT_EQ(ledger.Check(team(), Charge(4), false), std::nullopt);
  ledger.Charge(team(), Charge(3), false);
  EXPECT_EQ(ledger.Check(team(), Charge(2), false),
            (QuotaRefusal{team(), kGpu, false, Gpus(3), Gpus(2), Gpus(4)}));
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

TEST_F(QuotaLedgerTest, ReleaseUndoesChargeAndNothingElse) {
  QuotaLedger ledger(tree_, usage_);
  ledger.Charge(team(), Charge(3, 2), false);
  EXPECT_THAT(ledger.Release(team(), Charge(4), false),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "queue \"team\" does not hold what is to be released"));
  EXPECT_EQ(ledger.allocated(org()), Charge(3, 2));
  EXPECT_THAT(ledger.Release(team(), Charge(3, 2), false), IsOk());
  EXPECT_EQ(ledger.allocated(org()), ResourceVector());
  EXPECT_EQ(ledger.non_preemptible(team()), ResourceVector());
}

TEST_F(QuotaLedgerTest, RollBackReturnsToTheMark) {
  QuotaLedger ledger(tree_, usage_);
  ledger.Charge(team(), Charge(1), true);
  const QuotaLedger::Mark mark = ledger.GetMark();
  ledger.Charge(team(), Charge(2), false);
  EXPECT_THAT(ledger.Release(team(), Charge(1), true), IsOk());
  ledger.RollBack(mark);
  EXPECT_EQ(ledger.allocated(team()), Charge(1));
  EXPECT_EQ(ledger.non_preemptible(org()), ResourceVector());
}

}  // namespace
}  // namespace tessera
