#ifndef TESSERA_IO_SNAPSHOT_JSON_H_
#define TESSERA_IO_SNAPSHOT_JSON_H_

// Snapshot files (`tessera/v1`): a cluster, its queues and its workloads as JSON.
//
//   {"apiVersion": "tessera/v1", "now": 0,
//    "nodes": [{"name": "n1", "capacity": {"cpu": 96, "memory": "1Ti"},
//               "gpu_model": "H100-80GB", "gpus": 8, "mig": "dynamic"}],
//    "queues": [{"name": "nlp", "quota": {"gpu": 4}}],
//    "workloads": [{"name": "llama", "queue": "nlp", "gang": {"pod_sets": [
//        {"name": "worker", "count": 6, "min_count": 2,
//         "request": {"cpu": 8, "memory": "64Gi", "gpu": 1}}]}}]}
//
// Fields carry the names of the nouns (`cluster/*.h`) and may be left out where those
// have defaults. Quantities are numbers or Kubernetes strings (`"500m"`, `"64Gi"`), CPU
// in cores, GPUs in devices; they are read exactly, requests and usage rounded up,
// everything else down. Times are whole seconds.
//
// A request, a capacity and a quota name extended resources beside the fixed ones. A
// name without `/` and `.` that is nearly that of a field counts as a slip of the pen;
// in a nested `"extended": {"tpu": 4}` every name is taken as it is. A quota, limit or
// weight for all resources not named has the name `*`, in base units for quotas and
// limits. A selector is a map by label, or a list of `{"key": ..., "in": [...]}` where
// one label has several conditions.

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tessera/cluster/snapshot.h"

namespace tessera {

// The spec that `json` states, its names not yet resolved: what a host changes before
// it calls `Snapshot::Create`.
//
// kInvalidArgument: text that is not JSON (`line 3, column 14: ...`), and with the path
// of the field (`workloads[2].gang.pod_sets[0].request.gpu_fraction: ...`) a field that
// is unknown, missing, given twice or of the wrong type, a quantity that cannot be
// represented, values nested deeper than 64 levels. At most 2 GiB of text.
// O(size of text).
absl::StatusOr<SnapshotSpec> ParseSnapshotSpec(std::string_view json);

// `ParseSnapshotSpec`, then `Snapshot::Create`, whose errors carry paths into the file.
absl::StatusOr<Snapshot> ParseSnapshot(std::string_view json);

// The file of `snapshot`: fields that differ from their defaults, every node, queue,
// model and workload on a line of its own, in order of id. Equal snapshots give equal
// bytes.
//
// `ParseSnapshot` reads back an equal snapshot if fields without a meaning have their
// defaults (`GpuRequest`) and all texts are UTF-8; ill-formed bytes come out as U+FFFD.
// O(size of the snapshot).
std::string WriteSnapshot(const Snapshot& snapshot);

}  // namespace tessera

#endif  // TESSERA_IO_SNAPSHOT_JSON_H_
