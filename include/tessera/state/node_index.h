#ifndef TESSERA_STATE_NODE_INDEX_H_
#define TESSERA_STATE_NODE_INDEX_H_

// Finds the first node with enough room without visiting the others.
//
// Nodes come in groups (nodes that every selector and model list treats alike)
// and stand, within a group, on one of several shelves (how many whole GPUs are
// free). Each node has a room: a row of amounts, of which a request needs a
// minimum, or as much as can be had. Per shelf, blocks of 64 nodes carry the
// component-wise maximum of their rooms, and blocks of 64 blocks again, so that a
// search skips what cannot fit or is not better. All of it is a function of the
// rooms and shelves alone: whatever is undone leaves no trace.
//
// Cost of a search: a few block reads where room is left, whatever the size of
// the cluster; at worst (many nodes each short of a different resource, so that
// the maximum misleads) the nodes of the shelf. Cost of a change: two blocks.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"

namespace tessera {

class NodeIndex {
 public:
  static constexpr int kNone = -1;
  // A need that every amount satisfies, whatever its sign.
  static constexpr int64_t kNoNeed = INT64_MIN;

  // The smallest amounts that a search asks of a node's room; kNoNeed where it asks
  // for nothing.
  using Need = std::span<const int64_t>;

  NodeIndex() = default;

  // Groups of `group_sizes[g]` nodes, `num_shelves` shelves, rooms of `num_amounts`
  // amounts. Every node starts on shelf 0 with a room of zeros. O(total size).
  NodeIndex(std::span<const int> group_sizes, int num_shelves, int num_amounts);

  int num_shelves() const { return num_shelves_; }

  // The room of the node at `slot` of `group`.
  std::span<const int64_t> room(int group, int slot) const {
    return std::span(rooms_).subspan(row(group, slot), static_cast<size_t>(num_amounts_));
  }
  int shelf(int group, int slot) const {
    return shelves_[static_cast<size_t>(groups_[static_cast<size_t>(group)].first_node + slot)];
  }
  // Nodes of `group` on `shelf`.
  int count(int group, int shelf) const {
    return counts_[static_cast<size_t>(group * num_shelves_ + shelf)];
  }

  // Replaces a node's room and shelf.
  void Set(int group, int slot, int shelf, std::span<const int64_t> room);

  // The lowest slot in [begin, end) of `group` that stands on `shelf` and has
  // the room, or `kNone`.
  int FindFirst(int group, int shelf, int begin, int end, Need need) const;

  // What a node is worth; INT64_MIN: it does not serve.
  using Value = absl::FunctionRef<int64_t(int slot)>;

  // A slot, and its value.
  struct Best {
    int slot = kNone;
    int64_t value = INT64_MIN;
  };

  // The slot of the highest value among those in [begin, end) of `group` that stand on
  // `shelf`, have the room, and are worth more than `above`. Ties: the lowest
  // slot. `column` of the room bounds the value from above: the better the bound, the
  // fewer nodes are asked for theirs; with an exact one, a few blocks are read.
  Best FindBest(int group, int shelf, int begin, int end, Need need, int column, int64_t above,
                Value value) const;

  // Bytes held, for reports.
  size_t MemoryBytes() const;

  friend bool operator==(const NodeIndex&, const NodeIndex&) = default;

 private:
  struct Group {
    int num_nodes = 0;
    int num_blocks = 0;   // of 64 nodes
    int num_supers = 0;   // of 64 blocks
    int first_node = 0;   // in rooms_ and shelves_
    int first_block = 0;  // of shelf 0, in block rows
    int first_super = 0;

    friend bool operator==(const Group&, const Group&) = default;
  };

  size_t row(int group, int slot) const {
    return static_cast<size_t>(groups_[static_cast<size_t>(group)].first_node + slot) *
           static_cast<size_t>(num_amounts_);
  }
  size_t block_at(const Group& g, int shelf, int block) const {
    return static_cast<size_t>(g.first_block + shelf * g.num_blocks + block);
  }
  size_t super_at(const Group& g, int shelf, int super) const {
    return static_cast<size_t>(g.first_super + shelf * g.num_supers + super);
  }
  bool Covers(const int64_t* room, Need need) const;
  bool Merge(int64_t* into, const int64_t* room) const;
  // The nodes of a block on `shelf`, and the blocks of a super block that have any,
  // that lie in [begin, end).
  uint64_t NodesIn(const Group& g, int shelf, int block, int begin, int end) const;
  uint64_t BlocksIn(const Group& g, int shelf, int super, int begin, int end) const;
  // The bit of `rows` whose row, counted from `first` in `maxima`, has most in `column`
  // among those that cover `need`: more than `above`, or as much in one of the first
  // `rows_before`; or none.
  int MostOf(uint64_t rows, const int64_t* first, Need need, int column, int64_t above,
             int rows_before) const;
  void RefreshBlock(const Group& g, int shelf, int block);
  void RefreshSuper(const Group& g, int shelf, int super);
  void Raise(const Group& g, int shelf, int block, const int64_t* room);
  int FindInBlock(const Group& g, int shelf, int block, int begin, int end, Need need) const;
  void BestInBlock(const Group& g, int block, uint64_t nodes, Need need, int column, Value value,
                   Best& best) const;

  int num_shelves_ = 0;
  int num_amounts_ = 0;
  std::vector<Group> groups_;
  std::vector<int64_t> rooms_;      // [node][amount]
  std::vector<int16_t> shelves_;    // [node]
  std::vector<int> counts_;         // [group][shelf]
  std::vector<uint64_t> members_;   // [block row]: nodes on the shelf
  std::vector<int64_t> block_max_;  // [block row][amount]
  std::vector<uint64_t> occupied_;  // [super row]: blocks with members
  std::vector<int64_t> super_max_;  // [super row][amount]
};

}  // namespace tessera

#endif  // TESSERA_STATE_NODE_INDEX_H_
