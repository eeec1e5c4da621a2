#include "src/schedule/cycle_rooms.h"

#include <algorithm>
#include <climits>
#include <iterator>

#include "tessera/share/book_pod.h"
#include "tessera/state/plan_writer.h"

namespace tessera {

const PodRef* StartedBy(const Action& action) {
  if (const auto* bind = std::get_if<BindAction>(&action)) return &bind->pod;
  if (const auto* nominate = std::get_if<NominateAction>(&action)) return &nominate->pod;
  return nullptr;
}

CycleRooms::CycleRooms(const Snapshot& snapshot, const CycleRules& rules,
                       const RoomRules& room_rules, PodFinder find, std::span<const char> unmoved)
    : snapshot_(snapshot),
      rules_(rules),
      room_rules_(room_rules),
      find_(find),
      tables_(std::make_shared<const StateTables>(snapshot, rules.slices)),
      now_{ClusterState(tables_, {.nominated = false, .releasing = true}), {}},
      waits_(static_cast<size_t>(snapshot.num_workloads())),
      has_lost_(waits_.size()),
      was_withdrawn_(waits_.size()),
      open_(static_cast<size_t>(snapshot.num_pods())),
      spared_(open_.size()),
      unmoved_(unmoved),
      lowest_(static_cast<size_t>(snapshot.queues().size()), INT_MAX),
      lowest_open_(lowest_.size(), INT_MAX),
      action_of_(open_.size()),
      memory_(snapshot) {
  if (snapshot.releasing().empty()) return;
  const InitialPods initial{.nominated = rules.usage.honour_nominations, .releasing = false};
  later_ = Room{ClusterState(tables_, initial), {}};
}

void CycleRooms::BindNominated() {
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
      WriteBinds(now_.state, mark, pods, actions_);
      for (PodId p : pods) spared_[at(p)] = 1;
      continue;
    }
    now_.state.RollBack(mark);
    for (PodId p : pods) now_.state.Reserve(p, snapshot_.pod_placement(p));
    waits_[static_cast<size_t>(i)] = 1;
  }
  now_.state.Commit();
}

GangPlacement CycleRooms::SearchIn(Room& room, WorkloadId w, Account& account,
                                   bool on_shared_gpu) const {
  const GangOptions options{.account = &account,
                            .budget = rules_.gang_budget,
                            .exact_budget = rules_.exact_budget,
                            .finder_withholds = on_shared_gpu,
                            .memory = &room.memory};
  const PodFinder find = on_shared_gpu ? PodFinder(FindOnSharedGpu) : find_;
  return IsWhole(room.state, w) ? GrowGang(room.state, w, find, options)
                                : PlaceGang(room.state, w, find, options);
}

// The first room that takes it, now before later.
GangPlacement CycleRooms::PlaceUnit(WorkloadId w, Account& account) {
  // What joins a gang that waits for its place waits, too.
  const bool now_allowed = waits_[at(w)] == 0 && unreserved_.empty() && unreserved_holds_ == 0;
  std::vector<std::pair<Room*, bool>> rooms;
  if (later_ && rules_.await_shared_gpu) {
    if (now_allowed) rooms.emplace_back(&now_, true);
    rooms.emplace_back(&*later_, true);
  }
  if (now_allowed) rooms.emplace_back(&now_, false);
  if (later_) rooms.emplace_back(&*later_, false);
  GangPlacement found{SearchOutcome::kAwaitsItsPlace, {}, PodSetId()};
  for (const auto& [room, on_shared_gpu] : rooms) {
    found = SearchIn(*room, w, account, on_shared_gpu);
    if (!found.placed()) continue;
    if (!found.pods.empty()) Accept(*room, w, found.pods);
    return found;
  }
  return found;
}

GangPlacement CycleRooms::PlaceUnit(WorkloadId w, Account& account,
                                    absl::FunctionRef<bool(const HeldPlaces&)> may) {
  GangPlacement found = PlaceUnit(w, account);
  if (found.placed()) return found;
  std::vector<const HeldPlaces*> lifted;
  for (const HeldPlaces& held : held_) {
    if (may(held)) lifted.push_back(&held);
  }
  if (lifted.empty()) return found;
  for (const HeldPlaces* held : lifted) Release(*held);
  found = PlaceUnit(w, account);
  for (const HeldPlaces* held : lifted) Reserve(*held);
  return found;
}

