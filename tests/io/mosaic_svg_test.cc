#include "tessera/io/mosaic_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tessera/io/mig_formats.h"
#include "tessera/io/mosaic.h"
#include "tessera/io/snapshot_json.h"
#include "tests/io/random_spec.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int Count(const std::string& text, std::string_view part) {
  int count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

Snapshot Parse(const std::string& json) {
  const absl::StatusOr<Snapshot> snapshot = ParseSnapshot(json);
  EXPECT_THAT(snapshot, IsOk());
  return *snapshot;
}

// Every kind of tile on one A100, GPU by GPU.
constexpr char kOneOfEach[] = R"({"apiVersion": "tessera/v1",
  "nodes": [
    {"name": "n", "gpu_model": "A100-40GB", "mig": "dynamic", "gpus": [
      {}, {}, {"instances": [{"profile": "3g.20gb", "start": 4}, {"profile": "1g.5gb", "start": 0},
                             {"profile": "1g.5gb", "start": 2}]},
      {}, {"healthy": false}]},
    {"name": "other", "gpu_model": "A100-40GB", "gpus": 2}, {"name": "cpu"}],
  "queues": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
  "workloads": [
    {"name": "w", "queue": "a", "gang": {"pod_sets": [
       {"name": "whole", "count": 3, "request": {"gpu": 1}},
       {"name": "half", "count": 2, "request": {"gpu_fraction": 0.25}}]},
     "pods": [{"pod_set": "whole", "index": 0, "node": "n", "gpus": [0]},
              {"pod_set": "whole", "index": 1, "node": "n", "gpus": [3], "phase": "releasing"},
              {"pod_set": "half", "index": 0, "node": "n", "gpus": [1]},
              {"pod_set": "half", "index": 1, "node": "n", "gpus": [1]}]},
    {"name": "v", "queue": "c", "gang": {"pod_sets": [
       {"name": "slice", "count": 2, "request": {"mig": "3g.20gb"}},
       {"name": "next", "request": {"gpu_fraction": 0.5}}]},
     "pods": [{"pod_set": "slice", "index": 0, "node": "n",
               "slices": [{"gpu": 2, "profile": "3g.20gb", "start": 4}]},
              {"pod_set": "next", "node": "n", "gpus": [3], "phase": "nominated"}]}]})";

TEST(MosaicSvgTest, OneOfEachKind) {
  const std::string svg = DrawMosaicSvg(Parse(kOneOfEach), {.title = "T"});
  // The legend adds one rectangle of each kind but the first, and two that are free.
  EXPECT_EQ(Count(svg, "class=\"pod\""), 4);
  EXPECT_EQ(Count(svg, "class=\"leaving\""), 1 + 1);
  EXPECT_EQ(Count(svg, "class=\"nominated\""), 1 + 1);
  EXPECT_EQ(Count(svg, "class=\"idle\""), 2 + 1);
  EXPECT_EQ(Count(svg, "class=\"hole\""), 3 + 1);
  EXPECT_EQ(Count(svg, "class=\"free\""), 3 + 2);
  EXPECT_EQ(Count(svg, "class=\"unhealthy\""), 2 + 2);
  EXPECT_THAT(svg, HasSubstr(">T</text>"));
  EXPECT_THAT(svg, HasSubstr(">2 nodes, 7 GPUs, 3 without pods</text>"));
  EXPECT_THAT(svg, HasSubstr(">a: 1.5 GPUs</text>"));
  EXPECT_THAT(svg, HasSubstr(">c: 0.43 GPUs</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">b: ")));
}

TEST(MosaicSvgTest, TilesAreInProportionAndSayWhatTheyAre) {
  const std::string svg = DrawMosaicSvg(Parse(kOneOfEach));
  // Bars start at 64 and are 768 wide; a pixel separates neighbours.
  for (
      const char* tile : {
          // Whole, a quarter after a quarter, half of what follows.
          R"(<rect x="64" y="142" width="767" height="20" class="pod" fill="#0072b2">)"
          "<title>n, GPU 0: w/whole 0 of queue a, the whole GPU</title>",
          R"(<rect x="256" y="166" width="191" height="20" class="pod" fill="#0072b2">)"
          "<title>n, GPU 1: w/half 1 of queue a, 25 %</title>",
          R"(<rect x="448" y="166" width="383" height="20" class="hole">)"
          "<title>n, GPU 1: free 50 %</title>",
          // Instances on the placement axis of 8 units, and what still fits between them.
          R"x(<rect x="256" y="190" width="94" height="19" class="idle" transform="translate(.5 .5)">)x"
          "<title>n, GPU 2: idle 1g.5gb at slice 2</title>",
          R"(<rect x="160" y="190" width="95" height="20" class="hole">)"
          "<title>n, GPU 2: free 12 %; room for 2 x 1g.5gb</title>",
          R"(<rect x="448" y="190" width="383" height="20" class="pod" fill="#009e73">)"
          "<title>n, GPU 2: v/slice 0 of queue c, 3g.20gb at slice 4</title>",
          // One waits for half of what the other leaves.
          R"(<rect x="64" y="214" width="767" height="20" class="leaving" fill="#0072b2">)"
          "<title>n, GPU 3: w/whole 1 of queue a, the whole GPU, is leaving</title>",
          R"(<rect x="65" y="215" width="381" height="18" class="nominated" stroke="#009e73">)"
          "<title>n, GPU 3: v/next 0 of queue c, 50 %, waits for this place</title>",
          "<title>n, GPU 4: free, unhealthy</title>",
      }) {
    EXPECT_THAT(svg, HasSubstr(tile));
  }
}

TEST(MosaicSvgTest, OneNode) {
  const Snapshot snapshot = Parse(kOneOfEach);
  const std::string svg = DrawMosaicSvg(snapshot, {.node = snapshot.FindNode("other")});
  EXPECT_THAT(svg, HasSubstr(">1 node, 2 GPUs, 2 without pods</text>"));
  EXPECT_EQ(Count(svg, "<title>"), 2);
  EXPECT_EQ(Count(svg, "class=\"pod\""), 0);
}

TEST(MosaicSvgTest, NothingToDraw) {
  const std::string svg = DrawMosaicSvg(Parse(R"({"apiVersion": "tessera/v1"})"));
  EXPECT_THAT(svg, HasSubstr(">0 nodes, 0 GPUs, 0 without pods</text>"));
}

TEST(MosaicSvgTest, ManyGpusAreThinAndWithoutText) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 64; ++i) {
    nodes.push_back(absl::StrCat(R"({"name": "n)", i / 10, i % 10,
                                 R"(", "gpu_model": "H100-80GB", "gpus": 8})"));
  }
  std::string list;
  for (const std::string& node : nodes) absl::StrAppend(&list, list.empty() ? "" : ", ", node);
  const std::string svg =
      DrawMosaicSvg(Parse(absl::StrCat(R"({"apiVersion": "tessera/v1", "nodes": [)", list, "]}")));
  EXPECT_EQ(Count(svg, "width=\"143\" height=\"6\" class=\"free\""), 512);
  // Title, summary, 6 kinds, and the first node of each of 8 columns.
  EXPECT_EQ(Count(svg, "<text "), 2 + 6 + 8);
  for (int i = 0; i < 64; i += 8) {
    EXPECT_THAT(svg, HasSubstr(absl::StrCat(">n", i / 10, i % 10, "</text>")));
  }
}

