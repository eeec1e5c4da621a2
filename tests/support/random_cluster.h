#ifndef TESSERA_TESTS_SUPPORT_RANDOM_CLUSTER_H_
#define TESSERA_TESTS_SUPPORT_RANDOM_CLUSTER_H_

// Random small clusters that mix every feature of a snapshot.

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/random_cases.h"
#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {

// Draws by remainder, so that a seed gives the same cluster with every library.
class RandomCluster {
 public:
  explicit RandomCluster(uint32_t seed) : engine_(seed) {}

  int Below(int bound) { return static_cast<int>(engine_() % static_cast<uint32_t>(bound)); }
  bool Chance(int percent) { return Below(100) < percent; }

  SnapshotSpec Draw() {
    SnapshotSpec spec;
    spec.now = 1000;
    spec.levels = {"block", "rack"};
    const int nodes = 1 + Below(6);
    for (int i = 0; i < nodes; ++i) spec.nodes.push_back(DrawNode(i));
    DrawQueues(spec);
    const int workloads = 1 + Below(10);
    for (int i = 0; i < workloads; ++i) {
      spec.workloads.push_back(DrawWorkload(absl::StrCat("w", i), spec));
    }
    return spec;
  }

  Workload DrawWorkload(std::string name, const SnapshotSpec& spec) {
    Workload workload;
    workload.name = std::move(name);
    std::vector<std::string> leaves;
    for (const Queue& q : spec.queues) {
      const bool leaf = std::ranges::none_of(
          spec.queues, [&q](const Queue& other) { return other.parent == q.name; });
      if (leaf) leaves.push_back(q.name);
    }
    workload.queue = leaves[static_cast<size_t>(Below(static_cast<int>(leaves.size())))];
    workload.priority = Chance(15) ? 100 : 10 * Below(8);
    workload.submitted = Below(20);
    if (Chance(15)) workload.isolation = static_cast<Isolation>(1 + Below(3));
    if (Chance(20)) workload.tenant = absl::StrCat("t", Below(2));
    names_ = 0;
    workload.gang = DrawGroup(2);
    return workload;
  }

  // Shuffles everything whose order means nothing.
  SnapshotSpec Shuffled(SnapshotSpec spec) {
    std::shuffle(spec.nodes.begin(), spec.nodes.end(), engine_);
    std::shuffle(spec.queues.begin(), spec.queues.end(), engine_);
    std::shuffle(spec.workloads.begin(), spec.workloads.end(), engine_);
    for (Workload& w : spec.workloads) std::shuffle(w.pods.begin(), w.pods.end(), engine_);
    return spec;
  }

  // Ends, releases and fails some of the running pods.
  void Disturb(SnapshotSpec& spec) {
    for (Workload& workload : spec.workloads) {
      for (Pod& pod : workload.pods) {
        if (pod.phase != PodPhase::kRunning) continue;
        if (Chance(20)) pod.phase = PodPhase::kReleasing;
        if (Chance(4)) pod = MakeEndedPod(pod.pod_set, pod.index, PodPhase::kFailed);
        if (Chance(4)) pod = MakeEndedPod(pod.pod_set, pod.index, PodPhase::kSucceeded);
      }
      std::erase_if(workload.pods, [this](const Pod&) { return Chance(10); });
    }
  }

 private:
  Node DrawNode(int i) {
    Node node;
    node.name = absl::StrCat("n", i);
    node.topology = {{"block", absl::StrCat("b", i / 4)}, {"rack", absl::StrCat("r", i / 2)}};
    node.capacity = {.cpu = Cores(4 + 4 * Below(4)),
                     .memory = (16 + 16 * Below(4)) * kBytesPerGiB,
                     .pods = 3 + Below(20),
                     .extended = {}};
    if (Chance(30)) node.capacity.extended["example.com/nic"] = 1 + Below(3);
    if (Chance(10)) node.taints = {{"dedicated", "llm", TaintEffect::kNoSchedule}};
    if (Chance(50)) node.labels["zone"] = Chance(50) ? "a" : "b";
    if (Chance(5)) node.schedulable = false;
    if (Chance(15)) return node;
    node.gpu_model = Chance(50) ? "H100-80GB" : Chance(50) ? "A100-40GB" : "A30-24GB";
    const int gpus = 1 + Below(4);
    for (int g = 0; g < gpus; ++g) {
      Gpu gpu = MakeMigGpu(static_cast<MigMode>(Below(3)));
      if (gpu.mig != MigMode::kOff && Chance(60)) DrawInstances(node.gpu_model, gpu);
      if (Chance(5)) gpu.healthy = false;
      node.gpus.push_back(std::move(gpu));
    }
    return node;
  }

  void DrawInstances(const std::string& model, Gpu& gpu) {
    if (model == "H100-80GB") {
      gpu.instances = {{"1g.10gb", 0}, {"2g.20gb", 2}, {"3g.40gb", 4}};
    } else if (model == "A100-40GB") {
      gpu.instances = {{"1g.5gb", 6}, {"2g.10gb", 0}, {"1g.5gb", 3}};
    } else {
      gpu.instances = {{"1g.6gb", 0}, {"2g.12gb", 2}};
    }
    while (!gpu.instances.empty() && Chance(40)) gpu.instances.pop_back();
  }

