#include "tessera/verify/check_victims.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "src/verify/judge_reclaim.h"
#include "src/verify/plan_replay.h"
#include "src/verify/text.h"
#include "src/verify/victim_units.h"

namespace tessera {
namespace {

// Evictions and moves, and whom they are for.
struct Deal {
  struct Lost {
    PodId pod;
    int action = 0;
    std::string reason;  // empty: moved
    std::string on_behalf_of;
  };
  WorkloadId claimant;  // invalid until something is placed
  std::vector<Lost> lost;
  std::set<PodId> evicted;
  ResourceVector gained;
  bool is_done = false;              // the claimant stands; what it gets besides is for the taking
  std::vector<ResourceVector> held;  // by queue, when it began
};

class VictimCheck {
 public:
  VictimCheck(const Snapshot& snapshot, const FairShares& shares, const VictimRules& rules,
              const CheckVictimsOptions& options)
      : snapshot_(snapshot),
        shares_(shares),
        rules_(rules),
        replay_options_{.mig_charge = rules.mig_charge,
                        .honour_nominations = options.honour_nominations},
        ignored_(1),
        replay_(snapshot, replay_options_, ignored_),
        violations_(options.max_violations),
        held_(static_cast<size_t>(snapshot.queues().size())) {
    for (int p = 0; p < snapshot.num_pods(); ++p) {
      if (replay_.is_up(PodId(p))) Hold(PodId(p), replay_.placement(PodId(p)), 1);
    }
    for (const ReleasingPod& leaving : snapshot.releasing()) ++disrupted_[workload_of(leaving.pod)];
    deal_.held = held_;
  }

  std::vector<PlanViolation> Run(const std::vector<Action>& actions) && {
    for (size_t i = 0; i < actions.size() && !violations_.full(); ++i) {
      action_ = static_cast<int>(i);
      std::visit([this](const auto& action) { Read(action); }, actions[i]);
    }
    Close();
    JudgeStale();
    return std::move(violations_).Take();
  }

 private:
  WorkloadId workload_of(PodId p) const {
    return snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
  }
  const Workload& workload(WorkloadId w) const { return snapshot_.workload(w); }

  ResourceVector ChargeOfPod(PodId p, const PodPlacement& placement) const {
    const RequestClassId c = snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class;
    return ChargeOf(snapshot_, c, placement, rules_.mig_charge);
  }

  void Hold(PodId p, const PodPlacement& placement, int count) {
    const ResourceVector charge = ChargeOfPod(p, placement) * count;
    for (QueueId q = snapshot_.info(workload_of(p)).queue; q.valid();
         q = snapshot_.queues().parent(q)) {
      held_[static_cast<size_t>(q.value())] += charge;
    }
  }

  // Lets the replay carry out `action`, and keeps account of the pod that it is about.
  template <typename ActionType>
  std::optional<PodId> Follow(const ActionType& action) {
    const std::optional<PodId> p = snapshot_.FindPod(action.pod);
    if (p && replay_.is_up(*p)) Hold(*p, replay_.placement(*p), -1);
    replay_(action);
    if (p && replay_.is_up(*p)) Hold(*p, replay_.placement(*p), 1);
    return p;
  }

  void Read(const EvictAction& action) {
    if (deal_.claimant.valid()) Close();
    const std::optional<PodId> p = Follow(action);
    if (!p) return;
    if (action.reason == kStaleReason) return ReadStale(*p, action_);
    deal_.lost.push_back({*p, action_, action.reason, action.on_behalf_of});
    deal_.evicted.insert(*p);
  }

  // For nobody's sake, so no deal. Whether the gang is below its minimum `CheckPlan` asks.
  void ReadStale(PodId p, int action) {
    stale_.insert(workload_of(p));
    const Workload& stale = workload(workload_of(p));
    const int64_t grace = stale.stale_grace.value_or(rules_.stale_grace);
    const int64_t below = snapshot_.now() - stale.stale_since.value_or(snapshot_.now());
    const auto succeeded = [](const Pod& pod) { return pod.phase == PodPhase::kSucceeded; };
    if (grace == kUnlimited || below < grace) {
      Report(action,
             absl::StrCat(stale.name, " has been below its minimum for ", below, " seconds only"));
    }
    if (std::ranges::any_of(stale.pods, succeeded)) {
      Report(action, absl::StrCat(stale.name, " has pods that succeeded"));
    }
    deal_.held = held_;
  }

