#include "tessera/cluster/queue_tree.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

std::string At(int given, std::string_view field) {
  return absl::StrCat("queues[", given, "].", std::string(field));
}

absl::Status CheckAmounts(const ResourceAmounts& amounts, int64_t max, bool unlimited_allowed,
                          const std::string& path, const ResourceSpace& space) {
  const auto check = [&](int64_t amount, const std::string& where) -> absl::Status {
    if (amount < 0) return InvalidAt(where, "is negative");
    if (amount > max && !(unlimited_allowed && amount == kUnlimited)) {
      return InvalidAt(where, "is too large");
    }
    return absl::OkStatus();
  };
  if (amounts.all) TESSERA_RETURN_IF_ERROR(check(*amounts.all, path));
  for (const auto& [name, amount] : amounts.by_name) {
    const std::string where = absl::StrCat(path, ".", name);
    if (!space.Find(name)) return InvalidAt(where, "is not a resource of the snapshot");
    TESSERA_RETURN_IF_ERROR(check(amount, where));
  }
  return absl::OkStatus();
}

absl::Status CheckQueue(const Queue& queue, int given, const ResourceSpace& space) {
  if (queue.name.empty()) return InvalidAt(At(given, "name"), "is empty");
  TESSERA_RETURN_IF_ERROR(CheckAmounts(queue.quota, kMaxTotal, true, At(given, "quota"), space));
  TESSERA_RETURN_IF_ERROR(CheckAmounts(queue.limit, kMaxTotal, true, At(given, "limit"), space));
  TESSERA_RETURN_IF_ERROR(
      CheckAmounts(queue.borrowing_limit, kMaxTotal, true, At(given, "borrowing_limit"), space));
  TESSERA_RETURN_IF_ERROR(
      CheckAmounts(queue.lending_limit, kMaxTotal, true, At(given, "lending_limit"), space));
  TESSERA_RETURN_IF_ERROR(
      CheckAmounts(queue.weight, kMaxWeight, false, At(given, "weight"), space));
  for (const auto& [name, amount] : queue.usage) {
    const std::string where = absl::StrCat(At(given, "usage"), ".", name);
    if (!space.Find(name)) return InvalidAt(where, "is not a resource of the snapshot");
    if (amount < 0) return InvalidAt(where, "is negative");
  }
  if (queue.preempt_min_runtime.value_or(0) < 0) {
    return InvalidAt(At(given, "preempt_min_runtime"), "is negative");
  }
  if (queue.reclaim_min_runtime.value_or(0) < 0) {
    return InvalidAt(At(given, "reclaim_min_runtime"), "is negative");
  }
  return absl::OkStatus();
}

// The lowest id of the cycle that the ancestors of `q` end in; they never reach the
// top.
QueueId FirstOfCycle(std::span<const QueueId> parents, QueueId q) {
  const auto above = [&parents](QueueId p) { return parents[static_cast<size_t>(p.value())]; };
  // As many steps up as there are queues lead onto the cycle for certain.
  for (size_t i = 0; i < parents.size(); ++i) q = above(q);
  QueueId first = q;
  for (QueueId p = above(q); p != q; p = above(p)) first = std::min(first, p);
  return first;
}

}  // namespace

absl::StatusOr<QueueTree> QueueTree::Create(std::vector<Queue> queues, const ResourceSpace& space) {
  if (queues.empty()) {
    Queue only;
    only.name = "default";
    only.quota.all = kUnlimited;
    queues.push_back(std::move(only));
  }
  for (size_t i = 0; i < queues.size(); ++i) {
    TESSERA_RETURN_IF_ERROR(CheckQueue(queues[i], static_cast<int>(i), space));
  }
  std::vector<int> given_index(queues.size());
  std::iota(given_index.begin(), given_index.end(), 0);
  std::ranges::stable_sort(given_index, {}, [&queues](int i) -> const std::string& {
    return queues[static_cast<size_t>(i)].name;
  });
  QueueTree tree;
  for (int given : given_index) {
    Queue& queue = queues[static_cast<size_t>(given)];
    if (!tree.queues_.empty() && tree.queues_.back().name == queue.name) {
      return InvalidAt(At(given, "name"),
                       absl::StrCat("\"", queue.name, "\" is the name of another queue"));
    }
    tree.queues_.push_back(std::move(queue));
  }
  TESSERA_RETURN_IF_ERROR(tree.LinkParents(given_index));
  tree.ResolveAmounts(space);
  return tree;
}