bool CycleRooms::WouldFit(WorkloadId w, SearchMemory& memory) {
  const ClusterState::Mark mark = latest().GetMark();
  const GangOptions options{.exact_budget = 0, .memory = &memory};
  const GangPlacement found = IsWhole(latest(), w) ? GrowGang(latest(), w, find_, options)
                                                   : PlaceGang(latest(), w, find_, options);
  latest().RollBack(mark);
  return found.placed() && !found.pods.empty();
}

bool CycleRooms::LetAllMove() {
  if (std::ranges::find(unmoved_, 1) == unmoved_.end()) return false;
  unmoved_ = {};
  ++holding_;
  return true;
}

void CycleRooms::Hold(HeldPlaces held) {
  Reserve(held);
  held_.push_back(std::move(held));
}

void CycleRooms::Lift(WorkloadId w) {
  const auto it = std::ranges::find(held_, w, &HeldPlaces::workload);
  if (it == held_.end()) return;
  Release(*it);
  held_.erase(it);
}

void CycleRooms::LiftAll() {
  for (const HeldPlaces& held : held_) Release(held);
  held_.clear();
}

void CycleRooms::Reserve(const HeldPlaces& held) {
  ++holding_;
  for (const auto& [p, placement] : held.places) {
    // Who leaves in this cycle still holds another place now.
    if (spared_[at(p)] != 0) {
      ++unreserved_holds_;
    } else {
      now_.state.Reserve(p, placement);
    }
    if (later_) later_->state.Reserve(p, placement);
    memory_.Note(p, placement.node);
  }
  Commit();
}

void CycleRooms::Release(const HeldPlaces& held) {
  ++holding_;
  for (const auto& [p, placement] : held.places) {
    if (spared_[at(p)] != 0) {
      --unreserved_holds_;
    } else {
      now_.state.Remove(p);
    }
    if (later_) later_->state.Remove(p);
    memory_.Note(p, placement.node);
  }
  now_.memory = {};
  if (later_) later_->memory = {};
  Commit();
}

// Writes what was placed into the plan, and repeats it in the other state.
void CycleRooms::Accept(Room& room, WorkloadId w, std::span<const PodId> pods) {
  ++version_;
  const size_t first = actions_.size();
  if (&room == &now_) {
    WriteBinds(now_.state, 0, pods, actions_);
    if (later_) {
      for (PodId p : pods) later_->state.Place(p, now_.state.placement(p));
    }
  } else if (waits_[at(w)] != 0 || !BindIfFree(pods)) {
    WriteNominations(later_->state, pods, actions_);
    ReserveNow(pods);
    waits_[at(w)] = 1;
  }
  for (PodId p : pods) memory_.Note(p, latest().placement(p).node);
  if (was_withdrawn_[at(w)] == 0) Open(w, pods);
  NoteActions(first);
  Commit();
}

// Nothing is taken back twice, or the cycle might not end.
void CycleRooms::Open(WorkloadId w, std::span<const PodId> pods) {
  for (PodId p : pods) open_[at(p)] = 1;
  opened_.insert(opened_.end(), pods.begin(), pods.end());
  NoteLowest(w, lowest_open_);
}

// Which action starts which pod, of those from `first` on.
void CycleRooms::NoteActions(size_t first) {
  for (size_t i = first; i < actions_.size(); ++i) {
    if (const PodRef* pod = StartedBy(actions_[i])) action_of_[at(*snapshot_.FindPod(*pod))] = i;
  }
}

// Binds pods that were placed later where their places are free now as well.
bool CycleRooms::BindIfFree(std::span<const PodId> pods) {
  const ClusterState::Mark mark = now_.state.GetMark();
  for (PodId p : pods) {
    const PodPlacement& placement = later_->state.placement(p);
    // A GPU that has to be carved for somebody who comes takes nothing meanwhile.
    const bool awaited = std::ranges::any_of(unreserved_, [&placement](const PodPlacement& other) {
      return other.node == placement.node && (other.gpus & placement.gpus) != 0;
    });
    if (awaited || now_.state.is_placed(p) ||
        !IsFree(now_.state, snapshot_.pod_set_of(p), placement)) {
      now_.state.RollBack(mark);
      return false;
    }
    now_.state.Place(p, placement);
  }
  WriteBinds(now_.state, mark, pods, actions_);
  return true;
}

