#include "src/preemption/entitlements.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

std::vector<ResourceVector> HeldBy(const QueueTree& tree, const QuotaLedger& ledger) {
  std::vector<ResourceVector> held;
  for (int q = 0; q < tree.size(); ++q) held.push_back(ledger.allocated(QueueId(q)));
  return held;
}

constexpr int kKaiResources[] = {kCpu, kMemory, kGpu};

}  // namespace

Entitlements::Entitlements(const QueueTree& tree, const FairShares& shares,
                           const VictimRules& rules, const QuotaLedger& ledger, QueueId claimant,
                           const ClaimantNeed& need)
    : tree_(tree),
      shares_(shares),
      rules_(rules),
      before_(HeldBy(tree, ledger)),
      claimant_(claimant),
      need_(need.least),
      counts_(kMaxResources) {
  for (int r = 0; r < kMaxResources; ++r) {
    const bool kai = r == kCpu || r == kMemory || r == kGpu;
    // Pods are no resource that a queue is entitled to.
    const bool strict = r != kPods && need.resources[static_cast<size_t>(r)];
    counts_[static_cast<size_t>(r)] = rules.reclaim == ReclaimTest::kKai ? kai : strict;
  }
}

void Entitlements::Retarget(const QuotaLedger& ledger, QueueId claimant) {
  before_ = HeldBy(tree_, ledger);
  claimant_ = claimant;
  accounts_.clear();
}

bool Entitlements::IsOnPath(QueueId q) const {
  for (QueueId at = claimant_; at.valid(); at = tree_.parent(at)) {
    if (at == q) return true;
  }
  return false;
}

QueueId Entitlements::Branch(QueueId q) const {
  while (tree_.parent(q).valid() && !IsOnPath(tree_.parent(q))) q = tree_.parent(q);
  return q;
}

void Entitlements::Take(QueueId q, const ResourceVector& unit, int count) {
  ResourceVector charge;
  Amounts amounts{};
  for (int r = 0; r < kMaxResources; ++r) {
    charge[r] = counts(r) ? unit[r] : 0;
    amounts[static_cast<size_t>(r)] = charge[r];
  }
  for (QueueId at = q; at.valid(); at = tree_.parent(at)) {
    Account& account = accounts_[at];
    account.taken += charge * count;
    if (IsOnPath(at)) continue;
    account.units += count;
    const auto kind = account.kinds.try_emplace(amounts).first;
    if ((kind->second += count) == 0) account.kinds.erase(kind);
    for (size_t r = 0; r < amounts.size(); ++r) account.holders[r] += amounts[r] > 0 ? count : 0;
  }
}

bool Entitlements::IsLegal(QueueId q) const {
  if (q == claimant_) return true;
  const QueueId branch = Branch(q);
  for (QueueId at = q;; at = tree_.parent(at)) {
    const auto it = accounts_.find(at);
    const bool judged = rules_.reclaim == ReclaimTest::kEntitlement || at == branch;
    if (judged && it != accounts_.end() && it->second.units > 0) {
      const bool legal = rules_.reclaim == ReclaimTest::kKai ? IsLegalByKai(at, it->second, need_)
                                                             : HasOrder(at, it->second);
      if (!legal) return false;
    }
    if (at == branch) return true;
  }
}

bool Entitlements::HasOrder(QueueId q, const Account& account) const {
  ResourceVector state;
  for (int r = 0; r < kMaxResources; ++r) state[r] = held(q, r) - account.taken[r];
  if (HasOrderBefore(q, account, state, nullptr)) return true;
  for (const auto& [unit, count] : account.kinds) {
    bool above = false;
    ResourceVector before = state;
    for (int r = 0; r < kMaxResources; ++r) {
      before[r] += unit[static_cast<size_t>(r)];
      above |= before[r] > state[r] && before[r] > entitled(q, r);
    }
    if (above && HasOrderBefore(q, account, before, &unit)) return true;
  }
  return false;
}

// Whether all units but one of kind `last` can leave, each finding the queue above its
// entitlement and leaving it not below, until `state` is reached. Told backwards: what may
// leave last is put back first, and whatever is put back makes it easier for the others.
bool Entitlements::HasOrderBefore(QueueId q, const Account& account, ResourceVector state,
                                  const Amounts* last) const {
  for (int r = 0; r < kMaxResources; ++r) {
    const bool all_hold = account.holders[static_cast<size_t>(r)] == account.units;
    if (counts(r) && all_hold && state[r] >= entitled(q, r)) return true;
  }
  std::vector<std::pair<const Amounts*, int>> open;
  for (const auto& [unit, count] : account.kinds) {
    const int left = &unit == last ? count - 1 : count;
    if (left > 0) open.emplace_back(&unit, left);
  }
  for (size_t before = open.size() + 1; open.size() < before && !open.empty();) {
    before = open.size();
    std::erase_if(open, [&](const std::pair<const Amounts*, int>& kind) {
      const Amounts& unit = *kind.first;
      bool may = false;
      for (int r = 0; r < kMaxResources && !may; ++r) {
        may = unit[static_cast<size_t>(r)] > 0 && state[r] >= entitled(q, r);
      }
      if (!may) return false;
      for (int r = 0; r < kMaxResources; ++r) {
        state[r] += unit[static_cast<size_t>(r)] * kind.second;
      }
      return true;
    });
  }
  return open.empty();
}

int64_t Entitlements::Allocatable(QueueId q, int r) const {
  const int64_t quota = tree_.quota(q)[r], limit = tree_.limit(q)[r];
  return quota == kUnlimited ? limit : std::min(limit, std::max(quota, entitled(q, r)));
}

