#ifndef TESSERA_SRC_IO_JSON_WRITER_H_
#define TESSERA_SRC_IO_JSON_WRITER_H_

// Writes JSON that people and `diff` can read: the members of the root and the elements
// of its arrays stand on lines of their own, all below on one line.

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::io_internal {

// The caller sees to it that begins and ends match and that members have keys.
class JsonWriter {
 public:
  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginArray() { Begin('['); }
  void EndArray() { End(']'); }

  // A member of the innermost object; its value comes next.
  void Key(std::string_view key);

  void String(std::string_view text);
  void Integer(int64_t value);
  void Boolean(bool value);
  // A number in the words of the caller.
  void Number(std::string_view text);

  // A member with its value.
  void Member(std::string_view key, std::string_view text) { Key(key), String(text); }
  void Member(std::string_view key, int64_t value) { Key(key), Integer(value); }
  void Member(std::string_view key, int value) { Key(key), Integer(value); }
  void Flag(std::string_view key, bool value) { Key(key), Boolean(value); }

  // The text, with a newline at its end.
  std::string Take() &&;

 private:
  void Begin(char bracket);
  void End(char bracket);
  void Separate();
  void NewLine();
  void Quote(std::string_view text);

  std::string out_;
  int depth_ = 0;
  bool first_ = true;  // nothing stands in the innermost container yet
  bool after_key_ = false;
};

}  // namespace tessera::io_internal

#endif  // TESSERA_SRC_IO_JSON_WRITER_H_
