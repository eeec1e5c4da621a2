#ifndef TESSERA_SCHEDULE_SERVICE_GANG_H_
#define TESSERA_SCHEDULE_SERVICE_GANG_H_

// An LLM service as a gang: router, prefill engines, decode engines of several nodes.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tessera/cluster/gang.h"
#include "tessera/replicas/engine_budget.h"
#include "tessera/replicas/service.h"

namespace tessera {

// Most engines of one role in a gang.
inline constexpr int64_t kMaxGangEngines = 100000;

// One engine as pods, one to a node.
struct EngineShape {
  int pods = 1;
  // Request, models, selector, tolerations of each. Its name, counts, `after` and topology
  // mean nothing here.
  PodSet pod;
  TopologyConstraint topology;  // of each engine on its own

  friend bool operator==(const EngineShape&, const EngineShape&) = default;
};

struct ServiceShape {
  ServiceMode mode = ServiceMode::kDisaggregated;
  std::optional<PodSet> router;  // part of the base, as it is
  EngineShape prefill;           // means nothing if aggregated
  EngineShape decode;
  ReplicaCounts minimum{1, 1};
  TopologyConstraint topology;  // of the whole service, however it grows

  friend bool operator==(const ServiceShape&, const ServiceShape&) = default;
};

// Whole GPUs of one engine of each role: pods times the devices of one; 0, not known,
// where a pod asks for parts of GPUs or for none.
EngineGpus EngineGpusOf(const ServiceShape& shape);

// Engines of the base, out of `counts`: the minimum, and one of each role that runs at all.
ReplicaCounts BaseCounts(const ServiceShape& shape, const ReplicaCounts& counts);

// The name of the group of engine `index` of a role of several pods: "decode-1".
std::string EngineName(EngineRole role, int64_t index);

// The gang that runs `counts` engines.
//
// The group "base" holds the router, the engines of `BaseCounts`, and all engines of roles
// of one pod, as a pod set named by the role: beyond the base they are elastic. An engine of
// several pods is a group ("decode-0") of pod sets "decode-0-leader" (one pod) and
// "decode-0-worker" (the others). Those beyond the base stand beside it, each `after` it:
// they start once it runs, and it does not wait for them. A role without engines does not
// appear. The service's topology binds base and scaled engines together, wherever they
// start; that of an engine each one by itself.
//
// kInvalidArgument, with the field: `prefill.pods` or `decode.pods` below 1, a count outside
// [0, kMaxGangEngines], prefill engines of an aggregated service, nothing at all to run.
// O(engines).
//
// After Grove's PodCliqueSet (base and scaled PodGangs); differs in that the scaled engines
// share the topology of their base (grove#648) and intended zeros are no breach (grove#676).
absl::StatusOr<Gang> BuildServiceGang(const ServiceShape& shape, const ReplicaCounts& counts);

// What is left of `counts` when `gpus` GPUs have to be given up.
struct ShrunkService {
  ReplicaCounts counts;
  int64_t freed_gpus = 0;  // less than asked only if nothing but the base is left

  friend bool operator==(const ShrunkService&, const ShrunkService&) = default;
};

// Frees at least `gpus` GPUs, as few above that as possible, and never touches the base.
// Ties: more engines that stand outside the base (groups of several pods) rather than
// elastic pods in it; then decode rather than prefill. Engines go from the highest index
// down. An engine whose GPUs are not known frees nothing. O(engines).
ShrunkService ShrinkService(const ServiceShape& shape, const ReplicaCounts& counts, int64_t gpus);

}  // namespace tessera

#endif  // TESSERA_SCHEDULE_SERVICE_GANG_H_
