#ifndef TESSERA_GPU_LAYOUT_H_
#define TESSERA_GPU_LAYOUT_H_

// Which MIG instances may stand together on one GPU, as table look-ups.
//
// All that decides the future of a GPU is which units are occupied and how much of
// the limits that geometry does not imply is used up: a 16-bit mask and a small code.
// Example, on an A100 40GB:
//
//   const MigTables tables = *MigTables::Create(*FindGpuModel("A100-40GB"));
//   const int p1g = *tables.model().FindProfile("1g.5gb");
//   const int p3g = *tables.model().FindProfile("3g.20gb");
//   LayoutKey key = tables.Add(tables.empty(), p3g, 4);  // 3g on units 4-7
//   tables.Capacity(key, p1g);   // 4: 1g on each of the units 0-3
//   key = tables.Add(tables.empty(), p3g, 0);            // 3g on units 0-3
//   tables.Capacity(key, p1g);   // 3: no 1g starts at unit 7

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tessera/gpu/model.h"

namespace tessera {

// One MIG instance on a GPU: `profile` is an index into the model's profiles,
// `start` its first placement unit.
struct Instance {
  int profile = 0;
  int start = 0;

  bool operator==(const Instance&) const = default;
  auto operator<=>(const Instance&) const = default;
};

// Whether two instances of `model` share a placement unit.
inline bool Overlap(const GpuModel& model, const Instance& a, const Instance& b) {
  return a.start < b.start + model.profiles[static_cast<size_t>(b.profile)].size &&
         b.start < a.start + model.profiles[static_cast<size_t>(a.profile)].size;
}

// What a set of instances occupies. Two sets with the same key allow the same
// further instances; the key does not tell what they are (two 1g or one 2g).
//
// Keys compare for equality only, and only within one model: `engines` is a code of
// that model's tables, whose order means nothing.
struct LayoutKey {
  uint16_t mask = 0;     // bit u = placement unit u is occupied
  uint16_t engines = 0;  // code of what is used of engines and instance limits; 0 = nothing

  bool operator==(const LayoutKey&) const = default;
};

// The rules of one GPU model, tabulated. Immutable; copies share the tables and may
// be used from any thread.
//
// Preconditions throughout: `profile` indexes `model().profiles`, and every key was
// made by this model's tables from `empty()`. Every query reads a fixed number of
// table entries.
class MigTables {
 public:
  // Builds the tables of `model`, which may lack MIG (then nothing ever fits).
  //
  // kInvalidArgument: what `ValidateMigGeometry` rejects. kResourceExhausted: the
  // model needs more than 2^22 table entries (masks x codes x profiles), as only an
  // invented one can: many instance limits on an axis of many units.
  //
  // Space in the number of entries, time in that times the starts of a profile: about
  // a tenth of a millisecond and 10 KiB for each model of the catalogue, 0.2 s and
  // 10 MiB at the bound.
  static absl::StatusOr<MigTables> Create(const GpuModel& model);

  const GpuModel& model() const;

  // Keys as numbers from 0 to `num_states` - 1, for tables of one's own; more
  // numbers than keys, and `empty()` is not always 0.
  size_t num_states() const;
  size_t StateOf(LayoutKey key) const;
  // Every key that a GPU can have, each once. O(keys * profiles * starts).
  std::vector<LayoutKey> ReachableKeys() const;

  // The key of a GPU without instances.
  LayoutKey empty() const { return LayoutKey{}; }

  // Whether an instance of `profile` may be created at `start`, which may be any
  // number: units free, start legal, engines and instance limit sufficient.
  bool CanPlace(LayoutKey key, int profile, int start) const;

  // Bit s = `CanPlace(key, profile, s)`.
  uint16_t LegalStarts(LayoutKey key, int profile) const;

  // Bit p = at least one instance of profile p fits.
  uint32_t Placeable(LayoutKey key) const;

  // How many instances of `profile`, and of no other, can still be added. Exact.
  int Capacity(LayoutKey key, int profile) const;

  // The key with one instance more; `CanPlace(key, profile, start)` must hold.
  LayoutKey Add(LayoutKey key, int profile, int start) const;

  // The key with one instance less; the instance must be part of `key`. Undoes `Add`.
  LayoutKey Remove(LayoutKey key, int profile, int start) const;

  // What creating the instance costs everyone else: over the profiles q that are no
  // variants, the sum of size(q) x (capacity of q before - after), in placement units.
  // Never negative; `CanPlace(key, profile, start)` must hold.
  //
  // FGD (Weng et al., USENIX ATC '23) measures fragmentation against the requests of
  // a workload; this is its analogue for a GPU whose future requests are unknown, so
  // that each profile weighs what it occupies.
  int Loss(LayoutKey key, int profile, int start) const;

  // The legal start with the least `Loss`, none if the profile does not fit. Ties: the
  // lowest start.
  std::optional<int> BestStart(LayoutKey key, int profile) const;

  // The key of a list of instances in any order. Errors name the first of the list
  // that cannot stand beside those before it; `path` names the list:
  // `nodes[3].gpus[1].mig.instances[0]: 3g.40gb cannot start at slice 2`.
  //
  // kInvalidArgument: a profile index out of range, a start that is not legal on an
  // empty GPU, an overlap, too many of one profile, or too few engines left.
  // O(n^2) in the number of instances, which legality bounds by the units.
  absl::StatusOr<LayoutKey> KeyOf(std::span<const Instance> instances, std::string_view path) const;

  // The profile that answers a requirement: at least `memory_bytes`, and at least
  // `compute_num` / `compute_den` of the device's compute slices (exactly; 2/7 of a
  // model with 4 slices is 2 slices). The smallest by memory slices, then by
  // compute slices, then by name; never a variant. None when no profile suffices.
  // `compute_num` must not be negative, `compute_den` positive. O(profiles).
  std::optional<int> SmallestSufficient(int64_t memory_bytes, int compute_num,
                                        int compute_den) const;

 private:
  struct Tables;

  explicit MigTables(std::shared_ptr<const Tables> tables) : tables_(std::move(tables)) {}

  std::shared_ptr<const Tables> tables_;
};

}  // namespace tessera

#endif  // TESSERA_GPU_LAYOUT_H_
