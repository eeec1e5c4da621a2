#include "tessera/io/service_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tessera/base/status.h"
#include "tessera/replicas/service_replay.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

constexpr char kFull[] = R"({
  "apiVersion": "tessera/v1", "kind": "Service", "name": "chat", "mode": "disaggregated",
  "sla": {"ttft": 0.5, "itl": 5e-2},
  "engines": {
    "prefill": {"gpus": 2, "minimum": 1, "profile": {"samples": [
      {"input_tokens": 3000, "ttft": 0.15, "tokens_per_second_per_gpu": 10000}]}},
    "decode": {"gpus": 4, "minimum": 2, "max_kv_tokens": 315000, "max_sequences": 64,
      "profile": {"samples": [{"context_tokens": 3150, "kv_usage": 0.5, "itl": 0.05,
                               "tokens_per_second_per_gpu": 250}]}}},
  "rules": {"max_gpus": 28, "min_gpus": 4, "max_step": 2, "down_delay": 60,
            "pending_timeout": 120, "utilization": 0.9},
  "predictor": {"kind": "trend", "ahead": 5, "level_noise": 2},
  "history": {"interval": 60, "requests": [600, null, 900], "input_tokens": [1, 2, 3],
              "output_tokens": 300, "prefix_hit_rate": 0.25},
  "status": {"now": 7, "expected": {"prefill": 2, "decode": 6}, "ready": {"prefill": 1, "decode": 6},
             "queued_tokens": [10.5], "decoding": [{"requests": 3, "kv_tokens": 9000}]}
})";

absl::StatusOr<ServiceSpec> Parse(std::string_view json) {
  TESSERA_ASSIGN_OR_RETURN(const ServiceFile file, ParseServiceFile(json));
  return file.service;
}

// `kFull` with the first `from` replaced.
std::string With(std::string_view from, std::string_view to) {
  std::string text = kFull;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

TEST(ServiceJsonTest, ReadsEveryField) {
  const absl::StatusOr<ServiceSpec> spec = Parse(kFull);
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->name, "chat");
  EXPECT_EQ(spec->sla, (Sla{0.5, 0.05}));
  EXPECT_EQ(spec->rules.gpus, (EngineGpus{2, 4}));
  EXPECT_EQ(spec->rules.minimum, (ReplicaCounts{1, 2}));
  EXPECT_EQ(spec->rules.max_gpus, 28);
  EXPECT_EQ(spec->rules.min_gpus, 4);
  EXPECT_EQ(spec->rules.max_step, 2);
  EXPECT_EQ(spec->rules.down_delay, 60);
  EXPECT_EQ(spec->rules.pending_timeout, 120);
  EXPECT_EQ(spec->utilization, 0.9);
  EXPECT_THAT(spec->prefill.samples, ElementsAre(PrefillSample{3000, 0.15, 10000}));
  EXPECT_THAT(spec->decode.samples, ElementsAre(DecodeSample{3150, 0.5, 0.05, 250}));
  EXPECT_EQ(spec->limits.max_kv_tokens, 315000);
  EXPECT_EQ(spec->limits.max_sequences, 64);
  EXPECT_EQ(spec->predictor.kind, PredictorKind::kTrend);
  EXPECT_EQ(spec->predictor.ahead, 5);
  EXPECT_EQ(spec->predictor.trend.level_noise, 2);
  EXPECT_EQ(spec->interval, 60);
  ASSERT_EQ(spec->history.size(), 3u);
  EXPECT_EQ(spec->history[0], (ServiceLoad{10, 1, 300, 0.25}));
  EXPECT_TRUE(std::isnan(spec->history[1].request_rate));
  EXPECT_EQ(spec->history[2], (ServiceLoad{15, 3, 300, 0.25}));
  EXPECT_EQ(spec->status.now, 7);
  EXPECT_EQ(spec->status.expected, (ReplicaCounts{2, 6}));
  EXPECT_EQ(spec->status.ready, (ReplicaCounts{1, 6}));
  EXPECT_THAT(spec->queued_tokens, ElementsAre(10.5));
  EXPECT_THAT(spec->decoding, ElementsAre(DecodeEngineLoad{3, 9000}));
}

