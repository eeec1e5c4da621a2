#include "tessera/schedule/placeable_replicas.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/schedule/ledger_account.h"
#include "src/schedule/pending_report.h"
#include "tessera/base/status.h"
#include "tessera/placement/diagnosis.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 6> kBounds = {"none",           "quota",    "room",
                                                     "quota_and_room", "own_pods", "undecided"};

// Lets pods of some pod sets pass to `inner`, or free of charge, and no others.
class FilterAccount : public Account {
 public:
  FilterAccount(const Snapshot& snapshot, const std::vector<PodSetId>& allowed, Account* inner)
      : snapshot_(snapshot), allowed_(allowed), inner_(inner) {}

  bool Charge(PodId p, const PodPlacement& placement) override {
    if (std::ranges::find(allowed_, snapshot_.pod_set_of(p)) == allowed_.end()) return false;
    return inner_ == nullptr || inner_->Charge(p, placement);
  }
  size_t GetMark() const override { return inner_ == nullptr ? 0 : inner_->GetMark(); }
  void RollBack(size_t mark) override {
    if (inner_ != nullptr) inner_->RollBack(mark);
  }

 private:
  const Snapshot& snapshot_;
  const std::vector<PodSetId>& allowed_;
  Account* const inner_;
};

class Capper {
 public:
  Capper(const Snapshot& snapshot, WorkloadId w, const ServiceShape& shape,
         const ReplicaCounts& wanted, const PlaceableOptions& options, PodFinder find)
      : snapshot_(snapshot),
        w_(w),
        shape_(shape),
        wanted_(wanted),
        options_(options),
        find_(find),
        state_(std::make_shared<const StateTables>(snapshot), InitialPods()),
        ledger_(snapshot.queues(), MeasureUsage(snapshot, options.usage),
                TotalCapacity(snapshot, options.usage.mig_charge)),
        account_(snapshot, options.usage.mig_charge, ledger_, snapshot.info(w).queue,
                 is_preemptible()) {
    const WorkloadInfo& info = snapshot.info(w);
    for (int s = info.first_pod_set; s < info.first_pod_set + info.num_pod_sets; ++s) {
      sets_.emplace(snapshot.pod_set_spec(PodSetId(s)).name, PodSetId(s));
    }
  }

  PlaceableReplicas Cap() && {
    const GangPlacement base = PlaceGang(state_, w_, find_, {&account_, options_.gang_budget});
    if (base.placed()) {
      NotePlaced(base.pods);
      GrowAll();
      for (EngineRole role : kEngineRoles) OfRole(result_.counts, role) = Standing(role);
      for (EngineRole role : kEngineRoles) {
        const bool all = OfRole(result_.counts, role) == OfRole(wanted_, role);
        if (!all) OfRole(result_, role) = BoundOf(role);
      }
      return std::move(result_);
    }
    const RoleBound bound = BoundOfBase(base);
    for (EngineRole role : kEngineRoles) {
      OfRole(result_.counts, role) = Standing(role);
      if (OfRole(wanted_, role) > 0) OfRole(result_, role) = bound;
    }
    return std::move(result_);
  }

 private:
  bool is_preemptible() const { return snapshot_.workload(w_).is_preemptible(); }
  QueueId leaf() const { return snapshot_.info(w_).queue; }

  void NotePlaced(const std::vector<PodId>& pods) {
    for (PodId p : pods) result_.placed.push_back(snapshot_.pod_ref(p));
    state_.Commit();
    ledger_.Commit();
  }

  void GrowAll() {
    while (true) {
      const GangPlacement more = GrowGang(state_, w_, find_, {&account_, options_.gang_budget});
      if (more.pods.empty()) return;
      NotePlaced(more.pods);
    }
  }

  // The pod sets of engine `index`; of all engines, where they are one pod each.
  std::vector<PodSetId> SetsOf(EngineRole role, int64_t index) const {
    if (OfRole(shape_, role).pods == 1) return {sets_.at(std::string(ToString(role)))};
    const std::string name = EngineName(role, index);
    return {sets_.at(name + "-leader"), sets_.at(name + "-worker")};
  }

