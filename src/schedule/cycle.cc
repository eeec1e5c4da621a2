#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/schedule/claim_memory.h"
#include "src/schedule/cycle_draft.h"
#include "src/schedule/cycle_rooms.h"
#include "src/schedule/held_places.h"
#include "src/schedule/job_facts.h"
#include "src/schedule/job_server.h"
#include "src/schedule/ledger_account.h"
#include "src/schedule/pending_report.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/schedule/schedule.h"
#include "tessera/share/book_pod.h"
#include "tessera/share/quota_ledger.h"

namespace tessera {
namespace {

class Cycle {
 public:
  Cycle(const Snapshot& snapshot, const CycleRules& rules, const CycleFunctions& functions,
        const Lessons& lessons)
      : snapshot_(snapshot),
        rules_(rules),
        room_rules_(RoomRulesOf(rules)),
        cost_(functions.cost),
        lessons_(lessons),
        usage_(MeasureUsage(snapshot, rules.usage)),
        shares_(DivideFairShares(snapshot, rules.usage, usage_, functions.divide, rules.division)),
        ledger_(snapshot.queues(), usage_, shares_.capacity),
        least_(snapshot, rules.usage.mig_charge),
        jobs_(snapshot,
              functions.serve(snapshot.queues(), shares_, ledger_,
                              {&snapshot.resources(), shares_.capacity}),
              functions.before, least_),
        rooms_(snapshot, rules_, room_rules_, functions.find, lessons.unmoved),
        attempts_(static_cast<size_t>(snapshot.num_workloads())) {}

  CycleDraft Run() {
    if (rules_.usage.honour_nominations) rooms_.BindNominated();
    for (turn_ = 0; turn_ <= lessons_.last_turn(); ++turn_) Settle();
    if (rooms_.LetAllMove()) Settle();
    CycleDraft draft(snapshot_);
    CycleResult& result = draft.result;
    result.plan.actions = rooms_.TakeActions();
    if (lessons_.is_rehearsal()) return draft;
    if (rules_.settle) NoteSuspects(draft);
    result.reservations = std::move(reservations_);
    result.shares = std::move(shares_);
    result.certificates = std::move(certificates_);
    return draft;
  }

  // After `Run`.
  std::vector<PendingWorkload> Report() const {
    return ReportPending(rooms_.reported(), attempts_);
  }

 private:
  QueueId LeafOf(WorkloadId w) const { return snapshot_.info(w).queue; }
  WorkloadId WorkloadOf(PodId p) const {
    return snapshot_.pod_set(snapshot_.pod_set_of(p)).workload;
  }

  void Settle() {
    int64_t before = -1;
    do {
      before = rooms_.version();
      for (CycleStep step : rules_.steps) RunStep(step);
    } while (rules_.settle && !lessons_.is_rehearsal() && rooms_.version() != before);
  }

  void RunStep(CycleStep step) {
    ++round_;
    if (step == CycleStep::kEndStale) return EndStale();
    step_ = step;
    rooms_.CountLowest();
    if (rules_.growth == ElasticGrowth::kInTurn) {
      LiftAll();
      ServeAll([](GangStage) { return true; });
      return NoteReservations();
    }
    // The greedy search for a gang may succeed on a fuller cluster where it failed before; the
    // step ends when another round would change nothing.
    int64_t before = -1;
    do {
      before = rooms_.version();
      LiftAll();
      growing_ = false;
      ServeAll([](GangStage stage) { return stage == GangStage::kBelowMinimum; });
      growing_ = true;
      ServeAll([](GangStage stage) { return stage != GangStage::kBelowMinimum; });
    } while (!lessons_.is_rehearsal() && rooms_.version() != before);
    NoteReservations();
  }

  // --- What waits -----------------------------------------------------------

