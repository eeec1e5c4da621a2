#ifndef TESSERA_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define TESSERA_TESTS_SUPPORT_STATUS_MATCHERS_H_

// Matchers for `absl::Status` and `absl::StatusOr`. Debian's Abseil has none, so
// these carry the names and meaning of the ones later Abseil releases ship.
//
//   ASSERT_THAT(queues, IsOk());
//   EXPECT_THAT(ParseBytes("1Ki"), IsOkAndHolds(1024));
//   EXPECT_THAT(ParseBytes("x"),
//               StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes")));

#include <gmock/gmock.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tessera {
namespace status_matchers_internal {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }

template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace status_matchers_internal

// Matches a Status or StatusOr that is OK.
MATCHER(IsOk, negation ? "is an error" : "is OK") {
  const absl::Status& status = status_matchers_internal::StatusOf(arg);
  *result_listener << "whose status is " << status.ToString();
  return status.ok();
}

// Matches a StatusOr that is OK and whose value matches `value`.
MATCHER_P(IsOkAndHolds, value,
          "is OK and has a value that " +
              ::testing::DescribeMatcher<typename std::decay_t<arg_type>::value_type>(value)) {
  if (!arg.ok()) {
    *result_listener << "whose status is " << arg.status().ToString();
    return false;
  }
  return ::testing::ExplainMatchResult(value, *arg, result_listener);
}

// Matches a Status or StatusOr of this code whose message matches `message`.
MATCHER_P2(StatusIs, code, message,
           "has a status of code " + absl::StatusCodeToString(code) + " and a message that " +
               ::testing::DescribeMatcher<std::string>(message)) {
  const absl::Status& status = status_matchers_internal::StatusOf(arg);
  *result_listener << "whose status is " << status.ToString();
  return status.code() == code &&
         ::testing::Matches(message)(std::string(status.message().data(), status.message().size()));
}

// Matches a Status or StatusOr of this code, whatever its message.
MATCHER_P(StatusIs, code, "has a status of code " + absl::StatusCodeToString(code)) {
  const absl::Status& status = status_matchers_internal::StatusOf(arg);
  *result_listener << "whose status is " << status.ToString();
  return status.code() == code;
}

}  // namespace tessera

#endif  // TESSERA_TESTS_SUPPORT_STATUS_MATCHERS_H_
