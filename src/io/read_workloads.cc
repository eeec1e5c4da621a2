// Queues, workloads, gangs and pods.

#include "src/io/amounts.h"
#include "src/io/names.h"
#include "src/io/nouns.h"
#include "tessera/resources/units.h"

namespace tessera::io_internal {
namespace {

absl::Status ReadIsolation(const Place& at, Workload& out) {
  return ReadEnum(at, kIsolations, out.isolation);
}

absl::Status ReadStaleGrace(const Place& at, Workload& out) {
  if (at.kind() != JsonKind::kString) return Read(at, out.stale_grace);
  size_t index = 0;
  TESSERA_RETURN_IF_ERROR(ReadName(at, std::span(&kNeverWord, 1), index));
  out.stale_grace = kUnlimited;
  return absl::OkStatus();
}

absl::Status ReadPhase(const Place& at, Pod& out) { return ReadEnum(at, kPhases, out.phase); }

}  // namespace

absl::Status Read(const Place& at, Queue& out) {
  static constexpr Field<Queue> kFields[] = {
      {"name", Into<&Queue::name>, kRequired},
      {"parent", Into<&Queue::parent>},
      {"quota", [](const Place& field, Queue& q) { return ReadGuarantee(field, q.quota); }},
      {"limit", [](const Place& field, Queue& q) { return ReadGuarantee(field, q.limit); }},
      {"borrowing_limit",
       [](const Place& field, Queue& q) { return ReadGuarantee(field, q.borrowing_limit); }},
      {"lending_limit",
       [](const Place& field, Queue& q) { return ReadGuarantee(field, q.lending_limit); }},
      {"weight", [](const Place& field, Queue& q) { return ReadWeight(field, q.weight); }},
      {"priority", Into<&Queue::priority>},
      {"created", Into<&Queue::created>},
      {"usage", [](const Place& field, Queue& q) { return ReadUsage(field, q.usage); }},
      {"preempt_min_runtime", Into<&Queue::preempt_min_runtime>},
      {"reclaim_min_runtime", Into<&Queue::reclaim_min_runtime>},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, TopologyConstraint& out) {
  static constexpr Field<TopologyConstraint> kFields[] = {
      {"required", Into<&TopologyConstraint::required>},
      {"preferred", Into<&TopologyConstraint::preferred>},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, DomainLimit& out) {
  static constexpr Field<DomainLimit> kFields[] = {
      {"level", Into<&DomainLimit::level>, kRequired},
      {"pods", Into<&DomainLimit::pods>},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, PodSet& out) {
  static constexpr Field<PodSet> kFields[] = {
      {"name", Into<&PodSet::name>, kRequired},
      {"count", Into<&PodSet::count>},
      {"min_count", Into<&PodSet::min_count>},
      {"request", Into<&PodSet::request>},
      {"gpu_models", Into<&PodSet::gpu_models>},
      {"selector", Into<&PodSet::selector>},
      {"tolerations", Into<&PodSet::tolerations>},
      {"max_per_node", Into<&PodSet::max_per_node>},
      {"max_per_domain", Into<&PodSet::max_per_domain>},
      {"after", Into<&PodSet::after>},
      {"topology", Into<&PodSet::topology>},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, PodGroup& out) {
  static constexpr Field<PodGroup> kFields[] = {
      {"name", Into<&PodGroup::name>},         {"min_groups", Into<&PodGroup::min_groups>},
      {"after", Into<&PodGroup::after>},       {"topology", Into<&PodGroup::topology>},
      {"pod_sets", Into<&PodGroup::pod_sets>}, {"groups", Into<&PodGroup::groups>},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, GpuShare& out) {
  static constexpr Field<GpuShare> kFields[] = {
      {"gpu", Into<&GpuShare::gpu>, kRequired},
      {"fraction", Quantity<&GpuShare::share, kGpuUnitsPerDevice, Rounding::kUp>, kRequired},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, GpuSlice& out) {
  static constexpr Field<GpuSlice> kFields[] = {
      {"gpu", Into<&GpuSlice::gpu>, kRequired},
      {"profile", Into<&GpuSlice::profile>, kRequired},
      {"start", Into<&GpuSlice::start>, kRequired},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, Pod& out) {
  static constexpr Field<Pod> kFields[] = {
      {"pod_set", Into<&Pod::pod_set>, kRequired},
      {"index", Into<&Pod::index>},
      {"phase", ReadPhase},
      {"node", Into<&Pod::node>},
      {"gpus", [](const Place& field, Pod& pod) { return Read(field, pod.devices.gpus); }},
      {"shares", [](const Place& field, Pod& pod) { return Read(field, pod.devices.shares); }},
      {"slices", [](const Place& field, Pod& pod) { return Read(field, pod.devices.slices); }},
      {"started", Into<&Pod::started>},
      {"expires", Into<&Pod::expires>},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, Workload& out) {
  static constexpr Field<Workload> kFields[] = {
      {"name", Into<&Workload::name>, kRequired},
      {"queue", Into<&Workload::queue>},
      {"priority", Into<&Workload::priority>},
      {"preemptible", Into<&Workload::preemptible>},
      {"submitted", Into<&Workload::submitted>},
      {"isolation", ReadIsolation},
      {"tenant", Into<&Workload::tenant>},
      {"preemption_delay", Into<&Workload::preemption_delay>},
      {"stale_since", Into<&Workload::stale_since>},
      {"stale_grace", ReadStaleGrace},
      {"max_disrupted", Into<&Workload::max_disrupted>},
      {"last_checkpoint", Into<&Workload::last_checkpoint>},
      {"max_runtime", Into<&Workload::max_runtime>},
      {"movable", Into<&Workload::movable>},
      {"gang", Into<&Workload::gang>, kRequired},
      {"pods", Into<&Workload::pods>},
  };
  return ReadFields(at, kFields, out);
}

}  // namespace tessera::io_internal
