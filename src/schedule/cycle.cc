#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/schedule/job_queue.h"
#include "src/schedule/pending_report.h"
#include "src/schedule/plan_writer.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/schedule/schedule.h"
#include "tessera/share/quota_ledger.h"

namespace tessera {
namespace {

// A `QueueOrder` that asks a function.
struct OrderByFunction {
  QueueComparison before;
  bool Before(const QueueOrderContext& context, const QueueStanding& a,
              const QueueStanding& b) const {
    return before(context, a, b);
  }
};

// A state, and the request classes of which it is known to take not one pod
// more. A cycle only fills states, so what is hopeless stays so.
struct Room {
  ClusterState state;
  std::vector<bool> hopeless;
};

class Cycle {
 public:
  Cycle(const Snapshot& snapshot, const CycleRules& rules, DivideFunction divide,
        QueueComparison before, PodFinder find)
      : snapshot_(snapshot),
        rules_(rules),
        find_(find),
        tables_(std::make_shared<const StateTables>(snapshot)),
        usage_(MeasureUsage(snapshot, rules.usage)),
        shares_(DivideFairShares(snapshot.queues(), snapshot.resources(),
                                 TotalCapacity(snapshot, rules.usage.mig_charge), usage_, divide)),
        ledger_(snapshot.queues(), usage_),
        order_(snapshot.queues(), shares_, ledger_, {&snapshot.resources(), shares_.capacity},
               {before}),
        now_{ClusterState(tables_, {.nominated = false, .releasing = true}), {}},
        jobs_(static_cast<size_t>(snapshot.queues().size())),
        attempts_(static_cast<size_t>(snapshot.num_workloads())) {
    now_.hopeless.resize(static_cast<size_t>(snapshot.num_request_classes()));
    if (!snapshot.releasing().empty()) {
      const InitialPods initial{.nominated = rules.usage.honour_nominations, .releasing = false};
      later_ = Room{ClusterState(tables_, initial), now_.hopeless};
    }
    for (int c = 0; c < snapshot.num_request_classes(); ++c) {
      expected_.push_back(
          ExpectedCharge(snapshot, RequestClassId(c), rules.usage.mig_charge));
    }
  }

  CycleResult Run() {
    if (rules_.usage.honour_nominations) BindNominated();
    if (rules_.growth == ElasticGrowth::kInTurn) {
      CollectJobs([](GangStage) { return true; });
      ServeAll();
    } else {
      CollectJobs([](GangStage stage) { return stage == GangStage::kBelowMinimum; });
      ServeAll();
      growing_ = true;
      CollectJobs([](GangStage stage) { return stage != GangStage::kBelowMinimum; });
      ServeAll();
    }
    plan_.pending = ReportPending(now_.state, attempts_);
    return {std::move(plan_), std::move(shares_)};
  }

 private:
  using StageFilter = bool (*)(GangStage);

  QueueId LeafOf(WorkloadId w) const { return snapshot_.info(w).queue; }
  JobQueue& jobs(QueueId q) { return jobs_[static_cast<size_t>(q.value())]; }

  // Binds nominated pods whose place is free of releasing ones, all of a workload
  // or none; the others keep their reservation.
  void BindNominated() {
    for (int i = 0; i < snapshot_.num_workloads(); ++i) {
      const WorkloadInfo& info = snapshot_.info(WorkloadId(i));
      const ClusterState::Mark mark = now_.state.GetMark();
      std::vector<PodId> pods;
      bool free = true;
      for (int p = info.first_pod; p < info.first_pod + info.num_pods; ++p) {
        if (snapshot_.pod_phase(PodId(p)) != PodPhase::kNominated) continue;
        const PodPlacement& placement = snapshot_.pod_placement(PodId(p));
        free &= IsFree(now_.state, snapshot_.pod_set_of(PodId(p)), placement);
        now_.state.Place(PodId(p), placement);
        pods.push_back(PodId(p));
      }
      if (free && IsWhole(now_.state, WorkloadId(i))) {
        WriteBinds(now_.state, mark, pods, plan_.actions);
      }
    }
    now_.state.Commit();
  }

  bool HasPlaceable(WorkloadId w) const {
    const WorkloadInfo& info = snapshot_.info(w);
    for (int p = info.first_pod; p < info.first_pod + info.num_pods; ++p) {
      if (MayPlace(now_.state, PodId(p))) return true;
    }
    return false;
  }

  GangStage StageOf(WorkloadId w) const {
    if (!IsWhole(now_.state, w)) return GangStage::kBelowMinimum;
    for (const PodSetInfo& set : snapshot_.pod_sets(w)) {
      int placed = 0;
      for (int i = 0; i < set.count; ++i) placed += now_.state.is_placed(set.pod(i)) ? 1 : 0;
      if (placed > set.min_count) return GangStage::kAboveMinimum;
    }
    return GangStage::kAtMinimum;
  }

  void Push(WorkloadId w) {
    const Workload& workload = snapshot_.workload(w);
    jobs(LeafOf(w)).push({workload.priority, StageOf(w), workload.submitted, w});
  }

