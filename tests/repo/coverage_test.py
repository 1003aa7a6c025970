# SPDX-License-Identifier: Apache-2.0
"""`scripts/coverage`: what it counts, and that its page is of today's blocks."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True


def load():
    loader = importlib.machinery.SourceFileLoader("coverage_script", str(ROOT / "scripts/coverage"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("coverage_script", loader))
    loader.exec_module(module)
    return module


COVERAGE = load()


def point(block, line, kind, what, count, instance="TOP.a"):
    keys = {"f": f"/x/{block}.sv", "l": line, "n": 3, "page": f"v_{kind}/{block}", "o": what, "h": instance}
    return "C '" + "".join(f"\x01{k}\x02{v}" for k, v in keys.items()) + f"' {count}\n"


class Coverage(unittest.TestCase):
    def points(self, **programs):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "reports").mkdir()
            for name, lines in programs.items():
                (build / "reports" / f"{name}.dat").write_text("# SystemC::Coverage-3\n" + "".join(lines))
            return COVERAGE.read(build)

    def test_a_line_that_one_instance_of_one_program_reached_is_reached(self):
        points = self.points(
            one=[point("a", 1, "line", "if", 0), point("a", 1, "line", "if", 2, "TOP.b"), point("a", 2, "line", "else", 0)],
            two=[point("a", 2, "line", "else", 1), point("a", 3, "line", "block", 0)])
        self.assertEqual(COVERAGE.share(points["a"], "line"), 66)
        self.assertIsNone(COVERAGE.share(points["a"], "toggle"))

    def test_each_bit_of_a_signal_counts(self):
        points = self.points(one=[point("a", 1, "toggle", f"data[{i}]", i) for i in range(4)])
        self.assertEqual(COVERAGE.share(points["a"], "toggle"), 75)

    def test_a_low_block_needs_a_reason_and_a_good_one_must_have_none(self):
        low = self.points(one=[point("a", 1, "line", "if", 0)])
        good = self.points(one=[point("a", 1, "line", "if", 1)])
        self.assertIn("nothing in the notes", COVERAGE.page_text(["a"], low, {})[1][0])
        text, complaints = COVERAGE.page_text(["a"], low, {"a": "the rest"})
        self.assertEqual(complaints, [])
        self.assertIn("| `a` | 0 | - | the rest |", text)
        self.assertIn("a note, but", COVERAGE.page_text(["a"], good, {"a": "the rest"})[1][0])

    def test_figures_are_added_where_there_are_none(self):
        page = "Programs: one.\n\n| `a` | - | - | not counted yet |\n| `b` | 90 | 91 |  |\n| `c` | - | - | not counted yet |\n"
        points = self.points(two=[point("a", 1, "line", "if", 1), point("b", 1, "line", "if", 0)])
        text, complaints = COVERAGE.added_text(page, points, {}, ["two"])
        self.assertEqual(complaints, [])
        self.assertEqual(text, "Programs: one, two.\n\n| `a` | 100 | - |  |\n| `b` | 90 | 91 |  |\n"
                               "| `c` | - | - | not counted yet |\n")
        low = self.points(two=[point("a", 1, "line", "if", 0)])
        self.assertIn("nothing in the notes", COVERAGE.added_text(page, low, {}, ["two"])[1][0])

    def test_a_program_runs_in_parts_and_only_once_until_it_is_built_again(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "tests").mkdir()
            program = build / "tests" / "one_test"
            counters = build / "counters"
            counters.write_text("# SystemC::Coverage-3\n" + point("a", 1, "line", "if", 1))
            program.write_text('#!/bin/sh\necho "$GTEST_SHARD_INDEX" >>"${0%/*}/../shards"\n'
                               'cp "${0%/*}/../counters" "$HEDDLE_COVERAGE_DIRECTORY/$$.dat"\n'
                               '[ ! -e "${0%/*}/../broken" ] || [ "$GTEST_SHARD_INDEX" != 0 ]\n')
            program.chmod(0o755)
            shards = [str(shard) for shard in range(os.cpu_count())]
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                self.assertEqual(COVERAGE.run(build, ["one_test"], again=False), 0)
                self.assertNotIn("not run", printed.getvalue())
                self.assertEqual(COVERAGE.run(build, ["one_test"], again=False), 0)
            self.assertIn("one_test: not run", printed.getvalue())
            self.assertEqual(sorted((build / "shards").read_text().split(), key=int), shards)
            counts = COVERAGE.read(build)["a"]
            self.assertEqual(list(counts.values()), [len(shards)])
            # One part that fails is a failure of the program, whose counters do not count.
            (build / "broken").touch()
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                self.assertEqual(COVERAGE.run(build, ["one_test"]), 1)
            self.assertIn("one_test: ", printed.getvalue())
            self.assertIn("FAILED (1)", printed.getvalue())
            self.assertFalse(COVERAGE.read(build))

    def test_a_block_that_nothing_counted_is_a_complaint(self):
        self.assertEqual(COVERAGE.page_text(["a"], {}, {})[1], ["a: no program counted it"])

    def test_the_page_has_a_row_for_every_block_there_is(self):
        rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/coverage.md").read_text(), re.M)
        self.assertEqual(rows, COVERAGE.blocks())


if __name__ == "__main__":
    unittest.main()
