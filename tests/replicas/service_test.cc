#include "tessera/replicas/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

TEST(ServiceTest, ReasonsHaveNames) {
  for (int i = 0; i < 6; ++i) {
    const auto reason = static_cast<RequirementReason>(i);
    EXPECT_EQ(RequirementReasonFromString(ToString(reason)), reason);
  }
  EXPECT_EQ(ToString(RequirementReason::kItlUnreachable), "itl_unreachable");
  EXPECT_EQ(RequirementReasonFromString("unreachable"), std::nullopt);
}

TEST(ServiceTest, AnSlaIsTwoTimesAboveZero) {
  EXPECT_THAT(ValidateSla({0.5, 0.05}, "sla"), IsOk());
  EXPECT_THAT(ValidateSla({0, 0.05}, "sla"),
              StatusIs(absl::StatusCode::kInvalidArgument, "sla.ttft: 0 is not a time above 0"));
  EXPECT_THAT(ValidateSla({0.5, -1}, ""),
              StatusIs(absl::StatusCode::kInvalidArgument, "itl: -1 is not a time above 0"));
  EXPECT_THAT(ValidateSla({0.5, std::numeric_limits<double>::quiet_NaN()}, "services[2].sla"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "services[2].sla.itl: nan is not a time above 0"));
}

}  // namespace
}  // namespace tessera
