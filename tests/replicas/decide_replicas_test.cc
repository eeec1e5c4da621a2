#include "tessera/replicas/decide_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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
  spec.prefill.iteration.reset();
  spec.decode.iteration.reset();
  spec.prefill.samples = {{3000, 0.150, 10000}, {3000, 0.150, 10000}};
  EXPECT_THAT(DecideReplicas(spec), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("engines.prefill.profile.samples[1]")));
}

}  // namespace
}  // namespace tessera
