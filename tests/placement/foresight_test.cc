#include "tessera/placement/foresight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/gpu/catalogue.h"
#include "tessera/placement/finders.h"
#include "tests/support/random_cluster.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

Workload Pods(std::string name, int count, Request request, int64_t cores,
              std::vector<std::string> models = {}) {
  request.cpu = Cores(cores);
  PodSet set = MakePodSet("s", count, std::move(request));
  set.gpu_models = std::move(models);
  return MakeWorkload(std::move(name), "", {std::move(set)});
}

TEST(DemandMix, KeepsTheMostFrequentShapesAndForgetsMemory) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("a", 2)};
  spec.workloads = {Pods("a", 50, Fraction(3500), 4), Pods("b", 30, CpuOnly(4), 4),
                    Pods("c", 10, WholeGpus(1), 4),   Pods("d", 6, WholeGpus(1), 4),
                    Pods("e", 3, WholeGpus(2), 4),    Pods("f", 1, WholeGpus(1), 5)};
  spec.workloads[3].gang.pod_sets[0].request.memory = kBytesPerGiB;
  const Snapshot snapshot = CreateOrDie(std::move(spec));
  // 50, 30, 10 + 6 cover 96 of 100 pods.
  EXPECT_THAT(MixOf(snapshot).shapes,
              ElementsAre(Field(&DemandShape::weight, 50), Field(&DemandShape::weight, 30),
                          Field(&DemandShape::weight, 16)));
  EXPECT_THAT(MixOf(snapshot, 97).shapes.back().devices, 2);
  EXPECT_EQ(MixOf(snapshot, 100).total_weight(), 100);
  EXPECT_EQ(DemandOn(MixOf(snapshot), snapshot.node_model(NodeId(0))).size(), 2u);
}

// F(n, m) from its definition, asking the state instead of its room.
int64_t LiteralFragments(const ClusterState& state, const DemandMix& mix, NodeId n) {
  const NodeRoom room = RoomOf(state, n);
  int64_t fragments = 0;
  for (const DemandShape& m : mix.shapes) {
    int64_t useless = 0;
    int serving = 0;
    for (int g = 0; g < room.num_devices; ++g) {
      const GpuState& gpu = state.gpu(n, g);
      bool serves = false;
      const ModelFit fit = m.models.empty() || !room.model.valid()
                               ? ModelFit{}
                               : m.models[static_cast<size_t>(room.model.value())];
      switch (m.kind) {
        case GpuRequestKind::kNone:
          break;
        case GpuRequestKind::kWhole:
          serves = gpu.is_free();
          break;
        case GpuRequestKind::kFraction:
        case GpuRequestKind::kDeviceMemory:
          serves = gpu.is_free() || gpu.partial_share() >= fit.share;
          break;
        case GpuRequestKind::kProfile:
        case GpuRequestKind::kRequirement:
          serves = fit.fits && state.CheapestSlice(n, fit, uint64_t{1} << g).has_value();
      }
      serves = serves && fit.fits;
      serving += serves ? 1 : 0;
      useless += serves ? 0 : room.device[static_cast<size_t>(g)].left;
    }
    const bool fits =
        m.kind != GpuRequestKind::kNone && serving >= std::max(1, m.devices) && room.cpu >= m.cpu;
    fragments += m.weight * (fits ? useless : room.left());
  }
  return fragments;
}

TEST(FragmentMeasureProperties, IsTheDefinition) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const Snapshot snapshot = CreateOrDie(random.Draw());
    ClusterState state(std::make_shared<const StateTables>(snapshot), {});
    const DemandMix mix = MixOf(snapshot, 100);
    const FragmentMeasure measure(mix, snapshot.num_models());
    for (int n = 0; n < snapshot.num_nodes(); ++n) {
      ASSERT_EQ(measure.FragmentsOf(RoomOf(state, NodeId(n))),
                LiteralFragments(state, mix, NodeId(n)))
          << "seed " << seed << " node " << n;
    }
  }
}

TEST(FragmentationGradientDescent, FollowsThePublishedCurve) {
  DemandMix mix;
  mix.shapes.push_back({3, 0, GpuRequestKind::kNone, 0, {}});
  const FragmentationGradientDescent gradient(mix, 0);
  EXPECT_EQ(gradient.ScoreOf(0), 50);
  for (int64_t f = -200000; f <= 200000; f += 7) {
    if (f == 0) continue;
    const double devices = static_cast<double>(f) / (3 * kGpuUnitsPerDevice);
    ASSERT_EQ(gradient.ScoreOf(f), std::floor(100 / (1 + std::exp(-devices)))) << f;
  }
}

