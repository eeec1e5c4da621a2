#ifndef TESSERA_EXAMPLES_TESSERA_COMMANDS_H_
#define TESSERA_EXAMPLES_TESSERA_COMMANDS_H_

// The sub-commands of the program `tessera`. Each prints its answer on standard
// output and returns the exit code.

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/schedule/schedule.h"
#include "tessera/verify/check_plan.h"

namespace tessera::cli {

// Exit codes; 2, wrong usage, is given by the command line parser.
enum ExitCode { kPlanned = 0, kRejected = 1, kPlanFailed = 3 };

struct PlanArguments {
  std::string file;
  std::string out;
  std::string preset = "strict";
  std::string svg;        // a file for the picture
  std::string export_as;  // "nvidia-smi" or "mig-parted"
  bool json = false;
  bool mosaic = false;
  bool room = false;
};
int RunPlan(const PlanArguments& arguments);

int RunExplain(const std::string& file, const std::string& workload, const std::string& preset);
// `compare`, if not empty, is a second preset whose fair shares stand beside.
int RunShares(const std::string& file, const std::string& preset, const std::string& compare,
              bool json);
int RunCheck(const std::string& file, const std::string& plan, const std::string& preset);

struct MigArguments {
  std::string model;                  // or a snapshot
  std::optional<std::string> layout;  // the instances of one GPU
  std::string lgi;                    // a file that lists instances
  std::string export_as;              // "mig-parted"
  std::string svg;                    // a file for the picture
  std::string want;                   // profiles with counts, to be idle
  std::string defragment;             // a profile to make room for
  std::string node;                   // where `want` or `defragment` is asked; empty: anywhere
  bool json = false;
};
// About a GPU model, and layouts of it.
int RunMig(const MigArguments& arguments);
// About the GPUs of a snapshot.
int RunMigOfCluster(const MigArguments& arguments);
// What to do to the MIG instances of a snapshot.
int RunMigChanges(const MigArguments& arguments);

struct ReplicasArguments {
  std::string file;
  std::string cluster;  // a snapshot, to ask what can start
  std::string svg;      // a file for the picture of a day
  bool json = false;
};
// How many engines a service should run.
int RunReplicas(const ReplicasArguments& arguments);

int RunImportOpenb(const std::string& nodes, const std::string& pods);

// --- Shared by the commands ------------------------------------------------

// The bytes of a file, or of standard input for "-".
absl::StatusOr<std::string> ReadInput(const std::string& file);
absl::StatusOr<Snapshot> ReadSnapshot(const std::string& file);

// Writes a whole file; `Reject`s it where that fails.
int WriteOutput(const std::string& file, const std::string& text);

// Prints `tessera: FILE: message` on standard error.
int Reject(std::string_view file, const absl::Status& status);

// A word on what takes long, on standard error, if that is a terminal.
void Progress(std::string_view what);

CycleResult RunPreset(const Snapshot& snapshot, const std::string& preset);
CheckPlanOptions RefereeOptions(const std::string& preset);

// The referees' findings on a cycle, one line each; empty: it is legal.
std::string RefereeFindings(const Snapshot& snapshot, const CycleResult& cycle,
                            const std::string& preset);

// Prints for every workload that waits after `cycle` who would have to yield for it.
int PrintRoom(const Snapshot& snapshot, const CycleResult& cycle, const std::string& preset);
// Prints why pods of workload `name` are evicted or moved in `cycle`; nothing if none is.
void ExplainYielding(const CycleResult& cycle, const std::string& name);
// Prints who would have to yield for workload `name`, and for whom it would have to.
int ExplainRoom(const Snapshot& snapshot, const CycleResult& cycle, const std::string& name,
                const std::string& preset);

// A table of all queues: quota, limit, demand, allocated, fair share.
std::string SharesTable(const Snapshot& snapshot, const FairShares& shares);

}  // namespace tessera::cli

#endif  // TESSERA_EXAMPLES_TESSERA_COMMANDS_H_
