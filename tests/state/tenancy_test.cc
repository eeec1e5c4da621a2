#include "tessera/state/tenancy.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr int kRed = 0, kBlue = 1;

TEST(TenancyTest, ANodeForOneTenantBarsOthersBothWays) {
  Tenancy tenancy(1, 1);
  EXPECT_TRUE(tenancy.NodeAccepts(0, kRed, Isolation::kNodeAlone));
  tenancy.AddToNode(0, kRed, Isolation::kNodeAlone, 1);
  EXPECT_FALSE(tenancy.NodeAccepts(0, kBlue, Isolation::kAny));
  EXPECT_TRUE(tenancy.NodeAccepts(0, kRed, Isolation::kAny));
  tenancy.AddToNode(0, kRed, Isolation::kNodeAlone, -1);
  tenancy.AddToNode(0, kBlue, Isolation::kAny, 1);
  EXPECT_FALSE(tenancy.NodeAccepts(0, kRed, Isolation::kNodeAlone));
  EXPECT_TRUE(tenancy.NodeAccepts(0, kRed, Isolation::kGpuAlone));
}

TEST(TenancyTest, HardwareBarsFractionsOnly) {
  Tenancy tenancy(1, 1);
  tenancy.AddToGpu(0, kRed, Isolation::kHardware, /*as_fraction=*/true, 1);
  EXPECT_FALSE(tenancy.GpuAccepts(0, kBlue, Isolation::kAny, true));
  EXPECT_TRUE(tenancy.GpuAccepts(0, kRed, Isolation::kAny, true));
  EXPECT_TRUE(tenancy.GpuAccepts(0, kBlue, Isolation::kAny, false));
}

TEST(TenancyTest, AStricterLevelImpliesTheWeaker) {
  Tenancy tenancy(1, 1);
  tenancy.AddToGpu(0, kRed, Isolation::kGpuAlone, true, 1);
  EXPECT_FALSE(tenancy.GpuAccepts(0, kBlue, Isolation::kAny, true));
  EXPECT_FALSE(tenancy.GpuAccepts(0, kBlue, Isolation::kAny, false));
  tenancy.AddToGpu(0, kRed, Isolation::kGpuAlone, true, -1);
  tenancy.AddToGpu(0, kRed, Isolation::kAny, true, 1);
  EXPECT_FALSE(tenancy.GpuAccepts(0, kBlue, Isolation::kGpuAlone, false));
  EXPECT_FALSE(tenancy.GpuAccepts(0, kBlue, Isolation::kHardware, true));
}

TEST(TenancyTest, TakingBackLeavesNoTrace) {
  Tenancy tenancy(1, 1);
  const Tenancy before = tenancy;
  tenancy.AddToGpu(0, kBlue, Isolation::kHardware, true, 1);
  tenancy.AddToGpu(0, kRed, Isolation::kGpuAlone, false, 1);
  tenancy.AddToGpu(0, kBlue, Isolation::kHardware, true, -1);
  tenancy.AddToGpu(0, kRed, Isolation::kGpuAlone, false, -1);
  EXPECT_TRUE(tenancy == before);
}

TEST(TenancyTest, WhoCameFirstMakesNoDifference) {
  const auto add = [](Tenancy& tenancy, int tenant, int count) {
    tenancy.AddToNode(0, tenant, Isolation::kAny, count);
  };
  Tenancy red_first(1, 1), blue_first(1, 1);
  add(red_first, kRed, 2);
  add(red_first, kBlue, 1);
  add(blue_first, kBlue, 1);
  add(blue_first, kRed, 1);
  EXPECT_FALSE(red_first == blue_first);
  EXPECT_FALSE(blue_first == red_first);
  add(blue_first, kRed, 1);
  EXPECT_TRUE(red_first == blue_first);
  // Who stays is found where it was counted.
  add(red_first, kRed, -2);
  add(blue_first, kRed, -2);
  EXPECT_TRUE(red_first == blue_first);
  for (Tenancy* tenancy : {&red_first, &blue_first}) {
    add(*tenancy, kBlue, 1);
    EXPECT_TRUE(tenancy->NodeAccepts(0, kBlue, Isolation::kNodeAlone));
    EXPECT_FALSE(tenancy->NodeAccepts(0, kRed, Isolation::kNodeAlone));
    add(*tenancy, kBlue, -2);
  }
  EXPECT_TRUE(red_first == Tenancy(1, 1));
  EXPECT_TRUE(blue_first == Tenancy(1, 1));
}

}  // namespace
}  // namespace tessera
