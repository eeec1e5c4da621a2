// The search for a gang against an integer program, solved by cbc (Debian:
// coinor-cbc), on clusters that are too large for brute force.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "tessera/placement/gang_placement.h"
#include "tests/support/random_cases.h"
#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

constexpr int kNodes = 12, kPerRack = 3, kMaxPods = 40;

// One cluster and one gang, named "gang", that about fills it: whole GPUs and
// fractions, CPU, groups in one rack, optional groups.
class Draw {
 public:
  explicit Draw(uint32_t seed) : engine_(seed) {}

  SnapshotSpec Spec() {
    SnapshotSpec spec;
    spec.levels = {"rack"};
    int gpus = 0;
    const int nodes = 6 + Below(kNodes - 5);
    for (int i = 0; i < nodes; ++i) {
      const int devices = 2 + 2 * Below(3);
      gpus += devices;
      Node node = MakeNode(absl::StrCat("n", 100 + i), devices);
      node.topology["rack"] = absl::StrCat("r", i / kPerRack);
      node.capacity.cpu = Cores(4 + Below(12));
      spec.nodes.push_back(std::move(node));
    }
    spec.workloads = {MakeWorkload("gang", "", {})};
    PodGroup& gang = spec.workloads[0].gang;
    const int64_t wanted = gpus * (70 + Below(35)) / 100 * kGpuUnitsPerDevice;
    int64_t units = 0;
    int pods = 0;
    while (units < wanted && pods < kMaxPods - 8) {
      PodGroup group = MakeGroup(absl::StrCat("g", gang.groups.size()), {});
      for (int s = 1 + Below(2); s > 0; --s) {
        PodSet set = MakePodSet(absl::StrCat("s", sets_++), 1 + Below(4), Ask());
        pods += set.count;
        const GpuRequest& gpu = set.request.gpu;
        units += set.count * (gpu.share > 0 ? gpu.share : gpu.devices * kGpuUnitsPerDevice);
        group.pod_sets.push_back(std::move(set));
      }
      if (Below(100) < 50) group.topology.required = "rack";
      gang.groups.push_back(std::move(group));
    }
    const int groups = static_cast<int>(gang.groups.size());
    if (groups > 1 && Below(100) < 25) gang.min_groups = groups - 1;
    return spec;
  }

 private:
  int Below(int bound) { return static_cast<int>(engine_() % static_cast<uint32_t>(bound)); }

  Request Ask() {
    Request request;
    const int kind = Below(10);
    if (kind < 6) request.gpu = GpuRequest::Whole(1 + Below(4));
    if (kind >= 6) request.gpu = GpuRequest::Fraction(kGpuUnitsPerDevice * (3 + Below(5)) / 10);
    request.cpu = 500 * Below(10);
    return request;
  }

  std::mt19937 engine_;
  int sets_ = 0;
};

// A case as a program whose value is 1 if the gang fits.
class Program {
 public:
  // x{s}_{n}: pods of set s on node n; v{s}_{n}_{g}: those on its GPU g; o: whether
  // that GPU is opened for fractions; z: the rack of a group; h: whether it holds.
  explicit Program(const Snapshot& snapshot) {
    const WorkloadId gang(0);
    const PodGroup& root = snapshot.workload(gang).gang;
    std::string holding;
    int s = 0;
    for (size_t g = 0; g < root.groups.size(); ++g) {
      const std::string h = absl::StrCat("h", g);
      absl::StrAppend(&binaries_, " ", h, "\n");
      absl::StrAppend(&holding, " + ", h);
      const bool tied = !root.groups[g].topology.required.empty();
      if (tied) AddRack(g, snapshot);
      for (const PodSet& set : root.groups[g].pod_sets) AddSet(g, s++, set, tied, snapshot);
    }
    const int needed = root.min_groups.value_or(static_cast<int>(root.groups.size()));
    Row(absl::StrCat(holding, " - ", needed, " w >= 0"));
    for (int n = 0; n < snapshot.num_nodes(); ++n) AddNode(n, snapshot);
  }

  // Whether the gang fits; nothing if cbc does not tell in time.
  std::optional<bool> Solve() const {
    const std::string base = absl::StrCat(testing::TempDir(), "tessera_gangs");
    std::ofstream(base + ".lp") << "Maximize\nobj: w\nSubject To\n"
                                << rows_ << "General\n"
                                << generals_ << "Binary\n w\n"
                                << binaries_ << "End\n";
    const std::string command = absl::StrCat("cbc ", base, ".lp sec 10 solve solution ", base,
                                             ".sol > ", base, ".log 2>&1");
    if (std::system(command.c_str()) != 0) return std::nullopt;
    std::ifstream solution(base + ".sol");
    std::string line;
    std::getline(solution, line);
    if (line.rfind("Optimal", 0) != 0) return std::nullopt;
    std::string index, name;
    double value = 0, reduced = 0;
    while (solution >> index >> name >> value >> reduced) {
      if (name == "w" && value > 0.5) return true;
    }
    return false;
  }

