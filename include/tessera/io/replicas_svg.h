#ifndef TESSERA_IO_REPLICAS_SVG_H_
#define TESSERA_IO_REPLICAS_SVG_H_

// A picture of a service over time as SVG: load, engines, and how well it was served.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/replicas/service_replay.h"

namespace tessera {

// What happened, by interval; the lists have equal lengths.
struct ReplicaTrace {
  std::string title = "Load, engines and SLA";
  std::string note;                    // a line below the title
  int64_t interval = 300;              // seconds, at least 1
  std::vector<double> load;            // requests per second; NaN: not known
  std::vector<ReplicaCounts> engines;  // that ran
  std::vector<ReplicaCounts> ideal;    // the fewest that would have done; may be empty
  std::vector<double> attainment;      // part of the requests within the SLA, 0 to 1

  friend bool operator==(const ReplicaTrace&, const ReplicaTrace&) = default;
};

// The trace of a replay, and of the planner that knew the load (`ClairvoyantReplay`), in
// intervals of `ticks` ticks of `tick` seconds, both at least 1: the mean load, the most
// engines that held GPUs, the part of the requests that came in ticks which attained the
// SLA. O(ticks of the replays).
ReplicaTrace TraceOf(const ReplayResult& replay, const ReplayResult& ideal, int64_t tick,
                     int64_t ticks);

// Draws three charts over one axis of hours: the load, the engines of each role (those that
// ran in colour, the ideal ones grey), and the part of requests within the SLA, with a line
// at 99 %. More intervals than fit are drawn by their worst: highest load, most engines,
// lowest attainment. A role without engines is left out. Lists that are too short end early.
//
// One self-contained `<svg>` element without scripts, links or fonts. Equal traces give
// equal bytes. O(intervals).
std::string DrawReplicaTrace(const ReplicaTrace& trace);

}  // namespace tessera

#endif  // TESSERA_IO_REPLICAS_SVG_H_
