#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/libfabric-requirements.md names tests that exist, for every number."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TABLE = ROOT / "docs/libfabric-requirements.md"
NUMBERS = [*range(1, 42), 47, 50, 53, 59, *range(69, 85),
           *range(86, 114), 116, 117, *range(120, 130), 131, 133,
           *range(137, 173), *range(175, 181), *range(201, 209),
           *range(214, 222), *range(257, 264), *range(285, 294)]


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

    def test_every_number_has_one_row_in_order(self):
        self.assertEqual([number for number, _, _ in rows()], NUMBERS)

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
