#include "tessera/io/openb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tessera/resources/units.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kNodes[] =
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "node-0,64000,262144,2,P100\n"
    "node-1,32000,131072,0,\n"
    "node-2,96000,786432,8,G2\n";

constexpr char kPodHeader[] =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n";

TEST(OpenbTest, NodesAndPods) {
  const absl::StatusOr<SnapshotSpec> spec = ImportOpenb(
      kNodes, std::string(kPodHeader) +
                  "pod-0,12000,16384,1,1000,,LS,Running,0,12537496,0\n"
                  "pod-1,6000,12288,1,460,V100M32|G2|V100M32,LS,Failed,427061,12902960,427061\n"
                  "pod-2,500,1,0,0,,BE,Pending,,,\n"
                  "pod-3,1,2,8,1000,T4,LS,Succeeded,7,8,9\n");
  ASSERT_THAT(spec, IsOk());
  ASSERT_EQ(spec->nodes.size(), 3u);
  EXPECT_EQ(spec->nodes[0].capacity.cpu, 64000);
  EXPECT_EQ(spec->nodes[0].capacity.memory, 256 * kBytesPerGiB);
  EXPECT_EQ(spec->nodes[0].gpus.size(), 2u);
  EXPECT_EQ(spec->nodes[0].gpu_model, "P100");
  EXPECT_THAT(spec->nodes[1].gpus, IsEmpty());
  ASSERT_EQ(spec->gpu_models.size(), 2u);
  EXPECT_EQ(spec->gpu_models[0].name, "G2");
  EXPECT_EQ(spec->gpu_models[1].memory_bytes, 16 * kBytesPerGiB);
  ASSERT_EQ(spec->workloads.size(), 4u);
  const auto set = [&spec](size_t i) { return spec->workloads[i].gang.pod_sets.at(0); };
  EXPECT_EQ(set(0).name, "pod");
  EXPECT_EQ(set(0).count, 1);
  EXPECT_EQ(set(0).request.cpu, 12000);
  EXPECT_EQ(set(0).request.memory, 16 * kBytesPerGiB);
  EXPECT_EQ(set(0).request.gpu, GpuRequest::Whole(1));
  EXPECT_EQ(set(1).request.gpu, GpuRequest::Fraction(3220));
  EXPECT_THAT(set(1).gpu_models, ElementsAre("G2", "V100M32"));
  EXPECT_EQ(set(2).request.gpu, GpuRequest());
  EXPECT_EQ(set(3).request.gpu, GpuRequest::Whole(8));
  EXPECT_EQ(spec->workloads[1].submitted, 427061);
  EXPECT_EQ(spec->workloads[2].submitted, 0);
  EXPECT_EQ(spec->workloads[2].queue, "default");
  EXPECT_THAT(Snapshot::Create(*spec), IsOk());
}

TEST(OpenbTest, ColumnsAreFoundByNameAndLinesMayEndInCrLf) {
  const absl::StatusOr<SnapshotSpec> spec =
      ImportOpenb("model,gpu,rack,memory_mib,cpu_milli,sn\r\nT4,4,r1,1024,8000,n\r\n",
                  "creation_time,gpu_spec,gpu_milli,num_gpu,memory_mib,cpu_milli,name\r\n"
                  "5,,250,1,512,1000,p");
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->nodes[0].name, "n");
  EXPECT_EQ(spec->nodes[0].gpus.size(), 4u);
  EXPECT_EQ(spec->workloads[0].name, "p");
  EXPECT_EQ(spec->workloads[0].submitted, 5);
  EXPECT_EQ(spec->workloads[0].gang.pod_sets[0].request.gpu, GpuRequest::Fraction(1750));
}

TEST(OpenbTest, NamesWhatIsWrongInTheNodes) {
  const std::string header = "sn,cpu_milli,memory_mib,gpu,model\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", R"(nodes: line 1: there is no column "sn")"},
      {"sn,cpu,memory_mib,gpu,model\n", R"(nodes: line 1: there is no column "cpu_milli")"},
      {"sn,cpu_milli,memory_mb,gpu,model\n",
       R"(nodes: line 1: there is no column "memory_mib"; did you mean "memory_mb"?)"},
      {"sn,cpu_milli,memory_mib,gpu,gpu,model\n", R"(nodes: line 1: two columns are named "gpu")"},
      {header + "a,1,1,0,\nb,1,1,0\n", "nodes: line 3: has 4 values, the first line 5"},
      {header + "a,1,1,0,\n\n", "nodes: line 3: has 1 values, the first line 5"},
      {header + "a,-1,1,0,\n", R"(nodes: line 2, column cpu_milli: "-1" is not a whole number)"},
      {header + "a,1,1.5,0,\n", R"(nodes: line 2, column memory_mib: "1.5" is not a whole number)"},
      {header + "a,1,,0,\n", R"(nodes: line 2, column memory_mib: "" is not a whole number)"},
      {header + "a,1,99999999999999999999,0,\n",
       "nodes: line 2, column memory_mib: 99999999999999999999 is above 2199023255552"},
      {header + "a,1,1,65,T4\n", "nodes: line 2, column gpu: 65 is above 64"},
      {header + "a,1,1,1,\n", "nodes: line 2, column model: is empty on a node with GPUs"},
      {header + "a,1,1,1,V100M61\n",
       R"(nodes: line 2, column model: "V100M61" is not a model of the trace; )"
       R"(did you mean "V100M16"?)"},
  };
  for (const auto& [nodes, message] : cases) {
    EXPECT_THAT(ImportOpenb(nodes, kPodHeader),
                StatusIs(absl::StatusCode::kInvalidArgument, message));
  }
}

TEST(OpenbTest, NamesWhatIsWrongInThePods) {
  const std::string header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"name,cpu_milli,memory_mib,num_gpu,gpu_milli\n",
       R"(pods: line 1: there is no column "gpu_spec")"},
      {header + "p,1,1,1,1001,,\n", "pods: line 2, column gpu_milli: 1001 is above 1000"},
      {header + "p,1,1,1,0,,\n", "pods: line 2, column gpu_milli: is 0 beside one GPU"},
      {header + "p,1,1,x,0,,\n", R"(pods: line 2, column num_gpu: "x" is not a whole number)"},
      {header + "p,1,1,1,500,T4||P100,\n",
       R"(pods: line 2, column gpu_spec: "" is not a model of the trace)"},
      {header + "p,1,1,1,500,T4|H100,\n",
       R"(pods: line 2, column gpu_spec: "H100" is not a model of the trace)"},
      {header + "p,1,1,0,0,,yesterday\n",
       R"(pods: line 2, column creation_time: "yesterday" is not a whole number)"},
  };
  for (const auto& [pods, message] : cases) {
    EXPECT_THAT(ImportOpenb(kNodes, pods),
                StatusIs(absl::StatusCode::kInvalidArgument, ::testing::StartsWith(message)));
  }
}

}  // namespace
}  // namespace tessera