// Whether the claimant's queue beside `side` stays within its quota with `charge`.
bool Entitlements::ClaimantWithinQuota(QueueId side, const ResourceVector& charge) const {
  QueueId own = claimant_;
  while (tree_.parent(own) != tree_.parent(side)) own = tree_.parent(own);
  return std::ranges::all_of(
      kKaiResources, [&](int r) { return left(own, r) + charge[r] <= tree_.quota(own)[r]; });
}

bool Entitlements::IsLegalByKai(QueueId q, const Account& account,
                                const ResourceVector& charge) const {
  const bool guaranteed = ClaimantWithinQuota(q, charge);
  for (const auto& [unit, count] : account.kinds) {
    for (int r : kKaiResources) {
      const int64_t before = left(q, r) + unit[static_cast<size_t>(r)];
      if (before > Allocatable(q, r)) return true;
      if (guaranteed && before > tree_.quota(q)[r]) return true;
    }
  }
  return false;
}

bool Entitlements::MayYield(QueueId q) const {
  const QueueId branch = Branch(q);
  const bool kai = rules_.reclaim == ReclaimTest::kKai;
  const bool guaranteed = kai && ClaimantWithinQuota(branch, need_);
  for (QueueId at = kai ? branch : q;; at = tree_.parent(at)) {
    bool above = false;
    for (int r = 0; r < kMaxResources && !above; ++r) {
      if (!counts(r)) continue;
      const int64_t bound = kai ? Allocatable(at, r) : entitled(at, r);
      above = held(at, r) > bound || (guaranteed && held(at, r) > tree_.quota(at)[r]);
    }
    if (!above) return false;
    if (at == branch) return true;
  }
}

std::optional<Overreach> Entitlements::FindGrowth(const ResourceVector& charge) const {
  for (QueueId at = claimant_; at.valid(); at = tree_.parent(at)) {
    for (int r = 0; r < kMaxResources; ++r) {
      if (!counts(r) || charge[r] == 0) continue;
      const int64_t over = left(at, r) + charge[r] - std::max(entitled(at, r), held(at, r));
      if (over > 0) return Overreach{at, r, over};
    }
  }
  return std::nullopt;
}

std::optional<Overreach> Entitlements::FindOverreach(const ResourceVector& charge) const {
  const bool kai = rules_.reclaim == ReclaimTest::kKai;
  if (const auto own = accounts_.find(claimant_); rules_.preempt_within_share &&
                                                  own != accounts_.end() &&
                                                  own->second.taken != ResourceVector()) {
    const bool reclaims =
        std::ranges::any_of(accounts_, [](const auto& entry) { return entry.second.units > 0; });
    if (!reclaims) return FindGrowth(charge);
  }
  // The highest of the claimant's queues beside which something was taken.
  QueueId top = claimant_;
  for (QueueId at = claimant_; at.valid() && !kai; at = tree_.parent(at)) {
    for (const auto& [q, account] : accounts_) {
      if (q != at && account.units > 0 && tree_.parent(q) == tree_.parent(at)) top = at;
    }
  }
  for (QueueId at = claimant_;; at = tree_.parent(at)) {
    for (int r = 0; r < kMaxResources; ++r) {
      if (!counts(r)) continue;
      const int64_t over = left(at, r) + charge[r] - entitled(at, r);
      if (over > 0) return Overreach{at, r, over};
    }
    if (at == top) return std::nullopt;
  }
}

bool Entitlements::IsBalanced(const ResourceVector& charge) const {
  if (rules_.reclaim != ReclaimTest::kKai) return true;
  for (QueueId at = claimant_; at.valid(); at = tree_.parent(at)) {
    for (QueueId sibling : tree_.children(tree_.parent(at))) {
      const auto it = accounts_.find(sibling);
      if (sibling == at || it == accounts_.end() || it->second.units == 0) continue;
      if (!IsLegalByKai(sibling, it->second, charge)) return false;
      for (int r : kKaiResources) {
        if (charge[r] <= 0) continue;
        const int64_t own = left(at, r) + charge[r], own_share = entitled(at, r);
        const int64_t other = left(sibling, r), other_share = entitled(sibling, r);
        if (own <= own_share || other_share <= 0) continue;
        if (absl::int128{own} * other_share >= absl::int128{other} * own_share) return false;
      }
    }
  }
  return true;
}

Excess Entitlements::ExcessOf(QueueId q) const {
  const QueueId branch = Branch(q);
  const bool kai = rules_.reclaim == ReclaimTest::kKai;
  Excess excess{branch, kGpu};
  int64_t most = -1;
  for (int r = 0; r < kMaxResources; ++r) {
    if (!counts(r) || held(branch, r) <= 0) continue;
    const int64_t bound =
        kai ? std::min(entitled(branch, r), tree_.quota(branch)[r]) : entitled(branch, r);
    const int64_t over = held(branch, r) - bound;
    // The largest part of what it holds; ties: the lower resource.
    const int64_t part =
        over <= 0 ? 0 : static_cast<int64_t>(absl::int128{over} * 1000000 / held(branch, r));
    if (part > most) {
      most = part;
      excess.resource = r;
    }
  }
  return excess;
}

int64_t Entitlements::Need(QueueId q) const {
  int64_t least = 1000;
  for (int r = 0; r < kMaxResources; ++r) {
    if (!counts(r) || left(q, r) <= 0) continue;
    const absl::int128 part = absl::int128{entitled(q, r)} * 1000 / left(q, r);
    least = std::min<int64_t>(least, part > 1000 ? 1000 : static_cast<int64_t>(part));
  }
  return least;
}

}  // namespace tessera
