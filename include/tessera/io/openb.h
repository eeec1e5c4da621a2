#ifndef TESSERA_IO_OPENB_H_
#define TESSERA_IO_OPENB_H_

// Reading the openb trace: the nodes and pods of a production GPU cluster that Alibaba
// published as two CSV files (cluster-trace-gpu-v2023; Weng et al., "Beware of
// Fragmentation", USENIX ATC '23).

#include <string_view>

#include "absl/status/statusor.h"
#include "tessera/cluster/snapshot.h"

namespace tessera {

// The cluster of `nodes_csv`, empty, and every pod of `pods_csv`, whatever became of it,
// as a pending workload in the one queue that a snapshot without queues has.
//
// Columns are found by their names in the first line; columns not named here are ignored.
// Nodes: `sn`, `cpu_milli`, `memory_mib`, `gpu` (devices), `model` (may be empty).
// Pods: `name`, `cpu_milli`, `memory_mib`, `num_gpu`, `gpu_milli` (below 1000 beside one
// GPU: that part of it), `gpu_spec` (allowed models, joined by `|`; empty: any),
// `creation_time` (when it is submitted; empty: 0).
//
// A workload has one pod set, "pod", of one pod. The models' memory is that of public
// data sheets; the trace does not say what G1, G2 and G3 are, 32 GiB stand in for it.
//
// kInvalidArgument, with line and column (`pods: line 3, column gpu_milli: ...`): a column
// that is missing or named twice, a line of another length than the first, what is not a
// whole number or too large, an unknown model. Lines end in LF or CRLF. That names differ
// is checked by `Snapshot::Create`. O(size of the texts).
absl::StatusOr<SnapshotSpec> ImportOpenb(std::string_view nodes_csv, std::string_view pods_csv);

}  // namespace tessera

#endif  // TESSERA_IO_OPENB_H_
