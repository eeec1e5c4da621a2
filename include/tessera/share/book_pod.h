#ifndef TESSERA_SHARE_BOOK_POD_H_
#define TESSERA_SHARE_BOOK_POD_H_

// Booking a pod to the queue that pays for it.

#include "tessera/cluster/charge.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/share/quota_ledger.h"

namespace tessera {

// Books `count` times what `p` is charged at `placement` to the leaf queue of its workload, as
// `QuotaLedger::Book`.
inline void BookPod(const Snapshot& snapshot, MigCharge rule, QuotaLedger& ledger, PodId p,
                    const PodPlacement& placement, int count) {
  const PodSetInfo& set = snapshot.pod_set(snapshot.pod_set_of(p));
  ledger.Book(snapshot.info(set.workload).queue,
              ChargeOf(snapshot, set.request_class, placement, rule) * count,
              snapshot.workload(set.workload).is_preemptible());
}

}  // namespace tessera

#endif  // TESSERA_SHARE_BOOK_POD_H_
