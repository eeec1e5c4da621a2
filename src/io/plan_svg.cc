// Two mosaics side by side.

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tessera/io/mosaic_svg.h"

namespace tessera {
namespace {

constexpr std::string_view kWidth = "width=\"", kHeight = "height=\"";

// The number that follows `key` in the outer element of `svg`.
int NumberAfter(const std::string& svg, std::string_view key) {
  const size_t begin = svg.find(key) + key.size();
  int number = 0;
  const std::string text = svg.substr(begin, svg.find('"', begin) - begin);
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

// Without the styles and patterns, which hold for the whole picture.
std::string WithoutHead(std::string svg) {
  constexpr std::string_view kEnd = "</defs>\n";
  const size_t begin = svg.find("<style>");
  return svg.erase(begin, svg.find(kEnd) + kEnd.size() - begin);
}

}  // namespace

std::string DrawPlanSvg(const Snapshot& before, const Snapshot& after) {
  const std::string left = DrawMosaicSvg(before, {.title = "Before the plan"});
  std::string right = DrawMosaicSvg(after, {.title = "After the plan has settled"});
  const int middle = NumberAfter(left, kWidth);
  const int width = middle + NumberAfter(right, kWidth);
  const int height = std::max(NumberAfter(left, kHeight), NumberAfter(right, kHeight));
  right = WithoutHead(std::move(right));
  right.insert(std::string_view("<svg").size(), absl::StrCat(" x=\"", middle, "\""));
  return absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"",
                      height, "\" viewBox=\"0 0 ", width, " ", height, "\">\n", left, right,
                      "</svg>\n");
}

}  // namespace tessera
