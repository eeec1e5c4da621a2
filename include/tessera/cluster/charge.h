#ifndef TESSERA_CLUSTER_CHARGE_H_
#define TESSERA_CLUSTER_CHARGE_H_

// What a pod costs its queue.
//
// A whole GPU is charged as one device and all its memory; a fraction as that
// fraction of both; a MIG instance as its compute slices over all of the model
// in `gpu` (1g of 7 = 1/7) and as its memory slices in `gpu_memory`. What is
// held is charged, even if less was asked for; idle instances charge nobody.
// `gpu:MODEL` dimensions repeat the `gpu` charge for devices of that model.

#include "tessera/cluster/request_class.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/resources/resource_vector.h"

namespace tessera {

// How MIG instances count in `gpu`. `kWholeG` is KAI-Scheduler's rule: G whole
// GPUs for a profile `Gg.Xgb`, nothing for names with a suffix.
enum class MigCharge { kByComputeSlices, kWholeG };

// The charge of a pod of class `c` at `placement`. O(resources).
ResourceVector ChargeOf(const Snapshot& snapshot, RequestClassId c, const PodPlacement& placement,
                        MigCharge rule);

// The charge a pending pod of class `c` is expected to bring: on each resource
// the smallest over the GPU models of the cluster that may serve it. Models are
// not known before placement, so a `gpu:MODEL` dimension counts it only if every
// such model belongs to it. O(models * resources).
ResourceVector ExpectedCharge(const Snapshot& snapshot, RequestClassId c, MigCharge rule);

// What queues share: the capacity of schedulable nodes less what is reserved,
// healthy GPUs only. O(nodes + GPUs).
ResourceVector TotalCapacity(const Snapshot& snapshot, MigCharge rule);

}  // namespace tessera

#endif  // TESSERA_CLUSTER_CHARGE_H_