  void CollectJobs(StageFilter wanted) {
    for (int i = 0; i < snapshot_.num_workloads(); ++i) {
      const WorkloadId w(i);
      if (HasPlaceable(w) && wanted(StageOf(w))) Push(w);
    }
    for (int q = 0; q < snapshot_.queues().size(); ++q) {
      if (!jobs(QueueId(q)).empty()) RankQueue(QueueId(q));
    }
  }

  void RankQueue(QueueId q) {
    order_.SetJob(q, jobs(q).empty() ? std::nullopt
                                     : std::optional(LeastCharge(jobs(q).top().workload)));
  }

  // What the next unit of `w` charges at least.
  ResourceVector LeastCharge(WorkloadId w) const {
    if (IsWhole(now_.state, w)) {
      for (const PodSetInfo& set : snapshot_.pod_sets(w)) {
        for (int i = 0; i < set.count; ++i) {
          if (MayPlace(now_.state, set.pod(i))) return Expected(set);
        }
      }
    }
    return LeastChargeBelow(w, 0);
  }

  const ResourceVector& Expected(const PodSetInfo& set) const {
    return expected_[static_cast<size_t>(set.request_class.value())];
  }

  ResourceVector LeastChargeBelow(WorkloadId w, int g) const {
    const GangNode& node = snapshot_.gang(w)[static_cast<size_t>(g)];
    if (node.is_pod_set()) {
      const PodSetInfo& set = snapshot_.pod_sets(w)[static_cast<size_t>(node.pod_set)];
      return Expected(set) * Lacking(set);
    }
    ResourceVector sum;
    int independent = 0;
    for (int c = node.first_child; c < node.first_child + node.num_children; ++c) {
      if (snapshot_.gang(w)[static_cast<size_t>(c)].after >= 0) continue;
      ++independent;
      sum += LeastChargeBelow(w, c);
    }
    // Where a choice of children suffices, none of them is certain to be charged.
    return independent == node.min_children ? sum : ResourceVector();
  }

  // Pods that a pod set lacks of its minimum.
  int Lacking(const PodSetInfo& set) const {
    int standing = 0;
    for (int i = 0; i < set.count; ++i) {
      const PodId p = set.pod(i);
      const bool counts =
          now_.state.is_placed(p) || snapshot_.pod_phase(p) == PodPhase::kSucceeded;
      standing += counts ? 1 : 0;
    }
    return std::max(set.min_count - standing, 0);
  }

  void ServeAll() {
    for (QueueId q = order_.Next(); q.valid(); q = order_.Next()) {
      const WorkloadId w = jobs(q).top().workload;
      jobs(q).pop();
      if (TryJob(w) && HasPlaceable(w)) Rejoin(w);
      RankQueue(q);
    }
  }

  // A gang that just started or grew comes back for more.
  void Rejoin(WorkloadId w) {
    if (rules_.growth == ElasticGrowth::kInTurn || growing_) Push(w);
  }

  // Places the next unit of `w` if there is room and every queue permits it.
  // GPU models on which the charge is refused are ruled out one after another:
  // what a slice or device memory costs depends on the model.
  bool TryJob(WorkloadId w) {
    const bool whole = IsWhole(now_.state, w);
    const bool preemptible = snapshot_.workload(w).is_preemptible();
    std::optional<Attempt>& attempt = attempts_[static_cast<size_t>(w.value())];
    if (!whole) {
      const auto refusal = ledger_.Check(LeafOf(w), LeastChargeBelow(w, 0), preemptible);
      if (refusal) return attempt = Attempt{{}, refusal}, false;
    }
    std::optional<QuotaRefusal> refusal;
    for (uint64_t excluded = 0;;) {
      auto [room, found] = SearchRooms(w, whole, excluded);
      if (!found.placed()) return attempt = Attempt{found, refusal}, false;
      if (found.pods.empty()) return false;
      const ResourceVector charge = ChargeAll(room->state, found.pods);
      refusal = ledger_.Check(LeafOf(w), charge, preemptible);
      if (!refusal) {
        ledger_.Charge(LeafOf(w), charge, preemptible);
        Accept(*room, found.pods);
        return true;
      }
      const uint64_t more = DearModels(room->state, found.pods, refusal->resource) & ~excluded;
      room->state.RollBack(0);
      if (more == 0) return attempt = Attempt{found, refusal}, false;
      excluded |= more;
    }
  }

  // The first room that takes the next unit of `w`, now before later.
  std::pair<Room*, GangPlacement> SearchRooms(WorkloadId w, bool whole, uint64_t excluded) {
    std::vector<std::pair<Room*, PodFinder>> rooms;
    if (later_ && rules_.await_shared_gpu) {
      rooms.emplace_back(&now_, FindOnSharedGpu);
      rooms.emplace_back(&*later_, FindOnSharedGpu);
    }
    rooms.emplace_back(&now_, find_);
    if (later_) rooms.emplace_back(&*later_, find_);
    GangPlacement found;
    for (const auto& [room, find] : rooms) {
      found = Search(*room, find, w, whole, excluded);
      if (found.placed()) return {room, found};
    }
    return {&now_, found};
  }

