#include "tessera/state/cluster_state.h"

#include <algorithm>
#include <bit>
#include <climits>

#include "absl/container/inlined_vector.h"

namespace tessera {
namespace {

uint16_t Bit(int start) { return static_cast<uint16_t>(1u << start); }

}  // namespace

ClusterState::ClusterState(std::shared_ptr<const StateTables> tables, InitialPods initial)
    : tables_(std::move(tables)) {
  const Snapshot& snapshot = tables_->snapshot();
  placements_.resize(static_cast<size_t>(snapshot.num_pods()) + snapshot.releasing().size());
  placed_.resize(static_cast<size_t>(snapshot.num_pod_sets()));
  gpus_.resize(static_cast<size_t>(tables_->num_gpus()));
  rows_.resize(gpus_.size());
  slice_worth_.resize(gpus_.size() * tables_->slice_asks().size(), INT64_MIN);
  std::vector<int> sizes;
  for (const NodeSignature& s : tables_->signatures()) {
    sizes.push_back(static_cast<int>(s.nodes.size()));
  }
  index_ =
      NodeIndex(sizes, tables_->max_gpus_per_node() + 1, static_cast<int>(tables_->num_columns()));
  if (tables_->tracks_tenants()) tenancy_ = Tenancy(snapshot.num_nodes(), tables_->num_gpus());
  const Topology& topology = snapshot.topology();
  for (int level = 0; level < topology.num_levels(); ++level) {
    domain_free_.emplace_back(topology.domains(level).size(), 0);
  }
  for (int i = 0; i < snapshot.num_nodes(); ++i) {
    const NodeId n(i);
    for (size_t g = 0; g < snapshot.node(n).gpus.size(); ++g) {
      const Gpu& gpu = snapshot.node(n).gpus[g];
      GpuState& state = gpus_[gpu_at(n, static_cast<int>(g))];
      InstanceRow& row = rows_[gpu_at(n, static_cast<int>(g))];
      state.healthy = gpu.healthy;
      state.mig = gpu.mig;
      state.mig_enabled = gpu.is_mig_enabled();
      row.fill(-1);
      for (const GpuInstance& instance : gpu.instances) {
        const GpuModel& model = snapshot.model(snapshot.node_model(n));
        row[static_cast<size_t>(instance.start)] =
            static_cast<int8_t>(*model.FindProfile(instance.profile));
        state.exist_starts |= Bit(instance.start);
      }
    }
  }
  HoldAll(initial);
}

void ClusterState::HoldAll(InitialPods initial) {
  // 1. What is free of each node's amounts, and who holds its GPUs.
  const std::span<const int> resources = tables_->node_resources();
  std::vector<int64_t> free;  // [node][resource]
  free.reserve(static_cast<size_t>(snapshot().num_nodes()) * resources.size());
  for (int i = 0; i < snapshot().num_nodes(); ++i) {
    for (int r : resources) free.push_back(snapshot().node_capacity(NodeId(i))[r]);
  }
  const auto hold = [&](PodId p, const PodPlacement& placement) {
    Hold(p, placement);
    const ResourceVector& need = NeedOf(p);
    int64_t* left = free.data() + at(placement.node) * resources.size();
    for (int r : resources) *left++ -= need[r];
  };
  for (size_t i = 0; initial.releasing && i < snapshot().releasing().size(); ++i) {
    const PodId ghost(static_cast<int32_t>(snapshot().num_pods() + static_cast<int>(i)));
    hold(ghost, snapshot().releasing()[i].placement);
  }
  for (int i = 0; i < snapshot().num_pods(); ++i) {
    const PodId p(i);
    const PodPhase phase = snapshot().pod_phase(p);
    if (phase == PodPhase::kRunning || (phase == PodPhase::kNominated && initial.nominated)) {
      hold(p, snapshot().pod_placement(p));
    }
  }
  // 2. What follows from that, once for each node.
  for (int i = 0; i < snapshot().num_nodes(); ++i) {
    const size_t first = static_cast<size_t>(i) * resources.size();
    Refresh(NodeId(i), std::span(free).subspan(first, resources.size()), ~uint64_t{0});
  }
  journal_ = ChangeJournal();
}

std::pair<int, int> ClusterState::SlotsIn(int signature, NodeRange range) const {
  const std::vector<int32_t>& nodes = tables_->signatures()[static_cast<size_t>(signature)].nodes;
  if (range.begin <= 0 && range.end >= snapshot().num_nodes()) {
    return {0, static_cast<int>(nodes.size())};
  }
  return {static_cast<int>(std::ranges::lower_bound(nodes, range.begin) - nodes.begin()),
          static_cast<int>(std::ranges::lower_bound(nodes, range.end) - nodes.begin())};
}

NodeId ClusterState::FindNode(int signature, int free_gpus, NodeRange range,
                              std::span<const int64_t> need) const {
  const auto [begin, end] = SlotsIn(signature, range);
  const int slot = index_.FindFirst(signature, free_gpus, begin, end, need);
  if (slot == NodeIndex::kNone) return NodeId();
  return NodeId(
      tables_->signatures()[static_cast<size_t>(signature)].nodes[static_cast<size_t>(slot)]);
}

ClusterState::ValuedNode ClusterState::FindBestNode(
    int signature, int free_gpus, NodeRange range, std::span<const int64_t> need, size_t column,
    int64_t above, absl::FunctionRef<int64_t(NodeId)> value) const {
  const std::vector<int32_t>& nodes = tables_->signatures()[static_cast<size_t>(signature)].nodes;
  const auto node_at = [&nodes](int slot) { return NodeId(nodes[static_cast<size_t>(slot)]); };
  const auto [begin, end] = SlotsIn(signature, range);
  const NodeIndex::Best best =
      index_.FindBest(signature, free_gpus, begin, end, need, static_cast<int>(column), above,
                      [&](int slot) { return value(node_at(slot)); });
  return {best.slot == NodeIndex::kNone ? NodeId() : node_at(best.slot), best.value};
}

int ClusterState::LeftOn(NodeId n, PodSetId s) const {
  const PodSetInfo& set = snapshot().pod_set(s);
  int left = INT_MAX;
  if (set.max_per_node > 0) {
    const auto there = on_node_.find({s, n});
    left = std::max(set.max_per_node - (there == on_node_.end() ? 0 : there->second), 0);
  }
  if (set.max_per_domain == 0) return left;
  return std::min(left, LeftIn(snapshot().topology().domain_of(n, set.domain_level), s));
}

int ClusterState::LeftIn(DomainId d, PodSetId s) const {
  const PodSetInfo& set = snapshot().pod_set(s);
  if (set.max_per_domain == 0) return INT_MAX;
  if (!d.valid()) return 0;
  const auto there = in_domain_.find({s, d});
  return std::max(set.max_per_domain - (there == in_domain_.end() ? 0 : there->second), 0);
}

void ClusterState::Save(PodId p, const PodPlacement& touched) {
  log_.push_back({p, placements_[at(p)], blocked_.contains(p), gpu_log_.size()});
  for (uint64_t rest = touched.gpus; rest != 0; rest &= rest - 1) {
    const size_t gpu = gpu_at(touched.node, std::countr_zero(rest));
    gpu_log_.push_back({gpu, gpus_[gpu], rows_[gpu]});
  }
}

void ClusterState::Place(PodId p, const PodPlacement& placement) {
  Save(p, placement);
  Hold(p, placement);
  Refresh(p, placement, 1);
}

void ClusterState::Hold(PodId p, const PodPlacement& placement) {
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    HoldGpu(p, gpu_at(placement.node, std::countr_zero(rest)), placement);
  }
  placements_[at(p)] = placement;
  Count(p, placement, 1);
}