  template <typename Filter>
  void ServeAll(const Filter& wanted) {
    for (int i = 0; i < snapshot_.num_workloads(); ++i) {
      const WorkloadId w(i);
      const ClusterState& state = rooms_.latest();
      // Who lost something waits for the next cycle where this one does not settle.
      if (!rules_.settle && rooms_.has_lost(w)) continue;
      // What holds places has had its turn.
      if (rooms_.holds(w)) continue;
      if (!lessons_.has_turn(w, turn_)) continue;
      if (HasPlaceable(state, w) && wanted(StageOf(state, w))) jobs_.Push(state, w);
    }
    jobs_.RankAll(rooms_.latest());
    for (WorkloadId w = jobs_.Next(); w.valid(); w = jobs_.Next()) {
      if (Serve(w) && HasPlaceable(rooms_.latest(), w) && MayRejoin()) {
        jobs_.Push(rooms_.latest(), w);
      }
      // Who has lost something waits like others.
      for (WorkloadId v : std::exchange(losers_, {})) {
        const ClusterState& state = rooms_.latest();
        if (rules_.settle && HasPlaceable(state, v) && wanted(StageOf(state, v)) &&
            lessons_.has_turn(v, turn_)) {
          jobs_.Push(state, v);
        }
        jobs_.Rank(state, LeafOf(v));
      }
      jobs_.Rank(rooms_.latest(), LeafOf(w));
    }
  }

  // A gang that just started or grew comes back for more.
  bool MayRejoin() const {
    if (step_ != CycleStep::kAllocate && !rules_.settle) return false;
    return rules_.growth == ElasticGrowth::kInTurn || growing_;
  }

  // Tells whether `w` got something.
  bool Serve(WorkloadId w) {
    if (!rules_.settle && rooms_.has_lost(w)) return false;
    rooms_.Lift(w);
    if (Try(w)) return true;
    if (MayHold(w)) Hold(w);
    return false;
  }

  bool Try(WorkloadId w) {
    switch (step_) {
      case CycleStep::kAllocate:
        return Allocate(w);
      case CycleStep::kMakeRoom:
        return Allocate(w) || MakeRoom(w);
      case CycleStep::kConsolidate:
      case CycleStep::kReclaim:
      case CycleStep::kPreempt:
        return MakeRoom(w);
      case CycleStep::kEndStale:
        break;
    }
    return false;
  }

  // Places the next unit of `w` if there is room and every queue permits it.
  bool Allocate(WorkloadId w) {
    const bool preemptible = snapshot_.workload(w).is_preemptible();
    std::optional<Attempt>& attempt = attempts_[static_cast<size_t>(w.value())];
    if (!IsWhole(rooms_.latest(), w)) {
      // A cheap answer for a queue that is full.
      const auto refusal =
          ledger_.Check(LeafOf(w), least_.OfMinimum(rooms_.latest(), w), preemptible);
      if (refusal) return attempt = Attempt{{}, refusal}, false;
    }
    LedgerAccount account(snapshot_, rules_.usage.mig_charge, ledger_, LeafOf(w), preemptible);
    const auto may = [this, w](const HeldPlaces& held) { return MayBackfill(w, held); };
    const GangPlacement found = rooms_.PlaceUnit(w, account, may);
    if (!found.placed()) {
      const bool refused = found.outcome == SearchOutcome::kRefused;
      return attempt = Attempt{found, refused ? account.refusal() : std::nullopt}, false;
    }
    ledger_.Commit();
    return !found.pods.empty();
  }

  // --- Who waits for long ---------------------------------------------------

  // Gangs that hold places at a time, and that are asked whether they want to.
  static constexpr int kMostHolders = 8;

  bool MayHold(WorkloadId w) {
    // Of those who would ask before it only some are asked in a rehearsal.
    if (lessons_.is_rehearsal()) return false;
    const Workload& workload = snapshot_.workload(w);
    const int64_t waited = snapshot_.now() - workload.submitted;
    if (rules_.patience == kUnlimited || waited < rules_.patience) return false;
    if (holders_asked_ >= kMostHolders || IsWhole(rooms_.latest(), w)) return false;
    // Else a queue keeps it from starting, not others.
    const std::optional<Attempt>& attempt = attempts_[static_cast<size_t>(w.value())];
    return attempt && !attempt->refusal && IsEntitled(w, /*alone=*/true);
  }

  // Whether the minimum of `w` fits into the entitlement of its queues beside what they hold or,
  // `alone`, into that at all.
  bool IsEntitled(WorkloadId w, bool alone) const {
    const ResourceVector least = least_.OfMinimum(rooms_.latest(), w);
    for (QueueId q = LeafOf(w); q.valid(); q = snapshot_.queues().parent(q)) {
      for (int r : {kCpu, kMemory, kGpu}) {
        const int64_t held = alone ? 0 : ledger_.allocated(q)[r];
        if (least[r] > 0 && held + least[r] > shares_.of(q).fair_share[r]) return false;
      }
    }
    return true;
  }

