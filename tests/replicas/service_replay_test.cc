#include "tessera/replicas/service_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "bench/replicas/day_load.h"
#include "tests/support/random_cases.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using testing::HasSubstr;

// Prompts of 150 ms; iterations of 10 ms and 0.8 ms more for each of up to 100 sequences.
ServiceSpec Example() {
  ServiceSpec spec;
  spec.sla = {0.5, 0.05};
  spec.rules.gpus = {2, 4};
  spec.rules.down_delay = 0;
  spec.prefill.iteration = IterationCost{0, 5e-5, 0, 0};
  spec.decode.iteration = IterationCost{0.010, 0, 0, 0.08 / 315000};
  spec.limits.max_kv_tokens = 315000;
  spec.interval = 60;
  spec.status.expected = spec.status.ready = {1, 2};
  return spec;
}

ServiceLoad Load(double rate) { return {rate, 3000, 300, 0}; }

ReplayResult Replay(const ServiceSpec& spec, const std::vector<ServiceLoad>& loads,
                    const ReplayOptions& options = {.reacts = false}) {
  const absl::StatusOr<ReplayResult> replay = ReplayService(spec, loads, options);
  EXPECT_THAT(replay, IsOk());
  return replay.ok() ? *replay : ReplayResult();
}

ReplayResult Ideal(const ServiceSpec& spec, const std::vector<ServiceLoad>& loads,
                   const ReplayOptions& options = {}) {
  const absl::StatusOr<ReplayResult> replay = ClairvoyantReplay(spec, loads, options);
  EXPECT_THAT(replay, IsOk());
  return replay.ok() ? *replay : ReplayResult();
}

TEST(ServiceReplayTest, LatenciesOfOneTick) {
  // One server busy 4 x 150 ms = 0.6 of the time: a wait of 0.6 / (2 x 0.4) x 150 ms.
  // Two engines make 600 tokens/s each with n = 600 (10 ms + 0.8 ms n) = 6 / 0.52 sequences.
  const ReplayResult replay = Replay(Example(), {Load(4)});
  ASSERT_EQ(replay.ticks.size(), 1u);
  const ReplayTick& tick = replay.ticks[0];
  EXPECT_NEAR(tick.ttft, 0.150 + 0.1125, 1e-9);
  EXPECT_NEAR(tick.itl, 0.010 + 0.0008 * 6 / 0.52, 1e-9);
  EXPECT_TRUE(tick.attained);
  EXPECT_EQ(replay.requests, 120);
  EXPECT_EQ(replay.attained_requests, 120);
  EXPECT_NEAR(replay.gpu_hours, 10 * 30 / 3600.0, 1e-12) << "1 x 2 + 2 x 4 GPUs";
}

TEST(ServiceReplayTest, WhatExceedsTheCapacityWaits) {
  ServiceSpec spec = Example();
  spec.rules.max_gpus = 10;  // what runs
  // 300 requests come, 200 are read, and 50 wait on average, 50 / (20/3 per second) = 7.5 s.
  // Then nothing comes: the 100 that wait are read, 50 of them waiting on average.
  const ReplayResult replay = Replay(spec, {Load(10), {0, 3000, 300, 0}, {0, 3000, 300, 0}});
  EXPECT_NEAR(replay.ticks[0].ttft, 0.150 + 7.5, 1e-6);
  EXPECT_FALSE(replay.ticks[0].attained);
  EXPECT_NEAR(replay.ticks[1].ttft, 0.150 + 7.5, 1e-6);
  EXPECT_EQ(replay.ticks[2].ttft, 0) << "nothing waits any more";
  EXPECT_EQ(replay.requests, 300);
  EXPECT_EQ(replay.attainment(), 0);
  EXPECT_EQ(Replay(spec, {}).attainment(), 1) << "of no requests";
}

TEST(ServiceReplayTest, ServiceWithoutEnginesNeverAnswers) {
  ServiceSpec spec = Example();
  spec.status.expected = spec.status.ready = {0, 0};
  spec.rules.minimum = {0, 0};
  spec.rules.max_gpus = 0;
  const ReplayResult replay = Replay(spec, {Load(4), Load(4)});
  EXPECT_TRUE(std::isinf(replay.ticks[0].ttft));
  EXPECT_EQ(replay.attainment(), 0);
  EXPECT_EQ(replay.gpu_hours, 0);
}

