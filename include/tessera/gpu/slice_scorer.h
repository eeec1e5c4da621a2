#ifndef TESSERA_GPU_SLICE_SCORER_H_
#define TESSERA_GPU_SLICE_SCORER_H_

// Slice scorers: which of the places where a MIG instance fits, GPU and start
// together, it should get.
//
// A scorer sees one GPU at a time, as its `LayoutKey`. Example, on three A100 40GB:
//
//   const auto gradient = FragmentationGradient::Create(tables, {}, "mix");
//   const std::vector<LayoutKey> gpus = {tables.empty(), key_of_4g, key_of_3g};
//   const auto place = ChooseSlice(tables, gpus, p1g, *gradient);
//   // gpu 1, start 6: beside the 4g, where a 2g still fits at 4
//
// `bench/study` compares the scorers under arrivals and departures.

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/gpu/layout.h"

namespace tessera {

// Ranks the places for one instance; lower is better. `before` is what the GPU holds,
// and `tables.CanPlace(before, profile, start)` must hold. The score must depend on
// nothing but the arguments and the scorer.
template <typename T>
concept SliceScorer = requires(const T& scorer, const MigTables& tables, LayoutKey before,
                               int profile, int start) {
  { scorer.Score(tables, before, profile, start) } -> std::same_as<int64_t>;
};

// All places are alike, so that ties decide: the lowest GPU, there the lowest start.
struct FirstFitSlice {
  int64_t Score(const MigTables&, LayoutKey, int, int) const { return 0; }
};

// The GPU on which the fewest units stay free.
struct BestFitSlice {
  int64_t Score(const MigTables& tables, LayoutKey before, int profile, int start) const {
    return -std::popcount(tables.Add(before, profile, start).mask);
  }
};

// The GPU on which the most units stay free.
struct WorstFitSlice {
  int64_t Score(const MigTables& tables, LayoutKey before, int profile, int start) const {
    return std::popcount(tables.Add(before, profile, start).mask);
  }
};

// A hash of the seed and all arguments. GPUs of the same key get the same scores: for
// choices that do not repeat themselves, give each decision another seed; for a choice
// that is uniform over GPUs, each GPU too.
struct RandomSlice {
  uint64_t seed = 0;

  int64_t Score(const MigTables&, LayoutKey before, int profile, int start) const {
    const uint64_t layout = (uint64_t{before.engines} << 16) | before.mask;
    const uint64_t place = (static_cast<uint64_t>(profile) << 8) | static_cast<uint64_t>(start);
    return static_cast<int64_t>(Scramble(Scramble(seed + layout) + place) >> 1);
  }

 private:
  // The finisher of SplitMix64 (Steele, Lea and Flood, OOPSLA '14).
  static uint64_t Scramble(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
};

// The largest weight in a demand mix, so that no score overflows.
inline constexpr int64_t kMaxDemandWeight = int64_t{1} << 32;

// The expected loss of placeable profiles. The worth of a layout is, over the profiles q,
//
//   sum of weight(q) x size(q)^2 x (how many q, and no others, can still be added)
//
// and the score of a place is what its GPU loses of it; never negative. Half of all weight
// follows the demand mix, half is the same for every profile that is no variant: with P of
// these, weight(q) = P x mix(q) + (sum of mix).
//
// Why the square: whoever is refused a q loses size(q) units, and the places for a q are
// rarer than those for a 1g by size(q) again, so that each of them is missed sooner. Why
// the half: room for a large profile serves small ones too, so that a mix alone values it
// too little where large ones are seldom asked for, and then even best-fit does better.
//
// FGD (Weng et al., USENIX ATC '23) scores the expected amount of resources that the
// typical requests cannot use; with weight mix(q) and size(q) instead of its square this
// would give the same order. `MigTables::Loss` is that form under a uniform mix.
class FragmentationGradient {
 public:
  // Tabulates the worth of every layout under `mix[profile]`: what the host expects, or
  // the numbers of pending and running slices. Only the proportions matter. Empty or all
  // zero = unknown: then the weight of a profile that is no variant is 1.
  //
  // kInvalidArgument: neither empty nor one weight per profile, or a weight that is not
  // in 0..`kMaxDemandWeight`; `path` names the mix: `mix[2]: weight -1 is not in 0..4294967296`.
  // Time and space in the number of layout keys: 0.1 ms and a few KiB on an A100.
  static absl::StatusOr<FragmentationGradient> Create(const MigTables& tables,
                                                      std::span<const int64_t> mix,
                                                      std::string_view path);

  // `tables` must be those of `Create`. Three table look-ups.
  int64_t Score(const MigTables& tables, LayoutKey before, int profile, int start) const {
    return Worth(before) - Worth(tables.Add(before, profile, start));
  }

  // What the free room of a GPU is worth.
  int64_t Worth(LayoutKey key) const { return worth_[tables_.StateOf(key)]; }

  // weight(q) x size(q)^2: what room for one more of `profile` is worth.
  int64_t RoomWorth(int profile) const { return weights_[static_cast<size_t>(profile)]; }

 private:
  explicit FragmentationGradient(MigTables tables) : tables_(std::move(tables)) {}

  MigTables tables_;
  std::vector<int64_t> weights_;  // [profile]
  std::vector<int64_t> worth_;    // [state]
};

// Where an instance should go.
struct ScoredSlice {
  int gpu = 0;
  int start = 0;
  int64_t score = 0;

  bool operator==(const ScoredSlice&) const = default;
};

// The place of the least score for an instance of `profile` on one of `gpus`, none if
// it fits nowhere. Ties: the lowest GPU, then the lowest start. O(gpus * starts).
template <SliceScorer Scorer>
std::optional<ScoredSlice> ChooseSlice(const MigTables& tables, std::span<const LayoutKey> gpus,
                                       int profile, const Scorer& scorer) {
  std::optional<ScoredSlice> best;
  for (int g = 0; g < static_cast<int>(gpus.size()); ++g) {
    for (uint32_t open = tables.LegalStarts(gpus[g], profile); open != 0; open &= open - 1) {
      const int start = std::countr_zero(open);
      const int64_t score = scorer.Score(tables, gpus[g], profile, start);
      if (!best || score < best->score) best = ScoredSlice{g, start, score};
    }
  }
  return best;
}

}  // namespace tessera

#endif  // TESSERA_GPU_SLICE_SCORER_H_
