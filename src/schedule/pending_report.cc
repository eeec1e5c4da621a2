#include "src/schedule/pending_report.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tessera/cluster/certificate.h"
#include "tessera/placement/diagnosis.h"
#include "tessera/placement/near_miss.h"

namespace tessera {
namespace {

// Work for near misses and proofs in nodes read, over all that wait: so many at least, and
// so many times all nodes. And what it takes to find which pods are in the way, in the
// same measure.
constexpr int64_t kNodesLookedAt = 100000;
constexpr int64_t kLooksAtAllNodes = 64;
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

// What is known of a gang that found no place.
struct Finding {
  std::optional<NearMiss> nearest;
  std::optional<RoomShortage> proof;
};

// What the state says about pod sets and gangs that found no place. Equal requests
// share what it says.
class Findings {
 public:
  explicit Findings(const ClusterState& state)
      : state_(state),
        snapshot_(state.snapshot()),
        finder_(state),
        nodes_left_(kNodesLookedAt + kLooksAtAllNodes * snapshot_.num_nodes()) {}

  NodeCensus CensusOf(PodSetId s) {
    if (!s.valid()) return {};
    const PodSetInfo& set = snapshot_.pod_set(s);
    if (set.is_spread()) return CountNodes(state_, s);
    const std::string key = absl::StrCat(set.request_class.value(), TenantKey(set.workload));
    const auto [it, inserted] = by_class_.try_emplace(key);
    if (inserted) it->second = CountNodes(state_, s);
    return it->second;
  }

  // It costs a look at every node; the first that wait get theirs.
  Finding NearestOf(WorkloadId w) {
    if (IsWhole(state_, w)) return {};
    const std::string key = KeyOf(w);
    if (const auto known = by_gang_.find(key); known != by_gang_.end())
      return For(w, known->second);
    const int64_t cost =
        int64_t{snapshot_.num_nodes()} * snapshot_.info(w).num_pod_sets + kCostOfFreeing;
    if (cost > nodes_left_) return {};
    nodes_left_ -= cost;
    Finding found{finder_.Find(w), finder_.Certify(w)};
    if (!key.empty()) by_gang_.emplace(key, std::pair(w, found));
    return found;
  }

 private:
  using Known = std::pair<WorkloadId, Finding>;

  // The pod sets of `w` in place of those of the equal gang that was looked at.
  Finding For(WorkloadId w, const Known& known) const {
    const int shift = snapshot_.info(w).first_pod_set - snapshot_.info(known.first).first_pod_set;
    Finding found = known.second;
    const auto move = [shift](PodSetId& s) { s = PodSetId(s.value() + shift); };
    if (found.nearest) move(found.nearest->pod_set);
    if (!found.proof) return found;
    for (Shortfall& shortfall : found.proof->domains) move(shortfall.pod_set);
    return found;
  }

  // Whatever makes a difference between tenants.
  std::string TenantKey(WorkloadId w) const {
    if (!state_.tables().tracks_tenants()) return "";
    const int isolation = static_cast<int>(snapshot_.workload(w).isolation);
    return absl::StrCat("T", snapshot_.info(w).tenant, "i", isolation);
  }

  // Equal for gangs of which the same can be said but for names; empty if something of
  // `w` is in the cluster already.
  std::string KeyOf(WorkloadId w) const {
    const WorkloadInfo& info = snapshot_.info(w);
    for (int i = info.first_pod; i < info.first_pod + info.num_pods; ++i) {
      if (state_.is_placed(PodId(i)) || snapshot_.pod_phase(PodId(i)) == PodPhase::kReleasing) {
        return "";
      }
    }
    std::string key = TenantKey(w);
    for (const GangNode& node : snapshot_.gang(w)) {
      absl::StrAppend(&key, ";", node.parent, "r", node.required_level, "a", node.after, "k",
                      node.min_children);
      if (!node.is_pod_set()) continue;
      const PodSetId s(info.first_pod_set + node.pod_set);
      const PodSetInfo& set = snapshot_.pod_set(s);
      absl::StrAppend(&key, "c", set.request_class.value(), "m", set.min_count - state_.standing(s),
                      "p", state_.placeable(s), "n", set.max_per_node, "d", set.max_per_domain, "l",
                      set.domain_level);
    }
    return key;
  }

  const ClusterState& state_;
  const Snapshot& snapshot_;
  absl::flat_hash_map<std::string, NodeCensus> by_class_;
  absl::flat_hash_map<std::string, Known> by_gang_;
  NearMissFinder finder_;
  int64_t nodes_left_;
};

// The diagnosis of a gang that found no place.
PendingWorkload ExplainFailure(const ClusterState& state, WorkloadId w, const GangPlacement& search,
                               Findings& findings) {
  const Finding found = findings.NearestOf(w);
  // That nothing fits, and that nothing would help, the counts say already.
  const bool mute = found.nearest && found.nearest->level < 0 && found.nearest->fits == 0 &&
                    found.nearest->free.empty();
  PendingWorkload pending = Diagnose(state, w, search, findings.CensusOf(search.stuck_at),
                                     mute ? std::nullopt : found.nearest);
  if (found.proof) pending.proof = Describe(state, *found.proof);
  return pending;
}

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
    } else if (attempt && !attempt->kept_from.empty()) {
      pending.reason = PendingReason::kHeld;
      pending.text = absl::StrCat("would fit, but places are held for workload \"",
                                  attempt->kept_from, "\", which has waited beyond patience");
    } else if (attempt && !attempt->search.placed()) {
      pending = ExplainFailure(state, w, attempt->search, findings);
      if (attempt->may_not_claim) {
        absl::StrAppend(&pending.text,
                        "; nobody yields for it in this cycle, as the next one would undo that");
      }
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
