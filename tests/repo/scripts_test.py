# SPDX-License-Identifier: Apache-2.0
"""The commands of the front door: packages, suites, the list of targets."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import test_sources  # noqa: E402


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
        missing = [name for name in self.names("test").split() if name not in installed.split()]
        self.assertEqual(install, "noninteractive: install -y --no-install-recommends g++ verilator "
                         f"{' '.join(missing)} -q")

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


class Commits(Folder):
    def git(self, *arguments):
        settings = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", self.path, *settings, *arguments], check=True, capture_output=True)

    def commit(self, message, **suites):
        for suite, names in suites.items():
            path = self.path / "tests" / suite / "a_test.cc"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"TEST(A, {name}) {{}}\n" for name in names))
        self.git("add", "-A")
        self.git("commit", "-qm", message)


class Suites(Commits):
    """`scripts/suites` on a build directory of made-up tests."""

    def suites(self, *tests, suites=None, require_all="0", options=()):
        """`tests` are (suite, name, shell command)."""
        lines = []
        for suite, name, command in tests:
            lines += [f'add_test({name} "/bin/sh" "-c" "{command}")',
                      f'set_tests_properties({name} PROPERTIES LABELS {suite} SKIP_REGULAR_EXPRESSION "Skipped")']
        (self.path / "CTestTestfile.cmake").write_text("\n".join(lines))
        (self.path / "compile_commands.json").write_text("[]")
        suites = sorted({suite for suite, _, _ in tests if suite != '""'}) if suites is None else suites
        command = [sys.executable, "-B", ROOT / "scripts/suites", "--root", self.path, *options, self.path, *suites]
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
        self.assertEqual((self.path / "reports/failed").read_text(), "")

    def test_the_line_of_a_suite_says_what_a_commit_added_and_removed(self):
        self.git("init", "-q")
        self.commit("first", rtl=["One", "Two"], host=["Three"])
        _, output = self.suites(("rtl", "a", "true"), suites=[])
        self.assertRegex(output, r"(?m)^rtl +1 ran +0 skipped +0 failed +\d+ s$", "there is no commit before")
        self.commit("second", rtl=["One", "Renamed", "More"])
        _, output = self.suites(("rtl", "a", "true"), suites=[])
        self.assertRegex(output, r"(?m)^rtl +1 ran +0 skipped +0 failed +\+2 -1 +\d+ s$")
        self.assertRegex(output, r"(?m)^host +0 ran +0 skipped +1 failed +\+0 -0 +\d+ s  NO TESTS$")
        _, output = self.suites(("rtl", "a", "true"))
        self.assertRegex(output, r"(?m)^rtl +1 ran +0 skipped +0 failed +\d+ s$", "the other suites are not compared")

    def test_a_failed_test_fails_and_shows_its_output(self):
        code, output = self.suites(("rtl", "a", "true"), ("rtl", "b", "echo the reason; false"))
        self.assertEqual(code, 1)
        self.assertIn("FAILED b\nthe reason", output)
        self.assertRegex((self.path / "reports/failed").read_text(), r"\Artl b, \d+ s: the reason\n\Z")
        self.assertEqual(self.last_line(output), "1 passed, 1 failed, 0 skipped")

    def test_a_skipped_test_is_counted_and_named(self):
        code, output = self.suites(("rtl", "a", "true"), ("rtl", "b", "echo Skipped; echo no card here"))
        self.assertEqual(code, 0, output)
        self.assertIn("skipped b: no card here", output)
        self.assertEqual(self.last_line(output), "1 passed, 0 failed, 1 skipped")

    def test_a_skipped_test_fails_where_all_are_required(self):
        code, output = self.suites(("rtl", "a", "true"), ("rtl", "b", "echo Skipped"), require_all="1")
        self.assertEqual(code, 1)
        self.assertIn("rtl b: skipped, ", (self.path / "reports/failed").read_text())
        self.assertEqual(self.last_line(output), "1 passed, 1 failed, 0 skipped")

    def test_a_suite_without_tests_fails(self):
        code, output = self.suites(("rtl", "a", "true"), suites=["rtl", "host"])
        self.assertEqual(code, 1)
        self.assertRegex(output, r"host +0 ran +0 skipped +1 failed +\d+ s +NO TESTS")

    def test_a_test_that_was_not_built_fails(self):
        code, output = self.suites(("rtl", "a", "true"), ('""', "x_NOT_BUILT", "false"))
        self.assertEqual(code, 1, output)
        self.assertIn("FAILED x_NOT_BUILT: belongs to no suite", output)
        self.assertEqual(self.last_line(output), "1 passed, 1 failed, 0 skipped")

    def test_no_tests_at_all_fail(self):
        code, output = self.suites()
        self.assertEqual(code, 1)
        self.assertRegex(self.last_line(output), r"^0 passed, [1-9]\d* failed, 0 skipped$")

    def test_a_test_of_the_sources_that_ctest_does_not_run_fails(self):
        (self.path / "tests/rtl").mkdir(parents=True)
        (self.path / "tests/rtl/fifo_test.cc").write_text("TEST(Fifo, IsEmptyAtFirst) {}\n")
        code, output = self.suites(("rtl", "a", "true"))
        self.assertEqual(code, 1, output)
        self.assertIn("FAILED tests/rtl/fifo_test.cc: in no program that ctest runs", output)
        self.assertEqual(self.last_line(output), "1 passed, 1 failed, 0 skipped")


class LostTests(Folder):
    """`scripts/test_sources.py` on made-up sources and what ctest has of them."""

    PARTS = """TEST(Fifo, IsEmptyAtFirst) {}
