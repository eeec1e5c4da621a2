#include "tessera/placement/near_miss.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/schedule/schedule.h"
#include "tests/support/random_cluster.h"
#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

// Racks r1 (n1 to n4) and r2 (n5 to n8) of 8-GPU nodes.
SnapshotSpec Racks() {
  SnapshotSpec spec;
  spec.levels = {"rack"};
  for (int i = 1; i <= 8; ++i) {
    Node node = MakeNode(absl::StrCat("n", i), 8);
    node.topology["rack"] = i <= 4 ? "r1" : "r2";
    spec.nodes.push_back(std::move(node));
  }
  return spec;
}

// Adds a workload with one running pod of `gpus` GPUs on each of `nodes`.
void Occupy(SnapshotSpec& spec, const std::string& name, int gpus, std::vector<std::string> nodes) {
  Workload w =
      MakeWorkload(name, "", {MakePodSet("s", static_cast<int>(nodes.size()), WholeGpus(gpus))});
  std::map<std::string, int> used;
  for (const Workload& other : spec.workloads) {
    for (const Pod& pod : other.pods) used[pod.node] += static_cast<int>(pod.devices.gpus.size());
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<int> devices;
    for (int g = 0; g < gpus; ++g) devices.push_back(used[nodes[i]]++);
    w.pods.push_back(MakePod("s", static_cast<int>(i), nodes[i], OnGpus(devices)));
  }
  spec.workloads.push_back(std::move(w));
}

Workload& Gang(SnapshotSpec& spec, std::vector<PodSet> sets, std::string required = "") {
  Workload& gang = spec.workloads.emplace_back(MakeWorkload("gang", "", std::move(sets)));
  gang.gang.topology.required = std::move(required);
  return gang;
}

// What the gang is told, counted again by other means.
class Scene {
 public:
  explicit Scene(SnapshotSpec spec)
      : snapshot_(CreateOrDie(std::move(spec))),
        state_(std::make_shared<const StateTables>(snapshot_), {}) {}

  WorkloadId Find(const std::string& name) const { return *snapshot_.FindWorkload(name); }

  std::string Text(const std::string& name = "gang") {
    NearMissFinder finder(state_);
    const std::optional<NearMiss> miss = finder.Find(Find(name));
    if (!miss) return "";
    Recount(Find(name), *miss);
    const std::optional<RoomShortage> proof = finder.Certify(Find(name));
    EXPECT_EQ(proof.has_value(), !miss->together_only);
    if (proof) Recount(Find(name), *proof);
    return Describe(state_, *miss);
  }

  // No domain is left out, and in none there is room for what is needed.
  void Recount(WorkloadId w, const RoomShortage& proof) {
    ASSERT_TRUE(proof.level >= 0 || proof.domains.size() == 1u);
    for (const Shortfall& shortfall : proof.domains) {
      const PodSetInfo& set = snapshot_.pod_set(shortfall.pod_set);
      ASSERT_EQ(set.workload, w);
      ASSERT_EQ(shortfall.needed, set.min_count - state_.standing(shortfall.pod_set));
      ASSERT_LT(shortfall.fits, shortfall.needed);
      NodeRange range{0, snapshot_.num_nodes()};
      if (proof.level >= 0) {
        range = snapshot_.topology()
                    .domains(proof.level)[static_cast<size_t>(shortfall.domain.value())]
                    .nodes;
      }
      ASSERT_LE(CountIn(shortfall.pod_set, range), shortfall.fits);
    }
    ASSERT_FALSE(PlaceGang(state_, w).placed());
  }

  std::optional<RoomShortage> Proof() { return NearMissFinder(state_).Certify(Find("gang")); }
  std::string ProofText() { return Describe(state_, *Proof()); }

