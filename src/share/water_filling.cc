#include "src/share/water_filling.h"

#include <algorithm>
#include <numeric>

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

// ceil(f * 2^shift), at least 1 and at most `kMaxLevel`; binary long division.
int64_t ScaledLevel(const Fraction& f, int shift) {
  if (f.numerator <= 0) return 1;
  absl::int128 level = f.numerator / f.denominator;
  absl::int128 rest = f.numerator % f.denominator;
  for (; shift > 0 && level < kMaxLevel; --shift) {
    rest *= 2;
    level *= 2;
    if (rest < f.denominator) continue;
    rest -= f.denominator;
    level += 1;
  }
  for (; shift < 0; ++shift) level /= 2;
  if (rest != 0) level += 1;
  return static_cast<int64_t>(std::clamp<absl::int128>(level, 1, kMaxLevel));
}

// The state of one filling: levels on the common scale, resources still open.
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
      top_ = std::max(top_, full_at_.back());
    }
    for (int r = 0; r < kMaxResources; ++r) {
      const bool wanted =
          std::ranges::any_of(vessels, [r](const Vessel& vessel) { return vessel.room[r] > 0; });
      if (wanted) open_.push_back(r);
    }
  }

  void Run() {
    while (!open_.empty()) {
      const int64_t level = HighestLevel();
      std::vector<int> still_open;
      for (int r : open_) {
        if (level == top_ || Overflows(r, level + 1)) {
          Settle(r, level);
        } else {
          still_open.push_back(r);
        }
      }
      open_ = std::move(still_open);
    }
  }

 private:
  // What vessel `i` has taken of `r` at `level`; `rest`, if given, receives the
  // part of a unit that was rounded away, over `full_at_[i]`.
  int64_t Taken(size_t i, int r, int64_t level, absl::int128* rest = nullptr) const {
    const int64_t room = vessels_[i].room[r];
    if (rest != nullptr) *rest = 0;
    if (room == 0 || level >= full_at_[i]) return room;
    const absl::int128 product = absl::int128{room} * level;
    if (rest != nullptr) *rest = product % full_at_[i];
    return static_cast<int64_t>(product / full_at_[i]);
  }

  bool Overflows(int r, int64_t level) const {
    absl::int128 sum = 0;
    for (size_t i = 0; i < vessels_.size(); ++i) sum += Taken(i, r, level);
    return sum > total_[r];
  }

  // The highest level at which no open resource overflows.
  int64_t HighestLevel() const {
    const auto fits = [this](int64_t level) {
      return std::ranges::none_of(open_, [&](int r) { return Overflows(r, level); });
    };
    if (fits(top_)) return top_;
    int64_t low = 0, high = top_;  // low fits, high does not
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return low;
  }

  // Shares `r` out at `level` for good, and its rest by largest remainder.
  void Settle(int r, int64_t level) {
    std::vector<Fraction> rests(vessels_.size());
    std::vector<size_t> thirsty;
    for (size_t i = 0; i < vessels_.size(); ++i) {
      const int64_t taken = Taken(i, r, level, &rests[i].numerator);
      rests[i].denominator = full_at_[i];
      vessels_[i].filled[r] = taken;
      total_[r] -= taken;
      if (taken < vessels_[i].room[r]) thirsty.push_back(i);
    }
    std::ranges::stable_sort(
        thirsty, [&rests](size_t a, size_t b) { return Compare(rests[a], rests[b]) > 0; });
    while (total_[r] > 0 && !thirsty.empty()) {
      const int64_t count = static_cast<int64_t>(thirsty.size());
      const int64_t each = std::max<int64_t>(total_[r] / count, 1);
      std::vector<size_t> next;
      for (size_t i : thirsty) {
        Vessel& vessel = vessels_[i];
        const int64_t extra = std::min({each, total_[r], vessel.room[r] - vessel.filled[r]});
        vessel.filled[r] += extra;
        total_[r] -= extra;
        if (vessel.filled[r] < vessel.room[r]) next.push_back(i);
      }
      thirsty = std::move(next);
    }
  }

  std::vector<Vessel>& vessels_;
  ResourceVector& total_;
  std::vector<int64_t> full_at_;
  int64_t top_ = 1;
  std::vector<int> open_;
};

}  // namespace

void FillTogether(std::vector<Vessel>& vessels, ResourceVector& total) {
  Filling(vessels, total).Run();
}

}  // namespace tessera
