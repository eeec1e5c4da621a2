// The rules of division against others that say the same: the checker on random
// trees, and levels found by bisection.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "tessera/verify/check_shares.h"
#include "tests/support/random_cluster.h"
#include "tests/support/siblings_for_tests.h"

namespace tessera {
namespace {

using testing::IsEmpty;

constexpr DominantResourceDivision kAsInThePaper{.work_conserving = false};

// --- Any tree ----------------------------------------------------------------------

// A random tree of at most 5 levels over 8 resources, and what its leaves want.
struct RandomTree {
  RandomTree(RandomCluster& random, int count)
      : space(*ResourceSpace::Create(std::vector<std::string>{"a.com/x", "b.com/y", "gpu:H100"})) {
    std::vector<int> depth;
    for (int i = 0; i < count; ++i) {
      Queue queue = MakeQueue(absl::StrCat("q", i));
      const int parent = i > 0 && random.Chance(80) ? random.Below(i) : -1;
      const bool nested = parent >= 0 && depth[static_cast<size_t>(parent)] < 4;
      depth.push_back(nested ? depth[static_cast<size_t>(parent)] + 1 : 0);
      if (nested) queue.parent = absl::StrCat("q", parent);
      DrawTerms(random, queue);
      queues.push_back(std::move(queue));
      demands[queues.back().name] = DrawAmounts(random, 20);
      past_use[queues.back().name] = DrawAmounts(random, 50);
    }
    capacity = DrawAmounts(random, 10) * (1 + random.Below(2 * count));
    if (random.Chance(30)) options = {.usage_strength = 1 + random.Below(3000), .usage_window = 1};
    options.whole_gpus = random.Chance(30);
  }

  ResourceVector DrawAmounts(RandomCluster& random, int percent_without) const {
    ResourceVector v;
    for (int r = 0; r < space.size(); ++r) {
      if (!random.Chance(percent_without)) v[r] = DrawAmount(random);
    }
    return v;
  }

  // Of any size: some units, some 10^10.
  static int64_t DrawAmount(RandomCluster& random) {
    return int64_t{random.Below(100000)} << (random.Chance(30) ? random.Below(17) : 0);
  }

  void DrawTerms(RandomCluster& random, Queue& queue) const {
    for (int r = 0; r < space.size(); ++r) {
      const std::string& name = space.name(r);
      if (random.Chance(30)) queue.quota.by_name[name] = DrawAmount(random) / 2;
      if (random.Chance(3)) queue.quota.by_name[name] = kUnlimited;
      if (random.Chance(20)) queue.limit.by_name[name] = DrawAmount(random);
      if (random.Chance(10)) queue.weight.by_name[name] = random.Below(3) * random.Below(9000);
    }
    if (random.Chance(3)) queue.quota.all = kUnlimited;
    if (random.Chance(40)) queue.weight.all = random.Below(4) * random.Below(5000);
    queue.priority = random.Below(3);
  }

  FairShares Divide(DivideFunction divide) const {
    const QueueTree tree = *QueueTree::Create(queues, space);
    std::vector<QueueUsage> usage(queues.size());
    std::vector<ResourceVector> used(queues.size());
    for (const auto& [name, demand] : demands) {
      const QueueId q = *tree.Find(name);
      if (tree.is_leaf(q)) usage[static_cast<size_t>(q.value())].demand = demand;
      used[static_cast<size_t>(q.value())] = past_use.at(name);
    }
    SumUpwards(tree, usage);
    FairShares shares = DivideFairShares(tree, space, capacity, usage, divide, options, used);
    EXPECT_THAT(CheckShares(tree, space, shares), IsEmpty());
    return shares;
  }

