#!/usr/bin/env python3
"""Shows that the checks beside this file see what they are there to see."""

import pathlib
import tempfile
import unittest

import check_layers
import check_tree


class Tree(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


class Layers(Tree):
    def offences(self, path, *includes):
        self.write(path, "".join(f"#include {include}\n" for include in includes))
        return list(check_layers.check(self.root))

    def test_down_and_within_a_room_is_fine(self):
        self.assertEqual(
            self.offences("src/share/a.cc", '"tessera/share/a.h"', '"tessera/state/b.h"',
                          "<vector>", '"fmt/format.h"', "<Eigen/Dense>"), [])

    def test_up_is_not(self):
        self.assertEqual(
            self.offences("src/gpu/a.cc", "<vector>", '"tessera/state/b.h"'),
            ["src/gpu/a.cc:2: gpu (layer 2) includes state (layer 3)"])

    def test_cluster_sees_gpu_and_not_the_other_way(self):
        self.assertEqual(self.offences("include/tessera/cluster/a.h", '"tessera/gpu/b.h"'), [])
        self.assertEqual(len(self.offences("include/tessera/gpu/b.h", '"tessera/cluster/a.h"')), 1)

    def test_rooms_of_one_layer_do_not_meet(self):
        for room, other in (("share", "placement"), ("placement", "share"), ("verify", "state")):
            with self.subTest(room):
                self.assertIn(f"{room} (layer ",
                              self.offences(f"src/{room}/a.cc", f'"tessera/{other}/b.h"')[-1])
                (self.root / f"src/{room}/a.cc").unlink()

    def test_public_headers_hide_what_depends_on_flags(self):
        self.assertEqual(
            self.offences("include/tessera/share/a.h", "<Eigen/Core>", "  <fmt/format.h>"),
            ["include/tessera/share/a.h:1: Eigen/Core in a public header",
             "include/tessera/share/a.h:2: fmt/format.h in a public header"])

    def test_the_core_is_pure(self):
        self.assertEqual(len(self.offences("src/state/a.cc", "<random>", "<chrono>")), 2)

    def test_private_headers_stay_in_their_room(self):
        self.assertEqual(self.offences("src/share/a.cc", '"src/share/b.h"'), [])
        self.assertEqual(len(self.offences("src/share/a.cc", '"src/state/b.h"')), 1)
        self.assertEqual(len(self.offences("include/tessera/io/a.h", '"src/io/b.h"')), 2)

    def test_unknown_rooms(self):
        self.assertEqual(self.offences("src/attic/a.cc"), ["src/attic/a.cc:1: attic is not a room"])


class Sizes(Tree):
    def test_long_files(self):
        self.write("include/tessera/base/a.h", "\n" * 301)
        self.write("src/base/a.cc", "\n" * 500)
        self.assertEqual(list(check_tree.sizes(self.root)),
                         ["include/tessera/base/a.h:301: 301 lines, at most 300"])


class Guards(Tree):
    def test_wrong_guard(self):
        self.write("include/tessera/gpu/mig.h", "#ifndef TESSERA_GPU_MIG_H_\n")
        self.write("tests/support/a.h", "#ifndef TESSERA_SUPPORT_A_H_\n")
        self.assertEqual(list(check_tree.guards(self.root)),
                         ["tests/support/a.h:1: the guard is not TESSERA_TESTS_SUPPORT_A_H_"])


class Registered(Tree):
    def test_unknown_test(self):
        self.write("tests/gpu/a_test.cc", "")
        self.write("tests/gpu/b_test.cc", "")
        self.write("build.ninja", "build x: CXX /src/tests/gpu/a_test.cc\n")
        self.assertEqual(list(check_tree.registered(self.root, self.root / "build.ninja")),
                         ["tests/gpu/b_test.cc:1: no test program builds it"])


class Commands(Tree):
    def test_unknown_command(self):
        self.write("dev", "case x in\n  test) run ;;\nesac\n")
        self.write("README.md", "Run `./dev test`.\n\n    ./dev dance\n")
        self.assertEqual(list(check_tree.commands(self.root)),
                         ["README.md:3: ./dev has no command dance"])


if __name__ == "__main__":
    unittest.main()
