#include <algorithm>
#include <array>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "src/cluster/snapshot_builder.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

// Appends `text` so that no two lists of texts give the same bytes.
void Append(std::string& key, std::string_view text) {
  absl::StrAppend(&key, text.size(), ":", std::string(text));
}

// Everything that makes two pod sets ask for the same thing.
std::string ClassKey(const PodSet& set) {
  const GpuRequest& gpu = set.request.gpu;
  std::string key =
      absl::StrCat(set.request.cpu, ",", set.request.memory, ",", static_cast<int>(gpu.kind), ",",
                   gpu.devices, ",", gpu.share, ",", gpu.memory, ",", gpu.requirement.memory, ",");
  absl::StrAppend(&key, gpu.requirement.compute_num, "/", gpu.requirement.compute_den, ";");
  for (const std::string& profile : gpu.profiles) Append(key, profile);
  absl::StrAppend(&key, ";", gpu.allow_larger, ";");
  for (const auto& [name, amount] : set.request.extended) {
    Append(key, name);
    absl::StrAppend(&key, amount, ",");
  }
  absl::StrAppend(&key, ";");
  for (const std::string& model : set.gpu_models) Append(key, model);
  absl::StrAppend(&key, ";");
  for (const SelectorTerm& term : set.selector) {
    Append(key, term.key);
    absl::StrAppend(&key, static_cast<int>(term.op), "(");
    for (const std::string& value : term.values) Append(key, value);
    absl::StrAppend(&key, ")");
  }
  for (const Toleration& t : set.tolerations) {
    Append(key, t.key);
    Append(key, t.value);
    absl::StrAppend(&key, t.exists, t.any_effect, static_cast<int>(t.effect));
  }
  return key;
}

absl::Status CheckSelector(const Selector& selector, const std::string& path) {
  for (size_t i = 0; i < selector.size(); ++i) {
    const std::string where = absl::StrCat(path, "[", i, "]");
    if (selector[i].key.empty()) return InvalidAt(where + ".key", "is empty");
    const bool needs_values =
        selector[i].op == SelectorOperator::kIn || selector[i].op == SelectorOperator::kNotIn;
    if (needs_values && selector[i].values.empty()) {
      return InvalidAt(where + ".values", "is empty");
    }
  }
  return absl::OkStatus();
}

// Appends what `profile`, asked for by name or by requirement, accepts.
void AddTier(const GpuModel& model, const GpuRequest& gpu, int profile, ModelFit& fit) {
  const MigProfile& asked = model.profiles[static_cast<size_t>(profile)];
  uint32_t tier = uint32_t{1} << profile;
  for (size_t p = 0; gpu.allow_larger && p < model.profiles.size(); ++p) {
    const MigProfile& larger = model.profiles[p];
    const bool suffices = !larger.is_variant() && larger.memory_slices >= asked.memory_slices &&
                          larger.memory_bytes >= asked.memory_bytes &&
                          larger.compute_slices >= asked.compute_slices;
    if (suffices) tier |= uint32_t{1} << p;
  }
  if (!fit.fits) fit.profile = profile;
  fit.fits = true;
  for (uint32_t earlier : fit.tiers) tier &= ~earlier;
  if (tier != 0) fit.tiers.push_back(tier);
}

}  // namespace

absl::Status SnapshotBuilder::CheckRequest(const PodSet& set, const std::string& path) const {
  const Request& request = set.request;
  const auto amount = [&path](int64_t value, std::string_view field) {
    if (value >= 0 && value <= kMaxTotal) return absl::OkStatus();
    return InvalidAt(absl::StrCat(path, ".request.", std::string(field)),
                     value < 0 ? "is negative" : "is too large");
  };
  TESSERA_RETURN_IF_ERROR(amount(request.cpu, "cpu"));
  TESSERA_RETURN_IF_ERROR(amount(request.memory, "memory"));
  static constexpr std::array<std::string_view, 5> kFixed = {"cpu", "memory", "pods", "gpu",
                                                             "gpu_memory"};
  for (const auto& [name, value] : request.extended) {
    TESSERA_RETURN_IF_ERROR(amount(value, name));
    if (name.starts_with(kGpuModelPrefix) || std::ranges::find(kFixed, name) != kFixed.end()) {
      return InvalidAt(absl::StrCat(path, ".request.", name), "is not an extended resource");
    }
  }
  TESSERA_RETURN_IF_ERROR(CheckSelector(set.selector, path + ".selector"));
  for (size_t i = 0; i < set.tolerations.size(); ++i) {
    if (!set.tolerations[i].key.empty() || set.tolerations[i].exists) continue;
    return InvalidAt(absl::StrCat(path, ".tolerations[", i, "].key"),
                     "is empty; only an `Exists` toleration may leave it out");
  }
  for (size_t i = 0; i < set.gpu_models.size(); ++i) {
    if (!set.gpu_models[i].empty()) continue;
    return InvalidAt(absl::StrCat(path, ".gpu_models[", i, "]"), "is empty");
  }
  return CheckGpuRequest(request.gpu, path + ".request");
}

