#include "tessera/gpu/catalogue.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

// The form in which most of a profile is written below; `starts` as bits.
struct Shape {
  int compute;
  int memory;
  int size;
  int max;
  uint16_t starts;
};

constexpr uint16_t At(std::initializer_list<int> starts) {
  uint16_t bits = 0;
  for (const int start : starts) bits = static_cast<uint16_t>(bits | (1u << start));
  return bits;
}

MigProfile MakeProfile(std::string name, const Shape& shape, const EngineCounts& engines,
                       int64_t memory_mib, Evidence evidence) {
  MigProfile profile;
  profile.name = std::move(name);
  profile.size = shape.size;
  profile.compute_slices = shape.compute;
  profile.memory_slices = shape.memory;
  profile.memory_bytes = memory_mib * kBytesPerMiB;
  profile.max_instances = shape.max;
  for (int start = 0; start < kMaxPlacementUnits; ++start) {
    if ((shape.starts >> start) & 1) profile.starts.push_back(start);
  }
  profile.engines = engines;
  profile.evidence = evidence;
  return profile;
}

// NVIDIA's DRA driver sizes the pools of a device in the same way.
EngineCounts LargestEngines(const std::vector<MigProfile>& profiles) {
  EngineCounts largest;
  for (const MigProfile& profile : profiles) {
    for (const EngineKind& kind : kEngineKinds) {
      largest.*kind.count = std::max(largest.*kind.count, profile.engines.*kind.count);
    }
  }
  return largest;
}

// --- Boards with 8 units and 7 compute slices: all have one geometry. -------

constexpr int kBoardProfiles = 7;

struct BoardProfile {
  const char* prefix;
  const char* suffix;
  int group;  // profiles of one group have the same memory: an eighth, 1/4, 1/2, all
  Shape shape;
};

constexpr std::array<BoardProfile, kBoardProfiles> kBoard = {{
    {"1g.", "gb", 0, {1, 1, 1, 7, At({0, 1, 2, 3, 4, 5, 6})}},
    {"1g.", "gb+me", 0, {1, 1, 1, 1, At({0, 1, 2, 3, 4, 5, 6})}},
    {"1g.", "gb", 1, {1, 2, 2, 4, At({0, 2, 4, 6})}},  // double memory
    {"2g.", "gb", 1, {2, 2, 2, 3, At({0, 2, 4})}},
    {"3g.", "gb", 2, {3, 4, 4, 2, At({0, 4})}},
    {"4g.", "gb", 2, {4, 4, 4, 1, At({0})}},
    {"7g.", "gb", 3, {7, 8, 8, 1, At({0})}},
}};

struct Generation {
  bool toggle_needs_reset;
  EngineCounts engines[kBoardProfiles];  // as in kBoard; copy, decoder, encoder, jpeg, ofa
};

constexpr Generation kAmpere = {true,
                                {{1, 0, 0, 0, 0},
                                 {1, 1, 0, 1, 1},
                                 {1, 1, 0, 0, 0},
                                 {2, 1, 0, 0, 0},
                                 {3, 2, 0, 0, 0},
                                 {4, 2, 0, 0, 0},
                                 {7, 5, 0, 1, 1}}};
constexpr Generation kHopper = {false,
                                {{1, 1, 0, 1, 0},
                                 {1, 1, 0, 1, 1},
                                 {1, 1, 0, 1, 0},
                                 {2, 2, 0, 2, 0},
                                 {3, 3, 0, 3, 0},
                                 {4, 4, 0, 4, 0},
                                 {8, 7, 0, 7, 1}}};
// Decoders and JPEG engines of the three largest are not published; as on Hopper.
constexpr Generation kBlackwell = {false,
                                   {{2, 1, 0, 1, 0},
                                    {2, 1, 0, 1, 1},
                                    {2, 1, 0, 1, 0},
                                    {4, 2, 0, 2, 0},
                                    {6, 3, 0, 3, 0},
                                    {8, 4, 0, 4, 0},
                                    {16, 7, 0, 7, 1}}};

