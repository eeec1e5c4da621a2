#!/usr/bin/env python3
"""Runs the program `tessera` as a user would: exit codes, messages, pipes.

Usage: cli_test.py PROGRAM SOURCE_DIR
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM, SOURCE = sys.argv[1], sys.argv[2]
DEMO = os.path.join(SOURCE, "examples", "demo.json")
DATA = os.path.join(SOURCE, "..", "shared", "data")


def run(*arguments, stdin=None):
    done = subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, text=True,
                          timeout=120)
    return done.returncode, done.stdout, done.stderr


class Plan(unittest.TestCase):
    def test_demo_is_planned_and_passes_the_referee(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "plan.json")
            code, text, _ = run("plan", DEMO, "--out", out, "--mosaic")
            self.assertEqual(code, 0)
            for wanted in ("over its share", "llama-chat", "pods bound", "Every GPU after"):
                self.assertIn(wanted, text)
            code, text, _ = run("check", DEMO, out)
            self.assertEqual((code, text.split(":")[0]), (0, "the plan is legal"))

    def test_demo_says_why_each_workload_waits(self):
        _, text, _ = run("plan", DEMO, "--format", "json")
        reasons = {entry["workload"]: entry["text"] for entry in json.loads(text)["pending"]}
        self.assertEqual(reasons, {
            "index-build": 'queue "search" holds non-preemptibly 0 GPU; 6 GPU more would exceed '
                           'its quota of 4 GPU',
            "llama-chat": '"extra-worker" fits no node; 5 nodes: 3 too few free GPUs, 1 taints, '
                          '1 wrong GPU model',
            "pretraining": 'queue "language" holds 4 GPU; 16 GPU more would exceed its limit of '
                           '10 GPU',
            "replay": '"worker" fits no node; 5 nodes: 3 too few free GPUs, 1 taints, 1 wrong GPU '
                      'model; nearest: "worker" needs 3 pods of 6 GPUs in one rack; rack b1/r1 has '
                      'room for 0; h100-1 would take 1 more without 1 pod of "finetune" and 1 pod '
                      'of "llama-chat" on 5 GPUs; h100-2 would take 1 more without 1 pod of '
                      '"finetune" and 2 pods of "llama-chat" on 6 GPUs',
            "segmentation": "waits for 1 of its own pods to end",
            "standby": 'all minimums do not fit together, stuck at "index"; one pod of it: 5 '
                       'nodes: 4 room for a pod, 1 taints; nearest: "index" needs 3 pods of 4 '
                       'cores; the cluster has room for 2'})

    def test_demo_proves_that_there_is_no_place(self):
        _, text, _ = run("plan", DEMO, "--format", "json")
        proofs = {entry["workload"]: entry["proof"]
                  for entry in json.loads(text)["pending"] if "proof" in entry}
        self.assertEqual(proofs, {
            "replay": 'no rack has room: b1/r1 takes 0 of 3 pods of "worker", short of gpu; b1/r2 '
                      'takes 0 of 3 pods of "worker", short of gpu',
            "standby": 'the cluster takes 2 of 3 pods of "index", which keeps its pods apart'})
        for workload, proof in proofs.items():
            _, text, _ = run("explain", DEMO, "--workload", workload)
            self.assertIn("\n  " + proof + "\n", text)

    def test_what_the_cycle_has_no_time_for_is_explained_when_asked(self):
        nodes = [{"name": "n%d" % i, "gpu_model": "H100-80GB", "gpus": 8} for i in range(8)]
        gangs = [{"name": "g%03d" % i, "submitted": i, "gang": {"pod_sets": [
            {"name": "s", "count": 9 + i, "request": {"gpu": 8}}]}} for i in range(200)]
        snapshot = json.dumps({"apiVersion": "tessera/v1", "nodes": nodes, "workloads": gangs})
        _, text, _ = run("plan", "-", "--format", "json", stdin=snapshot)
        pending = json.loads(text)["pending"]
        self.assertIn("proof", pending[0])
        self.assertNotIn("proof", pending[199])
        _, text, _ = run("explain", "-", "--workload", "g199", stdin=snapshot)
        self.assertIn('nearest: "s" needs 208 pods of 8 GPUs; the cluster has room for 8\n', text)
        self.assertIn('the cluster takes 8 of 208 pods of "s", short of gpu\n', text)

    def test_json_from_standard_input_equals_the_file(self):
        with open(DEMO, encoding="utf-8") as demo:
            from_stdin = run("plan", "-", "--format", "json", stdin=demo.read())
        self.assertEqual(from_stdin, run("plan", DEMO, "--format", "json"))
        self.assertEqual(json.loads(from_stdin[1])["kind"], "Plan")

    def test_order_of_the_input_means_nothing(self):
        with open(DEMO, encoding="utf-8") as demo:
            snapshot = json.load(demo)
        for members in ("nodes", "queues", "workloads"):
            random.Random(7).shuffle(snapshot[members])
        shuffled = run("plan", "-", "--format", "json", stdin=json.dumps(snapshot))
        self.assertEqual(shuffled, run("plan", DEMO, "--format", "json"))

    def test_bad_plan_fails_the_referee(self):
        plan = {"apiVersion": "tessera/v1", "kind": "Plan", "pending": [], "actions": [
            {"do": "bind", "workload": "notebook", "pod_set": "lab", "index": 0,
             "node": "h100-3", "shares": [{"gpu": 0, "fraction": 0.5}]}]}
        code, text, _ = run("check", DEMO, "-", stdin=json.dumps(plan))
        self.assertEqual(code, 3)
        self.assertIn("actions[0]", text)


class Errors(unittest.TestCase):
    def test_rejected_input_names_the_file_and_the_field(self):
        bad = '{"apiVersion": "tessera/v1", "nodes": [{"name": "n", "gpuss": 1}]}'
        code, out, err = run("plan", "-", stdin=bad)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("tessera: standard input: nodes[0]", err)
        self.assertIn("gpus", err)
        self.assertEqual(run("plan", "/nowhere.json")[0], 1)

    def test_wrong_usage(self):
        self.assertEqual(run()[0], 2)
        self.assertEqual(run("plan")[0], 2)
        self.assertEqual(run("plan", DEMO, "--format", "xml")[0], 2)
        self.assertEqual(run("frobnicate")[0], 2)
        self.assertEqual(run("--help")[0], 0)
        self.assertEqual(run("--version")[0], 0)

    def test_unknown_names_get_a_suggestion(self):
        code, _, err = run("explain", DEMO, "--workload", "notebok")
        self.assertEqual(code, 1)
        self.assertIn('did you mean "notebook"', err)
        code, _, err = run("mig", "A100-41GB")
        self.assertEqual(code, 1)
        self.assertIn('did you mean "A100-40GB"', err)


class Views(unittest.TestCase):
    def test_explain(self):
        code, text, _ = run("explain", DEMO, "--workload", "index-build")
        self.assertEqual(code, 0)
        self.assertIn('its quota of 4 GPU', text)
        _, text, _ = run("explain", DEMO, "--workload", "notebook")
        self.assertIn("lab/0 starts on a100-1, 50% of GPU 2", text)

    def test_room(self):
        code, text, _ = run("plan", DEMO, "--room")
        self.assertEqual(code, 0)
        self.assertIn("Room for what waits, each by itself", text)
        self.assertRegex(text, r"index-build (has|found) no room|(pod yields|pods yield) for index-build")
        _, text, _ = run("explain", DEMO, "--workload", "index-build")
        self.assertIn("What would have to yield for it", text)

    def test_why_it_yields(self):
        def job(name, queue, gpu, **more):
            pods = [] if gpu is None else [
                {"pod_set": "s", "index": 0, "node": "n", "gpus": [gpu], "started": 0}]
            return {"name": name, "queue": queue, "pods": pods, "gang": {"pod_sets": [
                {"name": "s", "count": 1, "request": {"gpu": 1}, **more}]}}
        snapshot = {
            "apiVersion": "tessera/v1", "kind": "Snapshot", "now": 3600,
            "nodes": [{"name": "n", "capacity": {"cpu": 8, "memory": "64Gi"},
                       "gpu_model": "H100-80GB", "gpus": 3}],
            "queues": [{"name": "a", "quota": {"gpu": 2}}, {"name": "b", "quota": {"gpu": 1}}],
            "workloads": [job("old", "a", 0), {**job("young", "a", 1), "submitted": 9},
                          {**job("other", "a", 2), "submitted": 5}, job("claim", "b", None)]}
        explain = lambda name: run("explain", "-", "--workload", name, stdin=json.dumps(snapshot))[1]
        text = explain("young")
        self.assertIn("s/0 is evicted (reclaim)", text)
        self.assertIn("Why it yields\n  1 pod yields for claim (reclaim)", text)
        self.assertIn("young/s/0 leaves n: queue a holds 3 GPU, its fair share is 2 GPU, "
                      "it keeps 2 GPU; its place is needed", text)
        self.assertNotIn("Why it yields", explain("old"))
        # A gang of two of which one pod is gone.
        snapshot["workloads"] = [{**job("half", "a", 0, count=2), "stale_since": 3000}]
        snapshot["nodes"][0]["gpus"] = 1
        self.assertIn("s/0 is evicted for nobody's sake", explain("half"))

    def test_shares(self):
        _, text, _ = run("shares", DEMO, "--format", "json")
        queues = {queue["name"]: queue for queue in json.loads(text)["queues"]}
        self.assertEqual(queues["vision"]["parent"], "research")
        gpu = queues["vision"]["resources"]["gpu"]
        self.assertEqual((gpu["quota"], gpu["limit"], gpu["allocated"]), (4, "unlimited", 5))

    def test_shares_side_by_side(self):
        code, text, _ = run("shares", DEMO, "--compare", "kai")
        self.assertEqual(code, 0)
        self.assertIn("Jain index", text)
        # KAI charges 1g slices as whole GPUs: 5 for the five of search.
        self.assertRegex(text, r"search +4 +5\n")


class Replicas(unittest.TestCase):
    SERVICE = os.path.join(SOURCE, "examples", "service.json")

    def test_demo(self):
        code, text, _ = run("replicas", self.SERVICE)
        self.assertEqual(code, 0)
        for wanted in ("requests/s of 3000 input", "every engine exceeds the SLA",
                       "decode 3 -> 4, 20 GPUs then", "at most 20 on the way"):
            self.assertIn(wanted, text)

    def test_json_from_standard_input_equals_the_file(self):
        with open(self.SERVICE, encoding="utf-8") as service:
            from_stdin = run("replicas", "-", "--format", "json", stdin=service.read())
        self.assertEqual(from_stdin, run("replicas", self.SERVICE, "--format", "json"))
        answer = json.loads(from_stdin[1])
        self.assertEqual(answer["granted"], {"prefill": 2, "decode": 4})
        self.assertEqual(answer["outcome"], "granted")
        self.assertLessEqual(answer["peak_gpus"], 48)

    def test_a_day_as_a_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = os.path.join(folder, "day.svg")
            code, text, _ = run("replicas", self.SERVICE, "--svg", picture)
            self.assertEqual(code, 0)
            attained = float(text.split("replayed: ")[1].split(" %")[0])
            self.assertGreater(attained, 99)
            taken, known = (float(part.split(", ")[-1]) for part in text.split(" GPU-hours")[:2])
            self.assertLess(taken, 1.1 * known)
            root = xml.etree.ElementTree.parse(picture).getroot()
            lines = root.findall("{http://www.w3.org/2000/svg}polyline")
            self.assertEqual([line.get("class") for line in lines],
                             ["load", "ideal", "ideal", "prefill", "decode", "met"])
        self.assertEqual(run("replicas", self.SERVICE, "--svg", "/nowhere/day.svg")[0], 1)

    def test_what_can_start(self):
        _, text, _ = run("replicas", self.SERVICE, "--cluster", DEMO)
        self.assertIn("prefill: 2 of 2 can run\n", text)
        self.assertIn("decode: 3 of 4 can run (room): ", text)
        _, text, _ = run("replicas", self.SERVICE, "--cluster", DEMO, "--format", "json")
        placeable = json.loads(text)["placeable"]
        self.assertEqual((placeable["decode"], placeable["decode_bound"]["bound"]), (3, "room"))
        with open(self.SERVICE, encoding="utf-8") as service:
            other = service.read().replace('"queue": "assistant"', '"queue": "asistant"')
        code, _, err = run("replicas", "-", "--cluster", DEMO, stdin=other)
        self.assertEqual(code, 1)
        self.assertIn('did you mean "assistant"', err)

    def test_a_rejected_service_names_the_field(self):
        with open(self.SERVICE, encoding="utf-8") as service:
            broken = service.read().replace('"max_gpus"', '"max_gpu"')
        code, text, err = run("replicas", "-", stdin=broken)
        self.assertEqual((code, text), (1, ""))
        self.assertIn('rules.max_gpu: is not a known field; did you mean "max_gpus"?', err)
        self.assertEqual(run("replicas")[0], 2)
        self.assertEqual(run("replicas", DEMO)[0], 1)


# What nvidia-smi does with GPUs of which STATE, a JSON file, knows MIG mode and instances.
FAKE_NVIDIA_SMI = """#!{python}
import json, sys
words, path = sys.argv[1:], {state!r}
gpus = json.load(open(path))
gpu = gpus[words[words.index("-i") + 1]]
def value(option): return words[words.index(option) + 1]
def instance(): return next(i for i in gpu["instances"] if i["id"] == int(value("-gi")))
if "-mig" in words:
    gpu["pending"] = value("-mig") == "1"
    if not gpu["needs_reset"]: gpu["mode"] = gpu["pending"]
