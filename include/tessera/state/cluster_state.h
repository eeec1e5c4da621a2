#ifndef TESSERA_STATE_CLUSTER_STATE_H_
#define TESSERA_STATE_CLUSTER_STATE_H_

// What the cluster holds during a search: the value that all planners share.
//
// Placing a pod and taking it back cost what changed, not the size of the
// cluster; a node with room is found without scanning (`NodeIndex`); a copy is
// flat. Two states with the same pods in the same places are equal bit for bit,
// however they came about.

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "tessera/base/ids.h"
#include "tessera/cluster/request_class.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/state/change_journal.h"
#include "tessera/state/gpu_state.h"
#include "tessera/state/node_index.h"
#include "tessera/state/state_tables.h"
#include "tessera/state/tenancy.h"

namespace tessera {

// Which pods of the snapshot a state starts with, beside the running ones.
struct InitialPods {
  bool nominated = true;
  bool releasing = true;
};

// Where a slice comes from.
enum class SliceSource {
  kIdle,   // an instance that exists and is idle
  kOpen,   // carved on a GPU that already holds slices
  kFresh,  // carved on a free GPU
};

// A place for a slice, and what it costs to give it away (`SliceCosts`).
struct SlicePlacement {
  int64_t cost = 0;
  SliceSource source = SliceSource::kIdle;
  int gpu = 0;
  int start = 0;
  int profile = 0;

  // Cheaper first; then idle before carved, the lowest GPU, start, profile.
  friend auto operator<=>(const SlicePlacement&, const SlicePlacement&) = default;
};

// What a place of a later tier (`ModelFit::tiers`) costs more than any of an earlier one.
inline constexpr int64_t kCostOfTier = int64_t{1} << 42;

// One GPU before and after a pod was placed on it.
struct MigChange {
  PodId pod;
  NodeId node;
  int gpu = 0;
  bool enabled_before = false;
  bool enabled_after = false;
  InstanceRow before{};
  InstanceRow after{};
};

class ClusterState {
 public:
  // O(size of the snapshot).
  ClusterState(std::shared_ptr<const StateTables> tables, InitialPods initial);

  const StateTables& tables() const { return *tables_; }
  const Snapshot& snapshot() const { return tables_->snapshot(); }

  // --- What is held -------------------------------------------------------

  bool is_placed(PodId p) const { return placements_[at(p)].node.valid(); }
  // Invalid node: the pod is nowhere. A releasing pod is nowhere, too: what it
  // still holds is held under a ghost id, so that the pod itself may be placed.
  const PodPlacement& placement(PodId p) const { return placements_[at(p)]; }
  // Pods of a set that are placed; with those that have succeeded; and those that
  // may still be placed.
  int placed(PodSetId s) const { return placed_[at(s)]; }
  int standing(PodSetId s) const { return placed(s) + tables_->succeeded(s); }
  int placeable(PodSetId s) const {
    return snapshot().pod_set(s).count - tables_->ended(s) - placed(s);
  }
  const GpuState& gpu(NodeId n, int g) const { return gpus_[gpu_at(n, g)]; }
  const InstanceRow& instances(NodeId n, int g) const { return rows_[gpu_at(n, g)]; }
  // Free whole GPUs of a node, and of a topology domain.
  int free_gpus(NodeId n) const {
    return index_.shelf(tables_->signature_of(n), tables_->slot_of(n));
  }
  int64_t free_gpus(int level, DomainId d) const {
    return domain_free_[static_cast<size_t>(level)][static_cast<size_t>(d.value())];
  }
  // Free amount of `tables().node_resources()[i]`; below zero if over-committed.
  int64_t free_amount(NodeId n, int i) const { return room(n)[static_cast<size_t>(i)]; }
  // The columns of `StateTables` of a node: amounts, the best partial share, and for
  // each kind of slice what the cheapest one costs, negated; INT64_MIN: there is none.
  std::span<const int64_t> room(NodeId n) const {
    return index_.room(tables_->signature_of(n), tables_->slot_of(n));
  }
  // How many more pods of `s` its own bounds allow on node `n`, those that are leaving
  // counted as there; INT_MAX if it has none, never below zero. O(1).
  int LeftOn(NodeId n, PodSetId s) const;
  // The same by its bound per domain alone, in domain `d` of its level; 0 in none.
  int LeftIn(DomainId d, PodSetId s) const;
  // The cheapest place on node `n` for a slice that `fit`, of the node's model, accepts,
  // or nothing if no GPU of the set `gpus` has one. Geometry and engines are exact:
  // what is returned can be created beside what is held, idle instances in its way being
  // destroyed. O(GPUs * accepted profiles), and the starts where instances are idle.
  std::optional<SlicePlacement> CheapestSlice(NodeId n, const ModelFit& fit,
                                              uint64_t gpus = ~uint64_t{0}) const;
  const NodeIndex& index() const { return index_; }
  const Tenancy& tenancy() const { return tenancy_; }
  // The nodes whose room changed, by any of the changes below or their undoing.
  const ChangeJournal& journal() const { return journal_; }

  // The lowest node in `range` of `signature` with exactly `free_gpus` free whole
  // GPUs and the amounts `need` (`StateTables::need`, the share set as wanted);
  // invalid if there is none.
  NodeId FindNode(int signature, int free_gpus, NodeRange range,
                  std::span<const int64_t> need) const;

