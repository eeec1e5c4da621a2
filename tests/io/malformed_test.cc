// What is wrong with a file is told by the path of the field and a sentence.

#include "tests/io/malformed.h"

#include <gtest/gtest.h>

#include <string>

namespace tessera::malformed {
namespace {

TEST(MalformedTest, NotJson) {
  ExpectMessages({
      {"", "line 1, column 1: "},
      {" \n\n ", "line 3, column 2: "},
      {"nonsense", "line 1, column 2: "},
      {"{\"apiVersion\": \"tessera/v1\",\n \"nodes\": [", "line 2, column 12: "},
      {"{\"apiVersion\": \"tessera/v1\"}\n{", "line 2, column 1: "},
      {"{\"apiVersion\": \"tessera/v1\"} x", "line 1, column 30: "},
      {"{\"apiVersion\": \"tessera/v1\",}", "line 1, column 29: "},
      {"{\"apiVersion\" \"tessera/v1\"}", "line 1, column 26: "},
      {"{'apiVersion': 1}", "line 1, column 2: "},
      {"{\"apiVersion\": \"tessera\n\"}", "line 1, column 24: "},
      {"{\"apiVersion\": \"\\x\"}", "line 1, column 18: "},
      {"{\"apiVersion\": \"\\ud800\"}", "line 1, column 23: "},
      {"{\"apiVersion\": \"\xff\"}", "line 1, column 17: "},
      {"{\"apiVersion\": \"\xc3\"}", "line 1, column 18: "},
      {"{\"\xe2\x82\": 1}", "line 1, column 5: "},
      {std::string("{\0}", 3), "line 1, column 2: "},
      {File("\"now\": NaN"), "line 1, column 37: "},
      {File("\"now\": Infinity"), "line 1, column 37: "},
      {File("\"now\": -"), "line 1, column 38: "},
      {File("\"now\": 01"), "line 1, column 38: "},
      {File("\"now\": .5"), "line 1, column 37: "},
      {File("\"now\": 1e999"), "line 1, column 41: number overflow"},
      {File("\"now\": 0 /* none */"), "line 1, column 39: "},
  });
}

TEST(MalformedTest, NotASnapshot) {
  const std::string deep(1000000, '[');
  ExpectMessages({
      {"[]", "must be an object, not an array"},
      {"null", "must be an object, not null"},
      {"{}", "apiVersion: is missing"},
      {R"({"apiVersion": 1})", "apiVersion: must be a string, not a number"},
      {R"({"apiVersion": "tessera/v2"})", R"(apiVersion: must be "tessera/v1", not "tessera/v2")"},
      {File(R"("kind": "Plan")"), R"(kind: must be "Snapshot", not "Plan")"},
      {File(R"("workload": [])"), R"(workload: is not a known field; did you mean "workloads"?)"},
      {File(R"("zzz": [])"), "zzz: is not a known field"},
      {File(R"("now": 1, "nodes": [], "now": 2)"), "now: is given twice"},
      {Nodes(R"({"name": "a", "labels": {"x": "1", "y": "2", "x": "1"}})"),
       "nodes[0].labels.x: is given twice"},
      {R"({"a": [1, {"b": )" + std::string(70, '[') + "0", "a[1].b" +
                                                               [] {
                                                                 std::string path;
                                                                 for (int i = 0; i < 61; ++i)
                                                                   path += "[0]";
                                                                 return path;
                                                               }() +
                                                               ": is nested deeper than 64 levels"},
      {deep, "[0][0]"},
      {File(R"("now": "soon")"), "now: must be a number, not a string"},
      {File(R"("now": 1.5)"), "now: must be a whole number, not 1.5"},
      {File(R"("now": 9223372036854775808)"),
       "now: 9223372036854775808 is above 9223372036854775807"},
      {File(R"("now": -99999999999999999999)"),
       "now: -99999999999999999999 is below -9223372036854775808"},
      {File(R"("nodes": {})"), "nodes: must be an array, not an object"},
      {File(R"("nodes": [1])"), "nodes[0]: must be an object, not a number"},
      {File(R"("topology": ["rack"])"), "topology: must be an object, not an array"},
      {File(R"("topology": {"levels": ["a", 1]})"),
       "topology.levels[1]: must be a string, not a number"},
      {File(R"("topology": {"levels": ["a", ""]})"), "topology.levels[1]: is empty"},
      {File(R"("topology": {"levels": ["a", "b", "a"]})"),
       R"(topology.levels[2]: "a" is listed twice)"},
  });
}

TEST(MalformedTest, GpuModels) {
  const std::string good =
      R"("name": "1g", "size": 1, "starts": [0, 1], "compute_slices": 1, "memory_slices": 1)";
  ExpectMessages({
      {File(R"("gpu_models": [{"name": "M"}])"), "gpu_models[0].memory: is missing"},
      {File(R"("gpu_models": [{"memory": "1Gi"}])"), "gpu_models[0].name: is missing"},
      {File(R"("gpu_models": [{"name": "M", "memory": 0}])"),
       "gpu_models[0].memory: must be positive, got 0"},
      {File(R"("gpu_models": [{"name": "M", "memory": 1}, {"name": "M", "memory": 2}])"),
       R"(gpu_models[1].name: "M" is the name of another model)"},
      {Model(R"("units": 17)"), "gpu_models[0].units: must be in 0..16, got 17"},
      {Model(R"("unit": 1)"), R"(gpu_models[0].unit: is not a known field; did you mean "units"?)"},
      {Model(R"("engines": {"nvjpg": 1})"), "gpu_models[0].engines.nvjpg: is not a known field"},
      {Profile(good), "gpu_models[0].profiles[0].max: is missing"},
      {Profile(good + R"(, "max": 2, "memory": "9Gi")"),
       "gpu_models[0].profiles[0].memory: must be in 0..8589934592, got 9663676416"},
      {Profile(good + R"(, "max": 2, "evidence": "guessed")"),
       R"(gpu_models[0].profiles[0].evidence: must be "confirmed" or "inferred", not "guessed")"},
      {Profile(R"("name": "2g", "size": 2, "starts": [1], "compute_slices": 1,
                  "memory_slices": 1, "max": 1)"),
       "gpu_models[0].profiles[0].starts[0]: start 1 + size 2 exceeds the 2 units"},
  });
}

TEST(MalformedTest, Nodes) {
  ExpectMessages({
      {Nodes("{}"), "nodes[0].name: is missing"},
      {Nodes(R"({"name": ""})"), "nodes[0].name: is empty"},
      {Nodes(R"({"name": 7})"), "nodes[0].name: must be a string, not a number"},
      {Nodes(R"({"name": "a"}, {"name": "b"}, {"name": "a"})"),
       R"(nodes[2].name: "a" is the name of another node)"},
      {Node(R"("label": {})"), R"(nodes[0].label: is not a known field; did you mean "labels"?)"},
      {Node(R"("labels": {"zone": 1})"), "nodes[0].labels.zone: must be a string, not a number"},
      {Node(R"("taints": [{"effect": "NoSchedule"}])"), "nodes[0].taints[0].key: is missing"},
      {Node(R"("taints": [{"key": "k", "effect": "Noschedule"}])"),
       R"(nodes[0].taints[0].effect: must be "NoSchedule", "PreferNoSchedule" or "NoExecute", )"
       R"(not "Noschedule"; did you mean "NoSchedule"?)"},
      {Node(R"("topology": {"rack": "r"})"),
       "nodes[0].topology.rack: is not one of topology.levels"},
      {Node(R"("schedulable": 1)"), "nodes[0].schedulable: must be a boolean, not a number"},
      {Node(R"("capacity": {"cpu": -1})"), R"(nodes[0].capacity.cpu: "-1" is negative)"},
      {Node(R"("capacity": {"cpu": true})"),
       "nodes[0].capacity.cpu: must be a number, not a boolean"},
      {Node(R"("capacity": {"cpu": null})"), "nodes[0].capacity.cpu: must be a number, not null"},
      {Node(R"("capacity": {"memory": "NaN"})"),
       R"(nodes[0].capacity.memory: "NaN" is not a quantity)"},
      {Node(R"("capacity": {"memory": "64 Gi"})"),
       R"(nodes[0].capacity.memory: "64 Gi" is not a quantity)"},
      {Node(R"("capacity": {"memory": "64GB"})"),
       R"(nodes[0].capacity.memory: "64GB" is not a quantity)"},
      {Node(R"("capacity": {"memory": ""})"), R"(nodes[0].capacity.memory: "" is not a quantity)"},
      {Node(R"("capacity": {"memory": "4Ei"})"),
       R"(nodes[0].capacity.memory: quantity "4Ei" is too large)"},
      {Node(R"("capacity": {"memory": 1e300})"),
       R"(nodes[0].capacity.memory: quantity "1e300" is too large)"},
      {Node(R"("capacity": {"memory": 99999999999999999999})"),
       R"(nodes[0].capacity.memory: quantity "99999999999999999999" is too large)"},
      {Node(R"("capacity": {"memroy": 1})"),
       R"(nodes[0].capacity.memroy: is not a known field; did you mean "memory"?)"},
      {Node(R"("capacity": {"gpu": 8})"), "nodes[0].capacity.gpu: is no part of a capacity"},
      {Node(R"("capacity": {"gpu:H100": 8})"),
       "nodes[0].capacity.gpu:H100: is not an extended resource"},
      {Node(R"("capacity": {"x/y": 1, "extended": {"x/y": 2}})"),
       "nodes[0].capacity.extended.x/y: is given twice"},
      {Node(R"("reserved": {"pods": 1e-19})"),
       R"(nodes[0].reserved.pods: quantity "1e-19" has more than 18 decimal places)"},
      {Nodes(R"({"name": "a", "capacity": {"memory": "1Ei"}},
                {"name": "b", "capacity": {"memory": "1.5Ei"}})"),
       "nodes: the total memory of all nodes is too large"},
  });
}

TEST(MalformedTest, Gpus) {
  ExpectMessages({
      {Node(R"("gpus": 1)"), "nodes[0].gpu_model: is needed on a node with GPUs"},
      {Node(R"("gpus": 1, "gpu_model": "H100-80BG")"),
       R"(nodes[0].gpu_model: "H100-80BG" is neither in the catalogue nor in gpu_models; )"
       R"(did you mean "H100-80GB"?)"},
      {Gpus("-1"), "nodes[0].gpus: is -1; a node has 0 to 64 GPUs"},
      {Gpus("65"), "nodes[0].gpus: is 65; a node has 0 to 64 GPUs"},
      {Gpus("2.5"), "nodes[0].gpus: must be a whole number, not 2.5"},
      {Gpus("4294967296"), "nodes[0].gpus: 4294967296 is above 2147483647"},
      {Gpus(R"("8")"), "nodes[0].gpus: must be a number or an array"},
      {Gpus(R"([{}, 1])"), "nodes[0].gpus[1]: must be an object, not a number"},
      {Gpus(R"([{"mig": "dynamc"}])"),
       R"(nodes[0].gpus[0].mig: must be "off", "static" or "dynamic", not "dynamc"; )"
       R"(did you mean "dynamic"?)"},
      {Gpus(R"(1, "mig": true)"), "nodes[0].mig: must be a string, not a boolean"},
      {Gpus(R"([{"mig": "static", "instances": [{"profile": "3g.20gb", "start": 2}]}])"),
       "nodes[0].gpus[0].instances[0]: 3g.20gb cannot start at slice 2"},
      {Gpus(R"([{"mig": "static", "instances": [{"profile": "3g.20gb", "start": 0},
                                                {"profile": "1g.5gb", "start": 3}]}])"),
       "nodes[0].gpus[0].instances[1]: 1g.5gb at slice 3 overlaps 3g.20gb at slice 0"},
      {Gpus(R"([{"mig": "static", "instances": [{"profile": "1g.10g", "start": 0}]}])"),
       R"(nodes[0].gpus[0].instances[0].profile: a A100-40GB has no profile "1g.10g")"},
      {Gpus(R"([{"mig": "static", "instances": [{"profile": "1g.5gb"}]}])"),
       "nodes[0].gpus[0].instances[0].start: is missing"},
      {Gpus(R"([{"instances": [{"profile": "1g.5gb", "start": 0}]}])"),
       "nodes[0].gpus[0].instances: a GPU with mig off has no instances"},
      {Gpus(R"([{"mig": "static", "mig_enabled": false,
                 "instances": [{"profile": "1g.5gb", "start": 0}]}])"),
       "nodes[0].gpus[0].mig_enabled: is false although there are instances"},
      {File(R"("gpu_models": [{"name": "T4", "memory": "16Gi"}],
               "nodes": [{"name": "n", "gpu_model": "T4", "gpus": 2, "mig": "static"}])"),
       "nodes[0].gpus[0].mig: a T4 has no MIG"},
  });
}

