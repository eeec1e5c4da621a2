// Queues, workloads, gangs and pods.

#include "src/io/amounts.h"
#include "src/io/names.h"
#include "src/io/nouns.h"
#include "tessera/resources/units.h"

namespace tessera::io_internal {
namespace {

void WriteTopology(JsonWriter& json, const TopologyConstraint& topology) {
  if (topology == TopologyConstraint{}) return;
  json.Key("topology");
  json.BeginObject();
  WriteText(json, "required", topology.required);
  WriteText(json, "preferred", topology.preferred);
  json.EndObject();
}

void WritePodSet(JsonWriter& json, const PodSet& set) {
  json.BeginObject();
  json.Member("name", set.name);
  if (set.count != 1) json.Member("count", set.count);
  WriteOptional(json, "min_count", set.min_count);
  WriteRequestMembers(json, set);
  WriteOptional(json, "max_per_node", set.max_per_node);
  if (set.max_per_domain) {
    json.Key("max_per_domain");
    json.BeginObject();
    json.Member("level", set.max_per_domain->level);
    if (set.max_per_domain->pods != 1) json.Member("pods", set.max_per_domain->pods);
    json.EndObject();
  }
  WriteText(json, "after", set.after);
  WriteTopology(json, set.topology);
  json.EndObject();
}

void WriteGroup(JsonWriter& json, const PodGroup& group) {
  json.BeginObject();
  WriteText(json, "name", group.name);
  WriteOptional(json, "min_groups", group.min_groups);
  WriteText(json, "after", group.after);
  WriteTopology(json, group.topology);
  WriteList(json, "pod_sets", group.pod_sets, WritePodSet);
  WriteList(json, "groups", group.groups, WriteGroup);
  json.EndObject();
}

void WriteShare(JsonWriter& json, const GpuShare& share) {
  json.BeginObject();
  json.Member("gpu", share.gpu);
  json.Key("fraction");
  WriteAmount(json, "gpu", share.share, Rounding::kUp);
  json.EndObject();
}

void WriteSlice(JsonWriter& json, const GpuSlice& slice) {
  json.BeginObject();
  json.Member("gpu", slice.gpu);
  json.Member("profile", slice.profile);
  json.Member("start", slice.start);
  json.EndObject();
}

void WritePod(JsonWriter& json, const Pod& pod) {
  json.BeginObject();
  json.Member("pod_set", pod.pod_set);
  json.Member("index", pod.index);
  if (pod.phase != PodPhase::kRunning) json.Member("phase", NameOf(kPhases, pod.phase));
  WriteText(json, "node", pod.node);
  WriteDeviceMembers(json, pod.devices);
  WriteOptional(json, "started", pod.started);
  WriteOptional(json, "expires", pod.expires);
  json.EndObject();
}

}  // namespace

void WriteDeviceMembers(JsonWriter& json, const Devices& devices) {
  WriteList(json, "gpus", devices.gpus, [](JsonWriter& to, int gpu) { to.Integer(gpu); });
  WriteList(json, "shares", devices.shares, WriteShare);
  WriteList(json, "slices", devices.slices, WriteSlice);
}

void Write(JsonWriter& json, const Queue& queue) {
  json.BeginObject();
  json.Member("name", queue.name);
  WriteText(json, "parent", queue.parent);
  WriteGuarantee(json, "quota", queue.quota);
  WriteGuarantee(json, "limit", queue.limit);
  WriteGuarantee(json, "borrowing_limit", queue.borrowing_limit);
  WriteGuarantee(json, "lending_limit", queue.lending_limit);
  WriteWeight(json, queue.weight);
  if (queue.priority != 0) json.Member("priority", queue.priority);
  if (queue.created != 0) json.Member("created", queue.created);
  WriteUsage(json, queue.usage);
  WriteOptional(json, "preempt_min_runtime", queue.preempt_min_runtime);
  WriteOptional(json, "reclaim_min_runtime", queue.reclaim_min_runtime);
  json.EndObject();
}

void Write(JsonWriter& json, const Workload& workload) {
  json.BeginObject();
  json.Member("name", workload.name);
  WriteText(json, "queue", workload.queue);
  if (workload.priority != kDefaultPriority) json.Member("priority", workload.priority);
  if (workload.preemptible) json.Flag("preemptible", *workload.preemptible);
  if (workload.submitted != 0) json.Member("submitted", workload.submitted);
  if (workload.isolation != Isolation::kAny) {
    json.Member("isolation", NameOf(kIsolations, workload.isolation));
  }
  WriteText(json, "tenant", workload.tenant);
  if (workload.preemption_delay != 0) {
    json.Member("preemption_delay", workload.preemption_delay);
  }
  WriteOptional(json, "stale_since", workload.stale_since);
  if (workload.stale_grace == kUnlimited) {
    json.Member("stale_grace", kNeverWord);
  } else {
    WriteOptional(json, "stale_grace", workload.stale_grace);
  }
  WriteOptional(json, "max_disrupted", workload.max_disrupted);
  WriteOptional(json, "last_checkpoint", workload.last_checkpoint);
  WriteOptional(json, "max_runtime", workload.max_runtime);
  if (workload.movable) json.Flag("movable", *workload.movable);
  json.Key("gang");
  WriteGroup(json, workload.gang);
  WriteList(json, "pods", workload.pods, WritePod);
  json.EndObject();
}

}  // namespace tessera::io_internal