TEST(ServiceJsonTest, ReadyIsExpectedUnlessSaid) {
  const auto spec = Parse(With(R"(, "ready": {"prefill": 1, "decode": 6})", ""));
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->status.ready, (ReplicaCounts{2, 6}));
  EXPECT_EQ(spec->rules.mode, ServiceMode::kDisaggregated);
}

TEST(ServiceJsonTest, MalformedServices) {
  struct Row {
    std::string_view from, to, message;
  };
  const Row rows[] = {
      {R"("kind": "Service", )", "", "kind: is missing"},
      {R"("kind": "Service")", R"("kind": "Plan")", "kind: must be \"Service\", not \"Plan\""},
      {R"("name": "chat", )", "", "name: is missing"},
      {R"("disaggregated")", R"("agregated")", "mode: must be \"disaggregated\" or \"aggregated\""},
      {R"("sla")", R"("slas")", "slas: is not a known field; did you mean \"sla\"?"},
      {R"("ttft": 0.5)", R"("ttft": "0.5")", "sla.ttft: must be a number, not a string"},
      {R"("ttft": 0.5)", R"("ttft": 1e-999)",
       "sla.ttft: 1e-999 is not a number that a double can hold"},
      {R"("itl": 5e-2)", R"("itl": null)", "sla.itl: must be a number, not null"},
      {R"("gpus": 2)", R"("gpu": 2)",
       "engines.prefill.gpu: is not a known field; did you mean \"gpus\"?"},
      {R"("gpus": 2, )", "", "engines.prefill.gpus: is missing"},
      {R"("gpus": 2)", R"("gpus": 2.5)", "engines.prefill.gpus: must be a whole number, not 2.5"},
      {R"("max_kv_tokens": 315000, )", "", "engines.decode.max_kv_tokens: is missing"},
      {R"("profile": {"samples": [
      {"input)",
       R"("iteration": {}, "profile": {"samples": [
      {"input)",
       "engines.prefill: has both \"profile\" and \"iteration\""},
      {R"("ttft": 0.15, )", "", "engines.prefill.profile.samples[0].ttft: is missing"},
      {R"(, "itl": 0.05,)", ",", "engines.decode.profile.samples[0].itl: is missing"},
      {R"("disaggregated")", R"("aggregated")", ""},
      {R"("max_gpus": 28)", R"("max_gpu": 28)",
       "rules.max_gpu: is not a known field; did you mean \"max_gpus\"?"},
      {R"("kind": "trend")", R"("kind": "trends")", "did you mean \"trend\"?"},
      {R"("interval": 60)", R"("interval": 0)", "history.interval: is 0, not within 1 and 1000000"},
      {R"([600, null, 900])", "900", "history.requests: must be an array"},
      {R"([600, null, 900])", R"([600, "x", 900])",
       "history.requests[1]: must be a number, not a string"},
      {R"([1, 2, 3])", "[1, 2]", "history.input_tokens: has 2 entries, but \"requests\" 3"},
      {R"("expected": {"prefill": 2, "decode": 6}, )", "", "status.expected: is missing"},
      {R"("decode": 6}, "ready")", R"("decodes": 6}, "ready")",
       "status.expected.decodes: is not a known field"},
      {R"({"requests": 3, )", "{", "status.decoding[0].requests: is missing"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.to);
    const absl::StatusOr<ServiceSpec> spec = Parse(With(row.from, row.to));
    if (row.message.empty()) {
      EXPECT_THAT(spec, IsOk());
    } else {
      EXPECT_THAT(
          spec, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(row.message))));
    }
  }
}

