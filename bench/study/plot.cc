#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/study/report.h"

namespace tessera::study {
namespace {

// All in pixels; two rows of two panels.
constexpr int kPanelWidth = 300;
constexpr int kPanelHeight = 250;
constexpr int kLeft = 60;  // of a panel, room for its axis
constexpr int kTop = 96;
constexpr int kStepX = kPanelWidth + 80;
constexpr int kStepY = kPanelHeight + 72;
constexpr int kWidth = kLeft + 2 * kStepX - 10;
constexpr int kHeight = kTop + 2 * kStepY - 8;

constexpr int kLowest = 84;  // % of the reference at the bottom
constexpr int kHighest = 101;
constexpr int kFirstLoad = 70;
constexpr int kLastLoad = 120;

// Distinguishable without colour vision (Okabe and Ito); dashes tell the baselines.
struct Look {
  std::string_view colour;
  std::string_view dashes;
};
constexpr std::array<Look, kReference> kLooks = {{{"#e69f00", "6 3"},
                                                  {"#009e73", "6 3"},
                                                  {"#cc79a7", "2 3"},
                                                  {"#999999", "2 3"},
                                                  {"#0072b2", "none"},
                                                  {"#d55e00", "none"}}};

double X(int load) {
  return static_cast<double>(load - kFirstLoad) / (kLastLoad - kFirstLoad) * (kPanelWidth - 20) +
         10;
}

double Y(double relative) { return (kHighest - relative) / (kHighest - kLowest) * kPanelHeight; }

void AppendText(std::string& svg, double x, double y, std::string_view anchor,
                std::string_view text) {
  absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y,
                        std::string(anchor), std::string(text));
}

void AppendLine(std::string& svg, double x1, double y1, double x2, double y2,
                std::string_view attributes) {
  absl::StrAppendFormat(&svg, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1,
                        y1, x2, y2, std::string(attributes));
}

std::string Stroke(int policy) {
  return absl::StrFormat("stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\"",
                         std::string(kLooks[policy].colour), std::string(kLooks[policy].dashes));
}

void AppendAxes(std::string& svg, int mix) {
  absl::StrAppendFormat(&svg,
                        "<rect width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#444\"/>\n"
                        "<text x=\"%d\" y=\"-8\" text-anchor=\"middle\" font-weight=\"bold\">"
                        "%s</text>\n",
                        kPanelWidth, kPanelHeight, kPanelWidth / 2, std::string(kMixes[mix].name));
  for (int percent = 85; percent <= 100; percent += 5) {
    AppendLine(svg, 0, Y(percent), kPanelWidth, Y(percent),
               percent == 100 ? "stroke=\"#444\"" : "stroke=\"#ddd\"");
    AppendText(svg, -6, Y(percent) + 4, "end", absl::StrCat(percent));
  }
  for (const int load : kLoads) {
    AppendLine(svg, X(load), kPanelHeight, X(load), kPanelHeight + 5, "stroke=\"#444\"");
    AppendText(svg, X(load), kPanelHeight + 18, "middle", absl::StrCat(load));
  }
  AppendText(svg, kPanelWidth / 2.0, kPanelHeight + 34, "middle",
             "offered load, % of all memory slices");
}

void AppendCurve(std::string& svg, const std::vector<Row>& rows, int mix, int policy) {
  std::string points;
  std::string marks;
  for (const Row& row : rows) {
    if (row.mix != mix || row.policy != policy) continue;
    const double x = X(row.load);
    absl::StrAppendFormat(&points, "%.1f,%.1f ", x, Y(row.relative.mean));
    AppendLine(marks, x, Y(row.relative.mean - 2 * row.relative.error), x,
               Y(row.relative.mean + 2 * row.relative.error), Stroke(policy));
    absl::StrAppendFormat(&marks, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x,
                          Y(row.relative.mean), std::string(kLooks[policy].colour));
  }
  absl::StrAppend(&svg, "<polyline fill=\"none\" ", Stroke(policy), " points=\"", points, "\"/>\n",
                  marks);
}

void AppendLegend(std::string& svg) {
  double x = kLeft;
  for (int policy = 0; policy < kReference; ++policy) {
    AppendLine(svg, x, 62, x + 24, 62, Stroke(policy));
    AppendText(svg, x + 29, 66, "start", kPolicyNames[policy]);
    x += 52 + 6.4 * static_cast<double>(kPolicyNames[policy].size());
  }
}

}  // namespace

std::string Svg(const std::vector<Row>& rows, int seeds) {
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
      "fill=\"white\"/>\n<clipPath id=\"panel\"><rect width=\"%d\" height=\"%d\"/></clipPath>\n",
      kWidth, kHeight, kPanelWidth, kPanelHeight);
  AppendText(svg, kLeft, 24, "start",
             "Accepted memory slices x lifetime, % of what free rearrangement accepts");
  AppendText(svg, kLeft, 42, "start",
             absl::StrCat(kGpus, " GPUs, ", seeds, " seeds, bars: 2 standard errors; what is not ",
                          "drawn lies below ", kLowest, " %"));
  AppendLegend(svg);
  for (int mix = 0; mix < static_cast<int>(kMixes.size()); ++mix) {
    absl::StrAppendFormat(&svg, "<g transform=\"translate(%d,%d)\">\n", kLeft + mix % 2 * kStepX,
                          kTop + 8 + mix / 2 * kStepY);
    AppendAxes(svg, mix);
    svg += "<g clip-path=\"url(#panel)\">\n";
    for (int policy = 0; policy < kReference; ++policy) AppendCurve(svg, rows, mix, policy);
    svg += "</g>\n</g>\n";
  }
  svg += "</svg>\n";
  return svg;
}

}  // namespace tessera::study
