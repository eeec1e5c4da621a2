#include "tessera/replicas/decide_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "tests/support/random_cases.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using testing::HasSubstr;

// The worked example by its current model: 15 requests a second of 3,000 + 300 tokens,
// 50 us a prompt token, iterations of 10 ms and 80 ms more when full.
ServiceSpec Example() {
  ServiceSpec spec;
  spec.sla = {0.5, 0.0504};
  spec.rules.gpus = {2, 4};
  spec.prefill.iteration = IterationCost{0, 5e-5, 0, 0};
  spec.decode.iteration = IterationCost{0.010, 0, 0, 0.08 / 315000};
  spec.limits.max_kv_tokens = 315000;
  spec.history = {{15, 3000, 300, 0}};
  spec.status.expected = spec.status.ready = {3, 5};
  return spec;
}

ServiceDecision Decide(const ServiceSpec& spec) {
  const absl::StatusOr<ServiceDecision> decision = DecideReplicas(spec);
  EXPECT_THAT(decision, IsOk());
  return decision.ok() ? *decision : ServiceDecision();
}

TEST(DecideReplicasTest, WorkedExample) {
  ServiceSpec spec = Example();
  EXPECT_EQ(Decide(spec).plan.granted, (ReplicaCounts{3, 5}));
  spec.history[0].prefix_hit_rate = 0.2;
  EXPECT_EQ(Decide(spec).required.counts, (ReplicaCounts{2, 5}));
  spec.limits.max_sequences = 32;
  EXPECT_EQ(Decide(spec).required.counts, (ReplicaCounts{2, 6}));
  spec.sla.itl = 0.009;
  const ServiceDecision decision = Decide(spec);
  EXPECT_EQ(decision.required.counts, (ReplicaCounts{2, 49}));
  EXPECT_EQ(decision.required.decode, RequirementReason::kItlUnreachable);
  EXPECT_EQ(decision.plan.granted, (ReplicaCounts{3, 13})) << "8 at a time, and no fall at once";
}

TEST(DecideReplicasTest, EnginesThatRunAreHeard) {
  ServiceSpec spec = Example();
  spec.status.expected = spec.status.ready = {3, 2};
  spec.history[0].request_rate = 3;
  spec.decoding = {{60, 190000}, {60, 190000}};
  EXPECT_EQ(Decide(spec).reactions.decode, Reaction::kUp);
  EXPECT_EQ(Decide(spec).plan.granted.decode, 3);
  spec.queued_tokens = {8000, 8000, 8000};
  EXPECT_EQ(Decide(spec).reactions.prefill, Reaction::kUp) << "550 ms";
  spec.queued_tokens = {8000};
  EXPECT_EQ(Decide(spec).reactions.prefill, Reaction::kNone) << "one of three reported";
}

TEST(DecideReplicasTest, AnAggregatedServiceHearsBothSides) {
  ServiceSpec spec = Example();
  spec.rules.mode = ServiceMode::kAggregated;
  spec.prefill.iteration.reset();
  spec.decode.iteration->per_prefill_token = 5e-5;
  spec.status.expected = spec.status.ready = {0, 2};
  spec.queued_tokens = {8000, 8000};
  spec.decoding = {{10, 30000}, {10, 30000}};
  const ServiceDecision decision = Decide(spec);
  EXPECT_EQ(decision.reactions, (RoleReactions{Reaction::kNone, Reaction::kUp}));
  EXPECT_EQ(decision.plan.granted.prefill, 0);
}

TEST(DecideReplicasTest, ProfilesAnswerAsIterationsDo) {
  ServiceSpec spec = Example();
  spec.prefill.iteration.reset();
  spec.decode.iteration.reset();
  spec.prefill.samples = {{3000, 0.150, 10000}};
  for (const double kv : {0.1, 0.5, 0.9}) {
    const double itl = 0.010 + 0.08 * kv;
    spec.decode.samples.push_back({3150, kv, itl, 100 * kv / itl / 4});
  }
  EXPECT_EQ(Decide(spec).required.counts, (ReplicaCounts{3, 5}));
  spec.decoding.assign(5, {60, 189000});
  EXPECT_EQ(Decide(spec).reactions.decode, Reaction::kUp) << "60 of 100 tokens: 58 ms";
}

