#ifndef TESSERA_TESTS_IO_MALFORMED_H_
#define TESSERA_TESTS_IO_MALFORMED_H_

// Malformed snapshot files, written as what differs from a valid one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/base/status.h"
#include "tessera/io/snapshot_json.h"

namespace tessera::malformed {

// A file and the message that `ParseSnapshot` gives for it, or the start of it.
struct Case {
  std::string json;
  std::string message;
};

inline std::string File(const std::string& members) {
  return R"({"apiVersion": "tessera/v1", )" + members + "}";
}
inline std::string Model(const std::string& members) {
  return File(R"("gpu_models": [{"name": "M", "memory": "8Gi", )" + members + "}]");
}
inline std::string Profile(const std::string& members) {
  return Model(R"("units": 2, "compute_slices": 2, "memory_slices": 2, "profiles": [{)" + members +
               "}]");
}
inline std::string Nodes(const std::string& nodes) { return File(R"("nodes": [)" + nodes + "]"); }
inline std::string Node(const std::string& members) {
  return Nodes(R"({"name": "n", )" + members + "}");
}
inline std::string Gpus(const std::string& gpus) {
  return Node(R"("gpu_model": "A100-40GB", "gpus": )" + gpus);
}
inline std::string Queues(const std::string& queues) {
  return File(R"("queues": [)" + queues + "]");
}
inline std::string Queue(const std::string& members) {
  return Queues(R"({"name": "q", )" + members + "}");
}
inline std::string Workloads(const std::string& workloads) {
  return File(R"("workloads": [)" + workloads + "]");
}
inline std::string Workload(const std::string& members) {
  return Workloads(R"({"name": "w", "gang": {"pod_sets": [{"name": "s"}]}, )" + members + "}");
}
inline std::string Gang(const std::string& members) {
  return Workloads(R"({"name": "w", "gang": {)" + members + "}}");
}
inline std::string PodSets(const std::string& sets) {
  return Gang(R"("pod_sets": [)" + sets + "]");
}
inline std::string PodSet(const std::string& members) {
  return PodSets(R"({"name": "s", )" + members + "}");
}
inline std::string Request(const std::string& members) {
  return PodSet(R"("request": {)" + members + "}");
}

// `pods` on a node with three GPUs: the first holds two 1g.5gb, the others nothing.
inline std::string Pods(const std::string& pods) {
  return File(R"("nodes": [{"name": "n", "gpu_model": "A100-40GB", "mig": "dynamic", "gpus": [
      {"instances": [{"profile": "1g.5gb", "start": 0}, {"profile": "1g.5gb", "start": 1}]},
      {}, {}]}],
    "workloads": [{"name": "w", "gang": {"pod_sets": [
      {"name": "whole", "count": 4, "request": {"gpu": 1}},
      {"name": "half", "count": 4, "request": {"gpu_fraction": 0.5}},
      {"name": "slice", "count": 4, "request": {"mig": "1g.5gb"}},
      {"name": "cpu", "count": 4}]}, "pods": [)" +
              pods + "]}]");
}

inline void ExpectMessages(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const absl::StatusOr<Snapshot> snapshot = ParseSnapshot(c.json);
    EXPECT_EQ(snapshot.status().code(), absl::StatusCode::kInvalidArgument) << c.json;
    EXPECT_THAT(std::string(ToStd(snapshot.status().message())), ::testing::StartsWith(c.message))
        << c.json;
  }
}

}  // namespace tessera::malformed

#endif  // TESSERA_TESTS_IO_MALFORMED_H_
