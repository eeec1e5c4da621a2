#ifndef TESSERA_SRC_IO_MOSAIC_PARTS_H_
#define TESSERA_SRC_IO_MOSAIC_PARTS_H_

// What a picture of a GPU needs to know before it is drawn: colours, and what is where.

#include <cstdint>
#include <utility>
#include <vector>

#include "src/io/tiles.h"
#include "tessera/gpu/model.h"
#include "tessera/resources/units.h"

namespace tessera::io_internal {

struct Rgb {
  int red = 0;
  int green = 0;
  int blue = 0;

  // Whether white letters are easier to read on it than black ones.
  bool is_dark() const { return 299 * red + 587 * green + 114 * blue < 125'000; }
};

// The colour of the leaf queue of this rank; they repeat after 21.
Rgb ColourOf(size_t rank);

// An interval of a GPU, in 1/7000 of it; by default all.
struct Span {
  int64_t from = 0;
  int64_t to = kGpuUnitsPerDevice;
};

// The units of an instance. Neighbours touch.
Span UnitsOf(const GpuModel& model, int profile, int start);

// Where each tile of a GPU is: running ones, then releasing, then nominated. Fractions stand
// in a row: those that run, beside them those that leave, and from the same place on those
// that wait for them to leave. Within the GPU, whatever the sum.
std::vector<std::pair<Tile, Span>> Arrange(const GpuModel& model, const std::vector<Tile>& tiles);

// What `spans` leave of a GPU, ascending.
std::vector<Span> Rest(std::vector<Span> spans);

}  // namespace tessera::io_internal

#endif  // TESSERA_SRC_IO_MOSAIC_PARTS_H_
