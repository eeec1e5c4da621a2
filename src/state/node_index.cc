#include "tessera/state/node_index.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "absl/container/inlined_vector.h"

namespace tessera {
namespace {

constexpr int kBlock = 64;

int CeilDiv(int a, int b) { return (a + b - 1) / b; }

}  // namespace

NodeIndex::NodeIndex(std::span<const int> group_sizes, int num_shelves, int num_amounts)
    : num_shelves_(num_shelves), num_amounts_(num_amounts) {
  int nodes = 0, blocks = 0, supers = 0;
  for (int size : group_sizes) {
    Group g;
    g.num_nodes = size;
    g.num_blocks = CeilDiv(size, kBlock);
    g.num_supers = CeilDiv(g.num_blocks, kBlock);
    g.first_node = nodes;
    g.first_block = blocks;
    g.first_super = supers;
    nodes += size;
    blocks += g.num_blocks * num_shelves;
    supers += g.num_supers * num_shelves;
    groups_.push_back(g);
  }
  const size_t stride = static_cast<size_t>(num_amounts_);
  rooms_.assign(static_cast<size_t>(nodes) * stride, 0);
  shelves_.assign(static_cast<size_t>(nodes), 0);
  counts_.assign(group_sizes.size() * static_cast<size_t>(num_shelves), 0);
  members_.assign(static_cast<size_t>(blocks), 0);
  block_max_.assign(static_cast<size_t>(blocks) * stride, 0);
  occupied_.assign(static_cast<size_t>(supers), 0);
  super_max_.assign(static_cast<size_t>(supers) * stride, 0);
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& g = groups_[i];
    counts_[i * static_cast<size_t>(num_shelves)] = g.num_nodes;
    for (int n = 0; n < g.num_nodes; ++n) {
      members_[block_at(g, 0, n / kBlock)] |= uint64_t{1} << (n % kBlock);
    }
    for (int b = 0; b < g.num_blocks; ++b) {
      occupied_[super_at(g, 0, b / kBlock)] |= uint64_t{1} << (b % kBlock);
    }
  }
}

bool NodeIndex::Covers(const int64_t* room, Need need) const {
  bool covers = true;
  for (int i = 0; i < num_amounts_; ++i) covers &= room[i] >= need[static_cast<size_t>(i)];
  return covers;
}

// Raises `into` to cover `room`; tells whether that changed it.
bool NodeIndex::Merge(int64_t* into, const int64_t* room) const {
  bool changed = false;
  for (int i = 0; i < num_amounts_; ++i) {
    changed |= room[i] > into[i];
    into[i] = std::max(into[i], room[i]);
  }
  return changed;
}

void NodeIndex::RefreshSuper(const Group& g, int shelf, int super) {
  const size_t at = super_at(g, shelf, super);
  int64_t* max = &super_max_[at * static_cast<size_t>(num_amounts_)];
  uint64_t blocks = occupied_[at];
  if (blocks == 0) {
    std::fill_n(max, num_amounts_, 0);
    return;
  }
  for (bool first = true; blocks != 0; blocks &= blocks - 1, first = false) {
    const int block = super * kBlock + std::countr_zero(blocks);
    const int64_t* from =
        &block_max_[block_at(g, shelf, block) * static_cast<size_t>(num_amounts_)];
    if (first) {
      std::copy_n(from, num_amounts_, max);
    } else {
      Merge(max, from);
    }
  }
}

// The maxima after a node left the block or had its room lowered: none is above the old one.
void NodeIndex::RefreshBlock(const Group& g, int shelf, int block) {
  const size_t at = block_at(g, shelf, block);
  int64_t* max = &block_max_[at * static_cast<size_t>(num_amounts_)];
  const absl::InlinedVector<int64_t, 32> old(max, max + num_amounts_);
  uint64_t nodes = members_[at];
  const size_t first_row = static_cast<size_t>(g.first_node + block * kBlock);
  if (nodes == 0) std::fill_n(max, num_amounts_, 0);
  for (bool first = true; nodes != 0; nodes &= nodes - 1, first = false) {
    const size_t node = first_row + static_cast<size_t>(std::countr_zero(nodes));
    const int64_t* from = &rooms_[node * static_cast<size_t>(num_amounts_)];
    if (first) {
      std::copy_n(from, num_amounts_, max);
    } else if (!Merge(max, from)) {
      continue;
    }
    // The other nodes are below the old maxima, too.
    if (std::equal(old.begin(), old.end(), max)) return;
  }
  if (members_[at] == 0) {
    occupied_[super_at(g, shelf, block / kBlock)] &= ~(uint64_t{1} << (block % kBlock));
  }
  RefreshSuper(g, shelf, block / kBlock);
}

