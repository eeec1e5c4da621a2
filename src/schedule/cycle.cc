#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/schedule/job_facts.h"
#include "src/schedule/job_queue.h"
#include "src/schedule/ledger_account.h"
#include "src/schedule/pending_report.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/schedule/schedule.h"
#include "tessera/share/quota_ledger.h"
#include "tessera/state/plan_writer.h"

namespace tessera {
namespace {

// A state, and what searches found out about it: a cycle only fills states.
struct Room {
  ClusterState state;
  SearchMemory memory;
};

class Cycle {
 public:
  Cycle(const Snapshot& snapshot, const CycleRules& rules, DivideFunction divide,
        MakeQueueServer serve, JobComparison before, PodFinder find)
      : snapshot_(snapshot),
        rules_(rules),
        find_(find),
        tables_(std::make_shared<const StateTables>(snapshot, rules.slices)),
        usage_(MeasureUsage(snapshot, rules.usage)),
        shares_(DivideFairShares(snapshot, rules.usage, usage_, divide, rules.division)),
        ledger_(snapshot.queues(), usage_, shares_.capacity),
        order_(
            serve(snapshot.queues(), shares_, ledger_, {&snapshot.resources(), shares_.capacity})),
        least_(snapshot, rules.usage.mig_charge),
        now_{ClusterState(tables_, {.nominated = false, .releasing = true}), {}},
        jobs_(static_cast<size_t>(snapshot.queues().size()), JobQueue(ServedLater{before})),
        attempts_(static_cast<size_t>(snapshot.num_workloads())),
        is_reserved_(attempts_.size()) {
    if (!snapshot.releasing().empty()) {
      const InitialPods initial{.nominated = rules.usage.honour_nominations, .releasing = false};
      later_ = Room{ClusterState(tables_, initial), {}};
    }
  }

  CycleResult Run() {
    if (rules_.usage.honour_nominations) BindNominated();
    if (rules_.growth == ElasticGrowth::kInTurn) {
      CollectJobs([](GangStage) { return true; });
      ServeAll();
    } else {
      // The greedy search for a gang may succeed on a fuller cluster where it
      // failed before; a cycle ends when another round would change nothing.
      for (bool progress = true; progress;) {
        progress = ServeMinimums();
        progress = ServeGrowth() || progress;
      }
    }
    plan_.pending = ReportPending(now_.state, attempts_);
    return {std::move(plan_), std::move(shares_)};
  }

 private:
  using StageFilter = bool (*)(GangStage);

  QueueId LeafOf(WorkloadId w) const { return snapshot_.info(w).queue; }
  JobQueue& jobs(QueueId q) { return jobs_[static_cast<size_t>(q.value())]; }

  bool ServeMinimums() {
    growing_ = false;
    CollectJobs([](GangStage stage) { return stage == GangStage::kBelowMinimum; });
    return ServeAll();
  }

