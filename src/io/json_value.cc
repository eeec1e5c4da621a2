#include "src/io/json_value.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"

namespace tessera::io_internal {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 31;
constexpr size_t kMaxDepth = 64;
// Values for which memory is set aside before the text has been seen to be JSON.
constexpr size_t kMostReserved = size_t{1} << 22;

// What an exception of nlohmann says, without its name, the place (which is told in
// other words) and the text last read (which may be long, or not even UTF-8).
std::string Reason(std::string_view what) {
  constexpr std::string_view kColumn = ", column ";
  if (const size_t id = what.find("] "); id != what.npos) what.remove_prefix(id + 2);
  if (const size_t column = what.find(kColumn); column != what.npos) {
    const size_t colon = what.find(": ", column);
    if (colon != what.npos) what.remove_prefix(colon + 2);
  }
  const size_t last_read = what.find("; last read: '");
  if (last_read == what.npos) return std::string(what);
  const size_t expected = what.rfind("'; expected ");
  std::string reason(what.substr(0, last_read));
  if (expected != what.npos && expected > last_read) reason += what.substr(expected + 1);
  return reason;
}

// "line 3, column 14" of the last of the first `position` bytes.
std::string LineAndColumn(std::string_view json, size_t position) {
  const std::string_view before = json.substr(0, position == 0 ? 0 : position - 1);
  const size_t newline = before.rfind('\n');
  const size_t column = before.size() - (newline == before.npos ? 0 : newline + 1);
  return absl::StrCat("line ", 1 + std::ranges::count(before, '\n'), ", column ", column + 1);
}

}  // namespace

// Receives the events of nlohmann's parser, which does not recurse. A function that
// returns false ends the parse.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::string_view json) : json_(json) {
    // A text is never longer than what it is read from, escapes and numbers included.
    document_.texts_.reserve(json.size());
    // Before every value stands a comma or an opening bracket.
    const auto precedes = [](char c) { return c == ',' || c == '[' || c == '{'; };
    const size_t most = 1 + static_cast<size_t>(std::ranges::count_if(json, precedes));
    document_.values_.reserve(std::min(most, kMostReserved));
  }

  bool null() { return Add(JsonKind::kNull, "null"); }
  bool boolean(bool value) { return Add(JsonKind::kBoolean, value ? "true" : "false"); }
  bool number_integer(int64_t value) { return Add(JsonKind::kNumber, absl::StrCat(value)); }
  bool number_unsigned(uint64_t value) { return Add(JsonKind::kNumber, absl::StrCat(value)); }
  bool number_float(double, std::string raw) {
    // The parser puts the decimal point of the process's locale.
    for (char& c : raw) {
      const bool expected = (c >= '0' && c <= '9') || c == '-' || c == '+' || c == 'e' || c == 'E';
      if (!expected) c = '.';
    }
    return Add(JsonKind::kNumber, raw);
  }
  bool string(const std::string& value) { return Add(JsonKind::kString, value); }
  bool binary(const std::vector<uint8_t>&) { return false; }

  bool start_object(size_t) { return Open(JsonKind::kObject); }
  bool start_array(size_t) { return Open(JsonKind::kArray); }
  bool key(const std::string& name) {
    key_ = Keep(name);
    return true;
  }
  bool end_object() { return CheckKeys() && Close(); }
  bool end_array() { return Close(); }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) {
    status_ = InvalidAt(LineAndColumn(json_, position), Reason(error.what()));
    return false;
  }

  absl::StatusOr<JsonDocument> Finish(bool parsed) && {
    if (!parsed && status_.ok()) status_ = absl::InvalidArgumentError("is not JSON");
    if (!status_.ok()) return status_;
    return std::move(document_);
  }

 private:
  std::string_view Keep(std::string_view text) {
    std::vector<char>& texts = document_.texts_;
    const size_t begin = texts.size();
    texts.insert(texts.end(), text.begin(), text.end());
    return std::string_view(texts.data() + begin, text.size());
  }

  bool Add(JsonKind kind, std::string_view text) {
    JsonValue value;
    value.key = std::exchange(key_, {});
    // The two words a boolean can be need no copy, and "null" is never read.
    value.text = kind == JsonKind::kNumber || kind == JsonKind::kString ? Keep(text) : text;
    value.kind = kind;
    if (!open_.empty()) ++document_.values_[open_.back()].size;
    document_.values_.push_back(value);
    return true;
  }

  bool Open(JsonKind kind) {
    Add(kind, "");
    open_.push_back(document_.values_.size() - 1);
    if (open_.size() <= kMaxDepth) return true;
    status_ = InvalidAt(Path(), absl::StrCat("is nested deeper than ", kMaxDepth, " levels"));
    return false;
  }

  bool Close() {
    JsonValue& value = document_.values_[open_.back()];
    value.span = static_cast<uint32_t>(document_.values_.size() - open_.back());
    open_.pop_back();
    return true;
  }

  // Whether the members of the object that ends here have different names.
  bool CheckKeys() {
    keys_.clear();
    const std::vector<JsonValue>& values = document_.values_;
    for (size_t i = open_.back() + 1; i < values.size(); i += values[i].span) {
      keys_.push_back(values[i].key);
    }
    std::ranges::sort(keys_);
    const auto twice = std::ranges::adjacent_find(keys_);
    if (twice == keys_.end()) return true;
    const std::string path = Path();
    status_ = InvalidAt(absl::StrCat(path, path.empty() ? "" : ".", std::string(*twice)),
                        "is given twice");
    return false;
  }

  // Leads to the innermost open value.
  std::string Path() const {
    std::string path;
    for (size_t i = 1; i < open_.size(); ++i) {
      const JsonValue& parent = document_.values_[open_[i - 1]];
      if (parent.kind == JsonKind::kArray) {
        absl::StrAppend(&path, "[", parent.size - 1, "]");
      } else {
        const std::string_view key = document_.values_[open_[i]].key;
        absl::StrAppend(&path, path.empty() ? "" : ".", ToAbsl(key));
      }
    }
    return path;
  }

  std::string_view json_;
  JsonDocument document_;
  std::vector<size_t> open_;            // containers not yet closed, outermost first
  std::string_view key_;                // of the value to come
  std::vector<std::string_view> keys_;  // scratch of `CheckKeys`
  absl::Status status_;
};

absl::StatusOr<JsonDocument> JsonDocument::Parse(std::string_view json) {
  if (json.size() > kMaxBytes) return absl::InvalidArgumentError("is larger than 2 GiB");
  TreeBuilder builder(json);
  const bool parsed = nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  return std::move(builder).Finish(parsed);
}

}  // namespace tessera::io_internal
