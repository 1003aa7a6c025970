# SPDX-License-Identifier: Apache-2.0
"""Both orders of the end-to-end CRC and none, by captures and statistics of both sides.

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
from endpoints import BUILD, Wire, acquaint, finish, start_pings  # noqa: E402

DEVICES = (("soft", "soft"), ("rtl", "soft"), ("soft", "rtl"))
ADDRESSES = {"ipv4": ("10.9.0.1", "10.9.0.2"), "ipv6": ("fd00::1", "fd00::2")}
ORDERS = {"msb": "msb_first", "lsb": "lsb_first", "none": None}


class Crc(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def file(self, side, kind):
        return self.path / f"{side}.{kind}"

    def start(self, wire, devices, orders, family="ipv4", **settings):
        """A pair; its captures and statistics are `file`s 0 and 1."""
        pair = []
        for side, (device, order) in enumerate(zip(devices, orders)):
            files = {f"FI_HEDDLE_{kind.upper()}": self.file(side, kind) for kind in ("capture", "statistics")}
            for file in files.values():
                file.unlink(missing_ok=True)
            pair.append(wire.start(wire.environment(FI_HEDDLE_DEVICE=device, FI_HEDDLE_IP=ADDRESSES[family][side],
                                                    FI_HEDDLE_CRC=order, **files, **settings)))
        acquaint(*pair)
        return pair

    def frames(self, side, order):
        run = subprocess.run([BUILD / "bin/heddle", "decode", "--json", *([] if ORDERS[order] else ["--no-crc"]),
                              self.file(side, "capture")], capture_output=True, text=True, check=True)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def statistics(self, side):
        return pingpong.statistics(self.file(side, "statistics"))

    def test_all_frames_have_the_crc_that_is_set_and_no_udp_checksum(self):
        for devices in DEVICES:
            for family in ADDRESSES:
                for order in ORDERS:
                    with self.subTest(devices=devices, family=family, order=order), Wire() as wire:
                        pair = self.start(wire, devices, (order, order), family)
                        start_pings(pair, 20, 5000)
                        finish(pair)
                        for endpoint in pair:
                            endpoint.close()
                        for side in (0, 1):
                            self.assertEqual(self.statistics(side)["drop_crc"], 0)
                            self.assert_checks(self.frames(side, order), order)

    def assert_checks(self, frames, order):
        uet = [frame for frame in frames if frame["uet"]]
        self.assertGreater(len(uet), 80, "20 messages of two packets each way")
        for frame in uet:
            self.assertEqual(frame["udp_checksum"], "none")
            # One CRC in 2^16 reads the same in both orders.
            self.assertIn(frame.get("crc_order"), {ORDERS[order], ORDERS[order] and "msb_first"})
        self.assertTrue(any(frame.get("crc_order") == ORDERS[order] for frame in uet))

    def test_frames_of_the_other_order_are_dropped_and_counted(self):
        for devices in DEVICES:
            for orders in (("msb", "lsb"), ("lsb", "msb")):
                with self.subTest(devices=devices, orders=orders), Wire() as wire:
                    pair = self.start(wire, devices, orders, FI_HEDDLE_DEAD_NS=500_000_000)
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
