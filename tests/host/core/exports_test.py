#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the two shared objects export, need and are called.

HEDDLE_LIBRARIES names the directory that they were built into.
"""

import os
import pathlib
import re
import subprocess
import unittest

DIRECTORY = pathlib.Path(os.environ.get("HEDDLE_LIBRARIES", "build/lib"))
LIBRARY = DIRECTORY / "libheddle.so.1"
PLUGIN = DIRECTORY / "libfabric/libheddle-fi.so"
DROP_IN = DIRECTORY / "heddle/drop-in/libfabric.so.1"

# Source: libfabric 1.17.0-3 of Debian 12, nm -D --defined-only.
STOCK_EXPORTS = {
    "fi_getinfo@@FABRIC_1.3", "fi_getinfo@FABRIC_1.2", "fi_getinfo@FABRIC_1.1",
    "fi_getinfo@FABRIC_1.0", "fi_freeinfo@@FABRIC_1.3",
    "fi_freeinfo@FABRIC_1.2", "fi_freeinfo@FABRIC_1.1",
    "fi_freeinfo@FABRIC_1.0", "fi_dupinfo@@FABRIC_1.3",
    "fi_dupinfo@FABRIC_1.2", "fi_dupinfo@FABRIC_1.1", "fi_dupinfo@FABRIC_1.0",
    "fi_fabric@@FABRIC_1.1", "fi_fabric@FABRIC_1.0", "fi_open@@FABRIC_1.5",
    "fi_tostr_r@@FABRIC_1.4", "fi_log_ready@@FABRIC_1.6",
    "fi_version@@FABRIC_1.0", "fi_strerror@@FABRIC_1.0",
    "fi_tostr@@FABRIC_1.0", "fi_getparams@@FABRIC_1.0",
    "fi_freeparams@@FABRIC_1.0", "fi_param_define@@FABRIC_1.0",
    "fi_param_get@@FABRIC_1.0", "fi_log_enabled@@FABRIC_1.0",
    "fi_log@@FABRIC_1.0",
}
# Of libfabric 2.0. Not defaults: a program that is linked with this library
# has the headers of the version above.
NEWER_EXPORTS = {
    "fi_getinfo@FABRIC_1.7", "fi_freeinfo@FABRIC_1.7",
    "fi_dupinfo@FABRIC_1.7", "fi_getinfo@FABRIC_1.8",
    "fi_freeinfo@FABRIC_1.8", "fi_dupinfo@FABRIC_1.8",
    "fi_fabric2@@FABRIC_1.8",
}
NODES = {f"FABRIC_1.{minor}" for minor in range(9)}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


def exports(path):
    return {line.split()[-1]
            for line in run("nm", "-D", "--defined-only", path).splitlines()}


def dynamic(path, tag):
    found = re.findall(rf"\({tag}\)\s+(.*)", run("readelf", "-d", "-W", path))
    return [re.sub(r".*\[(.*)\]", r"\1", value) for value in found]


class Exports(unittest.TestCase):

    def test_library_exports_what_stock_libfabric_does(self):
        ours = {name for name in exports(LIBRARY) if name not in NODES}
        self.assertEqual(ours, STOCK_EXPORTS | NEWER_EXPORTS)

    def test_library_has_the_nodes_whose_layouts_it_implements(self):
        nodes = {name for name in exports(LIBRARY)
                 if name.startswith("FABRIC_")}
        self.assertEqual(nodes, NODES)

    def test_plugin_exports_its_entry_point_only(self):
        self.assertEqual(exports(PLUGIN), {"fi_prov_ini"})

    def test_library_is_named_after_its_abi(self):
        self.assertEqual(dynamic(LIBRARY, "SONAME"), ["libheddle.so.1"])
        self.assertNotIn("libfabric.so.1", dynamic(LIBRARY, "NEEDED"))

    def test_plugin_needs_the_core_that_loads_it(self):
        self.assertIn("libfabric.so.1", dynamic(PLUGIN, "NEEDED"))
        self.assertNotIn("libheddle.so.1", dynamic(PLUGIN, "NEEDED"))

    def test_neither_is_ever_unloaded(self):
        for path in (LIBRARY, PLUGIN):
            self.assertIn("NODELETE", " ".join(dynamic(path, "FLAGS_1")))

    def test_drop_in_is_a_relative_link_to_the_library(self):
        self.assertTrue(DROP_IN.is_symlink())
        self.assertFalse(os.path.isabs(os.readlink(DROP_IN)))
        self.assertEqual(DROP_IN.name, "libfabric.so.1")
        self.assertTrue(DROP_IN.samefile(LIBRARY))


if __name__ == "__main__":
    unittest.main()
