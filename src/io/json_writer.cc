#include "src/io/json_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"

namespace tessera::io_internal {
namespace {

constexpr int kDepthOfLines = 2;

bool IsPlain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

}  // namespace

void JsonWriter::Key(std::string_view key) {
  Separate();
  Quote(key);
  out_ += ": ";
  after_key_ = true;
}

void JsonWriter::String(std::string_view text) {
  Separate();
  Quote(text);
}

void JsonWriter::Integer(int64_t value) {
  Separate();
  absl::StrAppend(&out_, value);
}

void JsonWriter::Boolean(bool value) {
  Separate();
  out_ += value ? "true" : "false";
}

void JsonWriter::Number(std::string_view text) {
  Separate();
  out_ += text;
}

std::string JsonWriter::Take() && {
  out_ += '\n';
  return std::move(out_);
}

void JsonWriter::Begin(char bracket) {
  Separate();
  out_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonWriter::End(char bracket) {
  --depth_;
  if (depth_ < kDepthOfLines && !first_) NewLine();
  out_ += bracket;
  first_ = false;
}

void JsonWriter::Separate() {
  if (std::exchange(after_key_, false) || depth_ == 0) return;
  if (!first_) out_ += ',';
  if (depth_ <= kDepthOfLines) {
    NewLine();
  } else if (!first_) {
    out_ += ' ';
  }
  first_ = false;
}

void JsonWriter::NewLine() {
  out_ += '\n';
  out_.append(static_cast<size_t>(2 * depth_), ' ');
}

void JsonWriter::Quote(std::string_view text) {
  if (std::ranges::all_of(text, IsPlain)) {
    absl::StrAppend(&out_, "\"", ToAbsl(text), "\"");
    return;
  }
  out_ += nlohmann::json(std::string(text))
              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tessera::io_internal
