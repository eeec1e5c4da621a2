// Near misses and proofs of random gangs, counted again from the lists of the snapshot
// alone: loops over nodes, GPUs and pods, without the state, its index or any search.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "tessera/placement/near_miss.h"
#include "tests/support/random_cases.h"
#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

constexpr int64_t kPlenty = 1000000;

// Up to three racks of up to three nodes with up to four GPUs, partly held, and a gang
// of one or two pod sets that is tied to a rack, or spread, or neither.
class Drawing {
 public:
  explicit Drawing(uint32_t seed) : engine_(seed) {}

  SnapshotSpec Draw() {
    SnapshotSpec spec;
    spec.levels = {"rack"};
    const int racks = 1 + Below(3);
    for (int r = 0; r < racks; ++r) {
      for (int n = 1 + Below(3); n > 0; --n) AddNode(spec, r);
    }
    for (Node& node : spec.nodes) Hold(spec, node);
    AddGang(spec);
    return spec;
  }

 private:
  int Below(int bound) { return static_cast<int>(engine_() % static_cast<uint32_t>(bound)); }
  bool Chance(int percent) { return Below(100) < percent; }

  void AddNode(SnapshotSpec& spec, int rack) {
    Node node = MakeNode(absl::StrCat("n", spec.nodes.size()), 1 + Below(4));
    node.topology["rack"] = absl::StrCat("r", rack);
    node.capacity.cpu = Cores(4 + Below(12));
    if (Chance(30)) node.capacity.pods = 1 + Below(5);
    node.schedulable = !Chance(5);
    for (Gpu& gpu : node.gpus) gpu.healthy = !Chance(8);
    spec.nodes.push_back(std::move(node));
  }

  // Pods of a GPU or a part of one, each a workload of its own.
  void Hold(SnapshotSpec& spec, const Node& node) {
    int64_t pods = 0, cores = node.capacity.cpu / kMillisPerCore;
    for (size_t g = 0; g < node.gpus.size(); ++g) {
      if (!node.gpus[g].healthy || !Chance(50) || pods == node.capacity.pods) continue;
      const int gpu = static_cast<int>(g);
      const int64_t share = kGpuUnitsPerDevice / (2 + Below(3));
      Request request = Chance(60) ? WholeGpus(1) : Fraction(share);
      const int64_t takes = Below(4);
      if (takes > cores) continue;
      cores -= takes;
      ++pods;
      request.cpu = Cores(takes);
      Workload w = MakeWorkload(absl::StrCat("held", spec.workloads.size()), "",
                                {MakePodSet("s", 1, request)});
      w.pods = {
          MakePod("s", 0, node.name,
                  request.gpu.kind == GpuRequestKind::kWhole ? OnGpus({gpu}) : OnShare(gpu, share),
                  Chance(85) ? PodPhase::kRunning : PodPhase::kReleasing)};
      spec.workloads.push_back(std::move(w));
    }
  }

  PodSet DrawSet(std::string name) {
    Request request = CpuOnly(1 + Below(4));
    if (Chance(60)) {
      request.gpu = GpuRequest::Whole(1 + Below(3));
    } else if (Chance(60)) {
      request.gpu = GpuRequest::Fraction(kGpuUnitsPerDevice / (2 + Below(3)));
    }
    PodSet set = MakePodSet(std::move(name), 1 + Below(8), request);
    if (Chance(20)) set.min_count = 1 + Below(set.count);
    if (Chance(15)) set.max_per_node = 1 + Below(2);
    if (Chance(15)) set.max_per_domain = DomainLimit{"rack", 1 + Below(3)};
    return set;
  }

  void AddGang(SnapshotSpec& spec) {
    std::vector<PodSet> sets = {DrawSet("a")};
    if (Chance(30)) sets.push_back(DrawSet("b"));
    Workload gang = MakeWorkload("gang", "", std::move(sets));
    if (Chance(50)) gang.gang.topology.required = "rack";
    if (Chance(15)) gang.pods = {MakeEndedPod("a", 0, PodPhase::kSucceeded)};
    spec.workloads.push_back(std::move(gang));
  }

