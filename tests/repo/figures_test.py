# SPDX-License-Identifier: Apache-2.0
"""`bench/figures.py` finds figures that differ, with stand-ins for what it runs."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CALLS = ("inject", "send", "send_64", "send_4096", "inject_write", "write", "write_4096", "read", "recv",
         "recv_unregistered", "cq_read", "empty_poll", "tinject", "tsend", "tsend_4096", "trecv", "trecv_unregistered",
         "tcq_read")
WHOLE = ("e2e", "te2e")
POSTED = (1, 16, 256, 1024)
CYCLES = "# Performance\n\n| figure | cycles |\n|---|---|\n| latency | {} |\n"
UNCHECKED = "| pattern | {} | - | no |\n"
# Writes a dump for each call as callgrind does: totals are instructions of all
# its calls, the loop's own included. Without names it makes all calls.
VALGRIND = """#!/usr/bin/env python3
import json, pathlib, re, sys
folder = pathlib.Path(next(a for a in sys.argv if a.startswith("--callgrind-out-file=")).split("=", 1)[1]).parent
here = pathlib.Path(__file__).parent
if (here / "fails").exists():
    sys.exit("no such provider")
counts = json.loads((here / "counts.json").read_text())
program = next(pathlib.Path(a).name for a in sys.argv if "/bin/" in a)
if program == "heddle_count_matching":
    calls, others = counts["matching"], counts["bytes"]
else:
    words = sys.argv[sys.argv.index("--provider") + 2:]
    calls, others = {name: counts["whole"][name] for name in words} if words else counts["calls"], {}
for name, number in others.items():
    print(name, number)
for number, (name, per_call) in enumerate(calls.items()):
    (folder / f"dump.{number}").write_text(f"desc: Trigger: Client Request: {name}\\nsummary: {per_call * 10}\\n")
    print(name, 10)
"""


class Figures(unittest.TestCase):
    """On a tree of its own, recorded once."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("bench", "docs", "build/bin", "programs"):
            (self.root / name).mkdir(parents=True)
        shutil.copy(ROOT / "bench/figures.py", self.root / "bench")
        self.program("programs/valgrind", VALGRIND)
        self.count(0)
        self.cycles(100)
        run = self.figures("record")
        self.assertEqual(run.returncode, 0, run.stderr)

    def program(self, name, text):
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)

    def count(self, more, names=CALLS, whole=1000, wildcard=12, receive=152):
        """Sets the counts of the programs: 50 instructions per call and `more`, 3 for the loop; `whole` per message;
        `wildcard` for each that is passed over; bytes of a receive."""
        matching = {f"exact_{n}": 403 for n in POSTED} | {f"wildcards_{n}": 403 + n * wildcard for n in POSTED}
        counts = {"calls": {"null": 3} | {name: 53 + more for name in names},
                  "whole": {"null": 3} | {name: 3 + whole for name in WHOLE},
                  "matching": {"null": 3} | matching,
                  "bytes": {"bytes_of_receive": receive, "bytes_of_header": 128}}
        (self.root / "programs/counts.json").write_text(json.dumps(counts))

    def cycles(self, latency, pattern=5):
        """Sets the figures of cycles: of a row that is checked and of one that is not."""
        page, unchecked = CYCLES.format(latency), UNCHECKED.format(pattern)
        self.program("build/bin/heddle_perf", f"#!/bin/sh\nprintf '%s' '{page}' >\"$2\"\n"
                     f"[ \"$3\" = --checked ] || printf '%s' '{unchecked}' >>\"$2\"\n")

    def figures(self, action):
        env = {**os.environ, "PATH": f"{self.root}/programs:{os.environ['PATH']}"}
        return subprocess.run([sys.executable, "-B", self.root / "bench/figures.py", "--build", self.root / "build",
                               action], capture_output=True, text=True, env=env)

    def test_what_was_recorded_passes_and_the_loop_is_not_counted(self):
        run = self.figures("check")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("bench-check: 0 figures differ", run.stdout)
        recorded = tomllib.loads((self.root / "bench/instructions.toml").read_text())
        self.assertEqual(recorded["heddle"]["send"], 50)
        self.assertEqual(recorded["whole shm"]["te2e"], 1000)
        self.assertEqual(recorded["matching"]["wildcard"], 12)
        self.assertEqual(recorded["matching"]["bytes_of_receive"], 152)

    def test_two_instructions_more_are_none(self):
        self.count(2)
        self.assertEqual(self.figures("check").returncode, 0)

    def test_more_instructions_fail_and_are_named(self):
        self.count(3)
        run = self.figures("check")
        self.assertEqual(run.returncode, 1)
        self.assertIn("53.0 instructions, recorded 50.0  DIFFERS", run.stdout)
        self.assertIn(f"bench-check: {len(CALLS)} figures differ", run.stdout)

    def test_fewer_instructions_fail_too(self):
        self.count(-3)
        self.assertEqual(self.figures("check").returncode, 1)

    def test_whole_messages_may_differ_by_one_percent(self):
        self.count(0, whole=1010)
        self.assertEqual(self.figures("check").returncode, 0)
        self.count(0, whole=1011)
        run = self.figures("check")
        self.assertEqual(run.returncode, 1)
        self.assertIn("bench-check: 4 figures differ", run.stdout)

    def test_a_wildcard_that_costs_more_or_a_longer_receive_fails(self):
        self.count(0, wildcard=13)
        run = self.figures("check")
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stdout, r"(?m)^the same for each wildcard passed over.*13\.0 .*DIFFERS$")
        self.count(0, receive=160)
        run = self.figures("check")
        self.assertEqual(run.returncode, 1)
        self.assertIn("bench-check: 1 figures differ", run.stdout)

    def test_a_cycle_more_fails_and_shows_both(self):
        self.cycles(101)
        run = self.figures("check")
        self.assertEqual(run.returncode, 1)
        self.assertIn("-| latency | 100 |", run.stdout)
        self.assertIn("+| latency | 101 |", run.stdout)

    def test_a_row_that_is_not_checked_is_recorded_only(self):
        self.cycles(100, pattern=6)
        self.assertEqual(self.figures("check").returncode, 0)
        self.figures("record")
        self.assertIn(UNCHECKED.format(6), (self.root / "docs/performance.md").read_text())

    def test_a_row_that_is_no_longer_measured_fails(self):
        self.program("build/bin/heddle_perf", "#!/bin/sh\nprintf '# Performance\n' >\"$2\"\n")
        run = self.figures("check")
        self.assertEqual(run.returncode, 1)
        self.assertIn("-| latency | 100 |", run.stdout)

    def test_a_call_that_was_not_counted_fails(self):
        self.count(0, CALLS[1:])
        self.assertEqual(self.figures("check").returncode, 1)

    def test_help_is_printed(self):
        run = subprocess.run([sys.executable, ROOT / "bench/figures.py", "--help"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("record  measures", run.stdout)

    def test_a_program_that_fails_is_named_with_its_reason(self):
        (self.root / "programs/fails").write_text("")
        run = self.figures("check")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("no such provider", run.stderr)


if __name__ == "__main__":
    unittest.main()