  // Nothing of a gang that ends stays where it was.
  void JudgeStale() {
    for (WorkloadId w : stale_) {
      const WorkloadInfo& info = snapshot_.info(w);
      for (int i = info.first_pod; i < info.first_pod + info.num_pods; ++i) {
        const PodId p(i);
        const bool stays =
            snapshot_.pod_phase(p) == PodPhase::kRunning && replay_.phase(p) == PodPhase::kRunning;
        if (stays) Report(-1, absl::StrCat(NameOf(snapshot_, p), " stays of a gang that ends"));
      }
    }
  }

  void Read(const MoveAction& action) {
    if (deal_.claimant.valid()) Close();
    const std::optional<PodId> p = Follow(action);
    if (p) deal_.lost.push_back({*p, action_, "", ""});
  }

  void Read(const BindAction& action) { ReadPlacement(action); }
  void Read(const NominateAction& action) { ReadPlacement(action); }
  void Read(const DestroyAction& action) { replay_(action); }
  void Read(const SetMigAction& action) { replay_(action); }
  void Read(const CreateAction& action) { replay_(action); }

  template <typename ActionType>
  void ReadPlacement(const ActionType& action) {
    const std::optional<PodId> p = snapshot_.FindPod(action.pod);
    if (!p) return replay_(action);
    const WorkloadId w = workload_of(*p);
    if (deal_.claimant.valid() && deal_.claimant != w) Close();
    deal_.claimant = w;
    Follow(action);
    if (deal_.lost.empty() || deal_.is_done || !replay_.is_up(*p)) return;
    deal_.gained += ChargeOfPod(*p, replay_.placement(*p));
    const auto is_up = [this](PodId other) { return replay_.is_up(other); };
    deal_.is_done = IsWholeAfter({snapshot_, w, is_up, is_up});
  }

  void Close() {
    if (!deal_.lost.empty()) JudgeDeal();
    deal_ = Deal();
    deal_.held = held_;
  }

  void Report(int action, std::string text) { violations_.Add(action, std::move(text)); }

  void JudgeDeal() {
    std::set<WorkloadId> victims;
    for (const Deal::Lost& lost : deal_.lost) {
      const WorkloadId w = workload_of(lost.pod);
      victims.insert(w);
      ++disrupted_[w];
      JudgeRight(lost);
    }
    if (deal_.claimant.valid()) {
      const Workload& claimant = workload(deal_.claimant);
      const int64_t waited = std::max<int64_t>(snapshot_.now() - claimant.submitted, 0);
      if (waited < claimant.preemption_delay) {
        Report(-1, absl::StrCat("workload ", claimant.name,
                                ": others yield for it before its preemption delay is over"));
      }
    }
    for (WorkloadId w : victims) JudgeGang(w);
    JudgeReclaim();
  }

  void JudgeRight(const Deal::Lost& lost) {
    const Workload& victim = workload(workload_of(lost.pod));
    const std::string name = NameOf(snapshot_, lost.pod);
    if (!deal_.claimant.valid()) {
      return Report(lost.action, absl::StrCat(name, " yields, but nobody gets anything"));
    }
    const Workload& claimant = workload(deal_.claimant);
    const int64_t started = snapshot_.pod_started(lost.pod);
    if (started != INT64_MAX && snapshot_.now() - started < rules_.min_pod_runtime) {
      Report(lost.action, absl::StrCat(name, " has only just started"));
    }
    if (lost.reason.empty()) {
      if (!victim.is_movable()) Report(lost.action, absl::StrCat(name, " is not movable"));
      const bool others_lose = std::ranges::any_of(
          deal_.lost, [](const Deal::Lost& other) { return !other.reason.empty(); });
      if (!rules_.move_for_all && !claimant.is_preemptible() && !others_lose) {
        Report(lost.action,
               absl::StrCat(name, " moves for ", claimant.name, ", which is not preemptible"));
      }
      return;
    }
    if (lost.on_behalf_of != claimant.name) {
      return Report(lost.action, absl::StrCat(name, " is evicted for \"", lost.on_behalf_of,
                                              "\", but ", claimant.name, " gets its place"));
    }
    if (!victim.is_preemptible()) {
      Report(lost.action, absl::StrCat(name, " is not preemptible"));
    }
    const bool same_queue = victim.queue == claimant.queue;
    if (lost.reason == "preempt") {
      if (!same_queue) Report(lost.action, absl::StrCat(name, " is of another queue"));
      if (victim.priority >= claimant.priority) {
        Report(lost.action, absl::StrCat(name, " has priority ", victim.priority,
                                         ", which is not below ", claimant.priority));
      }
    } else if (lost.reason == "reclaim") {
      if (same_queue) Report(lost.action, absl::StrCat(name, " is of the same queue"));
    } else {
      Report(lost.action, absl::StrCat("\"", lost.reason, "\" is no reason to evict"));
    }
  }