  std::mt19937 engine_;
};

// What is free on one node.
struct Free {
  int64_t cpu = 0;
  int64_t memory = 0;
  int64_t pods = 0;
  std::vector<int64_t> units;  // of each healthy GPU
};

// Of how many pods a node has each of what they need.
struct Supply {
  int64_t devices = kPlenty, cpu = kPlenty, memory = kPlenty, pods = kPlenty, own = kPlenty;

  int64_t Least() const { return std::min({devices, cpu, memory, pods, own}); }
};

// The lists of a snapshot, by hand.
class Recount {
 public:
  explicit Recount(const SnapshotSpec& spec) : spec_(spec), gang_(spec.workloads.back()) {}

  static constexpr int kAllRacks = -1;

  std::vector<std::string> Racks() const {
    std::set<std::string> racks;
    for (const Node& node : spec_.nodes) racks.insert(node.topology.at("rack"));
    return {racks.begin(), racks.end()};
  }

  const PodSet& Set(const std::string& name) const {
    return gang_.gang.pod_sets[name == "a" ? 0 : 1];
  }
  int Ended(const PodSet& set) const {
    return static_cast<int>(std::ranges::count(gang_.pods, set.name, &Pod::pod_set));
  }
  int64_t Left(const PodSet& set) const { return set.count - Ended(set); }
  int64_t Needed(const PodSet& set) const {
    return std::max(set.min_count.value_or(set.count) - Ended(set), 0);
  }

  Free FreeOn(const Node& node, const std::set<std::string>& gone = {}) const {
    Free free{node.capacity.cpu, node.capacity.memory, node.capacity.pods, {}};
    std::vector<int64_t> units(node.gpus.size(), kGpuUnitsPerDevice);
    for (size_t g = 0; g < units.size(); ++g) units[g] *= node.gpus[g].healthy ? 1 : 0;
    for (const Workload& w : spec_.workloads) {
      for (const Pod& pod : w.pods) {
        if (pod.node != node.name || gone.contains(w.name)) continue;
        free.cpu -= w.gang.pod_sets[0].request.cpu;
        free.memory -= w.gang.pod_sets[0].request.memory;
        --free.pods;
        for (int g : pod.devices.gpus) units[static_cast<size_t>(g)] = 0;
        for (const GpuShare& s : pod.devices.shares) units[static_cast<size_t>(s.gpu)] -= s.share;
      }
    }
    for (size_t g = 0; g < units.size(); ++g) {
      if (node.gpus[g].healthy) free.units.push_back(units[g]);
    }
    return free;
  }

  Supply SupplyOn(const Node& node, const PodSet& set,
                  const std::set<std::string>& gone = {}) const {
    if (!node.schedulable) return {0, 0, 0, 0, 0};
    const Free free = FreeOn(node, gone);
    const GpuRequest& gpu = set.request.gpu;
    Supply supply;
    if (gpu.kind != GpuRequestKind::kNone) supply.devices = 0;
    for (int64_t units : free.units) {
      if (gpu.kind == GpuRequestKind::kWhole) supply.devices += units == kGpuUnitsPerDevice;
      if (gpu.kind == GpuRequestKind::kFraction) supply.devices += units / gpu.share;
    }
    if (gpu.kind == GpuRequestKind::kWhole) supply.devices /= gpu.devices;
    if (set.request.cpu > 0) supply.cpu = free.cpu / set.request.cpu;
    if (set.request.memory > 0) supply.memory = free.memory / set.request.memory;
    supply.pods = free.pods;
    supply.own = set.max_per_node.value_or(kPlenty);
    return supply;
  }

