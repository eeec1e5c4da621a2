#include "tessera/replicas/plan_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/base/status.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

RequiredReplicas Required(int64_t prefill, int64_t decode) {
  RequiredReplicas required;
  required.counts = ReplicaCounts{prefill, decode};
  return required;
}

RequiredReplicas Unknown(RequirementReason prefill, RequirementReason decode) {
  RequiredReplicas required;
  required.prefill = prefill;
  required.decode = decode;
  return required;
}

// Prefill engines of 2 GPUs, decode engines of 4, at least one of each, no delays.
class PlanReplicasTest : public testing::Test {
 protected:
  PlanReplicasTest() {
    rules_.gpus = {2, 4};
    rules_.down_delay = 0;
  }

  // A decision at `now_` for a settled service.
  ReplicaPlan Plan(const ReplicaCounts& current, const RequiredReplicas& required,
                   RoleReactions reactions = {}) {
    return Plan({now_, current, current, required, reactions});
  }
  ReplicaPlan Plan(const ReplicaStatus& status) {
    const absl::StatusOr<ReplicaPlan> plan = PlanReplicas(rules_, status, memory_);
    EXPECT_THAT(plan, IsOk());
    if (!plan.ok()) return {};
    memory_ = plan->memory;
    return *plan;
  }

  static std::vector<std::string> Notes(const ReplicaPlan& plan) {
    std::vector<std::string> texts;
    for (const ReplicaNote& note : plan.notes) texts.push_back(Describe(note));
    return texts;
  }

  ReplicaRules rules_;
  ReplicaMemory memory_;
  int64_t now_ = 1000;
};

MATCHER_P2(Are, prefill, decode, "") { return arg == ReplicaCounts({prefill, decode}); }
MATCHER_P(Because, reason, "") { return arg.reason == reason; }

TEST_F(PlanReplicasTest, GrantsWhatIsRequired) {
  const ReplicaPlan plan = Plan({1, 1}, Required(2, 6));
  EXPECT_EQ(plan.outcome, ReplicaOutcome::kGranted);
  EXPECT_THAT(plan.granted, Are(2, 6));
  EXPECT_THAT(plan.transition.steps, ElementsAre(ScalingStep{EngineRole::kPrefill, 1, 2, 8},
                                                 ScalingStep{EngineRole::kDecode, 1, 6, 28}));
  EXPECT_EQ(plan.gpus_before, 6);
  EXPECT_EQ(plan.gpus_after, 28);
  EXPECT_THAT(Notes(plan), ElementsAre("prefill 1 -> 2: required by load, SLA and model",
                                       "decode 1 -> 6: required by load, SLA and model"));
}

TEST_F(PlanReplicasTest, MinimumsHoldWithoutLoad) {
  EXPECT_THAT(Plan({1, 1}, Required(0, 0)).granted, Are(1, 1));
  rules_.minimum = {0, 0};
  EXPECT_THAT(Plan({1, 1}, Required(0, 0)).granted, Are(0, 0)) << "an intentional zero";
}

TEST_F(PlanReplicasTest, AnAggregatedServiceHasOneRole) {
  rules_.mode = ServiceMode::kAggregated;
  rules_.gpus = {0, 4};
  rules_.max_gpus = 23;
  rules_.min_gpus = 8;
  EXPECT_THAT(Plan({0, 2}, Required(0, 6)).granted, Are(0, 5));
  EXPECT_THAT(Plan({0, 2}, Required(0, 1)).granted, Are(0, 2)) << "the floor";
}

// --- The budget -------------------------------------------------------------------

TEST_F(PlanReplicasTest, BudgetRowsOfTheWorkedExample) {
  struct Row {
    int64_t ceiling;
    ReplicaCounts from_start, from_full;
  };
  // See engine_budget_test.cc for Dynamo's answers. A service that holds (2, 6) is above
  // the ceiling and shrinks to the same counts.
  for (const Row& row : {Row{28, {2, 6}, {2, 6}}, Row{23, {2, 4}, {2, 4}}, Row{22, {2, 4}, {2, 4}},
                         Row{20, {2, 4}, {2, 4}}, Row{8, {1, 1}, {1, 1}}}) {
    SCOPED_TRACE(row.ceiling);
    rules_.max_gpus = row.ceiling;
    EXPECT_EQ(Plan({1, 1}, Required(2, 6)).granted, row.from_start);
    const ReplicaPlan plan = Plan({2, 6}, Required(2, 6));
    EXPECT_EQ(plan.granted, row.from_full);
    EXPECT_LE(plan.gpus_after, row.ceiling);
    EXPECT_EQ(plan.transition.peak_gpus, 28) << "what is held when the ceiling comes down";
    EXPECT_EQ(plan.outcome,
              row.ceiling == 28 ? ReplicaOutcome::kGranted : ReplicaOutcome::kLimited);
  }
}

