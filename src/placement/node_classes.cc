#include "src/placement/node_classes.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>

namespace tessera {
namespace {

template <typename T>
void Append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Equal for nodes of one class.
std::string KeyOf(const NodeClass& c) {
  std::string key;
  Append(key, c.model.value());
  for (int limit : c.limits) Append(key, limit);
  for (int64_t amount : c.room) Append(key, amount);
  for (const Device& d : c.pool.devices) {
    Append(key, d.free);
    Append(key, d.carvable);
    Append(key, d.room);
    Append(key, d.key.mask);
    Append(key, d.key.engines);
  }
  key += '|';  // no device begins with it
  for (const Instance& instance : c.pool.idle) Append(key, instance.profile);
  return key;
}

}  // namespace

NodeClasses::NodeClasses(const ClusterState& state, const GangView& view,
                         std::span<const int> leaves, NodeRange range, int64_t& budget)
    : state_(state),
      snapshot_(state.snapshot()),
      workload_(view.workload()),
      range_(range),
      budget_(budget),
      type_of_(At(view.size()), kNone),
      class_of_(At(range.size()), kNone) {
  for (int g : leaves) AddType(view, g);
  CountOwnPods();
  ClassifyAll();
}

void NodeClasses::AddType(const GangView& view, int g) {
  const PodSetInfo& set = view.set(g);
  const int wanted = state_.placeable(view.set_id(g));
  for (size_t t = 0; t < types_.size(); ++t) {
    const bool spread = types_[t].max_per_node > 0 || types_[t].max_per_domain > 0;
    if (set.is_spread() || spread) continue;
    if (types_[t].request_class != set.request_class) continue;
    types_[t].wanted += wanted;
    type_of_[At(g)] = static_cast<int>(t);
    return;
  }
  type_of_[At(g)] = static_cast<int>(types_.size());
  types_.push_back({view.set_id(g), set.request_class, set.max_per_node, set.max_per_domain,
                    set.domain_level, wanted});
}

// Pods that are leaving count as long as they are there.
void NodeClasses::CountOwnPods() {
  for (size_t t = 0; t < types_.size(); ++t) {
    const int level = types_[t].domain_level;
    if (types_[t].max_per_node == 0 && level < 0) continue;
    const auto count = [this, t, level](PodId p) {
      const NodeId n = state_.placement(p).node;
      if (!n.valid()) return;
      ++own_[{static_cast<int>(t), n.value()}];
      if (level < 0) return;
      ++own_in_domain_[{static_cast<int>(t), snapshot_.topology().domain_of(n, level).value()}];
    };
    const PodSetInfo& set = snapshot_.pod_set(types_[t].example);
    for (int i = 0; i < set.count; ++i) count(set.pod(i));
    for (size_t i = 0; i < snapshot_.releasing().size(); ++i) {
      if (snapshot_.pod_set_of(snapshot_.releasing()[i].pod) != types_[t].example) continue;
      count(PodId(snapshot_.num_pods() + static_cast<int>(i)));
    }
  }
}

int64_t NodeClasses::UnitsOn(int t, ModelId model) const {
  const DeviceNeed need = NeedOn(t, model);
  switch (need.kind) {
    case DeviceNeed::kNothing:
      return 0;
    case DeviceNeed::kWhole:
      return int64_t{need.devices} * kGpuUnitsPerDevice;
    case DeviceNeed::kShare:
      return int64_t{need.devices} * need.share;
    case DeviceNeed::kSlice:
      break;
  }
  const GpuModel& gpu = snapshot_.model(model);
  int size = gpu.units;
  for (uint32_t p = need.profiles; p != 0; p &= p - 1) {
    size = std::min(size, gpu.profiles[At(std::countr_zero(p))].size);
  }
  return kGpuUnitsPerDevice * size / gpu.units;
}

// Whether one pod could fit, by what the index knows: never wrong with "no".
bool NodeClasses::MayTake(NodeId n, int t) const {
  const RequestClassId c = types_[At(t)].request_class;
  const std::span<const int64_t> need = state_.tables().need(c);
  const std::span<const int64_t> room = state_.room(n);
  for (size_t i = 0; i < state_.tables().node_resources().size(); ++i) {
    if (need[i] > room[i]) return false;
  }
  const RequestClass& request = snapshot_.request_class(c);
  const GpuRequest& gpu = request.gpu;
  if (gpu.kind == GpuRequestKind::kNone) return true;
  if (gpu.kind == GpuRequestKind::kWhole) return state_.free_gpus(n) >= gpu.devices;
  const ModelFit& fit = request.models[At(snapshot_.node_model(n).value())];
  if (gpu.is_slice()) return room[state_.tables().slice_column(c)] > INT64_MIN;
  return state_.free_gpus(n) > 0 || room[state_.tables().share_column()] >= fit.share;
}

void NodeClasses::ClassifyAll() {
  const StateTables& tables = state_.tables();
  const size_t types = types_.size();
  const size_t signatures = tables.signatures().size();
  std::vector<char> eligible(types * signatures);
  for (size_t t = 0; t < types; ++t) {
    for (int s : tables.eligible(types_[t].request_class)) eligible[t * signatures + At(s)] = 1;
  }
  const auto takes = std::make_unique<bool[]>(types);
  for (int i = range_.begin; i < range_.end; ++i) {
    const NodeId n(i);
    const size_t signature = At(tables.signature_of(n));
    bool any = false;
    for (size_t t = 0; t < types; ++t) {
      takes[t] = eligible[t * signatures + signature] != 0 && MayTake(n, static_cast<int>(t));
      any |= takes[t];
    }
    if (any) Classify(n, {takes.get(), types});
  }
  sums_.assign(types, std::vector<int64_t>(At(range_.size()) + 1));
  for (size_t t = 0; t < types; ++t) {
    for (size_t i = 0; i < class_of_.size(); ++i) {
      const int c = class_of_[i];
      sums_[t][i + 1] = sums_[t][i] + (c == kNone ? 0 : classes_[At(c)].most[t]);
    }
  }
}

void NodeClasses::Classify(NodeId n, std::span<const bool> takes) {
  const int tenant = snapshot_.info(workload_).tenant;
  const Isolation isolation = snapshot_.workload(workload_).isolation;
  if (state_.tables().tracks_tenants() &&
      !state_.tenancy().NodeAccepts(n.value(), tenant, isolation)) {
    return;
  }
  NodeClass seen = SeeNode(n, takes);
  const int next = static_cast<int>(classes_.size());
  const auto [it, inserted] = ids_.try_emplace(KeyOf(seen), next);
  if (inserted) {
    classes_.push_back(std::move(seen));
    CountMost(classes_.back(), next);
  }
  class_of_[At(n.value() - range_.begin)] = it->second;
}

// Pods of type `t` that its bounds allow on the node.
int NodeClasses::LimitOf(NodeId n, int t) const {
  const PodType& type = types_[At(t)];
  int limit = type.wanted;
  if (type.max_per_node > 0) {
    const auto own = own_.find({t, n.value()});
    const int held = own == own_.end() ? 0 : own->second;
    limit = std::clamp(type.max_per_node - held, 0, limit);
  }
  if (type.max_per_domain == 0) return limit;
  return std::min(limit, LeftIn(t, snapshot_.topology().domain_of(n, type.domain_level)));
}

int NodeClasses::LeftIn(int t, DomainId d) const {
  if (!d.valid()) return 0;
  const auto own = own_in_domain_.find({t, d.value()});
  const int held = own == own_in_domain_.end() ? 0 : own->second;
  return std::max(types_[At(t)].max_per_domain - held, 0);
}

// What of the node the gang can use at all.
NodeClass NodeClasses::SeeNode(NodeId n, std::span<const bool> takes) const {
  NodeClass seen;
  seen.model = snapshot_.node_model(n);
  bool uses_gpus = false;
  std::vector<int64_t> usable(num_amounts(), 0);
  for (size_t t = 0; t < types_.size(); ++t) {
    const int limit = takes[t] ? LimitOf(n, static_cast<int>(t)) : 0;
    seen.limits.push_back(limit);
    if (limit == 0) continue;
    const RequestClass& request = snapshot_.request_class(types_[t].request_class);
    uses_gpus |= request.gpu.kind != GpuRequestKind::kNone;
    for (size_t i = 0; i < usable.size(); ++i) {
      constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
      const int64_t need = NeedOf(types_[t], i);
      usable[i] = need > (kMost - usable[i]) / limit ? kMost : usable[i] + need * limit;
    }
  }
  const std::span<const int64_t> room = state_.room(n);
  for (size_t i = 0; i < usable.size(); ++i) {
    seen.room.push_back(std::min(std::max<int64_t>(room[i], 0), usable[i]));
  }
  const Isolation isolation = snapshot_.workload(workload_).isolation;
  if (uses_gpus) seen.pool = PoolOf(state_, n, snapshot_.info(workload_).tenant, isolation);
  return seen;
}

// By bisection: what fits, fits with a pod less.
void NodeClasses::CountMost(NodeClass& c, int id) {
  std::vector<int> counts(types_.size());
  for (size_t t = 0; t < types_.size(); ++t) {
    int low = 0, high = c.limits[t];
    const std::span<const int64_t> need = state_.tables().need(types_[t].request_class);
    for (size_t i = 0; i < c.room.size(); ++i) {
      if (need[i] > 0) high = static_cast<int>(std::min<int64_t>(high, c.room[i] / need[i]));
    }
    while (low < high) {
      counts[t] = low + (high - low + 1) / 2;
      if (Fits(id, counts) == Verdict::kYes) {
        low = counts[t];
      } else {
        high = counts[t] - 1;
      }
    }
    counts[t] = 0;
    c.most.push_back(low);
  }
}

int64_t NodeClasses::MostIn(int t, NodeRange within) const {
  const PodType& type = types_[At(t)];
  if (type.max_per_domain == 0) return SumIn(t, within);
  int64_t most = 0;
  const std::span<const TopologyDomain> domains = snapshot_.topology().domains(type.domain_level);
  for (size_t d = 0; d < domains.size(); ++d) {
    const int64_t fits = SumIn(t, Intersect(domains[d].nodes, within));
    if (fits > 0) most += std::min<int64_t>(fits, LeftIn(t, DomainId(static_cast<int32_t>(d))));
  }
  return most;
}

int64_t NodeClasses::SumIn(int t, NodeRange within) const {
  const NodeRange part = Intersect(within, range_);
  if (part.empty()) return 0;
  const std::vector<int64_t>& sums = sums_[At(t)];
  return sums[At(part.end - range_.begin)] - sums[At(part.begin - range_.begin)];
}

int64_t NodeClasses::MostIn(int t, NodeRange within, ModelId model) const {
  const NodeRange part = Intersect(within, range_);
  int64_t most = 0;
  for (int n = part.begin; n < part.end; ++n) {
    const int c = class_of(n);
    if (c != kNone && at(c).model == model) most += at(c).most[At(t)];
  }
  return most;
}

Verdict NodeClasses::Fits(int c, std::span<const int> counts) {
  std::string key;
  Append(key, c);
  for (int count : counts) Append(key, count);
  const auto it = decided_.find(key);
  if (it != decided_.end()) return it->second;
  const Verdict verdict = Decide(classes_[At(c)], counts);
  if (verdict == Verdict::kUndecided) undecided_ = true;
  decided_.emplace(std::move(key), verdict);
  return verdict;
}

Verdict NodeClasses::Decide(const NodeClass& c, std::span<const int> counts) {
  std::vector<DeviceDemand> devices;
  for (size_t t = 0; t < counts.size(); ++t) {
    if (counts[t] > c.limits[t]) return Verdict::kNo;
    if (counts[t] == 0) continue;
    const DeviceNeed need = NeedOn(static_cast<int>(t), c.model);
    if (need.kind != DeviceNeed::kNothing) devices.push_back({need, counts[t]});
  }
  for (size_t i = 0; i < c.room.size(); ++i) {
    int64_t left = c.room[i];
    for (size_t t = 0; t < counts.size(); ++t) {
      const int64_t need = state_.tables().need(types_[t].request_class)[i];
      if (counts[t] == 0 || need <= 0) continue;
      if (counts[t] > left / need) return Verdict::kNo;
      left -= counts[t] * need;
    }
  }
  if (devices.empty()) return Verdict::kYes;
  const MigTables* mig = c.model.valid() ? &snapshot_.mig(c.model) : nullptr;
  return PackDevices(c.pool, mig, devices, budget_);
}

}  // namespace tessera