  // Pods of `set` alone on the nodes of `rack`, all racks if it is empty.
  int64_t FitsIn(const PodSet& set, const std::string& rack) const {
    std::map<std::string, int64_t> by_rack;
    for (const Node& node : spec_.nodes) {
      const std::string& of = node.topology.at("rack");
      if (!rack.empty() && of != rack) continue;
      by_rack[of] += std::min<int64_t>(SupplyOn(node, set).Least(), Left(set));
    }
    int64_t fits = 0;
    for (const auto& [of, pods] : by_rack) {
      fits += set.max_per_domain ? std::min<int64_t>(pods, set.max_per_domain->pods) : pods;
    }
    return fits;
  }

  // Of how many pods those nodes have each, all else aside: devices, cpu, memory, pods,
  // and what the bounds of the set leave.
  std::array<int64_t, 5> MeasuresIn(const PodSet& set, const std::string& rack) const {
    std::array<int64_t, 5> sum{};
    std::map<std::string, int64_t> own;
    for (const Node& node : spec_.nodes) {
      if (!rack.empty() && node.topology.at("rack") != rack) continue;
      const Supply supply = SupplyOn(node, set);
      sum[0] += supply.devices;
      sum[1] += supply.cpu;
      sum[2] += supply.memory;
      sum[3] += supply.pods;
      own[node.topology.at("rack")] += supply.own;
    }
    for (const auto& [of, pods] : own) {
      sum[4] += set.max_per_domain ? std::min<int64_t>(pods, set.max_per_domain->pods) : pods;
    }
    return sum;
  }

  // GPUs and pods that `rack` lacks of what the gang needs.
  std::pair<int64_t, int64_t> GapIn(const std::string& rack) const {
    std::pair<int64_t, int64_t> gap{0, 0};
    for (const PodSet& set : gang_.gang.pod_sets) {
      const int64_t lacking = Needed(set) - FitsIn(set, rack);
      if (lacking <= 0) continue;
      const GpuRequest& gpu = set.request.gpu;
      gap.first += gpu.kind == GpuRequestKind::kNone ? 0 : lacking * std::max(gpu.devices, 1);
      gap.second += lacking;
    }
    return gap;
  }

  const SnapshotSpec& spec() const { return spec_; }
  const Workload& gang() const { return gang_; }

 private:
  const SnapshotSpec& spec_;
  const Workload& gang_;
};

// What the finder says of the gang of a drawing, beside the recount.
class Case {
 public:
  explicit Case(SnapshotSpec spec)
      : spec_(std::move(spec)),
        recount_(spec_),
        snapshot_(CreateOrDie(spec_)),
        state_(std::make_shared<const StateTables>(snapshot_), {}) {}

  // Tells whether something is missing.
  bool Check() {
    NearMissFinder finder(state_);
    const WorkloadId w = *snapshot_.FindWorkload("gang");
    const std::optional<NearMiss> miss = finder.Find(w);
    const std::optional<RoomShortage> proof = finder.Certify(w);
    const bool tied = !recount_.gang().gang.topology.required.empty();
    const std::vector<std::string> racks =
        tied ? recount_.Racks() : std::vector<std::string>{std::string()};
    const auto nearest = std::ranges::min_element(
        racks, {}, [this](const std::string& rack) { return recount_.GapIn(rack); });
    int64_t needed = 0;
    for (const PodSet& set : recount_.gang().gang.pod_sets) needed += recount_.Needed(set);
    EXPECT_EQ(miss.has_value(), needed > 0);
    EXPECT_EQ(proof.has_value(), needed > 0 && recount_.GapIn(*nearest).second > 0);
    if (miss) CheckMiss(*miss, *nearest);
    if (proof) CheckProof(*proof, racks);
    return proof.has_value();
  }

  int freed() const { return freed_; }

 private:
  const PodSet& SetOf(PodSetId s) const { return recount_.Set(snapshot_.pod_set_spec(s).name); }

  std::string RackOf(int level, DomainId d) const {
    if (level < 0) return "";
    return snapshot_.topology().domains(level)[static_cast<size_t>(d.value())].path;
  }

