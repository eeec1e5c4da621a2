#include "src/placement/device_packing.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_set.h"

namespace tessera {
namespace {

// A device, and which GPU it is.
struct Slot {
  Device device;
  int gpu = 0;
};

bool Before(const Slot& a, const Slot& b) { return a.device < b.device; }

// One pod to be given devices.
struct Item {
  DeviceNeed need;
  size_t demand = 0;
  size_t index = 0;  // of the pod within its demand
};

class Packing {
 public:
  Packing(const DevicePool& pool, const MigTables* mig, int64_t& budget,
          std::vector<std::vector<DeviceChoice>>* choices, const ClusterState* state, NodeId n)
      : pool_(pool), mig_(mig), budget_(budget), choices_(choices), state_(state), node_(n) {}

  Verdict Run(std::span<const DeviceDemand> demands) {
    std::vector<Slot> slots;
    for (size_t i = 0; i < pool_.devices.size(); ++i) {
      slots.push_back({pool_.devices[i], pool_.gpus[i]});
    }
    Collect(demands);
    const bool fits = Place(0, slots);
    if (fits) TakeWholes();
    return fits ? Verdict::kYes : undecided_ ? Verdict::kUndecided : Verdict::kNo;
  }

 private:
  void Choose(const Item& item, uint64_t gpus, Instance slice = {-1, 0}) {
    if (choices_ != nullptr) (*choices_)[item.demand][item.index] = {gpus, slice};
  }

  // Lists what has to be searched for: slices, the larger first, then fractions. Where
  // one profile serves, idle instances of static GPUs are used first, which loses
  // nothing: whoever else would take one could be carved in its stead.
  void Collect(std::span<const DeviceDemand> demands) {
    if (choices_ != nullptr) choices_->assign(demands.size(), {});
    idle_taken_.assign(pool_.idle.size(), false);
    for (size_t d = 0; d < demands.size(); ++d) {
      const DeviceNeed& need = demands[d].need;
      if (choices_ != nullptr) (*choices_)[d].resize(static_cast<size_t>(demands[d].count));
      for (int i = 0; i < demands[d].count; ++i) {
        const Item item{need, d, static_cast<size_t>(i)};
        if (need.kind == DeviceNeed::kWhole) {
          wholes_ += need.devices;
          whole_items_.push_back(item);
        }
        if (need.kind == DeviceNeed::kShare) items_.push_back(item);
        if (need.kind == DeviceNeed::kSlice && !TakeIdle(item)) items_.push_back(item);
      }
    }
    std::ranges::stable_sort(items_, [this](const Item& x, const Item& y) {
      return std::tuple(x.need.kind != DeviceNeed::kSlice, -SizeOf(x.need), x.need.profiles,
                        -x.need.devices, -x.need.share) <
             std::tuple(y.need.kind != DeviceNeed::kSlice, -SizeOf(y.need), y.need.profiles,
                        -y.need.devices, -y.need.share);
    });
  }

  bool TakeIdle(const Item& item) {
    if (std::popcount(item.need.profiles) != 1) return false;
    for (size_t i = 0; i < idle_taken_.size(); ++i) {
      if (idle_taken_[i] || !Accepts(item.need, pool_.idle[i].profile)) continue;
      idle_taken_[i] = true;
      Choose(item, uint64_t{1} << pool_.idle_gpus[i], pool_.idle[i]);
      return true;
    }
    return false;
  }

  static bool Accepts(const DeviceNeed& need, int profile) {
    return ((need.profiles >> profile) & 1) != 0;
  }

  int SizeOf(const DeviceNeed& need) const {
    if (need.kind != DeviceNeed::kSlice) return 0;
    return mig_->model().profiles[static_cast<size_t>(need.least)].size;
  }

  // `free_left_` holds what the search left free, in order.
  void TakeWholes() {
    size_t next = 0;
    for (const Item& item : whole_items_) {
      uint64_t gpus = 0;
      for (int i = 0; i < item.need.devices; ++i) gpus |= uint64_t{1} << free_left_[next++];
      Choose(item, gpus);
    }
  }

  // Slices of the need that fit beside `key`: at most.
  int64_t RoomFor(const DeviceNeed& need, LayoutKey key) const {
    int64_t room = 0;
    for (uint32_t p = need.profiles; p != 0; p &= p - 1) {
      room += mig_->Capacity(key, std::countr_zero(p));
    }
    return room;
  }

  // Whether items from `i` on cannot fit by what is left alone.
  bool Hopeless(size_t i, const std::vector<Slot>& slots) const {
    int free = 0;
    for (const Slot& slot : slots) free += slot.device.free ? 1 : 0;
    if (free < wholes_) return true;
    while (i < items_.size()) {
      const DeviceNeed& need = items_[i].need;
      int64_t pods = 0;
      for (; i < items_.size() && items_[i].need == need; ++i) ++pods;
      int64_t fits = 0;
      for (const Slot& slot : slots) {
        const Device& d = slot.device;
        if (need.kind == DeviceNeed::kSlice) {
          if (d.carvable) fits += RoomFor(need, d.key);
        } else {
          // A pod takes each device once.
          fits += std::min<int64_t>(d.room / need.share, pods);
        }
      }
      for (size_t j = 0; j < idle_taken_.size() && need.kind == DeviceNeed::kSlice; ++j) {
        fits += !idle_taken_[j] && Accepts(need, pool_.idle[j].profile) ? 1 : 0;
      }
      if (fits < pods * std::max(need.devices, 1)) return true;
    }
    return false;
  }

