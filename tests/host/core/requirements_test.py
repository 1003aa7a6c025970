#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/libfabric-requirements.md names tests that exist, for what the conformance program does not show."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TABLE = ROOT / "docs/libfabric-requirements.md"
CASES = ROOT / "tests/conformance"


def judged():
    """Numbers of the requirements that heddle-conformance shows."""
    numbers = set()
    for path in CASES.glob("*_cases.cc"):
        if path.name != "runner_cases.cc":
            for found in re.findall(r"^CONFORMANCE_TEST\(\s*\w+,\s*\w+,([\d,\s]+)\)", path.read_text(), re.MULTILINE):
                numbers |= {int(number) for number in found.split(",")}
    return numbers


def rows():
    for line in TABLE.read_text().splitlines():
        match = re.fullmatch(r"\| (\d+) \| (.+) \| (.+) \|", line)
        if match:
            yield int(match[1]), match[2], match[3]


def tests():
    names = set()
    for path in (ROOT / "tests").rglob("*.cc"):
        names |= {".".join(found) for found in re.findall(
            r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text(),
            re.MULTILINE)}
    for path in (ROOT / "tests").rglob("*_test.py"):
        case = None
        for line in path.read_text().splitlines():
            if match := re.match(r"class (\w+)\(", line):
                case = match[1]
            elif match := re.match(r"    def (test\w+)\(", line):
                names.add(f"{case}.{match[1]}")
    return names


class Requirements(unittest.TestCase):

    def test_rows_are_in_order_and_once(self):
        numbers = [number for number, _, _ in rows()]
        self.assertGreater(len(numbers), 0)
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_no_row_is_shown_by_the_conformance_program_too(self):
        self.assertGreater(len(judged()), 150)
        self.assertEqual(judged() & {number for number, _, _ in rows()}, set())

    def test_every_state_is_a_test_or_a_reason(self):
        for number, _, state in rows():
            with self.subTest(number=number):
                self.assertRegex(state, r"^(`|n/a: \w|missing: \w)")

    def test_every_test_named_exists(self):
        known = tests()
        for number, _, state in rows():
            for name in re.findall(r"`(\w+\.\w+)`", state):
                with self.subTest(number=number):
                    self.assertIn(name, known)


if __name__ == "__main__":
    unittest.main()