// Merges one more room into the maxima above it.
void NodeIndex::Raise(const Group& g, int shelf, int block, const int64_t* room) {
  const size_t at = block_at(g, shelf, block);
  int64_t* max = &block_max_[at * static_cast<size_t>(num_amounts_)];
  const size_t super = super_at(g, shelf, block / kBlock);
  int64_t* super_max = &super_max_[super * static_cast<size_t>(num_amounts_)];
  const uint64_t bit = uint64_t{1} << (block % kBlock);
  if ((occupied_[super] & bit) != 0) {
    if (Merge(max, room)) Merge(super_max, room);
    return;
  }
  std::copy_n(room, num_amounts_, max);
  if (occupied_[super] == 0) {
    std::copy_n(room, num_amounts_, super_max);
  } else {
    Merge(super_max, room);
  }
  occupied_[super] |= bit;
}

void NodeIndex::Set(int group, int slot, int shelf, std::span<const int64_t> room) {
  const Group& g = groups_[static_cast<size_t>(group)];
  const int block = slot / kBlock;
  const uint64_t bit = uint64_t{1} << (slot % kBlock);
  int64_t* row_of = &rooms_[row(group, slot)];
  int16_t& on = shelves_[static_cast<size_t>(g.first_node + slot)];
  const int old_shelf = on;
  if (old_shelf == shelf) {
    bool lower = false;
    for (int i = 0; i < num_amounts_; ++i) {
      lower |= room[static_cast<size_t>(i)] < row_of[i];
    }
    std::copy_n(room.data(), num_amounts_, row_of);
    Raise(g, shelf, block, row_of);
    if (lower) RefreshBlock(g, shelf, block);
    return;
  }
  std::copy_n(room.data(), num_amounts_, row_of);
  members_[block_at(g, old_shelf, block)] &= ~bit;
  RefreshBlock(g, old_shelf, block);
  // Raise tells an empty block by `occupied_`, so it runs before the bit is set.
  Raise(g, shelf, block, row_of);
  members_[block_at(g, shelf, block)] |= bit;
  --counts_[static_cast<size_t>(group * num_shelves_ + old_shelf)];
  ++counts_[static_cast<size_t>(group * num_shelves_ + shelf)];
  on = static_cast<int16_t>(shelf);
}

uint64_t NodeIndex::NodesIn(const Group& g, int shelf, int block, int begin, int end) const {
  uint64_t nodes = members_[block_at(g, shelf, block)];
  const int base = block * kBlock;
  if (begin > base) nodes &= ~uint64_t{0} << (begin - base);
  if (end < base + kBlock) nodes &= (uint64_t{1} << (end - base)) - 1;
  return nodes;
}

uint64_t NodeIndex::BlocksIn(const Group& g, int shelf, int super, int begin, int end) const {
  uint64_t blocks = occupied_[super_at(g, shelf, super)];
  const int base = super * kBlock;
  const int first_block = begin / kBlock, last_block = (end - 1) / kBlock;
  if (first_block > base) blocks &= ~uint64_t{0} << (first_block - base);
  if (last_block < base + kBlock - 1) blocks &= (uint64_t{1} << (last_block - base + 1)) - 1;
  return blocks;
}

int NodeIndex::FindInBlock(const Group& g, int shelf, int block, int begin, int end,
                           Need need) const {
  for (uint64_t nodes = NodesIn(g, shelf, block, begin, end); nodes != 0; nodes &= nodes - 1) {
    const int slot = block * kBlock + std::countr_zero(nodes);
    const size_t node = static_cast<size_t>(g.first_node + slot);
    if (Covers(&rooms_[node * static_cast<size_t>(num_amounts_)], need)) return slot;
  }
  return kNone;
}

