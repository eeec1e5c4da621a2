#include "tests/support/status_matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tessera {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointee;

// The text gMock prints when `matcher` is asked about `value`.
template <typename Matcher, typename Value>
std::string Explain(const Matcher& matcher, const Value& value) {
  ::testing::StringMatchResultListener listener;
  ::testing::ExplainMatchResult(matcher, value, &listener);
  return listener.str();
}

TEST(StatusMatchers, IsOkTakesBothKinds) {
  EXPECT_THAT(absl::OkStatus(), IsOk());
  EXPECT_THAT(absl::StatusOr<int>(3), IsOk());
  EXPECT_THAT(absl::InternalError("x"), Not(IsOk()));
  EXPECT_THAT(absl::StatusOr<int>(absl::InternalError("x")), Not(IsOk()));
}

TEST(StatusMatchers, IsOkAndHoldsTakesValuesAndMatchers) {
  EXPECT_THAT(absl::StatusOr<int>(3), IsOkAndHolds(3));
  EXPECT_THAT(absl::StatusOr<int>(3), IsOkAndHolds(Gt(2)));
  EXPECT_THAT(absl::StatusOr<int>(3), Not(IsOkAndHolds(4)));
  EXPECT_THAT(absl::StatusOr<int>(absl::InternalError("x")), Not(IsOkAndHolds(_)));
}

TEST(StatusMatchers, IsOkAndHoldsDoesNotCopyTheValue) {
  absl::StatusOr<std::unique_ptr<int>> result = std::make_unique<int>(3);
  EXPECT_THAT(result, IsOkAndHolds(Pointee(3)));
}

TEST(StatusMatchers, StatusIsComparesCodeAndMessage) {
  const absl::Status status = absl::InvalidArgumentError("nodes[3]: no name");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nodes[3]")));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, "nodes[3]: no name"));
  EXPECT_THAT(status, Not(StatusIs(absl::StatusCode::kInternal)));
  EXPECT_THAT(status, Not(StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nodes[4]"))));
  EXPECT_THAT(absl::StatusOr<int>(status), StatusIs(absl::StatusCode::kInvalidArgument, _));
}

TEST(StatusMatchers, FailuresQuoteTheStatus) {
  const absl::StatusOr<int> result = absl::InternalError("lost");
  EXPECT_THAT(Explain(IsOk(), result), HasSubstr("INTERNAL: lost"));
  EXPECT_THAT(Explain(IsOkAndHolds(1), result), HasSubstr("INTERNAL: lost"));
  EXPECT_THAT(Explain(StatusIs(absl::StatusCode::kAborted), result), HasSubstr("INTERNAL: lost"));
  const ::testing::Matcher<absl::StatusOr<int>> matcher = IsOkAndHolds(Gt(2));
  EXPECT_THAT(::testing::DescribeMatcher<absl::StatusOr<int>>(matcher),
              AllOf(HasSubstr("is OK"), HasSubstr("is > 2")));
}

}  // namespace
}  // namespace tessera