  bool IsComplete(EngineRole role, int64_t index) const {
    return std::ranges::all_of(SetsOf(role, index), [this](PodSetId s) {
      return state_.standing(s) == snapshot_.pod_set(s).count;
    });
  }

  // Engines that run, or have found a place.
  int64_t Standing(EngineRole role) const {
    const int64_t wanted = OfRole(wanted_, role);
    if (wanted == 0) return 0;
    if (OfRole(shape_, role).pods == 1) return state_.standing(SetsOf(role, 0).front());
    int64_t standing = 0;
    for (int64_t i = 0; i < wanted; ++i) standing += IsComplete(role, i) ? 1 : 0;
    return standing;
  }

  // What `pods` pods of `s` are expected to cost.
  ResourceVector ExpectedOf(PodSetId s, int pods) const {
    const RequestClassId c = snapshot_.pod_set(s).request_class;
    return ExpectedCharge(snapshot_, c, options_.usage.mig_charge) * pods;
  }

  RoleBound BoundOfBase(const GangPlacement& refused) {
    ResourceVector lacking;
    for (const auto& [name, s] : sets_) {
      if (!IsInBase(name)) continue;
      lacking += ExpectedOf(s, std::max(snapshot_.pod_set(s).min_count - state_.standing(s), 0));
    }
    ClusterState trial = state_;
    const GangPlacement unpaid = PlaceGang(trial, w_, find_, {nullptr, options_.gang_budget});
    const PodSetId stuck = unpaid.placed() ? refused.stuck_at : unpaid.stuck_at;
    return Judge(unpaid, lacking, refused, stuck);
  }

  // Whether the base waits for pod set `name`: scaled engines are beside it.
  bool IsInBase(const std::string& name) const {
    const ReplicaCounts base = BaseCounts(shape_, wanted_);
    for (EngineRole role : kEngineRoles) {
      if (OfRole(wanted_, role) == 0 || OfRole(shape_, role).pods == 1) continue;
      for (int64_t i = OfRole(base, role); i < OfRole(wanted_, role); ++i) {
        const std::string engine = EngineName(role, i);
        if (name == engine + "-leader" || name == engine + "-worker") return false;
      }
    }
    return true;
  }

  RoleBound BoundOf(EngineRole role) {
    int64_t next = 0;
    while (OfRole(shape_, role).pods > 1 && IsComplete(role, next)) ++next;
    const std::vector<PodSetId> engine = SetsOf(role, next);
    ResourceVector lacking;
    for (PodSetId s : engine) {
      const int all =
          OfRole(shape_, role).pods == 1 ? state_.standing(s) + 1 : snapshot_.pod_set(s).count;
      lacking += ExpectedOf(s, all - state_.standing(s));
    }
    std::vector<PodSetId> role_sets;
    for (int64_t i = next; i < OfRole(wanted_, role); ++i) {
      for (PodSetId s : SetsOf(role, i)) role_sets.push_back(s);
      if (OfRole(shape_, role).pods == 1) break;
    }
    const auto grow = [&](Account* inner) {
      FilterAccount only_role(snapshot_, role_sets, inner);
      ClusterState trial = state_;
      GangPlacement grown = GrowGang(trial, w_, find_, {&only_role, options_.gang_budget});
      if (grown.pods.empty() && grown.placed()) grown.outcome = SearchOutcome::kFailedPods;
      const bool is_ours = std::ranges::find(role_sets, grown.stuck_at) != role_sets.end();
      const bool is_about_others = grown.outcome == SearchOutcome::kRefused && !is_ours;
      if (is_about_others) grown.outcome = SearchOutcome::kNoRoom;
      return grown;
    };
    return Judge(grow(nullptr), lacking, grow(&account_), engine.back());
  }

