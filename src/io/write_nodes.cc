// Nodes, their GPUs, and the models of those.

#include <algorithm>
#include <array>
#include <utility>

#include "src/io/amounts.h"
#include "src/io/names.h"
#include "src/io/nouns.h"

namespace tessera::io_internal {
namespace {

void WriteEngines(JsonWriter& json, const EngineCounts& engines) {
  static constexpr std::array<std::pair<std::string_view, int EngineCounts::*>, 5> kFields = {{
      {"copy", &EngineCounts::copy},
      {"decoder", &EngineCounts::decoder},
      {"encoder", &EngineCounts::encoder},
      {"jpeg", &EngineCounts::jpeg},
      {"ofa", &EngineCounts::ofa},
  }};
  if (engines == EngineCounts{}) return;
  json.Key("engines");
  json.BeginObject();
  for (const auto& [name, count] : kFields) {
    if (engines.*count != 0) json.Member(name, engines.*count);
  }
  json.EndObject();
}

void WriteBytes(JsonWriter& json, std::string_view key, int64_t bytes) {
  json.Key(key);
  WriteAmount(json, "memory", bytes, Rounding::kDown);
}

void WriteProfile(JsonWriter& json, const MigProfile& profile) {
  json.BeginObject();
  json.Member("name", profile.name);
  json.Member("size", profile.size);
  json.Key("starts");
  json.BeginArray();
  for (const int start : profile.starts) json.Integer(start);
  json.EndArray();
  json.Member("compute_slices", profile.compute_slices);
  json.Member("memory_slices", profile.memory_slices);
  if (profile.memory_bytes != 0) WriteBytes(json, "memory", profile.memory_bytes);
  json.Member("max", profile.max_instances);
  WriteEngines(json, profile.engines);
  if (profile.evidence != Evidence::kConfirmed) {
    json.Member("evidence", NameOf(kEvidences, profile.evidence));
  }
  json.EndObject();
}

void WriteResources(JsonWriter& json, std::string_view key, const NodeResources& resources,
                    const NodeResources& absent) {
  if (resources == absent) return;
  json.Key(key);
  json.BeginObject();
  const auto write = [&](std::string_view name, int64_t NodeResources::*amount) {
    if (resources.*amount == absent.*amount) return;
    json.Key(name);
    WriteAmount(json, name, resources.*amount, Rounding::kDown);
  };
  write("cpu", &NodeResources::cpu);
  write("memory", &NodeResources::memory);
  write("pods", &NodeResources::pods);
  WriteExtended(json, resources.extended);
  json.EndObject();
}

void WriteInstance(JsonWriter& json, const GpuInstance& instance) {
  json.BeginObject();
  json.Member("profile", instance.profile);
  json.Member("start", instance.start);
  json.EndObject();
}

void WriteTaint(JsonWriter& json, const Taint& taint) {
  json.BeginObject();
  json.Member("key", taint.key);
  WriteText(json, "value", taint.value);
  json.Member("effect", NameOf(kEffects, taint.effect));
  json.EndObject();
}

// `mode` is what the node says for all its GPUs.
void WriteGpu(JsonWriter& json, const Gpu& gpu, MigMode mode) {
  json.BeginObject();
  if (gpu.mig != mode) json.Member("mig", NameOf(kMigModes, gpu.mig));
  if (gpu.mig_enabled) json.Flag("mig_enabled", *gpu.mig_enabled);
  if (!gpu.healthy) json.Flag("healthy", false);
  WriteList(json, "instances", gpu.instances, WriteInstance);
  json.EndObject();
}

// As a count if there is nothing to say about any of them.
void WriteGpus(JsonWriter& json, const std::vector<Gpu>& gpus) {
  if (gpus.empty()) return;
  const bool same_mode =
      std::ranges::all_of(gpus, [&gpus](const Gpu& gpu) { return gpu.mig == gpus[0].mig; });
  Gpu like;
  if (same_mode) like.mig = gpus[0].mig;
  if (std::ranges::count(gpus, like) == static_cast<ptrdiff_t>(gpus.size())) {
    json.Member("gpus", static_cast<int64_t>(gpus.size()));
  } else {
    WriteList(json, "gpus", gpus,
              [&like](JsonWriter& to, const Gpu& gpu) { WriteGpu(to, gpu, like.mig); });
  }
  if (like.mig != MigMode::kOff) json.Member("mig", NameOf(kMigModes, like.mig));
}

}  // namespace

void Write(JsonWriter& json, const GpuModel& model) {
  json.BeginObject();
  json.Member("name", model.name);
  WriteBytes(json, "memory", model.memory_bytes);
  if (model.units != 0) json.Member("units", model.units);
  if (model.compute_slices != 0) json.Member("compute_slices", model.compute_slices);
  if (model.memory_slices != 0) json.Member("memory_slices", model.memory_slices);
  if (model.mig_toggle_needs_reset) json.Flag("mig_toggle_needs_reset", true);
  WriteEngines(json, model.engines);
  WriteList(json, "profiles", model.profiles, WriteProfile);
  json.EndObject();
}

void Write(JsonWriter& json, const Node& node) {
  static const Node kDefaults;
  json.BeginObject();
  json.Member("name", node.name);
  WriteMap(json, "topology", node.topology);
  WriteMap(json, "labels", node.labels);
  WriteList(json, "taints", node.taints, WriteTaint);
  WriteResources(json, "capacity", node.capacity, kDefaults.capacity);
  WriteResources(json, "reserved", node.reserved, kDefaults.reserved);
  if (!node.schedulable) json.Flag("schedulable", false);
  WriteText(json, "gpu_model", node.gpu_model);
  WriteGpus(json, node.gpus);
  json.EndObject();
}

}  // namespace tessera::io_internal