  void DrawQueues(SnapshotSpec& spec) {
    const int count = 1 + Below(5);
    for (int i = 0; i < count; ++i) {
      Queue queue = MakeQueue(absl::StrCat("q", i));
      if (i > 0 && Chance(50)) queue.parent = absl::StrCat("q", Below(i));
      if (Chance(60)) queue.quota.by_name["gpu"] = Gpus(Below(5));
      if (Chance(20)) queue.quota.by_name["cpu"] = Cores(Below(20));
      if (Chance(20)) queue.limit.by_name["gpu"] = Gpus(1 + Below(6));
      if (Chance(10)) queue.limit.by_name["cpu"] = Cores(1 + Below(20));
      if (Chance(15)) queue.limit.by_name["gpu:H100"] = Gpus(1 + Below(3));
      if (Chance(15)) queue.limit.by_name["gpu_memory"] = (20 + Below(200)) * kBytesPerGiB;
      if (Chance(40)) queue.weight.all = kWeightOne * Below(4);
      queue.priority = Below(3);
      queue.created = Below(3);
      spec.queues.push_back(std::move(queue));
    }
  }

  TopologyConstraint DrawTopology() {
    TopologyConstraint topology;
    if (Chance(12)) topology.required = Chance(70) ? "rack" : "block";
    if (Chance(12)) topology.preferred = Chance(70) ? "rack" : "block";
    return topology;
  }

  PodGroup DrawGroup(int depth) {
    PodGroup group;
    group.topology = DrawTopology();
    const int sets = 1 + Below(2);
    for (int i = 0; i < sets; ++i) group.pod_sets.push_back(DrawPodSet());
    const int groups = depth > 0 && Chance(25) ? 1 + Below(2) : 0;
    for (int i = 0; i < groups; ++i) {
      group.groups.push_back(DrawGroup(depth - 1));
      group.groups.back().name = absl::StrCat("g", names_++);
    }
    const int children = sets + groups;
    if (children > 1 && Chance(25)) {
      std::string& after = groups > 0 ? group.groups.back().after : group.pod_sets.back().after;
      after = group.pod_sets.front().name;
    } else if (Chance(20)) {
      group.min_groups = 1 + Below(children);
    }
    return group;
  }

  PodSet DrawPodSet() {
    PodSet set = MakePodSet(absl::StrCat("s", names_++), 1 + Below(4), Request());
    if (Chance(40)) set.min_count = Below(set.count + 1);
    set.request.cpu = 500 * Below(7);
    set.request.memory = Below(8) * kBytesPerGiB;
    set.request.gpu = DrawGpuRequest();
    if (Chance(10)) set.request.extended["example.com/nic"] = 1;
    if (Chance(10)) set.selector = {{"zone", SelectorOperator::kIn, {"a"}}};
    if (Chance(10)) set.selector = {{"zone", SelectorOperator::kNotIn, {"a"}}};
    if (Chance(20)) set.tolerations = {{.key = "dedicated", .exists = true, .value = ""}};
    if (Chance(15)) set.gpu_models = {Chance(50) ? "H100" : "A100-40GB"};
    if (Chance(15)) set.max_per_node = 1 + Below(2);
    if (Chance(10)) set.max_per_domain = DomainLimit{Chance(70) ? "rack" : "block", 1 + Below(2)};
    set.topology = DrawTopology();
    return set;
  }

  GpuRequest DrawGpuRequest() {
    switch (Below(7)) {
      case 0:
        return GpuRequest();
      case 1:
        return GpuRequest::Whole(1 + Below(3));
      case 2:
        return GpuRequest::Fraction(kGpuUnitsPerDevice * (1 + Below(9)) / 10, 1 + Below(5) / 4);
      case 3:
        return GpuRequest::Memory((1 + Below(30)) * kBytesPerGiB);
      case 4:
        return DrawProfiles();
      case 5: {
        GpuRequest request = GpuRequest::Requirement(
            {.memory = (1 + Below(20)) * kBytesPerGiB, .compute_num = Below(4), .compute_den = 7});
        request.allow_larger = Chance(20);
        return request;
      }
      default:
        return GpuRequest::Whole(1);
    }
  }

  GpuRequest DrawProfiles() {
    std::vector<std::string> names = {Chance(50) ? "1g.10gb" : "2g.20gb"};
    if (Chance(25)) names.push_back("3g.40gb");
    GpuRequest request = GpuRequest::Profiles(std::move(names));
    request.allow_larger = Chance(20);
    return request;
  }

  std::mt19937 engine_;
  int names_ = 0;
};

}  // namespace tessera

#endif  // TESSERA_TESTS_SUPPORT_RANDOM_CLUSTER_H_
