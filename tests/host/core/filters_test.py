#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The environment's say in logging, choice and settings, by stock fi_info.

HEDDLE_LIBRARIES names the directory that the libraries were built into. Each
test runs with the library in libfabric's place and with the plug-in.
"""

import os
import pathlib
import subprocess
import unittest

DIRECTORY = pathlib.Path(os.environ.get("HEDDLE_LIBRARIES", "build/lib"))
FORMS = {
    "library": {"LD_LIBRARY_PATH": str(DIRECTORY / "heddle/drop-in")},
    "plug-in": {"FI_PROVIDER_PATH": str(DIRECTORY / "libfabric")},
}


def fi_info(form, *arguments, **variables):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("FI_")}
    environment |= FORMS[form]
    environment["FI_HEDDLE_DEVICE"] = "rtl"
    environment["FI_HEDDLE_IP"] = "10.1.2.3"
    environment |= variables
    run = subprocess.run(["fi_info", *arguments], env=environment,
                         capture_output=True, text=True, timeout=300,
                         check=False)
    # What other providers say helps nobody.
    run.stdout, run.stderr = (
        "".join(line for line in text.splitlines(keepends=True)
                if "heddle" in line.lower())
        for text in (run.stdout, run.stderr))
    return run


class Filters(unittest.TestCase):

    def test_log_filters_by_provider_and_level(self):
        cases = (({"FI_LOG_LEVEL": "info"}, True),
                 ({"FI_LOG_LEVEL": "warn"}, False),
                 ({}, False),
                 ({"FI_LOG_LEVEL": "info", "FI_LOG_PROV": "heddle"}, True),
                 ({"FI_LOG_LEVEL": "info", "FI_LOG_PROV": "^heddle"}, False),
                 ({"FI_LOG_LEVEL": "info", "FI_LOG_PROV": "tcp"}, False),
                 ({"FI_LOG_LEVEL": "info", "FI_LOG_SUBSYS": "core"}, True),
                 ({"FI_LOG_LEVEL": "info", "FI_LOG_SUBSYS": "cq"}, False))
        for form in FORMS:
            for variables, is_logged in cases:
                with self.subTest(form=form, **variables):
                    run = fi_info(form, "-p", "heddle", **variables)
                    self.assertEqual("device rtl0 offered" in run.stderr,
                                     is_logged, run.stderr)

    def test_settings_are_listed_with_range_default_and_value(self):
        for form in FORMS:
            with self.subTest(form=form):
                out = fi_info(form, "-e", FI_HEDDLE_SEED="42").stdout
                out = out.replace("\0", "")  # fi_info quotes values so.
                self.assertIn("# FI_HEDDLE_SEED: size_t\n", out)
                self.assertIn("FI_HEDDLE_SEED=42\n", out)
                self.assertIn("Takes 0 to 18446744073709551615 (default: 1)",
                              out)

    def test_settings_are_found_by_a_part_of_their_name(self):
        for form in FORMS:
            with self.subTest(form=form):
                out = fi_info(form, "-g", "HEDDLE_SEED").stdout
                self.assertIn("FI_HEDDLE_SEED", out)
                self.assertNotIn("FI_HEDDLE_IP", out)

    def test_bad_value_is_named_and_nothing_is_offered(self):
        for form in FORMS:
            with self.subTest(form=form):
                run = fi_info(form, "-p", "heddle", FI_HEDDLE_LOSS="1.5",
                              FI_LOG_LEVEL="warn")
                self.assertIn("FI_HEDDLE_LOSS=1.5 is not accepted; it takes "
                              "0 to 1", run.stderr)
                self.assertNotIn("provider: heddle", run.stdout)
                self.assertNotEqual(run.returncode, 0)

    def test_unknown_setting_is_warned_of_and_ignored(self):
        for form in FORMS:
            with self.subTest(form=form):
                run = fi_info(form, "-p", "heddle", FI_HEDDLE_DEVISE="rtl",
                              FI_LOG_LEVEL="warn")
                self.assertIn("FI_HEDDLE_DEVISE is not a setting", run.stderr)
                self.assertIn("provider: heddle", run.stdout)

    def test_reason_of_a_refusal_is_told(self):
        for form in FORMS:
            with self.subTest(form=form):
                run = fi_info(form, "-p", "heddle", "-t", "FI_EP_MSG",
                              FI_LOG_LEVEL="info")
                self.assertIn("device rtl0 ruled out by ep_attr->type: wanted "
                              "FI_EP_MSG, offered FI_EP_RDM", run.stderr)


if __name__ == "__main__":
    unittest.main()
