# SPDX-License-Identifier: Apache-2.0
"""The profiles of UET name tests that exist, and the generator refuses rows that could mean nothing."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build"))
sys.path[:0] = [str(ROOT / "hw/contract"), str(ROOT / "scripts")]

import test_sources  # noqa: E402
from generator import profile  # noqa: E402

ROW = """[[profile]]
name = "Some"
doc = "Few."
[[profile.row]]
id = "A-1"
feature = "One"
"""


def missing(profiles, registered):
    """The names of tests that are in no test program, or not on the device of their column."""
    known = {test_sources.REGISTERED.fullmatch(name).group(1, 2) for name in registered
             if test_sources.REGISTERED.fullmatch(name)}
    for one in profiles:
        for row in one["row"]:
            for device in profile.DEVICES:
                for name in row.get(device, ()):
                    if re.match(r"(soft|rtl)\.", name):
                        if not name.startswith(device + ".") or name not in registered:
                            yield f"{row['id']}: {name}"
                    elif tuple(name.split(".")) not in known:
                        yield f"{row['id']}: {name}"


class UetProfile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        listing = subprocess.run(["ctest", "--test-dir", str(BUILD), "-N"], capture_output=True, text=True, check=True)
        cls.registered = set(re.findall(r"Test +#\d+: (\S+)", listing.stdout))
        cls.profiles = profile.load(ROOT / "hw/contract/uet_profile.toml")

    def test_each_row_names_tests_that_run(self):
        self.assertEqual(list(missing(self.profiles, self.registered)), [])

    def test_the_front_page_has_the_count(self):
        counts = {profile.count(self.profiles[0], device) for device in profile.DEVICES}
        self.assertEqual({int(n) for n in re.findall(r"(\d+) of the 20 rows", (ROOT / "README.md").read_text())}, counts)

    def test_a_name_that_no_test_has_is_found(self):
        for name in ("soft.MessageTest.NoSuchTest", "rtl.MessageTest.CarriesEverySizeUnchanged", "AcceptTest.NoSuch"):
            row = {"id": "A-1", "soft": [name]}
            self.assertEqual(list(missing([{"row": [row]}], self.registered)), [f"A-1: {name}"])

    def test_ai_base_has_its_twenty_rows(self):
        base = self.profiles[0]
        self.assertEqual(base["name"], "AI Base")
        self.assertEqual([row["id"] for row in base["row"]],
                         [f"SES-{n}" for n in (1, 2, 3, 6, 7, 9, 15, 16, 19, 21, 26, 29, 33, 35, 38)]
                         + [f"PDS-{n}" for n in (1, 2, 4, 5)] + ["CMS-1"])


class Refusals(unittest.TestCase):
    def load(self, rows):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "profile.toml"
            path.write_text(ROW + rows)
            return profile.load(path)

    def test_a_row_says_what_a_device_has_or_lacks(self):
        self.assertEqual(profile.count(self.load('soft = ["A.B"]\nmissing = "on rtl"\n')[0], "rtl"), 0)
        for rows, message in (("", "names no test for soft, and not what is missing"),
                              ('soft = ["A.B"]\n', "names no test for rtl"),
                              ('soft = ["A.B"]\nrtl = ["A.B"]\nmissing = "all"\n', "nothing is missing"),
                              ('missing = "all"\nsofd = []\n', "unknown key sofd"),
                              ('missing = "all"\n[[profile.row]]\nid = "A-1"\nmissing = "all"\n', "stands twice")):
            with self.subTest(rows=rows), self.assertRaisesRegex(profile.ProfileError, message):
                self.load(rows)


if __name__ == "__main__":
    unittest.main()