TEST(MosaicSvgTest, NamesCannotBreakOut) {
  const std::string json = absl::StrReplaceAll(
      kOneOfEach, {{"\"n\"", R"("<n> & \"n\" \u0007\ufffe")"}, {"\"a\"", R"("]]>\n")"}});
  const std::string svg = DrawMosaicSvg(Parse(json));
  EXPECT_THAT(svg, HasSubstr("<title>&lt;n&gt; &amp; &quot;n&quot; \uFFFD\uFFFD, GPU 0: "
                             "w/whole 0 of queue ]]&gt;\n, the whole GPU</title>"));
  SnapshotSpec spec = *ParseSnapshotSpec(kOneOfEach);
  spec.nodes[1].name = "\xff\xe2\x82 \xe2\x82\xac";
  EXPECT_THAT(DrawMosaicSvg(*Snapshot::Create(spec)), HasSubstr("\uFFFD\uFFFD \u20AC, GPU 0"));
}

TEST(MosaicSvgTest, ColoursStayWhenHoldersChange) {
  const std::string json = absl::StrReplaceAll(
      kOneOfEach, {{R"("pod_set": "half", "index": 0)", R"("pod_set": "half", "index": 1)"},
                   {R"("pod_set": "half", "index": 1)", R"("pod_set": "half", "index": 0)"}});
  EXPECT_EQ(DrawMosaicSvg(Parse(json)), DrawMosaicSvg(Parse(kOneOfEach)));
  SnapshotSpec spec = *ParseSnapshotSpec(kOneOfEach);
  spec.workloads.erase(spec.workloads.begin());
  EXPECT_THAT(DrawMosaicSvg(*Snapshot::Create(spec)), HasSubstr("class=\"pod\" fill=\"#009e73\""));
}

TEST(MosaicSvgTest, EveryTileIsDrawnWhateverTheOrderOfTheInput) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SnapshotSpec spec = RandomSpec(seed).Make();
    const absl::StatusOr<Snapshot> snapshot = Snapshot::Create(spec);
    ASSERT_THAT(snapshot, IsOk());
    int tiles = 0;
    for (const ReleasingPod& pod : snapshot->releasing()) {
      tiles += std::popcount(pod.placement.gpus);
    }
    for (int i = 0; i < snapshot->num_pods(); ++i) {
      const PodPhase phase = snapshot->pod_phase(PodId(i));
      if (phase != PodPhase::kRunning && phase != PodPhase::kNominated) continue;
      tiles += std::popcount(snapshot->pod_placement(PodId(i)).gpus);
    }
    const std::string svg = DrawMosaicSvg(*snapshot);
    // The legend has one that leaves and one that waits.
    EXPECT_EQ(Count(svg, "class=\"pod\"") + Count(svg, "class=\"leaving\"") +
                  Count(svg, "class=\"nominated\""),
              tiles + 2);
    const std::string text = DrawMosaic(*snapshot);
    std::ranges::reverse(spec.nodes);
    std::ranges::reverse(spec.queues);
    std::ranges::reverse(spec.workloads);
    const absl::StatusOr<Snapshot> reversed = Snapshot::Create(spec);
    ASSERT_THAT(reversed, IsOk());
    EXPECT_EQ(DrawMosaicSvg(*reversed), svg);
    EXPECT_EQ(DrawMosaic(*reversed), text);
    EXPECT_EQ(WriteMigParted(*reversed), WriteMigParted(*snapshot));
  }
}

}  // namespace
}  // namespace tessera