TEST_F(PlanReplicasTest, AnInfeasibleBudgetIsAnAnswer) {
  rules_.max_gpus = 5;
  // Nothing grows; what runs shrinks to the minimums and no further: whether the service
  // should end is not ours to say. Dynamo makes it (1, 1), 6 GPUs, or (0, 0).
  ReplicaPlan plan = Plan({2, 6}, Required(2, 6));
  EXPECT_EQ(plan.outcome, ReplicaOutcome::kInfeasible);
  EXPECT_THAT(plan.granted, Are(1, 1));
  EXPECT_THAT(Notes(plan), Contains("the minimums alone exceed the ceiling of GPUs (6 GPUs "
                                    "against 5)"));
  plan = Plan({0, 1}, Required(2, 6));
  EXPECT_EQ(plan.outcome, ReplicaOutcome::kInfeasible);
  EXPECT_THAT(plan.granted, Are(0, 1)) << "a hold";
  EXPECT_THAT(plan.transition.steps, IsEmpty());
}

TEST_F(PlanReplicasTest, ACeilingAloneSwapsNoRoles) {
  rules_.max_gpus = 23;
  // From nothing (2, 4) serves most; what runs is not swapped for it.
  EXPECT_THAT(Plan({1, 5}, Required(2, 6)).granted, Are(1, 5));
  EXPECT_THAT(Plan({2, 4}, Required(2, 6)).granted, Are(2, 4));
  EXPECT_THAT(Plan({1, 5}, Required(2, 4)).granted, Are(2, 4)) << "a swap that is required";
}

TEST_F(PlanReplicasTest, ACeilingRaisesNoCount) {
  rules_.gpus = {8, 1};
  rules_.max_gpus = 20;
  rules_.max_step = 100;
  EXPECT_THAT(Plan({10, 1}, Required(10, 1)).granted, Are(2, 1));
}

TEST_F(PlanReplicasTest, TheFloorKeepsWhatRunsAndThenGrows) {
  rules_.min_gpus = 28;
  rules_.max_gpus = 28;
  ReplicaPlan plan = Plan({2, 6}, Required(2, 5));
  EXPECT_THAT(plan.granted, Are(2, 6)) << "at the floor nothing only shrinks";
  EXPECT_EQ(plan.outcome, ReplicaOutcome::kLimited);
  EXPECT_THAT(plan.notes, Contains(Because(ReplicaReason::kFloor)));
  EXPECT_THAT(Plan({2, 6}, Required(4, 5)).granted, Are(4, 5)) << "a swap may";
  rules_.min_gpus = 56;
  rules_.max_gpus = kUnlimited;
  EXPECT_THAT(Plan({2, 6}, Required(2, 6)).granted, Are(4, 12));
  rules_.max_step = 2;
  plan = Plan({2, 6}, Required(2, 6));
  EXPECT_THAT(plan.granted, Are(4, 8)) << "two engines of each role at a time";
  EXPECT_THAT(Notes(plan),
              Contains("the floor of GPUs cannot be reached now (56 GPUs against 40)"));
}

// --- Reactions --------------------------------------------------------------------

TEST_F(PlanReplicasTest, AReactionActsAboveWhatIsRequired) {
  using enum Reaction;
  struct Row {
    Reaction reaction;
    int64_t required, decode;
  };
  for (const Row& row : {Row{kNone, 3, 3}, Row{kStay, 3, 5}, Row{kDown, 3, 4}, Row{kDown, 5, 5},
                         Row{kUp, 3, 6}, Row{kUp, 9, 9}, Row{kStay, 9, 9}}) {
    EXPECT_THAT(Plan({2, 5}, Required(2, row.required), {kNone, row.reaction}).granted,
                Are(2, row.decode))
        << ToString(row.reaction) << " and " << row.required;
  }
}