TEST(DecideReplicasTest, NoHistoryHolds) {
  ServiceSpec spec = Example();
  spec.history.clear();
  ServiceDecision decision = Decide(spec);
  EXPECT_TRUE(std::isnan(decision.forecast.request_rate));
  EXPECT_EQ(decision.plan.outcome, ReplicaOutcome::kHeld);
  spec.history = {{std::numeric_limits<double>::quiet_NaN(), 3000, 300, 0}};
  EXPECT_EQ(Decide(spec).plan.outcome, ReplicaOutcome::kHeld);
}

TEST(DecideReplicasTest, AnIntervalWithoutRequestsHasNoLengths) {
  ServiceSpec spec = Example();
  spec.history.push_back({0, 0, 0, 0});
  spec.history.push_back({15, std::numeric_limits<double>::quiet_NaN(), 300, 0});
  EXPECT_DOUBLE_EQ(Decide(spec).forecast.input_tokens, 3000);
}

TEST(DecideReplicasTest, EachPredictor) {
  ServiceSpec spec = Example();
  spec.history = {{10, 3000, 300, 0}, {20, 3000, 300, 0}, {30, 3000, 300, 0}};
  EXPECT_DOUBLE_EQ(Decide(spec).forecast.request_rate, 30);
  spec.predictor.kind = PredictorKind::kTrend;
  EXPECT_NEAR(Decide(spec).forecast.request_rate, 39.70801, 1e-5);
  spec.predictor.kind = PredictorKind::kSeasonal;
  spec.predictor.seasonal.season = 3;
  EXPECT_THAT(DecideReplicas(spec), IsOk());
  spec.predictor.seasonal.season = 1;
  EXPECT_THAT(DecideReplicas(spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("predictor.season")));
}

// An engine takes time to start: what counts is the load by then.
TEST(DecideReplicasTest, PlansForTheMostOfTheIntervalsAhead) {
  ServiceSpec spec = Example();
  spec.history = {{10, 3000, 300, 0}, {20, 3000, 300, 0}, {30, 3000, 300, 0}};
  spec.predictor.kind = PredictorKind::kTrend;
  const double next = Decide(spec).forecast.request_rate;
  spec.predictor.ahead = 2;
  const double after = Decide(spec).forecast.request_rate;
  EXPECT_NEAR(after - next, 9.80314, 1e-5) << "the trend; the level is 29.90487";
  spec.predictor.ahead = 4;
  EXPECT_NEAR(Decide(spec).forecast.request_rate, next + 3 * (after - next), 1e-9);
  std::ranges::reverse(spec.history);
  EXPECT_NEAR(Decide(spec).forecast.request_rate, 0.292, 1e-3) << "it falls: the next is the most";

  // The third interval of each season is high, and comes in two intervals.
  spec.history.clear();
  for (const double rate : {10.0, 10.0, 40.0, 10.0, 10.0, 40.0, 10.0}) {
    spec.history.push_back({rate, 3000, 300, 0});
  }
  spec.predictor.kind = PredictorKind::kSeasonal;
  spec.predictor.seasonal = {3, 0, 0, 0};
  spec.predictor.ahead = 1;
  EXPECT_DOUBLE_EQ(Decide(spec).forecast.request_rate, 10);
  spec.predictor.ahead = 2;
  EXPECT_DOUBLE_EQ(Decide(spec).forecast.request_rate, 40);
  spec.predictor.ahead = kMaxAhead;
  EXPECT_DOUBLE_EQ(Decide(spec).forecast.request_rate, 40);
  spec.predictor.kind = PredictorKind::kConstant;
  EXPECT_DOUBLE_EQ(Decide(spec).forecast.request_rate, 10);
}

