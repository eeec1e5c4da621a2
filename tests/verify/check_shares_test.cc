#include "tessera/verify/check_shares.h"

#include <gmock/gmock.h>

#include <functional>
#include <ostream>

#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// Cores of one queue; everything else is zero.
struct Account {
  const char* queue;
  int64_t demand = 0;
  int64_t share = 0;
  int64_t allocated = 0;
};

// Queues a and b at the top, c and d below b; 12 cores.
struct SharesScene {
  std::vector<Queue> queues = {MakeQueue("a"), MakeQueue("b"), MakeQueue("c", "b"),
                               MakeQueue("d", "b")};
  int64_t capacity = 12;
  std::vector<Account> accounts = {{"a", 6, 4}, {"b", 9, 8}, {"c", 4, 4}, {"d", 5, 4}};

  Queue& queue(size_t i) { return queues[i]; }
  std::vector<std::string> Check() const {
    const ResourceSpace space;
    const QueueTree tree = *QueueTree::Create(queues, space);
    FairShares shares;
    shares.capacity[kCpu] = Cores(capacity);
    shares.queues.resize(static_cast<size_t>(tree.size()));
    for (const Account& account : accounts) {
      QueueShare& share = shares.queues[static_cast<size_t>(tree.Find(account.queue)->value())];
      share.demand[kCpu] = Cores(account.demand);
      share.fair_share[kCpu] = Cores(account.share);
      share.allocated[kCpu] = Cores(account.allocated);
    }
    return CheckShares(tree, space, shares);
  }
};

void SetQuota(SharesScene& scene, size_t queue, int64_t cores) {
  scene.queue(queue).quota.by_name["cpu"] = Cores(cores);
}
void SetLimit(SharesScene& scene, size_t queue, int64_t cores) {
  scene.queue(queue).limit.by_name["cpu"] = Cores(cores);
}

// The scene above is right; after `change` exactly `problems` are wrong.
struct SharesCase {
  std::string name;
  std::function<void(SharesScene&)> change;
  std::vector<std::string> problems;
};

std::ostream& operator<<(std::ostream& out, const SharesCase& test) { return out << test.name; }