TEST(ServiceReplayTest, EnginesHoldGpusFromTheirStartAndServeLater) {
  ServiceSpec spec = Example();
  // 12/s of 150 ms: 1.8 engines. The first interval ends after two ticks, the third asks
  // for a second engine, which serves from the seventh on.
  const std::vector<ServiceLoad> loads(8, Load(12));
  const ReplayResult replay = Replay(spec, loads, {.tick = 30, .startup = 120, .reacts = false});
  for (size_t i = 0; i < loads.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(replay.ticks[i].expected.prefill, i < 2 ? 1 : 2);
    EXPECT_EQ(replay.ticks[i].ready.prefill, i < 6 ? 1 : 2);
    EXPECT_EQ(replay.ticks[i].forecast_rate == 12, i >= 2) << "before, nothing was measured";
  }
  EXPECT_EQ(Replay(spec, loads, {.tick = 30, .startup = 0, .reacts = false}).ticks[2].ready.prefill,
            2);
}

TEST(ServiceReplayTest, EnginesReportAndTheReactionComesBeforeTheForecast) {
  ServiceSpec spec = Example();
  spec.history = {Load(4)};
  const std::vector<ServiceLoad> loads(2, Load(12));
  EXPECT_EQ(Replay(spec, loads, {.reacts = false}).ticks[1].expected.prefill, 1);
  EXPECT_EQ(Replay(spec, loads, {.reacts = true}).ticks[1].expected.prefill, 2);
}

// --- The planner that knows -----------------------------------------------------------

TEST(ClairvoyantReplayTest, FewestEnginesOfEachInterval) {
  // 3/s: one server busy 0.45 of the time waits 61 ms. 6/s: 0.9 of it, 675 ms, which is too
  // long; two wait 0.45^1.449 / (4 x 0.55) x 150 ms. Decode: within 50 ms 50 sequences, 3.33/s.
  const ReplayResult ideal = Ideal(Example(), {Load(3), Load(3), Load(3), Load(6)});
  const ReplicaCounts few = {1, 1}, more = {2, 2};
  EXPECT_EQ(ideal.ticks[0].ready, few);
  EXPECT_EQ(ideal.ticks[1].ready, few);
  EXPECT_EQ(ideal.ticks[2].ready, more) << "the interval has a tick that needs them";
  EXPECT_EQ(ideal.ticks[3].ready, more);
  EXPECT_NEAR(ideal.ticks[3].ttft, 0.150 + std::pow(0.45, std::sqrt(6) - 1) * 0.150 / 2.2, 1e-9);
  EXPECT_EQ(ideal.attainment(), 1);
}

TEST(ClairvoyantReplayTest, EnginesStartBeforeTheyServe) {
  ServiceSpec spec = Example();
  spec.interval = 30;
  const auto held = [&](int64_t startup) {
    std::string counts;
    const ReplayResult ideal =
        Ideal(spec, {Load(3), Load(3), Load(3), Load(6), Load(3), Load(6), Load(3), Load(3)},
              {.tick = 30, .startup = startup});
    for (const ReplayTick& tick : ideal.ticks) counts += std::to_string(tick.expected.prefill);
    return counts;
  };
  EXPECT_EQ(held(0), "11121211");
  EXPECT_EQ(held(30), "11222211") << "stays for one tick, which a start would take";
  EXPECT_EQ(held(31), "12222211") << "two ticks";
  EXPECT_EQ(held(kMaxReplaySeconds), "22222211");
}

TEST(ClairvoyantReplayTest, WhatCannotBeKeptIsServedWithoutABacklog) {
  ServiceSpec spec = Example();
  spec.sla = {0.1, 0.009};
  const ReplayResult ideal = Ideal(spec, {Load(6)});
  EXPECT_EQ(ideal.ticks[0].ready, (ReplicaCounts{1, 2})) << "6.67/s, and 3.70/s each";
  EXPECT_EQ(ideal.attainment(), 0);
}

// Whether an engine of the role, as full as it can be, does too little for its part of `load`.
bool IsOverloaded(EngineRole role, int64_t engines, const ServiceLoad& load) {
  const double context = load.input_tokens + 150;
  const double sequences = std::min(std::floor(315000 / context), 256.0);
  const double itl = 0.010 + 0.08 / 315000 * sequences * context;
  const double seconds =
      role == EngineRole::kPrefill ? 5e-5 * load.input_tokens : 300 * itl / sequences;
  return load.request_rate * seconds > static_cast<double>(engines);
}

