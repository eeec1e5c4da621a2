#ifndef TESSERA_CLUSTER_REQUEST_CLASS_H_
#define TESSERA_CLUSTER_REQUEST_CLASS_H_

// Pods that ask for the same thing, resolved once for the whole snapshot.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/ids.h"
#include "tessera/cluster/gang.h"
#include "tessera/resources/resource_vector.h"

namespace tessera {

using RequestClassId = Id<struct RequestClassTag>;

// How a GPU model answers a request.
struct ModelFit {
  bool fits = false;  // the model is allowed and can serve the request at all
  int profile = -1;   // of the model, for slices: the one asked for first
  int64_t share = 0;  // 1/7000 of each device, for fractions and memory
  // For slices, bit p = profile p is accepted. A later tier serves only where no
  // earlier one has a place; within a tier the cheapest place decides.
  std::vector<uint32_t> tiers = {};

  // Bit p = some tier accepts profile p.
  uint32_t accepted() const {
    uint32_t profiles = 0;
    for (uint32_t tier : tiers) profiles |= tier;
    return profiles;
  }
  bool Accepts(int slice_profile) const { return ((accepted() >> slice_profile) & 1) != 0; }

  friend bool operator==(const ModelFit&, const ModelFit&) = default;
};

// One distinct combination of request, allowed models, selector, tolerations.
struct RequestClass {
  ResourceVector need;  // cpu, memory, one pod, extended; the GPU part is zero
  GpuRequest gpu;
  std::vector<std::string> gpu_models;
  Selector selector;
  std::vector<Toleration> tolerations;
  std::vector<ModelFit> models;  // by ModelId; empty for pods without GPU

  friend bool operator==(const RequestClass&, const RequestClass&) = default;
};

// Where a pod is: its node and its part of the node's GPUs. Trivially copyable
// and compact, because searches copy and undo millions of them.
struct PodPlacement {
  NodeId node;
  int32_t share = 0;     // of each device in `gpus`, for fractions; 1/7000 device
  uint64_t gpus = 0;     // devices as a bit set
  int16_t profile = -1;  // of the node's model, for a slice
  int16_t start = 0;     // of the slice

  friend bool operator==(const PodPlacement&, const PodPlacement&) = default;
};

}  // namespace tessera

#endif  // TESSERA_CLUSTER_REQUEST_CLASS_H_