TEST_F(PlanReplicasTest, AReactionStandsInForAModelThatIsNotReady) {
  const RequiredReplicas none =
      Unknown(RequirementReason::kModelNotReady, RequirementReason::kModelNotReady);
  const ReplicaPlan plan = Plan({2, 5}, none, {Reaction::kDown, Reaction::kUp});
  EXPECT_THAT(plan.granted, Are(1, 6));
  EXPECT_EQ(plan.outcome, ReplicaOutcome::kGranted);
}

TEST_F(PlanReplicasTest, AReactionOfAFleetThatChangesOnlyKeeps) {
  const ReplicaCounts expected{2, 5};
  for (const ReplicaCounts& ready : {ReplicaCounts{2, 4}, ReplicaCounts{2, 6}}) {
    for (const Reaction reaction : {Reaction::kUp, Reaction::kDown}) {
      EXPECT_THAT(
          Plan({now_, expected, ready, Required(2, 1), {Reaction::kNone, reaction}}).granted,
          Are(2, 5));
    }
  }
}

// --- Holds ------------------------------------------------------------------------

TEST_F(PlanReplicasTest, WhatIsNotKnownHolds) {
  // One role of which nothing is known holds both.
  ReplicaPlan plan =
      Plan({2, 5}, Unknown(RequirementReason::kModelNotReady, RequirementReason::kOk));
  EXPECT_EQ(plan.outcome, ReplicaOutcome::kHeld);
  EXPECT_THAT(plan.granted, Are(2, 5));
  EXPECT_THAT(Notes(plan), ElementsAre("prefill 2 -> 2: held: too few observations of the engines",
                                       "decode 5 -> 5: held: too few observations of the engines"));
  plan = Plan({2, 5}, Unknown(RequirementReason::kMissingMetrics, RequirementReason::kOk));
  EXPECT_EQ(plan.outcome, ReplicaOutcome::kHeld);
  EXPECT_THAT(plan.notes, Contains(Because(ReplicaReason::kMissingMetrics)));
}

TEST_F(PlanReplicasTest, AHoldDoesNotBreakTheCeiling) {
  rules_.max_gpus = 22;
  const ReplicaPlan plan =
      Plan({2, 6}, Unknown(RequirementReason::kMissingMetrics, RequirementReason::kOk));
  EXPECT_THAT(plan.granted, Are(2, 4));
  EXPECT_EQ(plan.outcome, ReplicaOutcome::kLimited);
}

TEST_F(PlanReplicasTest, AnUnreachableSlaIsSaid) {
  RequiredReplicas required = Required(2, 49);
  required.decode = RequirementReason::kItlUnreachable;
  rules_.max_step = 100;
  const ReplicaPlan plan = Plan({2, 5}, required);
  EXPECT_THAT(plan.granted, Are(2, 49)) << "enough for the load";
  EXPECT_THAT(plan.notes, Contains(Because(ReplicaReason::kItlUnreachable)));
}

// dynamo#11220: a specification that was not understood read as 0 GPUs, and every budget
// had room for it.
TEST_F(PlanReplicasTest, AnUnknownCostStopsEverything) {
  rules_.gpus = {2, 0};
  rules_.max_gpus = 100;
  const ReplicaPlan plan = Plan({2, 5}, Required(3, 9));
  EXPECT_EQ(plan.outcome, ReplicaOutcome::kHeld);
  EXPECT_THAT(plan.granted, Are(2, 5));
  EXPECT_THAT(plan.transition.steps, IsEmpty());
  EXPECT_THAT(plan.notes, ElementsAre(Because(ReplicaReason::kUnknownGpus)));
}

// --- How fast ---------------------------------------------------------------------

