#ifndef TESSERA_SRC_IO_NOUNS_H_
#define TESSERA_SRC_IO_NOUNS_H_

// The nouns of a snapshot file, each read and written.

#include "src/io/json_reader.h"
#include "src/io/json_writer.h"
#include "tessera/cluster/node.h"
#include "tessera/cluster/queue.h"
#include "tessera/cluster/workload.h"
#include "tessera/gpu/model.h"

namespace tessera::io_internal {

// Each fills a value that holds the defaults. (Not in an unnamed namespace even where only
// one file needs them: the templates of json_reader.h find them by argument.)
absl::Status Read(const Place& at, EngineCounts& out);
absl::Status Read(const Place& at, MigProfile& out);
absl::Status Read(const Place& at, GpuModel& out);

absl::Status Read(const Place& at, Taint& out);
absl::Status Read(const Place& at, GpuInstance& out);
absl::Status Read(const Place& at, NodeResources& out);
absl::Status Read(const Place& at, Node& out);

absl::Status Read(const Place& at, Queue& out);

absl::Status Read(const Place& at, SliceRequirement& out);
absl::Status Read(const Place& at, Request& out);
absl::Status Read(const Place& at, Selector& out);
absl::Status Read(const Place& at, Toleration& out);

absl::Status Read(const Place& at, TopologyConstraint& out);
absl::Status Read(const Place& at, DomainLimit& out);
absl::Status Read(const Place& at, PodSet& out);
absl::Status Read(const Place& at, PodGroup& out);
absl::Status Read(const Place& at, GpuShare& out);
absl::Status Read(const Place& at, GpuSlice& out);
absl::Status Read(const Place& at, Pod& out);
absl::Status Read(const Place& at, Workload& out);

// One object each.
void Write(JsonWriter& json, const GpuModel& model);
void Write(JsonWriter& json, const Node& node);
void Write(JsonWriter& json, const Queue& queue);
void Write(JsonWriter& json, const Workload& workload);

// The members that say what one pod of `set` asks for and where it may run.
void WriteRequestMembers(JsonWriter& json, const PodSet& set);
// The members `gpus`, `shares` and `slices`, as far as there are any.
void WriteDeviceMembers(JsonWriter& json, const Devices& devices);

// Members that are left out if they say nothing.
inline void WriteText(JsonWriter& json, std::string_view key, std::string_view text) {
  if (!text.empty()) json.Member(key, text);
}
template <typename Int>
void WriteOptional(JsonWriter& json, std::string_view key, std::optional<Int> value) {
  if (value) json.Member(key, *value);
}

// An array of what `write` writes, unless it is empty.
template <typename T, typename Function>
void WriteList(JsonWriter& json, std::string_view key, const std::vector<T>& values,
               Function write) {
  if (values.empty()) return;
  json.Key(key);
  json.BeginArray();
  for (const T& value : values) write(json, value);
  json.EndArray();
}
inline void WriteTexts(JsonWriter& json, std::string_view key,
                       const std::vector<std::string>& texts) {
  WriteList(json, key, texts, [](JsonWriter& to, const std::string& text) { to.String(text); });
}
inline void WriteMap(JsonWriter& json, std::string_view key, const Labels& texts) {
  if (texts.empty()) return;
  json.Key(key);
  json.BeginObject();
  for (const auto& [name, text] : texts) json.Member(name, text);
  json.EndObject();
}

}  // namespace tessera::io_internal

#endif  // TESSERA_SRC_IO_NOUNS_H_