absl::Status SnapshotBuilder::CheckGpuRequest(const GpuRequest& gpu,
                                              const std::string& path) const {
  if (gpu.kind == GpuRequestKind::kNone) return absl::OkStatus();
  if (gpu.devices < 1 || gpu.devices > kMaxGpusPerNode) {
    const bool whole = gpu.kind == GpuRequestKind::kWhole;
    return InvalidAt(path + (whole ? ".gpu" : ".gpu_devices"),
                     absl::StrCat("is ", gpu.devices, "; a pod runs on 1 to ", kMaxGpusPerNode,
                                  " GPUs of one node"));
  }
  switch (gpu.kind) {
    case GpuRequestKind::kFraction:
      if (gpu.share < 1 || gpu.share > kGpuUnitsPerDevice) {
        return InvalidAt(path + ".gpu_fraction", "is not above 0 and at most 1");
      }
      break;
    case GpuRequestKind::kDeviceMemory:
      if (gpu.memory < 1) return InvalidAt(path + ".gpu_memory", "is not above 0");
      if (gpu.memory > kMaxTotal) return InvalidAt(path + ".gpu_memory", "is too large");
      break;
    case GpuRequestKind::kProfile:
      return CheckProfiles(gpu.profiles, path + ".mig");
    case GpuRequestKind::kRequirement: {
      const SliceRequirement& need = gpu.requirement;
      if (need.memory < 0) return InvalidAt(path + ".slice.memory", "is negative");
      if (need.compute_num < 0 || need.compute_den < 1 || need.compute_num > need.compute_den) {
        return InvalidAt(path + ".slice.compute", "is not a fraction from 0 to 1");
      }
      if (need.memory == 0 && need.compute_num == 0) {
        return InvalidAt(path + ".slice", "asks for nothing");
      }
      break;
    }
    default:
      break;
  }
  return absl::OkStatus();
}

absl::Status SnapshotBuilder::CheckProfiles(const std::vector<std::string>& profiles,
                                            const std::string& path) const {
  if (profiles.empty()) return InvalidAt(path, "lists no profile");
  for (size_t i = 0; i < profiles.size(); ++i) {
    const std::string where = profiles.size() == 1 ? path : absl::StrCat(path, "[", i, "]");
    if (std::find(profiles.begin(), profiles.begin() + static_cast<ptrdiff_t>(i), profiles[i]) !=
        profiles.begin() + static_cast<ptrdiff_t>(i)) {
      return InvalidAt(where, absl::StrCat("names \"", profiles[i], "\" again"));
    }
    if (std::ranges::binary_search(profile_names_, profiles[i])) continue;
    const std::vector<std::string_view> known(profile_names_.begin(), profile_names_.end());
    return InvalidAt(where, absl::StrCat("no GPU model has a profile \"", profiles[i], "\"",
                                         DidYouMean(profiles[i], known)));
  }
  return absl::OkStatus();
}

RequestClassId SnapshotBuilder::ClassOf(const PodSet& set) {
  const RequestClassId next(static_cast<int32_t>(data_->request_classes.size()));
  const auto [it, inserted] = class_ids_.try_emplace(ClassKey(set), next);
  if (!inserted) return it->second;
  RequestClass request;
  request.need[kCpu] = set.request.cpu;
  request.need[kMemory] = set.request.memory;
  request.need[kPods] = 1;
  for (const auto& [name, amount] : set.request.extended) {
    request.need[*data_->resources.Find(name)] = amount;
  }
  request.gpu = set.request.gpu;
  request.gpu_models = set.gpu_models;
  request.selector = set.selector;
  request.tolerations = set.tolerations;
  if (request.gpu.kind != GpuRequestKind::kNone) {
    for (size_t m = 0; m < data_->models.size(); ++m) {
      request.models.push_back(
          FitModel(request.gpu, set.gpu_models, ModelId(static_cast<int32_t>(m))));
    }
  }
  data_->request_classes.push_back(std::move(request));
  return next;
}

