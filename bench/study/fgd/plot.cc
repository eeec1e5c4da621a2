#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/study/fgd/report.h"

namespace tessera::study {
namespace {

// All in pixels.
constexpr int kWidth = 640, kHeight = 380, kLeft = 50, kTop = 40;
constexpr int kPlotWidth = 420, kPlotHeight = 290;
constexpr int kFirst = 75, kLast = 120;  // % arrived
constexpr double kMost = 26;             // % unallocated at the top

// Distinguishable without colour vision (Okabe and Ito).
struct Look {
  std::string_view colour;
  std::string_view dashes;
};
constexpr std::array<Look, kPolicies> kLooks = {{{"#999999", "2 3"},
                                                 {"#e69f00", "6 3"},
                                                 {"#009e73", "6 3"},
                                                 {"#cc79a7", "6 3"},
                                                 {"#56b4e9", "6 3"},
                                                 {"#0072b2", "none"},
                                                 {"#d55e00", "none"},
                                                 {"#d55e00", "2 3"}}};

double X(double arrived) { return kLeft + (arrived - kFirst) / (kLast - kFirst) * kPlotWidth; }
double Y(double unallocated) {
  return kTop + kPlotHeight - std::clamp(unallocated / kMost, 0.0, 1.0) * kPlotHeight;
}

void AppendText(std::string& svg, double x, double y, std::string_view anchor,
                std::string_view text) {
  absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y,
                        std::string(anchor), std::string(text));
}

void AppendAxes(std::string& svg) {
  absl::StrAppendFormat(
      &svg, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#444\"/>\n",
      kLeft, kTop, kPlotWidth, kPlotHeight);
  for (int percent = 0; percent <= 25; percent += 5) {
    absl::StrAppendFormat(&svg,
                          "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                          kLeft, Y(percent), kLeft + kPlotWidth, Y(percent));
    AppendText(svg, kLeft - 6, Y(percent) + 4, "end", absl::StrCat(percent));
  }
  for (int arrived = 80; arrived <= kLast; arrived += 10) {
    AppendText(svg, X(arrived), kTop + kPlotHeight + 18, "middle", absl::StrCat(arrived));
  }
  AppendText(svg, kLeft + kPlotWidth / 2.0, kTop + kPlotHeight + 36, "middle",
             "GPUs asked for so far, % of all");
}

void AppendCurve(std::string& svg, const std::vector<Curve>& curves, int policy) {
  std::string points;
  for (int a = kFirst; a <= kLast; ++a) {
    double unallocated = 0;
    for (const Curve& curve : curves) {
      unallocated +=
          (100 - curve.allocated[static_cast<size_t>(a)]) / static_cast<double>(curves.size());
    }
    absl::StrAppendFormat(&points, "%.1f,%.1f ", X(a), Y(unallocated));
  }
  const std::string stroke =
      absl::StrFormat("stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\"",
                      std::string(kLooks[policy].colour), std::string(kLooks[policy].dashes));
  absl::StrAppend(&svg, "<polyline fill=\"none\" ", stroke, " points=\"", points, "\"/>\n");
  const double y = kTop + 14 + 22 * policy;
  const double x = kLeft + kPlotWidth + 14;
  absl::StrAppendFormat(&svg, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x, y,
                        x + 24, y, stroke);
  AppendText(svg, x + 30, y + 4, "start", kPolicyNames[policy]);
}

}  // namespace

std::string Svg(const Runs& runs) {
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
      "fill=\"white\"/>\n",
      kWidth, kHeight);
  AppendText(svg, kLeft, 24, "start",
             absl::StrCat("GPUs left unallocated, % of all: openb trace, ", runs.trace));
  AppendAxes(svg);
  for (int p = 0; p < kPolicies; ++p) {
    if (!runs.of[p].empty()) AppendCurve(svg, runs.of[p], p);
  }
  svg += "</svg>\n";
  return svg;
}

}  // namespace tessera::study
