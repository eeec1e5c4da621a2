// `tessera shares` and `tessera import-openb`.

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "examples/tessera/commands.h"
#include "tessera/io/openb.h"
#include "tessera/io/shares_json.h"
#include "tessera/io/snapshot_json.h"

namespace tessera::cli {
namespace {

FairShares SharesBy(const Snapshot& snapshot, const std::string& preset) {
  if (preset != "kai") return DivideFairShares(snapshot);
  const CycleRules rules = KaiCompatible().rules;
  return DivideFairShares(snapshot, rules.usage, KaiDivision(), rules.division);
}

double Devices(int64_t gpu_units) {
  return static_cast<double>(gpu_units) / static_cast<double>(kGpuUnitsPerDevice);
}

std::vector<QueueId> Leaves(const QueueTree& tree) {
  std::vector<QueueId> leaves;
  for (int q = 0; q < tree.size(); ++q) {
    if (tree.is_leaf(QueueId(q))) leaves.push_back(QueueId(q));
  }
  return leaves;
}

// GPUs of every leaf as a bar: held `#`, deserved up to `|`, wanted up to `.`.
void PrintBars(const Snapshot& snapshot, const FairShares& shares) {
  constexpr double kColumns = 60;
  const double capacity = std::max(Devices(shares.capacity[kGpu]), 1.0);
  const auto column = [&](int64_t units) {
    return static_cast<int>(std::min(Devices(units) / capacity, 1.0) * kColumns + 0.5);
  };
  double sum = 0, squares = 0;
  int wanting = 0;
  std::printf("\nGPUs: # held, | deserved, . wanted; the width is the cluster (%.4g GPUs)\n",
              capacity);
  for (QueueId q : Leaves(snapshot.queues())) {
    const QueueShare& share = shares.of(q);
    std::string bar(static_cast<size_t>(kColumns) + 1, ' ');
    for (int i = 0; i < column(share.demand[kGpu]); ++i) bar[static_cast<size_t>(i)] = '.';
    for (int i = 0; i < column(share.allocated[kGpu]); ++i) bar[static_cast<size_t>(i)] = '#';
    bar[static_cast<size_t>(column(share.fair_share[kGpu]))] = '|';
    std::printf("  %-20s %s\n", snapshot.queues().queue(q).name.c_str(), bar.c_str());
    if (share.fair_share[kGpu] <= 0) continue;
    const double met = Devices(share.allocated[kGpu]) / Devices(share.fair_share[kGpu]);
    sum += met;
    squares += met * met;
    ++wanting;
  }
  if (squares > 0) {
    std::printf("Jain index of held / deserved over %d queues: %.3f (1 is equal)\n", wanting,
                sum * sum / (wanting * squares));
  }
}

void PrintComparison(const Snapshot& snapshot, const FairShares& shares, const std::string& preset,
                     const std::string& compare) {
  const FairShares other = SharesBy(snapshot, compare);
  std::printf("\nFair share of GPUs  %10s %10s\n", preset.c_str(), compare.c_str());
  for (QueueId q : Leaves(snapshot.queues())) {
    std::printf("  %-18s %9.4g %10.4g\n", snapshot.queues().queue(q).name.c_str(),
                Devices(shares.of(q).fair_share[kGpu]), Devices(other.of(q).fair_share[kGpu]));
  }
}

}  // namespace

int RunShares(const std::string& file, const std::string& preset, const std::string& compare,
              bool json) {
  const absl::StatusOr<Snapshot> snapshot = ReadSnapshot(file);
  if (!snapshot.ok()) return Reject(file, snapshot.status());
  const FairShares shares = SharesBy(*snapshot, preset);
  if (json) {
    std::fputs(WriteShares(*snapshot, shares).c_str(), stdout);
    return kPlanned;
  }
  std::fputs(SharesTable(*snapshot, shares).c_str(), stdout);
  PrintBars(*snapshot, shares);
  if (!compare.empty()) PrintComparison(*snapshot, shares, preset, compare);
  return kPlanned;
}

int RunImportOpenb(const std::string& nodes_file, const std::string& pods_file) {
  Progress("reading the trace");
  const absl::StatusOr<std::string> nodes = ReadInput(nodes_file);
  if (!nodes.ok()) return Reject(nodes_file, nodes.status());
  const absl::StatusOr<std::string> pods = ReadInput(pods_file);
  if (!pods.ok()) return Reject(pods_file, pods.status());
  absl::StatusOr<SnapshotSpec> spec = ImportOpenb(*nodes, *pods);
  if (!spec.ok()) return Reject(absl::StrCat(nodes_file, " and ", pods_file), spec.status());
  const absl::StatusOr<Snapshot> snapshot = Snapshot::Create(*std::move(spec));
  if (!snapshot.ok()) return Reject(pods_file, snapshot.status());
  std::fputs(WriteSnapshot(*snapshot).c_str(), stdout);
  return kPlanned;
}

}  // namespace tessera::cli