 private:
  void Row(const std::string& row) { absl::StrAppend(&rows_, "c", count_++, ":", row, "\n"); }

  void AddRack(size_t g, const Snapshot& snapshot) {
    std::string one;
    for (size_t r = 0; r < snapshot.topology().domains(0).size(); ++r) {
      const std::string z = absl::StrCat("z", g, "_", r);
      absl::StrAppend(&binaries_, " ", z, "\n");
      absl::StrAppend(&one, " + ", z);
    }
    Row(one + " = 1");
  }

  void AddSet(size_t g, int s, const PodSet& set, bool tied, const Snapshot& snapshot) {
    std::string all;
    for (int n = 0; n < snapshot.num_nodes(); ++n) {
      const std::string x = absl::StrCat("x", s, "_", n);
      absl::StrAppend(&generals_, " ", x, "\n");
      absl::StrAppend(&all, " + ", x);
      if (tied) {
        const int rack = snapshot.topology().domain_of(NodeId(n), 0).value();
        Row(absl::StrCat(" ", x, " - ", set.count, " z", g, "_", rack, " <= 0"));
      }
      if (set.request.gpu.share == 0) continue;
      std::string parts;
      const int gpus = static_cast<int>(snapshot.node(NodeId(n)).gpus.size());
      for (int d = 0; d < gpus; ++d) {
        const std::string v = absl::StrCat("v", s, "_", n, "_", d);
        absl::StrAppend(&generals_, " ", v, "\n");
        absl::StrAppend(&parts, " - ", v);
      }
      Row(absl::StrCat(" ", x, parts, " = 0"));
    }
    Row(absl::StrCat(all, " - ", set.count, " h", g, " >= 0"));
  }

  void AddNode(int n, const Snapshot& snapshot) {
    const Node& node = snapshot.node(NodeId(n));
    const int gpus = static_cast<int>(node.gpus.size());
    std::string cpu, devices;
    std::vector<std::string> shares(static_cast<size_t>(gpus));
    for (int s = 0; s < snapshot.num_pod_sets(); ++s) {
      const Request& request = snapshot.pod_set_spec(PodSetId(s)).request;
      const std::string x = absl::StrCat("x", s, "_", n);
      if (request.cpu > 0) absl::StrAppend(&cpu, " + ", request.cpu, " ", x);
      if (request.gpu.share == 0) {
        absl::StrAppend(&devices, " + ", request.gpu.devices, " ", x);
        continue;
      }
      for (int d = 0; d < gpus; ++d) {
        absl::StrAppend(&shares[static_cast<size_t>(d)], " + ", request.gpu.share, " v", s, "_", n,
                        "_", d);
      }
    }
    if (!cpu.empty()) Row(absl::StrCat(cpu, " <= ", node.capacity.cpu));
    for (int d = 0; d < gpus && !shares[0].empty(); ++d) {
      const std::string o = absl::StrCat("o", n, "_", d);
      absl::StrAppend(&binaries_, " ", o, "\n");
      absl::StrAppend(&devices, " + ", o);
      Row(absl::StrCat(shares[static_cast<size_t>(d)], " - ", kGpuUnitsPerDevice, " ", o, " <= 0"));
    }
    if (!devices.empty()) Row(absl::StrCat(devices, " <= ", gpus));
  }

  std::string rows_, generals_, binaries_;
  int count_ = 0;
};

TEST(IntegerProgramTest, NeverInfeasibleWhereThereIsAPlacement) {
  if (std::system("command -v cbc > /dev/null 2>&1") != 0) GTEST_SKIP() << "no cbc";
  const int cases = RandomCases(12, 300);
  int placed = 0, by_exact = 0, undecided = 0, unsolved = 0;
  for (int k = 0; k < cases; ++k) {
    const Snapshot snapshot = CreateOrDie(Draw(static_cast<uint32_t>(k)).Spec());
    ClusterState state(std::make_shared<const StateTables>(snapshot), {});
    const bool greedy = PlaceGang(state, WorkloadId(0), FindPacked, {.exact_budget = 0}).placed();
    state.RollBack(0);
    const GangPlacement result = PlaceGang(state, WorkloadId(0));
    placed += result.placed() ? 1 : 0;
    by_exact += result.placed() && !greedy ? 1 : 0;
    if (result.outcome == SearchOutcome::kBudgetExhausted) {
      ++undecided;
      continue;
    }
    const std::optional<bool> fits = Program(snapshot).Solve();
    unsolved += fits ? 0 : 1;
    if (!fits) continue;
    ASSERT_EQ(result.placed(), *fits) << "case " << k;
    ASSERT_EQ(result.proven, !*fits) << "case " << k;
  }
  std::printf(
      "%d cases: %d placed, %d of them by the exact search; %d ended with the budget of "
      "steps; cbc did not solve %d in time\n",
      cases, placed, by_exact, undecided, unsolved);
  EXPECT_LE(undecided, cases / 6);
  EXPECT_LE(unsolved, cases / 3);
}

}  // namespace
}  // namespace tessera
