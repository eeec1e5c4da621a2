#ifndef TESSERA_BASE_STATUS_H_
#define TESSERA_BASE_STATUS_H_

// Errors: building them, passing them on, and bridging the two string views.

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tessera {

// Abseil's view of the same characters, and back. Some builds of Abseil (that of
// Debian among them) have a string view of their own, which does not convert
// from or to `std::string_view`; in the others both are one type. Code that
// crosses through these two compiles with either. No copy; a view made of a
// temporary string dangles as usual.
inline absl::string_view ToAbsl(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}
inline std::string_view ToStd(absl::string_view text) {
  return std::string_view(text.data(), text.size());
}

// kInvalidArgument with the text "path: message", where `path` leads to the
// offending field of the input: `nodes[3].gpus[1].mig.instances[0]`. An empty
// path stands for the input as a whole, and the text is then `message` alone.
absl::Status InvalidAt(std::string_view path, std::string_view message);

// The end of a message about an unknown `word`: `; did you mean "weight"?`,
// naming the member of `known` at the least edit distance (insertions, deletions
// and substitutions of one byte), or "" when every distance is above
// max(1, length of `word` / 3) or `word` has more than 64 bytes. Ties: the first
// in `known`. O(sum over `known` of length of `word` times length), where members
// too long or too short to qualify cost nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string_view> known);

}  // namespace tessera

#define TESSERA_STATUS_CONCAT_INNER(a, b) a##b
#define TESSERA_STATUS_CONCAT(a, b) TESSERA_STATUS_CONCAT_INNER(a, b)

// Evaluates an `absl::Status` expression and returns it from the enclosing
// function, which returns `absl::Status` or a `StatusOr`, unless it is OK.
#define TESSERA_RETURN_IF_ERROR(...) \
  TESSERA_RETURN_IF_ERROR_AS(TESSERA_STATUS_CONCAT(tessera_status_, __LINE__), __VA_ARGS__)

#define TESSERA_RETURN_IF_ERROR_AS(status, ...)                           \
  do {                                                                    \
    if (absl::Status status = (__VA_ARGS__); !status.ok()) return status; \
  } while (false)

// Evaluates a `StatusOr` expression; returns its status from the enclosing
// function unless it holds a value, else moves the value into `lhs`, which is a
// declaration or an assignable expression without a comma:
//
//   TESSERA_ASSIGN_OR_RETURN(const int64_t bytes, ParseBytes(text));
//
// It is more than one statement, so an unbraced `if` cannot hold it.
#define TESSERA_ASSIGN_OR_RETURN(lhs, ...) \
  TESSERA_ASSIGN_OR_RETURN_AS(TESSERA_STATUS_CONCAT(tessera_or_, __LINE__), lhs, __VA_ARGS__)

#define TESSERA_ASSIGN_OR_RETURN_AS(result, lhs, ...)  \
  auto result = (__VA_ARGS__);                         \
  if (!result.ok()) return std::move(result).status(); \
  lhs = *std::move(result)

#endif  // TESSERA_BASE_STATUS_H_
