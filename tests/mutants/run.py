#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Applies one defect at a time and expects its conformance test to fail.

Usage: run.py --build DIR [--jobs N] [--choose N] [NAME ...]

Builds a copy of the sources in DIR/mutants, without the device rtl. NAME is a patch
of this folder without `.patch`; --choose takes N of them by the hash of the commit.
A patch that does not apply, or whose result does not compile, is an error.
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# The product, and what configuring it reads.
SOURCES = ("CMakeLists.txt", "VERSION", "CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "cmake", "hw", "firmware",
           "driver", "host", "tools", "tests", "bench", "scripts")
TARGETS = ("heddle", "heddle-soft")
TEST_LIMIT_S = 60
WAIT_S = 5
CAUGHT = re.compile(r"^Caught-by: (\w+\.\w+)$", re.M)


class Failure(Exception):
    """The mutants could not be judged."""


def mutants(folder=HERE):
    """{name: path} of all patches."""
    return {path.stem: path for path in sorted(folder.glob("*.patch"))}


def catcher(path):
    """The test that has to fail."""
    match = CAUGHT.search(path.read_text())
    if not match:
        raise Failure(f"{path.name}: no line `Caught-by: Suite.Name`")
    return match[1]


def apply(tree, path, *options):
    """The outcome of `git apply` in a folder that is no repository, or the root of one."""
    return subprocess.run(["git", "apply", *options, path], cwd=tree, capture_output=True, text=True, check=False,
                          env=os.environ | {"GIT_CEILING_DIRECTORIES": str(tree.parent)})


def synchronize(tree):
    """Copies the sources that differ, so that little is compiled again."""
    wanted = set()
    for name in SOURCES:
        top = ROOT / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                place = tree / path.relative_to(ROOT)
                wanted.add(place)
                if not place.exists() or place.read_bytes() != path.read_bytes():
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, place)
                    shutil.copymode(path, place)
    for place in tree.rglob("*"):
        if place.is_file() and place not in wanted:
            place.unlink()


class Tree:
    """The copy and its build."""

    def __init__(self, build, jobs):
        self.program = build / "bin/heddle-conformance"
        self.source = build / "mutants/source"
        self.build = build / "mutants/build"
        self.jobs = jobs

    def prepare(self):
        synchronize(self.source)
        if not (self.build / "build.ninja").exists():
            run = subprocess.run(["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                                  "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DHEDDLE_RTL_DEVICE=OFF", "-DHEDDLE_TESTS=OFF"],
                                 capture_output=True, text=True, check=False)
            if run.returncode != 0:
                raise Failure(run.stdout + run.stderr)
        if not self.compile():
            raise Failure("the sources without a mutant do not compile")

    def compile(self):
        run = subprocess.run(["cmake", "--build", self.build, "-j", str(self.jobs), "--target", *TARGETS],
                             capture_output=True, text=True, check=False)
        if run.returncode != 0:
            print("\n".join(run.stdout.splitlines()[-20:]))
        return run.returncode == 0

    def verdict(self, test):
        """0 if the test passes, 1 if it fails; and its first reason."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("FI_", "LD_LIBRARY"))}
        run = subprocess.run([self.program, "--provider", "heddle", "--test", test, "--limit-s", str(TEST_LIMIT_S),
                              "--wait-s", str(WAIT_S)], capture_output=True, text=True, check=False,
                             env=clean | {"LD_LIBRARY_PATH": str(self.build / "lib/heddle/drop-in"),
                                          "FI_HEDDLE_DEVICE": "soft", "FI_HEDDLE_WIRE": f"mutants-{os.getpid()}"})
        if run.returncode not in (0, 1):
            raise Failure(f"{test}: {run.stderr.strip()}")
        # An indented line is the reason of the row before it.
        reasons = [line.strip() for line in run.stdout.splitlines() if line.startswith("          ")]
        return run.returncode, reasons[0] if reasons else run.stdout.splitlines()[-1]

    def is_caught(self, path):
        """Whether the test fails with the mutant; and why."""
        done = apply(self.source, path)
        if done.returncode != 0:
            raise Failure(f"{path.name} does not apply:\n{done.stderr}")
        try:
            if not self.compile():
                raise Failure(f"{path.name} does not compile")
            status, reason = self.verdict(catcher(path))
        finally:
            synchronize(self.source)
        return status == 1, reason


def choose(names, count):
    """`count` of the names by the hash of the commit."""
    run = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return sorted(random.Random(run.stdout.strip()).sample(sorted(names), min(count, len(names))))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--choose", type=int)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    known = mutants()
    if unknown := set(arguments.names) - set(known):
        raise Failure(f"no mutant {', '.join(sorted(unknown))}")
    names = arguments.names or (choose(known, arguments.choose) if arguments.choose else list(known))
    tree = Tree(arguments.build.resolve(), arguments.jobs)
    start = time.monotonic()
    tree.prepare()
    for test in sorted({catcher(known[name]) for name in names}):
        status, reason = tree.verdict(test)
        if status != 0:
            raise Failure(f"{test} fails without a mutant: {reason}")
    print(f"prepared after {time.monotonic() - start:.0f} s")
    missed = []
    for name in names:
        began = time.monotonic()
        caught, reason = tree.is_caught(known[name])
        print(f"{'caught' if caught else 'NOT CAUGHT':<11}{name}, {time.monotonic() - began:.0f} s, {catcher(known[name])}: "
              f"{reason}", flush=True)
        missed += [] if caught else [name]
    print(f"{len(names) - len(missed)} of {len(names)} mutants caught")
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"run.py: {failure}")
