# SPDX-License-Identifier: Apache-2.0
"""`make fuzz` and `scripts/fuzz`, with stand-ins for the fuzzers."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGETS = ("frames", "descriptors", "matching", "vfio_user")
# Notices what the harness breaks, as the real ones do, unless `blind` is there;
# then fuzzes, and finds something when `finds` is there.
FUZZER = """#!/usr/bin/env python3
import os, pathlib, sys
here = pathlib.Path(__file__).parent
texts = {"hang": "the NIC does not come to rest", "dma": "DMA outside mapped memory",
         "double": "two completions of one send", "invented": "a completion of nothing that was posted",
         "memory": "memory changed that the NIC was not given", "probe": "it does not get through",
         "assertion": "the model stopped", "malformed": "a connection ended without a reason",
         "answer": "an answer is missing", "fd": "file descriptors stay open",
         "next": "not as after power-on"}
if "matching" in __file__:
    texts |= {"dma": "DMA outside what the host named", "late": "DMA after the end of all contexts",
              "double": "more receive completions than descriptors"}
broken = os.environ.get("HEDDLE_FUZZ_BREAK")
if broken and not (here / f"blind-{broken}").exists():
    sys.exit(f"PROPERTY: {texts[broken]}")
(here / (pathlib.Path(__file__).name + ".arguments")).write_text(" ".join(sys.argv[1:]))
prefix = next((a.split("=", 1)[1] for a in sys.argv if a.startswith("-artifact_prefix=")), "")
if (here / "finds").exists() and not broken:
    pathlib.Path(prefix + "crash-1").write_text("x")
    sys.exit(f"PROPERTY: something is wrong\\nTest unit written to {prefix}crash-1")
print("#7 DONE ft: 99", "stat::number_of_executed_units: 7", sep="\\n")
"""


class Fuzz(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name) / "fuzz"
        (self.build / "fuzz").mkdir(parents=True)
        for target in TARGETS:
            path = self.build / "fuzz" / f"fuzz_{target}"
            path.write_text(FUZZER)
            path.chmod(0o755)

    def fuzz(self, *arguments):
        env = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_FUZZ")}
        return subprocess.run([sys.executable, "-B", ROOT / "scripts/fuzz", "--build", self.build, *arguments],
                              capture_output=True, text=True, env=env)

    def test_a_number_of_seconds_reaches_each_target(self):
        run = self.fuzz("--seconds", "17")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        for target in TARGETS:
            arguments = (self.build / "fuzz" / f"fuzz_{target}.arguments").read_text()
            self.assertIn("-max_total_time=17 ", arguments)
            self.assertIn(f"tests/fuzz/corpus/{target}", arguments)
            self.assertRegex(run.stdout, rf"{target} +7 inputs, 99 features: ok")

    def test_frames_starts_with_each_worked_frame_too(self):
        sys.path.insert(0, str(ROOT / "tests/frames"))
        import worked
        self.assertEqual(self.fuzz("--seconds", "1").returncode, 0)
        folder = self.build / "worked"
        for target in TARGETS:
            arguments = (self.build / "fuzz" / f"fuzz_{target}.arguments").read_text().split()
            self.assertEqual(str(folder) in arguments, target == "frames", target)
        frames = list(worked.load())
        self.assertEqual(len(frames), 32)
        others = {f"F1-{opcode}.bin" for opcode in (6, 10, 11)}
        self.assertEqual({path.name for path in folder.iterdir()}, {f"{frame.name}.bin" for frame in frames} | others)
        for frame in frames:
            data = (folder / f"{frame.name}.bin").read_bytes()
            self.assertEqual(data.count(frame.parts["pds"] + frame.parts.get("ses", b"")), 2, frame.name)
            self.assertLessEqual(len(data), 512)

    def test_what_is_no_number_of_seconds_is_refused(self):
        for seconds in ("0", "-1", "1.5", "ten", "", "9999999"):
            run = self.fuzz(f"--seconds={seconds}")
            self.assertNotEqual(run.returncode, 0, seconds)
            self.assertIn("SECONDS is a whole number", run.stderr)

    def test_make_refuses_it_before_it_builds_anything(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
        run = subprocess.run(["make", "-C", ROOT, "fuzz", "SECONDS=soon", f"BUILD={self.build.parent}/none"],
                             capture_output=True, text=True, env=env)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("SECONDS is a whole number", run.stderr)
        self.assertFalse((self.build.parent / "none").exists())

    def test_an_unknown_target_is_refused(self):
        run = self.fuzz("everything")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("no target 'everything'; there are frames, descriptors, matching, vfio_user", run.stderr)

    def test_a_broken_property_fails_with_the_command_that_repeats_it(self):
        (self.build / "fuzz/finds").write_text("")
        run = self.fuzz("--seconds", "1", "frames")
        self.assertEqual(run.returncode, 1)
        self.assertIn("BROKEN: something is wrong", run.stdout)
        self.assertRegex(run.stdout, r"repeat: scripts/fuzz --repeat frames \S*reports/fuzz/frames-crash-1")

    def test_a_property_that_notices_nothing_fails(self):
        (self.build / "fuzz/blind-dma").write_text("")
        run = self.fuzz("--seconds", "1", "frames")
        self.assertEqual(run.returncode, 1)
        self.assertIn("a harness broken by 'dma' is not noticed", run.stdout)


if __name__ == "__main__":
    unittest.main()
