// Nodes, their GPUs, and the models of those.

#include "absl/strings/str_cat.h"
#include "src/io/amounts.h"
#include "src/io/names.h"
#include "src/io/nouns.h"
#include "tessera/resources/units.h"

namespace tessera::io_internal {
namespace {

// One entry of a list of GPUs; `out` holds what the node says for all of them.
absl::Status ReadGpu(const Place& at, Gpu& out) {
  static constexpr Field<Gpu> kFields[] = {
      {"mig", [](const Place& mig, Gpu& gpu) { return ReadEnum(mig, kMigModes, gpu.mig); }},
      {"mig_enabled", Into<&Gpu::mig_enabled>},
      {"healthy", Into<&Gpu::healthy>},
      {"instances", Into<&Gpu::instances>},
  };
  return ReadFields(at, kFields, out);
}

// A count or a list.
absl::Status ReadGpus(const Place& at, const Gpu& like, std::vector<Gpu>& out) {
  if (at.kind() == JsonKind::kNumber) {
    int count = 0;
    TESSERA_RETURN_IF_ERROR(Read(at, count));
    if (count < 0 || count > kMaxGpusPerNode) {
      return at.Error(absl::StrCat("is ", count, "; a node has 0 to ", kMaxGpusPerNode, " GPUs"));
    }
    out.assign(static_cast<size_t>(count), like);
    return absl::OkStatus();
  }
  if (at.kind() != JsonKind::kArray) return at.Error("must be a number or an array");
  size_t index = 0;
  for (const JsonValue& element : at.value().children()) {
    out.push_back(like);
    TESSERA_RETURN_IF_ERROR(ReadGpu(Place(at, element, index++), out.back()));
  }
  return absl::OkStatus();
}

absl::Status RefuseGpus(const Place& at, NodeResources&) {
  return at.Error(
      "is no part of a capacity; \"gpu_model\" and \"gpus\" of the node state its GPUs");
}

}  // namespace

absl::Status Read(const Place& at, EngineCounts& out) {
  static constexpr Field<EngineCounts> kFields[] = {
      {"copy", Into<&EngineCounts::copy>},       {"decoder", Into<&EngineCounts::decoder>},
      {"encoder", Into<&EngineCounts::encoder>}, {"jpeg", Into<&EngineCounts::jpeg>},
      {"ofa", Into<&EngineCounts::ofa>},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, MigProfile& out) {
  static constexpr Field<MigProfile> kFields[] = {
      {"name", Into<&MigProfile::name>, kRequired},
      {"size", Into<&MigProfile::size>, kRequired},
      {"starts", Into<&MigProfile::starts>, kRequired},
      {"compute_slices", Into<&MigProfile::compute_slices>, kRequired},
      {"memory_slices", Into<&MigProfile::memory_slices>, kRequired},
      {"memory", Quantity<&MigProfile::memory_bytes, 1, Rounding::kDown>},
      {"max", Into<&MigProfile::max_instances>, kRequired},
      {"engines", Into<&MigProfile::engines>},
      {"evidence",
       [](const Place& field, MigProfile& profile) {
         return ReadEnum(field, kEvidences, profile.evidence);
       }},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, GpuModel& out) {
  static constexpr Field<GpuModel> kFields[] = {
      {"name", Into<&GpuModel::name>, kRequired},
      {"memory", Quantity<&GpuModel::memory_bytes, 1, Rounding::kDown>, kRequired},
      {"units", Into<&GpuModel::units>},
      {"compute_slices", Into<&GpuModel::compute_slices>},
      {"memory_slices", Into<&GpuModel::memory_slices>},
      {"mig_toggle_needs_reset", Into<&GpuModel::mig_toggle_needs_reset>},
      {"engines", Into<&GpuModel::engines>},
      {"profiles", Into<&GpuModel::profiles>},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, Taint& out) {
  static constexpr Field<Taint> kFields[] = {
      {"key", Into<&Taint::key>, kRequired},
      {"value", Into<&Taint::value>},
      {"effect",
       [](const Place& field, Taint& taint) { return ReadEnum(field, kEffects, taint.effect); }},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, GpuInstance& out) {
  static constexpr Field<GpuInstance> kFields[] = {
      {"profile", Into<&GpuInstance::profile>, kRequired},
      {"start", Into<&GpuInstance::start>, kRequired},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, NodeResources& out) {
  static constexpr Field<NodeResources> kFields[] = {
      {"cpu", Quantity<&NodeResources::cpu, kMillisPerCore, Rounding::kDown>},
      {"memory", Quantity<&NodeResources::memory, 1, Rounding::kDown>},
      {"pods", Quantity<&NodeResources::pods, 1, Rounding::kDown>},
      {kExtendedKey,
       [](const Place& field, NodeResources& resources) {
         return ReadAllExtended(field, Rounding::kDown, resources.extended);
       }},
      {"gpu", RefuseGpus},
      {"gpu_memory", RefuseGpus},
  };
  return ReadFields(at, kFields, out, [](const Place& member, NodeResources& resources) {
    return ReadExtended(member, NamesOf(kFields), Rounding::kDown, resources.extended);
  });
}

absl::Status Read(const Place& at, Node& out) {
  static constexpr Field<Node> kFields[] = {
      {"name", Into<&Node::name>, kRequired},
      {"topology", Into<&Node::topology>},
      {"labels", Into<&Node::labels>},
      {"taints", Into<&Node::taints>},
      {"capacity", Into<&Node::capacity>},
      {"reserved", Into<&Node::reserved>},
      {"schedulable", Into<&Node::schedulable>},
      {"gpu_model", Into<&Node::gpu_model>},
      {"gpus"},
      {"mig"},
  };
  TESSERA_RETURN_IF_ERROR(ReadFields(at, kFields, out));
  Gpu like;
  if (const JsonValue* mig = FindMember(at.value(), "mig"); mig != nullptr) {
    TESSERA_RETURN_IF_ERROR(ReadEnum(Place(at, *mig), kMigModes, like.mig));
  }
  const JsonValue* gpus = FindMember(at.value(), "gpus");
  return gpus == nullptr ? absl::OkStatus() : ReadGpus(Place(at, *gpus), like, out.gpus);
}

}  // namespace tessera::io_internal
