#ifndef TESSERA_CLUSTER_QUEUE_H_
#define TESSERA_CLUSTER_QUEUE_H_

// A queue, as stated by the host: what it is guaranteed, what it may never
// exceed, and how it shares what is left.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tessera {

// Weights are fixed-point decimals of three places: weight 1 is 1000.
inline constexpr int64_t kWeightOne = 1000;
inline constexpr int64_t kMaxWeight = 1000000 * kWeightOne;

// An amount per resource name, in base units (`kUnlimited` allowed for quotas
// and limits). `all` holds for every resource that is not named.
struct ResourceAmounts {
  std::optional<int64_t> all;
  std::map<std::string, int64_t, std::less<>> by_name;

  // The amount of `resource`, or `absent` where nothing is stated.
  int64_t get(const std::string& resource, int64_t absent) const {
    const auto named = by_name.find(resource);
    return named != by_name.end() ? named->second : all.value_or(absent);
  }
  bool empty() const { return !all && by_name.empty(); }

  friend bool operator==(const ResourceAmounts&, const ResourceAmounts&) = default;
};

// A node of the queue tree. Workloads run in leaves only.
struct Queue {
  std::string name;
  std::string parent;     // empty: a top-level queue
  ResourceAmounts quota;  // guaranteed; absent: 0
  ResourceAmounts limit;  // hard ceiling; absent: unlimited
  // How far it may go beyond its quota on what its siblings leave, and how much of
  // its unused quota they may have; absent: unlimited.
  ResourceAmounts borrowing_limit;
  ResourceAmounts lending_limit;
  ResourceAmounts weight;  // over-quota weight, fixed-point; absent: kWeightOne
  int priority = 0;        // of surplus: higher first
  int64_t created = 0;     // seconds; older queues win ties
  // Decayed past use, in base units times seconds.
  std::map<std::string, int64_t, std::less<>> usage;
  // Seconds for which what runs here is safe; absent: inherited.
  std::optional<int64_t> preempt_min_runtime;
  std::optional<int64_t> reclaim_min_runtime;

  friend bool operator==(const Queue&, const Queue&) = default;
};

}  // namespace tessera

#endif  // TESSERA_CLUSTER_QUEUE_H_
