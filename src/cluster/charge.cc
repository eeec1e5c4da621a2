#include "tessera/cluster/charge.h"

#include <algorithm>
#include <bit>

#include "absl/numeric/int128.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

// gpu and gpu_memory of `devices` devices, each used as `placement` says.
struct GpuCharge {
  int64_t gpu = 0;
  int64_t memory = 0;
};

int64_t CeilShare(int64_t memory, int64_t part, int64_t whole) {
  const absl::int128 product = absl::int128{memory} * part;
  return static_cast<int64_t>((product + whole - 1) / whole);
}

int64_t WholeG(const MigProfile& profile) {
  return profile.is_variant() ? 0 : profile.compute_slices * kGpuUnitsPerDevice;
}

GpuCharge SliceCharge(const GpuModel& model, int profile, MigCharge rule) {
  const MigProfile& p = model.profiles[static_cast<size_t>(profile)];
  const int64_t by_slices = kGpuUnitsPerDevice * p.compute_slices / model.compute_slices;
  return {rule == MigCharge::kWholeG ? WholeG(p) : by_slices,
          CeilShare(model.memory_bytes, p.memory_slices, model.memory_slices)};
}

GpuCharge Charge(const GpuModel& model, const GpuRequest& request, int profile, int64_t share,
                 MigCharge rule) {
  if (profile >= 0) return SliceCharge(model, profile, rule);
  const int64_t devices = request.devices;
  if (share == 0) return {devices * kGpuUnitsPerDevice, devices * model.memory_bytes};
  const int64_t memory = request.kind == GpuRequestKind::kDeviceMemory
                             ? request.memory
                             : CeilShare(model.memory_bytes, share, kGpuUnitsPerDevice);
  return {devices * share, devices * memory};
}

}  // namespace

ResourceVector ChargeOf(const Snapshot& snapshot, RequestClassId c, const PodPlacement& placement,
                        MigCharge rule) {
  const RequestClass& request = snapshot.request_class(c);
  ResourceVector charge = request.need;
  if (placement.gpus == 0) return charge;
  const GpuModel& model = snapshot.model(snapshot.node_model(placement.node));
  const GpuCharge gpu = Charge(model, request.gpu, placement.profile, placement.share, rule);
  charge[kGpu] = gpu.gpu;
  charge[kGpuMemory] = gpu.memory;
  for (int r = kFirstNamedResource; r < snapshot.resources().size(); ++r) {
    const std::string_view counted = snapshot.resources().gpu_model(r);
    if (!counted.empty() && CountsGpuModel(counted, model.name)) charge[r] = gpu.gpu;
  }
  return charge;
}

namespace {

// The least of gpu and of memory that the request may be charged on `model`.
GpuCharge LeastCharge(const GpuModel& model, const GpuRequest& request, const ModelFit& fit,
                      MigCharge rule) {
  GpuCharge least = Charge(model, request, fit.profile, fit.share, rule);
  for (int p = 0; p < static_cast<int>(model.profiles.size()); ++p) {
    if (!fit.Accepts(p)) continue;
    const GpuCharge other = SliceCharge(model, p, rule);
    least = {std::min(least.gpu, other.gpu), std::min(least.memory, other.memory)};
  }
  return least;
}

}  // namespace

ResourceVector ExpectedCharge(const Snapshot& snapshot, RequestClassId c, MigCharge rule) {
  const RequestClass& request = snapshot.request_class(c);
  ResourceVector charge = request.need;
  bool any = false;
  for (size_t m = 0; m < request.models.size(); ++m) {
    const ModelFit& fit = request.models[m];
    if (!fit.fits) continue;
    const GpuModel& model = snapshot.model(ModelId(static_cast<int32_t>(m)));
    const GpuCharge gpu = LeastCharge(model, request.gpu, fit, rule);
    charge[kGpu] = any ? std::min(charge[kGpu], gpu.gpu) : gpu.gpu;
    charge[kGpuMemory] = any ? std::min(charge[kGpuMemory], gpu.memory) : gpu.memory;
    for (int r = kFirstNamedResource; r < snapshot.resources().size(); ++r) {
      const std::string_view counted = snapshot.resources().gpu_model(r);
      if (counted.empty()) continue;
      const int64_t amount = CountsGpuModel(counted, model.name) ? gpu.gpu : 0;
      charge[r] = any ? std::min(charge[r], amount) : amount;
    }
    any = true;
  }
  return charge;
}

ResourceVector TotalCapacity(const Snapshot& snapshot, MigCharge rule) {
  ResourceVector total;
  for (int i = 0; i < snapshot.num_nodes(); ++i) {
    const NodeId n(i);
    const Node& node = snapshot.node(n);
    if (!node.schedulable) continue;
    for (int r = 0; r < kMaxResources; ++r) {
      total[r] += std::max<int64_t>(snapshot.node_capacity(n)[r], 0);
    }
    const ModelId m = snapshot.node_model(n);
    if (!m.valid()) continue;
    const GpuModel& model = snapshot.model(m);
    int64_t units = 0;
    for (const Gpu& gpu : node.gpus) {
      if (!gpu.healthy) continue;
      total[kGpuMemory] += model.memory_bytes;
      if (rule == MigCharge::kByComputeSlices || gpu.instances.empty()) {
        units += kGpuUnitsPerDevice;
        continue;
      }
      for (const GpuInstance& instance : gpu.instances) {
        units += WholeG(model.profiles[static_cast<size_t>(*model.FindProfile(instance.profile))]);
      }
    }
    total[kGpu] += units;
    for (int r = kFirstNamedResource; r < snapshot.resources().size(); ++r) {
      const std::string_view counted = snapshot.resources().gpu_model(r);
      if (!counted.empty() && CountsGpuModel(counted, model.name)) total[r] += units;
    }
  }
  return total;
}

}  // namespace tessera