  // Pods of the set, one after another, in the domain; then on each node without those
  // that would have to leave, and without all of them but one.
  void Recount(WorkloadId w, const NearMiss& miss) {
    const PodSetInfo& set = snapshot_.pod_set(miss.pod_set);
    ASSERT_EQ(set.workload, w);
    ASSERT_EQ(miss.needed, set.min_count - state_.standing(miss.pod_set));
    NodeRange range{0, snapshot_.num_nodes()};
    if (miss.level >= 0) {
      range =
          snapshot_.topology().domains(miss.level)[static_cast<size_t>(miss.domain.value())].nodes;
    }
    const int fits = CountIn(miss.pod_set, range);
    // Packing one by one may fall short where devices are shared.
    ASSERT_LE(std::min<int64_t>(fits, miss.needed), miss.fits);
    const GpuRequestKind kind = snapshot_.request_class(set.request_class).gpu.kind;
    if (kind == GpuRequestKind::kWhole || kind == GpuRequestKind::kNone) {
      ASSERT_EQ(std::min<int64_t>(miss.fits, miss.needed), std::min<int64_t>(fits, miss.needed));
    }
    for (const NodeToFree& node : miss.free) {
      ASSERT_TRUE(range.contains(node.node));
      const NodeRange only{node.node.value(), node.node.value() + 1};
      const int before = CountIn(miss.pod_set, only);
      const ClusterState::Mark mark = state_.GetMark();
      uint64_t gpus = 0;
      for (PodId p : node.pods) {
        ASSERT_EQ(state_.placement(p).node, node.node);
        ASSERT_NE(snapshot_.pod_set(snapshot_.pod_set_of(p)).workload, w);
        gpus |= state_.placement(p).gpus;
        state_.Remove(p);
      }
      ASSERT_EQ(node.gpus, std::popcount(gpus));
      if (kind == GpuRequestKind::kWhole && set.max_per_domain == 0) {
        ASSERT_EQ(CountIn(miss.pod_set, only) - before, node.gain);
      } else if (kind == GpuRequestKind::kWhole) {
        // Other nodes of the domain have a part in what its bound leaves.
        ASSERT_GE(CountIn(miss.pod_set, only) - before, node.gain);
      }
      state_.RollBack(mark);
    }
  }

 private:
  int CountIn(PodSetId s, NodeRange range) {
    const ClusterState::Mark mark = state_.GetMark();
    const PodSetInfo& set = snapshot_.pod_set(s);
    int count = 0;
    for (int i = 0; i < set.count; ++i) {
      if (!MayPlace(state_, set.pod(i))) continue;
      const std::optional<PodPlacement> place = FindPacked(state_, {s, range, 0});
      if (!place) break;
      state_.Place(set.pod(i), *place);
      ++count;
    }
    state_.RollBack(mark);
    return count;
  }

  const Snapshot snapshot_;
  ClusterState state_;
};

TEST(NearMissTest, ARackWithThreeOfFourNodesFree) {
  SnapshotSpec spec = Racks();
  Occupy(spec, "train", 1, {"n4", "n5", "n6"});
  Gang(spec, {MakePodSet("decode", 4, WholeGpus(8))}, "rack");
  EXPECT_EQ(Scene(spec).Text(),
            "\"decode\" needs 4 pods of 8 GPUs in one rack; rack r1 has room for 3; n4 would take "
            "1 more without 1 pod of \"train\" on 1 GPU; without the required rack there is room");
}

TEST(NearMissTest, TheCheapestNodesAreFreed) {
  SnapshotSpec spec = Racks();
  Occupy(spec, "big", 6, {"n1", "n2"});
  Occupy(spec, "small", 2, {"n3", "n4", "n5", "n6", "n7", "n8"});
  Gang(spec, {MakePodSet("decode", 2, WholeGpus(8))}, "rack");
  EXPECT_EQ(Scene(spec).Text(),
            "\"decode\" needs 2 pods of 8 GPUs in one rack; rack r1 has room for 0; n3 would take "
            "1 more without 1 pod of \"small\" on 2 GPUs; n4 would take 1 more without 1 pod of "
            "\"small\" on 2 GPUs");
}

TEST(NearMissTest, OnlyThePodsInTheWayLeave) {
  // 3 + 2 + 1 of 8 GPUs are held; 4 are wanted, and 2 are free: the pod
  // of 2 suffices, the other two may stay.
  SnapshotSpec spec = Racks();
  spec.nodes.resize(1);
  Occupy(spec, "three", 3, {"n1"});
  Occupy(spec, "two", 2, {"n1"});
  Occupy(spec, "one", 1, {"n1"});
  Gang(spec, {MakePodSet("s", 1, WholeGpus(4))});
  EXPECT_EQ(Scene(spec).Text(),
            "\"s\" needs 1 pod of 4 GPUs; the cluster has room for 0; n1 would take 1 more without "
            "1 pod of \"two\" on 2 GPUs");
}

