#include "src/share/water_filling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/numeric/int128.h"
#include "tessera/share/rational.h"

namespace tessera {
namespace {

// Levels are integers on a common scale on which the highest has 62 bits, so
// that `room * level` fits 126 bits and the grid is far finer than one unit.
constexpr int kLevelBits = 62;
constexpr int64_t kMaxLevel = int64_t{1} << kLevelBits;

// Number of bits of a positive value.
int BitsOf(absl::int128 value) {
  const uint64_t high = static_cast<uint64_t>(absl::Int128High64(value));
  return high != 0 ? 128 - std::countl_zero(high) : 64 - std::countl_zero(absl::Int128Low64(value));
}

// ceil(level * 2^shift), at least 1 and at most `kMaxLevel`; long division, as
// many bits at a time as the remainder leaves room for.
int64_t ScaledLevel(const WeightedShare& full, int shift) {
  if (full.amount <= 0) return 1;
  const Rational f = full.exact();
  absl::int128 level = f.numerator / f.denominator;
  absl::int128 rest = f.numerator % f.denominator;
  const int room = std::min(126 - BitsOf(f.denominator), 60);
  while (shift > 0 && level < kMaxLevel) {
    const int step = std::min(shift, room);
    rest <<= step;
    level = (level << step) + rest / f.denominator;
    rest %= f.denominator;
    shift -= step;
  }
  for (; shift < 0; ++shift) level /= 2;
  if (rest != 0) level += 1;
  return static_cast<int64_t>(std::clamp<absl::int128>(level, 1, kMaxLevel));
}

// The state of one filling, on a common scale of levels.
//
// A level is a lower bound of the exact one, so that no rounding can hand out what
// there is not; what is taken at it is exact.
class Filling {
 public:
  Filling(Vessels& vessels, ResourceVector& left)
      : vessels_(vessels), left_(left), size_(vessels.full.size()) {
    const WeightedShare highest =
        *std::ranges::max_element(vessels.full, {}, [](const WeightedShare& f) { return f.about; });
    int exponent = 0;
    std::frexp(highest.about, &exponent);
    const int shift = highest.amount > 0 ? kLevelBits - 1 - exponent : 0;
    full_.reserve(size_);
    rate_.reserve(size_);
    for (const WeightedShare& full : vessels.full) {
      full_.push_back(ScaledLevel(full, shift));
      rate_.push_back(1.0 / static_cast<double>(full_.back()));
      top_ = std::max(top_, full_.back());
    }
  }

  void Run(WhenShort when_short) {
    std::vector<int> open;
    for (int r = 0; r < kMaxResources; ++r) {
      if (!room(r).empty()) open.push_back(r);
    }
    if (when_short == WhenShort::kGoOn) {
      for (int r : open) Settle(r, LevelAtWhichItRunsOut(r));
      return;
    }
    while (!open.empty()) open = SettleFirst(open);
  }

 private:
  Column& room(int r) { return vessels_.room[static_cast<size_t>(r)]; }
  const Column& room(int r) const { return vessels_.room[static_cast<size_t>(r)]; }

  // A quotient of doubles is off by at most 2^-11 below 2^40, so only one that close
  // to an integer has to be put right.
  static constexpr int64_t kSmall = int64_t{1} << 40;
  static constexpr double kUnsure = 0x1p-10;

  // floor(room * level / full).
  int64_t Taken(size_t i, int64_t room, int64_t level) const {
    if (level >= full_[i]) return room;
    if (room >= kSmall) {
      return static_cast<int64_t>(absl::int128{room} * level / full_[i]);
    }
    const double about = static_cast<double>(room) * (static_cast<double>(level) * rate_[i]);
    int64_t taken = static_cast<int64_t>(about);
    const double fraction = about - static_cast<double>(taken);
    if (fraction > kUnsure && fraction < 1 - kUnsure) return taken;
    const absl::int128 rest = absl::int128{room} * level - absl::int128{taken} * full_[i];
    return rest < 0 ? taken - 1 : rest >= full_[i] ? taken + 1 : taken;
  }

  // The level at which `r` runs out, or the top: at most the exact one, and less by
  // no more than 2^-43 of it. What is taken grows ever more slowly with the level, so
  // Newton's steps from 0 on approach it from below. The slopes are whole numbers,
  // rounded up; their sums do not depend on the order of the vessels.
  int64_t LevelAtWhichItRunsOut(int r) const {
    const Column& room = this->room(r);
    const int64_t total = left_[r];
    int64_t all = 0;
    double steepest = 0;
    for (size_t i = 0; i < size_; ++i) {
      all += room[i];
      steepest = std::max(steepest, static_cast<double>(room[i]) * rate_[i]);
    }
    if (all <= total) return top_;
    const double scale = std::ldexp(1.0, 60 - std::bit_width(size_) - std::ilogb(steepest));
    Column slope(size_);
    for (size_t i = 0; i < size_; ++i) {
      if (room[i] == 0) continue;
      slope[i] = static_cast<int64_t>(static_cast<double>(room[i]) * rate_[i] * scale) + 1;
    }
    constexpr double kRoundedDown = 1 - 0x1p-48;
    for (int64_t level = 0;;) {
      int64_t full = 0, rising = 0;
      for (size_t i = 0; i < size_; ++i) {
        const bool is_full = full_[i] <= level;
        full += is_full ? room[i] : 0;
        rising += is_full ? 0 : slope[i];
      }
      if (rising == 0) return level;
      const double next =
          static_cast<double>(total - full) / static_cast<double>(rising) * scale * kRoundedDown;
      if (static_cast<int64_t>(next) <= level) return level;
      level = static_cast<int64_t>(next);
    }
  }

