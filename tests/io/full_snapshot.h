#ifndef TESSERA_TESTS_IO_FULL_SNAPSHOT_H_
#define TESSERA_TESTS_IO_FULL_SNAPSHOT_H_

// A valid snapshot file in which every field of the format occurs.

#include <string_view>

namespace tessera {

inline constexpr std::string_view kFullSnapshot = R"({
  "apiVersion": "tessera/v1", "kind": "Snapshot", "now": 1000,
  "topology": {"levels": ["block", "rack"]},
  "gpu_models": [
    {"name": "T4", "memory": "16Gi"},
    {"name": "TOY", "memory": "8Gi", "units": 4, "compute_slices": 4, "memory_slices": 4,
     "mig_toggle_needs_reset": true,
     "engines": {"copy": 4, "decoder": 2, "encoder": 1, "jpeg": 1, "ofa": 1},
     "profiles": [
       {"name": "1g.2gb", "size": 1, "starts": [0, 1, 2, 3], "compute_slices": 1,
        "memory_slices": 1, "memory": "1900Mi", "max": 4,
        "engines": {"copy": 1, "ofa": 0}, "evidence": "inferred"},
       {"name": "2g.4gb", "size": 2, "starts": [0, 2], "compute_slices": 2,
        "memory_slices": 2, "max": 2}]}],
  "nodes": [
    {"name": "n1", "topology": {"block": "b1", "rack": "r1"}, "labels": {"zone": "a", "x": ""},
     "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}, {"key": "soft",
                 "effect": "PreferNoSchedule"}, {"key": "plain"}],
     "capacity": {"cpu": 96, "memory": "1Ti", "pods": 110, "nvidia.com/ib": 8,
                  "extended": {"tpu": 4}},
     "reserved": {"cpu": "1500m", "memory": 1000000001, "pods": 3, "nvidia.com/ib": 1},
     "schedulable": false, "gpu_model": "H100-80GB", "gpus": 8},
    {"name": "n2", "gpu_model": "A100-40GB", "capacity": {"cpu": 64, "memory": "512Gi"},
     "gpus": [{"mig": "static", "instances": [{"profile": "3g.20gb", "start": 4},
                                              {"profile": "1g.5gb", "start": 0}]},
              {"mig": "off", "healthy": false}, {}, {}, {"mig_enabled": true}],
     "mig": "dynamic"},
    {"name": "n3", "gpu_model": "T4", "gpus": 4, "topology": {"block": "b1"}},
    {"name": "n4", "gpu_model": "TOY", "gpus": 2, "mig": "dynamic"},
    {"name": "cpu-only", "capacity": {"cpu": 4}}],
  "queues": [
    {"name": "research", "quota": {"gpu": 8, "gpu:H100": 2.5, "cpu": "unlimited",
       "memory": "64Gi", "*": 0, "extended": {"tpu": 4}},
     "limit": "unlimited", "weight": 2.125, "priority": -3, "created": -7},
    {"name": "nlp", "parent": "research", "quota": 4, "limit": 0,
     "weight": {"gpu": 0.5, "*": 3}, "usage": {"gpu": 12.5, "cpu": 3},
     "preempt_min_runtime": 60, "reclaim_min_runtime": 300},
    {"name": "dev", "quota": "unlimited"}],
  "workloads": [
    {"name": "llama", "queue": "nlp", "priority": 120, "preemptible": true, "submitted": -60,
     "isolation": "hardware", "tenant": "alice", "preemption_delay": 5, "stale_since": 10,
     "stale_grace": "never", "max_disrupted": 1, "last_checkpoint": 900, "max_runtime": 86400,
     "movable": false,
     "gang": {"topology": {"required": "block", "preferred": "rack"}, "min_groups": 2,
       "pod_sets": [
         {"name": "router", "request": {"cpu": 4, "memory": "8Gi", "nvidia.com/ib": 1}},
         {"name": "prefill", "count": 6, "min_count": 2, "max_per_node": 8,
          "max_per_domain": {"level": "rack", "pods": 4}, "after": "router",
          "request": {"cpu": "250m", "memory": "64Gi", "gpu": 1},
          "gpu_models": ["H100", "A100-40GB"],
          "selector": {"zone": "a", "disk": ["ssd", "nvme"], "arch": {"not_in": ["arm"]},
                       "big": {"exists": true}, "bad": {"exists": false},
                       "os": {"in": ["linux"]}},
          "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"},
                          {"operator": "Exists"}],
          "topology": {"preferred": "rack"}},
         {"name": "listed", "request": {}, "selector": [
            {"key": "zone", "in": ["a", "b"]}, {"key": "zone", "not_in": ["c"]}]}],
       "groups": [
         {"name": "decode", "after": "router", "min_groups": 1, "topology": {"required": "rack"},
          "pod_sets": [{"name": "embed", "count": 4, "request": {"mig": "1g.5gb"}},
                       {"name": "rerank", "count": 2,
                        "request": {"slice": {"memory": "18Gi", "compute": "2/7"}}},
                       {"name": "quarter", "request": {"slice": {"compute": 0.25}}}]}]},
     "pods": [
       {"pod_set": "prefill", "index": 0, "node": "n1", "gpus": [0], "started": 970},
       {"pod_set": "prefill", "index": 1, "phase": "nominated", "node": "n1", "gpus": [1],
        "expires": 2000},
       {"pod_set": "prefill", "index": 2, "phase": "failed"},
       {"pod_set": "prefill", "index": 3, "phase": "succeeded", "node": "n1", "started": 1},
       {"pod_set": "embed", "node": "n2", "slices": [{"gpu": 0, "profile": "1g.5gb",
                                                      "start": 0}]}]},
    {"name": "notebooks", "queue": "dev", "isolation": "node", "stale_grace": 30,
     "gang": {"pod_sets": [
       {"name": "dev", "count": 3, "request": {"gpu_fraction": 0.5, "extended": {"tpu": 1}}},
       {"name": "pair", "request": {"gpu_memory": "4Gi", "gpu_devices": 2}}]},
     "pods": [
       {"pod_set": "dev", "index": 0, "node": "n3", "gpus": [0]},
       {"pod_set": "dev", "index": 1, "node": "n3", "shares": [{"gpu": 0, "fraction": 0.5}]},
       {"pod_set": "dev", "index": 2, "phase": "releasing", "node": "n3", "gpus": [1]},
       {"pod_set": "dev", "index": 2, "phase": "nominated", "node": "n3", "gpus": [2]}]}]
}
)";

}  // namespace tessera

#endif  // TESSERA_TESTS_IO_FULL_SNAPSHOT_H_
