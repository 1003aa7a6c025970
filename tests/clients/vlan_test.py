# SPDX-License-Identifier: Apache-2.0
"""Endpoints of VLANs on one wire, by captures and statistics of both sides.

HEDDLE_BUILD names the build directory.
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from captured_pair import ADDRESSES, DEVICES, UET_FRAMES_OF_PINGS, CapturedPair, headers  # noqa: E402
from endpoints import Wire  # noqa: E402

VLAN = 291


class Vlans(CapturedPair):
    @staticmethod
    def settings(*vlans):
        return [{"FI_HEDDLE_VLAN": vlan} if vlan else {} for vlan in vlans]

    def test_all_frames_between_two_of_one_vlan_are_tagged(self):
        for devices in DEVICES:
            for family in ADDRESSES:
                for neighbours in ("static", "resolve"):
                    with self.subTest(devices=devices, family=family, neighbours=neighbours), Wire() as wire:
                        self.ping(self.start(wire, devices, self.settings(VLAN, VLAN), family,
                                             FI_HEDDLE_NEIGHBOURS=neighbours))
                        for side in (0, 1):
                            self.assertEqual(self.statistics(side)["drop_vlan"], 0)
                            self.assert_tagged(self.frames(side), family)

    def assert_tagged(self, frames, family):
        uet = [frame for frame in frames if frame["uet"]]
        self.assertGreater(len(uet), UET_FRAMES_OF_PINGS)
        for frame in frames:
            found = headers(frame)
            self.assertEqual(found.get("vlan", {}).get("vid"), VLAN, frame)
            self.assertTrue(not frame["uet"] or family in found, frame)

    def test_nothing_arrives_in_another_vlan(self):
        for devices in DEVICES:
            for vlans in ((VLAN, VLAN + 1), (VLAN, None), (None, VLAN)):
                with self.subTest(devices=devices, vlans=vlans), Wire() as wire:
                    self.talk_in_vain(self.start(wire, devices, self.settings(*vlans), FI_HEDDLE_DEAD_NS=500_000_000))
                    counted = [self.statistics(side) for side in (0, 1)]
                    self.assertEqual([side["rx_messages"] for side in counted], [0, 0])
                    self.assertGreater(sum(side["drop_vlan"] for side in counted), 0)


if __name__ == "__main__":
    unittest.main()
