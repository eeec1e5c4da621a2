// Whether there is room beside the other pods, now and later: amounts, GPUs, and
// tenants. Each rule by a plan that keeps it and one that breaks nothing else.

#include "tests/verify/plan_scene.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

NodeResources& CapacityOf(PlanScene& scene) { return scene.spec.nodes[0].capacity; }

const std::vector<PlanCase>& AmountCases() {
  static const auto& cases = *new std::vector<PlanCase>{
      {"Cpu",
       BindingCpu(),
       [](PlanScene& s) { CapacityOf(s).cpu = 3500; },
       {{0, "bind w/s/0: needs 4 cpu, but n1 has 3.5 cpu left"}}},
      {"CpuBesideOther",
       WithOther(BindingCpu(), CpuOnly(60), {}),
       [](PlanScene& s) { CapacityOf(s).cpu -= 1; },
       {{0, "bind w/s/0: needs 4 cpu, but n1 has 3.999 cpu left"}}},
      {"CpuBesideReserved",
       BindingCpu(),
       [](PlanScene& s) { s.spec.nodes[0].reserved.cpu = Cores(70); },
       {{0, "bind w/s/0: needs 4 cpu, but n1 has -6 cpu left"}}},
      {"Memory",
       BindingCpu(),
       [](PlanScene& s) { s.pod_set(0).request.memory = CapacityOf(s).memory + 1; },
       {{0, "bind w/s/0: needs 512 GiB memory, but n1 has 512 GiB memory left"}}},
      {"Pods",
       BindingCpu(),
       [](PlanScene& s) { CapacityOf(s).pods = 0; },
       {{0, "bind w/s/0: needs 1 pods, but n1 has 0 pods left"}}},
      {"Extended",
       BindingCpu(),
       [](PlanScene& s) {
         s.pod_set(0).request.extended = {{"ib", 1}};
       },
       {{0, "bind w/s/0: needs 1 ib, but n1 has 0 ib left"}}},
      {"NominationBesideOther",
       Nominated(WithOther(BindingCpu(), CpuOnly(60), {})),
       [](PlanScene& s) { CapacityOf(s).cpu -= 1; },
       {{0, "nominate w/s/0: needs 4 cpu, but n1 has 3.999 cpu left"}}},
      {"BindOverReleasing",
       Nominated(WithOther(BindingCpu(), CpuOnly(64), {}, "a", PodPhase::kReleasing)),
       [](PlanScene& s) { s.plan.actions[0] = Bind("w", 0, "n1"); },
       {{0, "bind w/s/0: needs 4 cpu, but n1 has 0 cpu left"}}},
      {"BindOverReservation",
       WithOther(BindingCpu(), CpuOnly(60), {}, "a", PodPhase::kNominated),
       [](PlanScene& s) { CapacityOf(s).cpu -= 1; },
       {{0, "bind w/s/0: needs 4 cpu, but n1 has 3.999 cpu left"}}},
  };
  return cases;
}

class AmountRuleTest : public PlanRuleTest {};
TEST_P(AmountRuleTest, Holds) { Judge(); }
INSTANTIATE_TEST_SUITE_P(Rules, AmountRuleTest, ::testing::ValuesIn(AmountCases()), NameOfCase);

TEST(CheckPlanTest, OvercommittedNodeTakesWhatNeedsNothingOfIt) {
  PlanScene scene = WithOther(BindingCpu(), CpuOnly(100), {});
  scene.pod_set(0).request = Request();
  scene.pod_set(0).request.memory = kBytesPerGiB;
  EXPECT_THAT(scene.Check(), IsEmpty());
}

// What releases and what is reserved may be the same cores: a bind needs neither.
TEST(CheckPlanTest, ReservationOfReleasedRoomCountsOnce) {
  PlanScene scene = WithOther(BindingCpu(), CpuOnly(60), {}, "a", PodPhase::kReleasing);
  scene.spec.workloads.push_back(MakeWorkload("y", "a", {MakePodSet("s", 1, CpuOnly(60))}));
  scene.spec.workloads.back().pods = {MakePod("s", 0, "n1", {}, PodPhase::kNominated)};
  EXPECT_THAT(scene.Check(), IsEmpty());
}

TEST(CheckPlanTest, EvictedPodMakesRoomForNominationOnly) {
  PlanScene scene = WithOther(Nominated(BindingWhole()), WholeGpus(1), OnGpus({0}));
  scene.plan.actions.insert(scene.plan.actions.begin(), Evict("x", 0));
  scene.plan.pending = {MakePending("x", true)};
  EXPECT_THAT(scene.Check(), IsEmpty());
  scene.plan.actions[1] = Bind("w", 0, "n1", OnGpus({0}));
  EXPECT_THAT(scene.Check(),
              ElementsAre(PlanViolation{1, "bind w/s/0: GPU 0 of n1 is held whole (x/s/0)"}));
}

