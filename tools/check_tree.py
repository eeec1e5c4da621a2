#!/usr/bin/env python3
"""Checks of the tree that the compiler does not make.

Usage: check_tree.py sizes|guards|commands
       check_tree.py registered BUILD_NINJA
Prints one line per offence, `file:line: why`.
"""

import pathlib
import re
import sys

TREES = ("include", "src", "tests", "bench", "examples")
LONGEST = {".h": 300, ".cc": 500}


def sources(root, *suffixes):
    for tree in TREES:
        for path in sorted((root / tree).rglob("*")):
            if path.suffix in suffixes:
                yield path, path.relative_to(root)


def sizes(root):
    """Files that hold more than one idea."""
    for path, name in sources(root, ".h", ".cc"):
        lines = len(path.read_text().splitlines())
        if lines > LONGEST[path.suffix]:
            yield f"{name}:{lines}: {lines} lines, at most {LONGEST[path.suffix]}"


def guards(root):
    """Include guards that do not follow from the path, and might clash."""
    for path, name in sources(root, ".h"):
        inside = name.relative_to("include/tessera") if name.parts[0] == "include" else name
        guard = "TESSERA_" + re.sub(r"\W", "_", str(inside)).upper() + "_"
        if f"#ifndef {guard}\n" not in path.read_text():
            yield f"{name}:1: the guard is not {guard}"


def registered(root, ninja):
    """Tests that exist and never run."""
    built = ninja.read_text()
    for _, name in sources(root, ".cc"):
        if name.parts[0] == "tests" and name.stem.endswith("_test") and f"/{name}" not in built:
            yield f"{name}:1: no test program builds it"


def commands(root):
    """Commands that the documents tell people to run and `dev` does not have."""
    known = set(re.findall(r"^  ([a-z-]+)\)", (root / "dev").read_text(), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        path = root / name
        if not path.exists():
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for command in re.findall(r"\./dev ([a-z-]+)", line):
                if command not in known:
                    yield f"{name}:{number}: ./dev has no command {command}"


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    check = {"sizes": sizes, "guards": guards, "commands": commands, "registered": registered}
    offences = list(check[sys.argv[1]](root, *map(pathlib.Path, sys.argv[2:])))
    print("\n".join(offences), end="\n" if offences else "")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
