#include "src/io/svg_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tessera/base/status.h"

namespace tessera::io_internal {
namespace {

bool IsPlain(char c) { return c >= ' ' && c <= '~'; }

// Well-formed UTF-8, by way of a string of JSON.
std::string Utf8(std::string_view text) {
  using Json = nlohmann::json;
  if (std::ranges::all_of(text, IsPlain)) return std::string(text);
  const std::string json =
      Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(json).get<std::string>();
}

bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string XmlText(std::string_view text) {
  constexpr char kReplacement[] = "\uFFFD";
  std::string xml;
  for (char c : Utf8(text)) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20;
    if (is_control && c != '\t' && c != '\n' && c != '\r') {
      xml += kReplacement;
    } else {
      xml += c;
    }
  }
  return absl::StrReplaceAll(xml, {{"&", "&amp;"},
                                   {"<", "&lt;"},
                                   {">", "&gt;"},
                                   {"\"", "&quot;"},
                                   {"\uFFFE", kReplacement},
                                   {"\uFFFF", kReplacement}});
}

std::string Shorten(std::string_view text, int characters) {
  std::string kept = Utf8(text);
  if (std::ranges::count_if(kept, std::not_fn(ContinuesCharacter)) <= characters) return kept;
  // One character less, for the ellipsis.
  size_t end = 0;
  for (int left = characters; end < kept.size(); ++end) {
    if (!ContinuesCharacter(kept[end]) && --left <= 0) break;
  }
  kept.resize(end);
  return kept + "\u2026";
}

void SvgWriter::Rect(const Box& box, std::string_view look, std::string_view tooltip) {
  absl::StrAppend(&body_, "<rect x=\"", box.x, "\" y=\"", box.y, "\" width=\"", box.width,
                  "\" height=\"", box.height, "\" ", ToAbsl(look));
  if (tooltip.empty()) {
    body_ += "/>\n";
  } else {
    absl::StrAppend(&body_, "><title>", XmlText(tooltip), "</title></rect>\n");
  }
}

void SvgWriter::Line(int x1, int y1, int x2, int y2, std::string_view look) {
  absl::StrAppend(&body_, "<line x1=\"", x1, "\" y1=\"", y1, "\" x2=\"", x2, "\" y2=\"", y2, "\" ",
                  ToAbsl(look), "/>\n");
}

void SvgWriter::Polyline(const std::vector<Point>& points, std::string_view look) {
  absl::StrAppend(&body_, "<polyline ", ToAbsl(look), " points=\"");
  for (const Point& point : points) absl::StrAppend(&body_, point.x, ",", point.y, " ");
  body_ += "\"/>\n";
}

void SvgWriter::Text(int x, int y, std::string_view look, std::string_view text) {
  absl::StrAppend(&body_, "<text x=\"", x, "\" y=\"", y, "\"", look.empty() ? "" : " ",
                  ToAbsl(look), ">", XmlText(text), "</text>\n");
}

std::string SvgWriter::Take(int width, int height, std::string_view head) && {
  return absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"",
                      height, "\" viewBox=\"0 0 ", width, " ", height, "\">\n", ToAbsl(head),
                      "<rect width=\"", width, "\" height=\"", height, "\" fill=\"#fff\"/>\n",
                      body_, "</svg>\n");
}

}  // namespace tessera::io_internal