struct Board {
  const char* name;
  const Generation& generation;
  Evidence evidence;
  int memory_mib;
  std::array<int, 4> names;  // the size in the profile's name, per group
  std::array<int, 4> mib;    // 0 = not published: the name's
};

constexpr Evidence kSeen = Evidence::kConfirmed;
constexpr Evidence kFamily = Evidence::kInferred;

constexpr Board kBoards[] = {
    {"A100-40GB", kAmpere, kSeen, 40960, {5, 10, 20, 40}, {4864, 9856, 19968, 40192}},
    {"A100-80GB", kAmpere, kSeen, 81920, {10, 20, 40, 80}, {9856, 19968, 40192, 80384}},
    {"PG506-96GB", kAmpere, kFamily, 98304, {12, 24, 48, 96}, {}},
    {"H100-80GB", kHopper, kSeen, 81920, {10, 20, 40, 80}, {9984, 20096, 40448, 81152}},
    {"H100-94GB", kHopper, kSeen, 95830, {12, 24, 47, 94}, {11008, 22144, 47488, 95360}},
    {"H100-96GB-GH200", kHopper, kFamily, 98304, {12, 24, 48, 96}, {}},
    {"H20-96GB", kHopper, kFamily, 98304, {12, 24, 48, 96}, {}},
    {"GH200-144GB", kHopper, kFamily, 147456, {18, 36, 72, 144}, {17920, 36096, 0, 0}},
    {"H200-141GB", kHopper, kFamily, 144384, {18, 35, 71, 141}, {16384, 33024, 71168, 143360}},
    {"B200-180GB", kBlackwell, kFamily, 184320, {23, 45, 90, 180}, {22528, 45312, 0, 0}},
    {"GB200-186GB", kBlackwell, kFamily, 190464, {23, 47, 93, 186}, {22528, 46592, 0, 0}},
    {"B300-269GB", kBlackwell, kFamily, 294912, {34, 67, 135, 269}, {}},
    {"GB300-278GB", kBlackwell, kFamily, 284672, {35, 70, 139, 278}, {}},
};

GpuModel MakeBoard(const Board& board) {
  GpuModel model;
  model.name = board.name;
  model.memory_bytes = board.memory_mib * kBytesPerMiB;
  model.units = 8;
  model.compute_slices = 7;
  model.memory_slices = 8;
  model.mig_toggle_needs_reset = board.generation.toggle_needs_reset;
  for (int i = 0; i < kBoardProfiles; ++i) {
    const BoardProfile& row = kBoard[i];
    const int gb = board.names[row.group];
    const int mib = board.mib[row.group] > 0 ? board.mib[row.group] : gb * 1024;
    model.profiles.push_back(MakeProfile(absl::StrCat(row.prefix, gb, row.suffix), row.shape,
                                         board.generation.engines[i], mib, board.evidence));
  }
  model.engines = LargestEngines(model.profiles);
  return model;
}

// --- GPUs with a geometry of their own. --------------------------------------

struct Row {
  const char* name;
  Shape shape;
  EngineCounts engines;
  int mib;
};

GpuModel MakeModel(const char* name, int64_t memory_mib, int units, int slices, Evidence evidence,
                   std::initializer_list<Row> rows) {
  GpuModel model;
  model.name = name;
  model.memory_bytes = memory_mib * kBytesPerMiB;
  model.units = units;
  model.compute_slices = slices;
  model.memory_slices = slices;
  for (const Row& row : rows) {
    model.profiles.push_back(MakeProfile(row.name, row.shape, row.engines, row.mib, evidence));
  }
  model.engines = LargestEngines(model.profiles);
  return model;
}