TEST(ServiceJsonTest, EnginesAreDescribedOneWay) {
  const auto parse = [](std::string_view mode, std::string_view engines) {
    std::string text = R"({"apiVersion": "tessera/v1", "kind": "Service", "name": "s", "mode": ")";
    text += std::string(mode) + R"(", "sla": {"ttft": 1, "itl": 1}, "engines": )";
    text += std::string(engines) + R"(, "history": {"interval": 60, "requests": [],
        "input_tokens": 1, "output_tokens": 1}, "status": {"expected": {}}})";
    return std::string(ToStd(Parse(text).status().message()));
  };
  constexpr char kDecode[] = R"("decode": {"gpus": 1, "max_kv_tokens": 9, "iteration": {}})";
  constexpr char kProfiled[] = R"("prefill": {"gpus": 1, "profile": {"samples": [
      {"input_tokens": 1, "ttft": 1, "tokens_per_second_per_gpu": 1}]}})";
  const std::string decode = kDecode, profiled = kProfiled;
  EXPECT_EQ(parse("aggregated", "{" + decode + "}"), "");
  EXPECT_EQ(parse("aggregated", "{" + profiled + ", " + decode + "}"),
            "engines.prefill: is not used: aggregated engines have one cost per iteration");
  EXPECT_EQ(parse("disaggregated", "{" + decode + "}"), "engines.prefill: is missing");
  EXPECT_EQ(parse("disaggregated", "{" + profiled + ", " + decode + "}"),
            "engines: describe one role by a profile and the other by iterations");
  EXPECT_EQ(parse("disaggregated", R"({"decode": {"gpus": 1, "max_kv_tokens": 9}})"),
            "engines.decode: has neither \"profile\" nor \"iteration\"");
  EXPECT_EQ(parse("disaggregated", R"({"decode": {"gpus": 1, "max_kv_tokens": 9,
                                       "iteration": {"fixed": -1}}})"),
            "engines.decode.iteration: has a cost that is negative or absurd");
}

TEST(ServiceJsonTest, WhatEnginesAreMadeOf) {
  std::string text = With(R"("gpus": 2, "minimum": 1)",
                          R"("pods": {"request": {"cpu": 4, "gpu": 2}, "gpu_models": ["H100"]})");
  EXPECT_EQ(ParseServiceFile(text)->shape, std::nullopt) << "decode does not say";
  const auto replace = [&text](std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace(
      R"("gpus": 4, "minimum": 2)",
      R"("gpus": 16, "pods": {"count": 2, "request": {"gpu": 8}, "topology": {"required": "rack"}})");
  replace(R"("rules":)", R"("workload": {"queue": "nlp", "priority": 100,
      "router": {"name": "router", "request": {"cpu": 2}}, "topology": {"preferred": "block"},
      "pods": [{"pod_set": "prefill", "index": 0, "node": "n1", "gpus": [0, 1]}]}, "rules":)");
  const absl::StatusOr<ServiceFile> file = ParseServiceFile(text);
  ASSERT_THAT(file, IsOk());
  ASSERT_TRUE(file->shape);
  EXPECT_EQ(file->service.rules.gpus, (EngineGpus{2, 16}));
  EXPECT_EQ(file->shape->prefill.pod.request.cpu, 4000);
  EXPECT_THAT(file->shape->prefill.pod.gpu_models, ElementsAre("H100"));
  EXPECT_EQ(file->shape->decode.pods, 2);
  EXPECT_EQ(file->shape->decode.topology.required, "rack");
  EXPECT_EQ(file->shape->topology.preferred, "block");
  EXPECT_EQ(file->shape->router->name, "router");
  EXPECT_EQ(file->workload.name, "chat");
  EXPECT_EQ(file->workload.queue, "nlp");
  EXPECT_EQ(file->workload.priority, 100);
  EXPECT_EQ(file->workload.pods.size(), 1u);
  replace(R"("gpus": 16)", R"("gpus": 8)");
  EXPECT_THAT(ParseServiceFile(text),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "engines.decode.gpus: is 8, but the pods of an engine have 16"));
}

// No beginning of a file crashes the parser, and neither does a byte that is not what it was.
TEST(ServiceJsonTest, DamagedFilesAreAnswered) {
  const std::string full = kFull;
  for (size_t i = 0; i < full.size(); ++i) {
    EXPECT_FALSE(Parse(full.substr(0, i)).ok());
    std::string damaged = full;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x15);
    const auto spec = Parse(damaged);
    if (spec.ok()) (void)DecideReplicas(*spec);
  }
}

