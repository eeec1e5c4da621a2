#ifndef TESSERA_SRC_SCHEDULE_LEDGER_ACCOUNT_H_
#define TESSERA_SRC_SCHEDULE_LEDGER_ACCOUNT_H_

// Whoever pays for what a search places: a leaf queue.

#include <optional>

#include "tessera/cluster/charge.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/share/quota_ledger.h"

namespace tessera {

// Charges pods to a leaf queue.
class LedgerAccount : public Account {
 public:
  LedgerAccount(const Snapshot& snapshot, MigCharge rule, QuotaLedger& ledger, QueueId leaf,
                bool preemptible)
      : snapshot_(snapshot), rule_(rule), ledger_(ledger), leaf_(leaf), preemptible_(preemptible) {}

  bool Charge(PodId p, const PodPlacement& placement) override {
    const RequestClassId c = snapshot_.pod_set(snapshot_.pod_set_of(p)).request_class;
    const ResourceVector charge = ChargeOf(snapshot_, c, placement, rule_);
    const std::optional<QuotaRefusal> refusal = ledger_.Check(leaf_, charge, preemptible_);
    if (refusal) {
      refusal_ = refusal;
      return false;
    }
    ledger_.Book(leaf_, charge, preemptible_);
    return true;
  }

  size_t GetMark() const override { return ledger_.GetMark(); }
  void RollBack(size_t mark) override { ledger_.RollBack(mark); }

  // The last one.
  const std::optional<QuotaRefusal>& refusal() const { return refusal_; }

 private:
  const Snapshot& snapshot_;
  const MigCharge rule_;
  QuotaLedger& ledger_;
  const QueueId leaf_;
  const bool preemptible_;
  std::optional<QuotaRefusal> refusal_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_SCHEDULE_LEDGER_ACCOUNT_H_
