#include "src/verify/judge_reclaim.h"

#include <algorithm>
#include <array>
#include <map>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "src/verify/text.h"

namespace tessera {
namespace {

using Amounts = std::array<int64_t, kMaxResources>;

class Judge {
 public:
  Judge(const QueueTree& tree, const ResourceSpace& resources, const FairShares& shares,
        ReclaimTest test, const std::vector<ResourceVector>& held, const ReclaimDeal& deal)
      : tree_(tree),
        resources_(resources),
        shares_(shares),
        kai_(test == ReclaimTest::kKai),
        held_(held),
        deal_(deal),
        left_(held) {
    for (const auto* lost : {&deal.units, &deal.preempted}) {
      for (const auto& [q, unit] : *lost) {
        for (QueueId at = q; at.valid(); at = tree.parent(at)) left_[index(at)] -= unit;
      }
    }
    for (QueueId at = deal.claimant; at.valid(); at = tree.parent(at)) path_.push_back(at);
    for (int r = 0; r < kMaxResources; ++r) {
      // Without a quota of its own, what repeats `gpu` is nothing that a queue is entitled to.
      const bool repeats_gpu =
          r == kGpuMemory || (r < resources.size() && !resources.gpu_model(r).empty());
      const bool counts = r != kPods && (!repeats_gpu || tree.is_quota_governed(r));
      const bool strict = counts && deal.gained[r] > 0;
      if (kai_ ? r == kCpu || r == kMemory || r == kGpu : strict) counted_.push_back(r);
    }
  }

  // Of a deal inside one queue: whether it has grown beyond its entitlement.
  std::vector<std::string> RunInside() && {
    for (QueueId at : path_) {
      for (int r : counted_) {
        const int64_t ends = left_[index(at)][r] + deal_.gained[r];
        if (ends <= std::max(share(at, r), held_[index(at)][r])) continue;
        problems_.push_back(absl::StrCat(
            "queue ", tree_.queue(at).name, " grows to ", AmountText(resources_, r, ends),
            " by preemption, beyond its fair share of ", AmountText(resources_, r, share(at, r))));
      }
    }
    return std::move(problems_);
  }

  std::vector<std::string> Run() && {
    for (const auto& [q, kinds] : UnitsByQueue()) {
      const bool legal = kai_ ? IsLegalByKai(q, kinds) : HasOrder(q, kinds);
      if (!legal) {
        problems_.push_back(absl::StrCat("queue ", tree_.queue(q).name,
                                         " is not that far above its entitlement: ", Account(q)));
      }
    }
    JudgeClaimant();
    return std::move(problems_);
  }

 private:
  using Kinds = std::map<Amounts, int>;

  static size_t index(QueueId q) { return static_cast<size_t>(q.value()); }
  int64_t share(QueueId q, int r) const { return shares_.of(q).fair_share[r]; }
  bool on_path(QueueId q) const { return std::ranges::find(path_, q) != path_.end(); }

  std::string Account(QueueId q) const {
    std::string text;
    for (int r : counted_) {
      absl::StrAppend(&text, text.empty() ? "" : "; ", "it held ",
                      AmountText(resources_, r, held_[index(q)][r]), " of a fair share of ",
                      AmountText(resources_, r, share(q, r)), " and keeps ",
                      AmountText(resources_, r, left_[index(q)][r]));
    }
    return text;
  }

  // Of the queues that have to permit what is taken below them, the kinds of units.
  std::map<QueueId, Kinds> UnitsByQueue() const {
    std::map<QueueId, Kinds> by_queue;
    for (const auto& [q, unit] : deal_.units) {
      Amounts amounts{};
      for (int r : counted_) amounts[static_cast<size_t>(r)] = unit[r];
      for (QueueId at = q; at.valid() && !on_path(at); at = tree_.parent(at)) {
        const QueueId parent = tree_.parent(at);
        const bool is_branch = !parent.valid() || on_path(parent);
        if (!kai_ || is_branch) ++by_queue[at][amounts];
      }
    }
    return by_queue;
  }

  // Tries every kind as the one that leaves last, and none.
  bool HasOrder(QueueId q, const Kinds& kinds) const {
    Amounts state{};
    for (int r : counted_) state[static_cast<size_t>(r)] = left_[index(q)][r];
    if (CanPrecede(q, kinds, state)) return true;
    for (const auto& [unit, count] : kinds) {
      const bool above = std::ranges::any_of(counted_, [&, u = unit](int r) {
        const size_t i = static_cast<size_t>(r);
        return u[i] > 0 && state[i] + u[i] > share(q, r);
      });
      if (!above) continue;
      Kinds others = kinds;
      if (--others[unit] == 0) others.erase(unit);
      Amounts before = state;
      for (size_t i = 0; i < before.size(); ++i) before[i] += unit[i];
      if (CanPrecede(q, others, before)) return true;
    }
    return false;
  }

