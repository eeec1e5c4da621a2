#ifndef TESSERA_SHARE_DIVISION_H_
#define TESSERA_SHARE_DIVISION_H_

// The rules by which siblings share what their parent has.
//
// A rule in a few lines: the surplus to the oldest.
//
//   struct OldestFirst {
//     void Divide(const Division& division, Claims& claims) const {
//       std::vector<size_t> order(claims.size());
//       std::iota(order.begin(), order.end(), size_t{0});
//       std::ranges::stable_sort(order, {}, [&](size_t i) { return claims.created[i]; });
//       for (int r = 0; r < claims.resources(); ++r) {
//         int64_t left = division.total[r];
//         for (size_t i : order) left -= claims.share[r][i] = std::min(left, claims.ceiling[r][i]);
//       }
//     }
//   };

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/resources/resource_space.h"
#include "tessera/resources/resource_vector.h"

namespace tessera {

// Amounts of many queues: a column for each resource, a row for each queue.
class ShareMatrix {
 public:
  ShareMatrix() = default;
  ShareMatrix(size_t rows, int columns)
      : rows_(rows), amounts_(rows * static_cast<size_t>(columns)) {}

  bool empty() const { return amounts_.empty(); }
  std::span<int64_t> operator[](int r) {
    return std::span(amounts_).subspan(static_cast<size_t>(r) * rows_, rows_);
  }
  std::span<const int64_t> operator[](int r) const {
    return std::span(amounts_).subspan(static_cast<size_t>(r) * rows_, rows_);
  }

 private:
  size_t rows_ = 0;
  std::vector<int64_t> amounts_;
};

// Past use is counted in parts of the cluster's capacity over the window that the
// host looks back on: `kUsageOne` is all of it.
inline constexpr int64_t kUsageOne = 1000000000;

// Siblings while what their parent has is divided; rows in order of queue id.
struct Claims {
  Claims(size_t size, int resources)
      : quota(size, resources),
        ceiling(size, resources),
        weight(size, resources),
        share(size, resources),
        priority(size),
        created(size),
        resources_(resources) {}

  size_t size() const { return priority.size(); }
  int resources() const { return resources_; }

  ShareMatrix quota;     // `kUnlimited` possible
  ShareMatrix ceiling;   // what it can use of limit and demand; a share never exceeds it
  ShareMatrix weight;    // fixed-point, kWeightOne = 1
  ShareMatrix past_use;  // see `kUsageOne`; empty where none is known
  ShareMatrix share;     // out; 0 at first
  std::vector<int> priority;
  std::vector<int64_t> created;

 private:
  int resources_ = 0;
};

// How the rules of this library divide, whichever it is.
struct DivisionOptions {
  // Shares of `gpu` and `gpu:MODEL` that run out are rounded to whole devices, within
  // one priority: down, then the rest by largest remainder, the queue of the least
  // past use first where these are equal, then by id. What a queue holds of its quota
  // or demands in parts stays.
  bool whole_gpus = false;
  // k in thousandths, at most 10^6: the weight of a queue counts as
  // w + k (w - u), where w and u are its parts of its siblings' weights and of their
  // past use of what they share; at least a thousandth of the largest. 0: no memory.
  // The form is KAI-Scheduler's; there it may drop to 0.
  int64_t usage_strength = 0;
  // An inner queue claims no more than its children can use under their own limits.
  bool cap_by_children = true;
  // Seconds of capacity that `Queue::usage` is measured against.
  int64_t usage_window = 0;

  friend bool operator==(const DivisionOptions&, const DivisionOptions&) = default;
};

// What is divided: the parent's amount, and what the shares are measured by.
struct Division : DivisionOptions {
  ResourceVector total;
  ResourceVector capacity;  // of the cluster
  const ResourceSpace* resources = nullptr;
};

// Divides `division.total` among siblings by setting `claims.share`. Called once
// for each set of siblings, from the top down.
template <typename T>
concept DivisionRule = requires(const T& rule, const Division& division, Claims& claims) {
  { rule.Divide(division, claims) } -> std::same_as<void>;
};

// Quota first; where quotas ask for more than there is, they are met in equal
// proportion. Then, by priority from high to low, the surplus: the queues of one
// priority raise their weighted dominant shares together, each along its unmet
// demand, until it is met or a resource is exhausted. Weight 0 gets what no other
// sibling wants.
//
// After DRF (Ghodsi et al., NSDI '11), where queues have neither quota nor limit
// and one priority. We differ in dividing whole units: levels are rounded down,
// and the rest of an exhausted resource goes one unit each by largest remainder,
// then id. The dominant share of a queue is its surplus over cluster capacity and
// weight; `pods` and `gpu:MODEL` dominate only a queue that needs nothing else.
// O(Q * R) for Q siblings and R resources, R times that if not work-conserving.
//
// Shares are exact to one unit while amounts stay below 2^45 and the levels at which
// siblings of one priority are satisfied (demand over capacity and weight) within a
// factor of 2^20 of each other; beyond that a level is exact to 2^-43 of the highest.
// Sums are exact always.
struct DominantResourceDivision {
  // A queue short of one resource goes on with the others it needs, as jobs differ,
  // and nothing lies idle that someone wants. Otherwise it stops there, as in the
  // paper, where every task of a user needs all its resources: what is left may
  // then lie idle, but nobody envies another or gains by asking for what he does not
  // need.
  bool work_conserving = true;

  void Divide(const Division& division, Claims& claims) const;
};

// As above, with weighted max-min on each resource alone.
struct PerResourceDivision {
  void Divide(const Division& division, Claims& claims) const;
};

// KAI-Scheduler's documented arithmetic (v0.17): each resource alone; quotas are
// met in full even where they exceed the total; the surplus in rounds within a
// priority, a share of a round rounded down to whole GPUs, millicores and bytes;
// then one leftover pass in which each queue short of a part of a unit gets at
// most one, by larger part, age, name. It can leave more than asked to a queue,
// and pass a remainder to a lower priority; that is its rule, not ours. Resources
// other than cpu, memory and gpu are divided by `PerResourceDivision`.
// O(R * Q^2) at worst.
struct KaiDivision {
  void Divide(const Division& division, Claims& claims) const;
};

}  // namespace tessera

#endif  // TESSERA_SHARE_DIVISION_H_
