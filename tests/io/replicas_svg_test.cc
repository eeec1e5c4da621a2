#include "tessera/io/replicas_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

// Eight hours of an hour each.
ReplicaTrace Day() {
  ReplicaTrace trace;
  trace.title = "chat <1>";
  trace.interval = 3600;
  trace.load = {1, 2, 3, 4, 4, 3, 2, 1};
  trace.engines.assign(8, {1, 2});
  trace.ideal.assign(8, {1, 1});
  trace.attainment = {1, 1, 0.5, 1, 1, 1, 1, 1};
  return trace;
}

size_t Count(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ReplicasSvgTest, ThreeChartsOverOneAxis) {
  const std::string svg = DrawReplicaTrace(Day());
  EXPECT_THAT(svg, HasSubstr("chat &lt;1&gt;"));
  EXPECT_THAT(svg, HasSubstr("requests per second"));
  EXPECT_THAT(svg, HasSubstr("class=\"prefill\""));
  EXPECT_THAT(svg, HasSubstr("class=\"decode\""));
  EXPECT_EQ(Count(svg, "<polyline class=\"ideal\""), 2u);
  EXPECT_EQ(Count(svg, "<polyline class=\"load\""), 1u);
  // 864 pixels for 8 hours; the chart of the load reaches from y = 214 (0) to 74 (5): 1 is
  // at 186.
  EXPECT_THAT(svg, HasSubstr("class=\"load\" points=\"64,186 172,186 172,158 280,158"));
  // Half of the requests: in the middle of the third chart, which begins at 446.
  EXPECT_THAT(svg, HasSubstr("280,516 388,516"));
  EXPECT_EQ(svg, DrawReplicaTrace(Day()));
}

TEST(ReplicasSvgTest, AReplayIsDrawnByIntervals) {
  ReplayResult replay, ideal;
  const auto tick = [](double rate, int64_t decode, bool attained) {
    ReplayTick t;
    t.load.request_rate = rate;
    t.expected = {1, decode};
    t.attained = attained;
    return t;
  };
  replay.ticks = {tick(1, 2, true), tick(3, 4, false), tick(0, 3, true)};
  ideal.ticks = {tick(1, 1, true), tick(3, 2, true), tick(0, 0, true)};
  const ReplicaTrace trace = TraceOf(replay, ideal, 30, 2);
  EXPECT_EQ(trace.interval, 60);
  EXPECT_THAT(trace.load, testing::ElementsAre(2, 0));
  EXPECT_THAT(trace.engines, testing::ElementsAre(ReplicaCounts{1, 4}, ReplicaCounts{1, 3}));
  EXPECT_THAT(trace.ideal, testing::ElementsAre(ReplicaCounts{1, 2}, ReplicaCounts{1, 0}));
  EXPECT_THAT(trace.attainment, testing::ElementsAre(0.25, 1)) << "1 of 4 requests";
}

TEST(ReplicasSvgTest, WhatIsNotKnownInterruptsTheLine) {
  ReplicaTrace trace = Day();
  trace.load[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Count(DrawReplicaTrace(trace), "<polyline class=\"load\""), 2u);
}

TEST(ReplicasSvgTest, ARoleWithoutEnginesIsLeftOut) {
  ReplicaTrace trace = Day();
  trace.engines.assign(8, {0, 2});
  trace.ideal.clear();
  const std::string svg = DrawReplicaTrace(trace);
  EXPECT_THAT(svg, Not(HasSubstr("<polyline class=\"prefill\"")));
  EXPECT_THAT(svg, Not(HasSubstr("<polyline class=\"ideal\"")));
}

TEST(ReplicasSvgTest, ManyIntervalsAreDrawnByTheirWorst) {
  ReplicaTrace trace;
  trace.interval = 1;
  trace.load.assign(86400, 1);
  trace.load[40000] = 5;
  trace.engines.assign(86400, {0, 1});
  trace.attainment.assign(86400, 1);
  trace.attainment[40000] = 0;
  const std::string svg = DrawReplicaTrace(trace);
  EXPECT_LT(svg.size(), 10000u);
  EXPECT_THAT(svg, HasSubstr("464,74 465,74")) << "5 of 5 at 64 + 400 pixels";
  EXPECT_THAT(svg, HasSubstr("464,586 465,586")) << "no request served well";
}

TEST(ReplicasSvgTest, OddTracesAreDrawn) {
  EXPECT_THAT(DrawReplicaTrace({}), HasSubstr("</svg>"));
  ReplicaTrace trace = Day();
  trace.interval = 0;
  trace.load = {1e300, -5, std::numeric_limits<double>::infinity()};
  trace.attainment.clear();
  EXPECT_THAT(DrawReplicaTrace(trace), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace tessera
