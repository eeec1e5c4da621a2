#include "tessera/cluster/charge.h"

#include <gmock/gmock.h>

#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

constexpr auto kBySlices = MigCharge::kByComputeSlices;
constexpr auto kWholeG = MigCharge::kWholeG;
constexpr int64_t kH100 = 80 * kBytesPerGiB;
constexpr int64_t kA30 = 24 * kBytesPerGiB;

// One node of H100-80GB and one of A30-24GB, and one pod of `request`.
Snapshot TwoModels(Request request, std::vector<std::string> allowed = {}) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("a30", 2, "A30-24GB"), MakeNode("h100", 2)};
  spec.queues = {MakeQueue("q")};
  spec.queues[0].quota.by_name = {{"gpu:H100", 0}, {"gpu:A30", 0}};
  spec.workloads = {MakeWorkload("w", "q", {MakePodSet("s", 1, std::move(request))})};
  spec.workloads[0].gang.pod_sets[0].gpu_models = std::move(allowed);
  return CreateOrDie(std::move(spec));
}

int64_t Of(const Snapshot& snapshot, const ResourceVector& amounts, const std::string& name) {
  return amounts[*snapshot.resources().Find(name)];
}

PodPlacement At(const Snapshot& snapshot, const std::string& node, uint64_t gpus, int32_t share = 0,
                int profile = -1) {
  PodPlacement placement;
  placement.node = *snapshot.FindNode(node);
  placement.gpus = gpus;
  placement.share = share;
  placement.profile = static_cast<int16_t>(profile);
  return placement;
}

int ProfileOf(const Snapshot& snapshot, const std::string& node, const std::string& profile) {
  return *snapshot.model(snapshot.node_model(*snapshot.FindNode(node))).FindProfile(profile);
}

TEST(ChargeOfTest, CpuOnly) {
  const Snapshot snapshot = TwoModels(CpuOnly(3));
  const ResourceVector charge =
      ChargeOf(snapshot, RequestClassId(0), At(snapshot, "h100", 0), kBySlices);
  EXPECT_EQ(charge[kCpu], Cores(3));
  EXPECT_EQ(charge[kPods], 1);
  EXPECT_EQ(charge[kGpu], 0);
}

TEST(ChargeOfTest, WholeGpus) {
  const Snapshot snapshot = TwoModels(WholeGpus(2));
  const ResourceVector charge =
      ChargeOf(snapshot, RequestClassId(0), At(snapshot, "h100", 3), kBySlices);
  EXPECT_EQ(charge[kGpu], Gpus(2));
  EXPECT_EQ(charge[kGpuMemory], 2 * kH100);
  EXPECT_EQ(Of(snapshot, charge, "gpu:H100"), Gpus(2));
  EXPECT_EQ(Of(snapshot, charge, "gpu:A30"), 0);
}

TEST(ChargeOfTest, FractionOfBoth) {
  const Snapshot snapshot = TwoModels(Fraction(1));
  const ResourceVector charge =
      ChargeOf(snapshot, RequestClassId(0), At(snapshot, "a30", 1, 1), kBySlices);
  EXPECT_EQ(charge[kGpu], 1);
  EXPECT_EQ(charge[kGpuMemory], (kA30 + 6999) / 7000);  // rounded up
  EXPECT_EQ(Of(snapshot, charge, "gpu:A30"), 1);
}

TEST(ChargeOfTest, MemoryIsChargedAsAskedFor) {
  const Snapshot snapshot = TwoModels(WithGpu(GpuRequest::Memory(kBytesPerGiB + 1, 2)));
  const ModelId h100 = snapshot.node_model(*snapshot.FindNode("h100"));
  const int64_t share =
      snapshot.request_class(RequestClassId(0)).models[static_cast<size_t>(h100.value())].share;
  EXPECT_EQ(share, 7000 / 80 + 1);
  const ResourceVector charge = ChargeOf(
      snapshot, RequestClassId(0), At(snapshot, "h100", 3, static_cast<int32_t>(share)), kBySlices);
  EXPECT_EQ(charge[kGpu], 2 * share);
  EXPECT_EQ(charge[kGpuMemory], 2 * (kBytesPerGiB + 1));
}

