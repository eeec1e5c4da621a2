// How many engines for two services that share 32 GPUs, and can they start?

#include <cstdio>
#include <vector>

#include "tessera/replicas/decide_replicas.h"
#include "tessera/schedule/gpu_budget.h"
#include "tessera/schedule/placeable_replicas.h"

namespace {

// Prefill engines of 2 GPUs, decode engines of two nodes with 4 GPUs each.
tessera::ServiceShape Shape() {
  tessera::ServiceShape shape;
  shape.prefill.pod.request.gpu = tessera::GpuRequest::Whole(2);
  shape.decode.pods = 2;
  shape.decode.pod.request.gpu = tessera::GpuRequest::Whole(4);
  return shape;
}

// A service that was asked for so many requests a second, of 3,000 tokens in and 300 out.
tessera::ServiceSpec Service(const char* name, double requests_per_second) {
  tessera::ServiceSpec spec;
  spec.name = name;
  spec.sla = {.ttft = 0.5, .itl = 0.05};
  spec.rules.gpus = tessera::EngineGpusOf(Shape());
  spec.prefill.iteration = tessera::IterationCost{.per_prefill_token = 5e-5};
  spec.decode.iteration = tessera::IterationCost{.fixed = 0.01, .per_kv_token = 1.3e-7};
  spec.limits.max_kv_tokens = 630000;
  spec.history = {{requests_per_second, 3000, 300, 0}};
  spec.status.expected = spec.status.ready = {1, 1};
  return spec;
}

}  // namespace

int main() {
  // What each would run on its own.
  std::vector<tessera::ServiceClaim> claims;
  for (const tessera::ServiceSpec& spec : {Service("chat", 14), Service("code", 9)}) {
    const auto decision = tessera::DecideReplicas(spec);
    if (!decision.ok()) return 1;
    claims.push_back({.name = spec.name,
                      .priority = 0,
                      .weight = tessera::kWeightOne,
                      .engines = {spec.rules.gpus, spec.rules.minimum, decision->plan.granted},
                      .held = spec.status.expected});
  }
  // What they get of a common budget.
  const auto division = tessera::DivideGpuBudget(claims, 32);
  if (!division.ok()) return 1;
  for (size_t i = 0; i < claims.size(); ++i) {
    const tessera::ReplicaCounts &wanted = claims[i].engines.wanted,
                                 &granted = division->grants[i].counts;
    std::printf("%s wants %d + %d engines and gets %d + %d\n", claims[i].name.c_str(),
                static_cast<int>(wanted.prefill), static_cast<int>(wanted.decode),
                static_cast<int>(granted.prefill), static_cast<int>(granted.decode));
  }
  if (division->peak_gpus > 32) return 1;

  // What of it finds a place in a cluster of three nodes.
  tessera::SnapshotSpec cluster;
  for (const char* name : {"node-a", "node-b", "node-c"}) {
    tessera::Node& node = cluster.nodes.emplace_back();
    node.name = name;
    node.gpu_model = "H100-80GB";
    node.gpus.resize(4);
  }
  const auto snapshot = tessera::Snapshot::Create(cluster);
  if (!snapshot.ok()) return 1;
  tessera::Workload chat;
  chat.name = "chat";
  const auto placeable =
      tessera::PlanPlaceableReplicas(*snapshot, chat, Shape(), division->grants[0].counts);
  if (!placeable.ok()) return 1;
  std::printf("chat can start %d + %d: %s\n", static_cast<int>(placeable->counts.prefill),
              static_cast<int>(placeable->counts.decode), placeable->decode.text.c_str());
  return placeable->counts == tessera::ReplicaCounts{} ? 1 : 0;
}
