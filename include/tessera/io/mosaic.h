#ifndef TESSERA_IO_MOSAIC_H_
#define TESSERA_IO_MOSAIC_H_

// A picture of a cluster in text: one line per GPU.

#include <string>

#include "tessera/cluster/snapshot.h"

namespace tessera {

// Draws every GPU of `snapshot` as a bar of what holds it, by node:
//
//   node-1 (H100-80GB, b1/r1)  5 of 8 GPUs without pods
//     gpu 0    |llama/prefill                                   |
//     gpu 1    |dev/notebook            |.......................|
//     gpu 2    |embed|embed|.....|.....|rerank                  |
//     gpu 3-7  free
//
// Fractions are drawn in proportion, MIG instances on the placement axis, idle
// instances as `<profile>`, free room as dots, releasing pods in parentheses,
// nominated ones after a `?`; a GPU with both has a second bar for what it will hold.
// Equal free GPUs share a line. Nodes without GPUs are counted, not drawn. At most 100
// columns where names are short. O(size of the snapshot).
std::string DrawMosaic(const Snapshot& snapshot);

}  // namespace tessera

#endif  // TESSERA_IO_MOSAIC_H_
