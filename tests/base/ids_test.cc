#include "tessera/base/ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash_testing.h"

namespace tessera {
namespace {

static_assert(std::is_trivially_copyable_v<NodeId>);
static_assert(std::is_standard_layout_v<NodeId>);
static_assert(sizeof(NodeId) == sizeof(int32_t));
static_assert(std::is_nothrow_move_constructible_v<NodeId>);
static_assert(!std::is_convertible_v<int32_t, NodeId>);
static_assert(!std::is_convertible_v<NodeId, int32_t>);
static_assert(!std::is_constructible_v<NodeId, QueueId>);
static_assert(NodeId(3).value() == 3);

TEST(Id, DefaultIsInvalidAndSortsFirst) {
  constexpr NodeId kNone;
  EXPECT_FALSE(kNone.valid());
  EXPECT_EQ(kNone.value(), -1);
  EXPECT_LT(kNone, NodeId(0));
  EXPECT_TRUE(NodeId(0).valid());
}

TEST(Id, OrdersByValue) {
  std::vector<PodId> ids = {PodId(2), PodId(0), PodId(), PodId(1)};
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<PodId>{PodId(), PodId(0), PodId(1), PodId(2)}));
}

TEST(Id, HashAgreesWithEquality) {
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly(
      {QueueId(), QueueId(0), QueueId(1), QueueId(INT32_MAX)}));
  const absl::flat_hash_set<QueueId> set = {QueueId(4), QueueId(4), QueueId(5)};
  EXPECT_EQ(set.size(), 2u);
}

TEST(Id, PrintsTheNumber) {
  std::ostringstream out;
  out << ModelId(7) << ' ' << ModelId();
  EXPECT_EQ(out.str(), "7 -1");
  EXPECT_EQ(::testing::PrintToString(ModelId(7)), "7");
}

}  // namespace
}  // namespace tessera
