# SPDX-License-Identifier: Apache-2.0
"""heddle list, bind, unbind, reset, regs, selftest and stats --watch.

HEDDLE_BUILD names the build directory.
"""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import tool_test  # noqa: E402
from tool_test import run  # noqa: E402

SPEC = tool_test.frames.SPEC
IDS = {p["name"]: p["value"] for p in SPEC["parameter"] if p["name"].startswith("pci_")}


class Pci(unittest.TestCase):
    """On a sysfs of files: nothing happens when they are written."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.pci = self.root / "bus/pci"
        (self.pci / "devices").mkdir(parents=True)
        (self.pci / "drivers").mkdir()
        (self.pci / "drivers_probe").touch()
        self.add_driver("vfio-pci")
        self.add("0000:03:00.0", IDS["pci_vendor"], IDS["pci_device"], "vfio-pci", group=12, node=1)
        self.add("0000:03:00.1", IDS["pci_vendor"], IDS["pci_virtual_device"], physfn="0000:03:00.0")
        self.add("0000:04:00.0", 0x8086, IDS["pci_device"])

    def add_driver(self, name):
        (self.pci / "drivers" / name).mkdir()
        (self.pci / "drivers" / name / "unbind").touch()

    def add(self, address, vendor, device, driver=None, group=None, node=-1, physfn=None):
        place = self.pci / "devices" / address
        place.mkdir()
        for name, text in (("vendor", f"{vendor:#06x}"), ("device", f"{device:#06x}"), ("numa_node", node),
                           ("driver_override", "(null)")):
            (place / name).write_text(f"{text}\n")
        if driver:
            (place / "driver").symlink_to(f"../../drivers/{driver}")
        if group is not None:
            (place / "iommu_group").symlink_to(f"../../../../kernel/iommu_groups/{group}")
        if physfn:
            (place / "physfn").symlink_to(f"../{physfn}")

    def heddle(self, command, *arguments):
        return run(command, "--sysfs", self.root, *arguments)

    def test_list_shows_the_nics_alone_with_their_place(self):
        functions = json.loads(self.heddle("list", "--json").stdout)["functions"]
        self.assertEqual([f["address"] for f in functions], ["0000:03:00.0", "0000:03:00.1"])
        first, second = functions
        self.assertEqual((first["function"], first["driver"], first["iommu_group"], first["numa_node"]),
                         ("physical", "vfio-pci", 12, 1))
        self.assertEqual((second["function"], second["driver"], second["iommu_group"], second["numa_node"]),
                         ("virtual", None, None, None))
        self.assertEqual(second["physical_function"], "0000:03:00.0")
        self.assertRegex(self.heddle("list").stdout, r"\n0000:03:00\.0 +physical +vfio-pci +12 +1 ")

    def test_list_of_a_machine_without_one_says_so(self):
        result = run("list", "--sysfs", "/nowhere")
        self.assertEqual(result.returncode, 0)
        self.assertIn("no Heddle NIC", result.stdout)

    def test_bind_overrides_and_probes(self):
        result = self.heddle("bind", "03:00.1")
        # These files take no driver: the command does not believe them.
        self.assertEqual(result.returncode, 1)
        self.assertIn("vfio-pci did not bind to it", result.stderr)
        place = self.pci / "devices/0000:03:00.1"
        self.assertEqual((place / "driver_override").read_text()[:8], "vfio-pci")
        self.assertEqual((self.pci / "drivers_probe").read_text(), "0000:03:00.1")

    def test_bind_of_one_that_is_bound_is_done(self):
        result = self.heddle("bind", "--json", "0000:03:00.0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["driver"], "vfio-pci")

    def test_unbind_gives_back(self):
        self.heddle("unbind", "0000:03:00.0")
        self.assertEqual((self.pci / "drivers/vfio-pci/unbind").read_text(), "0000:03:00.0")
        self.assertEqual((self.pci / "drivers_probe").read_text(), "0000:03:00.0")

    def test_somebody_elses_function_is_left_alone(self):
        for command in ("bind", "unbind"):
            result = self.heddle(command, "0000:04:00.0")
            self.assertEqual(result.returncode, 1)
            self.assertIn("0000:04:00.0: not a Heddle NIC", result.stderr)
        self.assertEqual((self.pci / "drivers_probe").read_text(), "")

    def test_what_is_no_function_is_refused(self):
        self.assertIn("is not a PCI address", self.heddle("bind", "soft").stderr)
        self.assertIn("no such PCI function", self.heddle("bind", "0000:05:00.0").stderr)
        self.assertEqual(self.heddle("bind").returncode, 2)


class Devices(unittest.TestCase):
    def test_selftest_passes_on_every_simulated_device(self):
        for device in ("soft", "rtl"):
            result = run("selftest", "--json", device)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            out = json.loads(result.stdout)
            self.assertEqual((out["device"], out["passed"]), (f"{device}0", True))
            self.assertEqual([s["step"] for s in out["steps"]],
                             ["identity", "registers", "memory", "interrupts", "wire", "rings"])
            self.assertTrue(all(s["passed"] and s["proved"] for s in out["steps"]))

    def test_selftest_in_text_is_a_line_per_step(self):
        lines = run("selftest", "soft").stdout.splitlines()
        self.assertEqual([line.split()[:2] for line in lines],
                         [["ok", s] for s in ("identity", "registers", "memory", "interrupts", "wire", "rings")])

    def test_registers_are_those_of_the_contract(self):
        out = json.loads(run("regs", "--json", "soft").stdout)
        values = {r["name"]: r for r in out["registers"]}
        expected = [r["name"] for r in SPEC["register"] if r["space"] == "bar0" and r.get("count", 1) == 1]
        self.assertEqual(sorted(values), sorted(expected))
        magic = next(r["reset"] for r in SPEC["register"] if r["name"] == "magic")
        self.assertEqual(values["magic"]["value"], magic)
        self.assertEqual(values["version"]["fields"],
                         {"minor": SPEC["contract"]["minor"], "major": SPEC["contract"]["major"]})
        self.assertEqual(values["device_status"]["fields"]["ready"], 1)
        self.assertRegex(run("regs", "soft").stdout, r"0x0000  magic +0x454c4448\n0x0004  version ")

    def test_reset_comes_back(self):
        self.assertEqual(json.loads(run("reset", "--json", "soft").stdout), {"device": "soft0", "reset": True})

    def test_watched_counters_come_once_in_each_interval(self):
        result = run("stats", "-d", "soft", "-w", "0.01", "-n", "3", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        intervals = [json.loads(line)["statistics"] for line in result.stdout.splitlines()]
        self.assertEqual(len(intervals), 3)
        self.assertEqual(list(intervals[0]), [v["name"] for e in SPEC["enum"] if e["name"] == "statistic"
                                              for v in e["values"]])

    def test_a_device_that_is_none_is_refused(self):
        for command in ("selftest", "regs", "reset"):
            result = run(command, "toaster")
            self.assertEqual((result.returncode, result.stdout), (1, ""), command)
            self.assertIn("toaster", result.stderr)
            self.assertIn("PCI address", result.stderr)
        self.assertIn("0000:7f:1f.7", run("regs", "0000:7f:1f.7").stderr)


if __name__ == "__main__":
    unittest.main()
