#include "tessera/io/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::StartsWith;

Plan FullPlan() {
  Plan plan;
  const PodRef pod{"llama", "prefill", 3};
  plan.actions = {
      EvictAction{{"w", "s", 0}, "reclaim", "llama"},
      EvictAction{{"w", "s", 1}, "", ""},
      DestroyAction{"n1", 2, "1g.10gb", 6},
      SetMigAction{"n1", 3, true},
      SetMigAction{"n1", 4, false},
      CreateAction{"n1", 2, "1g.10gb", 5},
      MoveAction{{"x", "s", 0}, "n2", {.gpus = {3}, .shares = {}, .slices = {}}},
      BindAction{pod, "n1", {.gpus = {0, 1}, .shares = {}, .slices = {}}},
      BindAction{pod, "n1", {.gpus = {}, .shares = {}, .slices = {{2, "1g.10gb", 5}}}},
      BindAction{pod, "n1", {}},
      NominateAction{pod, "n1", {.gpus = {}, .shares = {{1, 3500}, {2, 1}}, .slices = {}}},
  };
  plan.pending = {{"big",
                   PendingReason::kInsufficientGpus,
                   "needs \"more\"",
                   {{"too few free GPUs", 840}},
                   true,
                   "the cluster takes 0 of 1 pod"},
                  {"small", PendingReason::kBudgetExhausted, "", {}, false, ""}};
  return plan;
}

TEST(PlanJsonTest, ReadsBackWhatItWrites) {
  for (const Plan& plan : {FullPlan(), Plan()}) {
    const std::string file = WritePlan(plan);
    const absl::StatusOr<Plan> again = ParsePlan(file);
    ASSERT_THAT(again, IsOk()) << file;
    EXPECT_TRUE(*again == plan) << file;
    EXPECT_EQ(WritePlan(*again), file);
  }
}

TEST(PlanJsonTest, ReadsBackEveryReasonAndEveryShare) {
  Plan plan;
  for (int r = 0; r <= static_cast<int>(PendingReason::kBudgetExhausted); ++r) {
    plan.pending.push_back({"w", static_cast<PendingReason>(r), "", {}, false, ""});
  }
  for (int share = 1; share <= 7000; ++share) {
    NominateAction action{{"w", "s", 0}, "n", {}};
    action.devices.shares = {{0, share}};
    plan.actions.push_back(std::move(action));
  }
  EXPECT_THAT(ParsePlan(WritePlan(plan)), IsOkAndHolds(plan));
}

TEST(PlanJsonTest, WritesOneActionPerLine) {
  EXPECT_EQ(WritePlan(FullPlan()), R"({
  "apiVersion": "tessera/v1",
  "kind": "Plan",
  "actions": [
    {"do": "evict", "workload": "w", "pod_set": "s", "index": 0, "reason": "reclaim", "for": "llama"},
    {"do": "evict", "workload": "w", "pod_set": "s", "index": 1},
    {"do": "destroy", "node": "n1", "gpu": 2, "profile": "1g.10gb", "start": 6},
    {"do": "set_mig", "node": "n1", "gpu": 3, "enabled": true},
    {"do": "set_mig", "node": "n1", "gpu": 4, "enabled": false},
    {"do": "create", "node": "n1", "gpu": 2, "profile": "1g.10gb", "start": 5},
    {"do": "move", "workload": "x", "pod_set": "s", "index": 0, "node": "n2", "gpus": [3]},
    {"do": "bind", "workload": "llama", "pod_set": "prefill", "index": 3, "node": "n1", "gpus": [0, 1]},
    {"do": "bind", "workload": "llama", "pod_set": "prefill", "index": 3, "node": "n1", "slices": [{"gpu": 2, "profile": "1g.10gb", "start": 5}]},
    {"do": "bind", "workload": "llama", "pod_set": "prefill", "index": 3, "node": "n1"},
    {"do": "nominate", "workload": "llama", "pod_set": "prefill", "index": 3, "node": "n1", "shares": [{"gpu": 1, "fraction": 0.5}, {"gpu": 2, "fraction": 0.000142}]}
  ],
  "pending": [
    {"workload": "big", "reason": "insufficient_gpus", "text": "needs \"more\"", "proof": "the cluster takes 0 of 1 pod", "counts": {"too few free GPUs": 840}, "below_minimum": true},
    {"workload": "small", "reason": "budget_exhausted"}
  ]
}
)");
}

TEST(PlanJsonTest, NamesWhatIsWrong) {
  const auto action = [](const std::string& members) {
    return R"({"apiVersion": "tessera/v1", "kind": "Plan", "actions": [{)" + members + "}]}";
  };
  const auto pending = [](const std::string& members) {
    return R"({"apiVersion": "tessera/v1", "kind": "Plan", "pending": [{)" + members + "}]}";
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"apiVersion": "tessera/v1"})", "kind: is missing"},
      {R"({"apiVersion": "tessera/v1", "kind": "Snapshot"})",
       R"(kind: must be "Plan", not "Snapshot")"},
      {R"({"apiVersion": "tessera/v1", "kind": "Plan", "action": []})",
       R"(action: is not a known field; did you mean "actions"?)"},
      {action(""), "actions[0].do: is missing"},
      {action(R"("do": "evct")"),
       R"(actions[0].do: must be "evict", "destroy", "set_mig", "create", "move", "bind" or )"
       R"("nominate", not "evct"; did you mean "evict"?)"},
      {action(R"("do": "evict", "workload": "w", "pod_set": "s")"), "actions[0].index: is missing"},
      {action(R"("do": "evict", "workload": "w", "pod_set": "s", "index": 0, "node": "n")"),
       "actions[0].node: is not a known field"},
      {action(R"("do": "create", "node": "n", "gpu": 1.5, "profile": "p", "start": 0)"),
       "actions[0].gpu: must be a whole number, not 1.5"},
      {action(R"("do": "set_mig", "node": "n", "gpu": 0, "enabled": 1)"),
       "actions[0].enabled: must be a boolean, not a number"},
      {action(R"("do": "bind", "workload": "w", "pod_set": "s", "index": 0, "node": "n",
                 "shares": [{"gpu": 0, "fraction": -1}])"),
       R"(actions[0].shares[0].fraction: "-1" is negative)"},
      {pending(R"("workload": "w")"), "pending[0].reason: is missing"},
      {pending(R"("workload": "w", "reason": "why")"),
       R"(pending[0].reason: "why" is not a reason)"},
      {pending(R"("workload": "w", "reason": "gang", "counts": {"few": "1"})"),
       "pending[0].counts.few: must be a number, not a string"},
  };
  for (const auto& [json, message] : cases) {
    EXPECT_THAT(ParsePlan(json), StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(message)))
        << json;
  }
}

}  // namespace
}  // namespace tessera