  std::string KeyOf(size_t i, const std::vector<Slot>& slots) const {
    std::string key(reinterpret_cast<const char*>(&i), sizeof(i));
    // Idle instances come by profile, and of one profile the first is taken first.
    for (bool taken : idle_taken_) key.push_back(taken ? '1' : '0');
    for (const Slot& slot : slots) {
      const Device& d = slot.device;
      const uint64_t code = (uint64_t{d.free} << 63) | (uint64_t{d.carvable} << 62) |
                            (static_cast<uint64_t>(d.room) << 32) |
                            (uint64_t{d.key.engines} << 16) | d.key.mask;
      key.append(reinterpret_cast<const char*>(&code), sizeof(code));
    }
    return key;
  }

  bool Place(size_t i, const std::vector<Slot>& slots) {
    if (--budget_ < 0) {
      undecided_ = true;
      return false;
    }
    if (Hopeless(i, slots)) return false;
    if (i == items_.size()) {
      for (const Slot& slot : slots) {
        if (slot.device.free) free_left_.push_back(slot.gpu);
      }
      return true;
    }
    std::string key = KeyOf(i, slots);
    if (failed_.contains(key)) return false;
    const bool found = items_[i].need.kind == DeviceNeed::kSlice ? PlaceSlice(i, slots)
                                                                 : PlaceShares(i, 0, 0, slots);
    if (!found && !undecided_) failed_.insert(std::move(key));
    return found;
  }

  // Starts for an instance on a device, idle instances of its profile first, then
  // the place that costs others least.
  std::vector<int> StartsOn(const Slot& slot, int profile) const {
    std::vector<std::tuple<bool, int, int>> order;
    for (uint32_t s = mig_->LegalStarts(slot.device.key, profile); s != 0; s &= s - 1) {
      const int start = std::countr_zero(s);
      const bool exists = state_ != nullptr &&
                          state_->instances(node_, slot.gpu)[static_cast<size_t>(start)] == profile;
      order.emplace_back(!exists, mig_->Loss(slot.device.key, profile, start), start);
    }
    std::ranges::sort(order);
    std::vector<int> starts;
    for (const auto& entry : order) starts.push_back(std::get<2>(entry));
    return starts;
  }

  bool PlaceSlice(size_t i, const std::vector<Slot>& slots) {
    const DeviceNeed& need = items_[i].need;
    // Of the idle instances of a profile the first left stands for all.
    for (size_t j = 0; j < idle_taken_.size(); ++j) {
      const int profile = pool_.idle[j].profile;
      if (idle_taken_[j] || !Accepts(need, profile)) continue;
      if (j > 0 && !idle_taken_[j - 1] && pool_.idle[j - 1].profile == profile) continue;
      idle_taken_[j] = true;
      if (Place(i + 1, slots)) {
        Choose(items_[i], uint64_t{1} << pool_.idle_gpus[j], pool_.idle[j]);
        return true;
      }
      idle_taken_[j] = false;
    }
    for (uint32_t p = need.profiles; p != 0; p &= p - 1) {
      if (CarveSlice(i, std::countr_zero(p), slots)) return true;
    }
    return false;
  }

  // Devices are sorted, opened ones before free ones; of equal ones the first is tried.
  bool CarveSlice(size_t i, int profile, const std::vector<Slot>& slots) {
    for (size_t s = 0; s < slots.size(); ++s) {
      const Slot& slot = slots[s];
      if (!slot.device.carvable || (s > 0 && slot.device == slots[s - 1].device)) continue;
      std::vector<LayoutKey> tried;
      for (int start : StartsOn(slot, profile)) {
        const LayoutKey key = mig_->Add(slot.device.key, profile, start);
        if (std::ranges::find(tried, key) != tried.end()) continue;
        tried.push_back(key);
        std::vector<Slot> after = slots;
        after[s].device = {.free = false, .carvable = true, .room = 0, .key = key};
        std::ranges::stable_sort(after, Before);
        if (!Place(i + 1, after)) continue;
        Choose(items_[i], uint64_t{1} << slot.gpu, {profile, start});
        return true;
      }
    }
    return false;
  }

