#ifndef TESSERA_PREEMPTION_BARRED_GPUS_H_
#define TESSERA_PREEMPTION_BARRED_GPUS_H_

// Which GPUs a change of MIG layouts must leave as they are, and why.

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// The first that holds, in this order. All but the last bar the GPU altogether.
enum class GpuBar {
  kUnschedulable,  // its node takes nothing new
  kUnhealthy,
  kMigOff,    // MIG is not permitted
  kInUse,     // a pod holds all of it, or a fraction, or has that reserved
  kReserved,  // a nominated pod waits for another layout
  kAlone,     // a pod there accepts no other tenant on the GPU or the node
  kStatic,    // only the instances that exist may be used
};

// "unschedulable", "unhealthy", "MIG off", "in use", "reserved", "alone", "static".
std::string_view NameOf(GpuBar bar);

struct BarredGpu {
  std::string node;
  int gpu = 0;
  GpuBar bar = GpuBar::kUnschedulable;

  friend bool operator==(const BarredGpu&, const BarredGpu&) = default;
};

// How many GPUs may change, and how many are barred by what: "of 5 GPUs 2 may change, 1
// is unhealthy, 2 are static". O(barred).
std::string DescribeBarred(int gpus, const std::vector<BarredGpu>& barred);

}  // namespace tessera

#endif  // TESSERA_PREEMPTION_BARRED_GPUS_H_