TEST_F(PlanReplicasTest, StepsAreLimited) {
  rules_.max_step = 3;
  ReplicaPlan plan = Plan({2, 5}, Required(2, 20));
  EXPECT_THAT(plan.granted, Are(2, 8));
  EXPECT_THAT(Notes(plan), Contains("decode 20 -> 8: the rest comes with later decisions"));
  EXPECT_THAT(Plan({2, 12}, Required(2, 1)).granted, Are(2, 9));
  rules_.minimum = {1, 10};
  EXPECT_THAT(Plan({2, 5}, Required(2, 20)).granted, Are(2, 10)) << "unless a minimum asks for it";
}

TEST_F(PlanReplicasTest, FewerMustSufficeForAWhile) {
  rules_.down_delay = 300;
  const auto decode = [&](int64_t at, int64_t current, int64_t required) {
    now_ = at;
    return Plan({2, current}, Required(2, required)).granted.decode;
  };
  EXPECT_EQ(decode(0, 6, 3), 6);
  EXPECT_EQ(decode(200, 6, 4), 6);
  EXPECT_EQ(decode(299, 6, 2), 6);
  EXPECT_EQ(decode(300, 6, 2), 4) << "the most that was needed since";
  EXPECT_EQ(decode(400, 4, 2), 4) << "each fall waits anew";
  EXPECT_EQ(decode(500, 4, 4), 4) << "as many as now: start again";
  EXPECT_EQ(decode(700, 4, 2), 4);
  EXPECT_EQ(decode(1000, 4, 2), 2);
  EXPECT_EQ(decode(1001, 2, 5), 5) << "up at once";
}

// --- Engines that do not start ------------------------------------------------------

TEST_F(PlanReplicasTest, ARoleGrowsOnlyWhileAllItsEnginesRun) {
  const ReplicaPlan plan = Plan({now_, {2, 5}, {2, 4}, Required(3, 9), {}});
  EXPECT_THAT(plan.granted, Are(3, 5));
  EXPECT_THAT(Notes(plan), Contains("decode 9 -> 5: held: engines are starting"));
}

// dynamo#14251: a scale-up that cannot be placed freezes the planner, and decode engines
// that nobody needs are never removed.
TEST_F(PlanReplicasTest, AScaleUpThatCannotBePlacedFreezesNothing) {
  rules_.pending_timeout = 600;
  // Prefill 2 of 6 run; decode needs 4 of its 9.
  const auto plan_at = [&](int64_t at, ReplicaCounts expected, ReplicaCounts ready) {
    now_ = at;
    return Plan({at, expected, ready, Required(6, 4), {}});
  };
  ReplicaPlan plan = plan_at(0, {6, 9}, {2, 9});
  EXPECT_THAT(plan.granted, Are(6, 4)) << "decode shrinks at once";
  EXPECT_THAT(plan_at(300, {6, 4}, {3, 4}).granted, Are(6, 4)) << "one more started: wait on";
  EXPECT_THAT(plan_at(899, {6, 4}, {3, 4}).granted, Are(6, 4));
  plan = plan_at(900, {6, 4}, {3, 4});
  EXPECT_THAT(plan.granted, Are(3, 4)) << "given up";
  EXPECT_THAT(plan.notes, Contains(Because(ReplicaReason::kScaleUpGivenUp)));
  plan = plan_at(1000, {3, 4}, {3, 4});
  EXPECT_THAT(plan.granted, Are(3, 4));
  EXPECT_THAT(plan.notes, Contains(Because(ReplicaReason::kRetryLater)));
  EXPECT_THAT(plan_at(1500, {3, 4}, {3, 4}).granted, Are(6, 4)) << "tried again";
}

TEST_F(PlanReplicasTest, AMinimumStaysAskedFor) {
  rules_.pending_timeout = 0;
  rules_.minimum = {3, 1};
  EXPECT_THAT(Plan({now_, {6, 4}, {2, 4}, Required(6, 4), {}}).granted, Are(3, 4));
}

TEST_F(PlanReplicasTest, AFloorAsksForNothingOfARoleThatDoesNotStart) {
  rules_.min_gpus = 100;
  rules_.max_step = 2;
  const ReplicaPlan plan = Plan({now_, {2, 5}, {2, 4}, Required(2, 5), {}});
  EXPECT_THAT(plan.granted, Are(4, 5));
  EXPECT_THAT(plan.notes, Contains(Because(ReplicaReason::kFloorNotReached)));
}

// --- Transitions --------------------------------------------------------------------