  // Gives item `i`, which has `gpus` already, its remaining devices from `from` on.
  bool PlaceShares(size_t i, size_t from, uint64_t gpus, const std::vector<Slot>& slots) {
    const DeviceNeed& need = items_[i].need;
    if (std::popcount(gpus) == need.devices) {
      std::vector<Slot> after = slots;
      std::ranges::stable_sort(after, Before);
      if (!Place(i + 1, after)) return false;
      Choose(items_[i], gpus);
      return true;
    }
    for (size_t s = from; s < slots.size(); ++s) {
      const Device& d = slots[s].device;
      // Of equal devices the first not yet taken stands for all.
      const bool repeats = s > from && d == slots[s - 1].device;
      if (d.room < need.share || repeats) continue;
      std::vector<Slot> after = slots;
      after[s].device = {.free = false, .carvable = false, .room = d.room - need.share, .key = {}};
      if (PlaceShares(i, s + 1, gpus | uint64_t{1} << slots[s].gpu, after)) return true;
    }
    return false;
  }

  const DevicePool& pool_;
  const MigTables* const mig_;
  int64_t& budget_;
  std::vector<std::vector<DeviceChoice>>* const choices_;
  const ClusterState* const state_;
  const NodeId node_;
  int wholes_ = 0;
  std::vector<Item> items_;
  std::vector<Item> whole_items_;
  std::vector<int> free_left_;
  std::vector<bool> idle_taken_;  // by index in `DevicePool::idle`
  bool undecided_ = false;
  absl::flat_hash_set<std::string> failed_;  // (item, devices left)
};

}  // namespace

DevicePool PoolOf(const ClusterState& state, NodeId n, int tenant, Isolation isolation) {
  DevicePool pool;
  const bool tracks = state.tables().tracks_tenants();
  std::vector<Slot> slots;
  std::vector<std::pair<Instance, int>> idle;
  for (int g = 0; g < state.tables().num_gpus(n); ++g) {
    const GpuState& gpu = state.gpu(n, g);
    const int at = state.tables().first_gpu(n) + g;
    const auto accepts = [&](bool as_fraction) {
      return !tracks || state.tenancy().GpuAccepts(at, tenant, isolation, as_fraction);
    };
    if (!accepts(false)) continue;
    Device d;
    d.free = gpu.is_free();
    if (accepts(true)) {
      d.room = static_cast<int32_t>(d.free ? kGpuUnitsPerDevice : gpu.partial_share());
    }
    d.carvable = gpu.mig == MigMode::kDynamic && gpu.serves_slices();
    if (d.carvable) d.key = gpu.busy;
    if (d.free || d.room > 0 || d.carvable) slots.push_back({d, g});
    if (gpu.mig != MigMode::kStatic || !gpu.serves_slices()) continue;
    for (uint32_t s = gpu.exist_starts & ~gpu.busy_starts; s != 0; s &= s - 1) {
      const int start = std::countr_zero(s);
      idle.push_back({{state.instances(n, g)[static_cast<size_t>(start)], start}, g});
    }
  }
  std::ranges::stable_sort(slots, Before);
  std::ranges::stable_sort(
      idle, [](const auto& a, const auto& b) { return a.first.profile < b.first.profile; });
  for (const Slot& slot : slots) {
    pool.devices.push_back(slot.device);
    pool.gpus.push_back(slot.gpu);
  }
  for (const auto& [instance, g] : idle) {
    pool.idle.push_back(instance);
    pool.idle_gpus.push_back(g);
  }
  return pool;
}

DeviceNeed NeedOn(const Snapshot& snapshot, const RequestClass& request, ModelId model) {
  const GpuRequest& gpu = request.gpu;
  DeviceNeed need;
  if (gpu.kind == GpuRequestKind::kNone || !model.valid()) return need;
  const ModelFit& fit = request.models[static_cast<size_t>(model.value())];
  need.kind = DeviceNeed::kWhole;
  need.devices = gpu.is_slice() ? 1 : gpu.devices;
  if (gpu.is_shared()) {
    need.kind = DeviceNeed::kShare;
    need.share = static_cast<int32_t>(fit.share);
  }
  if (!gpu.is_slice()) return need;
  need.kind = DeviceNeed::kSlice;
  const std::vector<MigProfile>& profiles = snapshot.model(model).profiles;
  const auto slices = [&profiles](int p) {
    const MigProfile& profile = profiles[static_cast<size_t>(p)];
    return std::pair(profile.compute_slices, profile.memory_slices);
  };
  need.profiles = fit.accepted();
  for (uint32_t p = need.profiles; p != 0; p &= p - 1) {
    const int profile = std::countr_zero(p);
    if (need.least < 0 || slices(profile) < slices(need.least)) need.least = profile;
  }
  return need;
}

PodPlacement ExamplePlacement(NodeId n, const DeviceNeed& need) {
  PodPlacement place;
  place.node = n;
  if (need.devices > 0) place.gpus = ~uint64_t{0} >> (64 - need.devices);
  place.share = need.share;
  place.profile = static_cast<int16_t>(need.least);
  return place;
}

Verdict PackDevices(const DevicePool& pool, const MigTables* mig,
                    std::span<const DeviceDemand> demands, int64_t& budget,
                    std::vector<std::vector<DeviceChoice>>* choices, const ClusterState* state,
                    NodeId n) {
  return Packing(pool, mig, budget, choices, state, n).Run(demands);
}

}  // namespace tessera
