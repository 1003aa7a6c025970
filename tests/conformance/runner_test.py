# SPDX-License-Identifier: Apache-2.0
"""The conformance program: verdicts, exit status, options, what it is linked with."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", pathlib.Path(__file__).resolve().parent.parent.parent / "build"))
PROGRAM = BUILD / "bin/heddle-conformance"
# The same program on tests that pass, fail, crash and hang.
CASES = BUILD / "tests/conformance_runner_cases"
REQUIREMENTS = 293
LIMIT_S = 120


def run(program, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != "FI_PROVIDER"}
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, timeout=LIMIT_S)


class Runner(unittest.TestCase):
    def verdicts(self, *arguments):
        """The finished run and {number: row} of the JSON file."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "verdicts.json"
            done = run(CASES, "--provider", "shm", "--json", path, *arguments)
            report = json.loads(path.read_text())
        self.assertEqual(report["provider"], "shm")
        return done, {row["number"]: row for row in report["requirements"]}

    def test_every_verdict_is_found_and_the_run_goes_on(self):
        done, rows = self.verdicts("--limit-s", "10", "--wait-s", "0.2")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(sorted(rows), list(range(1, REQUIREMENTS + 1)))
        found = {number: (row["verdict"], row["reason"]) for number, row in rows.items()}
        self.assertEqual(found[1], ("pass", ""))
        self.assertEqual(found[2][0], "fail")
        self.assertIn("first", found[2][1])
        self.assertNotIn("second", found[2][1])
        self.assertEqual(found[3], ("crashed", "SIGSEGV"))
        self.assertEqual(found[4], ("hung", "more than 10000 ms"))
        self.assertEqual(found[5], ("refused", "the call: Function not implemented"))
        self.assertEqual(found[6], ("not offered", "the capability"))
        self.assertEqual(found[7], ("crashed", "the process ended with status 0 before the test did"))
        self.assertEqual(found[8], ("pass", ""))
        self.assertEqual(found[9], ("pass", ""))
        self.assertEqual(found[10], ("not offered", "something else"))
        self.assertEqual(found[11][0], "fail")
        self.assertEqual(found[12], ("hung", "more than 1 s of processor time"))
        self.assertEqual(found[13], ("pass", ""))
        self.assertEqual(found[14], ("no test", ""))
        self.assertEqual(rows[2]["tests"], ["Case.Fails", "Case.PassesBesideOneThatFails"])
        for line in ("  3  crashed ", "  4  hung ", " 14  no test "):
            self.assertIn(line, done.stdout)
        self.assertIn(f"shm: {REQUIREMENTS - 13} no test, 2 not offered, 1 refused, 4 pass, 2 fail, 2 hung, 2 crashed",
                      done.stdout)

    def test_status_is_0_unless_something_failed(self):
        done, rows = self.verdicts("--require", "1,5-6,14")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(sorted(rows), [1, 5, 6, 14])

    def test_one_test_runs_alone(self):
        done, rows = self.verdicts("--test", "Case.PassesBesideOneThatFails")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual({number: row["verdict"] for number, row in rows.items()}, {2: "pass", 9: "pass"})

    def test_no_process_of_a_test_outlives_it(self):
        mark = f"HEDDLE_TEST_MARK={os.getpid()}"
        os.environ["HEDDLE_TEST_MARK"] = str(os.getpid())
        self.addCleanup(os.environ.pop, "HEDDLE_TEST_MARK")
        _, rows = self.verdicts("--require", "8")
        self.assertEqual(rows[8]["verdict"], "pass")
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                variables = path.read_bytes().split(b"\0")
            except OSError:  # Another user's, or gone by now.
                continue
            self.assertNotIn(mark.encode(), variables, path)


class Options(unittest.TestCase):
    def refused(self, *arguments):
        """The line that a bad use prints."""
        done = run(PROGRAM, *arguments)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, lines)
        return lines[0]

    def test_unknown_provider_names_those_that_there_are(self):
        line = self.refused("--provider", "nosuch")
        self.assertIn("nosuch", line)
        self.assertRegex(line, r"there are: .*\bshm\b")
        self.assertRegex(self.refused(), r"there are: .*\bshm\b")

    def test_unknown_requirements_name_those_that_there_are(self):
        for text in ("400", "0", "x", "1-", "1,,2", "290-294", "-1"):
            with self.subTest(text):
                line = self.refused("--provider", "shm", f"--require={text}")
                self.assertIn(f"1 to {REQUIREMENTS}", line)
        self.assertIn("empty range", self.refused("--provider", "shm", "--require", "7-3"))

    def test_unknown_test_is_refused(self):
        self.assertIn("Case.Nosuch", self.refused("--provider", "shm", "--test", "Case.Nosuch"))
        self.assertIn("exclude", self.refused("--provider", "shm", "--test", "T.N", "--require", "1"))

    def test_other_bad_uses(self):
        for arguments in (("--nonsense",), ("--limit-s", "0"), ("--seed", "x"), ("extra",)):
            with self.subTest(arguments):
                self.refused("--provider", "shm", *arguments)
        self.assertIn("/nonexistent/file", self.refused_json())

    def refused_json(self):
        done = run(CASES, "--provider", "shm", "--require", "1", "--json", "/nonexistent/file")
        self.assertEqual(done.returncode, 2)
        return done.stderr

    def test_list_has_every_requirement_and_the_tests(self):
        done = run(PROGRAM, "--list")
        self.assertEqual(done.returncode, 0)
        rows = [line for line in done.stdout.splitlines() if not line.startswith("     ")]
        self.assertEqual([int(line[:3]) for line in rows], list(range(1, REQUIREMENTS + 1)))
        self.assertIn("GetInfoTest.NoMatchIsNoDataAndNull", done.stdout)
        self.assertEqual(run(PROGRAM, "--help").returncode, 0)


class Program(unittest.TestCase):
    def test_is_linked_with_nothing_of_heddle(self):
        done = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True)
        libraries = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertIn("libfabric.so.1", libraries)
        self.assertEqual([name for name in libraries if "heddle" in name], [])
        self.assertNotIn(str(BUILD), done.stdout)

    def test_judges_a_stock_provider(self):
        done = run(PROGRAM, "--provider", "shm", "--require", "1,9,36,86,90")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("shm: 5 pass", done.stdout)


if __name__ == "__main__":
    unittest.main()
