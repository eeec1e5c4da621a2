#include "tessera/base/status.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tessera {
namespace {

// Longer words are not slips of the pen, and the search is quadratic in them.
constexpr size_t kLongestWord = 64;

// Levenshtein distance, one row of the table at a time.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

absl::Status InvalidAt(std::string_view path, std::string_view message) {
  if (path.empty()) return absl::InvalidArgumentError(ToAbsl(message));
  return absl::InvalidArgumentError(absl::StrCat(ToAbsl(path), ": ", ToAbsl(message)));
}

std::string DidYouMean(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > kLongestWord) return "";
  size_t limit = std::max<size_t>(1, word.size() / 3) + 1;
  std::string_view best;
  for (const std::string_view candidate : known) {
    if (std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size()) >=
        limit) {
      continue;
    }
    const size_t distance = EditDistance(word, candidate);
    if (distance >= limit) continue;
    limit = distance;
    best = candidate;
  }
  if (best.empty()) return "";
  return absl::StrCat("; did you mean \"", ToAbsl(best), "\"?");
}

}  // namespace tessera