  // Settles the resources of `open` that run out first, and stops the vessels that
  // need them; tells which are still open.
  std::vector<int> SettleFirst(const std::vector<int>& open) {
    std::vector<std::pair<int64_t, int>> levels;
    for (int r : open) levels.emplace_back(LevelAtWhichItRunsOut(r), r);
    const int64_t level = std::ranges::min(levels).first;
    std::vector<bool> stopped(size_);
    std::vector<int> still_open;
    for (const auto& [at, r] : levels) {
      if (at > level) {
        still_open.push_back(r);
        continue;
      }
      for (size_t i = 0; i < size_; ++i) {
        if (room(r)[i] > 0 && full_[i] > level) stopped[i] = true;
      }
      Settle(r, level);
    }
    for (size_t i = 0; i < size_; ++i) {
      if (!stopped[i]) continue;
      for (int r : still_open) room(r)[i] = Taken(i, room(r)[i], level);
      full_[i] = std::max<int64_t>(level, 1);
      rate_[i] = 1.0 / static_cast<double>(full_[i]);
    }
    return still_open;
  }

  // A vessel that is not full when its resource runs out.
  struct Thirsty {
    size_t vessel;
    int64_t room;   // still
    double about;   // what rounding down took from it
    int64_t whole;  // the same exactly: whole base units
    int64_t part;   // and this part of `full_`
    int64_t tie_key;
  };

  bool RoundedUpBefore(const Thirsty& a, const Thirsty& b) const {
    constexpr double kUndecided = 1e-9;
    const double difference = a.about - b.about;
    if (difference > kUndecided || difference < -kUndecided) return difference > 0;
    if (a.whole != b.whole) return a.whole > b.whole;
    const absl::int128 part_a = absl::int128{a.part} * full_[b.vessel];
    const absl::int128 part_b = absl::int128{b.part} * full_[a.vessel];
    if (part_a != part_b) return part_a > part_b;
    return a.tie_key != b.tie_key ? a.tie_key < b.tie_key : a.vessel < b.vessel;
  }

  // Shares a resource out at `level` for good, and its rest by largest remainder.
  void Settle(int r, int64_t level) {
    Column& taken = room(r);
    const Column& held = vessels_.held[static_cast<size_t>(r)];
    const Column& tie_key = vessels_.tie_key[static_cast<size_t>(r)];
    const int64_t unit = std::max<int64_t>(vessels_.unit[r], 1);
    std::vector<Thirsty> thirsty;
    for (size_t i = 0; i < size_; ++i) {
      const int64_t wanted = taken[i];
      const int64_t exact = Taken(i, wanted, level);
      // Down to whole units of what it holds then, but not below what it holds now.
      const int64_t base = held.empty() ? 0 : held[i];
      const int64_t cut = exact == wanted ? 0 : std::min((base + exact) % unit, exact);
      taken[i] = exact - cut;
      left_[r] -= taken[i];
      if (exact == wanted) continue;
      const int64_t part =
          static_cast<int64_t>(absl::int128{wanted} * level - absl::int128{exact} * full_[i]);
      thirsty.push_back({i, wanted - taken[i],
                         static_cast<double>(cut) + static_cast<double>(part) * rate_[i], cut, part,
                         tie_key.empty() ? 0 : tie_key[i]});
    }
    GiveRest(r, unit, thirsty);
  }

  // What is left of `r`, a unit each to those from whom rounding took the most.
  void GiveRest(int r, int64_t unit, std::vector<Thirsty>& thirsty) {
    const Column& held = vessels_.held[static_cast<size_t>(r)];
    const auto before = [this](const Thirsty& a, const Thirsty& b) {
      return RoundedUpBefore(a, b);
    };
    const bool one_each = unit == 1 && left_[r] < static_cast<int64_t>(thirsty.size());
    if (one_each) {
      std::ranges::nth_element(thirsty, thirsty.begin() + left_[r], before);
    } else {
      std::ranges::sort(thirsty, before);
    }
    while (left_[r] > 0 && !thirsty.empty()) {
      const int64_t pieces = left_[r] / unit / static_cast<int64_t>(thirsty.size());
      const int64_t each = std::max<int64_t>(pieces, 1) * unit;
      std::erase_if(thirsty, [&](Thirsty& next) {
        int64_t& taken = room(r)[next.vessel];
        const int64_t over = held.empty() ? 0 : (held[next.vessel] + taken) % unit;
        const int64_t extra = std::min({each - over, left_[r], next.room});
        taken += extra;
        left_[r] -= extra;
        next.room -= extra;
        return next.room == 0;
      });
    }
  }

  Vessels& vessels_;
  ResourceVector& left_;
  size_t size_;
  std::vector<int64_t> full_;  // by vessel, on the common scale
  std::vector<double> rate_;   // 1 / full_, about
  int64_t top_ = 1;
};

}  // namespace

void FillTogether(Vessels& vessels, WhenShort when_short, ResourceVector& left) {
  const bool nothing = std::ranges::all_of(vessels.room, &Column::empty);
  if (nothing || vessels.full.empty()) return;
  Filling(vessels, left).Run(when_short);
}

}  // namespace tessera
