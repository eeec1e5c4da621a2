#include "tessera/io/snapshot_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tessera/resources/units.h"
#include "tests/io/full_snapshot.h"
#include "tests/io/random_spec.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

SnapshotSpec Parse(const std::string& members) {
  absl::StatusOr<SnapshotSpec> spec =
      ParseSnapshotSpec(R"({"apiVersion": "tessera/v1", )" + members + "}");
  EXPECT_THAT(spec, IsOk());
  return spec.ok() ? *std::move(spec) : SnapshotSpec();
}

Request ParseRequest(const std::string& members) {
  return Parse(R"("workloads": [{"name": "w", "gang": {"pod_sets": [
      {"name": "s", "request": {)" +
               members + "}}]}}]")
      .workloads.at(0)
      .gang.pod_sets.at(0)
      .request;
}

Queue ParseQueue(const std::string& members) {
  return Parse(R"("queues": [{"name": "q", )" + members + "}]").queues.at(0);
}

// A snapshot equals what its file says, and the file of that is the same file.
void ExpectRoundTrip(const Snapshot& snapshot) {
  const std::string file = WriteSnapshot(snapshot);
  const absl::StatusOr<Snapshot> again = ParseSnapshot(file);
  ASSERT_THAT(again, IsOk()) << file;
  EXPECT_TRUE(*again == snapshot) << file;
  EXPECT_EQ(WriteSnapshot(*again), file);
}

TEST(SnapshotJsonTest, ReadsBackWhatItWrites) {
  const absl::StatusOr<Snapshot> full = ParseSnapshot(kFullSnapshot);
  ASSERT_THAT(full, IsOk());
  ExpectRoundTrip(*full);
  const absl::StatusOr<Snapshot> empty = ParseSnapshot(R"({"apiVersion": "tessera/v1"})");
  ASSERT_THAT(empty, IsOk());
  ExpectRoundTrip(*empty);
}

TEST(SnapshotJsonTest, ReadsBackRandomSnapshots) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const absl::StatusOr<Snapshot> snapshot = Snapshot::Create(RandomSpec(seed).Make());
    ASSERT_THAT(snapshot, IsOk()) << "seed " << seed;
    ExpectRoundTrip(*snapshot);
  }
}

TEST(SnapshotJsonTest, OrderOfSetsLeavesNoTrace) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SnapshotSpec spec = RandomSpec(seed).Make();
    const absl::StatusOr<Snapshot> given = Snapshot::Create(spec);
    ASSERT_THAT(given, IsOk());
    std::ranges::reverse(spec.nodes);
    std::ranges::reverse(spec.queues);
    std::ranges::reverse(spec.workloads);
    for (Workload& w : spec.workloads) std::ranges::reverse(w.pods);
    const absl::StatusOr<Snapshot> reversed = Snapshot::Create(spec);
    ASSERT_THAT(reversed, IsOk());
    EXPECT_EQ(WriteSnapshot(*given), WriteSnapshot(*reversed));
  }
}

