#ifndef TESSERA_IO_MIG_FORMATS_H_
#define TESSERA_IO_MIG_FORMATS_H_

// MIG layouts in the words of NVIDIA's tools: configurations for mig-parted, commands
// and listings of nvidia-smi. GPUs bear the numbers that nvidia-smi gives them on their
// node, starts are placement indices of the driver.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/cluster/plan.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/gpu/layout.h"

namespace tessera {

// The instances of one node's GPUs by number, each list ascending by start.
using LayoutsByGpu = std::map<int, std::vector<Instance>>;

// The layout that `text` states: `3g.40gb@4,1g.10gb@0`. Blanks are allowed around the
// commas, an empty text is an empty GPU. Instances ascend by start.
//
// kInvalidArgument, naming the instance as given: no `@` or no number after it
// (`1g.10gb@x: ...`), a profile that the model lacks, and what `MigTables::KeyOf`
// rejects (`3g.40gb@2: 3g.40gb cannot start at slice 2`). O(n^2) in the instances.
absl::StatusOr<std::vector<Instance>> ParseLayout(std::string_view text, const MigTables& tables);

// The instances that `nvidia-smi mig -lgi` lists, of GPUs that are all of the model of
// `tables`. GPUs without instances are absent; a text that says that there are no
// instances, or no GPUs in MIG mode, gives an empty map.
//
//   +-------------------------------------------------------+
//   | GPU instances:                                        |
//   | GPU   Name             Profile  Instance   Placement  |
//   |                          ID       ID       Start:Size |
//   |=======================================================|
//   |   0  MIG 3g.40gb          9        1          4:4     |
//   +-------------------------------------------------------+
//
// kInvalidArgument with the line (`line 6: ...`): a line that is no part of such a
// table, or a table that breaks off; a profile that the model lacks, or whose size
// differs from that in the listing (names repeat across models); and what
// `MigTables::KeyOf` rejects. A table cut after a complete row cannot be told from a
// shorter one. O(size of the text).
absl::StatusOr<LayoutsByGpu> ParseMigListing(std::string_view listing, const MigTables& tables);

// The MIG layouts of all GPUs that can be partitioned as a configuration file for
// `nvidia-mig-parted apply`, one configuration for all nodes whose GPUs of the same
// number have as many instances of each profile:
//
//   version: v1
//   mig-configs:
//     # "n1", "n2"
//     layout-1:
//       - devices: [0, 1]
//         mig-enabled: true
//         mig-devices: {"1g.10gb": 4, "3g.40gb": 1}
//       - devices: [2, 3]
//         mig-enabled: false
//
// Configurations are numbered in the order of their first node; their nodes stand in a
// comment above. Nodes whose model has no MIG are left out. The format has counts but no
// starts, which the driver then chooses: what still fits beside may differ from the
// snapshot, and where starts matter `WriteMigCommands` keeps them. Equal snapshots give
// equal bytes. O(size of the snapshot).
std::string WriteMigParted(const Snapshot& snapshot);

// The MIG operations of `plan` (set_mig, destroy, create) as a POSIX shell script that
// runs nvidia-smi: `sh SCRIPT [NODE]` carries out those of one node, by default of the
// host it runs on, in the order of the plan. `snapshot` is the one that was planned for.
//
// Instances are created at their starts, with one compute instance each. A plan knows
// no instance ids: the script looks them up by profile and start when it destroys. It
// stops at the first operation that fails, such as on what programs still use, with the
// exit code of nvidia-smi, or 1. Where MIG mode stays pending it resets GPUs whose model
// needs that, and fails on others. It exits with 64 where the plan has nothing for NODE.
//
// Evictions and moves are not the script's work: the host sees to it that pods have
// left. Nor is what nominated pods will need; no action creates their instances.
//
// kInvalidArgument, naming the action (`actions[3]: ...`): a node, GPU, profile or
// start that does not exist. Names are quoted; none can break out of the script.
// O(size of the plan).
absl::StatusOr<std::string> WriteMigCommands(const Snapshot& snapshot, const Plan& plan);

}  // namespace tessera

#endif  // TESSERA_IO_MIG_FORMATS_H_
