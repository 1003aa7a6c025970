# SPDX-License-Identifier: Apache-2.0
"""What `make install` puts where, and that it works from any place."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build")).resolve()
# Of this process alone: tests run at the same time.
STAGE = BUILD / f"reports/install-{os.getpid()}"
PLACE = STAGE / "moved"  # Where the tree is used: not where it was installed.

# Read by the checks of exports that follow.
os.environ["HEDDLE_LIBRARIES"] = str(PLACE / "lib")
sys.path.insert(0, str(ROOT / "tests/host/core"))
sys.path.insert(0, str(ROOT / "scripts/clients"))

import exports_test  # noqa: E402
import pingpong  # noqa: E402

LIBRARIES = {"lib/heddle/libheddle-soft.so", "lib/heddle/libheddle-sim.so"}
SIMULATOR = {"lib/heddle/libheddle-sim.so"}  # A component of its own.
# Of each link, where it leads.
LINKS = {"lib/libheddle.so": "libheddle.so.1", "lib/heddle/drop-in/libfabric.so.1": "../../libheddle.so.1"}
FILES = LIBRARIES | set(LINKS) | {
    "bin/heddle", "include/rdma/fi_ext_heddle.h", "lib/libfabric/libheddle-fi.so", "lib/libheddle.so.1",
    "lib/pkgconfig/heddle.pc", "share/doc/heddle/CHANGELOG.md", "share/doc/heddle/LICENSE",
    "share/doc/heddle/README.md", "share/doc/heddle/SECURITY.md", "share/heddle/heddle_uet.lua",
    "share/man/man1/heddle.1", "share/man/man7/fi_heddle.7",
}
PROGRAM = r"""
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_heddle.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  struct fi_info *info = NULL;
  int status = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info);
  if (status != 0) return fprintf(stderr, "%s\n", fi_strerror(-status)), 1;
  puts(info->fabric_attr->prov_name);
  return strcmp(FI_HEDDLE_STATISTICS, "heddle_statistics");
}
"""


def install(prefix, *options, **environment):
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix, *options], check=True, stdout=subprocess.DEVNULL,
                   env={k: v for k, v in os.environ.items() if k != "DESTDIR"} | environment)


def tree(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_symlink() or path.is_file()}


def setUpModule():
    install(STAGE / "prefix")
    (STAGE / "prefix").rename(PLACE)


def tearDownModule():
    shutil.rmtree(STAGE)


def environment(**settings):
    """Nothing of the caller's for libfabric or the loader; the device by name."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("FI_", "LD_"))}
    return clean | {"FI_HEDDLE_DEVICE": "rtl", "FI_HEDDLE_WIRE": pingpong.wire_name()} | settings


def run(*command, env=None, deadline_s=240):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=deadline_s,
                          env=env or environment(), check=False)


class InstalledExports(exports_test.Exports):
    """The same of the installed libraries as of the built ones."""

    def test_libraries_of_devices_export_their_factory_only(self):
        for name in LIBRARIES:
            self.assertEqual(exports_test.exports(PLACE / name), {"heddle_sim_identity", "heddle_sim_open"})


