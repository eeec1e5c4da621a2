#include "src/schedule/pending_report.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tessera/placement/diagnosis.h"
#include "tessera/placement/near_miss.h"
#include "tessera/resources/quantity.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

// Nodes read for near misses, over all that wait.
constexpr int64_t kNodesLookedAt = 1000000;

// An amount with its unit, for sentences.
std::string Amount(const Snapshot& snapshot, int r, int64_t amount) {
  if (r == kCpu) return FormatQuantity(amount, kMillisPerCore, Rounding::kUp) + " cores";
  if (r == kMemory || r == kGpuMemory) {
    return FormatBytes(amount) + (r == kMemory ? " of memory" : " of GPU memory");
  }
  const std::string_view model = snapshot.resources().gpu_model(r);
  if (r != kGpu && model.empty()) return absl::StrCat(amount, " ", snapshot.resources().name(r));
  const std::string unit = model.empty() ? " GPU" : " GPU of " + std::string(model);
  return FormatQuantity(amount, kGpuUnitsPerDevice, Rounding::kUp) + unit;
}

// What of a workload is missing.
struct Missing {
  int placeable = 0;  // pending pods
  int releasing = 0;
  int failed = 0;
};

Missing CountMissing(const ClusterState& state, WorkloadId w) {
  const Snapshot& snapshot = state.snapshot();
  const WorkloadInfo& info = snapshot.info(w);
  Missing missing;
  for (int i = info.first_pod; i < info.first_pod + info.num_pods; ++i) {
    const PodId p(i);
    if (state.is_placed(p)) continue;
    const PodPhase phase = snapshot.pod_phase(p);
    missing.releasing += phase == PodPhase::kReleasing ? 1 : 0;
    missing.failed += phase == PodPhase::kFailed ? 1 : 0;
    missing.placeable += MayPlace(state, p) ? 1 : 0;
  }
  return missing;
}

// What is bounded, and by what, for sentences.
struct BoundWords {
  std::string_view held;
  std::string_view bound;
};

BoundWords WordsOf(QuotaBound by) {
  switch (by) {
    case QuotaBound::kLimit:
      return {"holds ", "limit"};
    case QuotaBound::kQuota:
      return {"holds non-preemptibly ", "quota"};
    case QuotaBound::kBorrowingLimit:
      return {"has borrowed ", "borrowing limit"};
    case QuotaBound::kLending:
      return {"lends ", "lendable amount"};
  }
  return {};
}

std::string NameOf(const Snapshot& snapshot, const QuotaRefusal& refusal, bool quoted) {
  if (!refusal.queue.valid()) return "the cluster";
  const std::string quote = quoted ? "\"" : "";
  return absl::StrCat("queue ", quote, snapshot.queues().queue(refusal.queue).name, quote);
}

void ExplainRefusal(const Snapshot& snapshot, const QuotaRefusal& refusal, int pods,
                    PendingWorkload& pending) {
  pending.reason =
      refusal.by == QuotaBound::kQuota ? PendingReason::kQuota : PendingReason::kQueueLimit;
  pending.text = Describe(snapshot, refusal);
  pending.counts[absl::StrCat("pods over the ", std::string(WordsOf(refusal.by).bound), " of ",
                              NameOf(snapshot, refusal, false))] = pods;
}

}  // namespace

std::string Describe(const Snapshot& snapshot, const QuotaRefusal& refusal) {
  const BoundWords words = WordsOf(refusal.by);
  const auto amount = [&](int64_t value) { return Amount(snapshot, refusal.resource, value); };
  return absl::StrCat(NameOf(snapshot, refusal, true), " ", std::string(words.held),
                      amount(refusal.held), "; ", amount(refusal.asked), " more would exceed its ",
                      std::string(words.bound), " of ", amount(refusal.bound));
}

std::vector<PendingWorkload> ReportPending(const ClusterState& state,
                                           const std::vector<std::optional<Attempt>>& attempts) {
  const Snapshot& snapshot = state.snapshot();
  // Pod sets of one request class share a census unless more than the request
  // decides; then each has its own.
  absl::flat_hash_map<int, NodeCensus> by_class;
  const auto census_of = [&](PodSetId s) -> NodeCensus {
    if (!s.valid()) return {};
    const PodSetInfo& set = snapshot.pod_set(s);
    if (state.tables().tracks_tenants() || set.max_per_node > 0) return CountNodes(state, s);
    const auto [it, inserted] = by_class.try_emplace(set.request_class.value());
    if (inserted) it->second = CountNodes(state, s);
    return it->second;
  };
  // A near miss costs a look at every node; the first that wait get theirs.
  NearMissFinder finder(state);
  int64_t nodes_left = kNodesLookedAt;
  const auto nearest_of = [&](WorkloadId w) -> std::optional<NearMiss> {
    const int64_t cost = int64_t{snapshot.num_nodes()} * snapshot.info(w).num_pod_sets;
    if (IsWhole(state, w) || cost > nodes_left) return std::nullopt;
    nodes_left -= cost;
    std::optional<NearMiss> miss = finder.Find(w);
    // That nothing fits, and that nothing would help, the counts say already.
    const bool mute = miss && miss->level < 0 && miss->fits == 0 && miss->free.empty();
    return mute ? std::nullopt : miss;
  };
  std::vector<PendingWorkload> report;
  for (int i = 0; i < snapshot.num_workloads(); ++i) {
    const WorkloadId w(i);
    const Missing missing = CountMissing(state, w);
    const bool whole = IsWhole(state, w);
    if (missing.placeable + missing.releasing == 0 && (whole || missing.failed == 0)) continue;
    const std::optional<Attempt>& attempt = attempts[static_cast<size_t>(i)];
    PendingWorkload pending;
    pending.workload = snapshot.workload(w).name;
    pending.below_minimum = !whole;
    if (attempt && attempt->refusal) {
      ExplainRefusal(snapshot, *attempt->refusal, missing.placeable, pending);
    } else if (attempt && !attempt->search.placed()) {
      pending =
          Diagnose(state, w, attempt->search, census_of(attempt->search.stuck_at), nearest_of(w));
    } else if (missing.releasing > 0) {
      pending.reason = PendingReason::kReleasing;
      pending.text = absl::StrCat("waits for ", missing.releasing, " of its own pods to end");
    } else {
      pending.reason = PendingReason::kFailedPods;
      pending.text = absl::StrCat(missing.failed, " failed pods leave too few for the minimum");
    }
    if (missing.releasing > 0) pending.counts["releasing pods"] = missing.releasing;
    if (missing.failed > 0) pending.counts["failed pods"] = missing.failed;
    if (pending.counts.empty()) pending.counts["pods"] = missing.placeable;
    report.push_back(std::move(pending));
  }
  return report;
}

}  // namespace tessera