  GangPlacement Search(Room& room, PodFinder find, WorkloadId w, bool whole, uint64_t excluded) {
    const PodSetId hopeless = whole ? PodSetId() : FindHopeless(room, w, 0);
    if (hopeless.valid()) return {SearchOutcome::kNoRoom, {}, hopeless};
    const GangOptions options{excluded, rules_.gang_budget};
    GangPlacement found = whole ? GrowGang(room.state, w, find, options)
                                : PlaceGang(room.state, w, find, options);
    if (found.outcome == SearchOutcome::kNoRoom && excluded == 0) {
      NoteHopeless(room, found.stuck_at);
    }
    return found;
  }

  // A pod set that the minimum of `w` cannot do without and that is hopeless.
  PodSetId FindHopeless(const Room& room, WorkloadId w, int g) const {
    const std::span<const GangNode> gang = snapshot_.gang(w);
    const GangNode& node = gang[static_cast<size_t>(g)];
    if (node.is_pod_set()) {
      const PodSetInfo& set = snapshot_.pod_sets(w)[static_cast<size_t>(node.pod_set)];
      const bool hopeless = room.hopeless[static_cast<size_t>(set.request_class.value())];
      if (!hopeless || Lacking(set) == 0) return PodSetId();
      return PodSetId(snapshot_.info(w).first_pod_set + node.pod_set);
    }
    PodSetId found;
    int independent = 0;
    for (int c = node.first_child; c < node.first_child + node.num_children; ++c) {
      if (gang[static_cast<size_t>(c)].after >= 0) continue;
      ++independent;
      if (!found.valid()) found = FindHopeless(room, w, c);
    }
    return independent == node.min_children ? found : PodSetId();
  }

  // Remembers a request that no node takes, where the request alone decides.
  void NoteHopeless(Room& room, PodSetId s) {
    const PodSetInfo& set = snapshot_.pod_set(s);
    if (tables_->tracks_tenants() || set.max_per_node > 0) return;
    if (find_(room.state, {s, {0, snapshot_.num_nodes()}, 0})) return;
    room.hopeless[static_cast<size_t>(set.request_class.value())] = true;
  }

  ResourceVector ChargeOfPod(const ClusterState& state, PodId p) const {
    const RequestClassId c = snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class;
    return ChargeOf(snapshot_, c, state.placement(p), rules_.usage.mig_charge);
  }

  ResourceVector ChargeAll(const ClusterState& state, std::span<const PodId> pods) const {
    ResourceVector sum;
    for (PodId p : pods) sum += ChargeOfPod(state, p);
    return sum;
  }

  // Models on which a pod costs more of `resource` than it might elsewhere.
  uint64_t DearModels(const ClusterState& state, std::span<const PodId> pods,
                      int resource) const {
    uint64_t models = 0;
    for (PodId p : pods) {
      const PodSetInfo& set = snapshot_.pod_set(snapshot_.pod_set_of(p));
      const ModelId m = snapshot_.node_model(state.placement(p).node);
      if (!m.valid() || state.placement(p).gpus == 0) continue;
      if (ChargeOfPod(state, p)[resource] > Expected(set)[resource]) {
        models |= uint64_t{1} << m.value();
      }
    }
    return models;
  }

  // Writes what was placed into the plan, and repeats it in the other state.
  void Accept(Room& room, std::span<const PodId> pods) {
    const bool nominate = &room != &now_;
    if (nominate) {
      WriteNominations(room.state, pods, plan_.actions);
    } else {
      WriteBinds(room.state, 0, pods, plan_.actions);
    }
    Room* other = nominate ? &now_ : later_ ? &*later_ : nullptr;
    room.state.Commit();
    if (other == nullptr) return;
    for (PodId p : pods) other->state.Place(p, room.state.placement(p));
    other->state.Commit();
  }

  const Snapshot& snapshot_;
  const CycleRules& rules_;
  const PodFinder find_;
  const std::shared_ptr<const StateTables> tables_;
  const std::vector<QueueUsage> usage_;
  FairShares shares_;
  QuotaLedger ledger_;
  ServiceOrder<OrderByFunction> order_;
  Room now_;                   // releasing pods still hold their places
  std::optional<Room> later_;  // they are gone
  std::vector<ResourceVector> expected_;  // by request class
  std::vector<JobQueue> jobs_;            // by queue
  std::vector<std::optional<Attempt>> attempts_;  // by workload
  bool growing_ = false;
  Plan plan_;
};

}  // namespace

CycleResult RunCycle(const Snapshot& snapshot, const CycleRules& rules, DivideFunction divide,
                     QueueComparison before, PodFinder find) {
  return Cycle(snapshot, rules, divide, before, find).Run();
}

}  // namespace tessera