// dynamo#12428: a rebalance at the cap. The up leg landed first, and the down leg failed.
TEST_F(PlanReplicasTest, ARebalanceAtTheCapNeverExceedsIt) {
  rules_.max_gpus = 28;
  const ReplicaPlan plan = Plan({2, 6}, Required(4, 5));
  EXPECT_THAT(plan.transition.steps, ElementsAre(ScalingStep{EngineRole::kDecode, 6, 5, 24},
                                                 ScalingStep{EngineRole::kPrefill, 2, 4, 28}));
  EXPECT_EQ(plan.transition.peak_gpus, 28);
}

TEST_F(PlanReplicasTest, WhatDrainsStillHoldsItsGpus) {
  rules_.max_gpus = 28;
  // Decode was asked to fall from 6 to 5 and has not: its GPUs come first.
  const ReplicaPlan plan = Plan({now_, {2, 5}, {2, 6}, Required(4, 5), {}});
  EXPECT_THAT(plan.transition.steps, ElementsAre(ScalingStep{EngineRole::kDecode, 6, 5, 24},
                                                 ScalingStep{EngineRole::kPrefill, 2, 4, 28}));
  EXPECT_EQ(plan.gpus_before, 28);
}

// --- Input ------------------------------------------------------------------------

TEST_F(PlanReplicasTest, MalformedInput) {
  const auto error = [](const ReplicaRules& rules, const ReplicaStatus& status,
                        const ReplicaMemory& memory = {}) {
    return std::string(ToStd(PlanReplicas(rules, status, memory).status().message()));
  };
  const ReplicaStatus fine{0, {1, 1}, {1, 1}, Required(1, 1), {}};
  EXPECT_THAT(PlanReplicas({.gpus = {1, 1}}, fine), IsOk());
  EXPECT_EQ(error({.gpus = {-1, 1}}, fine), "gpus.prefill: is -1, not within 0 and 1000000");
  EXPECT_EQ(error({.gpus = {1, 1000001}}, fine),
            "gpus.decode: is 1000001, not within 0 and 1000000");
  EXPECT_EQ(error({.minimum = {1, -1}}, fine),
            "minimum.decode: is -1, not within 0 and 1073741824");
  EXPECT_EQ(error({.max_gpus = -1}, fine), "max_gpus: is -1, not within 0 and 4503599627370496");
  EXPECT_EQ(error({.min_gpus = -1}, fine), "min_gpus: is -1, not within 0 and 4503599627370496");
  EXPECT_EQ(error({.max_step = 0}, fine), "max_step: is 0, not within 1 and 1073741824");
  EXPECT_EQ(error({.down_delay = -1}, fine),
            "down_delay: is -1, not within 0 and 2305843009213693952");
  EXPECT_EQ(error({.pending_timeout = -1}, fine),
            "pending_timeout: is -1, not within 0 and 2305843009213693952");
  EXPECT_EQ(error({}, {0, {-1, 1}, {1, 1}, Required(1, 1), {}}),
            "expected.prefill: is -1, not within 0 and 1073741824");
  EXPECT_EQ(error({}, {0, {1, 1}, {1, -1}, Required(1, 1), {}}),
            "ready.decode: is -1, not within 0 and 1073741824");
  EXPECT_EQ(error({}, {0, {1, 1}, {1, 1}, Required(1, -1), {}}),
            "required.decode: is -1, not within 0 and 1073741824");
  EXPECT_EQ(error({.mode = ServiceMode::kAggregated}, fine),
            "expected.prefill: an aggregated service has no prefill engines");
  ReplicaMemory memory;
  memory.decode.low_since = INT64_MIN;
  EXPECT_THAT(error({}, fine, memory),
              testing::StartsWith("memory.decode: is -9223372036854775808"));
}

TEST_F(PlanReplicasTest, ReasonsAndOutcomesHaveNames) {
  EXPECT_EQ(ToString(ReplicaReason::kUnknownGpus), "unknown_gpus");
  EXPECT_EQ(ToString(ReplicaReason::kInfeasibleBudget), "infeasible_budget");
  EXPECT_EQ(ToString(ReplicaOutcome::kInfeasible), "infeasible");
}

}  // namespace
}  // namespace tessera
