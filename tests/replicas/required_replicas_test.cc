#include "tessera/replicas/required_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/replicas/random_service.h"
#include "tests/support/random_cases.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Dynamo's worked example: 900 requests a minute of 3000 + 300 tokens; engines of 2 GPUs
// for prefill and 4 for decode, room for 100 sequences of 3150 tokens.
constexpr ServiceLoad kLoad = {15, 3000, 300, 0};
constexpr Sla kSla = {0.5, 0.05};

ProfiledEngines WorkedEngines(int kv_cells) {
  const std::vector<PrefillSample> prefill = {{3000, 0.150, 10000}};
  std::vector<DecodeSample> decode;
  for (const double u : {0.1, 1.0}) {
    const double itl = 0.010 + 0.080 * u;
    decode.push_back({3150, u, itl, 100 * u / itl / 4});
  }
  return {*PrefillProfile::Create(prefill, "prefill"),
          *DecodeProfile::Create(decode, {315000, kv_cells}, "decode"), EngineGpus{2, 4}};
}

LinearEngines WorkedLinear(const EngineLimits& limits) {
  return {IterationCost{0, 5e-5, 0, 0}, IterationCost{0.010, 0, 0, 0.08 / 315000}, limits};
}
constexpr EngineLimits kLimits = {8192, 256, 315000};

RequiredReplicas Require(const EngineModel auto& engines, const ServiceLoad& load = kLoad,
                         const Sla& sla = kSla, const RequirementRules& rules = {}) {
  return *RequireReplicas(engines, load, sla, rules);
}

TEST(RequiredReplicasTest, PrefillOfTheWorkedExampleByProfile) {
  // 45,000 tokens/s x min(1, TTFT observed / 150 ms) / 10,000 per GPU / 2 GPUs.
  struct Case {
    double observed_ttft, engines;
    int64_t replicas;
  };
  for (const Case& c : {Case{0.120, 1.8, 2}, Case{0.150, 2.25, 3}, Case{0.225, 2.25, 3}}) {
    ProfiledEngines engines = WorkedEngines(0);
    engines.Correct(engines.Observe(kLoad, {c.observed_ttft, 0.0525, 15.87, 6}));
    const RequiredReplicas required = Require(engines);
    EXPECT_DOUBLE_EQ(required.prefill_engines, c.engines);
    EXPECT_EQ(required.counts->prefill, c.replicas);
  }
}

TEST(RequiredReplicasTest, DecodeOfTheWorkedExampleByLookUp) {
  // 4500 tokens/s over what an engine does within 50 ms over the correction. Dynamo's
  // ratio takes the throughput of the profile; ours that of engines so much slower.
  struct Case {
    int cells;
    double factor, ratio;
    int64_t replicas;
    int64_t ours;
  };
  for (const Case& c : {Case{11, 1.25, 5.100, 6, 7}, Case{100, 1.26460, 4.8375, 5, 7},
                        Case{0, 1.25779, 4.80999, 5, 7}}) {
    ProfiledEngines engines = WorkedEngines(c.cells);
    const Corrections observed = engines.Observe(kLoad, {0.120, 0.0525, 15.87, 6});
    EXPECT_NEAR(observed.decode, c.factor, 5e-6);
    engines.Correct(observed, /*keeps_throughput=*/true);
    EXPECT_NEAR(Require(engines).decode_engines, c.ratio, 5e-6);
    EXPECT_EQ(Require(engines).counts->decode, c.replicas);
    engines.Correct(observed);
    EXPECT_NEAR(Require(engines).decode_engines, c.ratio * c.factor, 5e-5);
    EXPECT_EQ(Require(engines).counts->decode, c.ours);
  }
  EXPECT_DOUBLE_EQ(Require(WorkedEngines(11)).decode_engines, 4.5);
  EXPECT_EQ(Require(WorkedEngines(11)).counts->decode, 5);
}

// Why ours differs. An engine 1.258 times as slow as the profile, with s sequences, makes
// s / (1.258 (10 ms + 0.8 ms s)) tokens/s. For 900 tokens/s (5 engines) that takes 120
// sequences, where 100 fit; 750 (6 engines) come at 51 ms; 643 (7) at 41 ms.
TEST(RequiredReplicasTest, ASlowerEngineAlsoMakesFewerTokens) {
  const double factor = 0.0525 / 0.04174;
  const auto sequences = [&](double rate) {
    return factor * 0.010 * rate / (1 - factor * 0.0008 * rate);
  };
  const auto itl = [&](double n) { return factor * (0.010 + 0.0008 * n); };
  EXPECT_GT(sequences(4500 / 5.0), 100);
  EXPECT_GT(itl(sequences(4500 / 6.0)), 0.050);
  EXPECT_LT(itl(sequences(4500 / 7.0)), 0.050);
}

