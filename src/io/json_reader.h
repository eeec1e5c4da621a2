#ifndef TESSERA_SRC_IO_JSON_READER_H_
#define TESSERA_SRC_IO_JSON_READER_H_

// Turning JSON values into plain aggregates, with errors that name the field.
//
// A `Read` function per type fills a value that holds the defaults. An aggregate lists
// its fields once:
//
//   absl::Status Read(const Place& at, Taint& taint) {
//     static constexpr Field<Taint> kFields[] = {
//         {"key", Into<&Taint::key>, kRequired}, {"value", Into<&Taint::value>}};
//     return ReadFields(at, kFields, taint);
//   }

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "src/io/json_value.h"
#include "tessera/base/status.h"

namespace tessera::io_internal {

// A value and the way to it. Lives on the stack, linked to the places around it; the
// path is put into words only when there is an error.
class Place {
 public:
  explicit Place(const JsonValue& root) : value_(root) {}
  Place(const Place& parent, const JsonValue& value, size_t index = 0)
      : value_(value), parent_(&parent), index_(index) {}

  const JsonValue& value() const { return value_; }
  JsonKind kind() const { return value_.kind; }

  // `nodes[3].gpus[1]`; empty for the root.
  std::string Path() const;
  // kInvalidArgument with the path.
  absl::Status Error(std::string_view message) const { return InvalidAt(Path(), message); }
  // The same for the member `name`, which need not exist.
  absl::Status ErrorIn(std::string_view name, std::string_view message) const;

 private:
  const JsonValue& value_;
  const Place* parent_ = nullptr;
  size_t index_ = 0;  // within an array
};

// "must be a string, not a number" unless the value is of `kind`.
absl::Status Expect(const Place& at, JsonKind kind);
// The member `name` of an object, or null. O(members).
const JsonValue* FindMember(const JsonValue& object, std::string_view name);
// "is not a known field", with the nearest of `known`.
absl::Status UnknownField(const Place& member, std::span<const std::string_view> known);

absl::Status Read(const Place& at, bool& out);
absl::Status Read(const Place& at, int& out);
absl::Status Read(const Place& at, int64_t& out);  // a whole number
absl::Status Read(const Place& at, double& out);   // a measured one, nearest to the text
absl::Status Read(const Place& at, std::string& out);
absl::Status Read(const Place& at, std::map<std::string, std::string, std::less<>>& out);
absl::Status Read(const Place& at, std::map<std::string, int64_t, std::less<>>& out);

// The index in `names` of the string at `at`. The error lists the names.
absl::Status ReadName(const Place& at, std::span<const std::string_view> names, size_t& out);

// For an enumeration whose values are the indices of its names.
template <typename E>
absl::Status ReadEnum(const Place& at, std::span<const std::string_view> names, E& out) {
  size_t index = 0;
  TESSERA_RETURN_IF_ERROR(ReadName(at, names, index));
  out = static_cast<E>(index);
  return absl::OkStatus();
}

template <typename T>
absl::Status Read(const Place& at, std::optional<T>& out) {
  T value{};
  TESSERA_RETURN_IF_ERROR(Read(at, value));
  out = std::move(value);
  return absl::OkStatus();
}

template <typename T>
absl::Status Read(const Place& at, std::vector<T>& out) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kArray));
  out.reserve(at.value().size);
  size_t index = 0;
  for (const JsonValue& element : at.value().children()) {
    TESSERA_RETURN_IF_ERROR(Read(Place(at, element, index++), out.emplace_back()));
  }
  return absl::OkStatus();
}

enum Presence : bool { kOptional, kRequired };

// A field of `T` in a file.
template <typename T>
struct Field {
  std::string_view name;
  absl::Status (*read)(const Place& at, T& out) = nullptr;  // null: read elsewhere
  Presence presence = kOptional;
};

template <typename T, typename M>
T OwnerOf(M T::*);

// Reads the data member `Member`.
template <auto Member>
absl::Status Into(const Place& at, decltype(OwnerOf(Member))& out) {
  return Read(at, out.*Member);
}

template <typename T, size_t N>
std::array<std::string_view, N> NamesOf(const Field<T> (&fields)[N]) {
  std::array<std::string_view, N> names;
  for (size_t i = 0; i < N; ++i) names[i] = fields[i].name;
  return names;
}

// Reads an object in the order of `fields`, so that errors do not depend on the order
// in the file. A member that is no field goes to `other`.
template <typename T, size_t N, typename Other>
absl::Status ReadFields(const Place& at, const Field<T> (&fields)[N], T& out, Other other) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kObject));
  std::array<const JsonValue*, N> given{};
  for (const JsonValue& member : at.value().children()) {
    size_t i = 0;
    while (i < N && fields[i].name != member.key) ++i;
    if (i < N) {
      given[i] = &member;
    } else {
      TESSERA_RETURN_IF_ERROR(other(Place(at, member), out));
    }
  }
  for (size_t i = 0; i < N; ++i) {
    if (given[i] == nullptr) {
      if (fields[i].presence == kRequired) return at.ErrorIn(fields[i].name, "is missing");
    } else if (fields[i].read != nullptr) {
      TESSERA_RETURN_IF_ERROR(fields[i].read(Place(at, *given[i]), out));
    }
  }
  return absl::OkStatus();
}

template <typename T, size_t N>
absl::Status ReadFields(const Place& at, const Field<T> (&fields)[N], T& out) {
  return ReadFields(at, fields, out, [&fields](const Place& member, T&) {
    return UnknownField(member, NamesOf(fields));
  });
}

// Checks `apiVersion`, and that `kind` is what the file says, if it says so.
absl::Status CheckHeader(const Place& root, std::string_view kind, Presence presence);

}  // namespace tessera::io_internal

#endif  // TESSERA_SRC_IO_JSON_READER_H_
