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

    def test_mig(self):
        _, text, _ = run("mig", "A100-40GB", "--format", "json")
        model = json.loads(text)
        self.assertEqual((model["model"], model["units"]), ("A100-40GB", 8))
        profiles = {profile["name"]: profile for profile in model["profiles"]}
        self.assertEqual(profiles["3g.20gb"],
                         {"name": "3g.20gb", "size": 4, "starts": [0, 4], "max": 2})


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