  ResourceSpace space;
  std::vector<Queue> queues;
  std::map<std::string, ResourceVector> demands, past_use;
  ResourceVector capacity;
  DivisionOptions options;
};

template <DivisionRule Rule>
void CheckOnRandomTrees(const Rule& rule) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomCluster random(static_cast<uint32_t>(seed));
    const int most = seed % 50 == 0 ? 200 : seed % 5 == 0 ? 30 : 8;
    RandomTree tree(random, 1 + random.Below(most));
    const auto divide = [&rule](const Division& division, Claims& claims) {
      rule.Divide(division, claims);
    };
    const FairShares shares = tree.Divide(divide);
    SnapshotSpec spec;
    spec.queues = std::move(tree.queues);
    tree.queues = random.Shuffled(std::move(spec)).queues;
    // Ids are ranks by name, so equal shares by id are equal by name.
    EXPECT_EQ(tree.Divide(divide), shares);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(DivisionOfTreesTest, DominantResource) { CheckOnRandomTrees(DominantResourceDivision()); }
TEST(DivisionOfTreesTest, PerResource) { CheckOnRandomTrees(PerResourceDivision()); }

// --- Levels by bisection -----------------------------------------------------------

using Real = long double;
using RealVector = std::array<Real, kMaxResources>;

enum class Way { kPerResource, kDominant, kDominantStopping };

// The division of `total` as the rules state it, in reals.
class Reference {
 public:
  Reference(const Siblings& siblings, Way way, const ResourceVector& total)
      : siblings_(siblings), tree_(siblings.Tree()), way_(way), share_(siblings.queues.size()) {
    for (int r = 0; r < kMaxResources; ++r) at(left_, r) = static_cast<Real>(total[r]);
    for (size_t i = 0; i < share_.size(); ++i) ids_.push_back(*tree_.Find(siblings.queues[i].name));
    for (int r = 0; r < siblings.space.size(); ++r) GrantQuotas(r);
    std::set<int, std::greater<>> priorities;
    for (const Queue& queue : siblings.queues) priorities.insert(queue.priority);
    for (const bool weighted : {true, false}) {
      for (int priority : priorities) GrantSurplus(priority, weighted);
    }
  }

  Real share(size_t i, int r) const { return at(share_[i], r); }

 private:
  static Real& at(RealVector& v, int r) { return v[static_cast<size_t>(r)]; }
  static Real at(const RealVector& v, int r) { return v[static_cast<size_t>(r)]; }

  Real ceiling(size_t i, int r) const {
    return static_cast<Real>(std::min(tree_.limit(ids_[i])[r], siblings_.demands[i][r]));
  }
  Real unmet(size_t i, int r) const { return ceiling(i, r) - share(i, r); }

  // The highest level at which `taken`, which never falls, is at most `total`.
  static Real Level(Real total, const std::function<Real(Real)>& taken) {
    Real low = 0, high = 1;
    while (taken(high) < total) high *= 2;
    for (int step = 0; step < 150; ++step) {
      const Real middle = (low + high) / 2;
      (taken(middle) <= total ? low : high) = middle;
    }
    return low;
  }

  void GrantQuotas(int r) {
    std::vector<Real> usable, quota;
    Real sum = 0;
    for (size_t i = 0; i < share_.size(); ++i) {
      const int64_t stated = tree_.quota(ids_[i])[r];
      quota.push_back(stated == kUnlimited ? at(left_, r) : static_cast<Real>(stated));
      usable.push_back(std::min(static_cast<Real>(stated), ceiling(i, r)));
      sum += usable.back();
    }
    // The fraction of quotas that can be met.
    const auto part = [&](size_t i, Real f) { return std::min(f * quota[i], usable[i]); };
    const bool scaled = sum > at(left_, r);
    Real fraction = 0;
    if (scaled && at(left_, r) > 0) {
      fraction = Level(at(left_, r), [&](Real f) {
        Real taken = 0;
        for (size_t i = 0; i < usable.size(); ++i) taken += part(i, f);
        return taken;
      });
    }
    for (size_t i = 0; i < share_.size(); ++i) {
      at(share_[i], r) = scaled ? part(i, fraction) : usable[i];
    }
    at(left_, r) = scaled ? 0 : at(left_, r) - sum;
  }

  static constexpr Real kNothing = 1e-3L;  // what rounding may leave of a unit
  bool exhausted(int r) const { return at(left_, r) < kNothing; }

  // Whether it has to stop before it starts.
  bool Stopped(size_t i) const {
    if (way_ != Way::kDominantStopping) return false;
    for (int r = 0; r < siblings_.space.size(); ++r) {
      if (exhausted(r) && unmet(i, r) > kNothing) return true;
    }
    return false;
  }

