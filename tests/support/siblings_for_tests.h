#ifndef TESSERA_TESTS_SUPPORT_SIBLINGS_FOR_TESTS_H_
#define TESSERA_TESTS_SUPPORT_SIBLINGS_FOR_TESTS_H_

// Queues without sub-queues that want this much of a cluster of this size.
//
//   Siblings siblings(CpuAndGiB(9, 18));
//   siblings.Add(MakeQueue("a"), CpuAndGiB(1, 4) * 100);
//   siblings.Shares(DominantResourceDivision())[0][kCpu];

#include <string>
#include <utility>
#include <vector>

#include "tessera/share/fair_shares.h"
#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {

inline ResourceVector CpuAndGiB(int64_t cores, int64_t gib) {
  ResourceVector v;
  v[kCpu] = cores * kMillisPerCore;
  v[kMemory] = gib * kBytesPerGiB;
  return v;
}

class Siblings {
 public:
  explicit Siblings(const ResourceVector& total, ResourceSpace resources = {})
      : space(std::move(resources)), capacity(total) {}

  Queue& Add(Queue queue, const ResourceVector& demand) {
    demands.push_back(demand);
    return queues.emplace_back(std::move(queue));
  }

  QueueTree Tree() const { return *QueueTree::Create(queues, space); }

  FairShares Divide(const QueueTree& tree, DivideFunction divide,
                    const DivisionOptions& options = {},
                    const std::vector<ResourceVector>& past_use = {}) const {
    std::vector<QueueUsage> usage(queues.size());
    std::vector<ResourceVector> used(past_use.size());
    for (size_t i = 0; i < queues.size(); ++i) {
      const size_t q = static_cast<size_t>(tree.Find(queues[i].name)->value());
      usage[q].demand = demands[i];
      if (!used.empty()) used[q] = past_use[i];
    }
    return DivideFairShares(tree, space, capacity, usage, divide, options, used);
  }

  // Shares in the order in which the queues were added; so is `past_use`.
  template <DivisionRule Rule>
  std::vector<ResourceVector> Shares(const Rule& rule, const DivisionOptions& options = {},
                                     const std::vector<ResourceVector>& past_use = {}) const {
    const auto divide = [&rule](const Division& division, Claims& claims) {
      rule.Divide(division, claims);
    };
    const QueueTree tree = Tree();
    const FairShares shares = Divide(tree, DivideFunction(divide), options, past_use);
    std::vector<ResourceVector> result;
    for (const Queue& queue : queues) {
      result.push_back(shares.of(*tree.Find(queue.name)).fair_share);
    }
    return result;
  }

  ResourceSpace space;
  ResourceVector capacity;
  std::vector<Queue> queues;
  std::vector<ResourceVector> demands;  // by position in `queues`
};

}  // namespace tessera

#endif  // TESSERA_TESTS_SUPPORT_SIBLINGS_FOR_TESTS_H_
