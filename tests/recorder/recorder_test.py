# SPDX-License-Identifier: Apache-2.0
"""A failing RTL test leaves files of its last cycles, and says where.

HEDDLE_BUILD names the build directory.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build"))
CYCLES = 5000  # At which AfterManyCycles fails.
LAST = 2000  # Cycles that a recording holds.


def fst_times(path):
    """First and last time in a waveform: the head block of an FST file."""
    head = path.read_bytes()[:1 + 8 + 8 + 8]
    assert head[0] == 0, head
    return int.from_bytes(head[9:17], "big"), int.from_bytes(head[17:25], "big")


class Recorder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "failures")

    def fail_in(self, test, program="failing_program", **settings):
        """Output of a test, and where its files must be."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("HEDDLE_", "GTEST_"))}
        run = subprocess.run([BUILD / "tests" / program, f"--gtest_filter=Failing.{test}"], capture_output=True,
                             text=True, timeout=300, env=env | {"HEDDLE_FAILURES": str(self.path)} | settings)
        self.assertEqual(run.returncode, 0 if test == "Not" else 1, run.stdout + run.stderr)
        return run.stdout, self.path / f"{program}.Failing.{test}"

    def test_leaves_a_waveform_of_the_last_cycles_and_prints_where(self):
        output, where = self.fail_in("AfterManyCycles")
        self.assertIn(f"[ RECORDED ] {where}, cycles {CYCLES - LAST} to {CYCLES}:", output)
        waveform = next(where.glob("*.fst"))
        self.assertIn(f"[ RECORDED ]   {waveform.name}", output)
        self.assertEqual(fst_times(waveform), (2 * (CYCLES - LAST), 2 * CYCLES))

    def test_keeps_the_output_of_the_repetition(self):
        output, where = self.fail_in("AfterManyCycles")
        log = (where / "log.txt").read_text()
        self.assertEqual(re.search("first word .*", log)[0], re.search("first word .*", output)[0])

    def test_repeats_with_the_seed_of_the_failure(self):
        output, where = self.fail_in("AtASeed")
        log = (where / "log.txt").read_text()
        for what in ("HEDDLE_TEST_SEED=.*", "first word .*"):
            self.assertEqual(re.search(what, log)[0], re.search(what, output)[0])

    def test_says_that_the_repetition_passed(self):
        output, _ = self.fail_in("NotAgain")
        self.assertIn("[ RECORDED ] the test passed when it was repeated", output)

    def test_leaves_nothing_when_a_test_passes(self):
        output, where = self.fail_in("Not")
        self.assertNotIn("RECORDED", output)
        self.assertFalse(where.exists())

    def test_replaces_the_files_of_the_failure_before(self):
        _, where = self.fail_in("AtASeed")
        (where / "old.fst").touch()
        self.fail_in("AtASeed")
        self.assertFalse((where / "old.fst").exists())

    def test_leaves_waveforms_capture_and_trace_of_whole_nics(self):
        output, where = self.fail_in("AfterAMessage", "failing_nic_program")
        cycle = int(re.search(r"at cycle (\d+)", output)[1])
        first = max(0, cycle - LAST)
        self.assertIn(f"[ RECORDED ] {where}, cycles {first} to {cycle}:", output)
        files = {p.suffix: p for p in where.iterdir()}
        waveforms = sorted(where.glob("*.fst"))
        self.assertEqual(len(waveforms), 2)  # One of each NIC.
        for path in waveforms:
            begin, end = fst_times(path)
            self.assertEqual(begin, 2 * first)
            self.assertGreaterEqual(end, 2 * cycle)
        # The request and its answer.
        self.assertGreater(files[".pcap"].stat().st_size, 24 + 2 * (16 + 60))
        events = next(where.glob("events*.txt")).read_text().splitlines()
        self.assertTrue(all(int(line.split()[0]) >= first for line in events))
        for event in ("nic0 doorbell", "nic0 beat to the wire", "nic1 last beat of a frame", "nic1 write to host"):
            self.assertTrue([line for line in events if event in line], event)

    def test_says_how_to_get_a_waveform_of_a_model_without(self):
        output, where = self.fail_in("AfterManyCycles", "failing_unit_program")
        self.assertEqual([p.name for p in where.iterdir()], ["log.txt"])
        self.assertIn("scripts/waveform failing_unit_program 'Failing.AfterManyCycles'", output)

    def test_compiles_a_unit_with_waveforms_when_asked(self):
        run = subprocess.run([ROOT / "scripts/waveform", "--build", BUILD, "failing_unit_program", "Failing.AtASeed"],
                             capture_output=True, text=True, env=os.environ | {"HEDDLE_TEST_SEED": "7"}, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        where = BUILD.resolve() / "reports/failures/failing_unit_program.Failing.AtASeed"
        self.assertIn(f"[ RECORDED ] {where}, cycles 0 to 100:", run.stdout)
        self.assertEqual(fst_times(next(where.glob("*.fst"))), (1, 200))
        self.assertIn("HEDDLE_TEST_SEED=7", (where / "log.txt").read_text())


if __name__ == "__main__":
    unittest.main()