TEST(ChargeOfTest, Slices) {
  const struct {
    const char* node;
    const char* profile;
    int64_t gpu;
    int64_t memory;
    int64_t whole_g;
  } kCases[] = {
      {"h100", "1g.10gb", 1000, kH100 / 8, Gpus(1)}, {"h100", "1g.10gb+me", 1000, kH100 / 8, 0},
      {"h100", "1g.20gb", 1000, kH100 / 4, Gpus(1)}, {"h100", "3g.40gb", 3000, kH100 / 2, Gpus(3)},
      {"h100", "4g.40gb", 4000, kH100 / 2, Gpus(4)}, {"h100", "7g.80gb", 7000, kH100, Gpus(7)},
      {"a30", "1g.6gb", 1750, kA30 / 4, Gpus(1)},    {"a30", "2g.12gb", 3500, kA30 / 2, Gpus(2)},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.profile);
    const Snapshot snapshot = TwoModels(SliceOfProfile(test.profile));
    const PodPlacement placement =
        At(snapshot, test.node, 1, 0, ProfileOf(snapshot, test.node, test.profile));
    const ResourceVector charge = ChargeOf(snapshot, RequestClassId(0), placement, kBySlices);
    EXPECT_EQ(charge[kGpu], test.gpu);
    EXPECT_EQ(charge[kGpuMemory], test.memory);
    EXPECT_EQ(ChargeOf(snapshot, RequestClassId(0), placement, kWholeG)[kGpu], test.whole_g);
  }
}

TEST(ChargeOfTest, WhatIsHeldIsCharged) {
  const Snapshot snapshot = TwoModels(SliceOfProfile("1g.10gb"));
  const int larger = ProfileOf(snapshot, "h100", "2g.20gb");
  EXPECT_EQ(
      ChargeOf(snapshot, RequestClassId(0), At(snapshot, "h100", 1, 0, larger), kBySlices)[kGpu],
      2000);
}

TEST(ExpectedChargeTest, LeastOverModels) {
  SliceRequirement requirement;
  requirement.memory = 5 * kBytesPerGiB;
  const Snapshot snapshot = TwoModels(WithGpu(GpuRequest::Requirement(requirement)));
  // 1g.10gb of an H100, or 1g.6gb of an A30, which is a quarter of it.
  const ResourceVector charge = ExpectedCharge(snapshot, RequestClassId(0), kBySlices);
  EXPECT_EQ(charge[kGpu], 1000);
  EXPECT_EQ(charge[kGpuMemory], kA30 / 4);
  EXPECT_EQ(Of(snapshot, charge, "gpu:H100"), 0);
  EXPECT_EQ(Of(snapshot, charge, "gpu:A30"), 0);
}

TEST(ExpectedChargeTest, ModelCountsWhenItIsTheOnlyOne) {
  const Snapshot snapshot = TwoModels(WholeGpus(1), {"A30"});
  const ResourceVector charge = ExpectedCharge(snapshot, RequestClassId(0), kBySlices);
  EXPECT_EQ(charge[kGpu], Gpus(1));
  EXPECT_EQ(charge[kGpuMemory], kA30);
  EXPECT_EQ(Of(snapshot, charge, "gpu:A30"), Gpus(1));
  EXPECT_EQ(Of(snapshot, charge, "gpu:H100"), 0);
}

TEST(ExpectedChargeTest, NoModelServes) {
  const Snapshot snapshot = TwoModels(WholeGpus(1), {"B200"});
  const ResourceVector charge = ExpectedCharge(snapshot, RequestClassId(0), kBySlices);
  EXPECT_EQ(charge[kGpu], 0);
  EXPECT_EQ(charge[kPods], 1);
}

TEST(TotalCapacityTest, WhatQueuesShare) {
  SnapshotSpec spec;
  spec.nodes = {MakeNode("a", 2), MakeNode("b", 2), MakeNode("c", 1)};
  spec.nodes[0].gpus[1].healthy = false;
  spec.nodes[0].reserved.cpu = Cores(4);
  spec.nodes[1].schedulable = false;
  spec.nodes[2].reserved.memory = spec.nodes[2].capacity.memory + 1;
  spec.nodes[2].gpus[0] =
      MakeMigGpu(MigMode::kStatic, {{"3g.40gb", 0}, {"1g.10gb", 4}, {"1g.10gb+me", 5}});
  spec.queues = {MakeQueue("q")};
  spec.queues[0].limit.by_name["gpu:H100"] = Gpus(9);
  const Snapshot snapshot = CreateOrDie(spec);
  const ResourceVector total = TotalCapacity(snapshot, kBySlices);
  EXPECT_EQ(total[kCpu], Cores(64 - 4 + 64));
  EXPECT_EQ(total[kMemory], 512 * kBytesPerGiB);
  EXPECT_EQ(total[kGpu], Gpus(2));
  EXPECT_EQ(total[kGpuMemory], 2 * kH100);
  EXPECT_EQ(Of(snapshot, total, "gpu:H100"), Gpus(2));
  // Whole-G counts the instances that exist.
  EXPECT_EQ(TotalCapacity(snapshot, kWholeG)[kGpu], Gpus(1 + 3 + 1));
}

}  // namespace
}  // namespace tessera