TEST(CheckPlanTest, ActionsCountInOrder) {
  PlanScene scene = WithOther(Nominated(BindingWhole()), WholeGpus(1), OnGpus({0}));
  scene.plan.actions.push_back(Evict("x", 0));
  scene.plan.pending = {MakePending("x", true)};
  EXPECT_THAT(scene.Check(),
              ElementsAre(PlanViolation{0, "nominate w/s/0: GPU 0 of n1 is held whole (x/s/0)"}));
}

// Beside x, which holds a part of GPU 0, or a slice of GPU 2.
std::vector<PlanCase> GpuCases() {
  const auto hold = [](Request request, Devices devices, PodPhase phase = PodPhase::kRunning) {
    return [=](PlanScene& s) { AddOther(s, request, devices, "a", phase); };
  };
  return {
      {"WholeBesideWhole",
       BindingWhole(),
       hold(WholeGpus(1), OnGpus({0})),
       {{0, "bind w/s/0: GPU 0 of n1 is held whole (x/s/0)"}}},
      {"WholeBesideReservedWhole",
       BindingWhole(),
       hold(WholeGpus(1), OnGpus({0}), PodPhase::kNominated),
       {{0, "bind w/s/0: GPU 0 of n1 is held whole (x/s/0)"}}},
      {"NominateWholeBesideReservedWhole",
       Nominated(BindingWhole()),
       hold(WholeGpus(1), OnGpus({0}), PodPhase::kNominated),
       {{0, "nominate w/s/0: GPU 0 of n1 is held whole (x/s/0)"}}},
      {"WholeBesideReleasingWhole",
       BindingWhole(),
       hold(WholeGpus(1), OnGpus({0}), PodPhase::kReleasing),
       {{0, "bind w/s/0: GPU 0 of n1 is held whole (x/s/0)"}}},
      {"WholeBesideFraction",
       BindingWhole(),
       hold(Fraction(1), OnShare(0, 1)),
       {{0, "bind w/s/0: GPU 0 of n1 is not empty (x/s/0)"}}},
      {"FractionBesideWhole",
       BindingHalf(),
       hold(WholeGpus(1), OnGpus({0})),
       {{0, "bind w/s/0: GPU 0 of n1 is held whole (x/s/0)"}}},
      {"FractionsBeyondDevice",
       WithOther(BindingHalf(), Fraction(kHalf), OnShare(0, kHalf)),
       [](PlanScene& s) {
         s.pod_set(1).request = Fraction(kHalf + 1);
         s.workload(1).pods = {MakePod("s", 0, "n1", OnShare(0, kHalf + 1))};
       },
       {{0, "bind w/s/0: GPU 0 of n1 has fractions that sum to 7001/7000"}}},
      {"FractionsBeyondDeviceWithReleasing",
       Nominated(
           WithOther(BindingHalf(), Fraction(7000), OnShare(0, 7000), "a", PodPhase::kReleasing)),
       [](PlanScene& s) { s.plan.actions[0] = Bind("w", 0, "n1", OnShare(0, kHalf)); },
       {{0, "bind w/s/0: GPU 0 of n1 has fractions that sum to 10500/7000"}}},
      {"SliceHeld",
       WithOther(BindingSlice(), SliceOfProfile("1g.10gb"), OnSlice(2, "1g.10gb", 5)),
       [](PlanScene& s) { s.workload(1).pods[0].devices = OnSlice(2, "1g.10gb", 6); },
       {{0, "bind w/s/0: GPU 2 of n1 has this slice held already (x/s/0)"}}},
      {"SliceBesideReservedWhole",
       BindingSlice(),
       hold(WholeGpus(1), OnGpus({2}), PodPhase::kNominated),
       {{0, "bind w/s/0: GPU 2 of n1 is held whole (x/s/0)"}}},
      {"SliceBesideReservedFraction",
       BindingSlice(),
       hold(Fraction(kHalf), OnShare(2, kHalf), PodPhase::kNominated),
       {{0, "bind w/s/0: GPU 2 of n1 holds fractions (x/s/0)"}}},
      {"FractionBesideReservedSlice",
       BindingHalf(),
       [](PlanScene& s) {
         GpuOf(s, 0).mig = MigMode::kDynamic;
         AddOther(s, SliceOfProfile("1g.10gb"), OnSlice(0, "1g.10gb", 0), "a",
                  PodPhase::kNominated);
       },
       {{0, "bind w/s/0: GPU 0 of n1 holds slices (x/s/0)"}}},
  };
}

class GpuRuleTest : public PlanRuleTest {};
TEST_P(GpuRuleTest, Holds) { Judge(); }
INSTANTIATE_TEST_SUITE_P(Rules, GpuRuleTest, ::testing::ValuesIn(GpuCases()), NameOfCase);

