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

  // The same counts, whoever came first. O(places).
  friend bool operator==(const Tenancy& a, const Tenancy& b);

 private:
  // Most places have one tenant, who is counted without a look into a map.
  struct Place {
    int32_t tenants = 0;  // with pods there
    int32_t strict = 0;   // pods there that bar other tenants
    int32_t first = -1;   // one of the tenants
    int32_t first_pods = 0;
  };
  enum Kind { kNodes, kGpus, kFractions, kNumKinds };

  void Add(Kind kind, int at, int tenant, bool strict, int count);
  // Adds to the pods of `tenant` at a place, and tells how many there are then.
  int32_t AddPods(Kind kind, int at, int tenant, int count);
  int32_t Pods(Kind kind, int at, int tenant) const;
  bool Accepts(Kind kind, int at, int tenant, bool strict) const;

  std::vector<Place> places_[kNumKinds];
  // Pods of the other tenants at a place. Entries of zero are erased.
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> further_[kNumKinds];
};

}  // namespace tessera

#endif  // TESSERA_STATE_TENANCY_H_
