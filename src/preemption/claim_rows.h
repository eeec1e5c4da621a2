#ifndef TESSERA_SRC_PREEMPTION_CLAIM_ROWS_H_
#define TESSERA_SRC_PREEMPTION_CLAIM_ROWS_H_

// What planners of room keep from claim to claim of one cycle: hundreds of claims in a row look
// at much the same victims, and each of them changes a few nodes.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/preemption/room_search.h"
#include "src/preemption/yield_book.h"
#include "tessera/preemption/make_room.h"

namespace tessera {

// Claims of one row differ in their workload only: the same pods may yield for each of them, by
// the same rights and at the same cost.
struct RowKey {
  bool reclaim = false;  // else by priority
  bool grows = false;    // one more unit is asked for
  QueueId queue;         // the parent of the claimant's, or its own where that decides
  int priority = 0;      // where others yield by it
  int tenant = 0;
  Isolation isolation{};
  std::vector<char> resources;  // that it needs

  friend bool operator==(const RowKey&, const RowKey&) = default;
};

// Victims and what they cost, for the next claim of the row.
class ClaimRow {
 public:
  // As `YieldBook` and `RoomSearch`.
  ClaimRow(RowKey key, ClusterState& state, QuotaLedger& ledger, const FairShares& shares,
           const YieldPolicy& policy, YieldRights rights, const RoomClaim& claim,
           const ClaimantNeed& need);

  const RowKey& key() const { return key_; }
  YieldBook& book() { return book_; }
  RoomSearch& search() { return search_; }

 private:
  friend class ClaimRows;

  const RowKey key_;
  YieldBook book_;
  RoomSearch search_;
  size_t seen_ = 0;  // changes
  int64_t used_ = 0;
};

class ClaimRows {
 public:
  explicit ClaimRows(const Snapshot& snapshot);

  // Workloads by age: the youngest is 1.
  std::span<const int32_t> ages() const { return ages_; }

  // `p` left `n` or came there, in the state where all have left that leave.
  void Note(PodId p, NodeId n) { changes_.push_back({p, n}); }
  // Changes with every change.
  size_t version() const { return changes_.size(); }

  // To be called when the state becomes another object.
  void Forget() { rows_.clear(); }

  // The row for `claim`, up to date; made by `make` where there is none.
  ClaimRow& RowFor(const RowKey& key, const RoomClaim& claim,
                   absl::FunctionRef<std::unique_ptr<ClaimRow>()> make);

  // Units free in the whole cluster, as `count` counts them.
  int64_t FreeUnits(absl::FunctionRef<int64_t()> count);

 private:
  struct Change {
    PodId pod;
    NodeId node;
  };

  bool CatchUp(ClaimRow& row, const RoomClaim& claim);

  std::vector<int32_t> ages_;
  std::vector<Change> changes_;
  std::vector<std::unique_ptr<ClaimRow>> rows_;
  int64_t uses_ = 0;
  std::optional<std::pair<size_t, int64_t>> free_units_;  // by version
};

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_CLAIM_ROWS_H_
