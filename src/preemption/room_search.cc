#include "src/preemption/room_search.h"

#include <algorithm>
#include <utility>

#include "tessera/placement/pod_query.h"

namespace tessera {
namespace {

template <typename Tag>
size_t At(Id<Tag> id) {
  return static_cast<size_t>(id.value());
}

}  // namespace

RoomSearch::RoomSearch(ClusterState& state, QuotaLedger& ledger, YieldBook& book,
                       const RoomClaim& claim)
    : state_(state),
      snapshot_(state.snapshot()),
      ledger_(ledger),
      book_(book),
      claim_(claim),
      leaf_(snapshot_.info(claim.workload).queue),
      preemptible_(snapshot_.workload(claim.workload).is_preemptible()),
      residents_(static_cast<size_t>(snapshot_.num_nodes())),
      guests_(residents_.size()),
      released_(static_cast<size_t>(snapshot_.num_pods())) {
  for (PodId p : book.candidates()) {
    if (claim.range.contains(book.home(p).node)) residents_[At(book.home(p).node)].push_back(p);
  }
}

void RoomSearch::Retarget(const RoomClaim& claim, std::span<const NodeId> touched) {
  claim_ = claim;
  leaf_ = snapshot_.info(claim.workload).queue;
  preemptible_ = snapshot_.workload(claim.workload).is_preemptible();
  for (NodeId n : touched) {
    std::erase_if(residents_[At(n)], [this](PodId p) { return !book_.is_candidate(p); });
    MarkStale(n);
  }
  std::erase_if(cheapest_, [this](PodId p) { return !book_.is_candidate(p); });
}

void RoomSearch::Forget() {
  const std::vector<NodeId> affected = book_.Affected();
  RollBack(0);
  for (NodeId n : affected) MarkStale(n);
  // Pods of one workload alone keep each other away.
  std::erase_if(tables_, [](const CostTable& table) { return table.pod_set.valid(); });
  charged_ = {};
}

GangPlacement RoomSearch::Run() {
  const YieldBook::Mark before = book_.GetMark();
  for (PodId p : book_.candidates()) {
    if (claim_.lazily) break;
    if (claim_.range.contains(book_.home(p).node)) Release(p);
  }
  const auto find = [this](const ClusterState&, const PodQuery& query) { return Find(query); };
  // The finder prefers places, and the exact search would not.
  const GangOptions options{.account = this, .budget = claim_.budget, .finder_withholds = true};
  GangPlacement found = claim_.grows ? GrowGang(state_, claim_.workload, find, options)
                                     : PlaceGang(state_, claim_.workload, find, options);
  if (!found.placed() || found.pods.empty()) return found;
  if (!MeetEntitlement()) return {SearchOutcome::kRefused, {}, found.stuck_at};
  if (claim_.lazily) {
    ReleaseAll(book_.LeavingSince(before));
  } else {
    PutBack();
  }
  RestoreWhatCanStay();
  if (!IsPermitted()) return {SearchOutcome::kRefused, {}, found.stuck_at};
  return found;
}

void RoomSearch::Adopt(std::span<const PodTarget> placed) {
  for (const auto& [p, placement] : placed) {
    const RequestClassId c = snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class;
    state_.Place(p, placement);
    guests_[At(placement.node)].push_back(p);
    charged_ += ChargeOf(snapshot_, c, placement, claim_.mig_charge);
  }
}

void RoomSearch::Release(PodId p) {
  if (std::exchange(released_[At(p)], 1) == 0) state_.Remove(p);
}

void RoomSearch::ReleaseAll(std::span<const PodId> pods) {
  for (PodId p : pods) {
    if (state_.is_placed(p)) state_.Remove(p);
  }
}

// --- Where a pod costs least ------------------------------------------------

RoomSearch::CostTable& RoomSearch::CostsOf(PodSetId s) {
  const PodSetInfo& set = snapshot_.pod_set(s);
  const PodSetId own = set.is_spread() ? s : PodSetId();
  for (CostTable& table : tables_) {
    if (table.request == set.request_class && table.pod_set == own) return table;
  }
  tables_.push_back({set.request_class, own, NodeCosts(snapshot_.num_nodes())});
  // A cost of nothing means that it has yet to be worked out.
  for (int signature : state_.tables().eligible(set.request_class)) {
    for (int32_t n : state_.tables().signatures()[static_cast<size_t>(signature)].nodes) {
      if (claim_.range.contains(NodeId(n))) tables_.back().costs.Set(NodeId(n), {});
    }
  }
  return tables_.back();
}

void RoomSearch::MarkStale(NodeId n) {
  for (CostTable& table : tables_) {
    const int signature = state_.tables().signature_of(n);
    const bool eligible =
        state_.tables().eligibility(table.request, signature) == Eligibility::kEligible;
    if (eligible && claim_.range.contains(n)) table.costs.Set(n, {});
    MarkDomainStale(n, table);
  }
}

// A pod more or less in a domain decides about all its nodes.
void RoomSearch::MarkDomainStale(NodeId n, CostTable& table) {
  if (!table.pod_set.valid()) return;
  const PodSetInfo& set = snapshot_.pod_set(table.pod_set);
  if (set.max_per_domain == 0) return;
  const Topology& topology = snapshot_.topology();
  const NodeRange domain =
      topology.NodesOf(set.domain_level, topology.domain_of(n, set.domain_level));
  const NodeRange nodes = Intersect(domain, claim_.range);
  for (int i = nodes.begin; i < nodes.end; ++i) {
    const Eligibility may =
        state_.tables().eligibility(table.request, state_.tables().signature_of(NodeId(i)));
    if (may == Eligibility::kEligible) table.costs.Set(NodeId(i), {});
  }
}

std::optional<PodPlacement> RoomSearch::Find(const PodQuery& query) {
  if (claim_.is_barred(snapshot_, query.pod_set)) return std::nullopt;
  const NodeRange range = Intersect(query.range, claim_.range);
  const bool narrowed = range.size() < claim_.range.size();
  if (narrowed && !claim_.narrow) return std::nullopt;
  CostTable& table = CostsOf(query.pod_set);
  NodeCosts& costs = table.costs;
  std::vector<std::pair<NodeId, RoomCost>> skipped;
  std::optional<PodPlacement> found;
  while (!found) {
    const NodeId n = costs.Cheapest(range);
    if (!n.valid()) break;
    const ModelId m = snapshot_.node_model(n);
    if (m.valid() && ((query.excluded_models >> m.value()) & 1) != 0) {
      skipped.emplace_back(n, costs.cost(n));
      costs.Set(n, kNoCost);
      continue;
    }
    std::optional<Fit> fit = Evaluate(query.pod_set, n, nullptr);
    if (fit && fit->cost <= costs.cost(n) && !IsLegal(fit->displaced)) {
      fit = EvaluateLegally(query.pod_set, n, nullptr);
      if (!fit) barred_.emplace_back(static_cast<size_t>(&table - tables_.data()), n);
    }
    const RoomCost cost = fit ? fit->cost : kNoCost;
    if (fit && cost <= costs.cost(n)) {
      found = fit->placement;
      last_ = std::move(fit);
    }
    costs.Set(n, cost);
  }
  for (const auto& [n, cost] : skipped) costs.Set(n, cost);
  return found;
}

// Candidates of the node that have not left, the cheapest first; of equal ones the last.
std::vector<PodId> RoomSearch::ByCost(NodeId n) {
  std::vector<std::pair<RoomCost, PodId>> ranked;
  for (PodId p : residents_[At(n)]) {
    if (!book_.leaves(p)) ranked.emplace_back(book_.MarginalCost(p), p);
  }
  std::ranges::sort(ranked, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  std::vector<PodId> pods;
  for (const auto& entry : ranked) pods.push_back(entry.second);
  return pods;
}

std::optional<PodPlacement> RoomSearch::Choose(PodSetId s, NodeId n, const PodPlacement* fixed) {
  if (fixed == nullptr) {
    return ChooseDevices(state_, {s, {n.value(), n.value() + 1}, 0}, n, DevicePreference::kPack);
  }
  return IsFree(state_, s, *fixed) ? std::optional(*fixed) : std::nullopt;
}

// Puts pods back while one more of `s` still fits beside them and the claimant's others; those
// that have to stay away.
std::vector<PodId> RoomSearch::Prune(PodSetId s, NodeId n, const PodPlacement* fixed,
                                     std::vector<PodId> dearest_first) {
  std::vector<PodId> away;
  for (PodId p : dearest_first) {
    const ClusterState::Mark mark = state_.GetMark();
    state_.Place(p, book_.home(p));
    if (Coexists(n) && Choose(s, n, fixed)) continue;
    state_.RollBack(mark);
    away.push_back(p);
  }
  return away;
}

std::optional<RoomSearch::Fit> RoomSearch::Evaluate(PodSetId s, NodeId n,
                                                    const PodPlacement* fixed) {
  const ClusterState::Mark mark = state_.GetMark();
  if (claim_.lazily) ReleaseAll(residents_[At(n)]);
  if (!Choose(s, n, fixed)) {
    state_.RollBack(mark);
    return std::nullopt;
  }
  std::vector<PodId> dearest_first = ByCost(n);
  std::ranges::reverse(dearest_first);
  Fit fit;
  fit.displaced = Prune(s, n, fixed, std::move(dearest_first));
  fit.placement = *Choose(s, n, fixed);
  state_.RollBack(mark);
  fit.cost = book_.MarginalCost(fit.displaced);
  return fit;
}

// The same where what costs least may not all leave: pods leave one by one, the cheapest
// that still may.
std::optional<RoomSearch::Fit> RoomSearch::EvaluateLegally(PodSetId s, NodeId n,
                                                           const PodPlacement* fixed) {
  const ClusterState::Mark mark = state_.GetMark();
  const YieldBook::Mark book_mark = book_.GetMark();
  const std::vector<PodId> ranked = ByCost(n);
  for (PodId p : ranked) {
    if (!state_.is_placed(p)) state_.Place(p, book_.home(p));
  }
  std::vector<PodId> gone;
  const auto fits = [&] { return Coexists(n) && Choose(s, n, fixed).has_value(); };
  bool is_fit = fits();
  for (size_t i = 0; i < ranked.size() && !is_fit; ++i) {
    if (book_.leaves(ranked[i]) || !book_.Displace({&ranked[i], 1})) continue;
    for (PodId p : ranked) {
      if (!book_.leaves(p) || !state_.is_placed(p)) continue;
      state_.Remove(p);
      gone.push_back(p);
    }
    is_fit = fits();
  }
  book_.RollBack(book_mark);
  std::optional<Fit> fit;
  if (is_fit) {
    fit.emplace();
    std::ranges::reverse(gone);
    fit->displaced = Prune(s, n, fixed, std::move(gone));
    fit->placement = *Choose(s, n, fixed);
    fit->cost = book_.MarginalCost(fit->displaced);
    if (!IsLegal(fit->displaced)) fit.reset();
  }
  state_.RollBack(mark);
  return fit;
}

bool RoomSearch::IsLegal(std::span<const PodId> displaced) {
  const YieldBook::Mark mark = book_.GetMark();
  const bool legal = book_.Displace(displaced);
  book_.RollBack(mark);
  return legal;
}

bool RoomSearch::Coexists(NodeId n) {
  for (PodId guest : guests_[At(n)]) {
    const ClusterState::Mark mark = state_.GetMark();
    const PodPlacement placement = state_.placement(guest);
    state_.Remove(guest);
    const bool fits = IsFree(state_, snapshot_.pod_set_of(guest), placement);
    state_.RollBack(mark);
    if (!fits) return false;
  }
  return true;
}

// --- Who pays ---------------------------------------------------------------

bool RoomSearch::Charge(PodId p, const PodPlacement& placement) {
  const PodSetId s = snapshot_.pod_set_of(p);
  const NodeId n = placement.node;
  Claim claim;
  claim.pod = p;
  claim.node = n;
  claim.before = book_.GetMark();
  claim.charge =
      ChargeOf(snapshot_, snapshot_.pod_set(s).request_class, placement, claim_.mig_charge);
  std::optional<Fit> fit = std::exchange(last_, std::nullopt);
  if (!fit || fit->placement != placement) fit = Evaluate(s, n, &placement);
  if (fit && !book_.Displace(fit->displaced)) {
    fit = EvaluateLegally(s, n, &placement);
    if (fit && !book_.Displace(fit->displaced)) fit.reset();
  }
  bool permitted = fit.has_value();
  while (permitted && !IsPermitted(charged_ + claim.charge)) {
    permitted = refusal_     ? MakeHeadroom(refusal_->queue, refusal_->resource)
                : overreach_ ? MakeHeadroom(overreach_->queue, overreach_->resource)
                             : false;
  }
  if (!permitted) {
    book_.RollBack(claim.before);
    return false;
  }
  const std::vector<PodId> leaving = book_.LeavingSince(claim.before);
  if (claim_.lazily) ReleaseAll(leaving);
  for (PodId gone : leaving) claim.touched.push_back(book_.home(gone).node);
  claim.touched.push_back(n);
  for (NodeId touched : claim.touched) MarkStale(touched);
  charged_ += claim.charge;
  guests_[At(n)].push_back(p);
  claims_.push_back(std::move(claim));
  return true;
}

void RoomSearch::RollBack(size_t mark) {
  for (; claims_.size() > mark; claims_.pop_back()) {
    const Claim& claim = claims_.back();
    book_.RollBack(claim.before);
    charged_ -= claim.charge;
    guests_[At(claim.node)].pop_back();
    for (NodeId n : claim.touched) MarkStale(n);
  }
  last_.reset();
  // What was barred because too much had been taken may do now.
  for (const auto& [table, n] : barred_) tables_[table].costs.Set(n, {});
  barred_.clear();
}

bool RoomSearch::IsBelow(QueueId q, QueueId ancestor) const {
  if (!ancestor.valid()) return true;
  for (; q.valid(); q = snapshot_.queues().parent(q)) {
    if (q == ancestor) return true;
  }
  return false;
}

// The cheapest pod that holds some of `resource` below `q` leaves.
bool RoomSearch::MakeHeadroom(QueueId q, int resource) {
  if (cheapest_.empty()) {
    cheapest_.assign(book_.candidates().rbegin(), book_.candidates().rend());
    std::ranges::stable_sort(
        cheapest_, [this](PodId a, PodId b) { return book_.pod_cost(a) < book_.pod_cost(b); });
  }
  for (PodId p : cheapest_) {
    if (book_.leaves(p) || book_.rule(p) == YieldRule::kMoved) continue;
    const PodSetInfo& set = snapshot_.pod_set(snapshot_.pod_set_of(p));
    if (!IsBelow(snapshot_.info(set.workload).queue, q)) continue;
    const ResourceVector charge =
        ChargeOf(snapshot_, set.request_class, book_.home(p), claim_.mig_charge);
    if (charge[resource] > 0 && book_.Displace({&p, 1})) return true;
  }
  return false;
}

// --- What stays -------------------------------------------------------------

bool RoomSearch::IsPermitted(const ResourceVector& charge) {
  overreach_.reset();
  refusal_ = ledger_.Check(leaf_, charge, preemptible_);
  if (refusal_) return false;
  if (!book_.asks_entitlement()) return true;
  overreach_ = book_.entitlements().FindOverreach(charge);
  return !overreach_;
}

bool RoomSearch::MeetEntitlement() {
  while (!IsPermitted(charged_)) {
    if (!overreach_ || !MakeHeadroom(overreach_->queue, overreach_->resource)) return false;
  }
  return true;
}

void RoomSearch::PutBack() {
  for (PodId p : book_.candidates()) {
    const bool away = !state_.is_placed(p);
    if (!book_.leaves(p) && away) state_.Place(p, book_.home(p));
    if (book_.leaves(p) && !away) Release(p);
  }
}

void RoomSearch::RestoreWhatCanStay() {
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<std::pair<RoomCost, WorkloadId>> dearest;
    for (WorkloadId w : book_.Yielding()) {
      RoomCost cost;
      for (PodId p : book_.leaving(w)) cost += book_.pod_cost(p);
      dearest.emplace_back(cost, w);
    }
    std::ranges::sort(dearest, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    for (const auto& entry : dearest) changed |= TryRestore(entry.second);
  }
}

// Lets what can of `w` stay; tells whether anything does.
bool RoomSearch::TryRestore(WorkloadId w) {
  std::vector<PodId> fitting;
  const std::vector<PodId> leaving(book_.leaving(w).begin(), book_.leaving(w).end());
  const ClusterState::Mark mark = state_.GetMark();
  for (PodId p : leaving) {
    if (state_.is_placed(p)) continue;  // it has a new place
    const ClusterState::Mark before = state_.GetMark();
    state_.Place(p, book_.home(p));
    if (Coexists(book_.home(p).node)) {
      fitting.push_back(p);
    } else {
      state_.RollBack(before);
    }
  }
  state_.RollBack(mark);
  if (fitting.empty()) return false;
  const std::vector<PodId> restorable = book_.Restorable(fitting);
  if (restorable.empty()) return false;
  if (TryRestorePods(restorable)) return true;
  // Not all of it is permitted to stay: perhaps one by one.
  bool restored = false;
  for (PodId p : restorable) restored |= TryRestorePods(book_.Restorable({&p, 1}));
  return restored;
}

bool RoomSearch::TryRestorePods(std::span<const PodId> pods) {
  if (pods.empty()) return false;
  const YieldBook::Mark mark = book_.GetMark();
  book_.Restore(pods);
  if (!IsPermitted()) {
    book_.RollBack(mark);
    return false;
  }
  for (PodId p : pods) state_.Place(p, book_.home(p));
  return true;
}

}  // namespace tessera