  GangBeforeAfter StandingOf(WorkloadId w) const {
    const auto is_up = [this](PodId p) { return replay_.is_up(p); };
    const auto was_up = [this](PodId p) { return replay_.is_up(p) || deal_.evicted.contains(p); };
    return {snapshot_, w, was_up, is_up};
  }

  void JudgeGang(WorkloadId w) {
    const Workload& victim = workload(w);
    const auto most = victim.max_disrupted;
    if (most && disrupted_[w] > *most) {
      Report(-1, absl::StrCat("workload ", victim.name, ": ", disrupted_[w],
                              " pods are disrupted, at most ", *most, " may be"));
    }
    const GangBeforeAfter standing = StandingOf(w);
    const std::string why_not = WhyNotLegal(standing);
    if (!why_not.empty()) Report(-1, absl::StrCat("workload ", victim.name, ": ", why_not));
    if (IsProtected(w) && !LostOnlySurplus(standing)) {
      Report(-1,
             absl::StrCat("workload ", victim.name, ": loses its minimum within its min-runtime"));
    }
  }

  bool IsProtected(WorkloadId w) const {
    if (!deal_.claimant.valid()) return false;
    const QueueTree& tree = snapshot_.queues();
    QueueId q = snapshot_.info(w).queue;
    const QueueId other = snapshot_.info(deal_.claimant).queue;
    const bool reclaims = q != other;
    if (reclaims && rules_.reclaim_runtime == RuntimeScope::kCommonAncestor) {
      std::set<QueueId> above{QueueId()};
      for (QueueId at = other; at.valid(); at = tree.parent(at)) above.insert(at);
      while (!above.contains(tree.parent(q))) q = tree.parent(q);
    }
    std::optional<int64_t> least;
    for (; q.valid() && !least; q = tree.parent(q)) {
      least = reclaims ? tree.queue(q).reclaim_min_runtime : tree.queue(q).preempt_min_runtime;
    }
    std::optional<int64_t> first;
    for (const Pod& pod : workload(w).pods) {
      const bool counts = pod.phase == PodPhase::kRunning && pod.started;
      if (counts && (!first || *pod.started < *first)) first = pod.started;
    }
    return least && first && snapshot_.now() - *first < *least;
  }

  void JudgeReclaim() {
    if (!deal_.claimant.valid()) return;
    ReclaimDeal reclaim;
    reclaim.claimant = snapshot_.info(deal_.claimant).queue;
    reclaim.gained = deal_.gained;
    std::set<WorkloadId> losers;
    for (const Deal::Lost& lost : deal_.lost) {
      if (!lost.reason.empty()) losers.insert(workload_of(lost.pod));
    }
    for (WorkloadId w : losers) {
      const QueueId q = snapshot_.info(w).queue;
      for (const std::vector<PodId>& unit : UnitsOf(StandingOf(w))) {
        ResourceVector charge;
        // An evicted pod is where the snapshot says.
        for (PodId p : unit) charge += ChargeOfPod(p, snapshot_.pod_placement(p));
        (q == reclaim.claimant ? reclaim.preempted : reclaim.units).emplace_back(q, charge);
      }
    }
    if (reclaim.units.empty()) {
      if (reclaim.preempted.empty() || !rules_.preempt_within_share) return;
      for (std::string& problem : WhyNotPreempted(snapshot_.queues(), snapshot_.resources(),
                                                  shares_, deal_.held, reclaim)) {
        Report(-1, absl::StrCat("preemption for ", workload(deal_.claimant).name, ": ", problem));
      }
      return;
    }
    for (std::string& problem : WhyNotReclaimed(snapshot_.queues(), snapshot_.resources(), shares_,
                                                rules_.reclaim, deal_.held, reclaim)) {
      Report(-1, absl::StrCat("reclaim for ", workload(deal_.claimant).name, ": ", problem));
    }
  }

  const Snapshot& snapshot_;
  const FairShares& shares_;
  const VictimRules& rules_;
  const CheckPlanOptions replay_options_;
  ViolationList ignored_;
  PlanReplay replay_;
  ViolationList violations_;
  std::vector<ResourceVector> held_;  // by queue
  std::map<WorkloadId, int> disrupted_;
  std::set<WorkloadId> stale_;
  Deal deal_;
  int action_ = 0;
};

}  // namespace

std::vector<PlanViolation> CheckVictims(const Snapshot& snapshot, const Plan& plan,
                                        const FairShares& shares, const VictimRules& rules,
                                        const CheckVictimsOptions& options) {
  return VictimCheck(snapshot, shares, rules, options).Run(plan.actions);
}

}  // namespace tessera
