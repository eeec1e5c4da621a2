#include "src/preemption/room_planner.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/preemption/claim_account.h"
#include "src/preemption/room_moves.h"
#include "src/preemption/room_writer.h"
#include "tessera/placement/diagnosis.h"
#include "tessera/preemption/room_memory.h"

namespace tessera {

RoomPlanner::RoomPlanner(const RoomDesk& desk, WorkloadId w, const RoomRules& rules,
                         VictimCost cost)
    : desk_(desk),
      state_(*desk.later),
      snapshot_(desk.later->snapshot()),
      ledger_(*desk.ledger),
      w_(w),
      rules_(rules),
      cost_(cost),
      grows_(IsWhole(*desk.later, w)),
      need_(NeedOfClaimant()) {}

// --- Free -------------------------------------------------------------------

RoomPlan RoomPlanner::Free() {
  RoomPlan refused;
  for (ClusterState* state : {desk_.now, desk_.later}) {
    if (state == nullptr) continue;
    const ClusterState::Mark mark = state->GetMark();
    ClaimAccount account(snapshot_, ledger_, rules_.victims.mig_charge, w_);
    const GangOptions options{&account, rules_.gang_budget};
    const GangPlacement found = grows_ ? GrowGang(*state, w_, FindPacked, options)
                                       : PlaceGang(*state, w_, FindPacked, options);
    if (found.placed()) {
      RoomPlan plan = WriteFree(*state, mark, found.pods, state == desk_.now);
      plan.certificate.claimant = snapshot_.workload(w_).name;
      plan.certificate.cost = plan.certificate.mig_operations * rules_.costs.mig_operation;
      // Other places may spare some of the operations.
      plan.certificate.minimality =
          plan.certificate.mig_operations == 0 ? Minimality::kCheapest : Minimality::kInclusion;
      state->RollBack(mark);
      return plan;
    }
    refused = account.refusal() && found.outcome == SearchOutcome::kRefused
                  ? RefuseCharge(RoomStep::kFree, *account.refusal())
                  : RefuseSearch(RoomStep::kFree, true, found, 0);
    state->RollBack(mark);
  }
  return refused;
}

// --- Refusals ---------------------------------------------------------------

RoomPlan RoomPlanner::Refuse(RoomStep step, bool proven, PendingReason reason,
                             std::string text) const {
  RoomPlan plan;
  plan.outcome = proven ? RoomOutcome::kNoRoom : RoomOutcome::kBudgetExhausted;
  plan.certificate.claimant = snapshot_.workload(w_).name;
  plan.certificate.step = step;
  plan.certificate.proven = proven;
  plan.certificate.reason = proven ? reason : PendingReason::kBudgetExhausted;
  plan.certificate.refusal = std::move(text);
  return plan;
}

RoomPlan RoomPlanner::RefuseSearch(RoomStep step, bool proven, const GangPlacement& found,
                                   size_t yielding) {
  NodeCensus census;
  if (found.stuck_at.valid()) census = CountNodes(state_, found.stuck_at);
  const PendingWorkload why = Diagnose(state_, w_, found, census);
  std::string text = why.text;
  if (step != RoomStep::kFree) {
    text = yielding == 0
               ? absl::StrCat("nothing may yield; ", why.text)
               : absl::StrCat("even if all ", WithThousands(static_cast<int64_t>(yielding)),
                              " pods left that may: ", why.text);
  }
  const bool decided = proven && found.outcome != SearchOutcome::kBudgetExhausted;
  return Refuse(step, decided, why.reason, std::move(text));
}

RoomPlan RoomPlanner::RefuseCharge(RoomStep step, const QuotaRefusal& refusal) const {
  const bool quota = refusal.by == QuotaBound::kQuota;
  const std::string queue = refusal.queue.valid()
                                ? "queue " + snapshot_.queues().queue(refusal.queue).name
                                : std::string("the cluster");
  const std::string& resource = snapshot_.resources().name(refusal.resource);
  return Refuse(
      step, true, quota ? PendingReason::kQuota : PendingReason::kQueueLimit,
      absl::StrCat(queue, " would hold ", AmountOf(resource, refusal.held + refusal.asked),
                   quota ? " by work that is not preemptible, its quota is " : ", it may hold ",
                   AmountOf(resource, refusal.bound)));
}

// What refuses before anything is searched.
std::optional<RoomPlan> RoomPlanner::Gate(RoomStep step, YieldRights rights,
                                          const ClaimantNeed& need) {
  const Workload& workload = snapshot_.workload(w_);
  const int64_t waited = std::max<int64_t>(snapshot_.now() - workload.submitted, 0);
  if (waited < workload.preemption_delay) {
    return Refuse(step, true, PendingReason::kGang,
                  absl::StrCat("others yield for it in ", workload.preemption_delay - waited,
                               " seconds, when its preemption delay is over"));
  }
  if (rights.only_moves() && !rules_.victims.move_for_all && !workload.is_preemptible()) {
    return Refuse(step, true, PendingReason::kGang,
                  "others are moved for preemptible workloads only");
  }
  if (rights.only_moves() && !IsCapable()) {
    return Refuse(step, true, PendingReason::kInsufficientGpus,
                  "too few GPUs are free, however they are arranged");
  }
  if (!rights.reclaim || rights.preempt) return std::nullopt;
  const Entitlements entitlements(snapshot_.queues(), *desk_.shares, rules_.victims, ledger_,
                                  snapshot_.info(w_).queue, need);
  const std::optional<Overreach> over = entitlements.FindOverreach(need.least);
  if (!over) return std::nullopt;
  const std::string& resource = snapshot_.resources().name(over->resource);
  const int64_t share = entitlements.entitled(over->queue, over->resource);
  return Refuse(step, true, PendingReason::kQuota,
                absl::StrCat("queue ", snapshot_.queues().queue(over->queue).name, " would hold ",
                             AmountOf(resource, share + over->amount), ", its fair share is ",
                             AmountOf(resource, share)));
}

YieldRights RoomPlanner::PossibleOf(std::span<const int> lowest) const {
  if (lowest.empty()) return {.reclaim = true, .preempt = true, .move = true};
  const auto of = [&lowest](QueueId q) { return lowest[static_cast<size_t>(q.value())]; };
  const QueueId own = snapshot_.info(w_).queue;
  YieldRights rights{.preempt = of(own) < snapshot_.workload(w_).priority, .move = true};
  const Entitlements entitlements(snapshot_.queues(), *desk_.shares, rules_.victims, ledger_, own,
                                  need_);
  for (int i = 0; i < snapshot_.queues().size() && !rights.reclaim; ++i) {
    const QueueId q(i);
    rights.reclaim = q != own && of(q) != INT_MAX && entitlements.MayYield(q);
  }
  return rights;
}

bool RoomPlanner::MightMakeRoom(std::span<const int> among) {
  if (!Gate(RoomStep::kConsolidate, {.move = true}, need_)) return true;
  if (const YieldRights some = PossibleOf(among); !some.reclaim && !some.preempt) return false;
  YieldRights rights = Possible();
  rights.move = false;
  return (rights.reclaim || rights.preempt) && !Gate(RoomStep::kEvict, rights, need_);
}

// Whole GPUs that the minimum lacks for certain.
int64_t RoomPlanner::GpusLacking() const {
  if (grows_) return 0;
  int64_t gpus = 0;
  const WorkloadInfo& info = snapshot_.info(w_);
  for (const GangNode& node : snapshot_.gang(w_)) {
    // Where a choice of parts suffices none is certain.
    if (!node.is_pod_set() && node.min_children < node.num_children) return 0;
    if (!node.is_pod_set()) continue;
    const PodSetId s(info.first_pod_set + node.pod_set);
    const PodSetInfo& set = snapshot_.pod_set(s);
    const GpuRequest& gpu = snapshot_.request_class(set.request_class).gpu;
    if (gpu.kind != GpuRequestKind::kWhole) continue;
    gpus += int64_t{std::max(set.min_count - state_.standing(s), 0)} * gpu.devices;
  }
  return gpus;
}

// Whether moves could help at all: what is free in the whole cluster has to suffice.
bool RoomPlanner::IsCapable() const {
  const int64_t lacking = GpusLacking() * kGpuUnitsPerDevice;
  const auto count = [this] { return FreeUnits(); };
  return lacking <= (desk_.memory != nullptr ? desk_.memory->rows().FreeUnits(count) : count());
}

int64_t RoomPlanner::FreeUnits() const {
  int64_t units = 0;
  for (int i = 0; i < snapshot_.num_nodes(); ++i) {
    const NodeId n(i);
    for (int g = 0; g < state_.tables().num_gpus(n); ++g) {
      const GpuState& gpu = state_.gpu(n, g);
      if (!gpu.healthy || gpu.wholes > 0) continue;
      // A device with slices counts as free: what they take is left out of account.
      units += kGpuUnitsPerDevice - gpu.share;
    }
  }
  return units;
}

// What limits and quotas refuse even if all leaves that may.
std::optional<QuotaRefusal> RoomPlanner::FindRefusal(const YieldBook& book,
                                                     const ClaimantNeed& need) {
  const size_t mark = ledger_.GetMark();
  for (PodId p : book.candidates()) {
    if (book.rule(p) == YieldRule::kMoved) continue;  // it is charged as before
    const PodSetInfo& set = snapshot_.pod_set(snapshot_.pod_set_of(p));
    const ResourceVector charge =
        ChargeOf(snapshot_, set.request_class, book.home(p), rules_.victims.mig_charge);
    ledger_.Book(snapshot_.info(set.workload).queue, charge * -1, true);
  }
  const auto refusal =
      ledger_.Check(snapshot_.info(w_).queue, need.least, snapshot_.workload(w_).is_preemptible());
  ledger_.RollBack(mark);
  return refusal;
}

// Places the claimant as if all left that may. If even that fails, so does every plan.
std::optional<RoomPlan> RoomPlanner::RefuseHopeless(RoomStep step, YieldBook& book,
                                                    const ClaimantNeed& need) {
  if (const auto refusal = FindRefusal(book, need)) return RefuseCharge(step, *refusal);
  const ClusterState::Mark mark = state_.GetMark();
  for (PodId p : book.candidates()) state_.Remove(p);
  const GangOptions options{nullptr, rules_.gang_budget};
  const GangPlacement found = grows_ ? GrowGang(state_, w_, FindPacked, options)
                                     : PlaceGang(state_, w_, FindPacked, options);
  std::optional<RoomPlan> refused;
  if (!found.placed())
    refused = RefuseSearch(step, grows_ || found.proven, found, book.candidates().size());
  state_.RollBack(mark);
  return refused;
}

RoomPlan RoomPlanner::RefuseVictims(RoomStep step, bool proven, YieldRights rights) const {
  const char* text = "no set of victims that may yield together makes room";
  if (!proven && rights.move && !rights.only_moves()) {
    text = "no victims were found; to move some of those who may be evicted was not tried";
  } else if (!proven) {
    text = "no victims were found, and the search was cut short";
  }
  return Refuse(step, proven, PendingReason::kGang, text);
}

// --- Yield ------------------------------------------------------------------

// Where to look: all over, or for a required level of the whole gang in each of its domains.
RoomClaim RoomPlanner::ClaimAnywhere() const {
  RoomClaim claim;
  claim.workload = w_;
  claim.grows = grows_;
  claim.range = {0, snapshot_.num_nodes()};
  claim.mig_charge = rules_.victims.mig_charge;
  claim.budget = rules_.gang_budget;
  claim.barred = barred_;
  return claim;
}

std::vector<RoomClaim> RoomPlanner::Attempts() const {
  RoomClaim claim = ClaimAnywhere();
  const std::span<const GangNode> gang = snapshot_.gang(w_);
  const WorkloadInfo& info = snapshot_.info(w_);
  bool runs = grows_, required = false, preferred = false;
  for (int s = info.first_pod_set; s < info.first_pod_set + info.num_pod_sets; ++s) {
    runs |= state_.placed(PodSetId(s)) > 0;
  }
  for (const GangNode& node : gang) {
    required |= node.required_level >= 0;
    preferred |= node.preferred_level >= 0;
  }
  claim.lazily = !required && !preferred;
  std::vector<RoomClaim> claims;
  if (!runs && gang[0].required_level >= 0) {
    for (const TopologyDomain& domain : snapshot_.topology().domains(gang[0].required_level)) {
      claim.range = domain.nodes;
      claims.push_back(claim);
    }
    return claims;
  }
  claims.push_back(claim);
  if (!required && preferred) {
    claim.narrow = false;
    claims.push_back(claim);
  }
  return claims;
}

// What may be taken from others depends on what the claimant needs, and that on which parts of
// its gang make up its minimum: where they ask for different resources each choice is planned
// for by itself.
RoomPlan RoomPlanner::Yield(RoomStep step, YieldRights rights) {
  const std::vector<Choice> choices = rights.reclaim ? ChoicesThatMatter() : std::vector<Choice>();
  if (choices.empty()) return Yield(step, rights, need_, /*again=*/true);
  RoomPlan best;
  bool proven = choices.size() < kMostChoices, cheapest = proven;
  for (size_t i = 0; i < choices.size(); ++i) {
    barred_.assign(static_cast<size_t>(snapshot_.info(w_).num_pod_sets), 1);
    for (int set : choices[i]) barred_[static_cast<size_t>(set)] = 0;
    RoomPlan plan = Yield(step, rights, NeedOf(choices[i]), /*again=*/true);
    proven &= plan.certificate.proven;
    cheapest &= plan.found() ? plan.certificate.minimality == Minimality::kCheapest
                             : plan.certificate.proven;
    const bool better = !best.found() || plan.certificate.cost < best.certificate.cost;
    if (i == 0 || (plan.found() && better)) best = std::move(plan);
  }
  barred_.clear();
  if (!best.found() && !proven && best.certificate.proven) {
    best = Refuse(step, false, PendingReason::kBudgetExhausted, best.certificate.refusal);
  }
  if (best.found() && !cheapest) best.certificate.minimality = Minimality::kInclusion;
  return best;
}

// Whether `best` is the cheapest there is then, or there is none, for the resources that the
// claimant was said to need.
bool RoomPlanner::ImproveExactly(YieldBook& book, YieldRights rights, std::optional<Draft>& best) {
  if (static_cast<int>(book.candidates().size()) > rules_.exact_candidates) return false;
  ExactRoom exact(state_, ledger_, book, rules_, ClaimAnywhere());
  const std::optional<RoomSolution> cheaper =
      exact.Run(best ? best->victims_cost + best->carving : kNoCost);
  if (cheaper) {
    std::optional<Draft> adopted = Adopt(book, *cheaper);
    if (!adopted) return false;
    best = std::move(adopted);
  }
  // Where some may be made to leave and some to move, it is not asked whether who may leave
  // could move instead.
  return exact.is_complete() && (!rights.move || rights.only_moves());
}

RoomPlan RoomPlanner::Yield(RoomStep step, YieldRights rights, const ClaimantNeed& need,
                            bool again) {
  if (std::optional<RoomPlan> refused = Gate(step, rights, need)) return *std::move(refused);
  YieldPolicy policy{rules_.victims, rules_.costs, cost_,         rules_.honour_nominations,
                     desk_.spared,   desk_.open,   desk_.unmoved, {}};
  if (desk_.memory != nullptr) policy.ages = desk_.memory->rows().ages();
  const std::vector<RoomClaim> attempts = Attempts();
  if (ClaimRow* row = RowFor(rights, need, policy, attempts.front())) {
    return Yield(step, rights, need, again, attempts, row->book(), row);
  }
  YieldBook book(state_, ledger_, *desk_.shares, policy, rights, w_, need);
  return Yield(step, rights, need, again, attempts, book, nullptr);
}

// What is kept for such claims, where that can be: none of it depends on the workload but its
// tenant. KAI's test does on how much it asks for.
ClaimRow* RoomPlanner::RowFor(YieldRights rights, const ClaimantNeed& need,
                              const YieldPolicy& policy, const RoomClaim& claim) const {
  const bool lasting = desk_.memory != nullptr && desk_.open.empty() && claim.lazily &&
                       rules_.victims.reclaim == ReclaimTest::kEntitlement &&
                       !rules_.victims.replace_victims && !rights.move;
  if (!lasting || rights.reclaim == rights.preempt) return nullptr;
  RowKey key;
  key.reclaim = rights.reclaim;
  key.grows = grows_;
  const QueueId own = snapshot_.info(w_).queue;
  key.queue = rights.reclaim ? snapshot_.queues().parent(own) : own;
  key.priority = rights.reclaim ? 0 : snapshot_.workload(w_).priority;
  if (state_.tables().tracks_tenants()) key.tenant = snapshot_.info(w_).tenant;
  key.isolation = snapshot_.workload(w_).isolation;
  key.resources = need.resources;
  const auto make = [&] {
    return std::make_unique<ClaimRow>(key, state_, ledger_, *desk_.shares, policy, rights, claim,
                                      need);
  };
  return &desk_.memory->rows().RowFor(key, claim, make);
}

RoomPlan RoomPlanner::Yield(RoomStep step, YieldRights rights, const ClaimantNeed& need, bool again,
                            std::span<const RoomClaim> attempts, YieldBook& book, ClaimRow* row) {
  const size_t charges = ledger_.GetMark();
  std::optional<Draft> best;
  for (const RoomClaim& claim : attempts) {
    std::optional<Draft> draft = TryGreedy(book, claim, row);
    if (draft && (!best || draft->cost() < best->cost())) best = std::move(draft);
  }
  if (!best) {
    if (auto refused = RefuseHopeless(step, book, need)) return *std::move(refused);
  }
  const bool complete =
      ImproveExactly(book, rights, best) && (!rights.reclaim || (again && IsCertain(need)));
  ledger_.RollBack(charges);
  if (!best) return RefuseVictims(step, complete, rights);
  // What may be taken depends on what the claimant really needs.
  const ClaimantNeed real{need.least, ResourcesOf(*best)};
  const bool strict = rules_.victims.reclaim == ReclaimTest::kEntitlement;
  if (rights.reclaim && strict && real.resources != need.resources) {
    if (again) return Yield(step, rights, real, false);
    return Refuse(step, false, PendingReason::kGang,
                  "victims were found, but not for what it would need where they are");
  }
  RoomPlan plan = Write(step, book, *best);
  // Victims that found a new place are not what the cheapest were looked for by.
  const bool replaced = rules_.victims.replace_victims && !plan.moved.empty();
  if (plan.found() && complete && !replaced) {
    plan.certificate.minimality = Minimality::kCheapest;
  } else if (plan.found() && IsFewest(book, plan.certificate.victims.size())) {
    plan.certificate.minimality = Minimality::kFewest;
  }
  return plan;
}

}  // namespace tessera
