#include "tessera/io/shares_json.h"

#include <nlohmann/json.hpp>

#include "tessera/resources/units.h"
#include "tessera/share/fair_shares.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

// Base units of a resource in the unit that reports use.
int64_t ReportScale(const ResourceSpace& resources, int r) {
  if (r == kCpu) return kMillisPerCore;
  const bool is_gpu = resources.counts_gpus(r);
  return is_gpu ? kGpuUnitsPerDevice : 1;
}

Json Amount(int64_t amount, int64_t scale) {
  if (amount == kUnlimited) return "unlimited";
  if (amount % scale == 0) return amount / scale;
  return static_cast<double>(amount) / static_cast<double>(scale);
}

Json ResourceAccount(const Snapshot& snapshot, const FairShares& shares, QueueId q, int r) {
  const int64_t scale = ReportScale(snapshot.resources(), r);
  const QueueShare& share = shares.of(q);
  return {{"quota", Amount(snapshot.queues().quota(q)[r], scale)},
          {"limit", Amount(snapshot.queues().limit(q)[r], scale)},
          {"demand", Amount(share.demand[r], scale)},
          {"allocated", Amount(share.allocated[r], scale)},
          {"fair_share", Amount(share.fair_share[r], scale)}};
}

// What still fits beside `key`, profile by profile.
Json Room(const MigTables& tables, LayoutKey key) {
  Json profiles = Json::array();
  for (size_t i = 0; i < tables.model().profiles.size(); ++i) {
    const int p = static_cast<int>(i);
    const MigProfile& profile = tables.model().profiles[i];
    Json starts = Json::array();
    for (int start : profile.starts) {
      if (tables.CanPlace(key, p, start)) starts.push_back(start);
    }
    const std::optional<int> best = tables.BestStart(key, p);
    profiles.push_back({{"name", profile.name},
                        {"capacity", tables.Capacity(key, p)},
                        {"starts", std::move(starts)},
                        {"best_start", best ? Json(*best) : Json()},
                        {"loss", best ? Json(tables.Loss(key, p, *best)) : Json()}});
  }
  return profiles;
}

}  // namespace

std::string WriteShares(const Snapshot& snapshot, const FairShares& shares) {
  Json queues = Json::array();
  for (int i = 0; i < snapshot.queues().size(); ++i) {
    const QueueId q(i);
    Json resources = Json::object();
    for (int r = 0; r < snapshot.resources().size(); ++r) {
      resources[snapshot.resources().name(r)] = ResourceAccount(snapshot, shares, q, r);
    }
    const DominantShare dominant =
        DominantShareOf(snapshot.resources(), shares.of(q).allocated, shares.capacity);
    const bool any = dominant.share > 0;
    const std::string& parent = snapshot.queues().queue(q).parent;
    queues.push_back(
        {{"name", snapshot.queues().queue(q).name},
         {"parent", parent.empty() ? Json() : Json(parent)},
         {"resources", std::move(resources)},
         {"dominant_resource", any ? Json(snapshot.resources().name(dominant.resource)) : Json()},
         {"dominant_share", dominant.share}});
  }
  return Json{{"queues", std::move(queues)}}.dump(1) + "\n";
}

std::string WriteMigModel(const GpuModel& model) {
  Json profiles = Json::array();
  for (const MigProfile& profile : model.profiles) {
    profiles.push_back({{"name", profile.name},
                        {"size", profile.size},
                        {"starts", profile.starts},
                        {"max", profile.max_instances}});
  }
  return Json{{"model", model.name}, {"units", model.units}, {"profiles", std::move(profiles)}}
             .dump(1) +
         "\n";
}

std::string WriteMigLayouts(const MigTables& tables, const LayoutsByGpu& layouts) {
  const GpuModel& model = tables.model();
  Json gpus = Json::array();
  for (const auto& [gpu, layout] : layouts) {
    Json instances = Json::array();
    LayoutKey key = tables.empty();
    for (const Instance& instance : layout) {
      const std::string& name = model.profiles[static_cast<size_t>(instance.profile)].name;
      instances.push_back({{"profile", name}, {"start", instance.start}});
      key = tables.Add(key, instance.profile, instance.start);
    }
    gpus.push_back(
        {{"gpu", gpu}, {"instances", std::move(instances)}, {"profiles", Room(tables, key)}});
  }
  return Json{{"model", model.name}, {"units", model.units}, {"gpus", std::move(gpus)}}.dump(1) +
         "\n";
}

}  // namespace tessera
