# SPDX-License-Identifier: Apache-2.0
"""Both orders of the end-to-end CRC and none, by captures and statistics of both sides.

HEDDLE_BUILD names the build directory.
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from captured_pair import ADDRESSES, DEVICES, UET_FRAMES_OF_PINGS, CapturedPair  # noqa: E402
from endpoints import Wire  # noqa: E402

ORDERS = {"msb": "msb_first", "lsb": "lsb_first", "none": None}


class Crc(CapturedPair):
    @staticmethod
    def settings(*orders):
        return [{"FI_HEDDLE_CRC": order} for order in orders]

    def test_all_frames_have_the_crc_that_is_set_and_no_udp_checksum(self):
        for devices in DEVICES:
            for family in ADDRESSES:
                for order in ORDERS:
                    with self.subTest(devices=devices, family=family, order=order), Wire() as wire:
                        self.ping(self.start(wire, devices, self.settings(order, order), family))
                        for side in (0, 1):
                            self.assertEqual(self.statistics(side)["drop_crc"], 0)
                            self.assert_checks(self.frames(side, *([] if ORDERS[order] else ["--no-crc"])), order)

    def assert_checks(self, frames, order):
        uet = [frame for frame in frames if frame["uet"]]
        self.assertGreater(len(uet), UET_FRAMES_OF_PINGS)
        for frame in uet:
            self.assertEqual(frame["udp_checksum"], "none")
            # One CRC in 2^16 reads the same in both orders.
            self.assertIn(frame.get("crc_order"), {ORDERS[order], ORDERS[order] and "msb_first"})
        self.assertTrue(any(frame.get("crc_order") == ORDERS[order] for frame in uet))

    def test_frames_of_the_other_order_are_dropped_and_counted(self):
        for devices in DEVICES:
            for orders in (("msb", "lsb"), ("lsb", "msb")):
                with self.subTest(devices=devices, orders=orders), Wire() as wire:
                    pair = self.start(wire, devices, self.settings(*orders), FI_HEDDLE_DEAD_NS=500_000_000)
                    for endpoint in pair:
                        endpoint.tell("mesh", 0, 1, 100, 0, 0)
                    for endpoint in pair:
                        endpoint.line()
                        endpoint.done()
                    for endpoint in pair:
                        endpoint.close()
                    # Not each of them: one CRC in 2^16 is right in both orders.
                    self.assertGreater(sum(self.statistics(side)["drop_crc"] for side in (0, 1)), 0)


if __name__ == "__main__":
    unittest.main()