const std::vector<SharesCase>& Cases() {
  static const auto& cases = *new std::vector<SharesCase>{
      {"Unchanged", [](SharesScene&) {}, {}},
      {"MoreThanCapacity",
       [](SharesScene& s) { s.capacity = 11; },
       {"the top level has 11 cpu, its queues are given more in all"}},
      {"MoreThanParent",
       [](SharesScene& s) { s.accounts[3].share = 5; },
       {"queue b has 8 cpu, its queues are given more in all"}},
      {"Negative",
       [](SharesScene& s) {
         s.capacity = 8;
         s.accounts[0].share = -1;
         s.accounts[1].share = 9;
         s.accounts[3].share = 5;
       },
       {"queue a: is given -1 cpu, less than the 0 cpu of its quota that it can use",
        "queue a: -1 cpu are given, less than 0 cpu"}},
      {"AboveLimit",
       [](SharesScene& s) { SetLimit(s, 0, 3); },
       {"queue a: 4 cpu are given, above its limit of 3 cpu"}},
      {"AtLimit",
       [](SharesScene& s) {
         SetLimit(s, 0, 3);
         s.accounts[0].share = 3;
         s.accounts[1].share = 9;
         s.accounts[3].share = 5;
       },
       {}},
      {"AboveDemand",
       [](SharesScene& s) {
         s.accounts[2].share = 5;
         s.accounts[3].share = 3;
       },
       {"queue c: 5 cpu are given, above its demand of 4 cpu"}},
      {"QuotaOfSiblingFirst",
       [](SharesScene& s) { SetQuota(s, 0, 5); },
       {"queue a: is given 4 cpu, less than the 5 cpu of its quota that it can use"}},
      {"QuotaBeyondDemand",
       [](SharesScene& s) {
         SetQuota(s, 2, 100);
         SetQuota(s, 3, 4);
       },
       {}},
      {"UnlimitedQuota",
       [](SharesScene& s) { s.queue(0).quota.all = kUnlimited; },
       {"queue a: is given 4 cpu, less than the 6 cpu of its quota that it can use"}},
      {"QuotasBeyondWhatThereIs",
       [](SharesScene& s) {
         SetQuota(s, 0, 6);
         SetQuota(s, 1, 8);
       },
       {}},
      {"SomethingLeftAtTheTop",
       [](SharesScene& s) { s.capacity = 13; },
       {"queue a: is given 4 cpu and could use 6 cpu, but the top level has some left",
        "queue b: is given 8 cpu and could use 9 cpu, but the top level has some left"}},
      {"SomethingLeftBelow",
       [](SharesScene& s) { s.accounts[3].share = 3; },
       {"queue d: is given 3 cpu and could use 5 cpu, but queue b has some left"}},
      {"LeftByNobody",
       [](SharesScene& s) {
         s.capacity = 100;
         s.accounts[0].share = 6;
         s.accounts[1].share = 9;
         s.accounts[3].share = 5;
       },
       {}},
      {"SurplusOfLowerPriority",
       [](SharesScene& s) { s.queue(0).priority = 1; },
       {"queue b: is given surplus cpu although queue a of higher priority could use it"}},
      {"QuotaOfLowerPriority",
       [](SharesScene& s) {
         s.queue(0).priority = 1;
         SetQuota(s, 1, 8);
       },
       {}},
      {"HigherPriorityWithoutWeight",
       [](SharesScene& s) {
         s.queue(0).priority = 1;
         s.queue(0).weight.all = 0;
       },
       {}},
      {"HigherPrioritySatisfied", [](SharesScene& s) { s.queue(2).priority = 1; }, {}},
      {"DemandIsNotTheSum",
       [](SharesScene& s) { s.accounts[1].demand = 10; },
       {"queue b: its demand of 10 cpu is not the sum of its queues'"}},
      {"AllocationIsNotTheSum",
       [](SharesScene& s) { s.accounts[2].allocated = 1; },
       {"queue b: its allocation of 0 cpu is not the sum of its queues'"}},
      {"AllocationAboveDemand",
       [](SharesScene& s) { s.accounts[0].allocated = 7; },
       {"queue a: 7 cpu are allocated, above its demand of 6 cpu"}},
  };
  return cases;
}

class SharesRuleTest : public ::testing::TestWithParam<SharesCase> {};

TEST_P(SharesRuleTest, Holds) {
  SharesScene scene;
  GetParam().change(scene);
  EXPECT_THAT(scene.Check(), ElementsAreArray(GetParam().problems));
}

INSTANTIATE_TEST_SUITE_P(Rules, SharesRuleTest, ::testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

TEST(CheckSharesTest, SharesOfAnotherTree) {
  const ResourceSpace space;
  const QueueTree tree = *QueueTree::Create({MakeQueue("a"), MakeQueue("b")}, space);
  EXPECT_THAT(CheckShares(tree, space, FairShares()),
              ElementsAre("there are 2 queues, but shares of 0"));
}

TEST(CheckSharesTest, SumsDoNotOverflow) {
  const ResourceSpace space;
  std::vector<Queue> queues;
  for (int i = 0; i < 5; ++i)
    queues.push_back(MakeQueue(std::string(1, static_cast<char>('a' + i))));
  const QueueTree tree = *QueueTree::Create(queues, space);
  FairShares shares;
  shares.capacity[kMemory] = kMaxTotal;
  shares.queues.resize(5);
  for (QueueShare& share : shares.queues) {
    share.demand[kMemory] = kMaxTotal;
    share.fair_share[kMemory] = kMaxTotal;
  }
  EXPECT_THAT(
      CheckShares(tree, space, shares),
      ElementsAre("the top level has 2097152 TiB memory, its queues are given more in all"));
}

}  // namespace
}  // namespace tessera
