#ifndef TESSERA_GPU_DRAW_H_
#define TESSERA_GPU_DRAW_H_

// One GPU's instances as a line of text.

#include <span>
#include <string>

#include "tessera/gpu/layout.h"

namespace tessera {

// The placement axis of `model` from unit 0 on, one cell per unit: an instance spans
// the cells it occupies and bears its profile's name, a free unit shows dots.
//
//   |1g.10gb   |1g.10gb   |..........|..........|3g.40gb                                    |
//
// All lines of one model have the same width, the least in which every profile's name
// fits, so that lines of several GPUs align. The order of `instances` does not
// matter. Precondition: they are legal (`MigTables::KeyOf`). Empty for a model
// without MIG.
std::string DrawLayout(const GpuModel& model, std::span<const Instance> instances);

}  // namespace tessera

#endif  // TESSERA_GPU_DRAW_H_