TEST_F(FifoTest, KeepsOrder) {}
TEST_P(
    Widths, Fit) {}
#if EXTRA
TEST(Fifo, Extra) {}
#endif
"""

    def setUp(self):
        super().setUp()
        self.build = self.path / "build"
        self.build.mkdir()
        for program in ("fifo_test", "deep_fifo_test"):  # ctest lists those that are there.
            self.program(program, "true")

    def lost(self, *registered, programs=("fifo_test",), sanitized=False, source=PARTS):
        """Of one source in `programs`; `registered` are (program, name)."""
        where = self.path / "tests/rtl/fifo_test.cc"
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(source)
        (self.build / "compile_commands.json").write_text(json.dumps([
            {"file": str(where), "command": "c++ -include CMakeFiles/headers.dir/cmake_pch.hxx"
                                            f" -o tests/CMakeFiles/{program}.dir/fifo_test.cc.o -c {where}"}
            for program in programs]))
        (self.build / "CTestTestfile.cmake").write_text("".join(
            f'add_test([=[{program}{name}]=] "{self.path}/bin/{program}" "--gtest_filter={name}")\n' if name else
            f'add_test({program}_NOT_BUILT {program}_NOT_BUILT)\n' for program, name in registered))
        return test_sources.lost(self.path, self.build, sanitized)

    def all_but(self, *names, program="fifo_test"):
        return [(program, name) for name in ("Fifo.IsEmptyAtFirst", "FifoTest.KeepsOrder", "All/Widths.Fit/3",
                                             "Fifo.Extra") if name not in names]

    def test_all_that_ctest_has_is_not_lost(self):
        self.assertEqual(self.lost(*self.all_but()), [])

    def test_each_kind_of_test_that_is_missing_is_named(self):
        for name, shown in (("Fifo.IsEmptyAtFirst", "Fifo.IsEmptyAtFirst"), ("All/Widths.Fit/3", "Widths.Fit"),
                            ("FifoTest.KeepsOrder", "FifoTest.KeepsOrder"), ("Fifo.Extra", "Fifo.Extra")):
            with self.subTest(name=name):
                self.assertEqual(self.lost(*self.all_but(name)), [f"tests/rtl/fifo_test.cc: {shown}"])

    def test_a_source_in_no_program_is_named(self):
        self.assertEqual(self.lost(programs=()), ["tests/rtl/fifo_test.cc: in no program that ctest runs"])

    def test_a_source_of_two_programs_has_its_tests_in_both(self):
        programs = ("fifo_test", "deep_fifo_test")
        deep = self.all_but("FifoTest.KeepsOrder", "Fifo.Extra", program="deep_fifo_test")
        self.assertEqual(self.lost(*self.all_but(), *deep, programs=programs),
                         ["tests/rtl/fifo_test.cc: FifoTest.KeepsOrder"], "Extra stands in an #if")

    def test_a_program_that_was_not_built_is_for_ctest_to_report(self):
        self.assertEqual(self.lost(("fifo_test", None)), [])

    def test_with_sanitizers_programs_may_be_left_out_and_tests_not(self):
        self.assertEqual(self.lost(sanitized=True), [])
        self.assertEqual(self.lost(*self.all_but("FifoTest.KeepsOrder", "Fifo.Extra"), sanitized=True),
                         ["tests/rtl/fifo_test.cc: FifoTest.KeepsOrder"])

    def test_methods_of_python_tests_are_found(self):
        where = self.path / "tests/tools/tool_test.py"
        where.parent.mkdir(parents=True)
        where.write_text("class Tool:\n    def test_a(self): pass\n    def test_b(self): pass\n    def help(self): pass\n")
        listing = f'add_test(Tool.test_a "python3" "-B" "{where}" "-v" "Tool.test_a")\n'
        self.lost()
        (self.path / "tests/rtl/fifo_test.cc").unlink()
        (self.build / "CTestTestfile.cmake").write_text(listing)
        self.assertEqual(test_sources.lost(self.path, self.build, False), ["tests/tools/tool_test.py: Tool.test_b"])
        self.assertEqual(test_sources.lost(self.path, self.build, True), [])

    def test_every_source_whose_tests_run_elsewhere_is_there(self):
        for path in test_sources.RUN_ELSEWHERE:
            self.assertTrue((ROOT / path).exists(), path)


class CommitBefore(Commits):
    """What `scripts/test_sources.py` says of the tests of the commit before."""

    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        self.commit("first", rtl=["One", "Two"], host=["Three"])

    def compare(self):
        lines, fewer, self.changes = test_sources.compare(self.path)
        return "\n".join(lines), fewer

    def test_the_first_commit_has_none(self):
        self.assertEqual(self.compare(), ("no commit before this one to compare the tests with: a shallow clone", False))

    def test_added_and_renamed_tests_are_counted(self):
        self.commit("second", rtl=["One", "Renamed", "More"])
        text, fewer = self.compare()
        self.assertFalse(fewer)
        self.assertRegex(text, r"^rtl: 2 tests more and 1 fewer than in [0-9a-f]{10}\n  gone: A.Two of a_test$")
        self.assertEqual(self.changes, {"rtl": (2, 1), "host": (0, 0)})

    def test_a_commit_with_the_same_tests_says_so(self):
        self.commit("second", host=["Three"], driver=[])
        text, fewer = self.compare()
        self.assertFalse(fewer)
        self.assertRegex(text, r"^the tests of [0-9a-f]{10}, none more and none fewer$")

    def test_fewer_tests_in_a_suite_fail(self):
        self.commit("second", rtl=["One"], host=["Three", "Four"])
        text, fewer = self.compare()
        self.assertTrue(fewer)
        self.assertIn("gone: A.Two of a_test", text)
        self.assertIn("FEWER TESTS in rtl: the commit message must give the reason in a line `Removes-tests: ...`", text)

    def test_a_reason_in_the_commit_suffices(self):
        self.commit("second\n\nRemoves-tests: Two is part of One.\n", rtl=["One"])
        text, fewer = self.compare()
        self.assertFalse(fewer)
        self.assertIn("gone: A.Two of a_test\n  Removes-tests: Two is part of One.", text)

    def test_changes_that_are_not_committed_are_compared_with_the_last_commit(self):
        self.commit("second", rtl=["One", "Two", "Three"])
        (self.path / "tests/rtl/a_test.cc").write_text("TEST(A, One) {}\n")
        text, fewer = self.compare()
        self.assertFalse(fewer, "no commit yet that could give a reason")
        self.assertIn("0 tests more and 2 fewer", text)
        self.assertIn("FEWER TESTS", text)

    def test_a_folder_without_commits_is_not_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(test_sources.compare(pathlib.Path(folder)),
                             (["no commit to compare the tests with"], False, None))


class Make(unittest.TestCase):
    def test_alone_lists_the_targets_and_does_nothing_else(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
        run = subprocess.run(["make", "-C", ROOT, "--no-print-directory"], capture_output=True, text=True, env=env)
        self.assertEqual(run.returncode, 0, run.stderr)
        targets = [line.split()[0] for line in run.stdout.splitlines()]
        self.assertEqual(targets, ["help", "packages", "build", "install", "test", "test-long", "test-asan", "test-tsan",
                                   "one-definition", "test-debug", "test-vm", "test-vm-iommufd", "conformance", "mutants", "demo",
                                   "lint", "architecture", "contract", "performance", "bench", "bench-check", "fuzz", "soak", "coverage", "synth", "clean"])
        for line in run.stdout.splitlines():
            self.assertGreaterEqual(len(line.split()), 3, line)

    # Of each target: purposes of packages.txt, whether it needs the tests configured, what it builds.
    BUILDS = {
        "build": ("build,tests,figures", True, "all"),
        "install": ("build", False, "heddle_installed"),
        "conformance": ("build,tests,conformance", True,
                        "heddle heddle_fi heddle-soft heddle-conformance heddle-sim"),
        "mutants": ("build,tests", True, "heddle-conformance"),
        "demo": ("build,demo", False, "heddle heddle_fi heddle-sim heddle_perf"),
        "test-long": ("build,tests,demo", True, "heddle heddle_fi heddle-soft heddle-sim heddle-wire clients_endpoint"),
        "soak": ("build", False, "heddle_differential"),
        "bench": ("build", False, "heddle_measure_provider heddle_fi heddle-soft"),
        "bench-check": ("build,tests,figures", True, "heddle_figures"),
        "test-vm": ("build,tests,vm", True, "heddle heddle_fi heddle_tool heddle-soft heddle-nicd guest_vfio_test "
                    "guest_failure_test guest_remap_test rdm_msg_test rma_test"),
    }

    def test_each_target_builds_and_installs_only_what_it_needs(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
        for target, (purposes, tests, built) in self.BUILDS.items():
            with self.subTest(target=target):
                run = subprocess.run(["make", "-C", ROOT, "-n", "--no-print-directory", target, "BUILD=b", "JOBS=3"],
                                     capture_output=True, text=True, env=env)
                self.assertEqual(run.returncode, 0, run.stderr)
                commands = run.stdout.replace("\\\n", " ")
                self.assertEqual([line.split() for line in commands.splitlines() if "scripts/build" in line],
                                 [f"scripts/build {'--tests ' * tests}b 3 {purposes} {built}".split()])
                self.assertNotIn("scripts/packages", commands)


class Build(Folder):
    """`scripts/build` with stand-ins for CMake and the look at packages."""

    def setUp(self):
        super().setUp()
        self.program("dpkg-query", 'echo "install ok installed"')
        self.program("cmake", f'echo "$*" >>{self.path}/cmake\ncase $1 in\n-S) touch "$4/CMakeCache.txt" "$4/build.ninja"'
                     f' ;;\n*) cat {self.path}/ninja\ntest ! -e {self.path}/works || python3 {self.path}/works ;;\nesac\n'
                     f'test ! -e {self.path}/fails')
        (self.path / "ninja").write_text("[0/2] Re-checking globbed directories...\n[1/2] Building a\n[2/2] Linking b\n")
        self.build = self.path / "build"

    def run_build(self, *options, purposes="build", targets=("a", "b")):
        env = {**os.environ, "PATH": f"{self.path}/bin:{os.environ['PATH']}"}
        run = subprocess.run([ROOT / "scripts/build", *options, self.build, "2", purposes, *targets], capture_output=True,
                             text=True, env=env)
        log = self.path / "cmake"
        commands = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return run, commands

    def configuring(self, *options):
        return " ".join(f"-S . -B {self.build} -G Ninja".split() + list(options))

    def building(self):
        return f"--build {self.build} -j 2 --target a b"

    def test_configures_without_tests_once(self):
        run, commands = self.run_build()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(commands, [self.configuring("-DHEDDLE_TESTS=OFF"), self.building()])
        _, commands = self.run_build()
        self.assertEqual(commands, [self.building()])

    def test_tests_that_were_configured_stay(self):
        _, commands = self.run_build("--tests")
        self.assertEqual(commands, [self.configuring("-DHEDDLE_TESTS=ON"), self.building()])
        _, commands = self.run_build()
        self.assertEqual(commands, [self.building()])
        (self.build / "build.ninja").unlink()
        _, commands = self.run_build()
        self.assertEqual(commands, [self.configuring(), self.building()])

    def test_tests_are_added_where_there_were_none(self):
        self.run_build()
        _, commands = self.run_build("--tests")
        self.assertEqual(commands, [self.configuring("-DHEDDLE_TESTS=ON"), self.building()])

    def test_shows_the_progress_and_leaves_what_it_took(self):
        run, _ = self.run_build()
        self.assertIn("[1/2] Building a\n[2/2] Linking b\n", run.stdout)
        figures = dict(line.split() for line in (self.build / "reports/build").read_text().splitlines())
        self.assertEqual(sorted(figures), ["build_s", "cpu_s", "packages_s", "steps"])
        self.assertEqual(figures["steps"], "2")
        (self.path / "ninja").write_text("[0/2] Re-checking globbed directories...\nninja: no work to do.\n")
        self.run_build()
        self.assertIn("steps 0\n", (self.build / "reports/build").read_text())

    def test_counts_the_cpu_time_of_the_build(self):
        (self.path / "works").write_text("import time\nwhile time.process_time() < 2: pass\n")
        self.run_build()
        figures = dict(line.split() for line in (self.build / "reports/build").read_text().splitlines())
        self.assertGreaterEqual(int(figures["cpu_s"]), 2)

    def test_a_build_that_fails_fails(self):
        (self.path / "fails").touch()
        run, commands = self.run_build()
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(commands, [self.configuring("-DHEDDLE_TESTS=OFF")])
        (self.path / "fails").unlink()
        self.run_build()
        (self.path / "fails").touch()
        run, _ = self.run_build()
        self.assertNotEqual(run.returncode, 0)

    def test_an_unknown_purpose_fails(self):
        run, commands = self.run_build(purposes="build,games")
        self.assertEqual((run.returncode, commands), (1, []))
        self.assertIn("no purpose 'games'", run.stderr)

    def test_too_few_arguments_show_the_usage(self):
        run, _ = self.run_build(targets=())
        self.assertEqual(run.returncode, 2)
        self.assertIn("Usage: build [--tests] BUILD_DIR JOBS PURPOSES TARGET...", run.stderr)

    def test_the_product_is_configured_without_googletest(self):
        """By CMake itself."""
        run = subprocess.run(["cmake", "-S", ROOT, "-B", self.build, "-G", "Ninja", "-DHEDDLE_TESTS=OFF",
                              "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON"],
                             capture_output=True, text=True, env={**os.environ, "CLICOLOR_FORCE": "0"})
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        listing = subprocess.run(["ninja", "-C", self.build, "-t", "targets", "all"], capture_output=True, text=True,
                                 check=True).stdout
        targets = {line.split(":")[0] for line in listing.splitlines()}
        for line in (purpose_built for _, tests, purpose_built in Make.BUILDS.values() if not tests):
            self.assertLessEqual(set(line.split()), targets)
        self.assertNotIn("sim_faults_test", targets)


class Demo(Folder):
    """What `scripts/demo` says of its run."""

    def setUp(self):
        super().setUp()
        loader = importlib.machinery.SourceFileLoader("demo", str(ROOT / "scripts/demo"))
        self.demo = importlib.util.module_from_spec(importlib.util.spec_from_loader("demo", loader))
        sys.dont_write_bytecode = True
        loader.exec_module(self.demo)

    def summary(self, **totals):
        totals = {"rx_messages": 1, "tx_frames": 2, "tx_retransmissions": 0, "rx_nacks": 0, "drop_crc": 0} | totals
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.demo.summary(totals, [], self.path / "demo", 12.4)
        return self.demo.unasked(totals), out.getvalue()

    def test_retransmissions_that_nothing_asked_for_are_told_from_others(self):
        unasked, text = self.summary()
        self.assertEqual(unasked, 0)
        self.assertRegex(text, r"retransmissions +0\n")
        unasked, text = self.summary(tx_retransmissions=1, rx_nacks=1)
        self.assertEqual(unasked, 0)
        self.assertRegex(text, r"retransmissions +1, 1 after a NACK: no receive buffer yet\n")
        self.assertEqual(self.summary(tx_retransmissions=3, rx_nacks=1)[0], 2)

    def test_what_the_build_took_is_shown(self):
        (self.path / "reports").mkdir()
        (self.path / "reports/build").write_text("packages_s 40\nsteps 204\nbuild_s 200\ncpu_s 390\n")
        text = self.summary()[1]
        self.assertRegex(text, r"build +204 steps, 200 s, of CPU time 390 s\n")
        self.assertRegex(text, r"installation of packages +40 s\n")
        self.assertRegex(text, r"wall time of make demo +212 s, with packages 252 s\n")


class Help(unittest.TestCase):
    def test_each_program_with_options_tells_its_usage(self):
        programs = [p for p in sorted((ROOT / "scripts").iterdir())
                    if p.is_file() and b"argparse" in p.read_bytes()]
        self.assertGreater(len(programs), 3)
        for program in programs:
            with self.subTest(program=program.name):
                run = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=300)
                self.assertEqual((run.returncode, run.stderr), (0, ""))
                self.assertIn(program.name, run.stdout)


if __name__ == "__main__":
    unittest.main()