std::optional<QueueId> QueueTree::Find(std::string_view name) const {
  const auto it = std::ranges::lower_bound(queues_, name, {}, &Queue::name);
  if (it == queues_.end() || it->name != name) return std::nullopt;
  return QueueId(static_cast<int32_t>(it - queues_.begin()));
}

std::span<const QueueId> QueueTree::children(QueueId q) const {
  const size_t slot = q.valid() ? index(q) + 1 : 0;
  const int begin = children_begin_[slot];
  return std::span(children_).subspan(static_cast<size_t>(begin),
                                      static_cast<size_t>(children_begin_[slot + 1] - begin));
}

absl::Status QueueTree::LinkParents(std::span<const int> given_index) {
  const size_t n = queues_.size();
  std::vector<int> counts(n + 1, 0);
  for (size_t i = 0; i < n; ++i) {
    QueueId parent;
    if (!queues_[i].parent.empty()) {
      const std::optional<QueueId> found = Find(queues_[i].parent);
      if (!found) {
        return InvalidAt(At(given_index[i], "parent"),
                         absl::StrCat("no queue is named \"", queues_[i].parent, "\""));
      }
      parent = *found;
    }
    parents_.push_back(parent);
    ++counts[parent.valid() ? index(parent) + 1 : 0];
  }
  children_begin_.assign(n + 2, 0);
  std::partial_sum(counts.begin(), counts.end(), children_begin_.begin() + 1);
  children_.resize(n);
  std::vector<int> next(children_begin_.begin(), children_begin_.end() - 1);
  for (size_t i = 0; i < n; ++i) {
    const size_t slot = parents_[i].valid() ? index(parents_[i]) + 1 : 0;
    children_[static_cast<size_t>(next[slot]++)] = QueueId(static_cast<int32_t>(i));
  }
  depths_.assign(n, -1);
  const std::span<const QueueId> top = children(QueueId());
  top_down_.assign(top.begin(), top.end());
  for (size_t i = 0; i < top_down_.size(); ++i) {
    const QueueId q = top_down_[i];
    depths_[index(q)] = parent(q).valid() ? depths_[index(parent(q))] + 1 : 0;
    const std::span<const QueueId> below = children(q);
    top_down_.insert(top_down_.end(), below.begin(), below.end());
  }
  const auto unreached = std::ranges::find(depths_, -1);
  if (unreached == depths_.end()) return absl::OkStatus();
  const QueueId looped =
      FirstOfCycle(parents_, QueueId(static_cast<int32_t>(unreached - depths_.begin())));
  return InvalidAt(At(given_index[index(looped)], "parent"),
                   absl::StrCat("queue \"", queue(looped).name, "\" is below itself"));
}

void QueueTree::ResolveAmounts(const ResourceSpace& space) {
  governed_.assign(kMaxResources, false);
  governed_[kGpu] = true;
  quotas_.resize(queues_.size());
  limits_.assign(queues_.size(), ResourceVector::Filled(kUnlimited));
  weights_.assign(queues_.size(), ResourceVector::Filled(kWeightOne));
  bounds_lending_.assign(kMaxResources, false);
  borrowing_limits_ = lending_limits_ = limits_;
  for (size_t i = 0; i < queues_.size(); ++i) {
    const Queue& queue = queues_[i];
    for (int r = 0; r < space.size(); ++r) {
      const std::string& name = space.name(r);
      quotas_[i][r] = queue.quota.get(name, 0);
      limits_[i][r] = queue.limit.get(name, kUnlimited);
      weights_[i][r] = queue.weight.get(name, kWeightOne);
      borrowing_limits_[i][r] = queue.borrowing_limit.get(name, kUnlimited);
      lending_limits_[i][r] = queue.lending_limit.get(name, kUnlimited);
      if (borrowing_limits_[i][r] != kUnlimited || lending_limits_[i][r] != kUnlimited) {
        bounds_lending_[static_cast<size_t>(r)] = true;
      }
      if (queue.quota.by_name.contains(name)) governed_[static_cast<size_t>(r)] = true;
    }
  }
}

}  // namespace tessera
