#ifndef TESSERA_SRC_PREEMPTION_CLAIM_ACCOUNT_H_
#define TESSERA_SRC_PREEMPTION_CLAIM_ACCOUNT_H_

// Asks the ledger and the entitlements for a claimant, without booking anything.

#include <optional>
#include <span>
#include <vector>

#include "src/preemption/entitlements.h"
#include "tessera/cluster/charge.h"
#include "tessera/placement/gang_placement.h"
#include "tessera/share/quota_ledger.h"

namespace tessera {

class ClaimAccount final : public Account {
 public:
  // Without `entitlements`, only limits and quotas are asked. Pod sets that are `barred`, by
  // their index in the gang, are refused.
  ClaimAccount(const Snapshot& snapshot, const QuotaLedger& ledger, MigCharge rule, WorkloadId w,
               const Entitlements* entitlements = nullptr, std::span<const char> barred = {})
      : snapshot_(snapshot),
        ledger_(ledger),
        entitlements_(entitlements),
        barred_(barred),
        first_pod_set_(snapshot.info(w).first_pod_set),
        rule_(rule),
        leaf_(snapshot.info(w).queue),
        preemptible_(snapshot.workload(w).is_preemptible()) {}

  bool Charge(PodId p, const PodPlacement& placement) override {
    const PodSetId s = snapshot_.pod_set_of(p);
    if (!barred_.empty() && barred_[static_cast<size_t>(s.value() - first_pod_set_)] != 0) {
      return false;
    }
    const RequestClassId c = snapshot_.pod_set(s).request_class;
    const ResourceVector charge = ChargeOf(snapshot_, c, placement, rule_);
    const std::optional<QuotaRefusal> refusal =
        ledger_.Check(leaf_, charged_ + charge, preemptible_);
    if (refusal) {
      refusal_ = refusal;
      return false;
    }
    if (entitlements_ != nullptr && entitlements_->FindOverreach(charged_ + charge)) return false;
    charged_ += charge;
    charges_.push_back(charge);
    return true;
  }

  size_t GetMark() const override { return charges_.size(); }
  void RollBack(size_t mark) override {
    for (; charges_.size() > mark; charges_.pop_back()) charged_ -= charges_.back();
  }

  const ResourceVector& charged() const { return charged_; }
  const std::optional<QuotaRefusal>& refusal() const { return refusal_; }

 private:
  const Snapshot& snapshot_;
  const QuotaLedger& ledger_;
  const Entitlements* const entitlements_;
  const std::span<const char> barred_;
  const int first_pod_set_;
  const MigCharge rule_;
  const QueueId leaf_;
  const bool preemptible_;
  ResourceVector charged_;
  std::vector<ResourceVector> charges_;
  std::optional<QuotaRefusal> refusal_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_CLAIM_ACCOUNT_H_
