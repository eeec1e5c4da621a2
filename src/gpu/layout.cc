#include "tessera/gpu/layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

constexpr size_t kMaxEntries = size_t{1} << 22;
constexpr uint16_t kNoCode = 0xFFFF;

uint16_t StartBits(const MigProfile& profile) {
  unsigned bits = 0;
  for (const int start : profile.starts) bits |= 1u << start;
  return static_cast<uint16_t>(bits);
}

unsigned Interval(int start, int size) { return ((1u << size) - 1) << start; }

// The instances of a GPU may use at most `bound` of something; profile p uses `use[p]`.
struct Limit {
  std::vector<int> use;
  int bound = 0;
};

// Instance limits first: they are dropped in favour of engines that say the same.
std::vector<Limit> StatedLimits(const GpuModel& model) {
  const size_t profiles = model.profiles.size();
  std::vector<Limit> limits;
  for (size_t p = 0; p < profiles; ++p) {
    limits.push_back({std::vector<int>(profiles, 0), model.profiles[p].max_instances});
    limits.back().use[p] = 1;
  }
  if (model.engines == EngineCounts{}) return limits;
  for (const EngineKind& kind : kEngineKinds) {
    Limit& limit = limits.emplace_back();
    for (const MigProfile& profile : model.profiles) {
      limit.use.push_back(profile.engines.*kind.count);
    }
    limit.bound = model.engines.*kind.count;
  }
  return limits;
}

// The most that `limit` counts on any GPU whose instances do not overlap and respect
// `other`, found from left to right along the placement axis.
int LargestUse(const GpuModel& model, const Limit& limit, const Limit& other) {
  // most[u][o]: over the first u units, with `other` at o; -1 = impossible.
  std::vector<std::vector<int>> most(model.units + 1, std::vector<int>(other.bound + 1, -1));
  most[0][0] = 0;
  for (int u = 0; u < model.units; ++u) {
    for (int o = 0; o <= other.bound; ++o) {
      const int used = most[u][o];
      if (used < 0) continue;
      most[u + 1][o] = std::max(most[u + 1][o], used);
      for (size_t p = 0; p < model.profiles.size(); ++p) {
        const MigProfile& profile = model.profiles[p];
        if (((StartBits(profile) >> u) & 1) == 0 || o + other.use[p] > other.bound) continue;
        int& target = most[u + profile.size][o + other.use[p]];
        target = std::max(target, used + limit.use[p]);
      }
    }
  }
  return *std::max_element(most.back().begin(), most.back().end());
}

