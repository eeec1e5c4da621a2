#include "tessera/share/usage.h"

#include <algorithm>
#include <optional>

namespace tessera {
namespace {

// Whether `n` could hold a pod of this class if nothing else were there.
bool CouldHold(const Snapshot& snapshot, NodeId n, const RequestClass& request) {
  const Node& node = snapshot.node(n);
  if (!node.schedulable || !FitsWithin(request.need, snapshot.node_capacity(n)) ||
      !Matches(request.selector, node.labels) || !Tolerates(request.tolerations, node.taints)) {
    return false;
  }
  if (request.gpu.kind == GpuRequestKind::kNone) return true;
  const ModelId m = snapshot.node_model(n);
  if (!m.valid() || !request.models[static_cast<size_t>(m.value())].fits) return false;
  return std::ranges::count_if(node.gpus, &Gpu::healthy) >= std::max(request.gpu.devices, 1);
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
