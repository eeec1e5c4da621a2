#include "tessera/resources/resource_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

static_assert(std::is_trivially_copyable_v<ResourceVector>);

TEST(ResourceSpaceTest, FixedDimensionsFirstThenNamesInOrder) {
  const std::vector<std::string> extra = {"gpu:H100", "example.com/nic", "cpu", "gpu:H100"};
  const absl::StatusOr<ResourceSpace> space = ResourceSpace::Create(extra);
  ASSERT_THAT(space, IsOk());
  ASSERT_EQ(space->size(), 7);
  EXPECT_EQ(space->name(5), "example.com/nic");
  EXPECT_EQ(space->Find("gpu:H100"), 6);
  EXPECT_EQ(space->gpu_model(6), "H100");
  EXPECT_EQ(space->gpu_model(kGpu), "");
  EXPECT_EQ(space->Find("nic"), std::nullopt);
}

TEST(ResourceSpaceTest, RejectsTooMany) {
  std::vector<std::string> extra;
  for (int i = 0; i < 12; ++i) extra.push_back("r" + std::to_string(i));
  EXPECT_THAT(ResourceSpace::Create(extra),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the snapshot names 17 resources; at most 16 are supported"));
}

TEST(ResourceSpaceTest, AModelCountsForItsFamily) {
  EXPECT_TRUE(CountsGpuModel("H100", "H100-80GB"));
  EXPECT_TRUE(CountsGpuModel("H100-80GB", "H100-80GB"));
  EXPECT_FALSE(CountsGpuModel("H100-8", "H100-80GB"));
  EXPECT_FALSE(CountsGpuModel("H100-80GB", "H100"));
}

TEST(ResourceVectorTest, ComparesAndAddsComponentByComponent) {
  ResourceVector a, b;
  a[kGpu] = 2;
  b[kGpu] = 2;
  EXPECT_TRUE(FitsWithin(a, b));
  b[kCpu] = -1;
  EXPECT_FALSE(FitsWithin(a, b)) << "0 is more than -1";
  EXPECT_TRUE(FitsWithin(b, a));
  EXPECT_EQ((a * 2)[kGpu], 4);
  EXPECT_EQ(a + b - b, a);
}

}  // namespace
}  // namespace tessera
