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
  int32_t& pods = pods_[kind][{at, tenant}];
  const bool was = pods > 0;
  pods += count;
  const bool is = pods > 0;
  place.tenants += static_cast<int32_t>(is) - static_cast<int32_t>(was);
  if (strict) place.strict += count;
  if (!is) pods_[kind].erase({at, tenant});
}

// All pods at a place are of one tenant once one of them is strict, or they
// already stand together and no stricter one may come.
bool Tenancy::Accepts(Kind kind, int at, int tenant, bool strict) const {
  const Place& place = places_[kind][static_cast<size_t>(at)];
  if (place.tenants == 0 || (place.strict == 0 && !strict)) return true;
  return place.tenants == 1 && pods_[kind].contains({at, tenant});
}

}  // namespace tessera
