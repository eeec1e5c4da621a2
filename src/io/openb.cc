#include "tessera/io/openb.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/io/csv.h"
#include "tessera/base/status.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

using io_internal::CsvReader;

enum NodeColumn : size_t { kSn, kNodeCpu, kNodeMemory, kNodeGpus, kModel };
constexpr std::array<std::string_view, 5> kNodeColumns = {"sn", "cpu_milli", "memory_mib", "gpu",
                                                          "model"};

enum PodColumn : size_t { kName, kPodCpu, kPodMemory, kNumGpu, kGpuMilli, kGpuSpec, kCreation };
constexpr std::array<std::string_view, 7> kPodColumns = {
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "creation_time"};

constexpr int64_t kMilliPerGpu = 1000;
constexpr int64_t kMaxCpu = kMaxTotal;
constexpr int64_t kMaxMiB = kMaxTotal / kBytesPerMiB;

struct ModelMemory {
  std::string_view name;
  int64_t gib;
};

// From NVIDIA's data sheets; G1 to G3 are not disclosed, 32 is a guess.
constexpr std::array<ModelMemory, 8> kModels = {{{"A10", 24},
                                                 {"G1", 32},
                                                 {"G2", 32},
                                                 {"G3", 32},
                                                 {"P100", 16},
                                                 {"T4", 16},
                                                 {"V100M16", 16},
                                                 {"V100M32", 32}}};

absl::Status CheckModel(const CsvReader& csv, size_t column, std::string_view model) {
  if (std::ranges::find(kModels, model, &ModelMemory::name) != kModels.end()) {
    return absl::OkStatus();
  }
  std::vector<std::string_view> known;
  for (const ModelMemory& m : kModels) known.push_back(m.name);
  return csv.Error(column, absl::StrCat("\"", ToAbsl(model), "\" is not a model of the trace",
                                        DidYouMean(model, known)));
}

absl::StatusOr<Node> ReadNode(const CsvReader& csv) {
  Node node;
  node.name = csv.text(kSn);
  TESSERA_ASSIGN_OR_RETURN(node.capacity.cpu, csv.Number(kNodeCpu, kMaxCpu));
  TESSERA_ASSIGN_OR_RETURN(const int64_t mib, csv.Number(kNodeMemory, kMaxMiB));
  node.capacity.memory = mib * kBytesPerMiB;
  TESSERA_ASSIGN_OR_RETURN(const int64_t gpus, csv.Number(kNodeGpus, kMaxGpusPerNode));
  node.gpus.resize(static_cast<size_t>(gpus));
  node.gpu_model = csv.text(kModel);
  if (!node.gpu_model.empty()) {
    TESSERA_RETURN_IF_ERROR(CheckModel(csv, kModel, node.gpu_model));
  } else if (gpus > 0) {
    return csv.Error(kModel, "is empty on a node with GPUs");
  }
  return node;
}

absl::StatusOr<GpuRequest> ReadGpus(const CsvReader& csv) {
  TESSERA_ASSIGN_OR_RETURN(const int64_t gpus, csv.Number(kNumGpu, kMaxGpusPerNode));
  TESSERA_ASSIGN_OR_RETURN(const int64_t milli, csv.Number(kGpuMilli, kMilliPerGpu));
  if (gpus == 0) return GpuRequest();
  if (gpus > 1 || milli == kMilliPerGpu) return GpuRequest::Whole(static_cast<int>(gpus));
  if (milli == 0) return csv.Error(kGpuMilli, "is 0 beside one GPU");
  return GpuRequest::Fraction(milli * (kGpuUnitsPerDevice / kMilliPerGpu));
}

// Models joined by `|`, each once, in order of name.
absl::StatusOr<std::vector<std::string>> ReadModels(const CsvReader& csv) {
  std::vector<std::string> models;
  std::string_view rest = csv.text(kGpuSpec);
  while (!rest.empty()) {
    const size_t bar = std::min(rest.find('|'), rest.size());
    const std::string_view model = rest.substr(0, bar);
    TESSERA_RETURN_IF_ERROR(CheckModel(csv, kGpuSpec, model));
    models.emplace_back(model);
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  std::ranges::sort(models);
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return models;
}

absl::StatusOr<Workload> ReadPod(const CsvReader& csv) {
  PodSet pod;
  pod.name = "pod";
  TESSERA_ASSIGN_OR_RETURN(pod.request.cpu, csv.Number(kPodCpu, kMaxCpu));
  TESSERA_ASSIGN_OR_RETURN(const int64_t mib, csv.Number(kPodMemory, kMaxMiB));
  pod.request.memory = mib * kBytesPerMiB;
  TESSERA_ASSIGN_OR_RETURN(pod.request.gpu, ReadGpus(csv));
  TESSERA_ASSIGN_OR_RETURN(pod.gpu_models, ReadModels(csv));
  Workload workload;
  workload.name = csv.text(kName);
  workload.queue = "default";
  if (!csv.text(kCreation).empty()) {
    TESSERA_ASSIGN_OR_RETURN(workload.submitted, csv.Number(kCreation, kMaxTotal));
  }
  workload.gang.pod_sets.push_back(std::move(pod));
  return workload;
}

// The models that nodes have, with their memory.
std::vector<GpuModel> ModelsOf(const std::vector<Node>& nodes) {
  std::vector<GpuModel> models;
  for (const ModelMemory& known : kModels) {
    if (std::ranges::find(nodes, known.name, &Node::gpu_model) == nodes.end()) continue;
    GpuModel& model = models.emplace_back();
    model.name = known.name;
    model.memory_bytes = known.gib * kBytesPerGiB;
  }
  return models;
}

}  // namespace

absl::StatusOr<SnapshotSpec> ImportOpenb(std::string_view nodes_csv, std::string_view pods_csv) {
  SnapshotSpec spec;
  TESSERA_ASSIGN_OR_RETURN(CsvReader nodes, CsvReader::Create("nodes", nodes_csv, kNodeColumns));
  for (;;) {
    TESSERA_ASSIGN_OR_RETURN(const bool more, nodes.Next());
    if (!more) break;
    TESSERA_ASSIGN_OR_RETURN(Node node, ReadNode(nodes));
    spec.nodes.push_back(std::move(node));
  }
  TESSERA_ASSIGN_OR_RETURN(CsvReader pods, CsvReader::Create("pods", pods_csv, kPodColumns));
  for (;;) {
    TESSERA_ASSIGN_OR_RETURN(const bool more, pods.Next());
    if (!more) break;
    TESSERA_ASSIGN_OR_RETURN(Workload workload, ReadPod(pods));
    spec.workloads.push_back(std::move(workload));
  }
  spec.gpu_models = ModelsOf(spec.nodes);
  return spec;
}

}  // namespace tessera