elif "--gpu-reset" in words:
    assert not gpu["instances"]
    gpu["mode"] = gpu["pending"]
elif "--query-gpu=mig.mode.current" in words:
    print("Enabled" if gpu["mode"] else "Disabled")
elif "-cgi" in words:
    assert gpu["mode"] and "-C" in words
    profile, start = value("-cgi").split(":")
    ids = [i["id"] for i in gpu["instances"]]
    gpu["instances"].append({{"id": max(ids, default=6) + 1, "profile": profile,
                              "start": int(start), "compute": True}})
elif "-dci" in words:
    if not instance()["compute"]: sys.exit(6)
    instance()["compute"] = False
elif "-dgi" in words:
    if instance()["compute"]: sys.exit("In use by another client")
    gpu["instances"].remove(instance())
elif "-lgi" in words:
    line = "+" + 55 * "-" + "+"
    print(line, "| GPU instances: |", "| GPU   Name    Profile  Instance   Placement  |",
          "|    ID       ID       Start:Size |", "|" + 55 * "=" + "|", sep="\\n")
    sizes = {{"1g": 1, "2g": 2, "3g": 4, "4g": 4, "7g": 8}}
    for i in gpu["instances"]:
        print("| %3s  MIG %-20s 9 %8d   %d:%d |" % (value("-i"), i["profile"], i["id"], i["start"],
              sizes[i["profile"][:2]]), line, sep="\\n")
