#ifndef TESSERA_SRC_PREEMPTION_WANTED_H_
#define TESSERA_SRC_PREEMPTION_WANTED_H_

// What the names in a question about MIG instances stand for.

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tessera/cluster/snapshot.h"

namespace tessera {

// The GPUs that a question is about.
struct WantedScope {
  NodeId node;                  // invalid: all nodes
  std::vector<ModelId> models;  // by name
};

// kInvalidArgument, at `node` or `gpu_model`: no such node, one without GPUs, no such
// model on any node or on that one. An empty name restricts nothing.
absl::StatusOr<WantedScope> ResolveScope(const Snapshot& snapshot, const std::string& node,
                                         const std::string& gpu_model);

// Whether some model of `scope` has `profile`. kInvalidArgument at `path` else, which
// tells whether others have it.
absl::Status CheckProfile(const Snapshot& snapshot, const WantedScope& scope,
                          const std::string& profile, std::string_view path);

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_WANTED_H_
