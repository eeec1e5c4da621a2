#include "src/io/json_reader.h"

#include <charconv>
#include <limits>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace tessera::io_internal {
namespace {

std::string_view Describe(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBoolean:
      return "a boolean";
    case JsonKind::kNumber:
      return "a number";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kObject:
      return "an object";
  }
  return "";
}

template <typename Int>
absl::Status ReadInt(const Place& at, Int& out) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kNumber));
  const std::string_view text = at.value().text;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (end != text.data() + text.size()) {
    return at.Error(absl::StrCat("must be a whole number, not ", ToAbsl(text)));
  }
  if (error == std::errc()) return absl::OkStatus();
  const bool negative = text.starts_with('-');
  return at.Error(
      absl::StrCat(ToAbsl(text), negative ? " is below " : " is above ",
                   negative ? std::numeric_limits<Int>::min() : std::numeric_limits<Int>::max()));
}

template <typename T>
absl::Status ReadMap(const Place& at, std::map<std::string, T, std::less<>>& out) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kObject));
  for (const JsonValue& member : at.value().children()) {
    TESSERA_RETURN_IF_ERROR(Read(Place(at, member), out[std::string(member.key)]));
  }
  return absl::OkStatus();
}

absl::Status ExpectText(const Place& at, std::string_view text) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kString));
  if (at.value().text == text) return absl::OkStatus();
  return at.Error(
      absl::StrCat("must be \"", ToAbsl(text), "\", not \"", ToAbsl(at.value().text), "\""));
}

}  // namespace

std::string Place::Path() const {
  if (parent_ == nullptr) return "";
  std::string path = parent_->Path();
  if (parent_->kind() == JsonKind::kArray) return absl::StrCat(path, "[", index_, "]");
  return absl::StrCat(path, path.empty() ? "" : ".", ToAbsl(value_.key));
}

absl::Status Place::ErrorIn(std::string_view name, std::string_view message) const {
  const std::string path = Path();
  return InvalidAt(absl::StrCat(path, path.empty() ? "" : ".", ToAbsl(name)), message);
}

absl::Status Expect(const Place& at, JsonKind kind) {
  if (at.kind() == kind) return absl::OkStatus();
  return at.Error(
      absl::StrCat("must be ", ToAbsl(Describe(kind)), ", not ", ToAbsl(Describe(at.kind()))));
}

const JsonValue* FindMember(const JsonValue& object, std::string_view name) {
  for (const JsonValue& member : object.children()) {
    if (member.key == name) return &member;
  }
  return nullptr;
}

absl::Status UnknownField(const Place& member, std::span<const std::string_view> known) {
  return member.Error("is not a known field" + DidYouMean(member.value().key, known));
}

absl::Status Read(const Place& at, bool& out) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kBoolean));
  out = at.value().text == "true";
  return absl::OkStatus();
}

absl::Status Read(const Place& at, int& out) { return ReadInt(at, out); }

absl::Status Read(const Place& at, int64_t& out) { return ReadInt(at, out); }

absl::Status Read(const Place& at, double& out) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kNumber));
  const std::string_view text = at.value().text;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc() && end == text.data() + text.size()) return absl::OkStatus();
  return at.Error(absl::StrCat(ToAbsl(text), " is not a number that a double can hold"));
}

absl::Status Read(const Place& at, std::string& out) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kString));
  out = at.value().text;
  return absl::OkStatus();
}

absl::Status Read(const Place& at, std::map<std::string, std::string, std::less<>>& out) {
  return ReadMap(at, out);
}

absl::Status Read(const Place& at, std::map<std::string, int64_t, std::less<>>& out) {
  return ReadMap(at, out);
}

absl::Status ReadName(const Place& at, std::span<const std::string_view> names, size_t& out) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kString));
  const std::string_view text = at.value().text;
  for (out = 0; out < names.size(); ++out) {
    if (names[out] == text) return absl::OkStatus();
  }
  std::string message = "must be ";
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string_view separator = i == 0 ? "" : i + 1 < names.size() ? ", " : " or ";
    absl::StrAppend(&message, ToAbsl(separator), "\"", ToAbsl(names[i]), "\"");
  }
  absl::StrAppend(&message, ", not \"", ToAbsl(text), "\"", DidYouMean(text, names));
  return at.Error(message);
}

absl::Status CheckHeader(const Place& root, std::string_view kind, Presence presence) {
  TESSERA_RETURN_IF_ERROR(Expect(root, JsonKind::kObject));
  const JsonValue* version = FindMember(root.value(), "apiVersion");
  if (version == nullptr) return root.ErrorIn("apiVersion", "is missing");
  TESSERA_RETURN_IF_ERROR(ExpectText(Place(root, *version), kApiVersion));
  const JsonValue* stated = FindMember(root.value(), "kind");
  if (stated != nullptr) return ExpectText(Place(root, *stated), kind);
  return presence == kOptional ? absl::OkStatus() : root.ErrorIn("kind", "is missing");
}

}  // namespace tessera::io_internal