  // Whether `kinds` can leave one after the other, none taking the queue below its share,
  // so that `state` is what is left.
  bool CanPrecede(QueueId q, Kinds kinds, Amounts state) const {
    for (bool progress = true; progress && !kinds.empty();) {
      progress = false;
      for (auto it = kinds.begin(); it != kinds.end();) {
        const Amounts& unit = it->first;
        const bool may = std::ranges::any_of(counted_, [&](int r) {
          const size_t i = static_cast<size_t>(r);
          return unit[i] > 0 && state[i] >= share(q, r);
        });
        if (!may) {
          ++it;
          continue;
        }
        for (size_t i = 0; i < state.size(); ++i) state[i] += unit[i] * it->second;
        it = kinds.erase(it);
        progress = true;
      }
    }
    return kinds.empty();
  }

  bool IsLegalByKai(QueueId q, const Kinds& kinds) const {
    QueueId own = deal_.claimant;
    while (tree_.parent(own) != tree_.parent(q)) own = tree_.parent(own);
    const bool guaranteed = std::ranges::all_of(counted_, [&](int r) {
      return left_[index(own)][r] + deal_.gained[r] <= tree_.quota(own)[r];
    });
    for (const auto& [unit, count] : kinds) {
      for (int r : counted_) {
        const int64_t before = left_[index(q)][r] + unit[static_cast<size_t>(r)];
        const int64_t quota = tree_.quota(q)[r], limit = tree_.limit(q)[r];
        const int64_t allocatable =
            quota == kUnlimited ? limit : std::min(limit, std::max(quota, share(q, r)));
        if (before > allocatable || (guaranteed && before > quota)) return true;
      }
    }
    return false;
  }

  bool LostBelow(QueueId q) const {
    return std::ranges::any_of(deal_.units, [&](const auto& unit) {
      for (QueueId at = unit.first; at.valid(); at = tree_.parent(at)) {
        if (at == q) return true;
      }
      return false;
    });
  }

  bool LostBeside(QueueId own) const {
    return std::ranges::any_of(tree_.children(tree_.parent(own)), [&](QueueId sibling) {
      return sibling != own && LostBelow(sibling);
    });
  }

  void JudgeClaimant() {
    size_t judged = 1;
    for (size_t i = 0; i < path_.size() && !kai_; ++i) {
      if (LostBeside(path_[i])) judged = i + 1;
    }
    for (size_t i = 0; i < judged; ++i) {
      for (int r : counted_) {
        const int64_t after = left_[index(path_[i])][r] + deal_.gained[r];
        if (after <= share(path_[i], r)) continue;
        problems_.push_back(absl::StrCat("queue ", tree_.queue(path_[i]).name,
                                         " of the claimant comes to hold ",
                                         AmountText(resources_, r, after), ", its fair share is ",
                                         AmountText(resources_, r, share(path_[i], r))));
      }
    }
    for (size_t i = 0; i < path_.size() && kai_; ++i) JudgeBalance(path_[i]);
  }

  void JudgeBalance(QueueId own) {
    for (QueueId sibling : tree_.children(tree_.parent(own))) {
      if (sibling == own || !LostBelow(sibling)) continue;
      for (int r : counted_) {
        const int64_t after = left_[index(own)][r] + deal_.gained[r];
        const absl::int128 own_part = absl::int128{after} * share(sibling, r);
        const absl::int128 other_part = absl::int128{left_[index(sibling)][r]} * share(own, r);
        if (deal_.gained[r] <= 0 || after <= share(own, r) || share(sibling, r) <= 0) continue;
        if (own_part < other_part) continue;
        problems_.push_back(absl::StrCat("queue ", tree_.queue(own).name,
                                         " comes to hold a larger part of its fair share than ",
                                         tree_.queue(sibling).name, " keeps of its own"));
        return;
      }
    }
  }

  const QueueTree& tree_;
  const ResourceSpace& resources_;
  const FairShares& shares_;
  const bool kai_;
  const std::vector<ResourceVector>& held_;
  const ReclaimDeal& deal_;
  std::vector<ResourceVector> left_;
  std::vector<QueueId> path_;  // of the claimant, its leaf first
  std::vector<int> counted_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> WhyNotReclaimed(const QueueTree& tree, const ResourceSpace& resources,
                                         const FairShares& shares, ReclaimTest test,
                                         const std::vector<ResourceVector>& held,
                                         const ReclaimDeal& deal) {
  return Judge(tree, resources, shares, test, held, deal).Run();
}

std::vector<std::string> WhyNotPreempted(const QueueTree& tree, const ResourceSpace& resources,
                                         const FairShares& shares,
                                         const std::vector<ResourceVector>& held,
                                         const ReclaimDeal& deal) {
  return Judge(tree, resources, shares, ReclaimTest::kEntitlement, held, deal).RunInside();
}

}  // namespace tessera
