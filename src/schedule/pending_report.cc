#include "src/schedule/pending_report.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tessera/cluster/certificate.h"
#include "tessera/placement/diagnosis.h"
#include "tessera/placement/near_miss.h"

namespace tessera {
namespace {

// Work for near misses in nodes read, over all that wait; and what it takes to find
// which pods are in the way, in the same measure.
constexpr int64_t kNodesLookedAt = 100000;
constexpr int64_t kCostOfFreeing = 1000;

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

// What the state says about pod sets and gangs that found no place.
class Findings {
 public:
  explicit Findings(const ClusterState& state) : state_(state), finder_(state) {}

  // Pod sets of one request class share a census unless more than the request
  // decides; then each has its own.
  NodeCensus CensusOf(PodSetId s) {
    if (!s.valid()) return {};
    const PodSetInfo& set = state_.snapshot().pod_set(s);
    if (state_.tables().tracks_tenants() || set.is_spread()) return CountNodes(state_, s);
    const auto [it, inserted] = by_class_.try_emplace(set.request_class.value());
    if (inserted) it->second = CountNodes(state_, s);
    return it->second;
  }

  // It costs a look at every node; the first that wait get theirs.
  std::optional<NearMiss> NearestOf(WorkloadId w) {
    const Snapshot& snapshot = state_.snapshot();
    const int64_t cost =
        int64_t{snapshot.num_nodes()} * snapshot.info(w).num_pod_sets + kCostOfFreeing;
    if (IsWhole(state_, w) || cost > nodes_left_) return std::nullopt;
    nodes_left_ -= cost;
    std::optional<NearMiss> miss = finder_.Find(w);
    // That nothing fits, and that nothing would help, the counts say already.
    const bool mute = miss && miss->level < 0 && miss->fits == 0 && miss->free.empty();
    return mute ? std::nullopt : miss;
  }

 private:
  const ClusterState& state_;
  absl::flat_hash_map<int, NodeCensus> by_class_;
  NearMissFinder finder_;
  int64_t nodes_left_ = kNodesLookedAt;
};

}  // namespace

std::string Describe(const Snapshot& snapshot, const QuotaRefusal& refusal) {
  const BoundWords words = WordsOf(refusal.by);
  const auto amount = [&](int64_t value) {
    return AmountOf(snapshot.resources().name(refusal.resource), value);
  };
  return absl::StrCat(NameOf(snapshot, refusal, true), " ", std::string(words.held),
                      amount(refusal.held), "; ", amount(refusal.asked), " more would exceed its ",
                      std::string(words.bound), " of ", amount(refusal.bound));
}

std::vector<PendingWorkload> ReportPending(const ClusterState& state,
                                           const std::vector<std::optional<Attempt>>& attempts) {
  const Snapshot& snapshot = state.snapshot();
  Findings findings(state);
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
      pending = Diagnose(state, w, attempt->search, findings.CensusOf(attempt->search.stuck_at),
                         findings.NearestOf(w));
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
