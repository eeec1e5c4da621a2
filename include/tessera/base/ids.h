#ifndef TESSERA_BASE_IDS_H_
#define TESSERA_BASE_IDS_H_

// Strong ids: dense indices that cannot be confused with each other.

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <utility>

namespace tessera {

// The index of a `Tag` within its snapshot, 0, 1, 2, ... in order of name, so
// that ties broken by id do not depend on the order of the input.
//
// Regular, totally ordered, hashable by Abseil; the size of an `int32_t`. A
// default id is invalid, has the value -1, and sorts before every valid id.
//
// There is no arithmetic, no conversion from an integer or from an id of another
// kind, and none back: the sum of two nodes means nothing, and a queue's index
// used on the table of nodes is the mistake this type is here to stop. Loops go
// over integers and write `NodeId(i)` where the kind becomes known.
template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(int32_t value) : value_(value) {}

  constexpr int32_t value() const { return value_; }
  constexpr bool valid() const { return value_ >= 0; }

  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;

  template <typename H>
  friend H AbslHashValue(H state, Id id) {
    return H::combine(std::move(state), id.value_);
  }

  // Prints the bare number; a template so that `<iosfwd>` is enough here.
  template <typename Traits>
  friend std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                                      Id id) {
    return out << id.value_;
  }

 private:
  int32_t value_ = -1;
};

using NodeId = Id<struct NodeTag>;          // one machine
using QueueId = Id<struct QueueTag>;        // one vertex of the queue tree
using WorkloadId = Id<struct WorkloadTag>;  // one gang, or a single pod
using PodSetId = Id<struct PodSetTag>;      // identical members of one gang
using PodId = Id<struct PodTag>;            // one member
using ModelId = Id<struct ModelTag>;        // one GPU model of the catalogue
using DomainId = Id<struct DomainTag>;      // one member of a topology level

}  // namespace tessera

#endif  // TESSERA_BASE_IDS_H_
