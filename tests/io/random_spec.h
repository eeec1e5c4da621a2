#ifndef TESSERA_TESTS_IO_RANDOM_SPEC_H_
#define TESSERA_TESTS_IO_RANDOM_SPEC_H_

// Valid snapshots with anything in them that a file must carry.

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/cluster/snapshot.h"
#include "tessera/gpu/catalogue.h"
#include "tessera/resources/units.h"

namespace tessera {

// The same seed gives the same spec on every machine.
class RandomSpec {
 public:
  explicit RandomSpec(uint32_t seed) : random_(seed) {}

  SnapshotSpec Make() {
    spec_ = SnapshotSpec();
    spec_.now = Integer(-1000, 1000);
    spec_.levels = {"block", Text(), "node"};
    spec_.gpu_models = {*FindGpuModel("A100-40GB"), GpuModel{}};
    spec_.gpu_models[1].name = "own " + Text();
    spec_.gpu_models[1].memory_bytes = Integer(1, kBytesPerGiB);
    for (int i = 0; i < 5; ++i) spec_.nodes.push_back(MakeNode(i));
    for (int i = 0; i < 5; ++i) spec_.queues.push_back(MakeQueue(i));
    for (int i = 0; i < 5; ++i) spec_.workloads.push_back(MakeWorkload(i));
    PlacePods();
    return spec_;
  }

 private:
  int64_t Integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  int Int(int low, int high) { return static_cast<int>(Integer(low, high)); }
  bool Flip() { return Int(0, 1) == 1; }
  std::string_view Pick(const std::vector<std::string_view>& from) {
    return from[static_cast<size_t>(Int(0, static_cast<int>(from.size()) - 1))];
  }
  // From a byte to half of all.
  int64_t Amount() { return Integer(0, (int64_t{1} << Int(0, 40)) - 1); }

  std::string Text() {
    return std::string(Pick({"zone", "a.b/c", "with \"quotes\"", "back\\slash", "tab\tand\nline",
                             std::string_view("nul\0", 4), "d\u00fcne \u2603", "\U0001F600", "*",
                             "extended", "null", "0.5"}));
  }
  std::string ResourceName() {
    return std::string(Pick({"nvidia.com/ib", "tpu", "gpus", "extended", "*", "in.tray"}));
  }
  void Extend(std::map<std::string, int64_t, std::less<>>& extended) {
    for (int i = Int(0, 2); i > 0; --i) extended[ResourceName()] = Amount();
  }
  Labels Texts() {
    Labels labels;
    for (int i = Int(0, 3); i > 0; --i) labels[Text()] = Text();
    return labels;
  }

  Node MakeNode(int i) {
    Node node;
    node.name = std::to_string(i) + Text();
    node.labels = Texts();
    if (Flip()) node.topology["block"] = Text();
    for (int t = Int(0, 2); t > 0; --t) {
      node.taints.push_back({Text(), Flip() ? Text() : "", static_cast<TaintEffect>(Int(0, 2))});
    }
    if (Flip()) node.capacity = {Amount(), Amount(), Amount(), {}};
    if (Flip()) node.reserved = {Amount(), Amount(), Amount(), {}};
    Extend(node.capacity.extended);
    Extend(node.reserved.extended);
    node.schedulable = Flip();
    const bool mig = Flip();
    node.gpu_model = mig ? "A100-40GB" : spec_.gpu_models[1].name;
    node.gpus.resize(static_cast<size_t>(Int(0, 4)));
    const bool alike = Flip();
    for (Gpu& gpu : node.gpus) {
      if (!alike) gpu.healthy = Flip();
      if (!mig) continue;
      gpu.mig = alike ? MigMode::kDynamic : static_cast<MigMode>(Int(0, 2));
      if (!alike && Flip()) gpu.mig_enabled = gpu.mig != MigMode::kOff;
      if (alike || gpu.mig == MigMode::kOff || Flip()) continue;
      gpu.instances.push_back({"3g.20gb", 4});
      for (int start = Int(0, 3); start > 0; --start) gpu.instances.push_back({"1g.5gb", start});
    }
    return node;
  }

  ResourceAmounts Amounts(int64_t most, bool unlimited) {
    ResourceAmounts amounts;
    const auto amount = [&] {
      return unlimited && Int(0, 3) == 0 ? kUnlimited : std::min(Amount(), most);
    };
    if (Flip()) amounts.all = Flip() ? 0 : amount();
    for (int i = Int(0, 4); i > 0; --i) {
      const std::string name(Pick({"cpu", "memory", "gpu", "gpu_memory", "pods", "gpu:A100"}));
      amounts.by_name[Flip() ? name : ResourceName()] = amount();
    }
    return amounts;
  }

  Queue MakeQueue(int i) {
    Queue queue;
    queue.name = "q" + std::to_string(i);
    if (i == 1 || i == 2) queue.parent = "q" + std::to_string(i - 1);
    queue.quota = Amounts(kMaxTotal, true);
    queue.limit = Amounts(kMaxTotal, true);
    queue.weight = Amounts(kMaxWeight, false);
    queue.priority = Flip() ? 0 : Int(-5, 5);
    queue.created = Flip() ? 0 : Integer(-5, 5);
    if (Flip()) queue.usage["gpu"] = Amount();
    if (Flip()) queue.usage[ResourceName()] = Amount();
    if (Flip()) queue.preempt_min_runtime = Amount();
    if (Flip()) queue.reclaim_min_runtime = Amount();
    return queue;
  }