  // `unpaid` is the search without the queues, `refused` that with them; `lacking` is what
  // is asked of them, and `stuck` the pod set to count the nodes for.
  RoleBound Judge(const GangPlacement& unpaid, const ResourceVector& lacking,
                  const GangPlacement& refused, PodSetId stuck) {
    RoleBound result;
    result.refusal = ledger_.Check(leaf(), lacking, is_preemptible());
    if (!result.refusal && refused.outcome == SearchOutcome::kRefused) {
      result.refusal = account_.refusal();
    }
    GangPlacement search = unpaid;
    search.stuck_at = stuck;
    if (unpaid.placed() && !result.refusal) search.outcome = SearchOutcome::kBudgetExhausted;
    const std::string why = Diagnose(state_, w_, search, CountNodes(state_, stuck)).text;
    switch (search.outcome) {
      case SearchOutcome::kBudgetExhausted:
        return {ReplicaBound::kUndecided, std::nullopt, why};
      case SearchOutcome::kFailedPods:
      case SearchOutcome::kAwaitsItsPlace:
        return {ReplicaBound::kOwnPods, std::nullopt, why};
      default:
        break;
    }
    if (result.refusal) result.text = Describe(snapshot_, *result.refusal);
    if (unpaid.placed()) {
      result.bound = ReplicaBound::kQuota;
      return result;
    }
    result.bound = result.refusal ? ReplicaBound::kQuotaAndRoom : ReplicaBound::kRoom;
    absl::StrAppend(&result.text, result.text.empty() ? "" : "; ", why);
    return result;
  }

  const Snapshot& snapshot_;
  const WorkloadId w_;
  const ServiceShape& shape_;
  const ReplicaCounts& wanted_;
  const PlaceableOptions& options_;
  const PodFinder find_;
  ClusterState state_;
  QuotaLedger ledger_;
  LedgerAccount account_;
  std::map<std::string, PodSetId> sets_;
  PlaceableReplicas result_;
};

// The pods of `workload` for which its gang has a place; the others go to `removed`.
std::vector<Pod> KeepPods(const Workload& workload, std::vector<PodRef>& removed) {
  std::map<std::string_view, int> counts;
  const auto visit = [&counts](const auto& self, const PodGroup& group) -> void {
    for (const PodSet& set : group.pod_sets) counts[set.name] = set.count;
    for (const PodGroup& child : group.groups) self(self, child);
  };
  visit(visit, workload.gang);
  std::vector<Pod> kept;
  for (const Pod& pod : workload.pods) {
    const auto found = counts.find(pod.pod_set);
    if (found != counts.end() && pod.index < found->second) {
      kept.push_back(pod);
    } else {
      removed.push_back({workload.name, pod.pod_set, pod.index});
    }
  }
  std::ranges::sort(removed);
  return kept;
}

}  // namespace

std::string_view ToString(ReplicaBound bound) { return kBounds[static_cast<size_t>(bound)]; }

absl::StatusOr<PlaceableReplicas> PlanPlaceableReplicas(
    const Snapshot& snapshot, const Workload& service, const ServiceShape& shape,
    const ReplicaCounts& wanted, const PlaceableOptions& options, PodFinder find) {
  Workload workload = service;
  TESSERA_ASSIGN_OR_RETURN(workload.gang, BuildServiceGang(shape, wanted));
  std::vector<PodRef> removed;
  workload.pods = KeepPods(workload, removed);
  SnapshotSpec spec = snapshot.spec();
  std::erase_if(spec.workloads, [&](const Workload& w) { return w.name == service.name; });
  spec.workloads.push_back(std::move(workload));
  TESSERA_ASSIGN_OR_RETURN(const Snapshot next, Snapshot::Create(std::move(spec)));
  const WorkloadId w = *next.FindWorkload(service.name);
  PlaceableReplicas result = Capper(next, w, shape, wanted, options, find).Cap();
  result.removed = std::move(removed);
  return result;
}

}  // namespace tessera
