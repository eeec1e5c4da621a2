#include "tessera/io/replicas_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/io/svg_writer.h"

namespace tessera {
namespace {

using io_internal::Box;
using io_internal::Point;
using io_internal::SvgWriter;

constexpr char kHead[] = R"svg(<style>
text{font:11px sans-serif;fill:#222}
.title{font-size:17px;font-weight:bold}
.chart{font-size:12px;font-weight:bold}
.note{font-size:12px;fill:#555}
polyline{fill:none;stroke-width:1.6;stroke-linejoin:round}
.grid{stroke:#ddd}
.axis{stroke:#888}
.load{stroke:#444}
.prefill{stroke:#0072b2}
.decode{stroke:#d55e00}
.ideal{stroke:#aaa;stroke-width:1.2}
.met{stroke:#009e73}
.goal{stroke:#c00;stroke-dasharray:4 3}
</style>
)svg";

constexpr int kMargin = 16, kLeft = 64, kPlotWidth = 864, kPlotHeight = 140, kGap = 46;
constexpr int kTop = 74, kWidth = kLeft + kPlotWidth + kMargin;
constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// One curve; not a number where there is nothing to draw.
struct Curve {
  std::string_view look;
  std::vector<double> values;
};

// The larger, or smaller, of two values of which either may be unknown.
double Worse(double a, double b, bool low) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  return low ? std::min(a, b) : std::max(a, b);
}

// At most one value per pixel of the plot: the worst of its intervals.
std::vector<double> Thin(const std::vector<double>& values, size_t intervals, bool low) {
  const size_t columns = std::min(intervals, static_cast<size_t>(kPlotWidth));
  std::vector<double> thin(columns, kNotMeasured);
  for (size_t i = 0; i < std::min(values.size(), intervals); ++i) {
    double& column = thin[i * columns / intervals];
    column = Worse(column, values[i], low);
  }
  return thin;
}

// The least of 1, 2, 5, 10, 20, ... of which `most` make at least `top`.
double TickFor(double top, int most) {
  double tick = 1;
  constexpr std::array kFactors = {2.0, 2.5, 2.0};
  for (size_t i = 0; tick * most < top && tick < 1e15; ++i) tick *= kFactors[i % 3];
  return tick;
}

class Charts {
 public:
  explicit Charts(double hours) : hours_(hours) {}

  // A chart of `curves` from 0 to `top`, below the others.
  void Add(std::string_view title, const std::vector<Curve>& curves, double top, double tick) {
    const Box plot{kLeft, kTop + charts_++ * (kPlotHeight + kGap), kPlotWidth, kPlotHeight};
    svg_.Text(plot.x, plot.y - 8, "class=\"chart\"", title);
    const auto y_of = [&](double value) {
      return plot.y + kPlotHeight -
             static_cast<int>(std::lround(std::clamp(value / top, 0.0, 1.0) * kPlotHeight));
    };
    for (double value = 0; value <= top * 1.000001; value += tick) {
      svg_.Line(plot.x, y_of(value), plot.x + plot.width, y_of(value), "class=\"grid\"");
      svg_.Text(plot.x - 40, y_of(value) + 4, "", absl::StrFormat("%.6g", value));
    }
    DrawHours(plot);
    for (const Curve& curve : curves) DrawCurve(curve, plot, y_of);
  }

  void Goal(double part) {
    const int bottom = kTop + (charts_ - 1) * (kPlotHeight + kGap) + kPlotHeight;
    const int y = bottom - static_cast<int>(std::lround(part * kPlotHeight));
    svg_.Line(kLeft, y, kLeft + kPlotWidth, y, "class=\"goal\"");
  }

  SvgWriter& svg() { return svg_; }
  std::string Take() && {
    return std::move(svg_).Take(kWidth, kTop + charts_ * (kPlotHeight + kGap), kHead);
  }

 private:
  void DrawHours(const Box& plot) {
    const double tick =
        hours_ <= 48 ? std::max(1.0, std::ceil(hours_ / 24) * 3) : TickFor(hours_, 12);
    const int bottom = plot.y + plot.height;
    svg_.Line(plot.x, bottom, plot.x + plot.width, bottom, "class=\"axis\"");
    for (double hour = 0; hours_ > 0 && hour <= hours_; hour += tick) {
      const int x = plot.x + static_cast<int>(std::lround(hour / hours_ * plot.width));
      svg_.Line(x, bottom, x, bottom + 4, "class=\"axis\"");
      svg_.Text(x - 8, bottom + 16, "", absl::StrFormat("%.6g h", hour));
    }
  }

  // Each value holds for its interval; unknown ones interrupt the line.
  template <typename Height>
  void DrawCurve(const Curve& curve, const Box& plot, Height y_of) {
    const size_t columns = curve.values.size();
    const auto x_of = [&](size_t i) {
      return plot.x + static_cast<int>(i * static_cast<size_t>(plot.width) / columns);
    };
    const std::string look = absl::StrCat("class=\"", std::string(curve.look), "\"");
    std::vector<Point> line;
    for (size_t i = 0; i <= columns; ++i) {
      if (i == columns || std::isnan(curve.values[i])) {
        if (!line.empty()) svg_.Polyline(line, look);
        line.clear();
        continue;
      }
      const int y = y_of(curve.values[i]);
      const bool level = !line.empty() && line.back().y == y;
      if (!level) line.push_back({x_of(i), y});
      if (level) line.pop_back();
      line.push_back({x_of(i + 1), y});
    }
  }

  const double hours_;
  int charts_ = 0;
  SvgWriter svg_;
};

double Largest(const std::vector<Curve>& curves) {
  double largest = 0;
  for (const Curve& curve : curves) {
    for (double value : curve.values) largest = Worse(largest, value, false);
  }
  return largest;
}

void AddLoad(const ReplicaTrace& trace, size_t intervals, Charts& charts) {
  const std::vector<Curve> curves = {{"load", Thin(trace.load, intervals, false)}};
  const double tick = TickFor(Largest(curves), 5);
  charts.Add("requests per second", curves, 5 * tick, tick);
}

void AddEngines(const ReplicaTrace& trace, size_t intervals, Charts& charts) {
  const auto counts = [&](const std::vector<ReplicaCounts>& from, int64_t ReplicaCounts::*role) {
    std::vector<double> values;
    for (const ReplicaCounts& count : from) values.push_back(static_cast<double>(count.*role));
    return Thin(values, intervals, false);
  };
  std::vector<Curve> curves;
  const auto add = [&](std::string_view look, std::vector<double> values) {
    const bool any = std::ranges::any_of(values, [](double value) { return value > 0; });
    if (any) curves.push_back({look, std::move(values)});
  };
  for (int64_t ReplicaCounts::*role : {&ReplicaCounts::prefill, &ReplicaCounts::decode}) {
    add("ideal", counts(trace.ideal, role));
  }
  add("prefill", counts(trace.engines, &ReplicaCounts::prefill));
  add("decode", counts(trace.engines, &ReplicaCounts::decode));
  const double tick = TickFor(Largest(curves), 5);
  charts.Add(trace.ideal.empty() ? "engines: prefill blue, decode orange"
                                 : "engines: prefill blue, decode orange, the fewest that would "
                                   "have done grey",
             curves, 5 * tick, tick);
}

// The larger of two counts, by role.
ReplicaCounts Most(const ReplicaCounts& a, const ReplicaCounts& b) {
  return {std::max(a.prefill, b.prefill), std::max(a.decode, b.decode)};
}

}  // namespace

ReplicaTrace TraceOf(const ReplayResult& replay, const ReplayResult& ideal, int64_t tick,
                     int64_t ticks) {
  const size_t size = static_cast<size_t>(std::max<int64_t>(ticks, 1));
  ReplicaTrace trace;
  trace.interval = tick * static_cast<int64_t>(size);
  for (size_t begin = 0; begin < replay.ticks.size(); begin += size) {
    const size_t end = std::min(begin + size, replay.ticks.size());
    double rates = 0, attained = 0;
    ReplicaCounts engines, least;
    for (size_t i = begin; i < end; ++i) {
      const ReplayTick& now = replay.ticks[i];
      rates += now.load.request_rate;
      if (now.attained) attained += now.load.request_rate;
      engines = Most(engines, now.expected);
      if (i < ideal.ticks.size()) least = Most(least, ideal.ticks[i].expected);
    }
    trace.load.push_back(rates / static_cast<double>(end - begin));
    trace.engines.push_back(engines);
    trace.ideal.push_back(least);
    trace.attainment.push_back(rates > 0 ? attained / rates : 1);
  }
  return trace;
}

std::string DrawReplicaTrace(const ReplicaTrace& trace) {
  const size_t intervals =
      std::max({trace.load.size(), trace.engines.size(), trace.attainment.size()});
  Charts charts(static_cast<double>(intervals) *
                static_cast<double>(std::max<int64_t>(trace.interval, 1)) / 3600);
  charts.svg().Text(kMargin, 28, "class=\"title\"", trace.title);
  if (!trace.note.empty()) charts.svg().Text(kMargin, 46, "class=\"note\"", trace.note);
  if (intervals == 0) return std::move(charts).Take();
  AddLoad(trace, intervals, charts);
  AddEngines(trace, intervals, charts);
  std::vector<double> percent;
  for (double part : trace.attainment) percent.push_back(100 * part);
  charts.Add("% of the requests within the SLA (dashed: 99 %)",
             {{"met", Thin(percent, intervals, true)}}, 100, 25);
  charts.Goal(0.99);
  return std::move(charts).Take();
}

}  // namespace tessera
