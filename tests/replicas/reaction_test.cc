#include "tessera/replicas/reaction.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tessera {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The engines of the worked example: 50 us a prompt token; an iteration over 315,000
// tokens takes 80 ms more than an empty one of 10 ms.
double PromptTime(double tokens) { return 5e-5 * tokens; }
double IterationTime(double /*requests*/, double kv_tokens) {
  return 0.010 + 0.08 / 315000 * kv_tokens;
}

Reaction Prefill(std::vector<double> queued, double sla = 0.5) {
  return ReactToPrefill(queued, 3000, PromptTime,
                        {.sla = sla, .engines = static_cast<int64_t>(queued.size())});
}
Reaction Decode(const std::vector<DecodeEngineLoad>& engines, double sla = 0.05,
                double max_kv = 315000) {
  return ReactToDecode(engines, 3150, max_kv, IterationTime,
                       {.sla = sla, .engines = static_cast<int64_t>(engines.size())});
}

TEST(ReactionTest, ConsolidationOfDecodeInTheWorkedExample) {
  // Two engines of 120,000 tokens: 41.276 ms now, 71.752 ms once one of them is gone; the
  // limit is 0.8 * 50 = 40 ms.
  EXPECT_NEAR(IterationTime(1, 120000 + 3150), 0.041276, 1e-6);
  EXPECT_NEAR(IterationTime(1, 240000 + 3150), 0.071752, 1e-6);
  EXPECT_EQ(Decode({{0, 120000}, {0, 120000}}), Reaction::kStay);
  // Four of 60,000: 26.038 ms now, 31.117 ms with 80,000 on each of three.
  EXPECT_NEAR(IterationTime(1, 60000 + 3150), 0.026038, 1e-6);
  EXPECT_NEAR(IterationTime(1, 80000 + 3150), 0.031117, 1e-6);
  EXPECT_EQ(Decode(std::vector<DecodeEngineLoad>(4, {0, 60000})), Reaction::kDown);
}

TEST(ReactionTest, ConsolidationOfPrefillInTheWorkedExample) {
  // A prompt takes 150 ms of 500; 0.8 of the rest is 280 ms. 2,500 tokens queue for
  // 125 ms, or 250 ms on the only engine left; 3,000 would take 300 ms.
  EXPECT_EQ(Prefill({2500, 2500}), Reaction::kDown);
  EXPECT_EQ(Prefill({3000, 3000}), Reaction::kStay);
  EXPECT_EQ(Prefill({0, 3000}), Reaction::kStay) << "each engine is asked";
}

TEST(ReactionTest, UpOnlyWhenEveryEngineIsTooSlow) {
  EXPECT_EQ(Prefill({7001, 7001}), Reaction::kUp) << "500.05 ms each";
  EXPECT_EQ(Prefill({7001, 0}), Reaction::kStay) << "a matter of routing";
  EXPECT_EQ(Prefill({7001}), Reaction::kUp);
  EXPECT_EQ(Decode({{0, 160000}, {0, 160000}}), Reaction::kUp) << "51.4 ms";
  EXPECT_EQ(Decode({{0, 160000}, {0, 100}}), Reaction::kStay);
}

TEST(ReactionTest, TheLastEngineIsNotGivenUp) {
  EXPECT_EQ(Prefill({0}), Reaction::kStay);
  EXPECT_EQ(Decode({{0, 0}}), Reaction::kStay);
}

TEST(ReactionTest, OneFewerMustHoldTheTokens) {
  const std::vector<DecodeEngineLoad> two(2, {0, 10000});
  EXPECT_EQ(Decode(two), Reaction::kDown);
  EXPECT_EQ(Decode(two, 0.05, 23150), Reaction::kStay) << "20,000 + 3,150 are not below";
  EXPECT_EQ(Decode(two, 0.05, 23151), Reaction::kDown);
}

TEST(ReactionTest, RequestsCountAsTheModelSays) {
  const auto by_requests = [](double requests, double) { return 0.001 * requests; };
  const std::vector<DecodeEngineLoad> two(2, {20, 0});
  const auto react = [&](double sla) {
    return ReactToDecode(two, 0, 1, by_requests, {.sla = sla, .engines = 2});
  };
  EXPECT_EQ(react(0.0209), Reaction::kUp) << "21 ms with one more";
  EXPECT_EQ(react(0.0211), Reaction::kStay);
  EXPECT_EQ(react(0.0512), Reaction::kStay) << "41 ms on one engine, of 40.96";
  EXPECT_EQ(react(0.0513), Reaction::kDown);
}

TEST(ReactionTest, WhatIsNotKnownIsNoSignal) {
  EXPECT_EQ(Prefill({}), Reaction::kNone);
  EXPECT_EQ(Prefill({kNaN, 0}), Reaction::kNone);
  EXPECT_EQ(Prefill({-1, 0}), Reaction::kNone);
  EXPECT_EQ(Decode({{0, kNaN}, {0, 0}}), Reaction::kNone);
  EXPECT_EQ(Decode({{std::numeric_limits<double>::infinity(), 0}, {0, 0}}), Reaction::kNone);
  const std::vector<double> one = {0};
  EXPECT_EQ(ReactToPrefill(one, 3000, PromptTime, {.sla = 0.5, .engines = 2}), Reaction::kNone)
      << "one of two did not report";
  EXPECT_EQ(ReactToPrefill(one, kNaN, PromptTime, {.sla = 0.5, .engines = 1}), Reaction::kNone);
}

TEST(ReactionTest, AModelThatAnswersNonsenseShrinksNothing) {
  const auto nonsense = [](double, double) { return kNaN; };
  const std::vector<DecodeEngineLoad> two(2, {1, 1});
  EXPECT_EQ(ReactToDecode(two, 1, 100, nonsense, {.sla = 1, .engines = 2}), Reaction::kStay);
}

TEST(ReactionTest, AnEngineThatDoesBoth) {
  using enum Reaction;
  struct Row {
    Reaction prefill, decode, both;
  };
  for (const Row& row : {Row{kUp, kNone, kUp}, Row{kDown, kUp, kUp}, Row{kDown, kDown, kDown},
                         Row{kDown, kStay, kStay}, Row{kDown, kNone, kStay},
                         Row{kNone, kStay, kStay}, Row{kNone, kNone, kNone}}) {
    EXPECT_EQ(Combine(row.prefill, row.decode), row.both);
    EXPECT_EQ(Combine(row.decode, row.prefill), row.both);
  }
  EXPECT_EQ(ToString(kDown), "down");
}

}  // namespace
}  // namespace tessera