TEST(RequiredReplicasTest, WorkedExampleByLinearModel) {
  ServiceLoad load = kLoad;
  const RequiredReplicas required = Require(WorkedLinear(kLimits), load, {0.5, 0.0504});
  EXPECT_DOUBLE_EQ(required.prefill_engines, 2.25);  // 15/s x 150 ms
  EXPECT_DOUBLE_EQ(required.decode_engines, 4.5);    // 50 sequences: 3.3333/s
  EXPECT_EQ(required.counts, (ReplicaCounts{3, 5}));
  EXPECT_DOUBLE_EQ(required.ttft, 0.150);
  EXPECT_DOUBLE_EQ(required.itl, 0.050);
  // At exactly 50 ms 50 sequences are a tie that rounding could break; it counts.
  EXPECT_DOUBLE_EQ(Require(WorkedLinear(kLimits)).decode_engines, 4.5);

  load.prefix_hit_rate = 0.2;
  EXPECT_DOUBLE_EQ(Require(WorkedLinear(kLimits), load).prefill_engines, 1.8);
  EXPECT_EQ(Require(WorkedLinear(kLimits), load).counts->prefill, 2);

  const RequiredReplicas fewer = Require(WorkedLinear({8192, 32, 315000}), kLoad, {0.5, 0.0504});
  EXPECT_NEAR(fewer.decode_engines, 5.00625, 1e-12);  // 32 sequences: 2.99625/s
  EXPECT_EQ(fewer.counts->decode, 6);
}

// One sequence: 10.8 ms. Dynamo takes it, with a warning in its log.
TEST(RequiredReplicasTest, AnItlOutOfReachIsSaid) {
  const RequiredReplicas required = Require(WorkedLinear(kLimits), kLoad, {0.5, 0.009});
  EXPECT_EQ(required.decode, RequirementReason::kItlUnreachable);
  EXPECT_EQ(required.prefill, RequirementReason::kOk);
  EXPECT_DOUBLE_EQ(required.itl, 0.0108);
  EXPECT_NEAR(required.decode_engines, 48.6, 1e-9);  // 0.308642/s
  EXPECT_EQ(required.counts->decode, 49);
  const RequiredReplicas profiled = Require(WorkedEngines(100), kLoad, {0.5, 0.009});
  EXPECT_EQ(profiled.decode, RequirementReason::kItlUnreachable);
}

// Dynamo then runs at least ceil(TTFT / SLA) engines, here ceil(120 / 100) = 2, or 1200 for
// an SLA of 0.1 ms: none of them reads a prompt any faster.
TEST(RequiredReplicasTest, ATtftOutOfReachIsSaidAndNotPaidFor) {
  ServiceLoad load = kLoad;
  load.prefix_hit_rate = 0.2;
  for (const double ttft : {0.100, 0.0001}) {
    const RequiredReplicas required = Require(WorkedLinear(kLimits), load, {ttft, 0.05});
    EXPECT_EQ(required.prefill, RequirementReason::kTtftUnreachable);
    EXPECT_DOUBLE_EQ(required.ttft, 0.120);
    EXPECT_EQ(required.counts->prefill, 2);  // 1.8
  }
  load.request_rate = 5;
  EXPECT_EQ(Require(WorkedLinear(kLimits), load, {0.100, 0.05}).counts->prefill, 1);
}

TEST(RequiredReplicasTest, LongPromptsTakeSeveralIterations) {
  // 3000 = 2 x 1024 + 952: 3 x 10 ms + 3000 x 50 us = 180 ms.
  const LinearEngines engines(IterationCost{0.010, 5e-5, 0, 0}, IterationCost{0.01, 0, 0, 0},
                              {1024, 256, 315000});
  EXPECT_DOUBLE_EQ(Require(engines).ttft, 0.180);
  EXPECT_DOUBLE_EQ(Require(engines).prefill_engines, 15 * 0.180);
}