// The same service, of iterations and with all that can be said of who asks.
constexpr char kMade[] = R"({
  "apiVersion": "tessera/v1", "kind": "Service", "name": "chat",
  "sla": {"ttft": 0.5, "itl": 5e-2},
  "engines": {
    "prefill": {"pods": {"request": {"cpu": 4, "gpu": 2}, "gpu_models": ["H100"],
                         "tolerations": [{"key": "k"}], "max_per_node": 2},
                "max_batched_tokens": 8192, "iteration": {"per_prefill_token": 5e-5}},
    "decode": {"gpus": 8, "pods": {"count": 2, "request": {"gpu": 4}, "selector": {"a": "b"},
                                   "topology": {"required": "rack"}},
               "max_kv_tokens": 315000,
               "iteration": {"fixed": 0.01, "per_sequence": 1e-4, "per_kv_token": 2.54e-7}}},
  "predictor": {"kind": "seasonal", "ahead": 2, "season": 2, "level_gain": 0.5, "trend_gain": 0,
                "season_gain": 1},
  "history": {"interval": 60, "requests": [600, 700, 900], "input_tokens": 3000,
              "output_tokens": 300},
  "workload": {"queue": "nlp", "priority": 9, "preemptible": true, "tenant": "t",
    "router": {"name": "router", "request": {"cpu": 2}}, "topology": {"preferred": "block"},
    "pods": [{"pod_set": "prefill", "index": 0, "node": "n1", "gpus": [0, 1]}]},
  "status": {"expected": {"prefill": 2, "decode": 6}, "decoding": [{"requests": 3, "kv_tokens": 9}]}
})";

// The path of a place, as messages write it: `/a/0/b` as `a[0].b`.
std::string PathOf(const Json::json_pointer& place) {
  std::string path;
  for (Json::json_pointer at = place; !at.empty(); at.pop_back()) {
    const std::string& key = at.back();
    const bool is_index = std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
    std::string step = is_index ? "[" + key + "]" : key;
    if (!is_index && !at.parent_pointer().empty()) step.insert(0, ".");
    path.insert(0, step);
  }
  return path;
}

// What is read can be decided and replayed, or is told; what is not names the member of the
// file that was changed.
void TryService(const std::string& json, const std::string& path) {
  const absl::StatusOr<ServiceSpec> spec = Parse(json);
  const absl::Status status = spec.ok() ? DecideReplicas(*spec).status() : spec.status();
  if (spec.ok()) {
    const std::vector<ServiceLoad> loads(3, {5, 1000, 100, 0});
    (void)ReplayService(*spec, loads, {.tick = spec->interval});
    (void)ClairvoyantReplay(*spec, loads, {.tick = spec->interval});
  }
  if (status.ok()) return;
  ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << json;
  if (spec.ok()) return;
  const std::string message(ToStd(status.message()));
  const std::string named = message.substr(0, message.find_first_of(".[:"));
  ASSERT_EQ(named, path.substr(0, path.find_first_of(".["))) << path << ": " << message;
}

// Every value in turn is something else, or missing.
TEST(ServiceJsonTest, EveryValueReplaced) {
  const Json odd[] = {nullptr,
                      true,
                      "",
                      "x",
                      0,
                      -1,
                      0.5,
                      1e300,
                      INT64_MAX,
                      INT64_MIN,
                      Json::array(),
                      Json::object(),
                      Json::array({Json::object()})};
  for (const char* text : {kFull, kMade}) {
    const Json whole = Json::parse(text);
    ASSERT_THAT(Parse(text), IsOk());
    const Json leaves = whole.flatten();
    for (const auto& [place, value] : leaves.items()) {
      for (Json::json_pointer at(place); !at.empty(); at.pop_back()) {
        for (const Json& other : odd) {
          Json changed = whole;
          changed[at] = other;
          ASSERT_NO_FATAL_FAILURE(TryService(changed.dump(), PathOf(at)));
        }
        Json changed = whole;
        Json& parent = changed[at.parent_pointer()];
        if (parent.is_object()) parent.erase(at.back());
        ASSERT_NO_FATAL_FAILURE(TryService(changed.dump(), PathOf(at)));
      }
    }
  }
}

TEST(ServiceJsonTest, TheDemoIsDecided) {
  std::ifstream in(TESSERA_SOURCE_DIR "/examples/service.json");
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const absl::StatusOr<ServiceSpec> spec = Parse(text);
  ASSERT_THAT(spec, IsOk());
  const absl::StatusOr<ServiceDecision> decision = DecideReplicas(*spec);
  ASSERT_THAT(decision, IsOk());
  const std::string json = WriteServiceDecision(*spec, *decision);
  EXPECT_THAT(json, HasSubstr("\"reason\": \"reaction_up\""));
  EXPECT_EQ(json, WriteServiceDecision(*spec, *DecideReplicas(*spec)));
}

}  // namespace
}  // namespace tessera