ModelFit SnapshotBuilder::FitModel(const GpuRequest& gpu, const std::vector<std::string>& allowed,
                                   ModelId m) const {
  const MigTables& tables = data_->models[static_cast<size_t>(m.value())];
  const GpuModel& model = tables.model();
  ModelFit fit;
  if (!allowed.empty() && std::ranges::none_of(allowed, [&model](const std::string& name) {
        return CountsGpuModel(name, model.name);
      })) {
    return fit;
  }
  switch (gpu.kind) {
    case GpuRequestKind::kNone:
      break;
    case GpuRequestKind::kWhole:
      fit.fits = true;
      break;
    case GpuRequestKind::kFraction:
      fit = {true, -1, gpu.share};
      break;
    case GpuRequestKind::kDeviceMemory: {
      if (gpu.memory > model.memory_bytes) break;
      const absl::int128 units = absl::int128{gpu.memory} * kGpuUnitsPerDevice;
      const absl::int128 memory = model.memory_bytes;
      fit = {true, -1, static_cast<int64_t>((units + memory - 1) / memory)};
      break;
    }
    case GpuRequestKind::kProfile:
      for (const std::string& name : gpu.profiles) {
        if (const auto profile = model.FindProfile(name)) AddTier(model, gpu, *profile, fit);
      }
      break;
    case GpuRequestKind::kRequirement: {
      const SliceRequirement& need = gpu.requirement;
      const std::optional<int> profile =
          tables.SmallestSufficient(need.memory, need.compute_num, need.compute_den);
      if (profile) AddTier(model, gpu, *profile, fit);
      break;
    }
  }
  return fit;
}

absl::Status SnapshotBuilder::CheckTotals() const {
  using Totals = std::array<absl::int128, kMaxResources>;
  const auto check = [this](const Totals& totals, std::string_view path,
                            std::string_view what) -> absl::Status {
    for (int r = 0; r < kMaxResources; ++r) {
      if (totals[static_cast<size_t>(r)] <= kMaxTotal) continue;
      return InvalidAt(path, absl::StrCat("the total ", data_->resources.name(r), " ",
                                          std::string(what), " is too large"));
    }
    return absl::OkStatus();
  };
  Totals capacity{};
  int64_t most_memory = 0;
  for (size_t n = 0; n < data_->spec.nodes.size(); ++n) {
    for (int r = 0; r < kMaxResources; ++r) {
      // An over-reserved node must not hide what others have.
      capacity[static_cast<size_t>(r)] += std::max<int64_t>(data_->node_capacities[n][r], 0);
    }
    const ModelId m = data_->node_models[n];
    if (!m.valid()) continue;
    const int64_t memory = data_->models[static_cast<size_t>(m.value())].model().memory_bytes;
    most_memory = std::max(most_memory, memory);
    const int64_t gpus = static_cast<int64_t>(data_->spec.nodes[n].gpus.size());
    capacity[kGpuMemory] += absl::int128{memory} * gpus;
  }
  TESSERA_RETURN_IF_ERROR(check(capacity, "nodes", "of all nodes"));
  Totals demand{};
  for (const PodSetInfo& set : data_->pod_sets) {
    const RequestClass& request =
        data_->request_classes[static_cast<size_t>(set.request_class.value())];
    for (int r = 0; r < kMaxResources; ++r) {
      demand[static_cast<size_t>(r)] += absl::int128{request.need[r]} * set.count;
    }
    const absl::int128 devices = absl::int128{request.gpu.devices} * set.count;
    demand[kGpu] += devices * kGpuUnitsPerDevice;
    demand[kGpuMemory] += devices * std::max(most_memory, request.gpu.memory);
  }
  return check(demand, "workloads", "asked for");
}

}  // namespace tessera