TEST(NearMissTest, MoreThanTheClusterHas) {
  SnapshotSpec spec = Racks();
  Gang(spec, {MakePodSet("s", 9, WholeGpus(8))});
  EXPECT_EQ(Scene(spec).Text(), "\"s\" needs 9 pods of 8 GPUs; the cluster has room for 8");
}

TEST(NearMissTest, ManyNodesAreSummedUp) {
  SnapshotSpec spec = Racks();
  Occupy(spec, "train", 1, {"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"});
  Gang(spec, {MakePodSet("s", 8, WholeGpus(8))});
  EXPECT_EQ(
      Scene(spec).Text(),
      "\"s\" needs 8 pods of 8 GPUs; the cluster has room for 0; n1 would take 1 more without "
      "1 pod of \"train\" on 1 GPU; n2 would take 1 more without 1 pod of \"train\" on 1 GPU; "
      "n3 would take 1 more without 1 pod of \"train\" on 1 GPU; and 5 more nodes like these");
}

TEST(NearMissTest, CpuIsShort) {
  SnapshotSpec spec = Racks();
  spec.nodes.resize(2);
  spec.workloads.push_back(MakeWorkload("web", "", {MakePodSet("s", 1, CpuOnly(40))}));
  spec.workloads[0].pods = {MakePod("s", 0, "n1")};
  Gang(spec, {MakePodSet("router", 2, CpuOnly(60))});
  EXPECT_EQ(Scene(spec).Text(),
            "\"router\" needs 2 pods of 60 cores; the cluster has room for 1; n1 would take 1 more "
            "without 1 pod of \"web\"");
}

TEST(NearMissTest, EachAloneButNotTogether) {
  SnapshotSpec spec = Racks();
  Gang(spec, {MakePodSet("a", 3, WholeGpus(8)), MakePodSet("b", 2, WholeGpus(8))}, "rack");
  EXPECT_EQ(
      Scene(spec).Text(),
      "\"a\" needs 3 pods of 8 GPUs in one rack; rack r1 has room for each pod set alone, but "
      "not for all together");
}

TEST(NearMissTest, TheInnerPartThatBindsIsNamed) {
  SnapshotSpec spec = Racks();
  Occupy(spec, "train", 8, {"n1", "n5"});
  Workload& gang = Gang(spec, {MakePodSet("router", 1, CpuOnly(1))});
  PodGroup decode = MakeGroup("decode", {MakePodSet("workers", 4, WholeGpus(8))});
  decode.topology.required = "rack";
  gang.gang.groups = {decode};
  EXPECT_EQ(Scene(spec).Text(),
            "\"workers\" needs 4 pods of 8 GPUs in one rack; rack r1 has room for 3; n1 would take "
            "1 more without 1 pod of \"train\" on 8 GPUs; without the required rack there is room");
}

TEST(NearMissTest, WhereItsPodsRunNoOtherRackCounts) {
  SnapshotSpec spec = Racks();
  Occupy(spec, "train", 8, {"n5", "n6", "n7"});
  Workload& gang = Gang(spec, {MakePodSet("s", 2, WholeGpus(8))}, "rack");
  gang.pods = {MakePod("s", 0, "n8", OnGpus({0, 1, 2, 3, 4, 5, 6, 7}))};
  EXPECT_EQ(Scene(spec).Text(),
            "\"s\" needs 1 pod of 8 GPUs in one rack; rack r2 has room for 0; n5 would take 1 more "
            "without 1 pod of \"train\" on 8 GPUs; without the required rack there is room");
}

TEST(NearMissTest, FractionsAndSlices) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("n1", 1)};
  const int64_t half = kGpuUnitsPerDevice / 2;
  spec.workloads = {MakeWorkload("dev", "", {MakePodSet("s", 1, Fraction(half))})};
  spec.workloads[0].pods = {MakePod("s", 0, "n1", OnShare(0, half))};
  Gang(spec, {MakePodSet("s", 2, Fraction(half))});
  EXPECT_EQ(Scene(spec).Text(),
            "\"s\" needs 2 pods of 0.5 of a GPU; the cluster has room for 1; n1 would take 1 more "
            "without 1 pod of \"dev\" on 1 GPU");
  spec.workloads.pop_back();
  spec.nodes[0].gpus[0].mig = MigMode::kDynamic;
  Gang(spec, {MakePodSet("s", 1, SliceOfProfile("1g.10gb"))});
  EXPECT_EQ(
      Scene(spec).Text(),
      "\"s\" needs 1 pod of a slice 1g.10gb; the cluster has room for 0; n1 would take 1 more "
      "without 1 pod of \"dev\" on 1 GPU");
}