  // Of the same nodes the one of the highest `value`, more than `above`; an
  // invalid node if there is none. See `NodeIndex::FindBest` for the part of `column`.
  struct ValuedNode {
    NodeId node;
    int64_t value = 0;
  };
  ValuedNode FindBestNode(int signature, int free_gpus, NodeRange range,
                          std::span<const int64_t> need, size_t column, int64_t above,
                          absl::FunctionRef<int64_t(NodeId)> value) const;

  // --- Changes ------------------------------------------------------------

  // Puts a pod that is nowhere at `placement`, free or not. A slice destroys idle instances in its
  // way and is carved if it does not exist; a whole GPU or a fraction takes the device out of MIG
  // mode. O(GPUs of the node + levels).
  void Place(PodId p, const PodPlacement& placement);

  // Puts a pod at a place that it waits for: as `Place`, but MIG modes and
  // instances stay as they are. Devices that have to change before the pod can
  // start take nothing more meanwhile.
  void Reserve(PodId p, const PodPlacement& placement);

  // Takes a pod from where it is. Its instance stays, idle.
  void Remove(PodId p);

  // A point to return to. `RollBack` undoes every change since, last first.
  using Mark = size_t;
  Mark GetMark() const { return log_.size(); }
  void RollBack(Mark mark);

  // Forgets how to undo what was done so far.
  void Commit() {
    log_.clear();
    gpu_log_.clear();
  }

  // What the pods placed since `mark` did to instances and MIG modes, in order:
  // what a host must carry out before it starts the pod. O(changes since).
  std::vector<MigChange> MigChangesSince(Mark mark) const;

  // Bytes of the mutable part, for reports.
  size_t MemoryBytes() const;

  // The same pods in the same places.
  friend bool operator==(const ClusterState& a, const ClusterState& b) {
    return a.placements_ == b.placements_ && a.gpus_ == b.gpus_ && a.rows_ == b.rows_ &&
           a.index_ == b.index_ && a.domain_free_ == b.domain_free_ && a.tenancy_ == b.tenancy_;
  }

 private:
  // One GPU as it was before a change.
  struct GpuUndo {
    size_t gpu = 0;
    GpuState state;
    InstanceRow row{};
  };
  struct Record {
    PodId pod;
    PodPlacement before;  // invalid node: the pod was nowhere
    bool was_blocked = false;
    size_t first_gpu_undo = 0;
  };

  template <typename Tag>
  static size_t at(Id<Tag> id) {
    return static_cast<size_t>(id.value());
  }
  // The pod that holds under id `p`: ghosts follow the pods, one for each entry
  // of `Snapshot::releasing()`.
  PodId owner(PodId p) const {
    const int ghost = p.value() - snapshot().num_pods();
    return ghost < 0 ? p : snapshot().releasing()[static_cast<size_t>(ghost)].pod;
  }
  size_t gpu_at(NodeId n, int g) const { return static_cast<size_t>(tables_->first_gpu(n) + g); }

  void Save(PodId p, const PodPlacement& touched);
  void HoldGpu(PodId p, size_t gpu, const PodPlacement& placement);
  void DropGpu(PodId p, size_t gpu, const PodPlacement& placement);
  void HoldSlice(PodId p, size_t gpu, const PodPlacement& placement);
  void Block(PodId p, size_t gpu);
  bool NeedsMigChange(size_t gpu, const PodPlacement& placement) const;
  void DestroyIdle(size_t gpu);
  // The slots of `signature` in `range`.
  std::pair<int, int> SlotsIn(int signature, NodeRange range) const;
  // Counts `p`, placed or taken away, in its pod set, where that is bounded, and for its
  // tenant.
  void Count(PodId p, const PodPlacement& placement, int count);
  const ResourceVector& NeedOf(PodId p) const;
  // `Place`, without what follows for the node or how to undo it.
  void Hold(PodId p, const PodPlacement& placement);
  // The pods that hold something at the start.
  void HoldAll(InitialPods initial);
  // Recomputes what the index knows of a node: after `p` came to it, or left it, `count` is -1;
  // with `amounts` free and a change of its GPUs of the set `gpus`.
  void Refresh(PodId p, const PodPlacement& placement, int count);
  void Refresh(NodeId n, std::span<const int64_t> amounts, uint64_t gpus);
  void PriceSlices(NodeId n, int g);

  std::shared_ptr<const StateTables> tables_;
  std::vector<PodPlacement> placements_;  // by PodId
  std::vector<int32_t> placed_;           // by PodSetId
  // Pods of sets with `max_per_node` and with `max_per_domain`.
  absl::flat_hash_map<std::pair<PodSetId, NodeId>, int32_t> on_node_;
  absl::flat_hash_map<std::pair<PodSetId, DomainId>, int32_t> in_domain_;
  absl::flat_hash_set<PodId> blocked_;  // pods counted in `GpuState::blocks`
  std::vector<GpuState> gpus_;
  std::vector<InstanceRow> rows_;
  // [GPU][kind of slice]: the columns of `room`, as if the GPU were the node's only one.
  std::vector<int64_t> slice_worth_;
  NodeIndex index_;
  std::vector<std::vector<int32_t>> domain_free_;  // [level][domain]
  Tenancy tenancy_;
  ChangeJournal journal_;
  std::vector<Record> log_;
  std::vector<GpuUndo> gpu_log_;
};

}  // namespace tessera

#endif  // TESSERA_STATE_CLUSTER_STATE_H_
