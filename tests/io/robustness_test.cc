// Whatever a file holds, reading it ends with a snapshot or an error that says why.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tessera/io/plan_json.h"
#include "tessera/io/snapshot_json.h"
#include "tests/io/full_snapshot.h"

namespace tessera {
namespace {

// Small, since every byte of it is replaced by every other.
constexpr std::string_view kSmall = R"({"apiVersion": "tessera/v1", "now": -1,
"nodes": [{"name": "n", "gpu_model": "A30-24GB", "gpus": [{"mig": "static",
  "instances": [{"profile": "1g.6gb", "start": 0}]}, {}]}],
"queues": [{"name": "q", "quota": {"gpu": 1.5}, "weight": 0.5}],
"workloads": [{"name": "w", "queue": "q", "gang": {"pod_sets": [
  {"name": "s", "count": 2, "request": {"cpu": "1m", "mig": "1g.6gb"}}]}, "pods": [
  {"pod_set": "s", "node": "n", "slices": [{"gpu": 0, "profile": "1g.6gb", "start": 0}]}]}]})";

constexpr std::string_view kPlan = R"({"apiVersion": "tessera/v1", "kind": "Plan", "actions": [
  {"do": "evict", "workload": "w", "pod_set": "s", "index": 0, "reason": "r", "for": "v"},
  {"do": "set_mig", "node": "n", "gpu": 1, "enabled": true},
  {"do": "nominate", "workload": "v", "pod_set": "s", "index": 1, "node": "n",
   "shares": [{"gpu": 1, "fraction": 0.5}]}],
"pending": [{"workload": "x", "reason": "gang", "counts": {"a": 1}, "below_minimum": true}]})";

// What is read can be written and read again; what is not is told.
void TrySnapshot(std::string_view json) {
  const absl::StatusOr<Snapshot> snapshot = ParseSnapshot(json);
  if (snapshot.ok()) {
    const absl::StatusOr<Snapshot> again = ParseSnapshot(WriteSnapshot(*snapshot));
    ASSERT_TRUE(again.ok()) << json << "\n" << again.status();
    ASSERT_TRUE(*again == *snapshot) << json;
  } else {
    ASSERT_EQ(snapshot.status().code(), absl::StatusCode::kInvalidArgument) << json;
    ASSERT_FALSE(snapshot.status().message().empty()) << json;
  }
}

void TryPlan(std::string_view json) {
  const absl::StatusOr<Plan> plan = ParsePlan(json);
  if (plan.ok()) {
    const absl::StatusOr<Plan> again = ParsePlan(WritePlan(*plan));
    ASSERT_TRUE(again.ok() && *again == *plan) << json;
  } else {
    ASSERT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << json;
    ASSERT_FALSE(plan.status().message().empty()) << json;
  }
}

TEST(RobustnessTest, EveryPrefix) {
  for (size_t n = 0; n < kFullSnapshot.size(); ++n) TrySnapshot(kFullSnapshot.substr(0, n));
  for (size_t n = 0; n < kPlan.size(); ++n) TryPlan(kPlan.substr(0, n));
}

TEST(RobustnessTest, EverySingleByteMutation) {
  for (const bool is_plan : {false, true}) {
    std::string json(is_plan ? kPlan : kSmall);
    for (char& byte : json) {
      const char original = byte;
      for (int value = 0; value < 256; ++value) {
        byte = static_cast<char>(value);
        is_plan ? TryPlan(json) : TrySnapshot(json);
        if (HasFatalFailure()) return;
      }
      byte = original;
    }
  }
}

TEST(RobustnessTest, EveryByteLeftOutOrDoubled) {
  for (size_t i = 0; i < kFullSnapshot.size(); ++i) {
    std::string json(kFullSnapshot);
    json.erase(i, 1);
    TrySnapshot(json);
    json.assign(kFullSnapshot);
    json.insert(i, 1, json[i]);
    TrySnapshot(json);
    if (HasFatalFailure()) return;
  }
}

TEST(RobustnessTest, LongTextsAndManyMembers) {
  const std::string version = R"({"apiVersion": "tessera/v1", )";
  TrySnapshot(version + "\"" + std::string(1 << 20, 'x') + "\": 1}");
  TrySnapshot(version + R"("now": )" + std::string(1 << 20, '9') + "}");
  TrySnapshot(version + R"("queues": [{"name": "q", "weight": 0.)" + std::string(1 << 20, '0') +
              "1}]}");
  std::string labels;
  for (int i = 0; i < 100000; ++i) {
    labels += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
  }
  TrySnapshot(version + R"("nodes": [{"name": "n", "labels": {)" + labels + "}}]}");
  TrySnapshot(version + R"("nodes": [{"name": "n", "labels": {)" + labels + R"(,"7":""}}]})");
}

}  // namespace
}  // namespace tessera