GpuModel MakeA30() {
  constexpr uint16_t kQuarters = At({0, 1, 2, 3});
  GpuModel model = MakeModel("A30-24GB", 24576, 4, 4, kSeen,
                             {{"1g.6gb", {1, 1, 1, 4, kQuarters}, {1, 0, 0, 0, 0}, 5952},
                              {"1g.6gb+me", {1, 1, 1, 1, kQuarters}, {1, 1, 0, 1, 1}, 5952},
                              {"2g.12gb", {2, 2, 2, 2, At({0, 2})}, {2, 2, 0, 0, 0}, 11968},
                              {"2g.12gb+me", {2, 2, 2, 1, At({0, 2})}, {2, 2, 0, 1, 1}, 11968},
                              {"4g.24gb", {4, 4, 4, 1, At({0})}, {4, 4, 0, 1, 1}, 24064}});
  model.mig_toggle_needs_reset = true;
  return model;
}

// Three units to the quarter: on this GPU units and slices are plainly different things.
GpuModel MakeRtxPro6000() {
  constexpr uint16_t kQuarters = At({0, 3, 6, 9});
  constexpr uint16_t kHalves = At({0, 6});
  return MakeModel("RTX-PRO-6000-BLACKWELL-96GB", 97887, 12, 4, kSeen,
                   {{"1g.24gb", {1, 1, 3, 4, kQuarters}, {1, 1, 1, 1, 0}, 24192},
                    {"1g.24gb+me", {1, 1, 3, 1, kQuarters}, {1, 1, 1, 1, 1}, 24192},
                    {"1g.24gb+gfx", {1, 1, 3, 4, kQuarters}, {1, 1, 1, 1, 0}, 24192},
                    {"1g.24gb+me.all", {1, 1, 3, 1, kQuarters}, {1, 4, 4, 4, 1}, 24192},
                    {"1g.24gb-me", {1, 1, 3, 4, kQuarters}, {1, 0, 0, 0, 0}, 24192},
                    {"2g.48gb", {2, 2, 6, 2, kHalves}, {2, 2, 2, 2, 0}, 48512},
                    {"2g.48gb+gfx", {2, 2, 6, 2, kHalves}, {2, 2, 2, 2, 0}, 48512},
                    {"2g.48gb+me.all", {2, 2, 6, 1, kHalves}, {2, 4, 4, 4, 1}, 48512},
                    {"2g.48gb-me", {2, 2, 6, 2, kHalves}, {2, 0, 0, 0, 0}, 48512},
                    {"4g.96gb", {4, 4, 12, 1, At({0})}, {4, 4, 4, 4, 1}, 97408},
                    {"4g.96gb+gfx", {4, 4, 12, 1, At({0})}, {4, 4, 4, 4, 1}, 97408}});
}

// The guide gives halves and counts; the number of NVML units is not known.
GpuModel MakeRtxPro5000() {
  constexpr uint16_t kHalves = At({0, 1});
  return MakeModel("RTX-PRO-5000-BLACKWELL-48GB", 49152, 2, 2, kFamily,
                   {{"1g.24gb", {1, 1, 1, 2, kHalves}, {1, 1, 1, 0, 0}, 24576},
                    {"1g.24gb+me", {1, 1, 1, 1, kHalves}, {1, 1, 1, 1, 1}, 24576},
                    {"1g.24gb+gfx", {1, 1, 1, 2, kHalves}, {1, 1, 1, 0, 0}, 24576},
                    {"1g.24gb+me.all", {1, 1, 1, 1, kHalves}, {1, 3, 3, 1, 1}, 24576},
                    {"1g.24gb-me", {1, 1, 1, 2, kHalves}, {1, 0, 0, 0, 0}, 24576},
                    {"2g.48gb", {2, 2, 2, 1, At({0})}, {4, 3, 3, 1, 1}, 49152},
                    {"2g.48gb+gfx", {2, 2, 2, 1, At({0})}, {4, 3, 3, 1, 1}, 49152}});
}

