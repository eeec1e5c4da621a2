#include "tessera/schedule/service_gang.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"

namespace tessera {
namespace {

constexpr std::string_view kBase = "base";

int64_t GpusPerEngine(const EngineShape& engine) {
  const GpuRequest& gpu = engine.pod.request.gpu;
  return gpu.kind == GpuRequestKind::kWhole ? int64_t{engine.pods} * gpu.devices : 0;
}

PodSet PodsOf(const EngineShape& engine, std::string name, int count) {
  PodSet set = engine.pod;
  set.name = std::move(name);
  set.count = count;
  set.min_count.reset();
  set.after.clear();
  set.topology = {};
  return set;
}

// Engine `index` of a role of several pods.
PodGroup EngineGroup(const EngineShape& engine, EngineRole role, int64_t index) {
  PodGroup group;
  group.name = EngineName(role, index);
  group.topology = engine.topology;
  group.pod_sets = {PodsOf(engine, group.name + "-leader", 1),
                    PodsOf(engine, group.name + "-worker", engine.pods - 1)};
  return group;
}

absl::Status Validate(const ServiceShape& shape, const ReplicaCounts& counts) {
  for (EngineRole role : kEngineRoles) {
    const std::string name(ToString(role));
    const int64_t count = OfRole(counts, role);
    if (shape.mode == ServiceMode::kAggregated && role == EngineRole::kPrefill) {
      if (count == 0) continue;
      return InvalidAt("counts.prefill", "an aggregated service has no prefill engines");
    }
    if (OfRole(shape, role).pods < 1) return InvalidAt(name + ".pods", "is less than 1");
    if (count >= 0 && count <= kMaxGangEngines) continue;
    return InvalidAt("counts." + name,
                     absl::StrCat("is ", count, ", not within 0 and ", kMaxGangEngines));
  }
  if (!shape.router && counts == ReplicaCounts()) return InvalidAt("counts", "nothing is to run");
  return absl::OkStatus();
}

// Engines that may go, by role.
ReplicaCounts Elastic(const ServiceShape& shape, const ReplicaCounts& counts) {
  const ReplicaCounts base = BaseCounts(shape, counts);
  const EngineGpus gpus = EngineGpusOf(shape);
  return {gpus.prefill > 0 ? counts.prefill - base.prefill : 0,
          gpus.decode > 0 ? counts.decode - base.decode : 0};
}

}  // namespace

EngineGpus EngineGpusOf(const ServiceShape& shape) {
  return {GpusPerEngine(shape.prefill), GpusPerEngine(shape.decode)};
}

ReplicaCounts BaseCounts(const ServiceShape& shape, const ReplicaCounts& counts) {
  ReplicaCounts base;
  for (EngineRole role : kEngineRoles) {
    const int64_t least = std::max<int64_t>(OfRole(shape.minimum, role), 1);
    OfRole(base, role) = std::min(least, OfRole(counts, role));
  }
  return base;
}

std::string EngineName(EngineRole role, int64_t index) {
  return absl::StrCat(ToAbsl(ToString(role)), "-", index);
}

absl::StatusOr<Gang> BuildServiceGang(const ServiceShape& shape, const ReplicaCounts& counts) {
  TESSERA_RETURN_IF_ERROR(Validate(shape, counts));
  const ReplicaCounts least = BaseCounts(shape, counts);
  PodGroup base;
  base.name = kBase;
  if (shape.router) base.pod_sets.push_back(*shape.router);
  std::vector<PodGroup> scaled;
  for (EngineRole role : kEngineRoles) {
    const EngineShape& engine = OfRole(shape, role);
    const int64_t count = OfRole(counts, role);
    if (count == 0) continue;
    if (engine.pods == 1) {
      PodSet& set = base.pod_sets.emplace_back(
          PodsOf(engine, std::string(ToString(role)), static_cast<int>(count)));
      set.min_count = static_cast<int>(OfRole(least, role));
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      const bool in_base = i < OfRole(least, role);
      PodGroup& group = (in_base ? base.groups : scaled).emplace_back(EngineGroup(engine, role, i));
      if (!in_base) group.after = kBase;
    }
  }
  Gang gang;
  gang.topology = shape.topology;
  gang.groups.push_back(std::move(base));
  std::ranges::move(scaled, std::back_inserter(gang.groups));
  return gang;
}

ShrunkService ShrinkService(const ServiceShape& shape, const ReplicaCounts& counts, int64_t gpus) {
  const EngineGpus size = EngineGpusOf(shape);
  const ReplicaCounts elastic = Elastic(shape, counts);
  const auto groups_of = [&](const ReplicaCounts& gone) {
    return (shape.prefill.pods > 1 ? gone.prefill : 0) + (shape.decode.pods > 1 ? gone.decode : 0);
  };
  // All of it, unless less suffices.
  ReplicaCounts best = elastic;
  const auto rank = [&](const ReplicaCounts& gone) {
    return std::tuple(GpusOf(size, gone), -groups_of(gone), -gone.decode);
  };
  for (int64_t decode = 0; decode <= elastic.decode; ++decode) {
    ReplicaCounts gone{0, decode};
    const int64_t lacking = gpus - GpusOf(size, gone);
    if (lacking > 0 && size.prefill > 0) {
      gone.prefill = std::min((lacking - 1) / size.prefill + 1, elastic.prefill);
    }
    if (GpusOf(size, gone) >= gpus && rank(gone) < rank(best)) best = gone;
  }
  return {{counts.prefill - best.prefill, counts.decode - best.decode}, GpusOf(size, best)};
}

}  // namespace tessera