TEST(FragmentationGradientDescent, AvoidsTheFragment) {
  // Halves and whole GPUs come equally often. Node "a": a device with 4000 left, a free one.
  SnapshotSpec spec;
  spec.nodes = {MakeNode("a", 2)};
  spec.workloads = {Pods("old", 1, Fraction(3000), 0), Pods("half", 1, Fraction(3500), 0),
                    Pods("one", 1, WholeGpus(1), 0)};
  spec.workloads[0].pods = {MakePod("s", 0, "a", OnShare(0, 3000))};
  const Snapshot snapshot = CreateOrDie(std::move(spec));
  const ClusterState state(std::make_shared<const StateTables>(snapshot), {});
  DemandMix mix = MixOf(snapshot, 100);
  std::erase_if(mix.shapes, [](const DemandShape& m) {
    return m.kind == GpuRequestKind::kFraction && m.models[0].share == 3000;
  });
  const FragmentMeasure measure(mix, snapshot.num_models());
  // half: nothing is lost. one: the 4000.
  EXPECT_EQ(measure.FragmentsOf(RoomOf(state, NodeId(0))), 4000);
  // half on the first: 500 left, lost to both: 1000, 3000 less: 3000/14000 = 0.214 devices,
  // 100 / (1 + exp(-0.214)) = 55.3. On the second: 4000 + 3500 lost to `one`: -0.25, 43.8.
  const auto find = FindBest(state, {PodSetId(0), {0, 1}, 0},
                             FragmentationGradientDescent(mix, snapshot.num_models()));
  ASSERT_TRUE(find);
  EXPECT_EQ(find->gpus, 1u);
  const FragmentationGradientDescent gradient(mix, snapshot.num_models());
  EXPECT_EQ(gradient.ScoreOf(3000), 55);
  EXPECT_EQ(gradient.ScoreOf(-3500), 43);
}

GpuModel WithoutMig() {
  GpuModel model;
  model.name = "T4";
  return model;
}

DeviceRoom Shared(int32_t left) { return {left, false, left > 0, {}, 0}; }

TEST(WasteTable, HalvesShowTheArithmetic) {
  const MigTables t4 = *MigTables::Create(WithoutMig());
  const WasteTable table({{1, 0, 1, 3500, -1}}, 1, 80, t4);
  EXPECT_EQ(table.WasteOf(Shared(3499)), 3499000);  // nobody comes
  EXPECT_EQ(table.WasteOf(Shared(0)), 0);
  EXPECT_EQ(table.WasteOf(Shared(3500)), 43209);                // (3500000 + 80 x 0) / 81
  EXPECT_EQ(table.WasteOf({7000, true, true, {}, 0}), 129095);  // (7000000 + 80 x 43209) / 81
  EXPECT_EQ(table.WasteOf(Shared(5250)), 1793209);              // (5250000 + 80 x 1750000) / 81
}

// The recurrence, read off without a table.
double LiteralWaste(const std::vector<ModelDemand>& demand, double weight, double s, int left,
                    bool whole) {
  double sum = weight * left, total = weight;
  for (const ModelDemand& d : demand) {
    if (d.share > left || (d.share == 0 && !whole)) continue;
    total += s * d.weight;
    if (d.share > 0) {
      sum += s * d.weight * LiteralWaste(demand, weight, s, left - d.share, false);
    }
  }
  return sum / total;
}

TEST(WasteTableProperties, IsTheRecurrence) {
  const MigTables t4 = *MigTables::Create(WithoutMig());
  const int cases = RandomCases(20, 300);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    std::vector<ModelDemand> demand;
    int64_t weight = 0;
    for (int i = 1 + random.Below(4); i > 0; --i) {
      const int32_t share = random.Chance(25) ? 0 : 1400 + random.Below(5600);
      demand.push_back({1 + random.Below(9), 0, 1 + (share == 0 ? random.Below(8) : 0), share, -1});
      weight += demand.back().weight;
    }
    const WasteTable table(demand, weight, 80, t4);
    for (int i = 0; i < 20; ++i) {
      const int left = 1 + random.Below(6999);
      EXPECT_NEAR(static_cast<double>(table.WasteOf(Shared(left))),
                  1000 * LiteralWaste(demand, static_cast<double>(weight), 80, left, false), 8);
    }
    EXPECT_NEAR(static_cast<double>(table.WasteOf({7000, true, true, {}, 0})),
                1000 * LiteralWaste(demand, static_cast<double>(weight), 80, 7000, true), 8);
  }
}

TEST(WasteTable, SlicesAreLayouts) {
  // Only 3g slices come, to a GPU of 8 units: two of them fill it.
  const MigTables mig = *MigTables::Create(*FindGpuModel("A100-40GB"));
  const int p3g = *mig.model().FindProfile("3g.20gb"), p1g = *mig.model().FindProfile("1g.5gb");
  const WasteTable table({{1, 0, 1, 0, p3g}}, 1, 80, mig);
  const auto holding = [&mig](LayoutKey held) {
    return DeviceRoom{PartLeft(held, mig), false, false, held, mig.Placeable(held)};
  };
  const LayoutKey one = mig.Add(mig.empty(), p3g, 4);
  EXPECT_EQ(table.WasteOf(holding(mig.Add(one, p3g, 0))), 0);
  EXPECT_EQ(table.WasteOf(holding(one)), 43209);                             // (3500000 + 0) / 81
  EXPECT_EQ(table.WasteOf({7000, true, true, {}, ~0u}), 129095);             // and once more
  EXPECT_EQ(table.WasteOf(holding(mig.Add(one, p1g, 0))), 7000000 / 8 * 3);  // no 3g fits
}

