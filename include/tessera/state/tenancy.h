#ifndef TESSERA_STATE_TENANCY_H_
#define TESSERA_STATE_TENANCY_H_

// Which tenants hold what, so that isolation can be asked for in constant time.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tessera/cluster/workload.h"

namespace tessera {

// Counts of pods per tenant on every node, GPU, and the fractions of every GPU.
// A pod counts at its node and at each of its GPUs. Updates undo each other
// exactly. O(1) per place.
class Tenancy {
 public:
  Tenancy() = default;
  Tenancy(int num_nodes, int num_gpus);

  // A pod of `tenant` that holds a place: one node, or one GPU (`as_fraction` if
  // it holds a part of it).
  void AddToNode(int node, int tenant, Isolation isolation, int count);
  void AddToGpu(int gpu, int tenant, Isolation isolation, bool as_fraction, int count);

  // Whether a pod of `tenant` and those there accept each other.
  bool NodeAccepts(int node, int tenant, Isolation isolation) const;
  bool GpuAccepts(int gpu, int tenant, Isolation isolation, bool as_fraction) const;

  friend bool operator==(const Tenancy&, const Tenancy&) = default;

 private:
  // Tenants with pods at a place, and pods there that bar other tenants.
  struct Place {
    int32_t tenants = 0;
    int32_t strict = 0;

    friend bool operator==(const Place&, const Place&) = default;
  };
  enum Kind { kNodes, kGpus, kFractions, kNumKinds };

  void Add(Kind kind, int at, int tenant, bool strict, int count);
  bool Accepts(Kind kind, int at, int tenant, bool strict) const;

  std::vector<Place> places_[kNumKinds];
  // Pods of a tenant at a place. Entries of zero are erased.
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> pods_[kNumKinds];
};

}  // namespace tessera

#endif  // TESSERA_STATE_TENANCY_H_