  void Hold(WorkloadId w) {
    ++holders_asked_;
    const auto yields = [this, w](WorkloadId v) { return YieldsTo(v, w); };
    std::optional<HeldPlaces> held = FindPlacesToHold(rooms_.latest(), w, yields);
    if (!held) return;
    const QuotaLedger::Mark mark = ledger_.GetMark();
    for (PodId p : held->in_the_way) {
      BookPod(snapshot_, rules_.usage.mig_charge, ledger_, p, rooms_.latest().placement(p), -1);
    }
    const bool entitled = IsEntitled(w, /*alone=*/false);
    ledger_.RollBack(mark);
    if (entitled) rooms_.Hold(*std::move(held));
  }

  // Whether the rules let `v` be made to yield for `w`, which is within its entitlement.
  bool YieldsTo(WorkloadId v, WorkloadId w) const {
    const Workload &victim = snapshot_.workload(v), &claimant = snapshot_.workload(w);
    if (!victim.is_preemptible()) return false;
    if (LeafOf(v) == LeafOf(w)) return victim.priority < claimant.priority;
    const QueueId q = LeafOf(v);
    return ledger_.allocated(q)[kGpu] >= shares_.of(q).fair_share[kGpu];
  }

  bool MayBackfill(WorkloadId v, const HeldPlaces& held) const {
    if (YieldsTo(v, held.workload)) return true;
    const std::optional<int64_t>& most = snapshot_.workload(v).max_runtime;
    return most && held.free_by != kUnlimited && *most <= held.free_by - snapshot_.now();
  }

  Reservation ReportHeld(const HeldPlaces& held) const {
    Reservation report;
    report.workload = snapshot_.workload(held.workload).name;
    for (const PodTarget& target : held.places) {
      report.nodes.push_back(snapshot_.node(target.placement.node).name);
    }
    std::ranges::sort(report.nodes);
    report.nodes.erase(std::unique(report.nodes.begin(), report.nodes.end()), report.nodes.end());
    report.free_by = held.free_by;
    report.idle_gpu_units = held.idle_gpu_units;
    return report;
  }

  void LiftAll() {
    rooms_.LiftAll();
    holders_asked_ = 0;
  }

  // What is held in the end, and who of those that failed would fit otherwise; lifts it all.
  void NoteReservations() {
    reservations_.clear();
    const std::vector<HeldPlaces> held(rooms_.held().begin(), rooms_.held().end());
    for (const HeldPlaces& places : held) reservations_.push_back(ReportHeld(places));
    if (held.empty()) return;
    std::vector<WorkloadId> failed;
    for (int i = 0; i < snapshot_.num_workloads(); ++i) {
      const std::optional<Attempt>& attempt = attempts_[static_cast<size_t>(i)];
      if (!attempt || attempt->refusal || attempt->search.placed()) continue;
      if (!rooms_.holds(WorkloadId(i))) failed.push_back(WorkloadId(i));
    }
    for (size_t lifted = 1; lifted <= held.size(); ++lifted) {
      rooms_.Lift(held[lifted - 1].workload);
      SearchMemory memory;
      std::erase_if(failed, [&](WorkloadId w) {
        if (!rooms_.WouldFit(w, memory)) return false;
        const WorkloadId keeper = KeeperOf(w, std::span(held).first(lifted));
        attempts_[static_cast<size_t>(w.value())]->kept_from = snapshot_.workload(keeper).name;
        return true;
      });
    }
  }

  // Who keeps `w` from places, the last of these that are lifted being one that it lacked: what
  // it may use anyway is no reason.
  WorkloadId KeeperOf(WorkloadId w, std::span<const HeldPlaces> lifted) const {
    for (size_t i = lifted.size(); i > 0; --i) {
      if (!MayBackfill(w, lifted[i - 1])) return lifted[i - 1].workload;
    }
    return lifted.back().workload;
  }

  // --- Who yields -----------------------------------------------------------

