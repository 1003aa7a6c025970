# SPDX-License-Identifier: Apache-2.0
"""The commands of the front door: packages, suites, the list of targets."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def program(self, name, body):
        path = self.path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)


class Packages(Folder):
    """`scripts/packages` with stand-ins for dpkg-query, id and apt-get."""

    def packages(self, installed, user, *purposes, apt="true", commands=()):
        self.program("dpkg-query", f'eval "last=\\${{$#}}"\ncase " {installed} " in\n'
                     '*" $last "*) echo "install ok installed" ;;\n*) exit 1 ;;\nesac')
        self.program("id", f"echo {user}")
        self.program("apt-get", f'echo "$DEBIAN_FRONTEND: $*" >>{self.path}/apt\n{apt}')
        for tool in ("bash", "dirname", "grep", "sh"):
            link = self.path / "bin" / tool
            link.unlink(missing_ok=True)
            link.symlink_to(shutil.which(tool))
        for command in commands:
            self.program(command, "true")
        env = {**os.environ, "PATH": f"{self.path}/bin"}
        run = subprocess.run([ROOT / "scripts/packages", *purposes], capture_output=True, text=True, env=env)
        log = self.path / "apt"
        return run, log.read_text() if log.exists() else ""

    def listed(self, purpose):
        text = (ROOT / "packages.txt").read_text()
        return re.search(rf"^{purpose}: (.*)$", text, re.M).group(1)

    def names(self, purpose):
        """The packages alone, without the commands that stand for them."""
        return " ".join(word.split("=")[-1] for word in self.listed(purpose).split())

    def test_nothing_is_done_when_nothing_is_missing(self):
        for user in (0, 1000):
            run, apt = self.packages(self.names("test"), user, "test")
            self.assertEqual((run.returncode, run.stdout, run.stderr, apt), (0, "", "", ""))

    def test_root_installs_only_what_is_missing(self):
        installed = self.listed("build").replace("verilator", "").replace("g++", "")
        run, apt = self.packages(installed, 0, "build", "test")
        self.assertEqual(run.returncode, 0, run.stderr)
        update, install = apt.splitlines()
        self.assertTrue(update.startswith("noninteractive: update"), update)
        self.assertEqual(install, "noninteractive: install -y --no-install-recommends g++ verilator "
                         f"{self.names('test')} -q")

    def test_another_user_is_told_the_command_and_nothing_is_installed(self):
        run, apt = self.packages("", 1000, "test")
        self.assertEqual((run.returncode, apt), (1, ""))
        self.assertIn(f"apt-get update && apt-get install -y --no-install-recommends {self.names('test')}",
                      run.stderr)

    def test_a_command_from_elsewhere_needs_no_package(self):
        rest = " ".join(word for word in self.listed("lint").split() if "=" not in word)
        run, apt = self.packages(rest, 0, "lint", commands=("node", "npm"))
        self.assertEqual((run.returncode, run.stderr, apt), (0, "", ""))

    def test_a_missing_command_is_installed_by_its_package(self):
        rest = " ".join(word for word in self.listed("lint").split() if "=" not in word)
        run, apt = self.packages(rest, 0, "lint")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("--no-install-recommends nodejs npm -q", apt)

    def test_a_failed_installation_fails(self):
        run, _ = self.packages("", 0, "test", apt="exit 100")
        self.assertEqual(run.returncode, 100)

    def test_an_unknown_purpose_fails(self):
        run, _ = self.packages("", 0, "games")
        self.assertEqual(run.returncode, 1)
        self.assertIn("no purpose 'games'", run.stderr)


class Suites(Folder):
    """`scripts/suites` on a build directory of made-up tests."""

    def suites(self, *tests, minimum="", require_all="0"):
        """`tests` are (suite, name, shell command)."""
        lines = []
        for suite, name, command in tests:
            lines += [f'add_test({name} "/bin/sh" "-c" "{command}")',
                      f'set_tests_properties({name} PROPERTIES LABELS {suite} SKIP_REGULAR_EXPRESSION "Skipped")']
        (self.path / "CTestTestfile.cmake").write_text("\n".join(lines))
        (self.path / "minimum.txt").write_text(minimum)
        command = [sys.executable, "-B", ROOT / "scripts/suites", "--minimum", self.path / "minimum.txt", self.path]
        env = {**os.environ, "HEDDLE_TEST_REQUIRE_ALL": require_all}
        run = subprocess.run(command, capture_output=True, text=True, env=env)
        return run.returncode, run.stdout

    def last_line(self, output):
        return output.splitlines()[-1]

    def test_counts_each_suite_and_the_total(self):
        code, output = self.suites(("rtl", "a", "true"), ("rtl", "b", "true"), ("host", "c", "true"))
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"rtl +2 ran +0 skipped +0 failed")
        self.assertRegex(output, r"host +1 ran")
        self.assertEqual(self.last_line(output), "3 passed, 0 failed, 0 skipped")
        self.assertEqual((self.path / "reports/total").read_text(), "3 0 0\n")

    def test_a_failed_test_fails_and_shows_its_output(self):
        code, output = self.suites(("rtl", "a", "true"), ("rtl", "b", "echo the reason; false"))
        self.assertEqual(code, 1)
        self.assertIn("FAILED b\nthe reason", output)
        self.assertEqual(self.last_line(output), "1 passed, 1 failed, 0 skipped")

    def test_a_skipped_test_is_counted_and_named(self):
        code, output = self.suites(("rtl", "a", "true"), ("rtl", "b", "echo Skipped; echo no card here"))
        self.assertEqual(code, 0, output)
        self.assertIn("skipped b: no card here", output)
        self.assertEqual(self.last_line(output), "1 passed, 0 failed, 1 skipped")

    def test_a_skipped_test_fails_where_all_are_required(self):
        code, output = self.suites(("rtl", "a", "true"), ("rtl", "b", "echo Skipped"), require_all="1")
        self.assertEqual(code, 1)
        self.assertEqual(self.last_line(output), "1 passed, 1 failed, 0 skipped")

    def test_fewer_tests_than_the_minimum_fail(self):
        code, output = self.suites(("rtl", "a", "true"), minimum="rtl 1\n")
        self.assertEqual(code, 0, output)
        code, output = self.suites(("rtl", "a", "true"), minimum="rtl 2  # Two.\n")
        self.assertEqual(code, 1)
        self.assertIn("FEWER THAN THE 2", output)
        code, output = self.suites(("rtl", "a", "true"), minimum="host 1\n")
        self.assertEqual(code, 1)

    def test_a_test_that_was_not_built_fails(self):
        code, output = self.suites(("rtl", "a", "true"), ('""', "x_NOT_BUILT", "false"))
        self.assertEqual(code, 1, output)
        self.assertIn("FAILED x_NOT_BUILT: belongs to no suite", output)
        self.assertEqual(self.last_line(output), "1 passed, 1 failed, 0 skipped")

    def test_no_tests_at_all_fail(self):
        code, output = self.suites()
        self.assertEqual(code, 1)
        self.assertEqual(self.last_line(output), "0 passed, 0 failed, 0 skipped")


class Make(unittest.TestCase):
    def test_alone_lists_the_targets_and_does_nothing_else(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
        run = subprocess.run(["make", "-C", ROOT, "--no-print-directory"], capture_output=True, text=True, env=env)
        self.assertEqual(run.returncode, 0, run.stderr)
        targets = [line.split()[0] for line in run.stdout.splitlines()]
        self.assertEqual(targets, ["help", "packages", "build", "install", "test", "test-long", "test-asan", "test-tsan",
                                   "test-vm", "test-vm-iommufd", "demo", "lint", "contract", "performance", "bench",
                                   "bench-check", "fuzz", "soak", "coverage", "clean"])
        for line in run.stdout.splitlines():
            self.assertGreaterEqual(len(line.split()), 3, line)


class Help(unittest.TestCase):
    def test_each_program_with_options_tells_its_usage(self):
        programs = [p for p in sorted((ROOT / "scripts").iterdir())
                    if p.is_file() and b"argparse" in p.read_bytes()]
        self.assertGreater(len(programs), 3)
        for program in programs:
            with self.subTest(program=program.name):
                run = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60)
                self.assertEqual((run.returncode, run.stderr), (0, ""))
                self.assertIn(program.name, run.stdout)


if __name__ == "__main__":
    unittest.main()
