#ifndef TESSERA_SRC_SCHEDULE_CLAIM_MEMORY_H_
#define TESSERA_SRC_SCHEDULE_CLAIM_MEMORY_H_

// For whom others could not yield, so that the like of it need not be tried again.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tessera/state/cluster_state.h"

namespace tessera {

class ClaimMemory {
 public:
  // Whether one of the same queue that asks for no more, with at least the same priority, has
  // failed in `round` or at `version`. O(size of the gang).
  bool IsHopeless(const ClusterState& state, WorkloadId w, int64_t round, int64_t version);

  // Notes that `w` has failed.
  void Note(const ClusterState& state, WorkloadId w, int64_t round, int64_t version);

 private:
  struct Failure {
    int64_t pods = 0;
    int priority = 0;
    int64_t round = 0;
    int64_t version = 0;
  };
  // What a claim depends on but the number of pods and the priority.
  struct Claim {
    std::string key;
    int64_t pods = 0;
  };

  static Claim Describe(const ClusterState& state, WorkloadId w);

  absl::flat_hash_map<std::string, std::vector<Failure>> failures_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_SCHEDULE_CLAIM_MEMORY_H_