// One engine less of either role would break the SLA or leave a backlog in the interval.
TEST(ClairvoyantReplayTest, AttainsAndHasNoEngineTooMany) {
  for (int i = 0; i < RandomCases(100, 2000); ++i) {
    SCOPED_TRACE(i);
    std::mt19937 random(static_cast<uint32_t>(i));
    const auto between = [&random](double low, double high) {
      return low + (high - low) * static_cast<double>(random() % 1000) / 1000;
    };
    ServiceSpec spec = Example();
    spec.sla = {between(0.2, 1), between(0.012, 0.08)};
    std::vector<ServiceLoad> loads;
    for (int t = 0; t < 2; ++t) loads.push_back({between(1, 40), between(500, 3500), 300, 0});
    const ReplayResult ideal = Ideal(spec, loads, {.startup = 0});
    ASSERT_EQ(ideal.attainment(), 1);
    // A planner with these bounds has these engines and no others.
    for (EngineRole role : kEngineRoles) {
      ReplicaCounts fewer = ideal.ticks[0].ready;
      ASSERT_EQ(ideal.ticks[1].ready, fewer);
      if (OfRole(fewer, role) == 1) continue;
      --OfRole(fewer, role);
      spec.status.expected = spec.status.ready = spec.rules.minimum = fewer;
      spec.rules.max_gpus = GpusOf(spec.rules.gpus, fewer);
      ASSERT_TRUE(Replay(spec, loads).attainment() < 1 ||
                  std::ranges::any_of(loads, [&](const ServiceLoad& load) {
                    return IsOverloaded(role, OfRole(fewer, role), load);
                  }));
      spec.rules.minimum = {1, 1};
    }
  }
}

// --- A day ----------------------------------------------------------------------------

// The best combination of the study (bench/replicas/day_study.cc), on a day of its own.
TEST(ServiceReplayTest, ADayWithinATenthOfThePlanThatKnows) {
  const ServiceDay day(7);
  ServiceSpec spec = day.spec;
  ASSERT_EQ(day.loads.size(), 2880u) << "288 steps of ten ticks";
  spec.interval = kStepSeconds;
  const ReplayOptions options = {.tick = kTickSeconds, .startup = 120, .reacts = false};
  const ReplayResult ideal = Ideal(spec, day.loads, options);
  EXPECT_EQ(ideal.attainment(), 1);
  const ReplayResult replay = Replay(day.Plan(PredictorKind::kTrend, 0.91), day.loads, options);
  EXPECT_GE(replay.attainment(), 0.99);
  EXPECT_LE(replay.gpu_hours, 1.10 * ideal.gpu_hours);
  EXPECT_EQ(replay, Replay(day.Plan(PredictorKind::kTrend, 0.91), day.loads, options));
}

// --- Input ----------------------------------------------------------------------------

TEST(ServiceReplayTest, MalformedInput) {
  const auto error = [](const ServiceSpec& spec, const std::vector<ServiceLoad>& loads,
                        const ReplayOptions& options) {
    const absl::Status status = ReplayService(spec, loads, options).status();
    EXPECT_EQ(ClairvoyantReplay(spec, loads, options).status(), status);
    return std::string(status.message());
  };
  ServiceSpec spec = Example();
  EXPECT_EQ(error(spec, {Load(1)}, {}), "");
  EXPECT_EQ(error(spec, {Load(1)}, {.tick = 0}), "tick: 0 is not in 1..1000000000");
  EXPECT_EQ(error(spec, {Load(1)}, {.startup = -1}), "startup: -1 is not in 0..1000000000");
  EXPECT_EQ(error(spec, {Load(1)}, {.tick = INT64_MAX}),
            "tick: 9223372036854775807 is not in 1..1000000000");
  EXPECT_EQ(error(spec, {Load(1)}, {.startup = INT64_MAX}),
            "startup: 9223372036854775807 is not in 0..1000000000");
  EXPECT_EQ(error(spec, {Load(1)}, {.tick = 45}),
            "interval: 60 is not a multiple of the tick of 45");
  for (const ServiceLoad& load : {Load(-1), Load(std::nan("")), Load(2e15),
                                  ServiceLoad{1, 1, std::nan(""), 0}, ServiceLoad{1, 1, 1, 1.1}}) {
    EXPECT_EQ(error(spec, {Load(1), load}, {}), "loads[1]: is not known in full");
  }
  spec.rules.mode = ServiceMode::kAggregated;
  spec.status.expected = spec.status.ready = {0, 2};
  EXPECT_EQ(error(spec, {Load(1)}, {}), "mode: only prefill and decode engines can be replayed");
  spec = Example();
  spec.sla.itl = 0;
  EXPECT_THAT(error(spec, {Load(1)}, {}), HasSubstr("sla.itl"));
  spec = Example();
  spec.rules.minimum.decode = INT64_MIN;
  EXPECT_THAT(error(spec, {}, {}), HasSubstr("minimum.decode: -9223372036854775808 is not in"));
  spec = Example();
  spec.rules.max_step = 0;
  EXPECT_THAT(error(spec, {Load(1)}, {}), HasSubstr("max_step"));
}

}  // namespace
}  // namespace tessera
