#ifndef TESSERA_STATE_CHANGE_JOURNAL_H_
#define TESSERA_STATE_CHANGE_JOURNAL_H_

// Which nodes of a state changed, in order: what lets a value derived from the state
// (a ranking of its nodes) catch up instead of starting over.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/base/ids.h"

namespace tessera {

// The last changes of one state. It remembers a bounded number of them: a reader that
// has fallen behind further starts over.
//
// A journal belongs to one state. A copy begins a history of its own, without changes,
// so that nothing derived from the original is mistaken for the copy's; a move takes
// the history along.
class ChangeJournal {
 public:
  // Remembers the last `capacity` changes.
  explicit ChangeJournal(size_t capacity = 1024)
      : capacity_(capacity), history_(std::make_shared<const Token>()) {}

  ChangeJournal(const ChangeJournal& other) : ChangeJournal(other.capacity_) {}
  ChangeJournal& operator=(const ChangeJournal& other) {
    return *this = ChangeJournal(other.capacity_);
  }
  ChangeJournal(ChangeJournal&& other) : ChangeJournal(other.capacity_) { Swap(other); }
  ChangeJournal& operator=(ChangeJournal&& other) {
    Swap(other);
    return *this;
  }
  ~ChangeJournal() = default;

  void Add(NodeId n) {
    if (nodes_.size() < capacity_) {
      nodes_.push_back(n);
    } else {
      nodes_[count_ % capacity_] = n;
    }
    ++count_;
  }

  // Changes so far.
  size_t count() const { return count_; }
  // Whether the changes from number `first` on are all remembered.
  bool remembers(size_t first) const { return count_ - first <= nodes_.size(); }
  // The node of change number `i`, which must be remembered.
  NodeId at(size_t i) const { return nodes_[i % capacity_]; }

  // Names the history: who holds it can tell, for as long as he holds it, whether a
  // journal still is the one that he read.
  using History = std::shared_ptr<const void>;
  const History& history() const { return history_; }

 private:
  struct Token {};

  void Swap(ChangeJournal& other) {
    std::swap(capacity_, other.capacity_);
    std::swap(count_, other.count_);
    nodes_.swap(other.nodes_);
    history_.swap(other.history_);
  }

  size_t capacity_;
  size_t count_ = 0;
  std::vector<NodeId> nodes_;  // a ring once it has grown to `capacity_`
  History history_;
};

}  // namespace tessera

#endif  // TESSERA_STATE_CHANGE_JOURNAL_H_
