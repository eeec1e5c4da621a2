#include "tessera/verify/check_shares.h"

#include <algorithm>
#include <optional>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "src/verify/text.h"

namespace tessera {
namespace {

// Judges one set of siblings on one resource.
class SiblingJudge {
 public:
  SiblingJudge(const QueueTree& tree, const ResourceSpace& resources, const FairShares& shares,
               const std::vector<ResourceVector>& ceilings, QueueId parent, int r,
               std::vector<std::string>& problems)
      : tree_(tree),
        resources_(resources),
        shares_(shares),
        ceilings_(ceilings),
        parent_(parent),
        r_(r),
        problems_(problems) {}

  void Judge() const {
    JudgeSums();
    JudgeQuotaFirst();
    JudgeRest();
    JudgePriority();
  }

 private:
  int64_t share(QueueId q) const { return shares_.of(q).fair_share[r_]; }
  int64_t ceiling(QueueId q) const { return ceilings_[static_cast<size_t>(q.value())][r_]; }
  int64_t floor(QueueId q) const { return std::min(tree_.quota(q)[r_], ceiling(q)); }
  std::span<const QueueId> siblings() const { return tree_.children(parent_); }
  int64_t amount() const { return parent_.valid() ? share(parent_) : shares_.capacity[r_]; }
  template <typename Amount>
  absl::int128 Sum(Amount amount_of) const {
    absl::int128 sum = 0;
    for (QueueId q : siblings()) sum += amount_of(q);
    return sum;
  }

  std::string Text(int64_t amount) const { return AmountText(resources_, r_, amount); }
  std::string ParentName() const {
    return parent_.valid() ? absl::StrCat("queue ", tree_.queue(parent_).name) : "the top level";
  }
  template <typename... Parts>
  void Report(QueueId q, const Parts&... parts) const {
    problems_.push_back(absl::StrCat("queue ", tree_.queue(q).name, ": ", parts...));
  }

  void JudgeSums() const {
    const absl::int128 sum = Sum([this](QueueId q) { return share(q); });
    if (sum > amount()) {
      problems_.push_back(absl::StrCat(ParentName(), " has ", Text(amount()),
                                       ", its queues are given more in all"));
    }
    if (!parent_.valid()) return;
    const auto check = [this](ResourceVector QueueShare::*part, std::string_view name) {
      const absl::int128 total = Sum([&](QueueId q) { return (shares_.of(q).*part)[r_]; });
      const int64_t stated = (shares_.of(parent_).*part)[r_];
      if (total == stated) return;
      Report(parent_, "its ", std::string(name), " of ", Text(stated),
             " is not the sum of its queues'");
    };
    check(&QueueShare::demand, "demand");
    check(&QueueShare::allocated, "allocation");
  }

  void JudgeQuotaFirst() const {
    if (Sum([this](QueueId q) { return floor(q); }) > amount()) return;
    for (QueueId q : siblings()) {
      if (share(q) >= floor(q)) continue;
      Report(q, "is given ", Text(share(q)), ", less than the ", Text(floor(q)),
             " of its quota that it can use");
    }
  }

  void JudgeRest() const {
    if (Sum([this](QueueId q) { return share(q); }) >= amount()) return;
    for (QueueId q : siblings()) {
      if (share(q) >= ceiling(q)) continue;
      Report(q, "is given ", Text(share(q)), " and could use ", Text(ceiling(q)), ", but ",
             ParentName(), " has some left");
    }
  }

  void JudgePriority() const {
    std::optional<QueueId> hungry;  // of the highest priority, the first
    for (QueueId q : siblings()) {
      if (tree_.weight(q)[r_] == 0 || share(q) >= ceiling(q)) continue;
      if (!hungry || tree_.queue(q).priority > tree_.queue(*hungry).priority) hungry = q;
    }
    if (!hungry) return;
    for (QueueId q : siblings()) {
      if (tree_.queue(q).priority >= tree_.queue(*hungry).priority) continue;
      if (share(q) <= floor(q)) continue;
      Report(q, "is given surplus ", resources_.name(r_), " although queue ",
             tree_.queue(*hungry).name, " of higher priority could use it");
    }
  }

  const QueueTree& tree_;
  const ResourceSpace& resources_;
  const FairShares& shares_;
  const std::vector<ResourceVector>& ceilings_;  // by queue
  QueueId parent_;
  int r_;
  std::vector<std::string>& problems_;
};

// What each queue can use: limits and demands of its own and of all below it.
std::vector<ResourceVector> Ceilings(const QueueTree& tree, const FairShares& shares) {
  std::vector<ResourceVector> ceilings(shares.queues.size());
  std::vector<QueueId> order(tree.top_down().rbegin(), tree.top_down().rend());
  for (QueueId q : order) {
    ResourceVector& ceiling = ceilings[static_cast<size_t>(q.value())];
    for (int r = 0; r < kMaxResources; ++r) {
      int64_t below = 0;
      for (QueueId child : tree.children(q)) {
        below += ceilings[static_cast<size_t>(child.value())][r];
      }
      const int64_t wanted = tree.is_leaf(q) ? shares.of(q).demand[r] : below;
      ceiling[r] = std::min(tree.limit(q)[r], wanted);
    }
  }
  return ceilings;
}

// What each queue must obey whatever its siblings have.
void JudgeQueue(const QueueTree& tree, const ResourceSpace& resources, const FairShares& shares,
                QueueId q, std::vector<std::string>& problems) {
  const QueueShare& account = shares.of(q);
  for (int r = 0; r < resources.size(); ++r) {
    const auto check = [&](bool holds, int64_t amount, std::string_view text, int64_t bound) {
      if (holds) return;
      problems.push_back(absl::StrCat("queue ", tree.queue(q).name, ": ",
                                      AmountText(resources, r, amount), std::string(text),
                                      AmountText(resources, r, bound)));
    };
    const int64_t share = account.fair_share[r];
    check(share >= 0, share, " are given, less than ", 0);
    check(share <= tree.limit(q)[r], share, " are given, above its limit of ", tree.limit(q)[r]);
    check(share <= account.demand[r], share, " are given, above its demand of ", account.demand[r]);
    check(account.allocated[r] <= account.demand[r], account.allocated[r],
          " are allocated, above its demand of ", account.demand[r]);
  }
}

}  // namespace

std::vector<std::string> CheckShares(const QueueTree& queues, const ResourceSpace& resources,
                                     const FairShares& shares) {
  std::vector<std::string> problems;
  if (shares.queues.size() != static_cast<size_t>(queues.size())) {
    problems.push_back(
        absl::StrCat("there are ", queues.size(), " queues, but shares of ", shares.queues.size()));
    return problems;
  }
  const std::vector<ResourceVector> ceilings = Ceilings(queues, shares);
  // The siblings of the top level have no parent, of which -1 is the id.
  for (int q = -1; q < queues.size(); ++q) {
    if (q >= 0) JudgeQueue(queues, resources, shares, QueueId(q), problems);
    if (queues.children(QueueId(q)).empty()) continue;
    for (int r = 0; r < resources.size(); ++r) {
      SiblingJudge(queues, resources, shares, ceilings, QueueId(q), r, problems).Judge();
    }
  }
  return problems;
}

}  // namespace tessera
