#ifndef TESSERA_SRC_IO_JSON_VALUE_H_
#define TESSERA_SRC_IO_JSON_VALUE_H_

// A parsed JSON text, with numbers as they were written: quantities are read exactly,
// and a double would have rounded them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tessera::io_internal {

// `apiVersion` of every file.
inline constexpr std::string_view kApiVersion = "tessera/v1";

enum class JsonKind : uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };

// One value. Values lie in one array in the order of the text, the children of a value
// behind it, so that a value is also a handle to its subtree.
struct JsonValue {
  class Iterator {
   public:
    explicit Iterator(const JsonValue* at) : at_(at) {}
    const JsonValue& operator*() const { return *at_; }
    Iterator& operator++() {
      at_ += at_->span;
      return *this;
    }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    const JsonValue* at_;
  };

  struct Range {
    Iterator first, last;
    Iterator begin() const { return first; }
    Iterator end() const { return last; }
  };

  // The elements of an array, the members of an object.
  Range children() const { return {Iterator(this + 1), Iterator(this + span)}; }

  std::string_view key;   // of a member of an object
  std::string_view text;  // of a string; of a number or boolean as written
  uint32_t span = 1;      // this value and all below it
  uint32_t size = 0;      // number of children
  JsonKind kind = JsonKind::kNull;
};

// Owns the values of a text. Not copied, since values point into it.
class JsonDocument {
 public:
  // kInvalidArgument: see `ParseSnapshotSpec`. O(n) in the bytes of `json`, O(k log k)
  // in the members of an object.
  static absl::StatusOr<JsonDocument> Parse(std::string_view json);

  JsonDocument(JsonDocument&&) = default;
  JsonDocument& operator=(JsonDocument&&) = default;

  const JsonValue& root() const { return values_.front(); }

 private:
  friend class TreeBuilder;
  JsonDocument() = default;

  std::vector<JsonValue> values_;
  std::vector<char> texts_;  // of all values; never grows beyond what was reserved
};

}  // namespace tessera::io_internal

#endif  // TESSERA_SRC_IO_JSON_VALUE_H_
