// How an exact search checks what it has chosen, and places it.

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "src/placement/exact_search.h"

namespace tessera {

// Ranges are nested or apart, so that overlap goes from one to the next in order.
std::vector<ExactSearch::Component> ExactSearch::ComponentsOf() const {
  std::vector<int> order;
  for (size_t i = 0; i < wants_.size(); ++i) order.push_back(static_cast<int>(i));
  std::ranges::stable_sort(order, {}, [this](int i) {
    const Demand& d = wants_[At(i)].demand;
    return std::tuple(d.range.begin, -d.range.end, d.type, d.model.value());
  });
  std::vector<Component> components;
  int end = -1;
  for (int i : order) {
    const Demand& demand = wants_[At(i)].demand;
    if (components.empty() || demand.range.begin >= end) components.emplace_back();
    end = std::max(end, demand.range.end);
    Component& component = components.back();
    const bool same = !component.demands.empty() && component.demands.back().type == demand.type &&
                      component.demands.back().range == demand.range &&
                      component.demands.back().model == demand.model;
    if (same) {
      component.demands.back().need += demand.need;
    } else {
      component.demands.push_back(demand);
      component.wants.emplace_back();
    }
    component.wants.back().push_back(i);
  }
  return components;
}

// Components of one range are told apart by the classes of its nodes, not by
// which nodes they are.
std::string ExactSearch::KeyOf(const Component& component) {
  const NodeRange range = component.demands.front().range;
  const bool one_range = std::ranges::all_of(
      component.demands, [&range](const Demand& d) { return d.range == range; });
  std::string key;
  if (one_range) absl::StrAppend(&key, ContentOf(snapshot_.topology().num_levels(), range), "|");
  for (const Demand& d : component.demands) {
    absl::StrAppend(&key, d.type, "x", d.need, "@", d.model.value());
    if (!one_range) absl::StrAppend(&key, "[", d.range.begin, "-", d.range.end);
    key += ';';
  }
  return key;
}

bool ExactSearch::IsCoverable() {
  for (const Component& component : ComponentsOf()) {
    if (component.demands.size() == 1 && !component.demands[0].model.valid()) {
      const Demand& d = component.demands[0];
      if (classes_->MostIn(d.type, d.range) < d.need) return false;
      continue;
    }
    std::string key = KeyOf(component);
    auto known = covered_.find(key);
    if (known == covered_.end()) {
      CoverSearch search(*classes_, component.demands, budget_);
      known = covered_.emplace(std::move(key), search.Run()).first;
    }
    if (known->second == Verdict::kUndecided) undecided_ = true;
    if (known->second != Verdict::kYes) return false;
  }
  return true;
}

// All is chosen: covers every component, and places the pods.
bool ExactSearch::Finish() {
  if (!IsCoverable()) return false;
  found_cover_ = true;
  // 1. Pods by node, in the order of their ids.
  std::vector<size_t> used(At(view_.size()));  // by leaf: its pods that have a node
  std::map<int, std::vector<int>> by_node;
  for (const Component& component : ComponentsOf()) {
    CoverSearch search(*classes_, component.demands, budget_);
    if (search.Run() != Verdict::kYes) {
      undecided_ = true;
      return false;
    }
    for (size_t d = 0; d < component.demands.size(); ++d) {
      std::vector<int> pods;
      for (int want : component.wants[d]) {
        const int leaf = wants_[At(want)].leaf;
        const std::vector<PodId>& missing = missing_[At(leaf)];
        for (int i = 0; i < wants_[At(want)].demand.need; ++i) {
          pods.push_back(missing[used[At(leaf)]++].value());
        }
      }
      auto next = pods.begin();
      for (const auto& [node, count] : search.cover()[d]) {
        by_node[node].insert(by_node[node].end(), next, next + count);
        next += count;
      }
    }
  }
  // 2. Their devices.
  if (account_ != nullptr) account_->RollBack(account_mark_);
  return Commit(by_node);
}

// Devices for the pods of every node, then all pods in the order of their ids.
bool ExactSearch::Commit(const std::map<int, std::vector<int>>& by_node) {
  std::vector<std::pair<PodId, PodPlacement>> placements;
  for (const auto& [node, pods] : by_node) {
    if (PackNode(NodeId(node), pods, placements)) continue;
    undecided_ = true;
    return false;
  }
  std::ranges::sort(placements, {}, &std::pair<PodId, PodPlacement>::first);
  const ClusterState::Mark mark = state_.GetMark();
  for (const auto& [p, placement] : placements) {
    if (account_ != nullptr && !account_->Charge(p, placement)) {
      refused_ = snapshot_.pod_set_of(p);
      account_->RollBack(account_mark_);
      state_.RollBack(mark);
      pods_.clear();
      // Else the account does not decide by models alone, or other profiles cost less.
      stopped_ = !splits_ && RefusesLeast(placements);
      undecided_ |= !stopped_;
      return false;
    }
    state_.Place(p, placement);
    pods_.push_back(p);
  }
  refused_ = PodSetId();
  return true;
}

// Whether the account refuses the pods even if each holds the least that it accepts.
bool ExactSearch::RefusesLeast(std::span<const std::pair<PodId, PodPlacement>> placements) {
  bool permitted = true;
  for (const auto& [p, placement] : placements) {
    const int leaf = snapshot_.pod_set(snapshot_.pod_set_of(p)).gang_node;
    const DeviceNeed need =
        classes_->NeedOn(classes_->type_of(leaf), snapshot_.node_model(placement.node));
    permitted = permitted && account_->Charge(p, ExamplePlacement(placement.node, need));
  }
  account_->RollBack(account_mark_);
  return !permitted;
}

bool ExactSearch::PackNode(NodeId n, const std::vector<int>& pods,
                           std::vector<std::pair<PodId, PodPlacement>>& placements) {
  const ModelId model = snapshot_.node_model(n);
  std::vector<DeviceDemand> demands;
  for (int p : pods) {
    const int leaf = snapshot_.pod_set(snapshot_.pod_set_of(PodId(p))).gang_node;
    demands.push_back({classes_->NeedOn(classes_->type_of(leaf), model), 1});
  }
  std::vector<std::vector<DeviceChoice>> choices;
  const MigTables* mig = model.valid() ? &snapshot_.mig(model) : nullptr;
  const DevicePool pool = PoolOf(state_, n, snapshot_.info(view_.workload()).tenant,
                                 snapshot_.workload(view_.workload()).isolation);
  if (PackDevices(pool, mig, demands, budget_, &choices, &state_, n) != Verdict::kYes) return false;
  for (size_t i = 0; i < pods.size(); ++i) {
    PodPlacement placement = ExamplePlacement(n, demands[i].need);
    placement.gpus = choices[i][0].gpus;
    placement.profile = static_cast<int16_t>(choices[i][0].slice.profile);
    placement.start = static_cast<int16_t>(choices[i][0].slice.start);
    placements.emplace_back(PodId(pods[i]), placement);
  }
  return true;
}

// A place on the model, as an account sees it.
PodPlacement ExactSearch::ExampleOn(int leaf, NodeRange range, ModelId model) const {
  const int type = classes_->type_of(leaf);
  NodeId example;
  for (int n = range.begin; n < range.end && !example.valid(); ++n) {
    const int c = classes_->class_of(n);
    if (c == NodeClasses::kNone || classes_->at(c).most[At(type)] == 0) continue;
    if (!model.valid() || classes_->at(c).model == model) example = NodeId(n);
  }
  return ExamplePlacement(example, classes_->NeedOn(type, model));
}

}  // namespace tessera