// A nomination may wait for an instance that does not exist yet; its units are taken.
TEST(CheckPlanTest, SliceCoveredByReservation) {
  PlanScene scene = WithOther(BindingSlice(), SliceOfProfile("2g.20gb"), OnSlice(2, "2g.20gb", 4),
                              "b", PodPhase::kNominated);
  EXPECT_THAT(scene.Check(), IsEmpty());
  BindOf(scene).devices = OnSlice(2, "1g.10gb", 5);
  EXPECT_THAT(
      scene.Check(),
      ElementsAre(PlanViolation{0, "bind w/s/0: GPU 2 of n1 has this slice held already (x/s/0)"}));
}

// w of queue a comes beside x of queue b.
PlanScene FractionBesideFraction() {
  return WithOther(BindingHalf(), Fraction(kHalf), OnShare(0, kHalf), "b");
}
PlanScene SliceBesideSlice() {
  return WithOther(BindingSlice(), SliceOfProfile("1g.10gb"), OnSlice(2, "1g.10gb", 5), "b");
}
PlanScene CpuBesideWhole() { return WithOther(BindingCpu(), WholeGpus(1), OnGpus({0}), "b"); }

std::vector<PlanCase> TenantCases() {
  const auto isolate = [](size_t w, Isolation isolation) {
    return [=](PlanScene& s) { s.workload(w).isolation = isolation; };
  };
  const std::string gpu_0 = "bind w/s/0: GPU 0 of n1 is shared with another tenant against the ";
  const std::string gpu_2 = "bind w/s/0: GPU 2 of n1 is shared with another tenant against the ";
  const std::string own = "isolation of its own workload (x/s/0)";
  const std::string others = "isolation of the other (x/s/0)";
  const std::string node_own =
      "bind w/s/0: isolation node of its own workload keeps it from n1, where x/s/0 of another "
      "tenant is";
  const std::string node_other =
      "bind w/s/0: isolation node of the other keeps it from n1, where x/s/0 of another tenant "
      "is";
  return {
      {"HardwareOwnFraction",
       FractionBesideFraction(),
       isolate(0, Isolation::kHardware),
       {{0, gpu_0 + own}}},
      {"HardwareOthersFraction",
       FractionBesideFraction(),
       isolate(1, Isolation::kHardware),
       {{0, gpu_0 + others}}},
      {"GpuOwnFraction",
       FractionBesideFraction(),
       isolate(0, Isolation::kGpuAlone),
       {{0, gpu_0 + own}}},
      {"HardwareAcceptsSlices", SliceBesideSlice(), isolate(0, Isolation::kHardware), {}},
      {"GpuOwnSlice", SliceBesideSlice(), isolate(0, Isolation::kGpuAlone), {{0, gpu_2 + own}}},
      {"GpuOthersSlice",
       SliceBesideSlice(),
       isolate(1, Isolation::kGpuAlone),
       {{0, gpu_2 + others}}},
      {"GpuAcceptsOtherGpu", CpuBesideWhole(), isolate(1, Isolation::kGpuAlone), {}},
      {"NodeOwn", CpuBesideWhole(), isolate(0, Isolation::kNodeAlone), {{0, node_own}}},
      {"NodeOthers", CpuBesideWhole(), isolate(1, Isolation::kNodeAlone), {{0, node_other}}},
      {"NodeBesideReleasing",
       Nominated(WithOther(BindingCpu(), CpuOnly(1), {}, "b", PodPhase::kReleasing)),
       [](PlanScene& s) {
         s.workload(0).isolation = Isolation::kNodeAlone;
         s.plan.actions[0] = Bind("w", 0, "n1");
       },
       {{0, node_own}}},
      {"NodeBesideReservation",
       WithOther(BindingCpu(), CpuOnly(1), {}, "b", PodPhase::kNominated),
       isolate(1, Isolation::kNodeAlone),
       {{0, node_other}}},
  };
}

class TenantRuleTest : public PlanRuleTest {};
TEST_P(TenantRuleTest, Holds) { Judge(); }
INSTANTIATE_TEST_SUITE_P(Rules, TenantRuleTest, ::testing::ValuesIn(TenantCases()), NameOfCase);

TEST(CheckPlanTest, TenantsAreNamedOrQueues) {
  PlanScene scene = CpuBesideWhole();
  scene.workload(0).isolation = Isolation::kNodeAlone;
  scene.workload(0).tenant = "b";
  EXPECT_THAT(scene.Check(), IsEmpty());
}

TEST(CheckPlanTest, NominationIgnoresReleasingTenant) {
  PlanScene scene = Nominated(
      WithOther(BindingHalf(), Fraction(kHalf), OnShare(0, kHalf), "b", PodPhase::kReleasing));
  scene.workload(0).isolation = Isolation::kGpuAlone;
  EXPECT_THAT(scene.Check(), IsEmpty());
}

}  // namespace
}  // namespace tessera
