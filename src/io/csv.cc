#include "src/io/csv.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"

namespace tessera::io_internal {

absl::StatusOr<CsvReader> CsvReader::Create(std::string_view name, std::string_view text,
                                            std::span<const std::string_view> columns) {
  CsvReader csv(name, text, columns);
  csv.SplitLine();
  const std::vector<std::string_view>& header = csv.values_;
  for (const std::string_view column : columns) {
    const auto at = std::ranges::find(header, column);
    if (at == header.end()) {
      return csv.ErrorOnLine(
          absl::StrCat("there is no column \"", ToAbsl(column), "\"", DidYouMean(column, header)));
    }
    csv.positions_.push_back(static_cast<size_t>(at - header.begin()));
  }
  for (auto at = header.begin(); at != header.end(); ++at) {
    if (std::find(header.begin(), at, *at) == at) continue;
    return csv.ErrorOnLine(absl::StrCat("two columns are named \"", ToAbsl(*at), "\""));
  }
  return csv;
}

absl::StatusOr<bool> CsvReader::Next() {
  if (rest_.empty()) return false;
  const size_t expected = values_.size();
  SplitLine();
  if (values_.size() == expected) return true;
  return ErrorOnLine(absl::StrCat("has ", values_.size(), " values, the first line ", expected));
}

absl::StatusOr<int64_t> CsvReader::Number(size_t column, int64_t max) const {
  const std::string_view value = text(column);
  const char* const end = value.data() + value.size();
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error == std::errc::invalid_argument || stop != end || number < 0) {
    return Error(column, absl::StrCat("\"", ToAbsl(value), "\" is not a whole number"));
  }
  if (error == std::errc::result_out_of_range || number > max) {
    return Error(column, absl::StrCat(ToAbsl(value), " is above ", max));
  }
  return number;
}

absl::Status CsvReader::Error(size_t column, std::string_view message) const {
  return ErrorOnLine(absl::StrCat("column ", ToAbsl(columns_[column]), ": ", ToAbsl(message)));
}

absl::Status CsvReader::ErrorOnLine(std::string_view message) const {
  const std::string_view separator = message.starts_with("column ") ? ", " : ": ";
  return InvalidAt(name_, absl::StrCat("line ", line_, ToAbsl(separator), ToAbsl(message)));
}

void CsvReader::SplitLine() {
  const size_t newline = std::min(rest_.find('\n'), rest_.size());
  std::string_view line = rest_.substr(0, newline);
  rest_.remove_prefix(std::min(newline + 1, rest_.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++line_;
  values_.clear();
  for (size_t comma; (comma = line.find(',')) != line.npos; line.remove_prefix(comma + 1)) {
    values_.push_back(line.substr(0, comma));
  }
  values_.push_back(line);
}

}  // namespace tessera::io_internal