else:
    sys.exit("nvidia-smi: " + " ".join(words))
json.dump(gpus, open(path, "w"))
"""


class Mig(unittest.TestCase):
    def test_model(self):
        _, text, _ = run("mig", "A100-40GB", "--format", "json")
        model = json.loads(text)
        self.assertEqual((model["model"], model["units"]), ("A100-40GB", 8))
        profiles = {profile["name"]: profile for profile in model["profiles"]}
        self.assertEqual(profiles["3g.20gb"],
                         {"name": "3g.20gb", "size": 4, "starts": [0, 4], "max": 2})

    def test_layout(self):
        code, text, _ = run("mig", "H100-80GB", "--layout", "3g.40gb@4,1g.10gb@0")
        self.assertEqual(code, 0)
        self.assertRegex(text, r"GPU 0 \(H100-80GB\)\n  \|1g.10gb +\|\.+\|\.+\|\.+\|3g.40gb +\|\n")
        self.assertRegex(text, r"\n  1g.10gb +3 +1 +1  1 2 3\n")
        self.assertRegex(text, r"\n  4g.40gb +0 +- +-\n")

    def test_layout_as_json(self):
        _, text, _ = run("mig", "A100-40GB", "--layout", "1g.5gb@0, 3g.20gb@4", "--format", "json")
        layout = json.loads(text)
        self.assertEqual((layout["model"], layout["units"]), ("A100-40GB", 8))
        gpu, = layout["gpus"]
        self.assertEqual(gpu["instances"], [{"profile": "1g.5gb", "start": 0},
                                            {"profile": "3g.20gb", "start": 4}])
        profiles = {profile["name"]: profile for profile in gpu["profiles"]}
        self.assertEqual(profiles["1g.5gb"], {"name": "1g.5gb", "capacity": 3, "starts": [1, 2, 3],
                                              "best_start": 1, "loss": 1})
        self.assertEqual(profiles["7g.40gb"], {"name": "7g.40gb", "capacity": 0, "starts": [],
                                               "best_start": None, "loss": None})

    def test_wrong_layouts(self):
        for layout, message in (
                ("3g.40g@4", '"3g.40g" is no profile of H100-80GB; did you mean "3g.40gb"?'),
                ("3g.40gb@2", "3g.40gb cannot start at slice 2"),
                ("3g.40gb@4,1g.10gb@5", "1g.10gb at slice 5 overlaps 3g.40gb at slice 4"),
                ("3g.20gb@4", "it is one of A100-40GB"),
                ("1g.10gb", "an instance is PROFILE@START")):
            code, out, err = run("mig", "H100-80GB", "--layout", layout)
            self.assertEqual((code, out), (1, ""), layout)
            self.assertIn("tessera: --layout: ", err)
            self.assertIn(message, err)
        code, _, err = run("mig", "H100-80GB", "--lgi", "-", stdin="+--+\n| GPU instances: |\n")
        self.assertEqual(code, 1)
        self.assertIn("tessera: standard input: line 2: the listing breaks off", err)

    def test_wrong_usage(self):
        for words in (["--layout", "1g.10gb@0"], ["--export", "mig-parted"],
                      ["H100-80GB", "--layout", "", "--lgi", "-"],
                      [DEMO, "--export", "yaml"], [DEMO, "--export", "nvidia-smi"]):
            self.assertEqual(run("mig", *words)[0], 2, words)
        self.assertEqual(run("plan", DEMO, "--export", "mig-parted", "--format", "json")[0], 2)

    HALVES = json.dumps({"apiVersion": "tessera/v1", "nodes": [
        {"name": "n1", "gpu_model": "H100-80GB", "capacity": {"cpu": 8, "memory": "64Gi"}, "gpus": [
            {"mig": "dynamic", "instances": [{"profile": "3g.40gb", "start": 0},
                                             {"profile": "1g.10gb", "start": 4}]},
            {"mig": "dynamic", "instances": [{"profile": "3g.40gb", "start": 0}]}]}],
        "workloads": [
            {"name": name, "gang": {"pod_sets": [{"name": "s", "request": {"mig": "3g.40gb"}}]},
             "pods": [{"pod_set": "s", "index": 0, "node": "n1",
                       "slices": [{"gpu": gpu, "profile": "3g.40gb", "start": 0}]}]}
            for name, gpu in (("a", 0), ("b", 1))]})

    def test_wanted_instances(self):
        code, text, _ = run("mig", "-", "--want", "1g.10gb,3g.40gb=2", stdin=self.HALVES)
        self.assertEqual((code, text), (0, "there is no room: of 2 GPUs 2 may change\n"))
        code, text, _ = run("mig", "-", "--want", "3g.40gb=2", "--node", "n1", stdin=self.HALVES)
        self.assertEqual((code, text.splitlines()), (0, [
            "destroy  1g.10gb at slice 4 of GPU 0 of n1",
            "create   3g.40gb at slice 4 of GPU 0 of n1",
            "create   3g.40gb at slice 4 of GPU 1 of n1"]))
        _, text, _ = run("mig", "-", "--want", "1g.10gb", stdin=self.HALVES)
        self.assertEqual(text, "they are idle already\n")

    def test_defragmentation(self):
        code, text, _ = run("mig", "-", "--defragment", "7g.80gb", stdin=self.HALVES)
        self.assertEqual((code, text.splitlines()), (0, [
            "create   3g.40gb at slice 4 of GPU 1 of n1",
            "move     a/s/0 to 3g.40gb at slice 4 of GPU 1 of n1",
            "1 move, no fewer suffice; 7g.80gb fits, when that is done, at slice 0 of GPU 0 of n1"]))

    def test_changes_as_plan_files(self):
        code, text, err = run("mig", "-", "--defragment", "7g.80gb", "--format", "json",
                              stdin=self.HALVES)
        plan = json.loads(text)
        self.assertEqual((code, plan["kind"]), (0, "Plan"))
        self.assertEqual([action["do"] for action in plan["actions"]], ["create", "move"])
        self.assertIn("1 move, no fewer suffice", err)
        _, text, _ = run("mig", "-", "--want", "1g.10gb=7", "--format", "json", stdin=self.HALVES)
        self.assertEqual(json.loads(text)["kind"], "Plan")

    def test_changes_that_are_wrong(self):
        for words, message in (
                (["--want", "3g.40bg"], "wanted[0].profile: no GPU model has a profile \"3g.40bg\"; "
                                        "did you mean \"3g.40gb\"?"),
                (["--want", "3g.40gb=x"], "\"x\" is not a number"),
                (["--defragment", "7g.40gb"], "not of H100-80GB"),
                (["--want", "1g.10gb", "--node", "n2"], "node: no node is named \"n2\"")):
            code, out, err = run("mig", "-", *words, stdin=self.HALVES)
            self.assertEqual((code, out), (1, ""))
            self.assertIn("tessera: " + words[0] + ": ", err)
            self.assertIn(message, err)
        for words in (["--want", "1g.10gb", "--defragment", "1g.10gb"],
                      ["--want", "1g.10gb", "--svg", "x"], ["--node", "n1"]):
            self.assertEqual(run("mig", DEMO, *words)[0], 2, words)

    def test_export_before_and_after_a_plan(self):
        code, before, _ = run("mig", DEMO, "--export", "mig-parted")
        self.assertEqual((code, before[:12]), (0, "version: v1\n"))
        self.assertIn('mig-devices: {"1g.10gb": 2, "2g.20gb": 1}', before)
        _, after, _ = run("plan", DEMO, "--export", "mig-parted")
        self.assertIn('mig-devices: {"1g.10gb": 5, "2g.20gb": 1}', after)

    def test_commands_turn_one_layout_into_the_next(self):
        """The script of a plan, run by the shell against a stand-in for nvidia-smi."""
        def sliced(name, profile):
            return {"name": name, "gang": {"pod_sets": [
                {"name": "s", "count": 2, "request": {"mig": profile}}]}}
        idle = [{"profile": "1g.10gb", "start": 1}, {"profile": "1g.10gb", "start": 6}]
        snapshot = {"apiVersion": "tessera/v1", "nodes": [
            {"name": "hopper", "gpu_model": "H100-80GB", "mig": "dynamic",
             "gpus": [{"instances": idle}]},
            {"name": "ampere's", "gpu_model": "A100-40GB", "mig": "dynamic", "gpus": 1}],
            "workloads": [sliced("large", "3g.40gb"), sliced("small", "3g.20gb")]}
        _, script, _ = run("plan", "-", "--export", "nvidia-smi", stdin=json.dumps(snapshot))
        for node, needs_reset, existing, model, wanted in (
                ("hopper", False, idle, "H100-80GB", "3g.40gb"),
                ("ampere's", True, [], "A100-40GB", "3g.20gb")):
            gpu = {"mode": bool(existing), "needs_reset": needs_reset, "instances": [
                dict(instance, id=9 + i, compute=i == 0) for i, instance in enumerate(existing)]}
            code, after, listing = self.run_script(script, node, {"0": gpu})
            self.assertEqual(code, 0, script)
            self.assertTrue(after["0"]["mode"])
            self.assertEqual(sorted((i["profile"], i["start"]) for i in after["0"]["instances"]),
                             [(wanted, 0), (wanted, 4)])
            # The listing can be read again.
            code, text, err = run("mig", model, "--lgi", "-", "--format", "json", stdin=listing)
            self.assertEqual(code, 0, err)
            self.assertEqual(json.loads(text)["gpus"][0]["instances"],
                             [{"profile": wanted, "start": 0}, {"profile": wanted, "start": 4}])
        # Another state than was planned for, and a node without operations.
        empty = {"0": {"mode": True, "needs_reset": False, "instances": []}}
        self.assertEqual(self.run_script(script, "hopper", empty)[:2], (1, empty))
        self.assertEqual(self.run_script(script, "nowhere", empty)[:2], (64, empty))

    def run_script(self, script, node, gpus):
        """Exit code, the GPUs afterwards, and what nvidia-smi then lists."""
        with tempfile.TemporaryDirectory() as folder:
            state, fake = os.path.join(folder, "state"), os.path.join(folder, "nvidia-smi")
            with open(state, "w", encoding="utf-8") as file:
                json.dump(gpus, file)
            with open(fake, "w", encoding="utf-8") as file:
                file.write(FAKE_NVIDIA_SMI.format(python=sys.executable, state=state))
            os.chmod(fake, 0o755)
            path = {"PATH": folder + os.pathsep + os.environ["PATH"]}
            done = subprocess.run(["sh", "-s", node], input=script, env=path, text=True,
                                  capture_output=True, timeout=120)
            listing = subprocess.run([fake, "mig", "-lgi", "-i", "0"], capture_output=True,
                                     text=True, timeout=120)
            with open(state, encoding="utf-8") as file:
                return done.returncode, json.load(file), listing.stdout


class Pictures(unittest.TestCase):
    def draw(self, *words, stdin=None):
        """The tooltips of every class of tile in the picture that a command writes."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "picture.svg")
            code, _, err = run(*words, "--svg", path, stdin=stdin)
            self.assertEqual(code, 0, err)
            root = xml.etree.ElementTree.parse(path).getroot()
        svg = "{http://www.w3.org/2000/svg}"
        self.assertEqual(root.tag, svg + "svg")
        tips = {}
        for rect in root.iter(svg + "rect"):
            title = rect.find(svg + "title")
            if title is not None:
                tips.setdefault(rect.get("class"), []).append(title.text)
        return tips

    def test_before_and_after_a_plan(self):
        before, after = self.draw("mig", DEMO), self.draw("plan", DEMO)
        self.assertEqual(len(before["pod"]), 7)
        # The plan's picture shows both.
        both = after
        after = {kind: tips[len(before.get(kind, [])):] for kind, tips in both.items()}
        for kind, tips in before.items():
            self.assertEqual(both[kind][:len(tips)], tips)
        self.assertEqual(before["leaving"], [
            "h100-3, GPU 5: segmentation/trainer 5 of queue vision, the whole GPU, is leaving"])
        self.assertIn("h100-2, GPU 6: idle 2g.20gb at slice 0", before["idle"])
        self.assertEqual((len(after["pod"]), after["leaving"]), (31, []))
        self.assertIn("a100-1, GPU 2: notebook/lab 0 of queue vision, 50 %", after["pod"])

    def test_names_are_escaped(self):
        with open(DEMO, encoding="utf-8") as demo:
            snapshot = json.load(demo)
        snapshot["nodes"][0]["name"] = name = "<&\"'>\u00e9\u4e16"
        snapshot["nodes"][3]["name"] = "bell\u0007"
        tips = self.draw("mig", "-", stdin=json.dumps(snapshot))
        self.assertEqual(tips["free"].count(name + ", GPU 0: free, MIG on demand"), 1)
        self.assertIn("bell\ufffd, GPU 2: free", tips["free"])

    def test_many_gpus(self):
        nodes = [{"name": "n%d" % i, "gpu_model": "H100-80GB", "gpus": 8} for i in range(64)]
        snapshot = {"apiVersion": "tessera/v1", "nodes": nodes}
        self.assertEqual(len(self.draw("mig", "-", stdin=json.dumps(snapshot))["free"]), 512)

    def test_file_that_cannot_be_written(self):
        code, _, err = run("mig", DEMO, "--svg", "/nowhere/picture.svg")
        self.assertEqual((code, err), (1, "tessera: /nowhere/picture.svg: cannot be written\n"))


@unittest.skipUnless(os.path.exists(os.path.join(DATA, "openb_node_list_all_node.csv")),
                     "the openb trace is not beside this checkout")
class Trace(unittest.TestCase):
    def test_whole_trace_in_one_cycle(self):
        code, snapshot, _ = run("import-openb", os.path.join(DATA, "openb_node_list_all_node.csv"),
                                os.path.join(DATA, "openb_pod_list_default.csv"))
        self.assertEqual(code, 0)
        code, text, _ = run("plan", "-", "--format", "json", stdin=snapshot)
        self.assertEqual(code, 0)
        plan = json.loads(text)
        bound = {a["workload"] for a in plan["actions"]}
        pending = {p["workload"]: p for p in plan["pending"]}
        self.assertEqual(len(bound) + len(pending), 8152)
        for entry in pending.values():
            # Every node is counted once.
            self.assertEqual(sum(entry["counts"].values()), 1523, entry)
        shuffled = json.loads(snapshot)
        for members in ("nodes", "workloads", "gpu_models"):
            random.Random(1).shuffle(shuffled[members])
        self.assertEqual(run("plan", "-", "--format", "json", stdin=json.dumps(shuffled))[1], text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