  void GrantSurplus(int priority, bool weighted) {
    std::vector<RealVector> room(share_.size()), weight(share_.size());
    for (size_t i = 0; i < share_.size(); ++i) {
      if (siblings_.queues[i].priority != priority || Stopped(i)) continue;
      for (int r = 0; r < siblings_.space.size(); ++r) {
        const int64_t own = tree_.weight(ids_[i])[r];
        if (exhausted(r) || (weighted && own == 0)) continue;
        at(room[i], r) = unmet(i, r);
        at(weight[i], r) = static_cast<Real>(weighted ? own : kWeightOne);
      }
    }
    if (way_ == Way::kPerResource) {
      for (int r = 0; r < siblings_.space.size(); ++r) Raise(room, FullAt(room, weight, {r}), {r});
      return;
    }
    std::vector<int> all, dominating;
    for (int r = 0; r < siblings_.space.size(); ++r) {
      all.push_back(r);
      if (IsDominanceResource(siblings_.space, r)) dominating.push_back(r);
    }
    std::vector<Real> full = FullAt(room, weight, dominating);
    const std::vector<Real> otherwise = FullAt(room, weight, all);
    for (size_t i = 0; i < full.size(); ++i) full[i] = full[i] > 0 ? full[i] : otherwise[i];
    Raise(room, full, all);
  }

  // The levels at which all of the rooms are taken.
  std::vector<Real> FullAt(const std::vector<RealVector>& room,
                           const std::vector<RealVector>& weight,
                           const std::vector<int>& resources) const {
    std::vector<Real> full(room.size());
    for (size_t i = 0; i < room.size(); ++i) {
      for (int r : resources) {
        const Real capacity = static_cast<Real>(std::max<int64_t>(siblings_.capacity[r], 1));
        if (at(room[i], r) > 0) {
          full[i] = std::max(full[i], at(room[i], r) / capacity / at(weight[i], r));
        }
      }
    }
    return full;
  }

  void Raise(const std::vector<RealVector>& room, const std::vector<Real>& full,
             std::vector<int> open) {
    std::vector<Real> stop = full;
    const auto part = [&](size_t i, int r, Real level) {
      return full[i] == 0 ? 0 : at(room[i], r) * std::min(level, stop[i]) / full[i];
    };
    const auto taken = [&](int r, Real level) {
      Real sum = 0;
      for (size_t i = 0; i < room.size(); ++i) sum += part(i, r, level);
      return sum;
    };
    const Real top = *std::ranges::max_element(full);
    while (!open.empty()) {
      std::vector<std::pair<Real, int>> levels;
      for (int r : open) {
        const bool runs_out = taken(r, top) > at(left_, r);
        levels.emplace_back(
            runs_out ? Level(at(left_, r), [&](Real level) { return taken(r, level); }) : top, r);
      }
      const auto [level, first] = std::ranges::min(levels);
      for (size_t i = 0; i < room.size(); ++i) {
        at(share_[i], first) += part(i, first, level);
        at(left_, first) -= part(i, first, level);
      }
      for (size_t i = 0; way_ == Way::kDominantStopping && i < room.size(); ++i) {
        if (at(room[i], first) > 0) stop[i] = std::min(stop[i], level);
      }
      std::erase(open, first);
    }
  }