  RoomPlan PlanFor(WorkloadId w, const RoomDesk& desk) const {
    switch (step_) {
      case CycleStep::kConsolidate:
        return PlanConsolidation(desk, w, room_rules_, cost_);
      case CycleStep::kReclaim:
        return PlanReclaim(desk, w, room_rules_, cost_);
      case CycleStep::kPreempt:
        return PlanPreemption(desk, w, room_rules_, cost_);
      case CycleStep::kAllocate:
      case CycleStep::kMakeRoom:
      case CycleStep::kEndStale:
        break;
    }
    return PlanYielding(desk, w, room_rules_, cost_);
  }

  bool MakeRoom(WorkloadId w) {
    if (!lessons_.may_claim(w)) {
      if (std::optional<Attempt>& attempt = attempts_[static_cast<size_t>(w.value())]) {
        attempt->may_not_claim = true;
      }
      return false;
    }
    ClaimMemory& claims = claims_[step_];
    if (claims.IsHopeless(rooms_.latest(), w, round_, rooms_.holding_version())) return false;
    if (rules_.settle && rooms_.has_open() && Rearrange(w)) return true;
    RoomPlan plan = PlanFor(w, rooms_.Desk(ledger_, shares_));
    if (!plan.found()) {
      claims.Note(rooms_.latest(), w, round_, rooms_.holding_version());
      return false;
    }
    CarryOut(std::move(plan));
    return true;
  }

  void CarryOut(RoomPlan plan) {
    rooms_.CarryOut(plan, ledger_);
    ledger_.Commit();
    for (PodId p : plan.evicted) losers_.push_back(WorkloadOf(p));
    certificates_.push_back(std::move(plan.certificate));
  }

  // What this cycle started on free capacity makes way for `w`, if `w` has the right to that:
  // better not to start it than to evict it soon. Others may have to yield as well.
  bool Rearrange(WorkloadId w) {
    RoomDesk desk = rooms_.Desk(ledger_, shares_);
    desk.open = rooms_.open();
    const std::vector<int> lowest = rooms_.LowestOfAll();
    desk.lowest = lowest;
    if (!MightMakeRoom(desk, w, room_rules_, rooms_.lowest_open())) return false;
    RoomPlan plan = PlanFor(w, desk);
    if (!plan.found()) return false;
    const std::vector<WorkloadId> giving = GivingTo(plan);
    if (giving.empty()) {
      CarryOut(std::move(plan));
    } else if (rooms_.IsAllOpen(plan)) {
      StartAgain(giving, TakeBack(giving, plan));
      rooms_.Start(w, plan.placed, ledger_);
      ledger_.Commit();
    } else if (!TakeBackAndEvict(w, giving)) {
      return false;
    }
    losers_.insert(losers_.end(), giving.begin(), giving.end());
    return true;
  }

  // By what right others yield depends on what queues hold without what is taken back, so that
  // comes first.
  bool TakeBackAndEvict(WorkloadId w, const std::vector<WorkloadId>& giving) {
    const auto started = TakeBack(giving, {});
    RoomPlan plan = PlanFor(w, rooms_.Desk(ledger_, shares_));
    if (!plan.found()) {
      StartAgain(giving, started);
      ledger_.Commit();
      return false;
    }
    CarryOut(std::move(plan));
    return true;
  }

  // Takes back what this cycle started of `giving`; what `plan` leaves to each of them.
  std::vector<std::vector<PodTarget>> TakeBack(const std::vector<WorkloadId>& giving,
                                               const RoomPlan& plan) {
    std::vector<std::vector<PodTarget>> staying;
    for (WorkloadId v : giving) {
      staying.push_back(StayingOf(v, plan));
      rooms_.Withdraw(v, ledger_);
    }
    return staying;
  }

  void StartAgain(const std::vector<WorkloadId>& giving,
                  const std::vector<std::vector<PodTarget>>& staying) {
    for (size_t i = 0; i < giving.size(); ++i) {
      if (!staying[i].empty()) rooms_.Start(giving[i], staying[i], ledger_);
    }
  }

