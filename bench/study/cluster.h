#ifndef TESSERA_BENCH_STUDY_CLUSTER_H_
#define TESSERA_BENCH_STUDY_CLUSTER_H_

// The GPUs of the study, in buckets of equal layouts, so that a scorer is asked once for
// every layout and not once for every GPU.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/study/traffic.h"
#include "tessera/gpu/layout.h"
#include "tessera/gpu/slice_scorer.h"
#include "tessera/gpu/sliced_gpu.h"

namespace tessera::study {

// The layouts that the kinds of the study reach, numbered; 0 is the empty one.
class LayoutTable {
 public:
  LayoutTable();

  const MigTables& tables() const { return tables_; }
  int profile(int kind) const { return profiles_[kind]; }
  int size() const { return static_cast<int>(keys_.size()); }
  LayoutKey key(int layout) const { return keys_[layout]; }
  int capacity(int layout, int kind) const { return capacity_[layout][kind]; }
  int IdOf(LayoutKey key) const { return ids_[(size_t{key.engines} << 8) | key.mask]; }

 private:
  MigTables tables_;
  std::array<int, kKinds> profiles_;
  std::vector<LayoutKey> keys_;
  std::vector<int> ids_;  // [engines, mask]
  std::vector<std::array<int, kKinds>> capacity_;
};

struct Place {
  int gpu = 0;
  int start = 0;
};

class Cluster {
 public:
  explicit Cluster(const LayoutTable& layouts);

  const LayoutTable& layouts() const { return layouts_; }
  int layout(int gpu) const { return gpu_layout_[gpu]; }

  // The lowest GPU of that layout, or -1.
  int LowestGpu(int layout) const;

  void Add(int request, int kind, Place place);
  void Remove(int request);
  // Moves whatever starts at `from`.
  void Move(Place from, Place to);

  bool Holds(int request) const;
  // How many of each kind are held.
  const std::array<int, kKinds>& held() const { return held_; }
  // Free memory slices.
  int free_slices() const { return free_; }
  // How many of `kind`, and of no other, could be added without a move.
  int room(int kind) const { return room_[kind]; }

  // For the planners of the library; everything may move, at equal cost.
  std::vector<SlicedGpu> Describe() const;

 private:
  struct Tenant {
    int request = -1;  // -1: nothing starts here
    int kind = 0;
  };

  void SetLayout(int gpu, int layout);

  const LayoutTable& layouts_;
  std::array<int, kGpus> gpu_layout_{};
  std::vector<std::array<uint64_t, 2>> gpus_of_;  // [layout] bit g
  std::array<std::array<Tenant, kSlicesPerGpu>, kGpus> tenants_;
  std::vector<Place> place_of_;  // [request], gpu -1 = none
  std::array<int, kKinds> held_{};
  std::array<int, kKinds> room_{};
  int free_ = kGpus * kSlicesPerGpu;
};

// For every kind the layouts that take it, best first, as one scorer sees them.
class Ranking {
 public:
  template <SliceScorer Scorer>
  Ranking(const LayoutTable& layouts, const Scorer& scorer);

  // What `ChooseSlice` would answer: the least score, then the lowest GPU and start.
  std::optional<Place> Choose(const Cluster& cluster, int kind) const;

 private:
  struct Option {
    int64_t score = 0;
    int layout = 0;
    int start = 0;
  };

  void Sort();

  std::array<std::vector<Option>, kKinds> options_;
};

template <SliceScorer Scorer>
Ranking::Ranking(const LayoutTable& layouts, const Scorer& scorer) {
  for (int layout = 0; layout < layouts.size(); ++layout) {
    const LayoutKey key = layouts.key(layout);
    for (int kind = 0; kind < kKinds; ++kind) {
      const auto place =
          ChooseSlice(layouts.tables(), std::span(&key, 1), layouts.profile(kind), scorer);
      if (place) options_[kind].push_back({place->score, layout, place->start});
    }
  }
  Sort();
}

}  // namespace tessera::study

#endif  // TESSERA_BENCH_STUDY_CLUSTER_H_