TEST(SnapshotJsonTest, WritesOneNounPerLine) {
  const absl::StatusOr<Snapshot> snapshot = ParseSnapshot(R"({"apiVersion": "tessera/v1",
      "now": -5, "topology": {"levels": ["rack"]},
      "nodes": [{"name": "b", "gpu_model": "H100-80GB", "gpus": 8, "mig": "dynamic",
                 "capacity": {"cpu": "1500m", "memory": "1Ti", "pods": 110}},
                {"name": "a", "labels": {"z": "\"1\"", "y": "\u00e9"}}],
      "queues": [{"name": "q", "quota": 4, "limit": "unlimited", "weight": 0.125}],
      "workloads": [{"name": "w", "queue": "q", "priority": 50, "gang": {"pod_sets": [
          {"name": "s", "count": 1, "request": {"gpu_fraction": 0.3, "memory": 1048577}}]}}]})");
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_EQ(WriteSnapshot(*snapshot), R"({
  "apiVersion": "tessera/v1",
  "kind": "Snapshot",
  "now": -5,
  "topology": {
    "levels": ["rack"]
  },
  "nodes": [
    {"name": "a", "labels": {"y": "é", "z": "\"1\""}},
    {"name": "b", "capacity": {"cpu": 1.5, "memory": "1024Gi", "pods": 110}, )"
                                      R"("gpu_model": "H100-80GB", "gpus": 8, "mig": "dynamic"}
  ],
  "queues": [
    {"name": "q", "quota": {"gpu": 4}, "limit": "unlimited", "weight": 0.125}
  ],
  "workloads": [
    {"name": "w", "queue": "q", "gang": {"pod_sets": [{"name": "s", )"
                                      R"("request": {"memory": 1048577, "gpu_fraction": 0.3}}]}}
  ]
}
)");
}

TEST(SnapshotJsonTest, IllFormedBytesComeOutAsReplacementCharacters) {
  SnapshotSpec spec;
  spec.nodes.resize(1);
  spec.nodes[0].name = "a\xff";
  const absl::StatusOr<Snapshot> snapshot = Snapshot::Create(spec);
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_THAT(WriteSnapshot(*snapshot), HasSubstr("\"a\xef\xbf\xbd\""));
}

TEST(SnapshotJsonTest, RequestsRoundUpAndOffersDown) {
  // 1/3 of a device is 2333.3 units, a tenth of a millicore is none or one.
  EXPECT_EQ(ParseRequest(R"("gpu_fraction": 0.33333333)").gpu.share, 2334);
  EXPECT_EQ(ParseRequest(R"("cpu": 0.0001)").cpu, 1);
  EXPECT_EQ(ParseRequest(R"("cpu": "250m")").cpu, 250);
  EXPECT_EQ(ParseRequest(R"("nvidia.com/ib": 0.5)").extended.at("nvidia.com/ib"), 1);
  const SnapshotSpec spec = Parse(R"("nodes": [{"name": "n", "capacity": {"cpu": 0.0019,
      "memory": "1.5"}, "reserved": {"cpu": 0.0019}}])");
  EXPECT_EQ(spec.nodes[0].capacity.cpu, 1);
  EXPECT_EQ(spec.nodes[0].capacity.memory, 1);
  EXPECT_EQ(spec.nodes[0].reserved.cpu, 1);
  EXPECT_EQ(ParseQueue(R"("quota": {"gpu": 0.33333333})").quota.by_name.at("gpu"), 2333);
}

TEST(SnapshotJsonTest, DecimalsAreExact) {
  // As doubles these would be off by one: 2^53 + 1, and 0.1 + 0.2 in units of a device.
  EXPECT_EQ(ParseRequest(R"("memory": 9007199254740993)").memory, 9007199254740993);
  EXPECT_EQ(ParseRequest(R"("memory": 9007199254740993.0)").memory, 9007199254740993);
  EXPECT_EQ(ParseRequest(R"("gpu_fraction": 0.3)").gpu.share, 2100);
  EXPECT_EQ(ParseRequest(R"("memory": 1.5e3)").memory, 1500);
  EXPECT_EQ(ParseQueue(R"("weight": 0.001)").weight.all, 1);
}

TEST(SnapshotJsonTest, GpuRequests) {
  EXPECT_EQ(ParseRequest(R"("gpu": 0)").gpu, GpuRequest());
  EXPECT_EQ(ParseRequest(R"("gpu": 0, "mig": "1g.5gb")").gpu, GpuRequest::Profile("1g.5gb"));
  EXPECT_EQ(ParseRequest(R"("mig": ["2g.10gb", "1g.5gb"])").gpu,
            GpuRequest::Profiles({"2g.10gb", "1g.5gb"}));
  EXPECT_TRUE(ParseRequest(R"("mig": "1g.5gb", "allow_larger": true)").gpu.allow_larger);
  EXPECT_TRUE(ParseRequest(R"("slice": {"memory": 1}, "allow_larger": true)").gpu.allow_larger);
  EXPECT_EQ(ParseRequest(R"("gpu": "2")").gpu, GpuRequest::Whole(2));
  EXPECT_EQ(ParseRequest(R"("gpu_fraction": 0.5)").gpu, GpuRequest::Fraction(3500));
  EXPECT_EQ(ParseRequest(R"("gpu_fraction": 1, "gpu_devices": 4)").gpu,
            GpuRequest::Fraction(7000, 4));
  EXPECT_EQ(ParseRequest(R"("gpu_memory": "4Gi", "gpu_devices": 2)").gpu,
            GpuRequest::Memory(4 * kBytesPerGiB, 2));
  EXPECT_EQ(ParseRequest(R"("slice": {"memory": "18Gi", "compute": "2/7"})").gpu,
            GpuRequest::Requirement({18 * kBytesPerGiB, 2, 7}));
  EXPECT_EQ(ParseRequest(R"("slice": {"compute": 0.25})").gpu, GpuRequest::Requirement({0, 1, 4}));
  EXPECT_EQ(ParseRequest(R"("slice": {"compute": 1})").gpu, GpuRequest::Requirement({0, 1, 1}));
}

