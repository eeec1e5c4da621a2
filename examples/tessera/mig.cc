// `tessera mig`.

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "examples/tessera/commands.h"
#include "tessera/base/status.h"
#include "tessera/gpu/catalogue.h"
#include "tessera/gpu/draw.h"
#include "tessera/gpu/enumerate.h"
#include "tessera/io/mig_formats.h"
#include "tessera/io/mosaic_svg.h"
#include "tessera/io/shares_json.h"
#include "tessera/resources/quantity.h"

namespace tessera::cli {
namespace {

void PrintModel(const GpuModel& model) {
  std::printf("%s: %s, %d placement units, %d compute slices, %d memory slices\n",
              model.name.c_str(), FormatBytes(model.memory_bytes).c_str(), model.units,
              model.compute_slices, model.memory_slices);
  std::printf("  %-18s %5s %8s %7s %10s %4s  %-9s %s\n", "profile", "units", "compute", "memory",
              "", "max", "evidence", "starts");
  for (const MigProfile& p : model.profiles) {
    std::printf("  %-18s %5d %8d %7d %10s %4d  %-9s %s\n", p.name.c_str(), p.size, p.compute_slices,
                p.memory_slices, FormatBytes(p.memory_bytes).c_str(), p.max_instances,
                p.evidence == Evidence::kConfirmed ? "confirmed" : "inferred",
                absl::StrJoin(p.starts, " ").c_str());
  }
  std::puts("\nEach profile on the placement axis, at every legal start");
  for (size_t p = 0; p < model.profiles.size(); ++p) {
    std::vector<Instance> together;
    int end = 0;
    // Starts that do not overlap share a line.
    for (int start : model.profiles[p].starts) {
      if (start < end) continue;
      together.push_back({static_cast<int>(p), start});
      end = start + model.profiles[p].size;
    }
    std::printf("  %s\n", DrawLayout(model, together).c_str());
  }
  const absl::StatusOr<MigTables> tables = MigTables::Create(model);
  if (!tables.ok()) return;
  const LayoutCounts counts = CountLayouts(*tables, PlainProfiles(model));
  std::printf("\n%lld layouts of the plain profiles, %lld of them full\n",
              static_cast<long long>(counts.states), static_cast<long long>(counts.maximal));
}

// What still fits beside `layout`, and what it would cost.
void PrintLayout(const MigTables& tables, const std::vector<Instance>& layout) {
  const GpuModel& model = tables.model();
  std::printf("  %s\n\n", DrawLayout(model, layout).c_str());
  const absl::StatusOr<LayoutKey> key = tables.KeyOf(layout, "");
  if (!key.ok()) return;
  std::printf("  %-18s %4s  %4s  %4s  %s\n", "one more", "fits", "best", "loss", "starts");
  for (size_t i = 0; i < model.profiles.size(); ++i) {
    const int p = static_cast<int>(i);
    const std::string& name = model.profiles[i].name;
    const std::optional<int> best = tables.BestStart(*key, p);
    if (!best) {
      std::printf("  %-18s %4d  %4s  %4s\n", name.c_str(), 0, "-", "-");
      continue;
    }
    std::vector<int> starts;
    for (int start : model.profiles[i].starts) {
      if (tables.CanPlace(*key, p, start)) starts.push_back(start);
    }
    std::printf("  %-18s %4d  %4d  %4d  %s\n", name.c_str(), tables.Capacity(*key, p), *best,
                tables.Loss(*key, p, *best), absl::StrJoin(starts, " ").c_str());
  }
}

int PrintLayouts(const MigTables& tables, const LayoutsByGpu& layouts, bool json) {
  if (json) {
    std::fputs(WriteMigLayouts(tables, layouts).c_str(), stdout);
    return kPlanned;
  }
  for (const auto& [gpu, layout] : layouts) {
    std::printf("GPU %d (%s)\n", gpu, tables.model().name.c_str());
    PrintLayout(tables, layout);
    std::puts("");
  }
  if (layouts.empty()) std::puts("no instances\n");
  std::puts(
      "fits: how many, of this profile alone; best: the start of least loss; loss: how many units\n"
      "of further instances one at the best start takes away, summed over all plain profiles");
  return kPlanned;
}

// The layouts that the arguments state. Errors name the option.
absl::StatusOr<LayoutsByGpu> ReadLayouts(const MigArguments& arguments, const MigTables& tables) {
  if (arguments.lgi.empty()) {
    TESSERA_ASSIGN_OR_RETURN(std::vector<Instance> layout, ParseLayout(*arguments.layout, tables));
    return LayoutsByGpu{{0, std::move(layout)}};
  }
  TESSERA_ASSIGN_OR_RETURN(const std::string listing, ReadInput(arguments.lgi));
  return ParseMigListing(listing, tables);
}

int RejectModel(const std::string& name) {
  std::vector<std::string_view> known;
  for (const GpuModel& m : GpuCatalogue()) known.push_back(m.name);
  return Reject(name,
                absl::NotFoundError(absl::StrCat(
                    "is not in the catalogue", DidYouMean(name, known), "; known are ",
                    absl::StrJoin(known, ", ", [](auto* out, auto text) { out->append(text); }))));
}

}  // namespace

int RunMig(const MigArguments& arguments) {
  if (arguments.model.empty()) {
    for (const GpuModel& model : GpuCatalogue()) std::printf("%s\n", model.name.c_str());
    return kPlanned;
  }
  const GpuModel* model = FindGpuModel(arguments.model);
  if (model == nullptr) return RejectModel(arguments.model);
  if (arguments.layout || !arguments.lgi.empty()) {
    const absl::StatusOr<MigTables> tables = MigTables::Create(*model);
    if (!tables.ok()) return Reject(model->name, tables.status());
    const absl::StatusOr<LayoutsByGpu> layouts = ReadLayouts(arguments, *tables);
    if (!layouts.ok()) {
      return Reject(arguments.layout ? "--layout" : arguments.lgi, layouts.status());
    }
    return PrintLayouts(*tables, *layouts, arguments.json);
  }
  if (arguments.json) {
    std::fputs(WriteMigModel(*model).c_str(), stdout);
  } else {
    PrintModel(*model);
  }
  return kPlanned;
}

int RunMigOfCluster(const MigArguments& arguments) {
  const absl::StatusOr<Snapshot> snapshot = ReadSnapshot(arguments.model);
  if (!snapshot.ok()) return Reject(arguments.model, snapshot.status());
  if (!arguments.svg.empty()) {
    const std::string svg = DrawMosaicSvg(*snapshot);
    if (const int code = WriteOutput(arguments.svg, svg); code != kPlanned) return code;
  }
  if (!arguments.export_as.empty()) std::fputs(WriteMigParted(*snapshot).c_str(), stdout);
  return kPlanned;
}

}  // namespace tessera::cli
