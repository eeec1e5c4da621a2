#include "tessera/share/usage.h"

#include <algorithm>
#include <optional>

#include "tessera/state/state_tables.h"

namespace tessera {
namespace {

int LeastDevices(const GpuRequest& gpu) {
  return gpu.kind == GpuRequestKind::kNone ? 0 : std::max(gpu.devices, 1);
}

// Whether `n` could hold a pod of this class if nothing else were there.
bool CouldHold(const Snapshot& snapshot, NodeId n, const RequestClass& request) {
  return EligibilityOf(snapshot, request, n) == Eligibility::kEligible &&
         FitsWithin(request.need, snapshot.node_capacity(n)) &&
         std::ranges::count_if(snapshot.node(n).gpus, &Gpu::healthy) >= LeastDevices(request.gpu);
}

bool IsSchedulable(const Snapshot& snapshot, RequestClassId c) {
  for (int n = 0; n < snapshot.num_nodes(); ++n) {
    if (CouldHold(snapshot, NodeId(n), snapshot.request_class(c))) return true;
  }
  return false;
}

}  // namespace

std::vector<QueueUsage> MeasureUsage(const Snapshot& snapshot, const UsagePolicy& policy) {
  std::vector<QueueUsage> usage(static_cast<size_t>(snapshot.queues().size()));
  std::vector<std::optional<bool>> known(static_cast<size_t>(snapshot.num_request_classes()));
  const auto is_schedulable = [&](RequestClassId c) {
    std::optional<bool>& answer = known[static_cast<size_t>(c.value())];
    if (!answer) answer = IsSchedulable(snapshot, c);
    return *answer;
  };
  for (int s = 0; s < snapshot.num_pod_sets(); ++s) {
    const PodSetInfo& set = snapshot.pod_set(PodSetId(s));
    QueueUsage& queue = usage[static_cast<size_t>(snapshot.info(set.workload).queue.value())];
    const bool preemptible = snapshot.workload(set.workload).is_preemptible();
    int pending = 0;
    for (int i = 0; i < set.count; ++i) {
      const PodPhase phase = snapshot.pod_phase(set.pod(i));
      const bool nominated = phase == PodPhase::kNominated;
      if (phase == PodPhase::kPending || (nominated && !policy.honour_nominations)) ++pending;
      if (phase != PodPhase::kRunning && !(nominated && policy.honour_nominations)) continue;
      const ResourceVector charge = ChargeOf(snapshot, set.request_class,
                                             snapshot.pod_placement(set.pod(i)), policy.mig_charge);
      queue.allocated += charge;
      queue.demand += charge;
      if (!preemptible) queue.non_preemptible += charge;
    }
    if (pending == 0) continue;
    if (!policy.count_unschedulable && !is_schedulable(set.request_class)) continue;
    queue.demand += ExpectedCharge(snapshot, set.request_class, policy.mig_charge) * pending;
  }
  SumUpwards(snapshot.queues(), usage);
  return usage;
}

void SumUpwards(const QueueTree& tree, std::vector<QueueUsage>& usage) {
  const std::span<const QueueId> order = tree.top_down();
  for (size_t i = order.size(); i > 0; --i) {
    const QueueId parent = tree.parent(order[i - 1]);
    if (!parent.valid()) continue;
    const QueueUsage& from = usage[static_cast<size_t>(order[i - 1].value())];
    QueueUsage& into = usage[static_cast<size_t>(parent.value())];
    into.demand += from.demand;
    into.allocated += from.allocated;
    into.non_preemptible += from.non_preemptible;
  }
}

}  // namespace tessera