TEST(DecideReplicasTest, ErrorsNameTheField) {
  ServiceSpec spec = Example();
  spec.rules.max_step = 0;
  EXPECT_THAT(DecideReplicas(spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_step")));
  spec = Example();
  spec.sla.ttft = 0;
  EXPECT_THAT(DecideReplicas(spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sla.ttft")));
  spec = Example();
  for (const int64_t ahead : {int64_t{0}, kMaxAhead + 1}) {
    spec.predictor.ahead = ahead;
    EXPECT_THAT(DecideReplicas(spec),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "predictor.ahead: " + std::to_string(ahead) + " is not in 1..10000"));
  }
  spec = Example();
  spec.prefill.iteration.reset();
  spec.decode.iteration.reset();
  spec.prefill.samples = {{3000, 0.150, 10000}, {3000, 0.150, 10000}};
  EXPECT_THAT(DecideReplicas(spec), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("engines.prefill.profile.samples[1]")));
}

// --- Whatever the service -----------------------------------------------------------

class RandomService {
 public:
  explicit RandomService(uint32_t seed) : engine_(seed) {}

  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(engine_() % static_cast<uint32_t>(bound));
  }
  double Between(double low, double high) {
    return low + (high - low) * static_cast<double>(Below(1001)) / 1000;
  }

  ServiceSpec Draw() {
    ServiceSpec spec = Example();
    spec.sla = {Between(0.05, 1), Between(0.008, 0.1)};
    spec.rules.gpus = {1 + Below(8), 1 + Below(8)};
    spec.rules.minimum = {Below(3), Below(3)};
    spec.rules.max_step = 1 + Below(20);
    spec.rules.down_delay = Below(2) * 300;
    spec.prefill.iteration = IterationCost{Between(0, 0.02), Between(1e-5, 1e-4), 0, 0};
    spec.decode.iteration =
        IterationCost{Between(0.001, 0.02), 0, Between(0, 1e-3), Between(1e-8, 1e-6)};
    spec.limits.max_sequences = 1 + Below(256);
    spec.utilization = Between(0.3, 1);
    spec.history = {{Between(0, 40), Between(1, 8000), Between(1, 900), Between(0, 1)}};
    spec.status.expected = {Below(10), Below(20)};
    spec.status.ready = {spec.status.expected.prefill, std::max<int64_t>(Below(22) - 2, 0)};
    if (Below(2) == 0)
      spec.queued_tokens.assign(static_cast<size_t>(spec.status.ready.prefill), 3000);
    if (Below(2) == 0)
      spec.decoding.assign(static_cast<size_t>(spec.status.ready.decode), {20, 60000});
    return spec;
  }

 private:
  std::mt19937 engine_;
};

// `harder` asks for at least as many engines as `easier`, and is granted them.
void ExpectNotFewer(const ServiceSpec& easier, const ServiceSpec& harder) {
  const ServiceDecision less = Decide(easier), more = Decide(harder);
  ASSERT_GE(more.required.counts->prefill, less.required.counts->prefill);
  ASSERT_GE(more.required.counts->decode, less.required.counts->decode);
  ASSERT_GE(more.plan.granted.prefill, less.plan.granted.prefill);
  ASSERT_GE(more.plan.granted.decode, less.plan.granted.decode);
}

TEST(DecideReplicasPropertiesTest, MoreLoadOrATighterSlaNeverNeedsFewer) {
  const int cases = RandomCases(1000, 20000);
  for (int i = 0; i < cases; ++i) {
    SCOPED_TRACE(i);
    RandomService random(static_cast<uint32_t>(i));
    const ServiceSpec spec = random.Draw();
    ServiceSpec harder = spec;
    harder.history[0].request_rate *= random.Between(1, 3);
    harder.predictor.ahead += random.Below(4);
    ASSERT_NO_FATAL_FAILURE(ExpectNotFewer(spec, harder));
    // The reactions, too, hear the SLA.
    harder = spec;
    harder.sla.ttft *= random.Between(0.3, 1);
    harder.sla.itl *= random.Between(0.3, 1);
    ASSERT_NO_FATAL_FAILURE(ExpectNotFewer(spec, harder));
  }
}

TEST(DecideReplicasPropertiesTest, NoServiceExceedsItsBudget) {
  const int cases = RandomCases(1000, 20000);
  for (int i = 0; i < cases; ++i) {
    SCOPED_TRACE(i);
    RandomService random(static_cast<uint32_t>(i));
    ServiceSpec spec = random.Draw();
    spec.rules.max_gpus = GpusOf(spec.rules.gpus, spec.rules.minimum) + random.Below(60);
    const ReplicaPlan plan = Decide(spec).plan;
    ASSERT_LE(plan.gpus_after, spec.rules.max_gpus);
    for (const ScalingStep& step : plan.transition.steps) {
      ASSERT_LE(step.gpus_after, std::max(plan.gpus_before, spec.rules.max_gpus));
    }
  }
}

}  // namespace
}  // namespace tessera
