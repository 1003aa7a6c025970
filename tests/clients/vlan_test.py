# SPDX-License-Identifier: Apache-2.0
"""Endpoints of VLANs on one wire, by captures and statistics of both sides.

HEDDLE_BUILD names the build directory.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/clients"))

import pingpong  # noqa: E402
from endpoints import BUILD, DEADLINE_S, REFUSED, Wire, acquaint, finish, start_pings  # noqa: E402

DEVICES = (("soft", "soft"), ("rtl", "soft"), ("soft", "rtl"))
ADDRESSES = {"ipv4": ("10.9.0.1", "10.9.0.2"), "ipv6": ("fd00::1", "fd00::2")}
VLAN = 291


class Vlans(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def file(self, side, kind):
        return self.path / f"{side}.{kind}"

    def start(self, wire, devices, vlans, family="ipv4", **settings):
        """A pair; its captures and statistics are `file`s 0 and 1."""
        pair = []
        for side, (device, vlan) in enumerate(zip(devices, vlans)):
            files = {f"FI_HEDDLE_{kind.upper()}": self.file(side, kind) for kind in ("capture", "statistics")}
            for file in files.values():
                file.unlink(missing_ok=True)
            tag = {"FI_HEDDLE_VLAN": vlan} if vlan else {}
            pair.append(wire.start(wire.environment(FI_HEDDLE_DEVICE=device, FI_HEDDLE_IP=ADDRESSES[family][side],
                                                    **files, **tag, **settings)))
        acquaint(*pair)
        return pair

    def frames(self, side):
        run = subprocess.run([BUILD / "bin/heddle", "decode", "--json", self.file(side, "capture")], capture_output=True,
                             text=True, check=True)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def statistics(self, side):
        return pingpong.statistics(self.file(side, "statistics"))

    def test_all_frames_between_two_of_one_vlan_are_tagged(self):
        for devices in DEVICES:
            for family in ADDRESSES:
                for neighbours in ("static", "resolve"):
                    with self.subTest(devices=devices, family=family, neighbours=neighbours), Wire() as wire:
                        pair = self.start(wire, devices, (VLAN, VLAN), family, FI_HEDDLE_NEIGHBOURS=neighbours)
                        start_pings(pair, 20, 5000)
                        finish(pair)
                        for endpoint in pair:
                            endpoint.close()
                        for side in (0, 1):
                            self.assertEqual(self.statistics(side)["drop_vlan"], 0)
                            self.assert_tagged(self.frames(side), family)

    def assert_tagged(self, frames, family):
        uet = [frame for frame in frames if frame["uet"]]
        self.assertGreater(len(uet), 80, "20 messages of two packets each way")
        for frame in frames:
            headers = {header["header"]: header["fields"] for header in frame["headers"]}
            self.assertEqual(headers.get("vlan", {}).get("vid"), VLAN, frame)
            self.assertTrue(not frame["uet"] or family in headers, frame)

    def test_nothing_arrives_in_another_vlan(self):
        for devices in DEVICES:
            for vlans in ((VLAN, VLAN + 1), (VLAN, None), (None, VLAN)):
                with self.subTest(devices=devices, vlans=vlans), Wire() as wire:
                    pair = self.start(wire, devices, vlans, FI_HEDDLE_DEAD_NS=500_000_000)
                    for endpoint in pair:
                        endpoint.tell("mesh", 0, 1, 100, 0, 0)
                    for endpoint in pair:
                        self.assertRegex(endpoint.line(), r"^lost 0 \d+$")
                        endpoint.done()
                    for endpoint in pair:
                        endpoint.close()
                    counted = [self.statistics(side) for side in (0, 1)]
                    self.assertEqual([side["rx_messages"] for side in counted], [0, 0])
                    self.assertGreater(sum(side["drop_vlan"] for side in counted), 0)


if __name__ == "__main__":
    unittest.main()
