# SPDX-License-Identifier: Apache-2.0
"""Lists the tests of the sources, to compare with those that a build registers and with those of the preceding commit."""

import ast
import collections
import io
import json
import pathlib
import re
import subprocess
import tarfile

# Their tests are run, but not by ctest.
RUN_ELSEWHERE = {
    "tests/recorder/failing_program.cc": "recorder_test.py",
    "tests/system/harness/failing_nic_program.cc": "recorder_test.py",
    "tests/vm/guest_failure_test.cc": "make test-vm",
    "tests/vm/guest_remap_test.cc": "make test-vm",
    "tests/vm/guest_vfio_test.cc": "make test-vm",
    "tests/vm/vm_test.py": "make test-vm",
}
# A line of the message of a commit after which a suite has fewer tests.
REASON = "Removes-tests:"

MACRO = re.compile(r"^(?:\s*#\s*(if|endif)|TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\))", re.M)
# The program whose object a compiler's command makes; a precompiled header named before it is another's.
OBJECT = re.compile(r" -o \S*?CMakeFiles/([^/]+)\.dir/")
REGISTERED = re.compile(r"(?:.*/)?(\w+)\.(\w+)(?:/.*)?$")


def gtest_names(text):
    """`Suite.Name` of each test of a C++ source, and whether it stands in an #if."""
    names, depth = {}, 0
    for directive, suite, name in MACRO.findall(text):
        if directive:
            depth += 1 if directive == "if" else -1
        else:
            names[f"{suite}.{name}"] = depth > 0
    return names


def python_names(text):
    """`Class.method` of each test of a Python source."""
    return {f"{node.name}.{item.name}": False for node in ast.parse(text).body if isinstance(node, ast.ClassDef)
            for item in node.body if isinstance(item, ast.FunctionDef) and item.name.startswith("test")}


def names(path, text):
    """The same of a file that holds tests; nothing of any other."""
    if path.endswith((".cc", ".h")):
        return gtest_names(text)
    return python_names(text) if path.endswith("_test.py") else {}


def sources(root):
    """{path: names} of all files of tests/ that hold tests."""
    found = {}
    for path in sorted((root / "tests").rglob("*")):
        if path.suffix in (".cc", ".h", ".py"):
            held = names(str(path), path.read_text())
            if held:
                found[str(path.relative_to(root))] = held
    return found


def sources_at(root, commit):
    """The same of a commit."""
    archive = subprocess.run(["git", "-C", root, "archive", commit, "tests"], capture_output=True, check=True).stdout
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            if member.isfile() and member.name.endswith((".cc", ".h", ".py")):
                held = names(member.name, files.extractfile(member).read().decode())
                if held:
                    found[member.name] = held
    return found


def registered(build):
    """{program or Python file: names of its tests} as ctest has them; of a program that was not built, None."""
    listing = json.loads(subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True,
                                        text=True, check=True).stdout)
    found = collections.defaultdict(set)
    for test in listing["tests"]:
        command = test.get("command", [])
        if test["name"].endswith("_NOT_BUILT"):  # TARGET_NOT_BUILT
            found[test["name"].removesuffix("_NOT_BUILT")] = None
        elif len(command) > 1 and command[1].startswith("--gtest_filter="):
            if match := REGISTERED.match(command[1].removeprefix("--gtest_filter=")):
                found[pathlib.Path(command[0]).name].add(".".join(match.groups()))
        for word in command[:-1]:
            if word.endswith("_test.py"):
                found[str(pathlib.Path(word).resolve())].add(command[-1])
    return found


def programs(root, build):
    """{source: programs compiled from it}, paths from `root`."""
    found = collections.defaultdict(set)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        target = OBJECT.search(entry["command"])
        if target and path.is_relative_to(root):
            found[str(path.relative_to(root))].add(target[1])
    return found


def lost(root, build, sanitized):
    """Lines that name tests of the sources which ctest does not run in `build`. With sanitizers not all programs run there,
    but all tests of those that do. A program that was not built is a failed test of ctest's."""
    known, compiled = registered(build), programs(root, build)
    lines = []
    for path, tests in sources(root).items():
        if path in RUN_ELSEWHERE:
            continue
        if path.endswith(".py"):
            if not sanitized:
                methods = {name.split(".")[1] for name in known[str(root / path)]}
                lines += [f"{path}: {name}" for name in tests if name.split(".")[1] not in methods]
            continue
        running = [known[program] for program in compiled[path] if program in known]
        if not running and not sanitized:
            lines.append(f"{path}: in no program that ctest runs")
        if None in running:
            continue
        for name, conditional in tests.items() if running else ():
            # Tests in an #if may be in one program and not in another.
            if not (any if conditional or sanitized else all)(name in names for names in running):
                if not (conditional and sanitized):
                    lines.append(f"{path}: {name}")
    return lines


def git(root, *arguments):
    run = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else None


def by_suite(files):
    """{folder of tests/: names of its tests}, each with its file."""
    found = collections.defaultdict(set)
    for path, held in files.items():
        found[path.split("/")[1]] |= {(pathlib.Path(path).stem, name) for name in held}
    return found


def compare(root):
    """Changes since the preceding commit, or since HEAD where changes are not committed: lines to print, whether a
    suite has fewer tests than there for no reason given, and {folder of tests/: (added, removed)}; None where there is
    no such commit."""
    if git(root, "rev-parse", "HEAD") is None:
        return ["no commit to compare the tests with"], False, None
    uncommitted = bool(git(root, "status", "--porcelain", "tests"))
    base = git(root, "rev-parse", "--verify", "--quiet", "HEAD" if uncommitted else "HEAD~1")
    if base is None:
        return ["no commit before this one to compare the tests with: a shallow clone"], False, None
    then, now = by_suite(sources_at(root, base)), by_suite(sources(root))
    lines, fewer, changes = [], [], {}
    for suite in sorted(then | now):
        added, removed = now[suite] - then[suite], then[suite] - now[suite]
        changes[suite] = len(added), len(removed)
        if added or removed:
            lines.append(f"{suite}: {len(added)} tests more and {len(removed)} fewer than in {base[:10]}")
            lines += [f"  gone: {name} of {stem}" for stem, name in sorted(removed)]
        if len(now[suite]) < len(then[suite]):
            fewer.append(suite)
    lines = lines or [f"the tests of {base[:10]}, none more and none fewer"]
    if not fewer:
        return lines, False, changes
    message = "" if uncommitted else git(root, "log", "-1", "--format=%B")
    reason = next((line for line in message.splitlines() if line.startswith(REASON)), None)
    if reason:
        return [*lines, f"  {reason}"], False, changes
    lines.append(f"  FEWER TESTS in {', '.join(fewer)}: the commit message must give the reason in a line `{REASON} ...`")
    return lines, not uncommitted, changes
