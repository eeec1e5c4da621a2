#!/usr/bin/env python3
"""Checks that the includes of include/ and src/ follow the layers of the rooms.

Usage: check_layers.py [ROOT]. Prints one line per offence, `file:line: why`.
CMakeLists.txt states the same order for linking.
"""

import pathlib
import re
import sys

LAYERS = {
    "base": 0,
    "resources": 1,
    "gpu": 2,
    "cluster": 2,
    "state": 3,
    "replicas": 3,
    "verify": 3,
    "share": 4,
    "placement": 4,
    "preemption": 5,
    "schedule": 6,
    "sim": 7,
    "io": 7,
    "capi": 8,
}

# Includes within one layer, (from, to). None joins share and placement.
SAME_LAYER = {("cluster", "gpu")}

# Their ABI depends on the compile flags or the release of the host.
NOT_IN_HEADERS = re.compile(r"(fmt|Eigen|nlohmann)/")

# The core has no I/O, threads, clock, randomness or environment.
IMPURE = {
    "chrono", "cstdio", "ctime", "filesystem", "fstream", "future", "iostream", "mutex",
    "random", "stdio.h", "thread", "time.h", "unistd.h",
}

INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


def offence(room, is_header, included):
    """Why `room` must not include `included`, or None."""
    if is_header and included.startswith("src/"):
        return f"{included} in a public header"
    if is_header and NOT_IN_HEADERS.match(included):
        return f"{included} in a public header"
    if LAYERS[room] < 7 and included in IMPURE:
        return f"<{included}> in the core"
    match = re.match(r"(tessera|src)/([^/]+)/", included)
    if not match or match[2] == room:
        return None
    tree, other = match.groups()
    if tree == "src":
        return f"a private header of {other}"
    if other not in LAYERS:
        return f"{other}/ is not a room"
    if LAYERS[other] < LAYERS[room] or (room, other) in SAME_LAYER:
        return None
    return f"{room} (layer {LAYERS[room]}) includes {other} (layer {LAYERS[other]})"


def check(root):
    """Yields `file:line: why` for every offence below `root`, in order of name."""
    for tree in ("include/tessera", "src"):
        for path in sorted((root / tree).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            name = path.relative_to(root)
            room = path.relative_to(root / tree).parts[0]
            if room not in LAYERS:
                yield f"{name}:1: {room} is not a room"
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                why = match and offence(room, tree != "src", match[1])
                if why:
                    yield f"{name}:{number}: {why}"


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    offences = list(check(root.resolve()))
    print("\n".join(offences), end="\n" if offences else "")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