TEST(NearMissTest, TheCertificateNamesWhatIsShortInEachDomain) {
  SnapshotSpec spec = Racks();
  Occupy(spec, "train", 8, {"n1", "n2"});  // r1 has 2 of 3 nodes
  for (int i = 4; i < 8; ++i) spec.nodes[static_cast<size_t>(i)].capacity.cpu = Cores(5);
  PodSet decode = MakePodSet("decode", 3, WholeGpus(8));
  decode.request.cpu = Cores(6);  // no node of r2 has that
  Gang(spec, {decode}, "rack");
  Scene scene(spec);
  const std::optional<RoomShortage> proof = scene.Proof();
  ASSERT_TRUE(proof);
  const PodSetId s = proof->domains.at(0).pod_set;
  const RoomShortage expected{0, {{DomainId(0), s, 3, 2, kGpu}, {DomainId(1), s, 3, 0, kCpu}}};
  EXPECT_EQ(*proof, expected);
  EXPECT_EQ(scene.ProofText(),
            "no rack has room: r1 takes 2 of 3 pods of \"decode\", short of gpu; r2 takes 0 of 3 "
            "pods of \"decode\", short of cpu");
  EXPECT_EQ(scene.Text(),
            "\"decode\" needs 3 pods of 8 GPUs in one rack; rack r1 has room for 2; n1 would take "
            "1 more without 1 pod of \"train\" on 8 GPUs");
}

TEST(NearMissTest, BoundsPerDomainCount) {
  SnapshotSpec spec = Racks();
  Occupy(spec, "train", 8, {"n1", "n2", "n3", "n4"});  // r1 is full
  PodSet decode = MakePodSet("decode", 3, WholeGpus(8));
  decode.max_per_domain = DomainLimit{"rack", 1};
  Gang(spec, {decode});
  Scene scene(spec);
  // Of the four nodes of r1 one is enough; a second would take nothing.
  EXPECT_EQ(scene.Text(),
            "\"decode\" needs 3 pods of 8 GPUs; the cluster has room for 1; n1 would take 1 more "
            "without 1 pod of \"train\" on 8 GPUs");
  EXPECT_EQ(scene.ProofText(),
            "the cluster takes 1 of 3 pods of \"decode\", which keeps its pods apart");
}

TEST(NearMissTest, OfManyDomainsThoseAreNamedThatLackLeast) {
  SnapshotSpec spec;
  spec.levels = {"rack"};
  for (int i = 0; i < 12; ++i) {
    Node node = MakeNode(absl::StrCat("n", 10 + i), i == 11 ? 4 : 2);
    node.topology["rack"] = absl::StrCat("r", 10 + i);
    spec.nodes.push_back(std::move(node));
  }
  Gang(spec, {MakePodSet("decode", 5, WholeGpus(1))}, "rack");
  const std::string text = Scene(spec).ProofText();
  EXPECT_EQ(text.substr(0, text.find("; r11")),
            "no rack has room: r21 takes 4 of 5 pods of \"decode\", short of gpu; r10 takes 2 of 5 "
            "pods of \"decode\", short of gpu");
  EXPECT_EQ(text.substr(text.rfind("; ")), "; and 4 more that lack as many or more");
}

TEST(NearMissTest, AMinimumThatHoldsMissesNothing) {
  SnapshotSpec spec = Racks();
  Gang(spec, {WithMinCount(MakePodSet("s", 9, WholeGpus(8)), 0)});
  EXPECT_EQ(Scene(spec).Text(), "");
}

TEST(NearMissTest, EveryMissSurvivesARecount) {
  const int cases = RandomCases(200, 5000);
  int misses = 0;
  for (int seed = 0; seed < cases && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomCluster random(static_cast<uint32_t>(seed));
    const Snapshot empty = CreateOrDie(random.Draw());
    SnapshotSpec spec = ApplyAndSettle(empty, Schedule(empty).plan)->spec();
    random.Disturb(spec);
    const Snapshot lived = CreateOrDie(spec);
    Scene scene(spec);
    for (int w = 0; w < lived.num_workloads(); ++w) {
      misses += scene.Text(lived.workload(WorkloadId(w)).name).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(misses, cases / 2);
}

}  // namespace
}  // namespace tessera