  // Workloads of which `plan` takes back what this cycle has started, or moves it.
  std::vector<WorkloadId> GivingTo(const RoomPlan& plan) const {
    std::vector<WorkloadId> giving;
    const auto note = [&](PodId p) {
      if (rooms_.open()[static_cast<size_t>(p.value())] != 0) giving.push_back(WorkloadOf(p));
    };
    for (PodId p : plan.evicted) note(p);
    for (const PodTarget& move : plan.moved) note(move.pod);
    std::ranges::sort(giving);
    giving.erase(std::unique(giving.begin(), giving.end()), giving.end());
    return giving;
  }

  // What this cycle started of `v` and `plan` leaves to it, where it is then.
  std::vector<PodTarget> StayingOf(WorkloadId v, const RoomPlan& plan) const {
    std::vector<PodTarget> staying;
    for (PodId p : rooms_.OpenOf(v)) {
      const auto moved = std::ranges::find(plan.moved, p, &PodTarget::pod);
      if (moved != plan.moved.end()) {
        staying.push_back(*moved);
      } else if (!std::ranges::binary_search(plan.evicted, p)) {
        staying.push_back({p, rooms_.latest().placement(p)});
      }
    }
    return staying;
  }

  // Tells who waits and might, once that is possible, make yield what this cycle has started or
  // moved, and whether somebody who lost something might make anything yield.
  void NoteSuspects(CycleDraft& draft) {
    const LowestAfter lowest = rooms_.FindLowestAfter();
    RoomDesk desk = rooms_.Desk(ledger_, shares_);
    desk.lowest = lowest.all;
    for (int i = 0; i < snapshot_.num_workloads(); ++i) {
      const WorkloadId w(i);
      if (!HasPlaceable(rooms_.latest(), w)) continue;
      if (lowest.any_changed && MightMakeRoom(desk, w, room_rules_, lowest.changed)) {
        draft.suspects.Add(w);
      }
      if (!rooms_.has_lost(w) || draft.losers_may_return) continue;
      draft.losers_may_return = MightMakeRoom(desk, w, room_rules_);
    }
  }

  // --- What should not run --------------------------------------------------

  // Below its minimum for longer than permitted, with pods that still run.
  bool IsStale(WorkloadId w) const {
    const Workload& workload = snapshot_.workload(w);
    const int64_t grace = workload.stale_grace.value_or(room_rules_.victims.stale_grace);
    const int64_t since = workload.stale_since.value_or(snapshot_.now());
    if (grace == kUnlimited || snapshot_.now() - since < grace) return false;
    const auto has = [&](PodPhase phase) {
      return std::ranges::find(workload.pods, phase, &Pod::phase) != workload.pods.end();
    };
    if (!has(PodPhase::kRunning) || has(PodPhase::kSucceeded)) return false;
    return !IsWhole(rooms_.latest(), w);
  }

  void EndStale() {
    for (int i = 0; i < snapshot_.num_workloads(); ++i) {
      const WorkloadId w(i);
      if (IsStale(w)) rooms_.EndStale(w, ledger_);
    }
    ledger_.Commit();
  }

  const Snapshot& snapshot_;
  const CycleRules& rules_;
  const RoomRules room_rules_;
  const VictimCost cost_;
  const Lessons& lessons_;
  const std::vector<QueueUsage> usage_;
  FairShares shares_;
  QuotaLedger ledger_;
  const LeastCharges least_;
  JobServer jobs_;
  CycleRooms rooms_;
  std::vector<std::optional<Attempt>> attempts_;  // by workload
  std::map<CycleStep, ClaimMemory> claims_;
  std::vector<Certificate> certificates_;
  std::vector<Reservation> reservations_;
  CycleStep step_ = CycleStep::kAllocate;
  int turn_ = 0;  // `Lessons`: who is served by now
  bool growing_ = false;
  std::vector<WorkloadId> losers_;  // who has just lost something
  int holders_asked_ = 0;
  int64_t round_ = 0;
};

}  // namespace

CycleDraft DraftCycle(const Snapshot& snapshot, const CycleRules& rules,
                      const CycleFunctions& functions, const Lessons& lessons) {
  const auto cycle = std::make_shared<Cycle>(snapshot, rules, functions, lessons);
  CycleDraft draft = cycle->Run();
  draft.report_pending = [cycle] { return cycle->Report(); };
  return draft;
}

}  // namespace tessera
