# SPDX-License-Identifier: Apache-2.0
"""The expected verdicts, and the comparison with them."""

import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build")).resolve()
sys.path.insert(0, str(HERE))

import judge  # noqa: E402

NAMES = [column.name for column in judge.COLUMNS]


def same(verdict):
    return dict.fromkeys(NAMES, verdict)


class Expectations(unittest.TestCase):
    def test_every_requirement_has_a_verdict_of_every_provider(self):
        for number, table in judge.expectations().items():
            for name, verdict in judge.verdicts_of(table).items():
                self.assertIn(verdict, judge.VERDICTS, f"{number}: {name}")

    def test_every_difference_has_its_sentence(self):
        for number, table in judge.expectations().items():
            self.assertEqual(judge.missing_sentences(table), [], number)

    def test_requirement_without_test_is_expected_without(self):
        for number, row in judge.listed(BUILD).items():
            verdicts = judge.verdicts_of(judge.expectations()[number])
            for name in NAMES:
                self.assertEqual(verdicts[name] == "no test", not row["tests"], f"{number}: {name}")

    def test_sentence_names_tests_that_exist(self):
        known = set()
        for path in (ROOT / "tests").rglob("*.cc"):
            known |= {".".join(found) for found in
                      re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text(), re.MULTILINE)}
        for number, table in judge.expectations().items():
            for name in re.findall(r"`(\w+\.\w+)`", table.get("untested", "")):
                self.assertIn(name, known, number)

    def test_page_is_the_generated_one(self):
        self.assertEqual((ROOT / "docs/conformance.md").read_text(), judge.page(judge.expectations(), judge.listed(BUILD)),
                         "make conformance writes it")

    def test_compact_tables_are_exact(self):
        seed = int(os.environ.get("HEDDLE_TEST_SEED", random.randrange(1 << 32)))
        print(f"HEDDLE_TEST_SEED={seed}")
        generator = random.Random(seed)
        for _ in range(500):
            verdicts = {name: generator.choice(judge.VERDICTS) for name in NAMES}
            self.assertEqual(judge.verdicts_of(judge.compact(verdicts)), verdicts)
        self.assertEqual(judge.compact(same("pass")), {"all": "pass"})

    def test_numbers_become_ranges(self):
        self.assertEqual(judge.ranges([1, 2, 3, 5, 7, 8]), "1-3,5,7-8")
        self.assertEqual(judge.numbers("1-3,5,7-8"), {1, 2, 3, 5, 7, 8})

    def test_bad_files_are_refused(self):
        tables = {number: {"all": "pass"} for number in range(1, judge.REQUIREMENTS + 1)}
        for change, text in (({"all": "good"}, "no verdict good"), ({"nosuch": "pass"}, "nosuch"), (None, "not a table")):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "expected.toml"
                changed = {k: v for k, v in tables.items() if k != 7} | ({7: change} if change else {})
                judge.write_expectations(changed, path)
                with self.assertRaisesRegex(judge.Failure, text):
                    judge.expectations(path)
                judge.write_expectations(tables, path)
                self.assertEqual(judge.expectations(path), tables)


class Sentences(unittest.TestCase):
    def needed(self, **verdicts):
        changed = same("pass") | {name.replace("_", " "): verdict for name, verdict in verdicts.items()}
        return " ".join(judge.missing_sentences(judge.compact(changed)))

    def test_pass_of_all_needs_none(self):
        self.assertEqual(self.needed(), "")
        self.assertIn("no use for", " ".join(judge.missing_sentences({"all": "pass", "ours": "Text."})))

    def test_stock_that_does_not_pass_needs_one(self):
        self.assertIn("needs a sentence stock_differs", self.needed(shm="not offered"))

    def test_test_that_no_stock_provider_passes_needs_one(self):
        self.assertIn("needs a sentence right", " ".join(judge.missing_sentences(
            {"all": "pass", "stock": "fail", "stock_differs": "Text."})))

    def test_requirement_without_test_needs_one(self):
        self.assertIn("needs a sentence untested", " ".join(judge.missing_sentences({"all": "no test"})))

    def test_failure_of_ours_needs_one(self):
        found = same("pass") | {"soft plug-in": "fail"}
        self.assertEqual(judge.missing_sentences(judge.compact(found)), ["needs a sentence ours"])


class Comparison(unittest.TestCase):
    def rows(self, **changes):
        return {number: {"number": number, "meaning": "m", "tests": ["T.N"], "reason": "why",
                         "verdict": changes.get(f"n{number}", "pass")} for number in range(1, 4)}

    def test_difference_either_way_is_a_line(self):
        tables = {1: {"all": "pass"}, 2: {"all": "pass", "shm": "fail"}, 3: {"all": "pass"}}
        self.assertEqual(judge.compare({"shm": self.rows(n2="fail")}, tables), [])
        worse = judge.compare({"shm": self.rows(n1="crashed", n2="fail")}, tables)
        self.assertEqual(len(worse), 1)
        self.assertIn("shm: 1: crashed, expected pass", worse[0])
        better = judge.compare({"shm": self.rows()}, tables)
        self.assertEqual(len(better), 1)
        self.assertIn("shm: 2: pass, expected fail", better[0])

    def test_recorded_verdicts_are_expected_and_sentences_stay(self):
        found = {"sockets": {number: {"verdict": "pass"} for number in range(1, judge.REQUIREMENTS + 1)}}
        found["sockets"][5]["verdict"] = "hung"
        before = {5: {"all": "pass", "right": "Text."}}
        after = judge.record(found, before)
        self.assertEqual(judge.verdicts_of(after[5]), same("pass") | {"sockets": "hung"})
        self.assertEqual(after[5]["right"], "Text.")
        self.assertEqual(judge.verdicts_of(after[6]), same("no test") | {"sockets": "pass"})

    def test_unknown_provider_names_those_there_are(self):
        done = subprocess.run([sys.executable, HERE / "judge.py", "--build", BUILD, "--providers", "nosuch"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"nosuch: there are .*shm.*soft")


if __name__ == "__main__":
    unittest.main()