TEST(RequiredReplicasTest, AggregatedEnginesPayForPromptsBetweenTokens) {
  // 10 ms, 50 us per prompt token, 1 ms per sequence. At n sequences an iteration takes in
  // 3000 n / 300 = 10 n prompt tokens: 10 ms + 1.5 ms n. Within 100 ms: n = 60, and a
  // request takes 300 x 100 ms / 60 = 0.5 s of an engine.
  const IterationCost cost = {0.010, 5e-5, 0.001, 0};
  const RequirementRules rules = {.mode = ServiceMode::kAggregated, .minimum = {7, 1}};
  const RequiredReplicas required =
      Require(LinearEngines({}, cost, {8192, 256, 1000000}), kLoad, {10, 0.1}, rules);
  EXPECT_NEAR(required.decode_engines, 7.5, 1e-6);
  EXPECT_EQ(required.counts, (ReplicaCounts{0, 8}));
  EXPECT_NEAR(required.itl, 0.1, 1e-9);
  EXPECT_EQ(required.prefill, RequirementReason::kOk);
  EXPECT_EQ(required.decode, RequirementReason::kOk);

  // Dynamo's steady state: n <= 300 x 330 / 3300 = 30, then 55 ms and 0.55 s.
  const RequiredReplicas batched =
      Require(LinearEngines({}, cost, {330, 256, 1000000}), kLoad, {10, 0.1}, rules);
  EXPECT_NEAR(batched.decode_engines, 15 * 0.55, 1e-6);
  // TTFT: 150 ms of its own tokens and 10 ms + 1 ms n; within 180 ms n = 20, 0.6 s.
  const RequiredReplicas hasty =
      Require(LinearEngines({}, cost, {8192, 256, 1000000}), kLoad, {0.180, 0.1}, rules);
  EXPECT_NEAR(hasty.decode_engines, 15 * 0.6, 1e-6);
  EXPECT_NEAR(hasty.ttft, 0.180, 1e-9);
  // Neither: one sequence, 300 x 11.5 ms.
  const RequiredReplicas neither =
      Require(LinearEngines({}, cost, {8192, 256, 1000000}), kLoad, {0.1, 0.01}, rules);
  EXPECT_EQ(neither.prefill, RequirementReason::kTtftUnreachable);
  EXPECT_EQ(neither.decode, RequirementReason::kItlUnreachable);
  EXPECT_NEAR(neither.decode_engines, 15 * 300 * 0.0115, 1e-6);
}

// The same engine as tables: within 100 ms, of which prompts take 0.15 s of each 0.5 s.
TEST(RequiredReplicasTest, AggregatedEnginesByProfile) {
  const std::vector<PrefillSample> prefill = {{3000, 0.16, 20000}};
  std::vector<DecodeSample> decode;
  for (const double n : {1.0, 200.0}) {
    const double itl = 0.010 + 0.001 * n;
    decode.push_back({3150, n / 200, itl, n / itl});
  }
  const ProfiledEngines engines(*PrefillProfile::Create(prefill, "prefill"),
                                *DecodeProfile::Create(decode, {630000, 0}, "decode"),
                                EngineGpus{1, 1});
  const RequirementRules rules = {.mode = ServiceMode::kAggregated, .minimum = {0, 1}};
  const RequiredReplicas required = Require(engines, kLoad, {10, 0.1}, rules);
  EXPECT_NEAR(required.decode_engines, 7.5, 1e-6);
  EXPECT_NEAR(required.itl, 0.1, 1e-8);
  const RequiredReplicas hasty = Require(engines, kLoad, {0.1, 0.1}, rules);
  EXPECT_EQ(hasty.prefill, RequirementReason::kTtftUnreachable);
  EXPECT_EQ(hasty.decode, RequirementReason::kOk);
}

TEST(RequiredReplicasTest, ARequestThatFitsNoEngineIsSaid) {
  EXPECT_EQ(Require(WorkedLinear({8192, 256, 3299})).decode, RequirementReason::kContextTooLong);
  EXPECT_EQ(Require(WorkedLinear({8192, 256, 3300})).decode, RequirementReason::kOk);
}