class ForesightTest : public testing::Test {
 protected:
  // A node of each model; "t" has much CPU.
  void Build(std::vector<Workload> workloads) {
    SnapshotSpec spec;
    spec.nodes = {MakeNode("g", 8), MakeNode("t", 2, "A100-40GB")};
    spec.nodes[1].capacity.cpu = Cores(128);
    spec.workloads = std::move(workloads);
    snapshot_.emplace(CreateOrDie(std::move(spec)));
    state_.emplace(std::make_shared<const StateTables>(*snapshot_), InitialPods());
  }
  Foresight Make() const { return Foresight(*snapshot_, MixOf(*snapshot_, 100)); }
  std::string Choice(const std::string& workload) const {
    const PodSetId s(snapshot_->info(*snapshot_->FindWorkload(workload)).first_pod_set);
    const auto place = FindBest(*state_, {s, {0, 2}, 0}, Make());
    return place ? snapshot_->node(place->node).name : "";
  }
  ModelId ModelOf(int n) const { return snapshot_->node_model(NodeId(n)); }

  std::optional<Snapshot> snapshot_;
  std::optional<ClusterState> state_;
};

TEST_F(ForesightTest, ScarcityIsWhatIsAskedForByName) {
  // 10 GPUs asked for in all, 1 of them of the 2 A100 by name, when the cluster has 10.
  Build({Pods("any", 9, WholeGpus(1), 4), Pods("named", 1, WholeGpus(1), 4, {"A100-40GB"})});
  const Foresight foresight = Make();
  EXPECT_EQ(foresight.scarcity(ModelOf(1)), 500);
  EXPECT_EQ(foresight.scarcity(ModelOf(0)), 0);
  EXPECT_EQ(foresight.cpu_per_device(), 2800);  // 70 % of 4 cores
  EXPECT_EQ(Choice("any"), "g");
  EXPECT_EQ(Choice("named"), "t");
}

TEST_F(ForesightTest, NamingAllModelsIsNamingNone) {
  Build({Pods("any", 1, WholeGpus(1), 4, {"A100-40GB", "H100-80GB"})});
  EXPECT_EQ(Make().scarcity(ModelOf(0)), 0);
  EXPECT_EQ(Make().scarcity(ModelOf(1)), 0);
}

TEST_F(ForesightTest, PodsHungryForCpuGoWhereMuchIs) {
  Build({Pods("hungry", 5, CpuOnly(24), 24), Pods("one", 5, WholeGpus(1), 8)});
  EXPECT_EQ(Choice("hungry"), "t");
}

TEST_F(ForesightTest, UsableIsTheHarmonicSum) {
  Build({Pods("one", 1, WholeGpus(1), 20)});
  NodeRoom room = RoomOf(*state_, NodeId(0));
  const Foresight foresight = Make();
  ASSERT_EQ(foresight.cpu_per_device(), 14000);
  // 8 devices, CPU for 64 / 14 of them: 8 x 64 / (64 + 8 x 14) = 2.909 devices.
  EXPECT_EQ(foresight.UsableOf(room), 56000000LL * 64 / (64 + 112));
  room.cpu = 0;
  EXPECT_EQ(foresight.UsableOf(room), 0);
}

TEST(ForesightProperties, TheScoreIsTheSumOfItsParts) {
  const int cases = RandomCases(300, 6000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomCluster random(static_cast<uint32_t>(seed));
    const Snapshot snapshot = CreateOrDie(random.Draw());
    ClusterState state(std::make_shared<const StateTables>(snapshot), {});
    const ForesightWeights w{.waste = 1 + random.Below(9), .step_milli = 10};
    const Foresight foresight(snapshot, MixOf(snapshot), w);
    for (int s = 0; s < snapshot.num_pod_sets(); ++s) {
      const auto check = [&](std::span<const Candidate> candidates, std::span<int64_t> scores) {
        ScoreBatch(foresight, state, PodSetId(s), candidates, scores);
        for (size_t i = 0; i < candidates.size(); ++i) {
          const NodeRoom before = RoomOf(state, candidates[i].node);
          const RequestClass& request =
              snapshot.request_class(snapshot.pod_set(PodSetId(s)).request_class);
          const NodeRoom after = RoomAfter(state, before, request, candidates[i]);
          double loss = 0;
          if (before.model.valid()) {
            const auto part = [](int64_t weight, int64_t amount) {
              return static_cast<double>(weight) * static_cast<double>(amount);
            };
            loss =
                part(w.waste, foresight.WasteOf(after) - foresight.WasteOf(before)) +
                part(w.balance, foresight.UsableOf(before) - foresight.UsableOf(after)) +
                part(w.fragments, foresight.FragmentsOf(after) - foresight.FragmentsOf(before)) +
                part(w.scarcity * foresight.scarcity(before.model), before.left() - after.left());
          }
          ASSERT_EQ(scores[i], -static_cast<int64_t>(std::floor(loss / 70000))) << "seed " << seed;
        }
      };
      FindBest(state, {PodSetId(s), {0, snapshot.num_nodes()}, 0}, check, true);
    }
  }
}

}  // namespace
}  // namespace tessera
