#ifndef TESSERA_SRC_IO_CSV_H_
#define TESSERA_SRC_IO_CSV_H_

// Comma-separated values without quotes, as traces have them.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tessera::io_internal {

// Goes through a table line by line. Views lead into the text.
class CsvReader {
 public:
  // Reads the first line. `name` stands for the table in errors; `columns` are those that
  // will be asked for, by their index here. kInvalidArgument: one is missing, or a column
  // is named twice.
  static absl::StatusOr<CsvReader> Create(std::string_view name, std::string_view text,
                                          std::span<const std::string_view> columns);

  // Moves to the next line; false at the end. kInvalidArgument: a line with more or fewer
  // values than the first.
  absl::StatusOr<bool> Next();

  // The value of a column on this line.
  std::string_view text(size_t column) const { return values_[positions_[column]]; }
  // kInvalidArgument: not a whole number from 0 to `max`.
  absl::StatusOr<int64_t> Number(size_t column, int64_t max) const;
  // kInvalidArgument, with line and column.
  absl::Status Error(size_t column, std::string_view message) const;

 private:
  CsvReader(std::string_view name, std::string_view text, std::span<const std::string_view> columns)
      : name_(name), rest_(text), columns_(columns) {}
  absl::Status ErrorOnLine(std::string_view message) const;
  void SplitLine();

  std::string_view name_;
  std::string_view rest_;
  std::span<const std::string_view> columns_;
  std::vector<size_t> positions_;         // in a line, of `columns_`
  std::vector<std::string_view> values_;  // of this line
  int64_t line_ = 0;                      // its number, from 1
};

}  // namespace tessera::io_internal

#endif  // TESSERA_SRC_IO_CSV_H_