void CycleRooms::ReserveNow(std::span<const PodId> pods) {
  for (PodId p : pods) {
    if (now_.state.is_placed(p)) {
      unreserved_.push_back(later_->state.placement(p));
    } else {
      now_.state.Reserve(p, later_->state.placement(p));
    }
  }
}

void CycleRooms::Commit() {
  now_.state.Commit();
  if (later_) later_->state.Commit();
}

void CycleRooms::CarryOut(const RoomPlan& plan, QuotaLedger& ledger) {
  ++version_;
  anyone_leaves_ = true;
  if (!later_) {
    later_ = Room{now_.state, {}};
    memory_.Forget();
  }
  later_->memory = {};
  tessera::CarryOut(plan, room_rules_,
                    {.later = &later_->state, .ledger = &ledger, .memory = &memory_});
  for (PodId p : plan.evicted) {
    spared_[at(p)] = 1;
    has_lost_[at(WorkloadOf(p))] = waits_[at(WorkloadOf(p))] = 1;
  }
  for (const std::vector<PodTarget>* targets : {&plan.moved, &plan.placed}) {
    for (const PodTarget& target : *targets) {
      waits_[at(WorkloadOf(target.pod))] = 1;
      ReserveNow({&target.pod, 1});
    }
  }
  Close(plan);
  std::ranges::copy(plan.actions, std::back_inserter(actions_));
  Commit();
}

// Whether others may reclaim of a queue depends on what it holds, and whether a gang stands on all
// its pods: nothing of it is taken back from now on.
void CycleRooms::Close(const RoomPlan& plan) {
  const QueueTree& tree = snapshot_.queues();
  std::vector<char> judged(static_cast<size_t>(tree.size())), changed(waits_.size());
  for (PodId p : plan.evicted) {
    changed[at(WorkloadOf(p))] = 1;
    for (QueueId q = QueueOf(p); q.valid(); q = tree.parent(q)) judged[at(q)] = 1;
  }
  for (const PodTarget& move : plan.moved) changed[at(WorkloadOf(move.pod))] = 1;
  for (const PodTarget& target : plan.placed) {
    changed[at(WorkloadOf(target.pod))] = 1;
    for (QueueId q = QueueOf(target.pod); q.valid(); q = tree.parent(q)) judged[at(q)] = 0;
  }
  std::ranges::fill(lowest_open_, INT_MAX);
  std::erase_if(opened_, [&](PodId p) {
    bool closes = changed[at(WorkloadOf(p))] != 0;
    for (QueueId q = QueueOf(p); q.valid() && !closes; q = tree.parent(q)) {
      closes = judged[at(q)] != 0;
    }
    if (closes) open_[at(p)] = 0;
    if (!closes) NoteLowest(WorkloadOf(p), lowest_open_);
    return closes;
  });
}

void CycleRooms::NoteLowest(WorkloadId w, std::vector<int>& lowest) const {
  if (!snapshot_.workload(w).is_preemptible()) return;
  int& priority = lowest[at(snapshot_.info(w).queue)];
  priority = std::min(priority, snapshot_.workload(w).priority);
}

// The same that the next cycle would find, at the same time: what has just started does not yield.
void CycleRooms::CountLowest() {
  std::ranges::fill(lowest_, INT_MAX);
  for (int i = 0; i < snapshot_.num_pods(); ++i) {
    const PodId p(i);
    if (!latest().is_placed(p) || spared_[at(p)] != 0) continue;
    if (HasStoodLong(latest(), p, room_rules_.victims)) NoteLowest(WorkloadOf(p), lowest_);
  }
}

bool CycleRooms::IsChanged(PodId p) const {
  const PodPhase phase = snapshot_.pod_phase(p);
  const bool was_there = phase == PodPhase::kRunning || phase == PodPhase::kNominated;
  return !was_there || latest().placement(p) != snapshot_.pod_placement(p);
}

std::vector<int> CycleRooms::LowestOfAll() const {
  std::vector<int> lowest = lowest_;
  for (size_t q = 0; q < lowest.size(); ++q) lowest[q] = std::min(lowest[q], lowest_open_[q]);
  return lowest;
}

