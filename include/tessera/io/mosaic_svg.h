#ifndef TESSERA_IO_MOSAIC_SVG_H_
#define TESSERA_IO_MOSAIC_SVG_H_

// A picture of a cluster as SVG: one row per GPU.

#include <optional>
#include <string>

#include "tessera/cluster/snapshot.h"

namespace tessera {

struct MosaicSvgOptions {
  std::string title = "Who holds which GPU slice";
  std::optional<NodeId> node = std::nullopt;  // only this one; absent: all that have GPUs
};

// Draws every GPU as a bar, by node: whole GPUs as one tile, fractions in proportion, MIG
// instances on the placement axis. Tiles have the colour of their pod's queue, paler where
// the pod is releasing, a dashed frame where it is nominated; idle instances are
// outlined, free room on a GPU in use is hatched, a GPU without pods and instances grey,
// an unhealthy one crossed out. A legend explains this and names the queues that hold
// something. Every tile has a tooltip that says what it is.
//
// Up to 64 GPUs the bars bear the names of pods and profiles; above that bars are thin and
// nodes stand in columns, each headed by its first node. Colours go by the rank of a leaf
// queue among all leaf queues, so that they stay the same before and after a plan; 21
// differ, in a palette (Okabe and Ito) that is told apart without colour vision, the
// second and third seven being darker and lighter forms of the first.
//
// One self-contained `<svg>` element without scripts, links or fonts. Equal arguments give
// equal bytes. Bytes that are not UTF-8, and characters that XML forbids, come out as
// U+FFFD. O(size of the snapshot), about 250 bytes per tile.
std::string DrawMosaicSvg(const Snapshot& snapshot, const MosaicSvgOptions& options = {});

// Both side by side in one picture, `before` on the left.
std::string DrawPlanSvg(const Snapshot& before, const Snapshot& after);

}  // namespace tessera

#endif  // TESSERA_IO_MOSAIC_SVG_H_
