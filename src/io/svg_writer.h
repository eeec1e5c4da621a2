#ifndef TESSERA_SRC_IO_SVG_WRITER_H_
#define TESSERA_SRC_IO_SVG_WRITER_H_

// Writes the few elements of SVG that pictures need.

#include <string>
#include <string_view>
#include <vector>

namespace tessera::io_internal {

// In pixels.
struct Box {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

struct Point {
  int x = 0;
  int y = 0;
};

// `text` as the content of an XML element or attribute: markup escaped; bytes that are not
// UTF-8, and characters that XML forbids, replaced by U+FFFD.
std::string XmlText(std::string_view text);

// The longest beginning of `text` of at most `characters` code points; an ellipsis stands
// for what is cut off.
std::string Shorten(std::string_view text, int characters);

// Elements in the order of the calls. `look` holds further attributes as they are to
// stand in the text: `class="hole"`.
class SvgWriter {
 public:
  // A rectangle; `tooltip` may be empty.
  void Rect(const Box& box, std::string_view look, std::string_view tooltip);
  void Line(int x1, int y1, int x2, int y2, std::string_view look);
  void Polyline(const std::vector<Point>& points, std::string_view look);
  // One line of text whose baseline starts at (x, y).
  void Text(int x, int y, std::string_view look, std::string_view text);

  // The picture on white; `head` holds the definitions that looks refer to.
  std::string Take(int width, int height, std::string_view head) &&;

 private:
  std::string body_;
};

}  // namespace tessera::io_internal

#endif  // TESSERA_SRC_IO_SVG_WRITER_H_