GpuModel MakeRtxPro4500() {
  constexpr uint16_t kHalves = At({0, 1});
  return MakeModel("RTX-PRO-4500-BLACKWELL-32GB", 32768, 2, 2, kFamily,
                   {{"1g.16gb", {1, 1, 1, 2, kHalves}, {1, 1, 1, 1, 0}, 16384},
                    {"1g.16gb+gfx", {1, 1, 1, 2, kHalves}, {1, 1, 1, 1, 0}, 16384},
                    {"1g.16gb+me.all", {1, 1, 1, 1, kHalves}, {1, 3, 3, 2, 1}, 16384},
                    {"1g.16gb-me", {1, 1, 1, 2, kHalves}, {1, 0, 0, 0, 0}, 16384},
                    {"2g.32gb", {2, 2, 2, 1, At({0})}, {2, 3, 3, 2, 1}, 32768},
                    {"2g.32gb+gfx", {2, 2, 2, 1, At({0})}, {2, 3, 3, 2, 1}, 32768}});
}

// The guide: at most two instances, one for compute and one for graphics, and the
// two 3g exclude all else. Growing compute from the left and graphics from the right
// says exactly that. Memory is the CPU's: no instance has a size of its own.
GpuModel MakeThor() {
  GpuModel model = MakeModel("THOR-IGPU", 0, 3, 3, kFamily,
                             {{"1g.0gb+me", {1, 1, 1, 1, At({0})}, {1, 1, 1, 1, 1}, 0},
                              {"1g.0gb", {1, 1, 1, 1, At({0})}, {1, 1, 1, 1, 0}, 0},
                              {"1g.0gb+gfx", {1, 1, 1, 1, At({2})}, {1, 1, 1, 1, 0}, 0},
                              {"2g.0gb", {2, 2, 2, 1, At({0})}, {1, 1, 1, 1, 0}, 0},
                              {"2g.0gb+gfx", {2, 2, 2, 1, At({1})}, {1, 1, 1, 1, 0}, 0},
                              {"3g.0gb", {3, 3, 3, 1, At({0})}, {1, 2, 2, 2, 1}, 0},
                              {"3g.0gb+gfx", {3, 3, 3, 1, At({0})}, {1, 2, 2, 2, 1}, 0}});
  // Listed as one per instance, the largest included, though two instances may live.
  model.engines.copy = 2;
  return model;
}

std::vector<GpuModel> MakeCatalogue() {
  std::vector<GpuModel> models;
  models.push_back(MakeA30());
  for (const Board& board : kBoards) models.push_back(MakeBoard(board));
  models.push_back(MakeRtxPro6000());
  models.push_back(MakeRtxPro5000());
  models.push_back(MakeRtxPro4500());
  models.push_back(MakeThor());
  return models;
}

constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"A30", "A30-24GB"},
    {"PG506", "PG506-96GB"},
    {"H100-NVL", "H100-94GB"},
    {"H100-96GB", "H100-96GB-GH200"},
    {"GH200-96GB", "H100-96GB-GH200"},
    {"H20", "H20-96GB"},
    {"H200", "H200-141GB"},
    {"B200", "B200-180GB"},
    {"GB200", "GB200-186GB"},
    {"B300", "B300-269GB"},
    {"GB300", "GB300-278GB"},
    {"RTX-PRO-6000", "RTX-PRO-6000-BLACKWELL-96GB"},
    {"RTX-PRO-5000", "RTX-PRO-5000-BLACKWELL-48GB"},
    {"RTX-PRO-4500", "RTX-PRO-4500-BLACKWELL-32GB"},
    {"THOR", "THOR-IGPU"},
};

}  // namespace

std::span<const GpuModel> GpuCatalogue() {
  // Never destroyed, so that the span outlives every static of the host.
  static const auto* const models = new std::vector<GpuModel>(MakeCatalogue());
  return *models;
}

const GpuModel* FindGpuModel(std::string_view name) {
  for (const auto& [alias, full_name] : kAliases) {
    if (alias == name) name = full_name;
  }
  for (const GpuModel& model : GpuCatalogue()) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

}  // namespace tessera