  void CheckMiss(const NearMiss& miss, const std::string& nearest) {
    const PodSet& set = SetOf(miss.pod_set);
    const std::string rack = RackOf(miss.level, miss.domain);
    EXPECT_EQ(rack, nearest);
    EXPECT_EQ(miss.needed, recount_.Needed(set));
    EXPECT_EQ(std::min(miss.fits, miss.needed), std::min(recount_.FitsIn(set, rack), miss.needed));
    EXPECT_EQ(miss.fits_anywhere >= miss.needed, recount_.FitsIn(set, "") >= miss.needed);
    EXPECT_EQ(miss.together_only, recount_.GapIn(rack).second == 0);
    int64_t gained = 0;
    for (const NodeToFree& node : miss.free) {
      CheckFreed(node, set, rack);
      gained += node.gain;
      ++freed_;
    }
    // The last of them is still needed.
    if (!miss.free.empty()) {
      EXPECT_LT(miss.fits + gained - miss.free.back().gain, miss.needed);
    }
  }

  void CheckFreed(const NodeToFree& freed, const PodSet& set, const std::string& rack) {
    const std::string& name = snapshot_.node(freed.node).name;
    const auto node = std::ranges::find(recount_.spec().nodes, name, &Node::name);
    EXPECT_TRUE(rack.empty() || node->topology.at("rack") == rack);
    std::set<std::string> gone;
    for (PodId p : freed.pods) gone.insert(snapshot_.pod_ref(p).workload);
    EXPECT_EQ(gone.size(), freed.pods.size());
    const auto room = [&](const std::set<std::string>& without) {
      return std::min<int64_t>(recount_.SupplyOn(*node, set, without).Least(), recount_.Left(set));
    };
    const int64_t gain = room(gone) - room({});
    if (set.max_per_domain) {
      EXPECT_GE(gain, freed.gain);
    } else {
      EXPECT_EQ(gain, freed.gain);
    }
    for (const std::string& stays : gone) {
      std::set<std::string> fewer = gone;
      fewer.erase(stays);
      EXPECT_EQ(room(fewer), room({})) << stays << " need not leave " << name;
    }
  }

  void CheckProof(const RoomShortage& proof, const std::vector<std::string>& racks) {
    ASSERT_EQ(proof.domains.size(), racks.size());
    for (size_t i = 0; i < racks.size(); ++i) {
      const Shortfall& shortfall = proof.domains[i];
      const PodSet& set = SetOf(shortfall.pod_set);
      EXPECT_EQ(RackOf(proof.level, shortfall.domain), racks[i]);
      EXPECT_EQ(shortfall.needed, recount_.Needed(set));
      EXPECT_EQ(shortfall.fits, recount_.FitsIn(set, racks[i]));
      EXPECT_LT(shortfall.fits, shortfall.needed);
      const std::array<int64_t, 5> measures = recount_.MeasuresIn(set, racks[i]);
      const int64_t least = *std::ranges::min_element(measures);
      EXPECT_EQ(measures[MeasureOf(shortfall.short_of)], least) << shortfall.short_of;
    }
  }

  size_t MeasureOf(int short_of) const {
    constexpr std::array<int, 5> kMeasures = {kGpu, kCpu, kMemory, kPods, Shortfall::kOwnBound};
    return static_cast<size_t>(std::ranges::find(kMeasures, short_of) - kMeasures.begin());
  }

  const SnapshotSpec spec_;
  const Recount recount_;
  const Snapshot snapshot_;
  ClusterState state_;
  int freed_ = 0;
};

TEST(NearMissRecountTest, EveryNumberIsCountedAgainFromTheListsOfTheSnapshot) {
  const int cases = RandomCases(1000, 20000);
  int proofs = 0, freed = 0;
  for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Case drawn(Drawing(static_cast<uint32_t>(seed)).Draw());
    proofs += drawn.Check() ? 1 : 0;
    freed += drawn.freed();
  }
  EXPECT_GT(proofs, cases / 4);
  EXPECT_GT(freed, cases / 8);
}

}  // namespace
}  // namespace tessera