TEST(SnapshotJsonTest, ExtendedResources) {
  EXPECT_THAT(ParseRequest(R"("disk": 1, "example.com/gpus": 2, "extended": {"gpus": 3})").extended,
              UnorderedElementsAre(Pair("disk", 1), Pair("example.com/gpus", 2), Pair("gpus", 3)));
}

TEST(SnapshotJsonTest, QueueAmounts) {
  EXPECT_EQ(ParseQueue(R"("quota": "unlimited")").quota.all, kUnlimited);
  EXPECT_EQ(ParseQueue(R"("quota": 0)").quota.all, 0);
  const ResourceAmounts gpus = ParseQueue(R"("limit": 2.5)").limit;
  EXPECT_EQ(gpus.all, std::nullopt);
  EXPECT_THAT(gpus.by_name, ElementsAre(Pair("gpu", 17500)));
  const Queue q = ParseQueue(R"("quota": {"cpu": 2, "memory": "1Ki", "gpu": "unlimited",
      "gpu:H100": 1, "*": 3, "x/y": 4}, "weight": {"*": 2, "gpu": 0.5},
      "usage": {"gpu": 1.5, "cpu": 2}, "priority": 7)");
  EXPECT_EQ(q.quota.all, 3);
  EXPECT_THAT(q.quota.by_name,
              UnorderedElementsAre(Pair("cpu", 2000), Pair("memory", 1024), Pair("gpu", kUnlimited),
                                   Pair("gpu:H100", 7000), Pair("x/y", 4)));
  EXPECT_EQ(q.weight.all, 2000);
  EXPECT_THAT(q.weight.by_name, ElementsAre(Pair("gpu", 500)));
  EXPECT_THAT(q.usage, UnorderedElementsAre(Pair("gpu", 10500), Pair("cpu", 2000)));
  EXPECT_EQ(q.priority, 7);
}

TEST(SnapshotJsonTest, GpusOfANode) {
  const SnapshotSpec spec = Parse(R"("nodes": [
      {"name": "count", "gpus": 2, "mig": "dynamic"},
      {"name": "list", "mig": "static", "gpus": [{}, {"mig": "off", "healthy": false},
          {"instances": [{"profile": "1g.5gb", "start": 3}], "mig_enabled": true}]}])");
  Gpu gpu;
  gpu.mig = MigMode::kDynamic;
  EXPECT_THAT(spec.nodes[0].gpus, ElementsAre(gpu, gpu));
  ASSERT_EQ(spec.nodes[1].gpus.size(), 3u);
  EXPECT_EQ(spec.nodes[1].gpus[0].mig, MigMode::kStatic);
  EXPECT_EQ(spec.nodes[1].gpus[1].mig, MigMode::kOff);
  EXPECT_FALSE(spec.nodes[1].gpus[1].healthy);
  EXPECT_EQ(spec.nodes[1].gpus[2].mig, MigMode::kStatic);
  EXPECT_THAT(spec.nodes[1].gpus[2].instances, ElementsAre(GpuInstance{"1g.5gb", 3}));
  EXPECT_EQ(spec.nodes[1].gpus[2].mig_enabled, true);
}

TEST(SnapshotJsonTest, Selectors) {
  const Selector selector = Parse(R"("workloads": [{"name": "w", "gang": {"pod_sets": [
      {"name": "s", "selector": {"a": "1", "b": ["1", "2"], "c": {"not_in": ["3"]},
                                 "d": {"exists": false}}}]}}])")
                                .workloads[0]
                                .gang.pod_sets[0]
                                .selector;
  EXPECT_THAT(selector, ElementsAre(SelectorTerm{"a", SelectorOperator::kIn, {"1"}},
                                    SelectorTerm{"b", SelectorOperator::kIn, {"1", "2"}},
                                    SelectorTerm{"c", SelectorOperator::kNotIn, {"3"}},
                                    SelectorTerm{"d", SelectorOperator::kDoesNotExist, {}}));
}

TEST(SnapshotJsonTest, WithoutQueuesThereIsOne) {
  const absl::StatusOr<Snapshot> snapshot = ParseSnapshot(R"({"apiVersion": "tessera/v1",
      "workloads": [{"name": "w", "gang": {"pod_sets": [{"name": "s"}]}}]})");
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_EQ(snapshot->workload(WorkloadId(0)).queue, "default");
  ExpectRoundTrip(*snapshot);
}

TEST(SnapshotJsonTest, ByteOrderMarkAndWhitespaceAreIgnored) {
  EXPECT_THAT(ParseSnapshot("\xef\xbb\xbf\r\n{\"apiVersion\"\t:\r\"tessera/v1\"} \n"), IsOk());
}

}  // namespace
}  // namespace tessera