  GpuRequest MakeGpuRequest() {
    switch (Int(0, 5)) {
      case 0:
        return GpuRequest();
      case 1:
        return GpuRequest::Whole(Int(1, 64));
      case 2:
        return GpuRequest::Fraction(Int(1, kGpuUnitsPerDevice), Int(1, 3));
      case 3:
        return GpuRequest::Memory(Amount() + 1, Int(1, 3));
      case 4:
        if (Flip()) return GpuRequest::Profile("1g.5gb");
        return GpuRequest::Profiles({"2g.10gb", "1g.5gb"});
      default: {
        const int den = Int(1, 12);
        GpuRequest request = GpuRequest::Requirement({Amount() + 1, Int(0, den), den});
        request.allow_larger = Flip();
        return request;
      }
    }
  }

  PodSet MakePodSet(const std::string& name) {
    PodSet set;
    set.name = name;
    set.count = Int(1, 9);
    if (Flip()) set.min_count = Int(0, set.count);
    if (Flip()) set.request.cpu = Amount();
    if (Flip()) set.request.memory = Amount();
    set.request.gpu = MakeGpuRequest();
    Extend(set.request.extended);
    for (int i = Int(0, 2); i > 0; --i) set.gpu_models.push_back(Text());
    for (int i = Int(0, 3); i > 0; --i) {
      SelectorTerm term{Text(), static_cast<SelectorOperator>(Int(0, 3)), {}};
      const bool lists = term.op == SelectorOperator::kIn || term.op == SelectorOperator::kNotIn;
      for (int v = lists ? Int(1, 3) : 0; v > 0; --v) term.values.push_back(Text());
      set.selector.push_back(term);
    }
    for (int i = Int(0, 2); i > 0; --i) {
      Toleration toleration;
      toleration.exists = Flip();
      if (!toleration.exists || Flip()) toleration.key = Text();
      if (!toleration.exists && Flip()) toleration.value = Text();
      toleration.any_effect = Flip();
      if (!toleration.any_effect) toleration.effect = static_cast<TaintEffect>(Int(0, 2));
      set.tolerations.push_back(toleration);
    }
    if (Flip()) set.max_per_node = Int(1, 9);
    if (Flip()) set.max_per_domain = DomainLimit{"block", Int(1, 9)};
    if (Flip()) set.topology.required = "block";
    if (Flip()) set.topology.preferred = spec_.levels[1];
    return set;
  }

  PodGroup MakeGroup(const std::string& name, int depth) {
    PodGroup group;
    group.name = name;
    if (Flip()) group.min_groups = 1;
    if (Flip()) group.topology.preferred = "node";
    for (int i = 0; i < 2; ++i) {
      group.pod_sets.push_back(MakePodSet(Text() + name + std::to_string(i)));
    }
    if (Flip()) group.pod_sets[1].after = group.pod_sets[0].name;
    if (depth > 0) group.groups.push_back(MakeGroup(name + "g", depth - 1));
    return group;
  }

  Workload MakeWorkload(int i) {
    Workload w;
    w.name = Text() + std::to_string(i);
    w.queue = "q" + std::to_string(Int(2, 4));
    if (Flip()) w.priority = Int(-200, 200);
    if (Flip()) w.preemptible = Flip();
    if (Flip()) w.submitted = Integer(-1000000, 1000000);
    w.isolation = static_cast<Isolation>(Int(0, 3));
    if (Flip()) w.tenant = Text();
    if (Flip()) w.preemption_delay = Amount();
    if (Flip()) w.stale_since = Integer(-100, 100);
    if (Flip()) w.stale_grace = Flip() ? kUnlimited : Amount();
    if (Flip()) w.max_disrupted = Int(0, 5);
    if (Flip()) w.last_checkpoint = Integer(-100, 100);
    if (Flip()) w.max_runtime = Amount();
    if (Flip()) w.movable = Flip();
    w.gang = MakeGroup(Flip() ? "" : "root", Int(0, 2));
    return w;
  }

  // Pods that are, or were, somewhere: one per pod set of the first group.
  void PlacePods() {
    for (Workload& w : spec_.workloads) {
      for (const PodSet& set : w.gang.pod_sets) {
        Pod pod;
        pod.pod_set = set.name;
        pod.index = Int(0, set.count - 1);
        const bool none = set.request.gpu.kind == GpuRequestKind::kNone;
        pod.phase = static_cast<PodPhase>(none ? Int(0, 5) : Int(4, 5));
        if (none || Flip()) pod.node = spec_.nodes[static_cast<size_t>(Int(0, 4))].name;
        // What an ended pod held is not checked.
        if (!none && Flip()) pod.devices.gpus = {Int(0, 99), Int(0, 99)};
        if (!none && Flip()) pod.devices.shares = {{Int(0, 99), Int(1, 7000)}};
        if (!none && Flip()) pod.devices.slices = {{Int(0, 99), Text(), Int(0, 99)}};
        if (Flip()) pod.started = Integer(-100, 100);
        if (Flip()) pod.expires = Integer(2000, 3000);
        w.pods.push_back(pod);
      }
    }
  }

  std::mt19937 random_;
  SnapshotSpec spec_;
};

}  // namespace tessera

#endif  // TESSERA_TESTS_IO_RANDOM_SPEC_H_