LowestAfter CycleRooms::FindLowestAfter() const {
  LowestAfter lowest;
  lowest.all.assign(lowest_.size(), INT_MAX);
  lowest.changed = lowest.all;
  for (int i = 0; i < snapshot_.num_pods(); ++i) {
    const PodId p(i);
    if (!latest().is_placed(p)) continue;
    NoteLowest(WorkloadOf(p), lowest.all);
    if (!IsChanged(p)) continue;
    lowest.any_changed = true;
    NoteLowest(WorkloadOf(p), lowest.changed);
  }
  return lowest;
}

bool CycleRooms::IsAllOpen(const RoomPlan& plan) const {
  const auto is_open = [this](PodId p) { return open_[at(p)] != 0; };
  return std::ranges::all_of(plan.evicted, is_open) &&
         std::ranges::all_of(plan.moved, is_open, &PodTarget::pod);
}

std::vector<PodId> CycleRooms::OpenOf(WorkloadId w) const {
  const WorkloadInfo& info = snapshot_.info(w);
  std::vector<PodId> pods;
  for (int i = info.first_pod; i < info.first_pod + info.num_pods; ++i) {
    if (open_[at(PodId(i))] != 0) pods.push_back(PodId(i));
  }
  return pods;
}

void CycleRooms::Withdraw(WorkloadId w, QuotaLedger& ledger) {
  ++version_;
  was_withdrawn_[at(w)] = 1;
  for (PodId p : OpenOf(w)) {
    BookPod(snapshot_, rules_.usage.mig_charge, ledger, p, latest().placement(p), -1);
    memory_.Note(p, latest().placement(p).node);
    if (spared_[at(p)] != 0) {  // it still holds the place that it was made to leave
      unreserved_.erase(std::ranges::find(unreserved_, latest().placement(p)));
    } else {
      now_.state.Remove(p);
    }
    if (later_) later_->state.Remove(p);
    open_[at(p)] = 0;
    dropped_.push_back(action_of_[at(p)]);
  }
  std::erase_if(opened_, [this](PodId p) { return open_[at(p)] == 0; });
  // What is still to come of it may depend on an older nomination.
  waits_[at(w)] = has_lost_[at(w)];
  const WorkloadInfo& info = snapshot_.info(w);
  for (int i = info.first_pod; i < info.first_pod + info.num_pods; ++i) {
    const bool nominated = snapshot_.pod_phase(PodId(i)) == PodPhase::kNominated;
    if (nominated || (anyone_leaves_ && latest().is_placed(PodId(i)))) waits_[at(w)] = 1;
  }
  now_.memory = {};
  if (later_) later_->memory = {};
  Commit();
}

void CycleRooms::Start(WorkloadId w, std::span<const PodTarget> pods, QuotaLedger& ledger) {
  std::vector<PodId> ids;
  for (const auto& [p, placement] : pods) {
    BookPod(snapshot_, rules_.usage.mig_charge, ledger, p, placement, 1);
    latest().Place(p, placement);
    ids.push_back(p);
  }
  Accept(later_ ? *later_ : now_, w, ids);
}

void CycleRooms::EndStale(WorkloadId w, QuotaLedger& ledger) {
  RoomPlan plan;
  const WorkloadInfo& info = snapshot_.info(w);
  for (int i = info.first_pod; i < info.first_pod + info.num_pods; ++i) {
    const PodId p(i);
    if (!latest().is_placed(p)) continue;
    plan.evicted.push_back(p);
    plan.actions.push_back(EvictAction{snapshot_.pod_ref(p), "stale", ""});
  }
  if (!plan.evicted.empty()) CarryOut(plan, ledger);
}

std::vector<Action> CycleRooms::TakeActions() {
  const int64_t lifetime = rules_.nomination_lifetime, now = snapshot_.now();
  for (Action& action : actions_) {
    auto* nominate = std::get_if<NominateAction>(&action);
    const bool expires = lifetime != kUnlimited && now <= kUnlimited - lifetime;
    if (nominate != nullptr && expires) nominate->expires = now + lifetime;
  }
  std::ranges::sort(dropped_);
  std::vector<Action> kept;
  kept.reserve(actions_.size() - dropped_.size());
  auto dropped = dropped_.begin();
  for (size_t i = 0; i < actions_.size(); ++i) {
    if (dropped != dropped_.end() && *dropped == i) {
      ++dropped;
    } else {
      kept.push_back(std::move(actions_[i]));
    }
  }
  return kept;
}

}  // namespace tessera