// Dynamo makes no decision on a NaN, and takes a gap in a forecast for 0.
TEST(RequiredReplicasTest, HoldsOnWhatIsUnknown) {
  for (const ServiceLoad& load :
       {ServiceLoad{kNaN, 3000, 300, 0}, ServiceLoad{15, kNaN, 300, 0},
        ServiceLoad{15, 3000, -1, 0}, ServiceLoad{15, 3000, 300, 1.5},
        ServiceLoad{15, 3000, 300, kNaN},
        ServiceLoad{std::numeric_limits<double>::infinity(), 3000, 300, 0}}) {
    const RequiredReplicas required = Require(WorkedLinear(kLimits), load);
    EXPECT_EQ(required.counts, std::nullopt);
    EXPECT_EQ(required.prefill, RequirementReason::kMissingMetrics);
    EXPECT_EQ(required.decode, RequirementReason::kMissingMetrics);
  }
  // No decision for both if one is not ready, and it says which.
  const LinearEngines half(IterationCost{0, 5e-5, 0, 0}, std::nullopt, kLimits);
  EXPECT_EQ(Require(half).counts, std::nullopt);
  EXPECT_EQ(Require(half).prefill, RequirementReason::kOk);
  EXPECT_EQ(Require(half).decode, RequirementReason::kModelNotReady);
  // What is no cost is not ready either.
  const LinearEngines broken(IterationCost{0, 5e-5, 0, 0}, IterationCost{kNaN, 0, 0, 0}, kLimits);
  EXPECT_EQ(Require(broken).decode, RequirementReason::kModelNotReady);
}

// An idle service has no mean length. In Dynamo that NaN keeps its engines for ever.
TEST(RequiredReplicasTest, NoRequestsNeedTheMinimum) {
  const RequiredReplicas required =
      Require(WorkedLinear(kLimits), {0, kNaN, kNaN, kNaN}, kSla, {.minimum = {2, 0}});
  EXPECT_EQ(required.counts, (ReplicaCounts{2, 0}));
  EXPECT_EQ(required.decode, RequirementReason::kOk);
}

TEST(RequiredReplicasTest, RoundingNeverAsksForOneMore) {
  // 0.1 x 30 is above 3 in doubles.
  const LinearEngines engines(IterationCost{0.1, 0, 0, 0}, IterationCost{0.1, 0, 0, 0}, kLimits);
  EXPECT_EQ(Require(engines, {30, 100, 1, 0}, {1, 1}).counts->prefill, 3);
  EXPECT_EQ(Require(engines, {30.0001, 100, 1, 0}, {1, 1}).counts->prefill, 4);
  // Planned to 75 %: 3 / 0.75.
  EXPECT_EQ(Require(engines, {30, 100, 1, 0}, {1, 1}, {.utilization = 0.75}).counts->prefill, 4);
  EXPECT_EQ(Require(engines, {1e15, 1e15, 1e15, 0}, {1, 1}).counts,
            (ReplicaCounts{kMaxReplicas, kMaxReplicas}));
}

