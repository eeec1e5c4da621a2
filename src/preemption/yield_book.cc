#include "src/preemption/yield_book.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "src/preemption/gang_cut.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/preemption/make_room.h"

namespace tessera {
YieldBook::YieldBook(const ClusterState& state, QuotaLedger& ledger, const FairShares& shares,
                     const YieldPolicy& policy, YieldRights rights, WorkloadId claimant,
                     const ClaimantNeed& need)
    : state_(state),
      snapshot_(state.snapshot()),
      ledger_(ledger),
      policy_(policy),
      rights_(rights),
      entitlements_(snapshot_.queues(), shares, policy.rules, ledger,
                    snapshot_.info(claimant).queue, need),
      homes_(static_cast<size_t>(snapshot_.num_pods())),
      is_up_(homes_.size()),
      leaves_(homes_.size()),
      pod_costs_(homes_.size()),
      up_(static_cast<size_t>(snapshot_.num_pod_sets())),
      gone_(up_.size()),
      gangs_(static_cast<size_t>(snapshot_.num_workloads())),
      breaks_(up_.size()) {
  for (int i = 0; i < snapshot_.num_pods(); ++i) {
    const PodId p(i);
    if (!state_.is_placed(p)) continue;
    is_up_[at(p)] = 1;
    ++up_[at(snapshot_.pod_set_of(p))];
  }
  yields_.resize(static_cast<size_t>(snapshot_.queues().size()));
  for (int q = 0; q < snapshot_.queues().size(); ++q) {
    const bool other = QueueId(q) != snapshot_.info(claimant).queue;
    yields_[static_cast<size_t>(q)] = rights.reclaim && other && entitlements_.MayYield(QueueId(q));
  }
  JudgeGangs(rights, claimant);
  AddCandidates(claimant);
  PriceCandidates();
}

// A workload is safe for a while after it started, but not what it has above its minimum.
bool YieldBook::IsProtected(WorkloadId w, QueueId scope, bool reclaim) const {
  std::optional<int64_t> least;
  for (QueueId q = scope; q.valid() && !least; q = snapshot_.queues().parent(q)) {
    const Queue& queue = snapshot_.queues().queue(q);
    least = reclaim ? queue.reclaim_min_runtime : queue.preempt_min_runtime;
  }
  if (!least) return false;
  int64_t start = INT64_MAX;
  const WorkloadInfo& info = snapshot_.info(w);
  for (int i = info.first_pod; i < info.first_pod + info.num_pods; ++i) {
    start = std::min(start, snapshot_.pod_started(PodId(i)));
  }
  return start != INT64_MAX && snapshot_.now() - start < *least;
}

void YieldBook::JudgeGangs(YieldRights rights, WorkloadId claimant) {
  for (size_t s = 0; s < up_.size(); ++s) {
    gangs_[at(snapshot_.pod_set(PodSetId(static_cast<int32_t>(s))).workload)].up += up_[s];
  }
  for (int i = 0; i < snapshot_.num_workloads(); ++i) {
    const WorkloadId w(i);
    if (w != claimant && gangs_[at(w)].up > 0) JudgeGang(rights, claimant, w);
  }
}

void YieldBook::JudgeGang(YieldRights rights, WorkloadId claimant, WorkloadId w) {
  Gang& gang = gangs_[at(w)];
  const Workload& workload = snapshot_.workload(w);
  const QueueId own = snapshot_.info(w).queue, other = snapshot_.info(claimant).queue;
  if (workload.is_preemptible() && own == other) {
    gang.rule = YieldRule::kPreempted;
    gang.may_yield = rights.preempt && workload.priority < snapshot_.workload(claimant).priority;
    const bool spared = policy_.rules.growth_spares_minimums && IsWhole(state_, claimant);
    if (gang.may_yield) gang.only_surplus = spared || IsProtected(w, own, false);
  } else if (workload.is_preemptible()) {
    gang.rule = YieldRule::kReclaimed;
    gang.may_yield = yields_[at(own)] != 0;
    const bool by_ancestor = policy_.rules.reclaim_runtime == RuntimeScope::kCommonAncestor;
    const QueueId scope = by_ancestor ? entitlements_.Branch(own) : own;
    if (gang.may_yield) gang.only_surplus = IsProtected(w, scope, true);
  }
  if (!gang.may_yield && rights.move) {
    gang.may_yield = workload.is_movable();
    gang.rule = YieldRule::kMoved;
  }
  if (!gang.may_yield) return;
  if (gang.rule != YieldRule::kMoved) {
    gang.is_sound = GangCut(snapshot_, w, is_up_, leaves_).IsSound();
  }
  SetMost(w);
}

void YieldBook::SetMost(WorkloadId w) {
  const std::optional<int>& most = snapshot_.workload(w).max_disrupted;
  if (most) gangs_[at(w)].most = std::max(*most - CountDisrupted(w), 0);
}

// Pods that are leaving their place, or have been made to since the snapshot was taken.
int YieldBook::CountDisrupted(WorkloadId w) const {
  const auto is_leaving = [](const Pod& pod) { return pod.phase == PodPhase::kReleasing; };
  int count = static_cast<int>(std::ranges::count_if(snapshot_.workload(w).pods, is_leaving));
  const WorkloadInfo& info = snapshot_.info(w);
  for (int i = info.first_pod; i < info.first_pod + info.num_pods; ++i) {
    const PodId p(i);
    const PodPhase phase = snapshot_.pod_phase(p);
    const bool stood = phase == PodPhase::kRunning ||
                       (phase == PodPhase::kNominated && policy_.honour_nominations);
    count += stood && state_.placement(p) != snapshot_.pod_placement(p) ? 1 : 0;
  }
  return count;
}

void YieldBook::AddCandidates(WorkloadId claimant) {
  for (int i = 0; i < snapshot_.num_pods(); ++i) {
    const PodId p(i);
    const Gang& gang = gangs_[at(workload_of(p))];
    if (!is_up_[at(p)] || !gang.may_yield || gang.most == 0) continue;
    if (workload_of(p) == claimant) continue;
    if (!Stands(p) && !Has(policy_.open, p)) continue;
    if (gang.rule == YieldRule::kMoved && !MayMoveNow(p)) continue;
    homes_[at(p)] = state_.placement(p);
    candidates_.push_back(p);
  }
}

bool YieldBook::MayMoveNow(PodId p) const {
  return snapshot_.pod_phase(p) != PodPhase::kNominated && !Has(policy_.unmoved, p);
}

bool YieldBook::Stands(PodId p) const {
  return !Has(policy_.spared, p) && HasStoodLong(state_, p, policy_.rules);
}

Victim YieldBook::VictimOf(PodId p, bool is_moved) const {
  const WorkloadId w = workload_of(p);
  const Workload& workload = snapshot_.workload(w);
  const PodPlacement& home = homes_[at(p)];
  const RequestClassId c = snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class;
  Victim victim;
  victim.pod = p;
  victim.workload = w;
  victim.priority = workload.priority;
  victim.cpu = snapshot_.request_class(c).need[kCpu];
  victim.is_moved = is_moved;
  const int devices = std::popcount(home.gpus);
  if (home.profile >= 0) {
    victim.gpu_units = ChargeOf(snapshot_, c, home, MigCharge::kByComputeSlices)[kGpu];
  } else {
    victim.gpu_units = int64_t{devices} * (home.share > 0 ? home.share : kGpuUnitsPerDevice);
  }
  return victim;
}

void YieldBook::PriceCandidates() {
  std::vector<int32_t> ranked;
  if (policy_.ages.empty()) ranked = RankByAge(snapshot_);
  const std::span<const int32_t> rank = policy_.ages.empty() ? ranked : policy_.ages;
  for (PodId p : candidates_) {
    const WorkloadId w = workload_of(p);
    Victim victim = VictimOf(p, gangs_[at(w)].rule == YieldRule::kMoved);
    const int64_t start = snapshot_.pod_started(p);
    const int64_t since = std::max(start, snapshot_.workload(w).last_checkpoint.value_or(start));
    if (since < snapshot_.now()) victim.seconds_lost = snapshot_.now() - since;
    const int64_t points = std::clamp<int64_t>(policy_.cost(victim), 0, kMaxVictimCost);
    pod_costs_[at(p)] = {Has(policy_.open, p) ? 0 : points, rank[at(w)]};
  }
}

int64_t YieldBook::moved_cost(PodId p) const {
  return std::clamp<int64_t>(policy_.cost(VictimOf(p, true)), 0, kMaxVictimCost);
}

ResourceVector YieldBook::ChargeOfPod(PodId p) const {
  return ChargeOf(snapshot_, snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class,
                  homes_[at(p)], policy_.rules.mig_charge);
}

// Whether `p` can leave alone: its set stands without it.
bool YieldBook::IsSurplus(PodId p) const {
  if (!gangs_[at(workload_of(p))].is_sound) return false;
  const PodSetId s = snapshot_.pod_set_of(p);
  const int stays = up_[at(s)] - gone_[at(s)] - 1;
  return stays + state_.tables().succeeded(s) >= snapshot_.pod_set(s).min_count;
}

void YieldBook::SetLeaves(PodId p, bool leaves) {
  if ((leaves_[at(p)] != 0) == leaves) return;
  leaves_[at(p)] = leaves ? 1 : 0;
  gone_[at(snapshot_.pod_set_of(p))] += leaves ? 1 : -1;
}

void YieldBook::SetEnds(Gang& gang, bool ends) {
  if (gang.ends == ends) return;
  gang.ends = ends;
  total_.points += ends ? policy_.costs.ended_gang : -policy_.costs.ended_gang;
}

void YieldBook::TakeUnits(const Gang& gang, QueueId q, int count) {
  if (gang.rule == YieldRule::kMoved) return;
  for (const ResourceVector& unit : gang.units) entitlements_.Take(q, unit, count);
}

void YieldBook::CountShare(WorkloadId w, int pods) {
  if (gangs_[at(w)].rule == YieldRule::kPreempted) num_preempted_ += pods;
  if (gangs_[at(w)].rule != YieldRule::kReclaimed || pods == 0) return;
  num_reclaimed_ += pods;
  const QueueId branch = entitlements_.Branch(snapshot_.info(w).queue);
  const auto it = std::ranges::find(lost_, branch, &std::pair<QueueId, int64_t>::first);
  if (it == lost_.end()) {
    lost_.emplace_back(branch, pods);
  } else {
    it->second += pods;
  }
}

int64_t YieldBook::ShareCost() const {
  int64_t cost = 0;
  for (const auto& [queue, pods] : lost_) {
    cost += pods * entitlements_.Need(queue) * policy_.costs.share / 1000;
  }
  return cost;
}

bool YieldBook::IsLegal(WorkloadId w) const {
  const Gang& gang = gangs_[at(w)];
  if (static_cast<int>(gang.leaving.size()) > gang.most) return false;
  return gang.rule != YieldRule::kReclaimed || entitlements_.IsLegal(snapshot_.info(w).queue);
}

// One more pod, which leaves alone: what was taken before stays as it is.
void YieldBook::Append(PodId p) {
  const WorkloadId w = workload_of(p);
  Gang& gang = gangs_[at(w)];
  Entry& entry = log_.emplace_back();
  entry.workload = w;
  entry.ledger_mark = ledger_.GetMark();
  entry.appended = true;
  entry.pod = p;
  entry.version = gang.version;
  gang.version = ++last_version_;
  const ResourceVector charge = ChargeOfPod(p);
  gang.leaving.insert(std::ranges::lower_bound(gang.leaving, p), p);
  SetLeaves(p, true);
  total_ += pod_costs_[at(p)];
  if (gang.rule == YieldRule::kMoved) return;
  SetEnds(gang, static_cast<int>(gang.leaving.size()) == gang.up);
  gang.units.push_back(charge);
  entitlements_.Take(snapshot_.info(w).queue, charge, 1);
  CountShare(w, 1);
  ledger_.Book(snapshot_.info(w).queue, charge * -1, true);
}

// From now on exactly `leaving` leaves of `w`.
void YieldBook::Assign(WorkloadId w, std::vector<PodId> leaving) {
  Gang& gang = gangs_[at(w)];
  Entry& entry = log_.emplace_back();
  entry.workload = w;
  entry.ledger_mark = ledger_.GetMark();
  entry.before = gang;
  gang.version = ++last_version_;
  const QueueId q = snapshot_.info(w).queue;
  const bool moved = gang.rule == YieldRule::kMoved;
  TakeUnits(gang, q, -1);
  for (PodId p : gang.leaving) {
    SetLeaves(p, false);
    total_ -= pod_costs_[at(p)];
    if (!moved) ledger_.Book(q, ChargeOfPod(p), true);
  }
  CountShare(w, static_cast<int>(leaving.size()) - static_cast<int>(gang.leaving.size()));
  SetEnds(gang, false);
  gang.leaving = std::move(leaving);
  for (PodId p : gang.leaving) {
    SetLeaves(p, true);
    total_ += pod_costs_[at(p)];
    if (!moved) ledger_.Book(q, ChargeOfPod(p) * -1, true);
  }
  gang.units.clear();
  if (moved) return;
  const GangCut cut(snapshot_, w, is_up_, leaves_);
  for (const std::vector<PodId>& unit : cut.Units()) {
    ResourceVector sum;
    for (PodId p : unit) sum += ChargeOfPod(p);
    gang.units.push_back(sum);
  }
  SetEnds(gang, static_cast<int>(gang.leaving.size()) == gang.up);
  TakeUnits(gang, q, 1);
}

void YieldBook::RollBack(Mark mark) {
  for (; log_.size() > mark; log_.pop_back()) {
    Entry& entry = log_.back();
    Gang& gang = gangs_[at(entry.workload)];
    const QueueId q = snapshot_.info(entry.workload).queue;
    ledger_.RollBack(entry.ledger_mark);
    if (entry.appended) {
      gang.leaving.erase(std::ranges::lower_bound(gang.leaving, entry.pod));
      SetEnds(gang, false);
      gang.version = entry.version;
      SetLeaves(entry.pod, false);
      total_ -= pod_costs_[at(entry.pod)];
      if (gang.rule == YieldRule::kMoved) continue;
      entitlements_.Take(q, gang.units.back(), -1);
      gang.units.pop_back();
      CountShare(entry.workload, -1);
      continue;
    }
    TakeUnits(gang, q, -1);
    for (PodId p : gang.leaving) {
      SetLeaves(p, false);
      total_ -= pod_costs_[at(p)];
    }
    SetEnds(gang, false);
    CountShare(entry.workload, static_cast<int>(entry.before.leaving.size()) -
                                   static_cast<int>(gang.leaving.size()));
    const bool ends = entry.before.ends;
    entry.before.ends = false;
    gang = std::move(entry.before);
    SetEnds(gang, ends);
    for (PodId p : gang.leaving) {
      SetLeaves(p, true);
      total_ += pod_costs_[at(p)];
    }
    TakeUnits(gang, q, 1);
  }
}

bool YieldBook::Displace(std::span<const PodId> pods) {
  const Mark mark = GetMark();
  for (PodId p : pods) {
    if (leaves(p)) continue;
    const WorkloadId w = workload_of(p);
    const Gang& gang = gangs_[at(w)];
    bool legal = is_candidate(p);
    if (legal && (gang.rule == YieldRule::kMoved || IsSurplus(p))) {
      Append(p);
    } else if (legal && !gang.only_surplus) {
      std::vector<PodId> leaving = gang.leaving;
      leaving.push_back(p);
      leaves_[at(p)] = 1;
      const std::vector<PodId> more = GangCut(snapshot_, w, is_up_, leaves_).Close();
      leaves_[at(p)] = 0;
      for (PodId other : more) leaves_[at(other)] = 0;
      legal = std::ranges::all_of(more, [this](PodId other) { return is_candidate(other); });
      leaving.insert(leaving.end(), more.begin(), more.end());
      std::ranges::sort(leaving);
      if (legal) Assign(w, std::move(leaving));
    } else {
      legal = false;
    }
    if (legal && IsLegal(w)) continue;
    RollBack(mark);
    return false;
  }
  return true;
}

void YieldBook::Restore(std::span<const PodId> pods) {
  const WorkloadId w = workload_of(pods.front());
  std::vector<PodId> leaving;
  for (PodId p : gangs_[at(w)].leaving) {
    if (std::ranges::find(pods, p) == pods.end()) leaving.push_back(p);
  }
  Assign(w, std::move(leaving));
}

std::vector<PodId> YieldBook::Restorable(std::span<const PodId> pods) {
  if (rule(pods.front()) == YieldRule::kMoved) return {pods.begin(), pods.end()};
  const WorkloadId w = workload_of(pods.front());
  for (PodId p : pods) leaves_[at(p)] = 0;
  const std::vector<PodId> more = GangCut(snapshot_, w, is_up_, leaves_).Close();
  for (PodId p : more) leaves_[at(p)] = 1;
  std::vector<PodId> restorable;
  for (PodId p : pods) {
    if (!leaves(p)) restorable.push_back(p);
    leaves_[at(p)] = 1;
  }
  return restorable;
}

bool YieldBook::AreInterchangeable(PodId a, PodId b) const {
  const WorkloadId v = workload_of(a), w = workload_of(b);
  const Gang &left = gangs_[at(v)], &right = gangs_[at(w)];
  const Workload &first = snapshot_.workload(v), &second = snapshot_.workload(w);
  const bool alike = left.rule == right.rule && left.only_surplus == right.only_surplus &&
                     left.is_sound == right.is_sound && queue_of(a) == queue_of(b) &&
                     snapshot_.info(v).tenant == snapshot_.info(w).tenant &&
                     first.isolation == second.isolation;
  return alike && left.up == 1 && right.up == 1 && (IsSurplus(a) == IsSurplus(b));
}

// What follows if one more pod of the set of `p` leaves, which cannot leave alone: the same for
// each of them, as all of the set leaves then.
const YieldBook::Break& YieldBook::BreakOf(PodId p) {
  const WorkloadId w = workload_of(p);
  const Gang& gang = gangs_[at(w)];
  Break& found = breaks_[at(snapshot_.pod_set_of(p))];
  if (found.version == gang.version) return found;
  leaves_[at(p)] = 1;
  const std::vector<PodId> more = GangCut(snapshot_, w, is_up_, leaves_).Close();
  leaves_[at(p)] = 0;
  for (PodId other : more) leaves_[at(other)] = 0;
  found.version = gang.version;
  found.cost = pod_costs_[at(p)];
  for (PodId other : more) found.cost += pod_costs_[at(other)];
  found.ends = static_cast<int>(gang.leaving.size() + more.size()) + 1 == gang.up;
  if (found.ends) found.cost.points += policy_.costs.ended_gang;
  return found;
}

RoomCost YieldBook::MarginalCost(PodId p) {
  if (!is_candidate(p)) return kNoCost;
  if (leaves(p)) return {};
  const Gang& gang = gangs_[at(workload_of(p))];
  if (gang.rule == YieldRule::kMoved) return pod_costs_[at(p)];
  if (!IsSurplus(p)) return gang.only_surplus ? kNoCost : BreakOf(p).cost;
  const bool ends = static_cast<int>(gang.leaving.size()) + 1 == gang.up;
  return ends ? pod_costs_[at(p)] + RoomCost{policy_.costs.ended_gang, 0} : pod_costs_[at(p)];
}

RoomCost YieldBook::MarginalCost(std::vector<PodId> pods) {
  std::ranges::sort(pods);
  RoomCost cost;
  for (size_t begin = 0; begin < pods.size();) {
    const WorkloadId w = workload_of(pods[begin]);
    size_t end = begin + 1;
    while (end < pods.size() && workload_of(pods[end]) == w) ++end;
    cost += CostOfGroup(w, std::span(pods).subspan(begin, end - begin));
    begin = end;
  }
  return cost;
}

// Pods of one workload, of which none leaves. What may not leave pays for itself alone.
RoomCost YieldBook::CostOfGroup(WorkloadId w, std::span<const PodId> pods) {
  RoomCost sum;
  for (PodId p : pods) sum += pod_costs_[at(p)];
  const Gang& gang = gangs_[at(w)];
  if (gang.rule == YieldRule::kMoved) return sum;
  if (pods.size() == 1) {
    const RoomCost cost = MarginalCost(pods.front());
    return cost == kNoCost ? sum : cost;
  }
  if (!IsSurplus(pods.front()) && BreakOf(pods.front()).ends) return BreakOf(pods.front()).cost;
  const Mark mark = GetMark();
  const RoomCost before = total_;
  if (Displace(pods)) sum = total_ - before;
  RollBack(mark);
  return sum;
}

std::vector<PodId> YieldBook::LeavingSince(Mark mark) const {
  std::vector<PodId> pods;
  for (size_t i = mark; i < log_.size(); ++i) {
    const Entry& entry = log_[i];
    if (entry.appended) {
      pods.push_back(entry.pod);
      continue;
    }
    for (PodId p : gangs_[at(entry.workload)].leaving) {
      if (!std::ranges::binary_search(entry.before.leaving, p)) pods.push_back(p);
    }
  }
  std::ranges::sort(pods);
  pods.erase(std::unique(pods.begin(), pods.end()), pods.end());
  return pods;
}

std::vector<WorkloadId> YieldBook::Yielding() const {
  std::vector<WorkloadId> yielding;
  if (log_.size() < gangs_.size() / 16) {
    for (const Entry& entry : log_) {
      if (!gangs_[at(entry.workload)].leaving.empty()) yielding.push_back(entry.workload);
    }
    std::ranges::sort(yielding);
    yielding.erase(std::unique(yielding.begin(), yielding.end()), yielding.end());
    return yielding;
  }
  for (size_t w = 0; w < gangs_.size(); ++w) {
    if (!gangs_[w].leaving.empty()) yielding.push_back(WorkloadId(static_cast<int32_t>(w)));
  }
  return yielding;
}

}  // namespace tessera
