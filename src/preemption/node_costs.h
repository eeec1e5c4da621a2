#ifndef TESSERA_SRC_PREEMPTION_NODE_COSTS_H_
#define TESSERA_SRC_PREEMPTION_NODE_COSTS_H_

// The node in a range where room costs least, kept as costs change.

#include <algorithm>
#include <vector>

#include "src/preemption/yield_book.h"
#include "tessera/cluster/topology.h"

namespace tessera {

// A tournament over nodes by (cost, node). Set and Cheapest are O(log nodes).
class NodeCosts {
 public:
  explicit NodeCosts(int nodes) : size_(static_cast<size_t>(std::max(nodes, 1))) {
    costs_.assign(size_, kNoCost);
    winners_.assign(2 * size_, 0);
    for (size_t i = 0; i < size_; ++i) winners_[size_ + i] = static_cast<int>(i);
    for (size_t i = size_ - 1; i > 0; --i)
      winners_[i] = std::min(winners_[2 * i], winners_[2 * i + 1]);
  }

  RoomCost cost(NodeId n) const { return costs_[static_cast<size_t>(n.value())]; }

  void Set(NodeId n, RoomCost cost) {
    costs_[static_cast<size_t>(n.value())] = cost;
    for (size_t at = (size_ + static_cast<size_t>(n.value())) / 2; at > 0; at /= 2) {
      winners_[at] = Better(winners_[2 * at], winners_[2 * at + 1]);
    }
  }

  // Invalid if every node of `range` costs `kNoCost`.
  NodeId Cheapest(NodeRange range) const {
    if (range.empty()) return NodeId();
    int best = range.begin;
    size_t low = size_ + static_cast<size_t>(range.begin);
    for (size_t high = size_ + static_cast<size_t>(range.end); low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) best = Better(best, winners_[low++]);
      if (high % 2 == 1) best = Better(best, winners_[--high]);
    }
    const bool none = costs_[static_cast<size_t>(best)] == kNoCost;
    return none ? NodeId() : NodeId(best);
  }

 private:
  int Better(int a, int b) const {
    const RoomCost& left = costs_[static_cast<size_t>(a)];
    const RoomCost& right = costs_[static_cast<size_t>(b)];
    if (left != right) return left < right ? a : b;
    return std::min(a, b);
  }

  size_t size_;
  std::vector<RoomCost> costs_;
  std::vector<int> winners_;  // [1]: of all; the leaves from size_ on
};

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_NODE_COSTS_H_
