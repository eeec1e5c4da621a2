#include "tessera/io/snapshot_json.h"

#include <utility>

#include "src/io/json_reader.h"
#include "src/io/json_writer.h"
#include "src/io/nouns.h"

namespace tessera {
namespace {

using io_internal::Field;
using io_internal::Into;
using io_internal::JsonWriter;
using io_internal::Place;

constexpr std::string_view kKind = "Snapshot";

absl::Status ReadTopology(const Place& at, SnapshotSpec& out) {
  static constexpr Field<SnapshotSpec> kFields[] = {{"levels", Into<&SnapshotSpec::levels>}};
  return io_internal::ReadFields(at, kFields, out);
}

absl::Status ReadSpec(const Place& at, SnapshotSpec& out) {
  static constexpr Field<SnapshotSpec> kFields[] = {
      {"apiVersion"},
      {"kind"},
      {"now", Into<&SnapshotSpec::now>},
      {"topology", ReadTopology},
      {"gpu_models", Into<&SnapshotSpec::gpu_models>},
      {"nodes", Into<&SnapshotSpec::nodes>},
      {"queues", Into<&SnapshotSpec::queues>},
      {"workloads", Into<&SnapshotSpec::workloads>},
  };
  TESSERA_RETURN_IF_ERROR(io_internal::CheckHeader(at, kKind, io_internal::kOptional));
  return io_internal::ReadFields(at, kFields, out);
}

template <typename T>
void WriteNouns(JsonWriter& json, std::string_view key, const std::vector<T>& nouns) {
  io_internal::WriteList(json, key, nouns,
                         [](JsonWriter& to, const T& noun) { io_internal::Write(to, noun); });
}

}  // namespace

absl::StatusOr<SnapshotSpec> ParseSnapshotSpec(std::string_view json) {
  TESSERA_ASSIGN_OR_RETURN(const io_internal::JsonDocument document,
                           io_internal::JsonDocument::Parse(json));
  SnapshotSpec spec;
  TESSERA_RETURN_IF_ERROR(ReadSpec(Place(document.root()), spec));
  return spec;
}

absl::StatusOr<Snapshot> ParseSnapshot(std::string_view json) {
  TESSERA_ASSIGN_OR_RETURN(SnapshotSpec spec, ParseSnapshotSpec(json));
  return Snapshot::Create(std::move(spec));
}

std::string WriteSnapshot(const Snapshot& snapshot) {
  const SnapshotSpec& spec = snapshot.spec();
  JsonWriter json;
  json.BeginObject();
  json.Member("apiVersion", io_internal::kApiVersion);
  json.Member("kind", kKind);
  json.Member("now", spec.now);
  if (!spec.levels.empty()) {
    json.Key("topology");
    json.BeginObject();
    io_internal::WriteTexts(json, "levels", spec.levels);
    json.EndObject();
  }
  WriteNouns(json, "gpu_models", spec.gpu_models);
  WriteNouns(json, "nodes", spec.nodes);
  WriteNouns(json, "queues", spec.queues);
  WriteNouns(json, "workloads", spec.workloads);
  json.EndObject();
  return std::move(json).Take();
}

}  // namespace tessera
