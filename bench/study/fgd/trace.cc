#include "bench/study/fgd/trace.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/io/openb.h"

namespace tessera::study {
namespace {

// As many pods of a kind as any order of arrival can bring.
int MostArrivals(int pods) { return 8 * pods + 64; }

// The kinds of `workloads` as one workload each, with `count(pods of the kind)` pods.
// Writes the kind of each workload to `kind_of`.
template <typename Count>
std::vector<Workload> ByKind(const std::vector<Workload>& workloads, const Count& count,
                             std::vector<int>& kind_of) {
  using Key = std::tuple<int64_t, int64_t, int, int64_t, std::vector<std::string>>;
  std::map<Key, int> ids;
  std::vector<Workload> kinds;
  std::vector<int> pods;
  for (const Workload& workload : workloads) {
    const PodSet& set = workload.gang.pod_sets.front();
    const GpuRequest& gpu = set.request.gpu;
    const Key key{set.request.cpu, set.request.memory, gpu.devices, gpu.share, set.gpu_models};
    const auto [it, inserted] = ids.try_emplace(key, static_cast<int>(kinds.size()));
    if (inserted) {
      Workload& kind = kinds.emplace_back(workload);
      kind.name = absl::StrCat("kind-", kinds.size() + 10000);  // names sort as numbers
      pods.push_back(0);
    }
    kind_of.push_back(it->second);
    ++pods[static_cast<size_t>(it->second)];
  }
  for (size_t k = 0; k < kinds.size(); ++k) {
    kinds[k].gang.pod_sets.front().count = count(pods[k]);
    kinds[k].gang.pod_sets.front().min_count = 1;
  }
  return kinds;
}

// Below `bound`, by the remainder: the same with every standard library.
size_t Draw(std::mt19937_64& random, size_t bound) { return random() % bound; }

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat("cannot read ", file.string()));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

absl::StatusOr<Trace> ReadTrace(const std::filesystem::path& folder, const std::string& name) {
  TESSERA_ASSIGN_OR_RETURN(const std::string nodes,
                           ReadFile(folder / "openb_node_list_gpu_node.csv"));
  TESSERA_ASSIGN_OR_RETURN(const std::string pods,
                           ReadFile(folder / absl::StrCat("openb_pod_list_", name, ".csv")));
  TESSERA_ASSIGN_OR_RETURN(SnapshotSpec spec, ImportOpenb(nodes, pods));
  std::ranges::stable_sort(spec.workloads, {}, &Workload::name);
  Trace trace;
  trace.name = name;
  SnapshotSpec as_it_is = spec;
  as_it_is.workloads = ByKind(
      spec.workloads, [](int count) { return count; }, trace.pods);
  trace.pods.clear();
  spec.workloads = ByKind(spec.workloads, MostArrivals, trace.pods);
  TESSERA_ASSIGN_OR_RETURN(const Snapshot demand, Snapshot::Create(std::move(as_it_is)));
  trace.mix = MixOf(demand);
  TESSERA_ASSIGN_OR_RETURN(const Snapshot snapshot, Snapshot::Create(std::move(spec)));
  trace.tables = std::make_shared<const StateTables>(snapshot);
  for (int s = 0; s < snapshot.num_pod_sets(); ++s) {
    const RequestClassId c = snapshot.pod_set(PodSetId(s)).request_class;
    const RequestClass& request = snapshot.request_class(c);
    const bool shared = request.gpu.is_shared();
    trace.kinds.push_back({PodSetId(s), c, request.need[kCpu], request.need[kMemory],
                           request.gpu.devices, shared ? request.gpu.share : kGpuUnitsPerDevice});
  }
  trace.capacity = kGpuUnitsPerDevice * trace.tables->num_gpus();
  return trace;
}

std::vector<int> Arrivals(const Trace& trace, uint64_t seed, int percent) {
  std::mt19937_64 random(seed);
  std::vector<int> pods = trace.pods;
  for (size_t i = pods.size(); i > 1; --i) std::swap(pods[i - 1], pods[Draw(random, i)]);
  const auto kind = [&trace](int k) -> const Kind& { return trace.kinds[static_cast<size_t>(k)]; };
  const int64_t wanted = trace.capacity * percent / 100;
  int64_t demand = 0;
  for (int k : pods) demand += kind(k).amount();
  while (demand > wanted) {
    const size_t i = Draw(random, pods.size());
    demand -= kind(pods[i]).amount();
    pods.erase(pods.begin() + static_cast<ptrdiff_t>(i));
  }
  for (;;) {
    const int k = trace.pods[Draw(random, trace.pods.size())];
    const int64_t of_one_device = kind(k).devices > 0 ? kind(k).share : 0;
    if (demand + of_one_device > wanted) return pods;
    demand += kind(k).amount();
    pods.push_back(k);
  }
}

}  // namespace tessera::study
