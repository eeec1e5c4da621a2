#include "bench/study/cluster.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tessera/gpu/catalogue.h"

namespace tessera::study {

LayoutTable::LayoutTable() : tables_(*MigTables::Create(*FindGpuModel("H100-80GB"))) {
  for (int kind = 0; kind < kKinds; ++kind) {
    profiles_[kind] = *tables_.model().FindProfile(kKindNames[kind]);
  }
  ids_.assign(size_t{1} << 16, -1);
  keys_ = {tables_.empty()};
  ids_[0] = 0;
  for (size_t layout = 0; layout < keys_.size(); ++layout) {
    std::array<int, kKinds>& capacity = capacity_.emplace_back();
    for (int kind = 0; kind < kKinds; ++kind) {
      const LayoutKey key = keys_[layout];
      capacity[kind] = tables_.Capacity(key, profiles_[kind]);
      for (uint32_t open = tables_.LegalStarts(key, profiles_[kind]); open; open &= open - 1) {
        const LayoutKey next = tables_.Add(key, profiles_[kind], std::countr_zero(open));
        int& id = ids_[(size_t{next.engines} << 8) | next.mask];
        if (id >= 0) continue;
        id = static_cast<int>(keys_.size());
        keys_.push_back(next);
      }
    }
  }
}

Cluster::Cluster(const LayoutTable& layouts) : layouts_(layouts) {
  gpus_of_.assign(layouts.size(), {0, 0});
  for (int gpu = 0; gpu < kGpus; ++gpu) gpus_of_[0][gpu / 64] |= uint64_t{1} << (gpu % 64);
  for (int kind = 0; kind < kKinds; ++kind) room_[kind] = kGpus * layouts.capacity(0, kind);
}

int Cluster::LowestGpu(int layout) const {
  const auto& [low, high] = gpus_of_[layout];
  if (low != 0) return std::countr_zero(low);
  return high != 0 ? 64 + std::countr_zero(high) : -1;
}

void Cluster::SetLayout(int gpu, int layout) {
  const int before = std::exchange(gpu_layout_[gpu], layout);
  const uint64_t bit = uint64_t{1} << (gpu % 64);
  gpus_of_[before][gpu / 64] &= ~bit;
  gpus_of_[layout][gpu / 64] |= bit;
  for (int kind = 0; kind < kKinds; ++kind) {
    room_[kind] += layouts_.capacity(layout, kind) - layouts_.capacity(before, kind);
  }
}

void Cluster::Add(int request, int kind, Place place) {
  const LayoutKey key = layouts_.key(gpu_layout_[place.gpu]);
  SetLayout(place.gpu,
            layouts_.IdOf(layouts_.tables().Add(key, layouts_.profile(kind), place.start)));
  tenants_[place.gpu][place.start] = {request, kind};
  if (place_of_.size() <= static_cast<size_t>(request)) place_of_.resize(request + 1, {-1, 0});
  place_of_[request] = place;
  ++held_[kind];
  free_ -= kSlices[kind];
}

void Cluster::Remove(int request) {
  const Place place = std::exchange(place_of_[request], {-1, 0});
  const int kind = std::exchange(tenants_[place.gpu][place.start], {}).kind;
  const LayoutKey key = layouts_.key(gpu_layout_[place.gpu]);
  SetLayout(place.gpu,
            layouts_.IdOf(layouts_.tables().Remove(key, layouts_.profile(kind), place.start)));
  --held_[kind];
  free_ += kSlices[kind];
}

void Cluster::Move(Place from, Place to) {
  const Tenant tenant = tenants_[from.gpu][from.start];
  // The target is free while the source still stands; adding first asserts it.
  Add(tenant.request, tenant.kind, to);
  place_of_[tenant.request] = from;
  Remove(tenant.request);
  place_of_[tenant.request] = to;
}

bool Cluster::Holds(int request) const {
  return static_cast<size_t>(request) < place_of_.size() && place_of_[request].gpu >= 0;
}

std::vector<SlicedGpu> Cluster::Describe() const {
  std::vector<SlicedGpu> gpus(kGpus);
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    for (int start = 0; start < kSlicesPerGpu; ++start) {
      const Tenant& tenant = tenants_[gpu][start];
      if (tenant.request < 0) continue;
      gpus[gpu].busy.push_back({{layouts_.profile(tenant.kind), start}, true, 1});
    }
  }
  return gpus;
}

void Ranking::Sort() {
  for (std::vector<Option>& options : options_) {
    std::stable_sort(options.begin(), options.end(),
                     [](const Option& a, const Option& b) { return a.score < b.score; });
  }
}

std::optional<Place> Ranking::Choose(const Cluster& cluster, int kind) const {
  std::optional<Place> best;
  int64_t best_score = 0;
  for (const Option& option : options_[kind]) {
    if (best && option.score > best_score) break;
    const int gpu = cluster.LowestGpu(option.layout);
    if (gpu < 0 || (best && gpu > best->gpu)) continue;
    best = Place{gpu, option.start};
    best_score = option.score;
  }
  return best;
}

}  // namespace tessera::study
