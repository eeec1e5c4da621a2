#include "src/preemption/claim_rows.h"

#include <algorithm>

#include "tessera/preemption/room_memory.h"

namespace tessera {
namespace {

// Each holds a few dozen bytes for every pod; what has not been used for longest is dropped.
constexpr size_t kMaxRows = 8;

}  // namespace

ClaimRow::ClaimRow(RowKey key, ClusterState& state, QuotaLedger& ledger, const FairShares& shares,
                   const YieldPolicy& policy, YieldRights rights, const RoomClaim& claim,
                   const ClaimantNeed& need)
    : key_(std::move(key)),
      book_(state, ledger, shares, policy, rights, claim.workload, need),
      search_(state, ledger, book_, claim) {}

ClaimRows::ClaimRows(const Snapshot& snapshot) : ages_(RankByAge(snapshot)) {}

ClaimRow& ClaimRows::RowFor(const RowKey& key, const RoomClaim& claim,
                            absl::FunctionRef<std::unique_ptr<ClaimRow>()> make) {
  auto it = std::ranges::find_if(rows_, [&](const auto& row) { return row->key() == key; });
  if (it == rows_.end() || !CatchUp(**it, claim)) {
    if (it == rows_.end() && rows_.size() >= kMaxRows) {
      it = std::ranges::min_element(rows_, {}, [](const auto& row) { return row->used_; });
    }
    if (it == rows_.end()) it = rows_.emplace(rows_.end());
    it->reset();  // before the next one is made
    *it = make();
    (*it)->seen_ = changes_.size();
  }
  (*it)->used_ = ++uses_;
  return **it;
}

// False where the row has to be made anew.
bool ClaimRows::CatchUp(ClaimRow& row, const RoomClaim& claim) {
  std::vector<NodeId> touched;
  for (; row.seen_ < changes_.size(); ++row.seen_) {
    const auto& [pod, node] = changes_[row.seen_];
    row.book_.Review(pod, touched);
    touched.push_back(node);
  }
  if (!row.book_.Retarget(claim.workload, touched)) return false;
  row.search_.Retarget(claim, touched);
  return true;
}

RoomMemory::RoomMemory(const Snapshot& snapshot) : rows_(std::make_unique<ClaimRows>(snapshot)) {}
RoomMemory::~RoomMemory() = default;

void RoomMemory::Note(PodId p, NodeId n) { rows_->Note(p, n); }

void RoomMemory::Forget() { rows_->Forget(); }

int64_t ClaimRows::FreeUnits(absl::FunctionRef<int64_t()> count) {
  if (!free_units_ || free_units_->first != version()) free_units_ = {version(), count()};
  return free_units_->second;
}

}  // namespace tessera
