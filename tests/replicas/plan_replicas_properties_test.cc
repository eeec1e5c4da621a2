// What holds for every service, over random ones: decision after decision.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tessera/replicas/plan_replicas.h"
#include "tests/support/random_cases.h"

namespace tessera {
namespace {

class RandomService {
 public:
  explicit RandomService(uint32_t seed) : engine_(seed) {}

  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(engine_() % static_cast<uint32_t>(bound));
  }
  bool Chance(int percent) { return Below(100) < percent; }

  ReplicaRules DrawRules() {
    ReplicaRules rules;
    if (Chance(25)) rules.mode = ServiceMode::kAggregated;
    rules.gpus = {1 + Below(8), 1 + Below(8)};
    rules.minimum = {Below(3), Below(3)};
    if (Chance(70)) rules.max_gpus = Below(100);
    if (Chance(30)) rules.min_gpus = Below(100);
    rules.max_step = 1 + Below(10);
    rules.down_delay = Below(3) * 100;
    rules.pending_timeout = Below(4) * 100;
    is_aggregated_ = rules.mode == ServiceMode::kAggregated;
    return rules;
  }

  ReplicaCounts DrawCounts() { return {is_aggregated_ ? 0 : Below(12), Below(12)}; }

  void DrawNeed(ReplicaStatus& status) {
    status.required = RequiredReplicas();
    status.required.prefill = static_cast<RequirementReason>(Below(4));
    status.required.decode = static_cast<RequirementReason>(Below(4));
    status.required.counts = DrawCounts();
    if (Chance(15)) {
      status.required.counts.reset();
      status.required.prefill = RequirementReason::kMissingMetrics;
    }
    status.reactions = {static_cast<Reaction>(Below(4)), static_cast<Reaction>(Below(4))};
  }

  // Some engines have not started, or still drain.
  void Disturb(ReplicaStatus& status) {
    status.ready = status.expected;
    if (Chance(30)) status.ready.decode = std::max<int64_t>(status.ready.decode - Below(3), 0);
    if (Chance(20)) status.ready.decode += Below(3);
    if (Chance(20) && !is_aggregated_) status.ready.prefill += Below(3);
  }

 private:
  std::mt19937 engine_;
  bool is_aggregated_ = false;
};

int64_t MinimumGpus(const ReplicaRules& rules) {
  ReplicaCounts minimum = rules.minimum;
  if (rules.mode == ServiceMode::kAggregated) minimum.prefill = 0;
  return GpusOf(rules.gpus, minimum);
}

TEST(PlanReplicasPropertiesTest, NoDecisionExceedsTheBudgetAtAnyStep) {
  const int cases = RandomCases(1000, 20000);
  for (int i = 0; i < cases; ++i) {
    SCOPED_TRACE(i);
    RandomService random(static_cast<uint32_t>(i));
    const ReplicaRules rules = random.DrawRules();
    ReplicaStatus status;
    status.expected = random.DrawCounts();
    ReplicaMemory memory;
    for (int decision = 0; decision < 6; ++decision) {
      status.now += 50 + random.Below(100);
      random.Disturb(status);
      random.DrawNeed(status);
      const absl::StatusOr<ReplicaPlan> plan = PlanReplicas(rules, status, memory);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const bool feasible = MinimumGpus(rules) <= rules.max_gpus;
      ASSERT_EQ(plan->outcome == ReplicaOutcome::kInfeasible, !feasible);
      if (feasible) {
        ASSERT_LE(plan->gpus_after, rules.max_gpus);
      }
      const int64_t bound = std::max(plan->gpus_before, feasible ? rules.max_gpus : 0);
      int64_t before = plan->gpus_before;
      for (const ScalingStep& step : plan->transition.steps) {
        ASSERT_LE(step.gpus_after, bound);
        if (before > rules.max_gpus) {
          ASSERT_LT(step.gpus_after, before) << "only down from above";
        }
        before = step.gpus_after;
      }
      for (EngineRole role : kEngineRoles) {
        const int64_t granted = OfRole(plan->granted, role);
        const int64_t expected = OfRole(status.expected, role);
        if (!feasible) {
          ASSERT_LE(granted, expected);
        }
        if (OfRole(status.ready, role) < expected) {
          ASSERT_LE(granted, std::max(expected, OfRole(rules.minimum, role)));
        }
      }
      status.expected = plan->granted;
      memory = plan->memory;
    }
  }
}

TEST(PlanReplicasPropertiesTest, ACeilingRaisesNoCountAndALowerOneLowersAll) {
  const int cases = RandomCases(1000, 20000);
  for (int i = 0; i < cases; ++i) {
    SCOPED_TRACE(i);
    RandomService random(static_cast<uint32_t>(i));
    ReplicaRules rules = random.DrawRules();
    rules.min_gpus = 0;
    rules.max_gpus = kUnlimited;
    ReplicaStatus status;
    status.expected = status.ready = random.DrawCounts();
    random.DrawNeed(status);
    const ReplicaPlan free = *PlanReplicas(rules, status);
    rules.max_gpus = std::max<int64_t>(MinimumGpus(rules), random.Below(100));
    const ReplicaPlan limited = *PlanReplicas(rules, status);
    ASSERT_LE(limited.granted.prefill, free.granted.prefill);
    ASSERT_LE(limited.granted.decode, free.granted.decode);
    ASSERT_EQ(limited.needed, free.needed);
  }
}

// From one state, who needs more gets no less; with `wanted` more of everything.
TEST(PlanReplicasPropertiesTest, MoreNeedNeverMeansFewer) {
  const int cases = RandomCases(1000, 20000);
  for (int i = 0; i < cases; ++i) {
    SCOPED_TRACE(i);
    RandomService random(static_cast<uint32_t>(i));
    ReplicaRules rules = random.DrawRules();
    rules.max_gpus = kUnlimited;
    rules.min_gpus = 0;
    ReplicaStatus status;
    status.expected = random.DrawCounts();
    random.Disturb(status);
    random.DrawNeed(status);
    if (!status.required.counts) continue;
    const ReplicaPlan less = *PlanReplicas(rules, status);
    status.required.counts->decode += random.Below(5);
    if (rules.mode == ServiceMode::kDisaggregated)
      status.required.counts->prefill += random.Below(5);
    const ReplicaPlan more = *PlanReplicas(rules, status);
    ASSERT_GE(more.granted.prefill, less.granted.prefill);
    ASSERT_GE(more.granted.decode, less.granted.decode);
  }
}

TEST(PlanReplicasPropertiesTest, ASteadyNeedComesToRest) {
  const int cases = RandomCases(1000, 20000);
  for (int i = 0; i < cases; ++i) {
    SCOPED_TRACE(i);
    RandomService random(static_cast<uint32_t>(i));
    const ReplicaRules rules = random.DrawRules();
    ReplicaStatus status;
    status.expected = status.ready = random.DrawCounts();
    random.DrawNeed(status);
    status.reactions = {};
    ReplicaMemory memory;
    ReplicaPlan plan;
    for (int decision = 0; decision < 60; ++decision) {
      status.now += 100;
      plan = *PlanReplicas(rules, status, memory);
      status.expected = status.ready = plan.granted;
      memory = plan.memory;
    }
    status.now += 100;
    ASSERT_EQ(PlanReplicas(rules, status, memory)->granted, plan.granted);
    status.now += 100;
    ASSERT_EQ(PlanReplicas(rules, status, memory)->granted, plan.granted);
  }
}

}  // namespace
}  // namespace tessera