TEST(RequiredReplicasTest, ExplainsWhatIsWrong) {
  const auto error = [](const Sla& sla, const RequirementRules& rules) {
    return RequireReplicas(WorkedLinear(kLimits), kLoad, sla, rules).status();
  };
  EXPECT_THAT(error({0.5, 0}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, "sla.itl: 0 is not a time above 0"));
  EXPECT_THAT(error(kSla, {.minimum = {-1, 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rules.minimum.prefill: -1 is not in 0..1073741824"));
  EXPECT_THAT(error(kSla, {.utilization = 0}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                        "rules.utilization: 0 is not in (0, 1]"));
}

struct Service {
  ServiceLoad load;
  Sla sla;
  RequirementRules rules;
};

Service DrawService(RandomService& random) {
  Service service;
  service.load = {random.Scale(0.01, 1000), random.Scale(1, 20000), random.Scale(1, 5000),
                  random.Chance(50) ? random.Between(0, 1) : 0};
  service.sla = {random.Scale(0.01, 5), random.Scale(0.004, 0.2)};
  if (random.Chance(50)) service.rules.mode = ServiceMode::kAggregated;
  service.rules.minimum = {random.Below(3), random.Below(3)};
  return service;
}

// The same with one thing made harder.
Service Harder(Service service, RandomService& random) {
  const double more = random.Between(1, random.Chance(50) ? 1.01 : 2);
  switch (random.Below(7)) {
    case 0:
      service.load.request_rate *= more;
      break;
    case 1:
      service.load.input_tokens *= more;
      break;
    case 2:
      service.load.output_tokens *= more;
      break;
    case 3:
      service.load.prefix_hit_rate /= more;
      break;
    case 4:
      service.sla.ttft /= more;
      break;
    case 5:
      service.sla.itl /= more;
      break;
    default:
      service.rules.utilization /= more;
  }
  return service;
}

void CheckHarder(const EngineModel auto& engines, RandomService& random, int seed) {
  Service easy = DrawService(random);
  for (int i = 0; i < 8; ++i) {
    const Service hard = Harder(easy, random);
    const RequiredReplicas few = Require(engines, easy.load, easy.sla, easy.rules);
    const RequiredReplicas many = Require(engines, hard.load, hard.sla, hard.rules);
    ASSERT_TRUE(few.counts && many.counts) << seed;
    EXPECT_LE(few.counts->prefill, many.counts->prefill) << seed;
    EXPECT_LE(few.counts->decode, many.counts->decode) << seed;
    // What cannot be kept is not kept under a harder service either; but longer requests
    // may leave an aggregated engine more tokens between two prompts.
    ServiceLoad same_requests = easy.load;
    same_requests.request_rate = hard.load.request_rate;
    const bool comparable =
        easy.rules.mode == ServiceMode::kDisaggregated || same_requests == hard.load;
    EXPECT_FALSE(comparable && few.prefill != RequirementReason::kOk &&
                 many.prefill == RequirementReason::kOk)
        << seed;
    EXPECT_FALSE(comparable && few.decode != RequirementReason::kOk &&
                 many.decode == RequirementReason::kOk)
        << seed;
    easy = hard;
  }
}

TEST(RequiredReplicasPropertyTest, MoreLoadOrATighterSlaNeverNeedsFewer) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomService random(static_cast<uint32_t>(seed));
    if (random.Chance(50)) {
      const int cells = random.Chance(30) ? 2 + random.Below(100) : 0;
      ProfiledEngines engines(
          *PrefillProfile::Create(random.DrawPrefill(), "prefill"),
          *DecodeProfile::Create(random.DrawDecode(), {random.Scale(1e3, 1e6), cells}, "decode"),
          EngineGpus{1 + random.Below(8), 1 + random.Below(8)});
      engines.Correct({random.Between(0.5, 2), random.Between(0.5, 2)}, random.Chance(50));
      CheckHarder(engines, random, seed);
      continue;
    }
    const auto cost = [&random] {
      return IterationCost{random.Chance(20) ? 0 : random.Scale(0.001, 0.05),
                           random.Scale(1e-6, 1e-4), random.Scale(1e-6, 1e-3),
                           random.Scale(1e-9, 1e-6)};
    };
    const EngineLimits limits = {1 + random.Below(20000), 1 + random.Below(500),
                                 1 + random.Below(1000000)};
    CheckHarder(LinearEngines(cost(), cost(), limits), random, seed);
  }
}

// A random linear engine is loaded with what it is said to serve, token by token: where the
// SLA is reachable, no integer number of sequences beyond the chosen one keeps it.
TEST(RequiredReplicasPropertyTest, DecodeEnginesAreAsFullAsTheSlaAllows) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomService random(static_cast<uint32_t>(seed));
    const IterationCost cost = {random.Scale(0.001, 0.05), 0, random.Scale(1e-6, 1e-3),
                                random.Scale(1e-9, 1e-6)};
    const EngineLimits limits = {8192, 1 + random.Below(300), 20000 + random.Below(1000000)};
    const Service service = DrawService(random);
    const double context = service.load.input_tokens + service.load.output_tokens / 2;
    int best = 0;
    for (int n = 1; n <= limits.max_sequences; ++n) {
      const bool fits = n * context <= static_cast<double>(limits.max_kv_tokens);
      if (fits && cost.Seconds(0, n, n * context) <= service.sla.itl) best = n;
    }
    const RequiredReplicas required =
        Require(LinearEngines(IterationCost{}, cost, limits), service.load, service.sla);
    if (best == 0) {
      EXPECT_NE(required.decode, RequirementReason::kOk) << seed;
      continue;
    }
    EXPECT_NEAR(required.itl, cost.Seconds(0, best, best * context), 1e-12) << seed;
    const double engines = service.load.request_rate * service.load.output_tokens *
                           cost.Seconds(0, best, best * context) / best;
    EXPECT_NEAR(required.decode_engines, engines, 1e-9 * engines) << seed;
  }
}

}  // namespace
}  // namespace tessera
