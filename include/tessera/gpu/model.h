#ifndef TESSERA_GPU_MODEL_H_
#define TESSERA_GPU_MODEL_H_

// What one kind of GPU is: its memory, and how MIG (Multi-Instance GPU) may cut it.
//
// The vocabulary is NVIDIA's (MIG User Guide). An instance of a profile occupies an
// interval on the placement axis of its GPU; live instances must not overlap. The
// axis is counted in placement units, which are neither compute nor memory slices:
// an A100 has 8 units, 7 compute slices and 8 memory slices; an RTX PRO 6000 has
// 12 units and 4 slices of either kind.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace tessera {

// Bounds that let the state of one GPU fit into a `LayoutKey`.
inline constexpr int kMaxPlacementUnits = 16;
inline constexpr int kMaxMigProfiles = 32;
inline constexpr int kMaxEngines = 16;

// Engines beside the compute slices: copy (DMA), video decoder and encoder, JPEG
// decoder, optical flow (OFA). Instances hold whole engines for themselves.
struct EngineCounts {
  int copy = 0;
  int decoder = 0;
  int encoder = 0;
  int jpeg = 0;
  int ofa = 0;

  bool operator==(const EngineCounts&) const = default;
};

// The kinds of engines, for code that treats them all alike.
struct EngineKind {
  std::string_view name;
  int EngineCounts::*count;
};
inline constexpr std::array<EngineKind, 5> kEngineKinds = {{
    {"copy", &EngineCounts::copy},
    {"decoder", &EngineCounts::decoder},
    {"encoder", &EngineCounts::encoder},
    {"jpeg", &EngineCounts::jpeg},
    {"ofa", &EngineCounts::ofa},
}};

// How far a profile's legal starts can be trusted.
enum class Evidence {
  kConfirmed,  // read from hardware, or printed in NVIDIA's guide
  kInferred,   // follows the family of the GPU; counts and fractions agree, starts were not seen
};

// One size class of MIG instances.
struct MigProfile {
  std::string name;          // "3g.40gb", as the driver spells it
  int size = 1;              // placement units occupied
  int compute_slices = 1;    // of the model's `compute_slices`
  int memory_slices = 1;     // of the model's `memory_slices`
  int64_t memory_bytes = 0;  // what a program inside sees; a little less than the name says
  int max_instances = 1;     // at once on one GPU
  std::vector<int> starts;   // legal first units, ascending
  EngineCounts engines;      // taken by one instance
  Evidence evidence = Evidence::kConfirmed;

  // Whether this is a special form of a plain profile: with media or graphics
  // engines (`+me`, `+me.all`, `+gfx`) or without any (`-me`). A variant is used
  // only when asked for by name.
  bool is_variant() const;

  bool operator==(const MigProfile&) const = default;
};

// One kind of GPU. A plain aggregate: the catalogue fills it, and so may a host,
// which then calls `ValidateGpuModel`.
struct GpuModel {
  std::string name;          // "H100-80GB"; the key, since profile names repeat across models
  int64_t memory_bytes = 0;  // of the whole device
  int units = 0;             // width of the placement axis; 0 = cannot be partitioned
  int compute_slices = 0;    // what a whole GPU counts when slices are charged
  int memory_slices = 0;
  EngineCounts engines;                 // of the whole device; all zero = engines do not bind
  bool mig_toggle_needs_reset = false;  // Ampere: MIG mode changes only with a GPU reset
  std::vector<MigProfile> profiles;

  bool supports_mig() const { return units > 0; }

  // Index in `profiles` of the profile called `profile_name`. O(profiles).
  std::optional<int> FindProfile(std::string_view profile_name) const;

  bool operator==(const GpuModel&) const = default;
};

// Whether `MigTables` can be built for `model`; `path` names it in errors:
// `gpu_models[0].profiles[2].starts[1]: start 6 + size 4 exceeds the 8 units`.
//
// kInvalidArgument, the first violation in the order of the fields:
// - `units` in 0..16; with 0 units no slices and no profiles, else at least one of
//   each, at most 32 profiles;
// - `engines` 0..16 each, in a profile at most the model's (unless that has none);
// - a profile's `name` not empty and unique; `size` and `max_instances` >= 1; slices
//   in 1..the model's; `memory` in 0..the model's;
// - `starts` not empty, ascending, in 0..units - size.
absl::Status ValidateMigGeometry(const GpuModel& model, std::string_view path);

// Whether a host may declare `model`: `ValidateMigGeometry`, and moreover
// - `name` is not empty and `memory` is positive;
// - `compute_slices` divides 7000 (`kGpuUnitsPerDevice`), so that a slice is charged
//   exactly.
// kInvalidArgument with the path of the offending field otherwise. The catalogue's
// THOR-IGPU (3 compute slices, memory shared with the CPU) would not pass.
absl::Status ValidateGpuModel(const GpuModel& model, std::string_view path);

}  // namespace tessera

#endif  // TESSERA_GPU_MODEL_H_