void ClusterState::Reserve(PodId p, const PodPlacement& placement) {
  bool waits = false;
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    waits |= NeedsMigChange(gpu_at(placement.node, std::countr_zero(rest)), placement);
  }
  if (!waits) return Place(p, placement);
  Save(p, placement);
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    Block(p, gpu_at(placement.node, std::countr_zero(rest)));
  }
  placements_[at(p)] = placement;
  Count(p, placement, 1);
  Refresh(p, placement, 1);
}

void ClusterState::Remove(PodId p) {
  const PodPlacement placement = placements_[at(p)];
  Save(p, placement);
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    DropGpu(p, gpu_at(placement.node, std::countr_zero(rest)), placement);
  }
  blocked_.erase(p);
  placements_[at(p)] = PodPlacement();
  Count(p, placement, -1);
  Refresh(p, placement, -1);
}

void ClusterState::RollBack(Mark mark) {
  while (log_.size() > mark) {
    const Record record = log_.back();
    log_.pop_back();
    const PodPlacement now = placements_[at(record.pod)];
    for (size_t i = gpu_log_.size(); i > record.first_gpu_undo; --i) {
      const GpuUndo& undo = gpu_log_[i - 1];
      gpus_[undo.gpu] = undo.state;
      rows_[undo.gpu] = undo.row;
    }
    gpu_log_.resize(record.first_gpu_undo);
    placements_[at(record.pod)] = record.before;
    if (record.was_blocked) {
      blocked_.insert(record.pod);
    } else if (!blocked_.empty()) {
      blocked_.erase(record.pod);
    }
    const bool placed = now.node.valid();
    const PodPlacement& touched = placed ? now : record.before;
    Count(record.pod, touched, placed ? -1 : 1);
    Refresh(record.pod, touched, placed ? -1 : 1);
  }
}

