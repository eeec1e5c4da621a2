#ifndef TESSERA_BENCH_STUDY_FGD_TRACE_H_
#define TESSERA_BENCH_STUDY_FGD_TRACE_H_

// The openb trace as the study uses it: a cluster, kinds of pods, and orders of arrival.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/placement/demand_mix.h"
#include "tessera/state/state_tables.h"

namespace tessera::study {

// A kind of pod: pods that ask for the same, as one pod set of the snapshot.
struct Kind {
  PodSetId pod_set;
  RequestClassId request_class;
  int64_t cpu = 0;     // millicores
  int64_t memory = 0;  // bytes
  int devices = 0;
  int64_t share = 0;  // of each device, 1/7000; all of it for whole devices
  int64_t amount() const { return devices * share; }
};

struct Trace {
  std::string name;
  std::shared_ptr<const StateTables> tables;
  std::vector<Kind> kinds;
  std::vector<int> pods;  // the kind of each pod, in order of pod name
  DemandMix mix;          // of the trace as it is
  int64_t capacity = 0;   // GPUs, 1/7000 device
};

// Reads `openb_pod_list_<name>.csv` and the GPU nodes from `folder`.
// kNotFound when they are not there; else what `ImportOpenb` says.
absl::StatusOr<Trace> ReadTrace(const std::filesystem::path& folder, const std::string& name);

// The kinds of the pods in the order in which they arrive: all pods shuffled, then drawn
// with replacement until one more would exceed `percent` of the capacity. (As
// published, a trace with more demand loses pods at random, and the test adds only the
// share of one device of the pod that is drawn.)
std::vector<int> Arrivals(const Trace& trace, uint64_t seed, int percent);

// Whole file, or kNotFound.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& file);

}  // namespace tessera::study

#endif  // TESSERA_BENCH_STUDY_FGD_TRACE_H_
