#include "tessera/base/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

TEST(StringViews, KeepTheCharacters) {
  const std::string text("a\0b", 3);
  EXPECT_EQ(ToStd(ToAbsl(text)), text);
  EXPECT_EQ(ToStd(ToAbsl(text)).data(), text.data());
  EXPECT_TRUE(ToAbsl(std::string_view()).empty());
  EXPECT_TRUE(ToStd(absl::string_view()).empty());
}

TEST(InvalidAt, PutsThePathFirst) {
  EXPECT_THAT(InvalidAt("nodes[3].name", "is empty"),
              StatusIs(absl::StatusCode::kInvalidArgument, "nodes[3].name: is empty"));
}

TEST(InvalidAt, AnEmptyPathIsTheWholeInput) {
  EXPECT_THAT(InvalidAt("", "is empty"), StatusIs(absl::StatusCode::kInvalidArgument, "is empty"));
}

struct Suggestion {
  std::string_view word;
  std::string_view expected;
};

class DidYouMeanTest : public ::testing::TestWithParam<Suggestion> {};

TEST_P(DidYouMeanTest, NamesTheClosest) {
  constexpr std::array<std::string_view, 6> kKnown = {"name", "weight", "height",
                                                      "gpus", "cpus",   "a"};
  const auto& [word, expected] = GetParam();
  EXPECT_EQ(DidYouMean(word, kKnown), expected);
}

INSTANTIATE_TEST_SUITE_P(Words, DidYouMeanTest,
                         ::testing::Values(Suggestion{"wieght", "; did you mean \"weight\"?"},
                                           Suggestion{"weights", "; did you mean \"weight\"?"},
                                           Suggestion{"eight", "; did you mean \"weight\"?"},
                                           Suggestion{"hight", "; did you mean \"height\"?"},
                                           Suggestion{"Name", "; did you mean \"name\"?"},
                                           Suggestion{"xpus", "; did you mean \"gpus\"?"},
                                           Suggestion{"b", "; did you mean \"a\"?"},
                                           Suggestion{"", "; did you mean \"a\"?"},
                                           Suggestion{"nmea", ""}, Suggestion{"priority", ""}));

TEST(DidYouMean, KnowsNothing) { EXPECT_EQ(DidYouMean("weight", {}), ""); }

TEST(DidYouMean, IgnoresWordsThatAreNotSlips) {
  const std::string word(65, 'x');
  const std::string near(64, 'x');
  const std::array<std::string_view, 1> known = {near};
  EXPECT_EQ(DidYouMean(word, known), "");
  EXPECT_NE(DidYouMean(near, known), "");
}

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError(absl::StrCat(value, " is odd"));
  return value / 2;
}

absl::Status CheckEven(int value) { return Half(value).status(); }

absl::Status CheckAll(const std::vector<int>& values, int& checked) {
  for (const int value : values) {
    TESSERA_RETURN_IF_ERROR(CheckEven(value));
    ++checked;
  }
  return absl::OkStatus();
}

TEST(ReturnIfError, StopsAtTheFirstError) {
  int checked = 0;
  EXPECT_THAT(CheckAll({2, 4}, checked), IsOk());
  EXPECT_EQ(checked, 2);
  EXPECT_THAT(CheckAll({2, 3, 4}, checked),
              StatusIs(absl::StatusCode::kInvalidArgument, "3 is odd"));
  EXPECT_EQ(checked, 3);
}

absl::StatusOr<int> Quarter(int value) {
  TESSERA_RETURN_IF_ERROR(CheckEven(value));
  TESSERA_ASSIGN_OR_RETURN(const int half, Half(value));
  int quarter = 0;
  TESSERA_ASSIGN_OR_RETURN(quarter, Half(half));
  return quarter;
}

TEST(AssignOrReturn, DeclaresAndAssigns) {
  EXPECT_THAT(Quarter(12), IsOkAndHolds(3));
  EXPECT_THAT(Quarter(7), StatusIs(absl::StatusCode::kInvalidArgument, "7 is odd"));
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "3 is odd"));
}

absl::StatusOr<std::unique_ptr<std::pair<int, int>>> Twice(int value) {
  TESSERA_ASSIGN_OR_RETURN(auto pair, absl::StatusOr<std::unique_ptr<std::pair<int, int>>>(
                                          std::make_unique<std::pair<int, int>>(value, value)));
  return pair;
}

TEST(AssignOrReturn, MovesTheValueAndTakesCommas) {
  EXPECT_THAT(Twice(3), IsOkAndHolds(::testing::Pointee(::testing::Pair(3, 3))));
}

absl::Status Unbraced(bool check, int value) {
  if (check)
    TESSERA_RETURN_IF_ERROR(CheckEven(value));
  else
    return absl::AbortedError("not checked");
  return absl::OkStatus();
}

TEST(ReturnIfError, IsOneStatement) {
  EXPECT_THAT(Unbraced(true, 2), IsOk());
  EXPECT_THAT(Unbraced(false, 2), StatusIs(absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace tessera
