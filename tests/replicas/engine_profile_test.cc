#include "tessera/replicas/engine_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/replicas/random_service.h"
#include "tests/support/random_cases.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// An engine of 4 GPUs at a context of 3150 with room for 100 sequences, whose ITL is 10 ms
// and 80 ms times the KV use: the decode engine of Dynamo's worked example.
DecodeProfile WorkedDecode(int kv_cells) {
  std::vector<DecodeSample> samples;
  for (const double u : {0.1, 1.0}) {
    const double itl = 0.010 + 0.080 * u;
    samples.push_back({3150, u, itl, 100 * u / itl / 4});
  }
  return *DecodeProfile::Create(samples, {315000, kv_cells}, "decode");
}

TEST(PrefillProfileTest, IsLinearBetweenSamplesAndProportionalBeyond) {
  // Costs 0.1 and 0.3 GPU-seconds.
  const std::vector<PrefillSample> samples = {{1000, 0.06, 10000}, {3000, 0.15, 10000}};
  const PrefillProfile profile = *PrefillProfile::Create(samples, "prefill");
  struct Case {
    double tokens, ttft, gpu_seconds;
  };
  for (const Case& c : std::vector<Case>{{0, 0.06, 0},
                                         {500, 0.06, 0.05},
                                         {1000, 0.06, 0.1},
                                         {2000, 0.105, 0.2},
                                         {3000, 0.15, 0.3},
                                         {6000, 0.30, 0.6}}) {
    EXPECT_DOUBLE_EQ(profile.Ttft(c.tokens), c.ttft) << c.tokens;
    EXPECT_DOUBLE_EQ(profile.GpuSeconds(c.tokens), c.gpu_seconds) << c.tokens;
    EXPECT_DOUBLE_EQ(profile.TokensPerSecondPerGpu(c.tokens), 10000) << c.tokens;
  }
}

// An engine with a fixed cost of 10 ms and 50 us per token: its cost is linear, its
// throughput is not, so the cost is what must be interpolated.
TEST(PrefillProfileTest, IsExactWhereIterationsCostAFixedTimeAndSoMuchPerToken) {
  const auto cost = [](double tokens) { return 0.010 + 5e-5 * tokens; };
  const std::vector<PrefillSample> samples = {{200, cost(200), 200 / cost(200)},
                                              {5000, cost(5000), 5000 / cost(5000)}};
  const PrefillProfile profile = *PrefillProfile::Create(samples, "prefill");
  EXPECT_DOUBLE_EQ(profile.GpuSeconds(1000), 0.060);
  EXPECT_DOUBLE_EQ(profile.TokensPerSecondPerGpu(1000), 1000 / 0.060);
  // Throughput, interpolated, would give 200 / 0.020 + (19231 - 10000) / 6 = 11538 tokens/s.
}

TEST(PrefillProfileTest, ExplainsWhatIsWrong) {
  struct Case {
    std::vector<PrefillSample> samples;
    std::string_view message;
  };
  for (const Case& c : std::vector<Case>{
           {{}, "prefill.samples: there are none"},
           {{{0, 1, 1}}, "prefill.samples[0].input_tokens: 0 is not in 1e-12..1e+12"},
           {{{10, kNaN, 1}}, "prefill.samples[0].ttft: nan is not in 1e-12..1e+12"},
           {{{10, 1, 1e300}},
            "prefill.samples[0].tokens_per_second_per_gpu: 1e+300 is not in 1e-12..1e+12"},
           {{{10, 1, 1}, {10, 1, 1}},
            "prefill.samples[1].input_tokens: 10 is not above 10 of the sample before"},
           {{{10, 1, 1}, {5, 1, 1}},
            "prefill.samples[1].input_tokens: 5 is not above 10 of the sample before"},
           {{{10, 0.15, 1}, {20, 0.1, 1}},
            "prefill.samples[1].ttft: 0.1 is below 0.15, that of a shorter input"},
           {{{10, 1, 1}, {20, 1, 3}},
            "prefill.samples[1].tokens_per_second_per_gpu: 3 makes an input of 20 tokens "
            "cheaper than one of 10"}}) {
    EXPECT_THAT(PrefillProfile::Create(c.samples, "prefill"),
                StatusIs(absl::StatusCode::kInvalidArgument, std::string(c.message)));
  }
}