void ClusterState::HoldGpu(PodId p, size_t gpu, const PodPlacement& placement) {
  GpuState& state = gpus_[gpu];
  if (placement.profile >= 0) {
    HoldSlice(p, gpu, placement);
    return;
  }
  DestroyIdle(gpu);
  if (placement.share > 0) {
    state.share += placement.share;
  } else {
    ++state.wholes;
  }
}

void ClusterState::DropGpu(PodId p, size_t gpu, const PodPlacement& placement) {
  GpuState& state = gpus_[gpu];
  if (blocked_.contains(p)) {
    --state.blocks;
  } else if (placement.profile < 0) {
    if (placement.share > 0) {
      state.share -= placement.share;
    } else {
      --state.wholes;
    }
  } else {
    const NodeId n = placement.node;
    const MigTables& mig = snapshot().mig(snapshot().node_model(n));
    state.busy = mig.Remove(state.busy, placement.profile, placement.start);
    state.busy_starts &= static_cast<uint16_t>(~Bit(placement.start));
  }
}

// A device that leaves MIG mode loses its idle instances; held ones (of pods
// that are releasing) stay until they are gone.
void ClusterState::DestroyIdle(size_t gpu) {
  GpuState& state = gpus_[gpu];
  InstanceRow& row = rows_[gpu];
  for (size_t s = 0; s < row.size(); ++s) {
    if ((state.busy_starts & Bit(static_cast<int>(s))) == 0) row[s] = -1;
  }
  state.exist_starts &= state.busy_starts;
  if (state.busy_starts == 0) state.mig_enabled = false;
}

void ClusterState::HoldSlice(PodId p, size_t gpu, const PodPlacement& placement) {
  GpuState& state = gpus_[gpu];
  InstanceRow& row = rows_[gpu];
  const MigTables& mig = snapshot().mig(snapshot().node_model(placement.node));
  const int profile = placement.profile, start = placement.start;
  if (!mig.CanPlace(state.busy, profile, start)) return Block(p, gpu);
  state.busy = mig.Add(state.busy, profile, start);
  state.busy_starts |= Bit(start);
  state.mig_enabled = true;
  if (row[static_cast<size_t>(start)] == profile) return;
  // Carve: idle instances stay where they still fit beside what is held.
  LayoutKey key = state.busy;
  row[static_cast<size_t>(start)] = static_cast<int8_t>(profile);
  uint16_t kept = state.busy_starts;
  for (int s = 0; s < static_cast<int>(row.size()); ++s) {
    const int8_t idle = row[static_cast<size_t>(s)];
    if (idle < 0 || (state.busy_starts & Bit(s)) != 0) continue;
    if (mig.CanPlace(key, idle, s)) {
      key = mig.Add(key, idle, s);
      kept |= Bit(s);
    } else {
      row[static_cast<size_t>(s)] = -1;
    }
  }
  state.exist_starts = kept;
}

void ClusterState::Block(PodId p, size_t gpu) {
  ++gpus_[gpu].blocks;
  blocked_.insert(p);
}

// Whether a pod at `placement` cannot start on the device as it is.
bool ClusterState::NeedsMigChange(size_t gpu, const PodPlacement& placement) const {
  const GpuState& state = gpus_[gpu];
  if (placement.profile < 0) return state.mig_enabled;
  const uint16_t idle = state.exist_starts & static_cast<uint16_t>(~state.busy_starts);
  return (idle & Bit(placement.start)) == 0 ||
         rows_[gpu][static_cast<size_t>(placement.start)] != placement.profile;
}

void ClusterState::Count(PodId p, const PodPlacement& placement, int count) {
  const PodSetId s = snapshot().pod_set_of(owner(p));
  const PodSetInfo& set = snapshot().pod_set(s);
  if (owner(p) == p) placed_[at(s)] += count;
  if (set.max_per_node > 0) on_node_[{s, placement.node}] += count;
  if (set.max_per_domain > 0) {
    in_domain_[{s, snapshot().topology().domain_of(placement.node, set.domain_level)}] += count;
  }
  if (!tables_->tracks_tenants()) return;
  const int tenant = snapshot().info(set.workload).tenant;
  const Isolation isolation = snapshot().workload(set.workload).isolation;
  tenancy_.AddToNode(placement.node.value(), tenant, isolation, count);
  for (uint64_t rest = placement.gpus; rest != 0; rest &= rest - 1) {
    const size_t gpu = gpu_at(placement.node, std::countr_zero(rest));
    tenancy_.AddToGpu(static_cast<int>(gpu), tenant, isolation, placement.share > 0, count);
  }
}

