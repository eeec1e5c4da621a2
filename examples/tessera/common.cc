#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "examples/tessera/commands.h"
#include "tessera/base/status.h"
#include "tessera/io/snapshot_json.h"
#include "tessera/resources/quantity.h"
#include "tessera/resources/units.h"
#include "tessera/verify/check_shares.h"

namespace tessera::cli {
namespace {

std::string Amount(const ResourceSpace& resources, int r, int64_t amount) {
  if (amount == kUnlimited) return "-";
  if (r == kMemory || r == kGpuMemory) return FormatBytes(amount);
  const bool is_gpu = resources.counts_gpus(r);
  const int64_t scale = r == kCpu ? kMillisPerCore : is_gpu ? kGpuUnitsPerDevice : 1;
  return absl::StrFormat("%.4g", static_cast<double>(amount) / static_cast<double>(scale));
}

// Whether any queue wants or is promised some of `r`.
bool IsWorthARow(const Snapshot& snapshot, const FairShares& shares, int r) {
  if (r == kPods) return false;
  for (int q = 0; q < snapshot.queues().size(); ++q) {
    if (shares.of(QueueId(q)).demand[r] > 0) return true;
  }
  return false;
}

void AppendQueue(const Snapshot& snapshot, const FairShares& shares, QueueId q,
                 std::string& table) {
  const QueueTree& tree = snapshot.queues();
  const QueueShare& share = shares.of(q);
  const DominantShare dominant =
      DominantShareOf(snapshot.resources(), share.allocated, shares.capacity);
  std::string name = std::string(static_cast<size_t>(2 * tree.depth(q)), ' ') + tree.queue(q).name;
  for (int r = 0; r < snapshot.resources().size(); ++r) {
    if (!IsWorthARow(snapshot, shares, r)) continue;
    const auto amount = [&](int64_t value) { return Amount(snapshot.resources(), r, value); };
    const bool over = share.allocated[r] > share.fair_share[r];
    std::string note = over ? "over its share" : "";
    if (r == dominant.resource && dominant.share > 0) {
      absl::StrAppend(&note, note.empty() ? "" : ", ",
                      absl::StrFormat("dominant: %.1f %% of all", 100 * dominant.share));
    }
    absl::StrAppendFormat(&table, "  %-20s %-12s %9s %9s %10s %10s %10s  %s\n", name,
                          snapshot.resources().name(r), amount(tree.quota(q)[r]),
                          amount(tree.limit(q)[r]), amount(share.demand[r]),
                          amount(share.allocated[r]), amount(share.fair_share[r]), note);
    name.clear();
  }
  for (QueueId child : tree.children(q)) AppendQueue(snapshot, shares, child, table);
}

}  // namespace

absl::StatusOr<std::string> ReadInput(const std::string& file) {
  std::ifstream opened;
  if (file != "-") {
    opened.open(file, std::ios::binary);
    if (!opened) return absl::NotFoundError("cannot be opened");
  }
  std::istream& in = file == "-" ? std::cin : opened;
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) return absl::NotFoundError("cannot be read");
  return text;
}

absl::StatusOr<Snapshot> ReadSnapshot(const std::string& file) {
  Progress("reading the snapshot");
  TESSERA_ASSIGN_OR_RETURN(const std::string text, ReadInput(file));
  return ParseSnapshot(text);
}

int WriteOutput(const std::string& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  return out ? static_cast<int>(kPlanned) : Reject(file, absl::UnknownError("cannot be written"));
}

int Reject(std::string_view file, const absl::Status& status) {
  const std::string name = file == "-" ? "standard input" : std::string(file);
  std::fprintf(stderr, "tessera: %s: %s\n", name.c_str(),
               std::string(ToStd(status.message())).c_str());
  return kRejected;
}

void Progress(std::string_view what) {
  if (isatty(STDERR_FILENO) != 0) {
    std::fprintf(stderr, "tessera: %s ...\n", std::string(what).c_str());
  }
}

CycleResult RunPreset(const Snapshot& snapshot, const std::string& preset) {
  Progress("planning");
  return preset == "kai" ? Schedule(snapshot, KaiCompatible()) : Schedule(snapshot);
}

CheckPlanOptions RefereeOptions(const std::string& preset) {
  if (preset != "kai") return {};
  const UsagePolicy usage = KaiCompatible().rules.usage;
  return {.mig_charge = usage.mig_charge, .honour_nominations = usage.honour_nominations};
}

std::string RefereeFindings(const Snapshot& snapshot, const CycleResult& cycle,
                            const std::string& preset) {
  Progress("checking the plan");
  std::string findings;
  for (const PlanViolation& v : CheckPlan(snapshot, cycle.plan, RefereeOptions(preset))) {
    absl::StrAppend(&findings, v.action < 0 ? "" : absl::StrCat("actions[", v.action, "]: "),
                    v.text, "\n");
  }
  // KAI's division is known not to keep these rules.
  if (preset == "kai") return findings;
  for (const std::string& text :
       CheckShares(snapshot.queues(), snapshot.resources(), cycle.shares)) {
    absl::StrAppend(&findings, text, "\n");
  }
  return findings;
}

std::string SharesTable(const Snapshot& snapshot, const FairShares& shares) {
  std::string table = absl::StrFormat("  %-20s %-12s %9s %9s %10s %10s %10s\n", "queue", "resource",
                                      "quota", "limit", "demand", "allocated", "fair share");
  for (QueueId q : snapshot.queues().children(QueueId())) {
    AppendQueue(snapshot, shares, q, table);
  }
  return table;
}

}  // namespace tessera::cli