TEST(DecodeProfileTest, LookUpsOfTheWorkedExample) {
  // KV use 39.675 x 3150 / 315000; ITL there; the fullest point within 50 ms over the
  // correction 52.5 ms / ITL; tokens/s of an engine there.
  struct Case {
    std::string_view name;
    int cells;
    double itl, factor, limit, kv_usage, tokens_per_second;
  };
  for (const Case& c : {Case{"11 cells", 11, 0.0420, 1.25, 0.0400, 0.3, 882.353},
                        Case{"100 cells", 100, 0.0415152, 1.26460, 0.0395382, 36 / 99.0, 930.233},
                        Case{"continuous", 0, 0.0417400, 1.25779, 0.0397524, 0.371905, 935.553},
                        Case{"not corrected", 11, 0.0420, 1, 0.050, 0.5, 1000}}) {
    const DecodeProfile profile = WorkedDecode(c.cells);
    const double kv_usage = profile.KvUsage(39.675, 3150);
    EXPECT_DOUBLE_EQ(kv_usage, 0.39675);
    const double itl = profile.At(kv_usage, 3150).itl;
    EXPECT_NEAR(itl, c.itl, 5e-8) << c.name;
    const double factor = c.factor == 1 ? 1 : 0.0525 / itl;
    EXPECT_NEAR(factor, c.factor, 5e-6) << c.name;
    EXPECT_NEAR(0.050 / factor, c.limit, 5e-8) << c.name;
    const DecodePoint point = profile.CheapestWithin(0.050 / factor, 3150);
    EXPECT_TRUE(point.reachable);
    EXPECT_NEAR(point.kv_usage, c.kv_usage, 5e-7) << c.name;
    EXPECT_NEAR(4 * point.tokens_per_second_per_gpu(), c.tokens_per_second, 5e-4) << c.name;
  }
}

// Dynamo's planner takes the emptiest cell then, without a word.
TEST(DecodeProfileTest, SaysWhenNothingKeepsTheSla) {
  for (const int cells : {0, 11, 100}) {
    const DecodePoint point = WorkedDecode(cells).CheapestWithin(0.0179, 3150);
    EXPECT_FALSE(point.reachable);
    EXPECT_DOUBLE_EQ(point.itl, 0.018);
    EXPECT_DOUBLE_EQ(4 * point.tokens_per_second_per_gpu(), 10 / 0.018);
  }
  EXPECT_TRUE(WorkedDecode(0).CheapestWithin(0.018, 3150).reachable);
}

TEST(DecodeProfileTest, NeverGoesBeyondWhatWasMeasured) {
  const DecodeProfile profile = WorkedDecode(0);
  EXPECT_DOUBLE_EQ(profile.CheapestWithin(1, 3150).kv_usage, 1);
  EXPECT_DOUBLE_EQ(profile.At(0, 3150).itl, 0.018);
  // Twice the context: half as many sequences in the same memory, hence half the tokens.
  const DecodePoint longer = profile.CheapestWithin(0.05, 6300);
  EXPECT_DOUBLE_EQ(4 * longer.tokens_per_second_per_gpu(), 500);
  // A shorter one is not credited with more.
  EXPECT_DOUBLE_EQ(4 * profile.CheapestWithin(0.05, 100).tokens_per_second_per_gpu(), 1000);
}

TEST(DecodeProfileTest, TakesALowerKvUseWithMoreThroughput) {
  // At 0.8 the engine thrashes.
  const std::vector<DecodeSample> samples = {
      {1000, 0.2, 0.02, 500}, {1000, 0.5, 0.03, 900}, {1000, 0.8, 0.06, 600}};
  const DecodeProfile profile = *DecodeProfile::Create(samples, {1e5, 0}, "decode");
  const DecodePoint point = profile.CheapestWithin(0.1, 1000);
  EXPECT_EQ(point.kv_usage, 0.5);
  EXPECT_DOUBLE_EQ(point.tokens_per_second_per_gpu(), 900);
}

TEST(DecodeProfileTest, IsLinearBetweenContexts) {
  // Both hold KV use x 100,000 tokens: 50 sequences of 1000, or 25 of 2000, within 50 ms.
  std::vector<DecodeSample> samples;
  for (const double context : {1000.0, 2000.0}) {
    for (const double u : {0.25, 1.0}) {
      samples.push_back({context, u, 0.1 * u, u * 1e5 / context / (0.1 * u)});
    }
  }
  const DecodeProfile profile = *DecodeProfile::Create(samples, {1e5, 0}, "decode");
  EXPECT_DOUBLE_EQ(profile.CheapestWithin(0.05, 1000).tokens_per_second_per_gpu(), 1000);
  // 33.3 sequences of 1500.
  EXPECT_DOUBLE_EQ(profile.CheapestWithin(0.05, 1500).tokens_per_second_per_gpu(), 2000 / 3.0);
  EXPECT_DOUBLE_EQ(profile.At(0.5, 1500).tokens_per_second_per_gpu(), 2000 / 3.0);
  EXPECT_DOUBLE_EQ(profile.CheapestWithin(0.05, 2000).tokens_per_second_per_gpu(), 500);
  EXPECT_DOUBLE_EQ(profile.CheapestWithin(0.05, 4000).tokens_per_second_per_gpu(), 250);
}