  bool ServeGrowth() {
    growing_ = true;
    CollectJobs([](GangStage stage) { return stage != GangStage::kBelowMinimum; });
    return ServeAll();
  }

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
        free = free && IsFree(now_.state, snapshot_.pod_set_of(PodId(p)), placement);
        if (free) now_.state.Place(PodId(p), placement);
        pods.push_back(PodId(p));
      }
      if (pods.empty()) continue;
      if (free && IsWhole(now_.state, WorkloadId(i))) {
        WriteBinds(now_.state, mark, pods, plan_.actions);
        continue;
      }
      now_.state.RollBack(mark);
      for (PodId p : pods) now_.state.Reserve(p, snapshot_.pod_placement(p));
      is_reserved_[static_cast<size_t>(i)] = true;
    }
    now_.state.Commit();
  }

  void Push(WorkloadId w) {
    const Workload& workload = snapshot_.workload(w);
    jobs(LeafOf(w)).push({workload.priority, StageOf(now_.state, w), workload.submitted, w});
  }

  void CollectJobs(StageFilter wanted) {
    for (int i = 0; i < snapshot_.num_workloads(); ++i) {
      const WorkloadId w(i);
      if (HasPlaceable(now_.state, w) && wanted(StageOf(now_.state, w))) Push(w);
    }
    for (int q = 0; q < snapshot_.queues().size(); ++q) {
      if (!jobs(QueueId(q)).empty()) RankQueue(QueueId(q));
    }
  }

  void RankQueue(QueueId q) {
    order_->SetJob(q, jobs(q).empty()
                          ? std::nullopt
                          : std::optional(least_.Of(now_.state, jobs(q).top().workload)));
  }

  // Tells whether anything was placed.
  bool ServeAll() {
    bool placed = false;
    for (QueueId q = order_->Next(); q.valid(); q = order_->Next()) {
      const WorkloadId w = jobs(q).top().workload;
      jobs(q).pop();
      if (TryJob(w)) {
        placed = true;
        if (HasPlaceable(now_.state, w)) Rejoin(w);
      }
      RankQueue(q);
    }
    return placed;
  }

  // A gang that just started or grew comes back for more.
  void Rejoin(WorkloadId w) {
    if (rules_.growth == ElasticGrowth::kInTurn || growing_) Push(w);
  }

  // Places the next unit of `w` if there is room and every queue permits it.
  bool TryJob(WorkloadId w) {
    const bool whole = IsWhole(now_.state, w);
    const bool preemptible = snapshot_.workload(w).is_preemptible();
    std::optional<Attempt>& attempt = attempts_[static_cast<size_t>(w.value())];
    if (!whole) {
      // A cheap answer for a queue that is full.
      const auto refusal = ledger_.Check(LeafOf(w), least_.OfMinimum(now_.state, w), preemptible);
      if (refusal) return attempt = Attempt{{}, refusal}, false;
    }
    LedgerAccount account(snapshot_, rules_.usage.mig_charge, ledger_, LeafOf(w), preemptible);
    const auto [room, found] = SearchRooms(w, whole, account);
    if (!found.placed()) {
      const bool refused = found.outcome == SearchOutcome::kRefused;
      return attempt = Attempt{found, refused ? account.refusal() : std::nullopt}, false;
    }
    if (found.pods.empty()) return false;
    if (room != &now_) is_reserved_[static_cast<size_t>(w.value())] = true;
    Accept(*room, found.pods);
    ledger_.Commit();
    return true;
  }

  // The first room that takes the next unit of `w`, now before later.
  std::pair<Room*, GangPlacement> SearchRooms(WorkloadId w, bool whole, Account& account) {
    // What joins a gang that waits for its place waits, too.
    const bool now_allowed = !is_reserved_[static_cast<size_t>(w.value())];
    std::vector<std::pair<Room*, bool>> rooms;
    if (later_ && rules_.await_shared_gpu) {
      if (now_allowed) rooms.emplace_back(&now_, true);
      rooms.emplace_back(&*later_, true);
    }
    if (now_allowed) rooms.emplace_back(&now_, false);
    if (later_) rooms.emplace_back(&*later_, false);
    GangPlacement found{SearchOutcome::kAwaitsItsPlace, {}, PodSetId()};
    for (const auto& [room, on_shared_gpu] : rooms) {
      const GangOptions options{.account = &account,
                                .budget = rules_.gang_budget,
                                .exact_budget = rules_.exact_budget,
                                .finder_withholds = on_shared_gpu,
                                .memory = &room->memory};
      const PodFinder find = on_shared_gpu ? PodFinder(FindOnSharedGpu) : find_;
      found = whole ? GrowGang(room->state, w, find, options)
                    : PlaceGang(room->state, w, find, options);
      if (found.placed()) return {room, found};
    }
    return {&now_, found};
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
    for (PodId p : pods) {
      if (nominate) {
        other->state.Reserve(p, room.state.placement(p));
      } else {
        other->state.Place(p, room.state.placement(p));
      }
    }
    other->state.Commit();
  }

  const Snapshot& snapshot_;
  const CycleRules& rules_;
  const PodFinder find_;
  const std::shared_ptr<const StateTables> tables_;
  const std::vector<QueueUsage> usage_;
  FairShares shares_;
  QuotaLedger ledger_;
  const std::unique_ptr<QueueServer> order_;
  const LeastCharges least_;
  Room now_;                                      // releasing pods still hold their places
  std::optional<Room> later_;                     // they are gone
  std::vector<JobQueue> jobs_;                    // by queue
  std::vector<std::optional<Attempt>> attempts_;  // by workload
  // By workload: some of it is nominated, and what comes later may depend on that.
  std::vector<bool> is_reserved_;
  bool growing_ = false;
  Plan plan_;
};

}  // namespace

CycleResult RunCycle(const Snapshot& snapshot, const CycleRules& rules, DivideFunction divide,
                     MakeQueueServer serve, JobComparison before, PodFinder find) {
  return Cycle(snapshot, rules, divide, serve, before, find).Run();
}

}  // namespace tessera