void ClusterState::PriceSlices(NodeId n, int g) {
  const ModelId m = snapshot().node_model(n);
  if (!m.valid()) return;
  const size_t asks = tables_->slice_asks().size();
  for (size_t a = 0; a < asks; ++a) {
    const ModelFit& fit = tables_->slice_asks()[a][static_cast<size_t>(m.value())];
    const auto slice = CheapestSlice(n, fit, uint64_t{1} << g);
    slice_worth_[gpu_at(n, g) * asks + a] = slice ? -slice->cost : INT64_MIN;
  }
}

const ResourceVector& ClusterState::NeedOf(PodId p) const {
  const RequestClassId c = snapshot().pod_set(snapshot().pod_set_of(owner(p))).request_class;
  return snapshot().request_class(c).need;
}

void ClusterState::Refresh(PodId p, const PodPlacement& placement, int count) {
  const std::span<const int> resources = tables_->node_resources();
  const std::span<const int64_t> old = room(placement.node);
  const ResourceVector& need = NeedOf(p);
  absl::InlinedVector<int64_t, kMaxResources> amounts;
  for (size_t i = 0; i < resources.size(); ++i) {
    amounts.push_back(old[i] - count * need[resources[i]]);
  }
  Refresh(placement.node, amounts, placement.gpus);
}

void ClusterState::Refresh(NodeId n, std::span<const int64_t> amounts, uint64_t gpus) {
  // 1. Amounts.
  const int signature = tables_->signature_of(n), slot = tables_->slot_of(n);
  absl::InlinedVector<int64_t, kMaxResources + 8> row(tables_->num_columns());
  std::ranges::copy(amounts, row.begin());
  // 2. Devices.
  int free = 0;
  int64_t& partial = row[tables_->share_column()];
  partial = 0;
  const std::span<int64_t> slices = std::span(row).subspan(tables_->share_column() + 1);
  std::ranges::fill(slices, INT64_MIN);
  for (int g = 0; g < tables_->num_gpus(n); ++g) {
    const GpuState& state = gpus_[gpu_at(n, g)];
    partial = std::max(partial, state.partial_share());
    free += state.is_free() ? 1 : 0;
    if (((gpus >> g) & 1) != 0) PriceSlices(n, g);
    const int64_t* worth = slice_worth_.data() + gpu_at(n, g) * slices.size();
    for (size_t a = 0; a < slices.size(); ++a) slices[a] = std::max(slices[a], worth[a]);
  }
  // 3. Domains and index.
  const int change = free - index_.shelf(signature, slot);
  for (size_t level = 0; change != 0 && level < domain_free_.size(); ++level) {
    const DomainId d = snapshot().topology().domain_of(n, static_cast<int>(level));
    if (d.valid()) domain_free_[level][static_cast<size_t>(d.value())] += change;
  }
  index_.Set(signature, slot, free, row);
  journal_.Add(n);
}

std::vector<MigChange> ClusterState::MigChangesSince(Mark mark) const {
  std::vector<MigChange> changes;
  for (size_t i = mark; i < log_.size(); ++i) {
    const size_t end = i + 1 < log_.size() ? log_[i + 1].first_gpu_undo : gpu_log_.size();
    for (size_t u = log_[i].first_gpu_undo; u < end; ++u) {
      const GpuUndo& undo = gpu_log_[u];
      const bool slice = placements_[at(log_[i].pod)].profile >= 0;
      if (!slice && !undo.state.mig_enabled) continue;
      // The GPU after this change is the GPU before its next one, or as it is.
      const auto later =
          std::find_if(gpu_log_.begin() + static_cast<ptrdiff_t>(end), gpu_log_.end(),
                       [&undo](const GpuUndo& next) { return next.gpu == undo.gpu; });
      const bool last = later == gpu_log_.end();
      const NodeId n = tables_->node_of_gpu(static_cast<int>(undo.gpu));
      MigChange change;
      change.pod = log_[i].pod;
      change.node = n;
      change.gpu = static_cast<int>(undo.gpu) - tables_->first_gpu(n);
      change.enabled_before = undo.state.mig_enabled;
      change.enabled_after = last ? gpus_[undo.gpu].mig_enabled : later->state.mig_enabled;
      change.before = undo.row;
      change.after = last ? rows_[undo.gpu] : later->row;
      changes.push_back(change);
    }
  }
  return changes;
}

size_t ClusterState::MemoryBytes() const {
  return placements_.capacity() * sizeof(PodPlacement) + placed_.capacity() * sizeof(int32_t) +
         gpus_.capacity() * sizeof(GpuState) + rows_.capacity() * sizeof(InstanceRow) +
         slice_worth_.capacity() * sizeof(int64_t) + index_.MemoryBytes() +
         log_.capacity() * sizeof(Record) + gpu_log_.capacity() * sizeof(GpuUndo);
}

}  // namespace tessera