TEST(DecodeProfileTest, ExplainsWhatIsWrong) {
  const DecodeSample good = {1000, 0.5, 0.03, 900};
  struct Case {
    std::vector<DecodeSample> samples;
    DecodeProfileOptions options;
    std::string_view message;
  };
  for (const Case& c : std::vector<Case>{
           {{}, {1e5, 0}, "decode.samples: there are none"},
           {{good}, {0, 0}, "decode.max_kv_tokens: 0 is not in 1e-12..1e+12"},
           {{good}, {1e5, 1}, "decode.kv_cells: 1 is neither 0 nor in 2..10000"},
           {{{-1, 0.5, 0.03, 900}},
            {1e5, 0},
            "decode.samples[0].context_tokens: -1 is not in 1e-12..1e+12"},
           {{{1000, 0, 0.03, 900}},
            {1e5, 0},
            "decode.samples[0].kv_usage: 0 is not in 1e-12..1e+12"},
           {{{1000, 1.5, 0.03, 900}}, {1e5, 0}, "decode.samples[0].kv_usage: 1.5 is above 1"},
           {{good, good},
            {1e5, 0},
            "decode.samples[1].kv_usage: 0.5 is not above 0.5 of the sample before"},
           {{good, {900, 0.6, 0.03, 900}},
            {1e5, 0},
            "decode.samples[1].context_tokens: 900 is below 1000 of the sample before"},
           {{good, {1000, 0.6, 0.02, 900}},
            {1e5, 0},
            "decode.samples[1].itl: 0.02 is below 0.03, that of a lower KV use"},
           {{good, {1000, 0.6, 0.04, kNaN}},
            {1e5, 0},
            "decode.samples[1].tokens_per_second_per_gpu: nan is not in 1e-12..1e+12"}}) {
    EXPECT_THAT(DecodeProfile::Create(c.samples, c.options, "decode"),
                StatusIs(absl::StatusCode::kInvalidArgument, std::string(c.message)));
  }
}

// Rounding may turn a pair of doubles around, by far less than this.
bool IsAtLeast(double a, double b) { return a >= b * (1 - 1e-12); }

TEST(ProfilePropertyTest, CostsRiseWithLengthAndFallWithTheLimit) {
  const int cases = RandomCases(1000, 20000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomService random(static_cast<uint32_t>(seed));
    const auto prefill = PrefillProfile::Create(random.DrawPrefill(), "prefill");
    const std::vector<DecodeSample> samples = random.DrawDecode();
    const int cells = random.Chance(30) ? 2 + random.Below(100) : 0;
    const auto decode = DecodeProfile::Create(samples, {1e5, cells}, "decode");
    ASSERT_THAT(prefill, IsOk());
    ASSERT_THAT(decode, IsOk());
    for (int i = 0; i < 10; ++i) {
      const double length = random.Scale(5, 1e5), longer = length * random.Between(1, 3);
      EXPECT_GE(prefill->Ttft(longer), prefill->Ttft(length));
      EXPECT_TRUE(IsAtLeast(prefill->GpuSeconds(longer), prefill->GpuSeconds(length)));
      const double limit = random.Scale(0.002, 0.2), looser = limit * random.Between(1, 3);
      const DecodePoint point = decode->CheapestWithin(limit, length);
      const DecodePoint at_longer = decode->CheapestWithin(limit, longer);
      const DecodePoint at_looser = decode->CheapestWithin(looser, length);
      EXPECT_TRUE(IsAtLeast(at_longer.gpu_seconds, point.gpu_seconds)) << seed;
      EXPECT_TRUE(IsAtLeast(point.gpu_seconds, at_looser.gpu_seconds)) << seed;
      EXPECT_GE(point.reachable, at_longer.reachable);
      EXPECT_LE(point.reachable, at_looser.reachable);
      EXPECT_TRUE(!point.reachable || point.itl <= limit * (1 + 1e-9));
    }
  }
}

// At a sampled context the answer is that of a fine scan of the table.
TEST(ProfilePropertyTest, CheapestPointIsThatOfAScan) {
  const int cases = RandomCases(300, 3000);
  for (int seed = 0; seed < cases; ++seed) {
    RandomService random(static_cast<uint32_t>(seed));
    std::vector<DecodeSample> samples = random.DrawDecode();
    std::erase_if(samples, [&](const DecodeSample& s) {
      return s.context_tokens != samples.front().context_tokens;
    });
    const auto decode = DecodeProfile::Create(samples, {1e5, 0}, "decode");
    ASSERT_THAT(decode, IsOk());
    const double context = samples.front().context_tokens, limit = random.Scale(0.002, 0.2);
    const DecodePoint found = decode->CheapestWithin(limit, context);
    double cheapest = std::numeric_limits<double>::infinity();
    const double low = samples.front().kv_usage, high = samples.back().kv_usage;
    for (int i = 0; i <= 2000; ++i) {
      const DecodePoint at = decode->At(low + (high - low) * i / 2000, context);
      if (at.itl <= limit) cheapest = std::min(cheapest, at.gpu_seconds);
    }
    ASSERT_EQ(found.reachable, cheapest < 1e9) << seed;
    if (!found.reachable) continue;
    EXPECT_LE(found.gpu_seconds, cheapest * (1 + 1e-9)) << seed;
    EXPECT_GE(found.gpu_seconds, cheapest * 0.97) << seed;
  }
}

}  // namespace
}  // namespace tessera