TEST(MalformedTest, Queues) {
  std::string many;
  for (int i = 0; i < 12; ++i) many += (i > 0 ? ", \"x/" : "\"x/") + std::to_string(i) + "\": 1";
  ExpectMessages({
      {Queues(R"({"name": "q"}, {"name": "q"})"),
       R"(queues[1].name: "q" is the name of another queue)"},
      {Queues(R"({"name": "a", "parent": "b"}, {"name": "b", "parent": "a"})"),
       R"(queues[0].parent: queue "a" is below itself)"},
      {Queue(R"("parent": "q")"), R"(queues[0].parent: queue "q" is below itself)"},
      {Queue(R"("parent": "p")"), R"(queues[0].parent: no queue is named "p")"},
      {Queue(R"("quota": {"gpu": 9223372036854775808})"),
       R"(queues[0].quota.gpu: quantity "9223372036854775808" is too large)"},
      {Queue(R"("quota": {"gpus": 1})"),
       R"(queues[0].quota.gpus: is not a known field; did you mean "gpu"?)"},
      {Queue(R"("quota": {"gpu": "unlimted"})"),
       R"(queues[0].quota.gpu: "unlimted" is not a quantity)"},
      {Queue(R"("quota": [8])"), "queues[0].quota: must be a number, not an array"},
      {Queue(R"("limit": -1)"), R"(queues[0].limit: "-1" is negative)"},
      {Queue(R"("weight": 0.1234)"), "queues[0].weight: has more than 3 decimal places"},
      {Queue(R"("weight": {"cpu": 1, "gpu": 1e-4})"),
       "queues[0].weight.gpu: has more than 3 decimal places"},
      {Queue(R"("weight": 1000000.001)"), "queues[0].weight: is too large"},
      {Queue(R"("weight": -2)"), R"(queues[0].weight: "-2" is negative)"},
      {Queue(R"("weight": "unlimited")"), "queues[0].weight: must be a number, not a string"},
      {Queue(R"("usage": {"*": 1})"), "queues[0].usage.*: is not a known field"},
      {Queue(R"("usage": 3)"), "queues[0].usage: must be an object, not a number"},
      {Queue(R"("priority": 3000000000)"), "queues[0].priority: 3000000000 is above 2147483647"},
      {Queue(R"("reclaim_min_runtime": -5)"), "queues[0].reclaim_min_runtime: is negative"},
      {Queue(R"("reclaim_min_runtime": "5m")"),
       "queues[0].reclaim_min_runtime: must be a number, not a string"},
      {Queue(R"("quota": {)" + many + "}"),
       "the snapshot names 17 resources; at most 16 are supported"},
  });
}

}  // namespace
}  // namespace tessera::malformed