// The stated limits without those that geometry implies, alone or with one of the
// others. On NVIDIA's boards this leaves one (the single JPEG engine or OFA) or two.
std::vector<Limit> BindingLimits(const GpuModel& model) {
  std::vector<Limit> limits = StatedLimits(model);
  const Limit none = {std::vector<int>(model.profiles.size(), 0), 0};
  std::erase_if(limits,
                [&](const Limit& limit) { return LargestUse(model, limit, none) <= limit.bound; });
  for (size_t i = 0; i < limits.size();) {
    bool implied = false;
    for (size_t j = 0; j < limits.size() && !implied; ++j) {
      implied = j != i && LargestUse(model, limits[i], limits[j]) <= limits[i].bound;
    }
    if (implied) {
      limits.erase(limits.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return limits;
}

using Usage = std::vector<int>;  // per binding limit

// `usage` after one more of `profile` (or one less, `sign` = -1); empty when that
// breaks a limit. Without limits the only usage is empty too, hence the optional.
std::optional<Usage> Changed(const std::vector<Limit>& limits, Usage usage, size_t profile,
                             int sign) {
  for (size_t i = 0; i < limits.size(); ++i) {
    usage[i] += sign * limits[i].use[profile];
    if (usage[i] < 0 || usage[i] > limits[i].bound) return std::nullopt;
  }
  return usage;
}

// Every usage that some legal layout has, in lexicographic order, so that none comes
// first. Stops early, with more than `max_count` of them, when there are more.
std::set<Usage> ReachableUsages(const GpuModel& model, const std::vector<Limit>& limits,
                                size_t max_count) {
  std::vector<std::set<Usage>> reached(model.units + 1);  // over the first u units
  reached[0].insert(Usage(limits.size(), 0));
  for (int u = 0; u < model.units; ++u) {
    if (reached[u].size() > max_count) return std::move(reached[u]);
    reached[u + 1].insert(reached[u].begin(), reached[u].end());
    for (size_t p = 0; p < model.profiles.size(); ++p) {
      if (((StartBits(model.profiles[p]) >> u) & 1) == 0) continue;
      for (const Usage& usage : reached[u]) {
        if (auto next = Changed(limits, usage, p, +1)) {
          reached[u + model.profiles[p].size].insert(*std::move(next));
        }
      }
    }
  }
  return std::move(reached.back());
}

// Every mask that some set of disjoint instances occupies, ascending.
std::vector<uint16_t> ReachableMasks(const GpuModel& model) {
  std::vector<bool> reached(size_t{1} << model.units, false);
  reached[0] = true;
  std::vector<uint16_t> masks;
  // Adding an instance makes a mask larger, so one ascending pass sees them all.
  for (unsigned mask = 0; mask < reached.size(); ++mask) {
    if (!reached[mask]) continue;
    masks.push_back(static_cast<uint16_t>(mask));
    for (const MigProfile& profile : model.profiles) {
      for (const int start : profile.starts) {
        const unsigned bits = Interval(start, profile.size);
        if ((mask & bits) == 0) reached[mask | bits] = true;
      }
    }
  }
  return masks;
}

}  // namespace

// Capacity, legality and placeability are the meet of what geometry allows (per mask)
// and what the limits allow (per code): for one profile alone the two do not interact.
// Only what compares starts needs a table over both.
struct MigTables::Tables {
  GpuModel model;
  size_t profiles = 0;
  size_t codes = 0;
  std::vector<uint16_t> rank;  // [mask] among the reachable masks

  std::vector<uint16_t> starts;  // [rank][profile] bit s = free start
  std::vector<uint8_t> room;     // [rank][profile] instances that the free units hold
  std::vector<uint32_t> open;    // [rank] bit p = some start is free

  std::vector<uint16_t> add;         // [code][profile] next code, or kNoCode
  std::vector<uint16_t> remove;      // [code][profile] likewise
  std::vector<uint8_t> spare;        // [code][profile] instances that the limits allow
  std::vector<uint32_t> affordable;  // [code] bit p = the limits allow one more

  std::vector<uint16_t> worth;  // [rank][code] sum over plain profiles of size x capacity
  std::vector<int8_t> best;     // [rank][code][profile] start of least loss, or -1

  size_t AtRank(LayoutKey key, int profile) const { return rank[key.mask] * profiles + profile; }
  size_t AtCode(LayoutKey key, int profile) const { return key.engines * profiles + profile; }
  size_t AtState(LayoutKey key) const { return rank[key.mask] * codes + key.engines; }

  uint16_t LegalStarts(LayoutKey key, int profile) const {
    const bool affords = ((affordable[key.engines] >> profile) & 1) != 0;
    return affords ? starts[AtRank(key, profile)] : uint16_t{0};
  }
  int Capacity(LayoutKey key, int profile) const {
    return std::min(room[AtRank(key, profile)], spare[AtCode(key, profile)]);
  }
  LayoutKey Add(LayoutKey key, int profile, int start) const {
    const unsigned bits = Interval(start, model.profiles[profile].size);
    return {static_cast<uint16_t>(key.mask | bits), add[AtCode(key, profile)]};
  }

  void FillGeometry(const std::vector<uint16_t>& masks);
  void FillLimits(const std::vector<Limit>& limits, const std::set<Usage>& usages);
  void FillWorth(const std::vector<uint16_t>& masks);
  void FillBest(const std::vector<uint16_t>& masks);
};

void MigTables::Tables::FillGeometry(const std::vector<uint16_t>& masks) {
  rank.assign(size_t{1} << model.units, 0);
  starts.assign(masks.size() * profiles, 0);
  room.assign(masks.size() * profiles, 0);
  open.assign(masks.size(), 0);
  for (size_t r = 0; r < masks.size(); ++r) {
    rank[masks[r]] = static_cast<uint16_t>(r);
    for (size_t p = 0; p < profiles; ++p) {
      const MigProfile& profile = model.profiles[p];
      unsigned taken = masks[r];
      for (const int start : profile.starts) {
        const unsigned bits = Interval(start, profile.size);
        if ((masks[r] & bits) != 0) continue;
        starts[r * profiles + p] |= static_cast<uint16_t>(1u << start);
        // Intervals of one length: taking each that fits, from the left, packs the most.
        if ((taken & bits) != 0) continue;
        taken |= bits;
        ++room[r * profiles + p];
      }
      if (starts[r * profiles + p] != 0) open[r] |= uint32_t{1} << p;
    }
  }
}

void MigTables::Tables::FillLimits(const std::vector<Limit>& limits,
                                   const std::set<Usage>& usages) {
  std::map<Usage, uint16_t> code_of;
  for (const Usage& usage : usages) code_of.emplace(usage, static_cast<uint16_t>(code_of.size()));
  codes = usages.size();
  affordable.assign(codes, 0);
  const auto code_after = [&](const Usage& usage, size_t p, int sign) {
    const auto next = Changed(limits, usage, p, sign);
    const auto it = next ? code_of.find(*next) : code_of.end();
    return it == code_of.end() ? kNoCode : it->second;
  };
  for (const auto& [usage, code] : code_of) {
    for (size_t p = 0; p < profiles; ++p) {
      add.push_back(code_after(usage, p, +1));
      remove.push_back(code_after(usage, p, -1));
      int count = model.units;
      for (size_t i = 0; i < limits.size(); ++i) {
        const int use = limits[i].use[p];
        if (use > 0) count = std::min(count, (limits[i].bound - usage[i]) / use);
      }
      spare.push_back(static_cast<uint8_t>(count));
      if (add.back() != kNoCode) affordable[code] |= uint32_t{1} << p;
    }
  }
}

void MigTables::Tables::FillWorth(const std::vector<uint16_t>& masks) {
  worth.assign(masks.size() * codes, 0);
  for (const uint16_t mask : masks) {
    for (size_t code = 0; code < codes; ++code) {
      const LayoutKey key = {mask, static_cast<uint16_t>(code)};
      for (size_t p = 0; p < profiles; ++p) {
        const MigProfile& profile = model.profiles[p];
        if (profile.is_variant()) continue;
        worth[AtState(key)] +=
            static_cast<uint16_t>(profile.size * Capacity(key, static_cast<int>(p)));
      }
    }
  }
}

void MigTables::Tables::FillBest(const std::vector<uint16_t>& masks) {
  best.assign(masks.size() * codes * profiles, -1);
  for (const uint16_t mask : masks) {
    for (size_t code = 0; code < codes; ++code) {
      const LayoutKey key = {mask, static_cast<uint16_t>(code)};
      for (size_t p = 0; p < profiles; ++p) {
        const int profile = static_cast<int>(p);
        const uint16_t legal = LegalStarts(key, profile);
        int most_left = -1;
        for (const int start : model.profiles[p].starts) {
          if (((legal >> start) & 1) == 0) continue;
          const int left = worth[AtState(Add(key, profile, start))];
          if (left <= most_left) continue;
          most_left = left;
          best[AtState(key) * profiles + p] = static_cast<int8_t>(start);
        }
      }
    }
  }
}

absl::StatusOr<MigTables> MigTables::Create(const GpuModel& model) {
  TESSERA_RETURN_IF_ERROR(ValidateMigGeometry(model, model.name));
  auto tables = std::make_shared<Tables>();
  tables->model = model;
  tables->profiles = model.profiles.size();
  const std::vector<uint16_t> masks = ReachableMasks(model);
  const std::vector<Limit> limits = BindingLimits(model);
  const size_t max_codes = std::min<size_t>(
      kNoCode, kMaxEntries / (masks.size() * std::max<size_t>(1, tables->profiles)));
  const std::set<Usage> usages = ReachableUsages(model, limits, max_codes);
  if (usages.size() > max_codes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(model.name, ": the limits on engines and instances have more than ", max_codes,
                     " states on ", masks.size(), " occupied sets"));
  }
  tables->FillGeometry(masks);
  tables->FillLimits(limits, usages);
  tables->FillWorth(masks);
  tables->FillBest(masks);
  return MigTables(std::move(tables));
}

const GpuModel& MigTables::model() const { return tables_->model; }

size_t MigTables::num_states() const { return tables_->worth.size(); }

size_t MigTables::StateOf(LayoutKey key) const { return tables_->AtState(key); }

std::vector<LayoutKey> MigTables::ReachableKeys() const {
  std::vector<bool> known(num_states());
  std::vector<LayoutKey> keys = {empty()};
  known[StateOf(empty())] = true;
  for (size_t i = 0; i < keys.size(); ++i) {
    for (int p = 0; p < static_cast<int>(tables_->profiles); ++p) {
      for (uint32_t open = LegalStarts(keys[i], p); open != 0; open &= open - 1) {
        const LayoutKey next = Add(keys[i], p, std::countr_zero(open));
        if (known[StateOf(next)]) continue;
        known[StateOf(next)] = true;
        keys.push_back(next);
      }
    }
  }
  return keys;
}

bool MigTables::CanPlace(LayoutKey key, int profile, int start) const {
  if (start < 0 || start >= kMaxPlacementUnits) return false;
  return ((LegalStarts(key, profile) >> start) & 1) != 0;
}

uint16_t MigTables::LegalStarts(LayoutKey key, int profile) const {
  return tables_->LegalStarts(key, profile);
}

uint32_t MigTables::Placeable(LayoutKey key) const {
  return tables_->open[tables_->rank[key.mask]] & tables_->affordable[key.engines];
}

int MigTables::Capacity(LayoutKey key, int profile) const {
  return tables_->Capacity(key, profile);
}

LayoutKey MigTables::Add(LayoutKey key, int profile, int start) const {
  assert(CanPlace(key, profile, start));
  return tables_->Add(key, profile, start);
}

LayoutKey MigTables::Remove(LayoutKey key, int profile, int start) const {
  const unsigned bits = Interval(start, tables_->model.profiles[profile].size);
  const uint16_t code = tables_->remove[tables_->AtCode(key, profile)];
  assert((key.mask & bits) == bits && code != kNoCode);
  return {static_cast<uint16_t>(key.mask & ~bits), code};
}

int MigTables::Loss(LayoutKey key, int profile, int start) const {
  return tables_->worth[tables_->AtState(key)] -
         tables_->worth[tables_->AtState(Add(key, profile, start))];
}

std::optional<int> MigTables::BestStart(LayoutKey key, int profile) const {
  const int start = tables_->best[tables_->AtState(key) * tables_->profiles + profile];
  if (start < 0) return std::nullopt;
  return start;
}

namespace {

// Why `profile` cannot stand beside `others`, though its units are free.
std::string LimitText(const GpuModel& model, std::span<const Instance> others, int profile) {
  const MigProfile& wanted = model.profiles[profile];
  const auto same = [profile](const Instance& other) { return other.profile == profile; };
  if (std::count_if(others.begin(), others.end(), same) >= wanted.max_instances) {
    return absl::StrCat("one ", model.name, " holds at most ", wanted.max_instances, " of ",
                        wanted.name);
  }
  for (const EngineKind& kind : kEngineKinds) {
    const int all = model.engines.*kind.count;
    int left = all;
    for (const Instance& other : others) left -= model.profiles[other.profile].engines.*kind.count;
    const int needed = wanted.engines.*kind.count;
    if (needed <= left) continue;
    return absl::StrCat(wanted.name, " needs ", needed, " of the ", ToAbsl(kind.name), " engines, ",
                        left, " of ", all, " left");
  }
  return absl::StrCat(wanted.name, " does not fit");
}

// The first of `others` that shares a unit with `instance`.
std::optional<size_t> FindOverlap(const GpuModel& model, std::span<const Instance> others,
                                  const Instance& instance) {
  for (size_t i = 0; i < others.size(); ++i) {
    if (Overlap(model, others[i], instance)) return i;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<LayoutKey> MigTables::KeyOf(std::span<const Instance> instances,
                                           std::string_view path) const {
  LayoutKey key = empty();
  for (size_t i = 0; i < instances.size(); ++i) {
    const Instance& instance = instances[i];
    const std::string at = absl::StrCat(ToAbsl(path), "[", i, "]");
    if (instance.profile < 0 || static_cast<size_t>(instance.profile) >= tables_->profiles) {
      return InvalidAt(at, absl::StrCat("no profile ", instance.profile, " on ", model().name));
    }
    const std::string& name = model().profiles[instance.profile].name;
    if (!CanPlace(empty(), instance.profile, instance.start)) {
      return InvalidAt(at, absl::StrCat(name, " cannot start at slice ", instance.start));
    }
    const std::span<const Instance> others = instances.first(i);
    if (const auto j = FindOverlap(model(), others, instance)) {
      return InvalidAt(at, absl::StrCat(name, " at slice ", instance.start, " overlaps ",
                                        model().profiles[others[*j].profile].name, " at slice ",
                                        others[*j].start));
    }
    if (!CanPlace(key, instance.profile, instance.start)) {
      return InvalidAt(at, LimitText(model(), others, instance.profile));
    }
    key = Add(key, instance.profile, instance.start);
  }
  return key;
}

std::optional<int> MigTables::SmallestSufficient(int64_t memory_bytes, int compute_num,
                                                 int compute_den) const {
  assert(compute_num >= 0 && compute_den > 0);
  const auto rank_of = [this](int p) {
    const MigProfile& profile = model().profiles[p];
    return std::tie(profile.memory_slices, profile.compute_slices, profile.name);
  };
  std::optional<int> smallest;
  for (int p = 0; p < static_cast<int>(tables_->profiles); ++p) {
    const MigProfile& profile = model().profiles[p];
    if (profile.is_variant() || profile.memory_bytes < memory_bytes) continue;
    if (int64_t{profile.compute_slices} * compute_den <
        int64_t{compute_num} * model().compute_slices) {
      continue;
    }
    if (!smallest || rank_of(p) < rank_of(*smallest)) smallest = p;
  }
  return smallest;
}

}  // namespace tessera
