#include "src/share/water_filling.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace tessera {
namespace {

// Levels are integers on a common scale on which the highest has 62 bits, so
// that `room * level` fits 126 bits and the grid is far finer than one unit.
constexpr int kLevelBits = 62;
constexpr int64_t kMaxLevel = int64_t{1} << kLevelBits;

// floor(log2(f)) of a positive fraction.
int Exponent(Fraction f) {
  int exponent = 0;
  for (; f.numerator >= f.denominator; f.numerator /= 2) ++exponent;
  if (exponent > 0) return exponent - 1;
  for (; f.numerator < f.denominator; f.numerator *= 2) --exponent;
  return exponent;
}

// Number of bits of a positive value.
int BitsOf(absl::int128 value) {
  const uint64_t high = static_cast<uint64_t>(absl::Int128High64(value));
  return high != 0 ? 128 - std::countl_zero(high) : 64 - std::countl_zero(absl::Int128Low64(value));
}

// ceil(f * 2^shift), at least 1 and at most `kMaxLevel`; long division, as many
// bits at a time as the remainder leaves room for.
int64_t ScaledLevel(const Fraction& f, int shift) {
  if (f.numerator <= 0) return 1;
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

// One resource: what each vessel can take of it, and how much there is.
struct Stream {
  int resource = 0;
  int64_t total = 0;
  std::vector<int64_t> rooms;
};

// The state of one filling: levels on the common scale, resources still open.
//
// A level is found in two steps: by floating point from sums over the vessels in
// order of the level at which they are full, and exactly around that guess. Only
// the exact step decides.
class Filling {
 public:
  Filling(std::vector<Vessel>& vessels, ResourceVector& total) : vessels_(vessels), total_(total) {
    Fraction highest{0, 1};
    for (const Vessel& vessel : vessels) {
      if (Compare(vessel.full_at, highest) > 0) highest = vessel.full_at;
    }
    const int shift = highest.numerator > 0 ? kLevelBits - 1 - Exponent(highest) : 0;
    for (const Vessel& vessel : vessels) {
      full_at_.push_back(ScaledLevel(vessel.full_at, shift));
      rate_.push_back(1.0 / static_cast<double>(full_at_.back()));
      top_ = std::max(top_, full_at_.back());
    }
    by_full_.resize(vessels.size());
    std::iota(by_full_.begin(), by_full_.end(), size_t{0});
    std::ranges::sort(by_full_, {}, [this](size_t i) { return full_at_[i]; });
    for (int r = 0; r < kMaxResources; ++r) OpenStream(r);
  }

  void Run() {
    while (!open_.empty()) {
      const int64_t level = HighestLevel();
      std::vector<Stream> still_open;
      for (Stream& stream : open_) {
        if (level == top_ || Overflows(stream, level + 1)) {
          Settle(stream, level);
        } else {
          still_open.push_back(std::move(stream));
        }
      }
      open_ = std::move(still_open);
    }
  }

 private:
  void OpenStream(int r) {
    Stream stream;
    stream.resource = r;
    stream.total = total_[r];
    stream.rooms.reserve(vessels_.size());
    bool wanted = false;
    for (const Vessel& vessel : vessels_) {
      stream.rooms.push_back(vessel.room[r]);
      wanted |= vessel.room[r] > 0;
    }
    if (wanted) open_.push_back(std::move(stream));
  }

  // floor(room * level / full): a floating-point quotient, put right by its exact
  // remainder, where the room is small enough for that to be at most a unit off.
  int64_t Taken(size_t i, int64_t room, int64_t level) const {
    constexpr int64_t kExactInDouble = int64_t{1} << 50;
    const int64_t full = full_at_[i];
    if (room == 0 || level >= full) return room;
    const absl::int128 product = absl::int128{room} * level;
    if (room >= kExactInDouble) return static_cast<int64_t>(product / full);
    int64_t taken =
        static_cast<int64_t>(static_cast<double>(room) * (static_cast<double>(level) * rate_[i]));
    const absl::int128 rest = product - absl::int128{taken} * full;
    if (rest < 0) --taken;
    if (rest >= full) ++taken;
    return taken;
  }

  bool Overflows(const Stream& stream, int64_t level) const {
    absl::int128 sum = 0;
    for (size_t i = 0; i < full_at_.size(); ++i) sum += Taken(i, stream.rooms[i], level);
    return sum > stream.total;
  }

  // About the level at which `stream` runs out: the vessels that are full by then
  // hold their rooms, the others in proportion.
  double GuessLevel(const Stream& stream) const {
    double open_rate = 0, full = 0;
    for (size_t i = 0; i < full_at_.size(); ++i) {
      open_rate += static_cast<double>(stream.rooms[i]) * rate_[i];
    }
    const double total = static_cast<double>(stream.total);
    for (size_t i : by_full_) {
      const double level = static_cast<double>(full_at_[i]);
      if (full + open_rate * level > total) break;
      full += static_cast<double>(stream.rooms[i]);
      open_rate -= static_cast<double>(stream.rooms[i]) * rate_[i];
    }
    return open_rate > 0 ? (total - full) / open_rate : static_cast<double>(top_);
  }

  // The highest level at which `stream` does not overflow, searched around `near`.
  int64_t HighestLevelOf(const Stream& stream, int64_t near) const {
    int64_t low = std::clamp<int64_t>(near, 0, top_), high = low, step = int64_t{1} << 20;
    if (!Overflows(stream, low)) {
      while (high < top_ && !Overflows(stream, high = std::min(low + step, top_))) {
        low = high;
        step = std::min(step * 16, kMaxLevel / 16);
      }
      if (high == low) return top_;
    } else {
      while (low > 0 && Overflows(stream, low = std::max<int64_t>(high - step, 0))) {
        high = low;
        step = std::min(step * 16, kMaxLevel / 16);
      }
    }
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (Overflows(stream, middle) ? high : low) = middle;
    }
    return low;
  }

  // The highest level at which no open stream overflows.
  int64_t HighestLevel() const {
    std::vector<std::pair<double, const Stream*>> guesses;
    for (const Stream& stream : open_) guesses.emplace_back(GuessLevel(stream), &stream);
    std::ranges::stable_sort(guesses, {}, [](const auto& guess) { return guess.first; });
    int64_t level = top_;
    for (const auto& [guess, stream] : guesses) {
      if (!Overflows(*stream, level)) continue;
      constexpr double kBelowTop = 0x1p62;
      const int64_t near = guess < kBelowTop ? static_cast<int64_t>(guess) : level;
      level = HighestLevelOf(*stream, std::min(near, level));
    }
    return level;
  }

  // Shares a resource out at `level` for good, and its rest by largest remainder.
  void Settle(const Stream& stream, int64_t level) {
    const int r = stream.resource;
    struct Thirsty {
      double rest;  // about
      Fraction exact;
      size_t vessel;
    };
    std::vector<Thirsty> thirsty;
    thirsty.reserve(vessels_.size());
    for (size_t i = 0; i < vessels_.size(); ++i) {
      const int64_t taken = Taken(i, stream.rooms[i], level);
      vessels_[i].filled[r] = taken;
      total_[r] -= taken;
      if (taken == stream.rooms[i]) continue;
      const absl::int128 rest =
          absl::int128{stream.rooms[i]} * level - absl::int128{taken} * full_at_[i];
      thirsty.push_back(
          {static_cast<double>(static_cast<int64_t>(rest)) * rate_[i], {rest, full_at_[i]}, i});
    }
    std::ranges::stable_sort(thirsty, [](const Thirsty& a, const Thirsty& b) {
      constexpr double kUndecided = 1e-9;
      const double difference = a.rest - b.rest;
      if (difference > kUndecided || difference < -kUndecided) return difference > 0;
      return Compare(a.exact, b.exact) > 0;
    });
    while (total_[r] > 0 && !thirsty.empty()) {
      const int64_t each = std::max<int64_t>(total_[r] / static_cast<int64_t>(thirsty.size()), 1);
      std::erase_if(thirsty, [&](const Thirsty& next) {
        Vessel& vessel = vessels_[next.vessel];
        const int64_t extra = std::min({each, total_[r], vessel.room[r] - vessel.filled[r]});
        vessel.filled[r] += extra;
        total_[r] -= extra;
        return vessel.filled[r] == vessel.room[r];
      });
    }
  }

  std::vector<Vessel>& vessels_;
  ResourceVector& total_;
  std::vector<int64_t> full_at_;  // by vessel
  std::vector<double> rate_;      // 1 / full_at_, about
  std::vector<size_t> by_full_;   // vessels, the first to be full first
  int64_t top_ = 1;
  std::vector<Stream> open_;
};

}  // namespace

void FillTogether(std::vector<Vessel>& vessels, ResourceVector& total) {
  const bool all_full = std::ranges::all_of(
      vessels, [](const Vessel& vessel) { return vessel.room == ResourceVector(); });
  if (all_full) return;
  Filling(vessels, total).Run();
}

}  // namespace tessera