class Installed(unittest.TestCase):
    def test_files_are_these_and_no_others(self):
        self.assertEqual(tree(PLACE), FILES)
        links = {name: os.readlink(PLACE / name) for name in tree(PLACE) if (PLACE / name).is_symlink()}
        self.assertEqual(links, LINKS)

    def test_nothing_leads_back_to_the_build(self):
        for name in FILES - set(LINKS):
            path = PLACE / name
            if path.read_bytes()[:4] == b"\x7fELF":
                paths = exports_test.dynamic(path, "RPATH") + exports_test.dynamic(path, "RUNPATH")
                self.assertEqual(paths, ["$ORIGIN/../lib"] if name == "bin/heddle" else [], name)
            else:
                self.assertNotIn(str(BUILD), path.read_text(), name)

    def test_conformance_program_is_a_component_of_its_own(self):
        place = STAGE / "conformance"
        install(place, "--component", "conformance")
        self.assertEqual(tree(place), {"bin/heddle-conformance"})
        self.assertEqual(exports_test.dynamic(place / "bin/heddle-conformance", "RUNPATH"), [])
        env = environment(LD_LIBRARY_PATH=str(PLACE / "lib/heddle/drop-in"), FI_HEDDLE_DEVICE="soft")
        judged = run(place / "bin/heddle-conformance", "--provider", "heddle", "--require", "1,20,154", env=env)
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
        self.assertIn("heddle: 3 pass", judged.stdout)

    def test_plug_in_serves_the_stock_library(self):
        env = environment(FI_PROVIDER_PATH=str(PLACE / "lib/libfabric"))
        self.assertEqual(set(pingpong.providers(pingpong.fi_info(env, "-p", "heddle"))), {"heddle"})
        pingpong.Pingpong(env=env | {"FI_PROVIDER": "heddle"}, logs=STAGE / "plug-in", size=4097).run()

    def test_drop_in_stands_in_its_place(self):
        env = environment(LD_LIBRARY_PATH=str(PLACE / "lib/heddle/drop-in"))
        self.assertEqual(set(pingpong.providers(pingpong.fi_info(env))), {"heddle"})
        pingpong.Pingpong(env=env, logs=STAGE / "drop-in", size=4097).run()

    def test_program_is_built_with_pkg_config(self):
        source, program = STAGE / "program.c", STAGE / "program"
        source.write_text(PROGRAM)
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "heddle"], check=True, capture_output=True,
                               text=True, env=os.environ | {"PKG_CONFIG_PATH": str(PLACE / "lib/pkgconfig")}).stdout
        self.assertIn(str(PLACE / "lib/pkgconfig"), flags)
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", source, "-o", program, *flags.split()], check=True)
        result = run(program, env=environment(LD_LIBRARY_PATH=str(PLACE / "lib")))
        self.assertEqual((result.returncode, result.stdout), (0, "heddle\n"), result.stderr)

    def test_tool_finds_both_devices_beside_it(self):
        for kind in ("soft", "rtl"):
            result = run(PLACE / "bin/heddle", "info", "--json", env=environment(FI_HEDDLE_DEVICE=kind))
            self.assertEqual(result.returncode, 0, result.stderr)
            devices = json.loads(result.stdout)["devices"]
            self.assertEqual([device["device"] for device in devices if device["offered"]], [f"{kind}0"])

    def test_soft_needs_no_simulator(self):
        simulator = PLACE / "lib/heddle/libheddle-sim.so"
        away = simulator.with_name("away")
        simulator.rename(away)
        try:
            rtl = run(PLACE / "bin/heddle", "info")
            soft = environment(FI_HEDDLE_DEVICE="soft", LD_LIBRARY_PATH=str(PLACE / "lib/heddle/drop-in"))
            pingpong.Pingpong(env=soft, logs=STAGE / "soft", size=4097).run()
        finally:
            away.rename(simulator)
        self.assertEqual(rtl.returncode, 1)
        self.assertIn("not offered: libheddle-sim.so: not found", rtl.stdout)

    def test_manual_has_every_setting(self):
        params = json.loads(run(PLACE / "bin/heddle", "params", "--json").stdout)["params"]
        manual = (PLACE / "share/man/man7/fi_heddle.7").read_text()
        self.assertGreater(len(params), 10)
        for param in params:
            self.assertIn(f".B {param['name']}\n", manual)

    def test_manuals_are_without_fault(self):
        for page in ("man1/heddle.1", "man7/fi_heddle.7"):
            result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", PLACE / "share/man" / page],
                                    capture_output=True, text=True, check=True)
            self.assertEqual(result.stderr, "")


class Elsewhere(unittest.TestCase):
    def test_destdir_comes_before_the_prefix(self):
        install("/opt/heddle", DESTDIR=str(STAGE / "root"))
        self.assertEqual(tree(STAGE / "root"), {f"opt/heddle/{name}" for name in FILES})

    def test_production_component_has_no_simulator(self):
        install(STAGE / "prefix", "--component", "heddle")
        self.assertEqual(tree(STAGE / "prefix"), FILES - SIMULATOR)


if __name__ == "__main__":
    unittest.main()
