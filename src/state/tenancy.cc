#include "tessera/state/tenancy.h"

namespace tessera {

Tenancy::Tenancy(int num_nodes, int num_gpus) {
  places_[kNodes].resize(static_cast<size_t>(num_nodes));
  places_[kGpus].resize(static_cast<size_t>(num_gpus));
  places_[kFractions].resize(static_cast<size_t>(num_gpus));
}

void Tenancy::AddToNode(int node, int tenant, Isolation isolation, int count) {
  Add(kNodes, node, tenant, isolation == Isolation::kNodeAlone, count);
}

void Tenancy::AddToGpu(int gpu, int tenant, Isolation isolation, bool as_fraction, int count) {
  Add(kGpus, gpu, tenant, isolation == Isolation::kGpuAlone, count);
  if (as_fraction) Add(kFractions, gpu, tenant, isolation == Isolation::kHardware, count);
}

bool Tenancy::NodeAccepts(int node, int tenant, Isolation isolation) const {
  return Accepts(kNodes, node, tenant, isolation == Isolation::kNodeAlone);
}

bool Tenancy::GpuAccepts(int gpu, int tenant, Isolation isolation, bool as_fraction) const {
  return Accepts(kGpus, gpu, tenant, isolation == Isolation::kGpuAlone) &&
         (!as_fraction || Accepts(kFractions, gpu, tenant, isolation == Isolation::kHardware));
}

void Tenancy::Add(Kind kind, int at, int tenant, bool strict, int count) {
  Place& place = places_[kind][static_cast<size_t>(at)];
  const int32_t pods = AddPods(kind, at, tenant, count);
  place.tenants += static_cast<int32_t>(pods > 0) - static_cast<int32_t>(pods - count > 0);
  if (strict) place.strict += count;
}

int32_t Tenancy::AddPods(Kind kind, int at, int tenant, int count) {
  Place& place = places_[kind][static_cast<size_t>(at)];
  if (place.first_pods == 0 && (place.tenants == 0 || !further_[kind].contains({at, tenant}))) {
    place.first = tenant;
  }
  if (place.first == tenant) return place.first_pods += count;
  const auto it = further_[kind].try_emplace({at, tenant}, 0).first;
  const int32_t pods = it->second += count;
  if (pods == 0) further_[kind].erase(it);
  return pods;
}

int32_t Tenancy::Pods(Kind kind, int at, int tenant) const {
  const Place& place = places_[kind][static_cast<size_t>(at)];
  if (place.first == tenant && place.first_pods > 0) return place.first_pods;
  const auto it = further_[kind].find({at, tenant});
  return it == further_[kind].end() ? 0 : it->second;
}

bool operator==(const Tenancy& a, const Tenancy& b) {
  for (Tenancy::Kind kind : {Tenancy::kNodes, Tenancy::kGpus, Tenancy::kFractions}) {
    if (a.places_[kind].size() != b.places_[kind].size()) return false;
    for (size_t i = 0; i < a.places_[kind].size(); ++i) {
      const Tenancy::Place &at = a.places_[kind][i], &bt = b.places_[kind][i];
      if (at.tenants != bt.tenants || at.strict != bt.strict) return false;
      if (at.first_pods == 0) continue;
      if (b.Pods(kind, static_cast<int>(i), at.first) != at.first_pods) return false;
    }
    for (const auto& [where, pods] : a.further_[kind]) {
      if (b.Pods(kind, where.first, where.second) != pods) return false;
    }
  }
  return true;
}

// All pods at a place are of one tenant once one of them is strict, or they
// already stand together and no stricter one may come.
bool Tenancy::Accepts(Kind kind, int at, int tenant, bool strict) const {
  const Place& place = places_[kind][static_cast<size_t>(at)];
  if (place.tenants == 0 || (place.strict == 0 && !strict)) return true;
  return place.tenants == 1 && Pods(kind, at, tenant) > 0;
}

}  // namespace tessera
