#include <gtest/gtest.h>

#include <string>

#include "tests/io/malformed.h"

namespace tessera::malformed {
namespace {

TEST(MalformedWorkloadTest, Workloads) {
  ExpectMessages({
      {Workloads(R"({"name": "w"})"), "workloads[0].gang: is missing"},
      {Workloads(R"({"name": "w", "gang": {"pod_sets": [{"name": "s"}]}},
                    {"name": "w", "gang": {"pod_sets": [{"name": "s"}]}})"),
       R"(workloads[1].name: "w" is the name of another workload)"},
      {Workload(R"("queue": "q")"), R"(workloads[0].queue: no queue is named "q")"},
      {File(R"("queues": [{"name": "nlp"}],
               "workloads": [{"name": "w", "queue": "npl", "gang": {"pod_sets": []}}])"),
       R"(workloads[0].queue: no queue is named "npl")"},
      {File(R"("queues": [{"name": "a"}, {"name": "b", "parent": "a"}],
               "workloads": [{"name": "w", "queue": "a", "gang": {"pod_sets": []}}])"),
       R"(workloads[0].queue: "a" has sub-queues; workloads run in leaves only)"},
      {Workload(R"("prio": 1)"), "workloads[0].prio: is not a known field"},
      {Workload(R"("priorty": 1)"),
       R"(workloads[0].priorty: is not a known field; did you mean "priority"?)"},
      {Workload(R"("preemptible": "yes")"),
       "workloads[0].preemptible: must be a boolean, not a string"},
      {Workload(R"("submitted": 1e3)"), "workloads[0].submitted: must be a whole number, not 1e3"},
      {Workload(R"("isolation": "hard")"),
       R"(workloads[0].isolation: must be "any", "hardware", "gpu" or "node", not "hard")"},
      {Workload(R"("stale_grace": "nver")"),
       R"(workloads[0].stale_grace: must be "never", not "nver"; did you mean "never"?)"},
      {Workload(R"("stale_grace": -1)"), "workloads[0].stale_grace: is negative"},
      {Workload(R"("preemption_delay": -1)"), "workloads[0].preemption_delay: is negative"},
      {Workload(R"("max_disrupted": -1)"), "workloads[0].max_disrupted: is negative"},
      {Gang(""), "workloads[0].gang: has neither pod_sets nor groups"},
      {Gang(R"("pod_sets": [{"name": "a"}], "min_groups": 2)"),
       "workloads[0].gang.min_groups: is 2, but there are 1 children without `after`"},
      {Gang(R"("pod_sets": [{"name": "a"}], "min_groups": 0)"),
       "workloads[0].gang.min_groups: is less than 1"},
      {Gang(R"("after": "x", "pod_sets": [{"name": "a"}])"),
       "workloads[0].gang.after: a whole gang has no siblings"},
      {Gang(R"("groups": [{"name": "g", "pod_sets": [{"name": "a"}, {"name": "a"}]}])"),
       R"(workloads[0].gang.groups[0].pod_sets[1].name: "a" is the name of a sibling)"},
      {Gang(R"("pod_sets": [{"name": "a"}],
               "groups": [{"name": "g", "pod_sets": [{"name": "a"}]}])"),
       R"(workloads[0].gang: two pod sets are named "a")"},
      {PodSets(R"({"name": "a", "after": "b"}, {"name": "b", "after": "a"})"),
       "workloads[0].gang.pod_sets[0].after: waits for itself"},
      {PodSets(R"({"name": "base"}, {"name": "b", "after": "bse"})"),
       R"(workloads[0].gang.pod_sets[1].after: no sibling is named "bse"; did you mean "base"?)"},
      {PodSets("{}"), "workloads[0].gang.pod_sets[0].name: is missing"},
      {PodSet(R"("count": 0)"), "workloads[0].gang.pod_sets[0].count: is less than 1"},
      {PodSet(R"("count": 100000000)"), "workloads[0].gang.pod_sets[0].count: is too large"},
      {PodSet(R"("count": 2, "min_count": 3)"),
       "workloads[0].gang.pod_sets[0].min_count: is 3, above count 2"},
      {PodSet(R"("min_count": -1)"), "workloads[0].gang.pod_sets[0].min_count: is negative"},
      {PodSet(R"("max_per_node": 0)"),
       "workloads[0].gang.pod_sets[0].max_per_node: is less than 1"},
      {PodSet(R"("topology": {"required": "rack"})"),
       R"(workloads[0].gang.pod_sets[0].topology.required: "rack" is not one of topology.levels)"},
      {PodSet(R"("topology": {"require": "rack"})"),
       R"(workloads[0].gang.pod_sets[0].topology.require: is not a known field; )"
       R"(did you mean "required"?)"},
  });
}

TEST(MalformedWorkloadTest, Requests) {
  const std::string at = "workloads[0].gang.pod_sets[0].request";
  ExpectMessages({
      {PodSet(R"("request": [])"), at + ": must be an object, not an array"},
      {Request(R"("cpu": "-1")"), at + R"(.cpu: "-1" is negative)"},
      {Request(R"("cpu": "1.5 cores")"), at + R"(.cpu: "1.5 cores" is not a quantity)"},
      {Request(R"("gpus": 1)"), at + R"(.gpus: is not a known field; did you mean "gpu"?)"},
      {Request(R"("gpu_fracton": 1)"),
       at + R"(.gpu_fracton: is not a known field; did you mean "gpu_fraction"?)"},
      {Request(R"("memroy": 1)"), at + R"(.memroy: is not a known field; did you mean "memory"?)"},
      {Request(R"("pods": 1)"), at + ".pods: is not an extended resource"},
      {Request(R"("gpu:H100": 1)"), at + ".gpu:H100: is not an extended resource"},
      {Request(R"("nvidia.com/ib": -1)"), at + R"(.nvidia.com/ib: "-1" is negative)"},
      {Request(R"("extended": {"cpu": 1})"), at + ".cpu: is not an extended resource"},
      {Request(R"("extended": 1)"), at + ".extended: must be an object, not a number"},
      {Request(R"("x/y": 1, "extended": {"x/y": 1})"), at + ".extended.x/y: is given twice"},
      {Request(R"("gpu": 0.5)"),
       at + R"(.gpu: must be a whole number; for a part of a GPU use "gpu_fraction")"},
      {Request(R"("gpu": -1)"), at + R"(.gpu: "-1" is negative)"},
      {Request(R"("gpu": 65)"), at + ".gpu: is 65; a pod runs on 1 to 64 GPUs of one node"},
      {Request(R"("gpu": 1e10)"), at + ".gpu: is too large"},
      {Request(R"("gpu": 1, "gpu_fraction": 0.5)"),
       at + R"(.gpu_fraction: cannot stand beside "gpu")"},
      {Request(R"("slice": {"memory": 1}, "mig": "1g.5gb")"),
       at + R"(.slice: cannot stand beside "mig")"},
      {Request(R"("mig": [])"), at + ".mig: lists no profile"},
      {Request(R"("mig": ["1g.5gb", 3])"), at + ".mig[1]: must be a string, not a number"},
      {Request(R"("mig": ["1g.5gb", "2g.10g"])"),
       at + R"(.mig[1]: no GPU model has a profile "2g.10g"; did you mean "2g.10gb"?)"},
      {Request(R"("mig": ["1g.5gb", "1g.5gb"])"), at + R"(.mig[1]: names "1g.5gb" again)"},
      {Request(R"("gpu": 1, "allow_larger": true)"),
       at + R"(.allow_larger: needs "mig" or "slice")"},
      {Request(R"("mig": "1g.5gb", "allow_larger": 1)"),
       at + ".allow_larger: must be a boolean, not a number"},
      {Request(R"("gpu_fraction": 1.01)"), at + ".gpu_fraction: is not above 0 and at most 1"},
      {Request(R"("gpu_fraction": 0)"), at + ".gpu_fraction: is not above 0 and at most 1"},
      {Request(R"("gpu_memory": 0)"), at + ".gpu_memory: is not above 0"},
      {Request(R"("gpu_devices": 2)"),
       at + R"(.gpu_devices: needs "gpu_fraction" or "gpu_memory")"},
      {Request(R"("gpu": 2, "gpu_devices": 2)"),
       at + R"(.gpu_devices: needs "gpu_fraction" or "gpu_memory")"},
      {Request(R"("gpu_fraction": 0.5, "gpu_devices": 0)"),
       at + ".gpu_devices: is 0; a pod runs on 1 to 64 GPUs of one node"},
      {Request(R"("mig": 1)"), at + ".mig: must be a string, not a number"},
      {Request(R"("mig": "1g.11gb")"), at + R"(.mig: no GPU model has a profile "1g.11gb")"},
      {Request(R"("slice": {})"), at + ".slice: asks for nothing"},
      {Request(R"("slice": {"compute": "2/0"})"),
       at + ".slice.compute: is not a fraction from 0 to 1"},
      {Request(R"("slice": {"compute": "8/7"})"),
       at + ".slice.compute: is not a fraction from 0 to 1"},
      {Request(R"("slice": {"compute": "2:7"})"),
       at + R"(.slice.compute: must be a ratio like "2/7" or a number, not "2:7")"},
      {Request(R"("slice": {"compute": "2/7 "})"),
       at + R"(.slice.compute: must be a ratio like "2/7" or a number, not "2/7 ")"},
      {Request(R"("slice": {"compute": 0.1234567891})"),
       at + ".slice.compute: has more than 9 decimal places"},
      {Request(R"("slice": {"compute": 3})"), at + ".slice.compute: is too large"},
      {Request(R"("slice": {"compute": 1.5})"),
       at + ".slice.compute: is not a fraction from 0 to 1"},
      {PodSet(R"("count": 3, "request": {"memory": "1Ei"})"),
       "workloads: the total memory asked for is too large"},
  });
}

TEST(MalformedWorkloadTest, SelectorsAndTolerations) {
  const std::string at = "workloads[0].gang.pod_sets[0]";
  ExpectMessages({
      {PodSet(R"("selector": "zone=a")"), at + ".selector: must be an object, not a string"},
      {PodSet(R"("selector": {"zone": 1})"),
       at + ".selector.zone: must be a string, an array or an object"},
      {PodSet(R"("selector": {"zone": []})"), at + ".selector.zone: lists no value"},
      {PodSet(R"("selector": {"zone": {"in": []}})"), at + ".selector.zone: lists no value"},
      {PodSet(R"("selector": {"zone": ["a", 1]})"),
       at + ".selector.zone[1]: must be a string, not a number"},
      {PodSet(R"("selector": {"zone": {}})"),
       at + R"(.selector.zone: must have exactly one of "in", "not_in" and "exists")"},
      {PodSet(R"("selector": {"zone": {"in": ["a"], "exists": true}})"),
       at + R"(.selector.zone: must have exactly one of "in", "not_in" and "exists")"},
      {PodSet(R"("selector": {"zone": {"notin": ["a"]}})"),
       at + R"(.selector.zone.notin: is not a known field; did you mean "not_in"?)"},
      {PodSet(R"("selector": {"": "a"})"), at + ".selector.: has no label"},
      {PodSet(R"("selector": [{"in": ["a"]}])"), at + ".selector[0]: has no label"},
      {PodSet(R"("selector": ["zone"])"), at + ".selector[0]: must be an object, not a string"},
      {PodSet(R"("selector": {"zone": {"key": "x", "in": ["a"]}})"),
       at + ".selector.zone.key: is not a known field"},
      {PodSet(R"("tolerations": [{"key": "k", "operator": "exists"}])"),
       at + R"(.tolerations[0].operator: must be "Equal" or "Exists", not "exists"; )"
            R"(did you mean "Exists"?)"},
      {PodSet(R"("tolerations": [{"operator": "Exists", "value": "v"}])"),
       at + R"(.tolerations[0].value: means nothing beside the operator "Exists")"},
      {PodSet(R"("tolerations": [{"value": "v"}])"), at + ".tolerations[0].key: is empty"},
      {PodSet(R"("gpu_models": ["H100", ""])"), at + ".gpu_models[1]: is empty"},
      {PodSet(R"("gpu_models": "H100")"), at + ".gpu_models: must be an array, not a string"},
  });
}

TEST(MalformedWorkloadTest, Pods) {
  const std::string whole = R"({"pod_set": "whole", "node": "n", "gpus": [1]})";
  const std::string half = R"({"pod_set": "half", "node": "n", "gpus": [1]})";
  const std::string slice =
      R"({"pod_set": "slice", "node": "n", "slices": [{"gpu": 0, "profile": "1g.5gb", "start": 0}]})";
  const std::string slice_again = R"({"pod_set": "slice", "index": 1, "node": "n", "slices": [
      {"gpu": 0, "profile": "1g.5gb", "start": 0}]})";
  ExpectMessages({
      {Pods(R"({"node": "n"})"), "workloads[0].pods[0].pod_set: is missing"},
      {Pods(R"({"pod_set": "hlaf", "node": "n"})"),
       R"(workloads[0].pods[0].pod_set: the gang has no pod set "hlaf")"},
      {Pods(R"({"pod_set": "cpu", "node": "n"}, {"pod_set": "cpu", "index": 4, "node": "n"})"),
       R"(workloads[0].pods[1].index: is 4, but "cpu" has 4 pods)"},
      {Pods(R"({"pod_set": "cpu", "index": -1, "node": "n"})"),
       R"(workloads[0].pods[0].index: is -1, but "cpu" has 4 pods)"},
      {Pods(R"({"pod_set": "cpu", "node": "n"}, {"pod_set": "cpu", "node": "n"})"),
       "workloads[0].pods[1]: is listed twice (same pod_set and index)"},
      {Pods(R"({"pod_set": "cpu", "node": "m"})"),
       R"(workloads[0].pods[0].node: no node is named "m")"},
      {Pods(R"({"pod_set": "cpu"})"),
       "workloads[0].pods[0].node: is needed by a pod of this phase"},
      {Pods(R"({"pod_set": "cpu", "node": "n", "phase": "done"})"),
       R"(workloads[0].pods[0].phase: must be "pending", "nominated", "running", "releasing", )"
       R"("succeeded" or "failed", not "done")"},
      {Pods(R"({"pod_set": "cpu", "node": "n", "gpus": [1]})"),
       "workloads[0].pods[0].gpus: must name the 0 devices that the request asks for"},
      {Pods(R"({"pod_set": "whole", "node": "n"})"),
       "workloads[0].pods[0].gpus: must name the 1 devices that the request asks for"},
      {Pods(R"({"pod_set": "whole", "node": "n", "gpus": [1, 2]})"),
       "workloads[0].pods[0].gpus: must name the 1 devices that the request asks for"},
      {Pods(R"({"pod_set": "whole", "node": "n", "gpus": [3]})"),
       "workloads[0].pods[0].gpus[0]: node n has no GPU 3"},
      {Pods(R"({"pod_set": "whole", "node": "n", "gpus": [-1]})"),
       "workloads[0].pods[0].gpus[0]: node n has no GPU -1"},
      {Pods(R"({"pod_set": "whole", "node": "n", "gpus": ["0"]})"),
       "workloads[0].pods[0].gpus[0]: must be a number, not a string"},
      {Pods(R"({"pod_set": "whole", "node": "n", "gpus": [0]})"),
       "workloads[0].pods[0]: GPU 0 of n is in MIG mode"},
      {Pods(whole + R"(, {"pod_set": "whole", "index": 1, "node": "n", "gpus": [1]})"),
       "workloads[0].pods[1]: GPU 1 of n is already held by another pod"},
      {Pods(half + ", " + whole),
       "workloads[0].pods[0]: GPU 1 of n is already held by another pod"},
      {Pods(slice + ", " + slice_again),
       "workloads[0].pods[1]: GPU 0 of n, or this slice of it, is already held"},
      {Pods(R"({"pod_set": "slice", "node": "n", "slices": [
                {"gpu": 0, "profile": "1g.5gb", "start": 2}]})"),
       "workloads[0].pods[0]: GPU 0 of n has no instance 1g.5gb at slice 2"},
      {Pods(R"({"pod_set": "slice", "node": "n", "slices": [
                {"gpu": 0, "profile": "1g.5gb", "start": 7}]})"),
       "workloads[0].pods[0].slices[0].start: 1g.5gb cannot start at slice 7"},
      {Pods(R"({"pod_set": "slice", "node": "n", "slices": [
                {"gpu": 0, "profile": "1g.5gb", "start": 1000000}]})"),
       "workloads[0].pods[0].slices[0].start: 1g.5gb cannot start at slice 1000000"},
      {Pods(R"({"pod_set": "slice", "node": "n", "slices": [
                {"gpu": 0, "profile": "9g.5gb", "start": 0}]})"),
       R"(workloads[0].pods[0].slices[0].profile: a A100-40GB has no profile "9g.5gb")"},
      {Pods(R"({"pod_set": "half", "node": "n", "shares": [{"gpu": 1, "fraction": 1.5}]})"),
       "workloads[0].pods[0].shares[0].fraction: is not above 0 and at most 1"},
      {Pods(R"({"pod_set": "half", "node": "n", "shares": [{"gpu": 1}]})"),
       "workloads[0].pods[0].shares[0].fraction: is missing"},
      {Pods(R"({"pod_set": "cpu", "node": "n", "started": "now"})"),
       "workloads[0].pods[0].started: must be a number, not a string"},
  });
}

}  // namespace
}  // namespace tessera::malformed