  const Siblings& siblings_;
  QueueTree tree_;
  Way way_;
  std::vector<QueueId> ids_;       // by position, as all below
  std::vector<RealVector> share_;  // out
  RealVector left_{};
};

// Few siblings with everything that the rules know.
Siblings RandomSiblings(RandomCluster& random, int least_percent) {
  Siblings siblings({});
  const int third = random.Chance(30) ? kPods : kGpu;
  for (int r : {kCpu, kMemory, third}) {
    siblings.capacity[r] = random.Chance(3) ? 0 : 100000000 + random.Below(900000000);
  }
  const int count = 1 + random.Below(6);
  for (int i = 0; i < count; ++i) {
    Queue queue = MakeQueue(absl::StrCat("q", i));
    ResourceVector demand;
    for (int r : {kCpu, kMemory, third}) {
      const std::string& name = siblings.space.name(r);
      const int most = 500000000;
      if (random.Chance(75)) demand[r] = 5000000 * int64_t{least_percent} + random.Below(most);
      if (random.Chance(30)) queue.quota.by_name[name] = random.Below(most);
      if (random.Chance(15)) queue.limit.by_name[name] = random.Below(most);
      if (random.Chance(10)) queue.weight.by_name[name] = random.Below(3) * 700;
    }
    if (random.Chance(5)) queue.quota.all = kUnlimited;
    if (random.Chance(50)) queue.weight.all = random.Below(5) * (1 + random.Below(2000));
    queue.priority = random.Below(3);
    siblings.Add(std::move(queue), demand);
  }
  return siblings;
}

// The shares of `siblings` under a parent with limits, and last the parent's.
template <DivisionRule Rule>
std::vector<ResourceVector> SharesUnderParent(Siblings siblings, RandomCluster& random,
                                              const Rule& rule) {
  for (Queue& queue : siblings.queues) queue.parent = "parent";
  Queue& parent = siblings.Add(MakeQueue("parent"), {});
  parent.limit.by_name["cpu"] = random.Below(500000000);
  if (random.Chance(50)) parent.limit.by_name["memory"] = random.Below(500000000);
  return siblings.Shares(rule);
}

template <DivisionRule Rule>
void CompareWithReference(const Rule& rule, Way way, Real tolerance, int least_percent) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const Siblings siblings = RandomSiblings(random, least_percent);
    // Every other time they share what a parent got, measured by the whole cluster.
    const bool nested = seed % 2 == 1;
    const std::vector<ResourceVector> shares =
        nested ? SharesUnderParent(siblings, random, rule) : siblings.Shares(rule);
    const Reference reference(siblings, way, nested ? shares.back() : siblings.capacity);
    for (size_t i = 0; i < siblings.queues.size(); ++i) {
      for (int r = 0; r < siblings.space.size(); ++r) {
        ASSERT_LE(std::abs(static_cast<Real>(shares[i][r]) - reference.share(i, r)), tolerance)
            << "seed " << seed << " queue " << i << " resource " << r << ": " << shares[i][r]
            << " for " << reference.share(i, r);
      }
    }
  }
}

// A unit, and what long doubles are off by.
constexpr Real kOneUnit = 1.001L;

TEST(DivisionReferenceTest, PerResource) {
  CompareWithReference(PerResourceDivision(), Way::kPerResource, kOneUnit, 0);
}
TEST(DivisionReferenceTest, DominantResource) {
  CompareWithReference(DominantResourceDivision(), Way::kDominant, kOneUnit, 0);
}
TEST(DivisionReferenceTest, DominantResourceAsInThePaper) {
  // A unit that rounding leaves of one resource moves the level at which it runs out,
  // and with it the others by as many units as they are wanted in: so demands of a
  // hundredth at least, and 10^-5 of a capacity.
  CompareWithReference(kAsInThePaper, Way::kDominantStopping, 1000, 1);
}

// Rounding to whole GPUs moves no share by a device or more: of one priority, as the
// rest of a device goes on to no other.
TEST(DivisionReferenceTest, WholeGpusAreWithinADevice) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    Siblings siblings = RandomSiblings(random, 0);
    for (Queue& queue : siblings.queues) queue.priority = 0;
    const DivisionOptions options{.whole_gpus = true};
    const std::vector<ResourceVector> shares = siblings.Shares(DominantResourceDivision(), options);
    const Reference reference(siblings, Way::kDominant, siblings.capacity);
    for (size_t i = 0; i < shares.size(); ++i) {
      for (int r = 0; r < siblings.space.size(); ++r) {
        const Real unit = r == kGpu ? kGpuUnitsPerDevice : 1;
        ASSERT_LE(std::abs(static_cast<Real>(shares[i][r]) - reference.share(i, r)), unit + 0.001L)
            << "seed " << seed << " queue " << i << " resource " << r << ": " << shares[i][r]
            << " for " << reference.share(i, r);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