int NodeIndex::FindFirst(int group, int shelf, int begin, int end, Need need) const {
  const Group& g = groups_[static_cast<size_t>(group)];
  if (begin >= end || count(group, shelf) == 0) return kNone;
  const size_t stride = static_cast<size_t>(num_amounts_);
  const int last_super = (end - 1) / (kBlock * kBlock);
  for (int super = begin / (kBlock * kBlock); super <= last_super; ++super) {
    uint64_t blocks = BlocksIn(g, shelf, super, begin, end);
    if (blocks == 0 || !Covers(&super_max_[super_at(g, shelf, super) * stride], need)) continue;
    for (; blocks != 0; blocks &= blocks - 1) {
      const int block = super * kBlock + std::countr_zero(blocks);
      if (!Covers(&block_max_[block_at(g, shelf, block) * stride], need)) continue;
      const int slot = FindInBlock(g, shelf, block, begin, end, need);
      if (slot != kNone) return slot;
    }
  }
  return kNone;
}

int NodeIndex::MostOf(uint64_t rows, const int64_t* first, Need need, int column, int64_t above,
                      int rows_before) const {
  int most = kNone;
  for (; rows != 0; rows &= rows - 1) {
    const int row = std::countr_zero(rows);
    const int64_t* room = first + static_cast<ptrdiff_t>(row) * num_amounts_;
    const bool more = room[column] > above || (room[column] == above && row < rows_before);
    if (!more || !Covers(room, need)) continue;
    above = room[column];
    rows_before = 0;
    most = row;
  }
  return most;
}

void NodeIndex::BestInBlock(const Group& g, int block, uint64_t nodes, Need need, int column,
                            Value value, Best& best) const {
  const size_t first = static_cast<size_t>(g.first_node + block * kBlock);
  const int64_t* rooms = &rooms_[first * static_cast<size_t>(num_amounts_)];
  while (true) {
    const int before = best.slot - block * kBlock;
    const int node = MostOf(nodes, rooms, need, column, best.value, before);
    if (node == kNone) return;
    nodes &= ~(uint64_t{1} << node);
    const int slot = block * kBlock + node;
    const int64_t worth = value(slot);
    if (worth > best.value || (worth == best.value && slot < best.slot)) best = {slot, worth};
  }
}

NodeIndex::Best NodeIndex::FindBest(int group, int shelf, int begin, int end, Need need, int column,
                                    int64_t above, Value value) const {
  const Group& g = groups_[static_cast<size_t>(group)];
  Best best{kNone, above};
  if (begin >= end || count(group, shelf) == 0) return best;
  const size_t stride = static_cast<size_t>(num_amounts_);
  const int last_super = (end - 1) / (kBlock * kBlock);
  for (int super = begin / (kBlock * kBlock); super <= last_super; ++super) {
    uint64_t blocks = BlocksIn(g, shelf, super, begin, end);
    const int64_t* bound = &super_max_[super_at(g, shelf, super) * stride];
    // Super blocks come in order, so that a tie never goes to a later one.
    if (blocks == 0 || bound[column] <= best.value || !Covers(bound, need)) continue;
    const int64_t* maxima = &block_max_[block_at(g, shelf, super * kBlock) * stride];
    while (true) {
      const int before = CeilDiv(best.slot, kBlock) - super * kBlock;
      const int most = MostOf(blocks, maxima, need, column, best.value, before);
      if (most == kNone) break;
      blocks &= ~(uint64_t{1} << most);
      const int block = super * kBlock + most;
      BestInBlock(g, block, NodesIn(g, shelf, block, begin, end), need, column, value, best);
    }
  }
  return best;
}

size_t NodeIndex::MemoryBytes() const {
  return (rooms_.capacity() + members_.capacity() + block_max_.capacity() + occupied_.capacity() +
          super_max_.capacity()) *
             sizeof(int64_t) +
         shelves_.capacity() * sizeof(int16_t) + counts_.capacity() * sizeof(int);
}

}  // namespace tessera
