#include "tessera/state/state_tables.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/cluster/labels.h"

namespace tessera {
namespace {

std::set<std::string_view> MentionedLabels(const Snapshot& snapshot) {
  std::set<std::string_view> keys;
  for (int c = 0; c < snapshot.num_request_classes(); ++c) {
    for (const SelectorTerm& term : snapshot.request_class(RequestClassId(c)).selector) {
      keys.insert(term.key);
    }
  }
  return keys;
}

// Writes to `key` what is equal for two nodes exactly when no request class can
// tell them apart.
void WriteSignature(const Snapshot& snapshot, NodeId n, const std::set<std::string_view>& labels,
                    std::string& key) {
  const Node& node = snapshot.node(n);
  const auto append = [&key](std::string_view text) {
    absl::StrAppend(&key, text.size(), ":", ToAbsl(text));
  };
  key.clear();
  absl::StrAppend(&key, node.schedulable ? "+" : "-", snapshot.node_model(n).value(), ";");
  for (std::string_view label : labels) {
    const auto it = node.labels.find(label);
    if (it == node.labels.end()) {
      key += '-';
    } else {
      append(it->second);
    }
  }
  for (const Taint& taint : node.taints) {
    append(taint.key);
    append(taint.value);
    absl::StrAppend(&key, static_cast<int>(taint.effect), ";");
  }
}

}  // namespace

Eligibility EligibilityOf(const Snapshot& snapshot, const RequestClass& request, NodeId n) {
  const Node& node = snapshot.node(n);
  if (!node.schedulable) return Eligibility::kUnschedulable;
  if (!Matches(request.selector, node.labels)) return Eligibility::kSelector;
  if (!Tolerates(request.tolerations, node.taints)) return Eligibility::kTaint;
  if (request.gpu.kind == GpuRequestKind::kNone) return Eligibility::kEligible;
  const ModelId m = snapshot.node_model(n);
  const bool fits = m.valid() && request.models[static_cast<size_t>(m.value())].fits;
  return fits ? Eligibility::kEligible : Eligibility::kGpuModel;
}

StateTables::StateTables(Snapshot snapshot, const SlicePolicy& slices)
    : snapshot_(std::move(snapshot)) {
  first_gpu_.push_back(0);
  for (int n = 0; n < snapshot_.num_nodes(); ++n) {
    const int gpus = static_cast<int>(snapshot_.node(NodeId(n)).gpus.size());
    first_gpu_.push_back(first_gpu_.back() + gpus);
    max_gpus_per_node_ = std::max(max_gpus_per_node_, gpus);
  }
  for (int r : {kCpu, kMemory, kPods}) node_resources_.push_back(r);
  for (int r = kFirstNamedResource; r < snapshot_.resources().size(); ++r) {
    if (snapshot_.resources().gpu_model(r).empty()) node_resources_.push_back(r);
  }
  for (int w = 0; w < snapshot_.num_workloads(); ++w) {
    tracks_tenants_ |= snapshot_.workload(WorkloadId(w)).isolation != Isolation::kAny;
  }
  SignNodes();
  CollectAsks();
  JudgeClasses();
  CountEnded();
  CostSlices(slices);
}

void StateTables::SignNodes() {
  const std::set<std::string_view> labels = MentionedLabels(snapshot_);
  absl::flat_hash_map<std::string, int32_t> ids;
  std::string key;
  for (int i = 0; i < snapshot_.num_nodes(); ++i) {
    const NodeId n(i);
    WriteSignature(snapshot_, n, labels, key);
    const auto [it, inserted] = ids.try_emplace(key, static_cast<int32_t>(signatures_.size()));
    if (inserted) signatures_.push_back({snapshot_.node_model(n), n, {}});
    std::vector<int32_t>& nodes = signatures_[static_cast<size_t>(it->second)].nodes;
    signature_of_.push_back(it->second);
    slot_of_.push_back(static_cast<int32_t>(nodes.size()));
    nodes.push_back(i);
  }
}

void StateTables::JudgeClasses() {
  for (int c = 0; c < snapshot_.num_request_classes(); ++c) {
    const RequestClass& request = snapshot_.request_class(RequestClassId(c));
    std::vector<int>& eligible = eligible_.emplace_back();
    for (size_t s = 0; s < signatures_.size(); ++s) {
      eligibility_.push_back(EligibilityOf(snapshot_, request, signatures_[s].example));
      if (eligibility_.back() == Eligibility::kEligible) eligible.push_back(static_cast<int>(s));
    }
    for (int r : node_resources_) {
      needs_.push_back(request.need[r] > 0 ? request.need[r] : NodeIndex::kNoNeed);
    }
    needs_.resize(static_cast<size_t>(c + 1) * num_columns(), NodeIndex::kNoNeed);
  }
}

void StateTables::CollectAsks() {
  for (int c = 0; c < snapshot_.num_request_classes(); ++c) {
    const RequestClass& request = snapshot_.request_class(RequestClassId(c));
    if (!request.gpu.is_slice()) {
      ask_of_.push_back(-1);
      continue;
    }
    const auto it = std::ranges::find(asks_, request.models);
    ask_of_.push_back(static_cast<int>(it - asks_.begin()));
    if (it == asks_.end()) asks_.push_back(request.models);
  }
}

void StateTables::CostSlices(const SlicePolicy& policy) {
  slice_costs_.resize(static_cast<size_t>(snapshot_.num_models()));
  if (asks_.empty()) return;
  for (const NodeSignature& signature : signatures_) {
    if (!signature.model.valid()) continue;
    std::optional<SliceCostTable>& costs =
        slice_costs_[static_cast<size_t>(signature.model.value())];
    const bool sliced = std::ranges::any_of(signature.nodes, [this](int32_t n) {
      return std::ranges::any_of(snapshot_.node(NodeId(n)).gpus,
                                 [](const Gpu& gpu) { return gpu.mig != MigMode::kOff; });
    });
    if (sliced && !costs) costs.emplace(MakeSliceCostTable(snapshot_, signature.model, policy));
  }
}

void StateTables::CountEnded() {
  for (int i = 0; i < snapshot_.num_pod_sets(); ++i) {
    const PodSetInfo& set = snapshot_.pod_set(PodSetId(i));
    int succeeded = 0, ended = 0;
    for (int p = 0; p < set.count; ++p) {
      const PodPhase phase = snapshot_.pod_phase(set.pod(p));
      succeeded += phase == PodPhase::kSucceeded ? 1 : 0;
      ended += IsOver(phase) ? 1 : 0;
    }
    succeeded_.push_back(succeeded);
    ended_.push_back(ended);
  }
}

}  // namespace tessera
