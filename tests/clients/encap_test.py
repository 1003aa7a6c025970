# SPDX-License-Identifier: Apache-2.0
"""UET over UDP and as native IP, by captures and statistics of both sides.

HEDDLE_BUILD names the build directory.
"""

import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from captured_pair import ADDRESSES, DEVICES, UET_FRAMES_OF_PINGS, CapturedPair, headers  # noqa: E402
from endpoints import BUILD, Wire  # noqa: E402

NATIVE = {"FI_HEDDLE_ENCAP": "ip"}
# The default protocol, and another with all else that the wire may have.
FORMS = ((253, NATIVE), (99, {**NATIVE, "FI_HEDDLE_IP_PROTOCOL": 99, "FI_HEDDLE_VLAN": 291, "FI_HEDDLE_CRC": "lsb"}))


class Encapsulation(CapturedPair):
    def test_all_frames_of_native_ip_have_the_entropy_header(self):
        for devices in DEVICES:
            for family in ADDRESSES:
                for protocol, form in FORMS:
                    with self.subTest(devices=devices, family=family, protocol=protocol), Wire() as wire:
                        self.ping(self.start(wire, devices, (form, form), family))
                        for side in (0, 1):
                            self.assertEqual(self.statistics(side)["drop_ip_header"], 0)
                            frames = self.frames(side, "--ip-protocol", str(protocol))
                            self.assert_native(frames, family, protocol)

    def assert_native(self, frames, family, protocol):
        uet = [frame for frame in frames if frame["uet"]]
        self.assertGreater(len(uet), UET_FRAMES_OF_PINGS)
        for frame in uet:
            found = headers(frame)
            self.assertEqual(found[family]["protocol" if family == "ipv4" else "next_header"], protocol)
            self.assertEqual(found["entropy"]["rsvd0"], 0)
            self.assertGreaterEqual(found["entropy"]["entropy"], 49152)
            self.assertNotIn("udp", found)
            self.assertEqual(frame["crc"], "good")

    def test_losses_and_trimming_are_repaired(self):
        wires = ({"FI_HEDDLE_LOSS": 0.02, "FI_HEDDLE_CORRUPT": 0.02, "FI_HEDDLE_RTO_NS": 2_000_000},
                 {"FI_HEDDLE_DSCP_TRIMMED": 3, "FI_HEDDLE_TRIM": "on", "FI_HEDDLE_RATE_GBPS": 1,
                  "FI_HEDDLE_QUEUE_BYTES": 6000})
        for devices in DEVICES:
            for faults in wires:
                with self.subTest(devices=devices, faults=faults), Wire() as wire:
                    self.ping(self.start(wire, devices, (NATIVE, NATIVE), **faults))
                    counted = [self.statistics(side) for side in (0, 1)]
                    if "FI_HEDDLE_CORRUPT" in faults:
                        self.assertGreater(sum(side["drop_crc"] for side in counted), 0)

    def test_nothing_arrives_in_another_encapsulation(self):
        for devices in DEVICES:
            for each in ((NATIVE, {}), ({}, NATIVE)):
                with self.subTest(devices=devices, each=each), Wire() as wire:
                    self.talk_in_vain(self.start(wire, devices, each, FI_HEDDLE_DEAD_NS=500_000_000))
                    counted = [self.statistics(side) for side in (0, 1)]
                    self.assertEqual([side["rx_messages"] for side in counted], [0, 0])
                    self.assertGreater(sum(side["drop_ip_header"] for side in counted), 0)

    def test_the_udp_wire_says_why_it_has_no_native_ip(self):
        run = subprocess.run([BUILD / "bin/heddle", "stats"], capture_output=True, text=True, check=False,
                             env=dict(os.environ, FI_HEDDLE_DEVICE="soft", FI_HEDDLE_WIRE="udp", **NATIVE))
        self.assertNotEqual(run.returncode, 0)
        self.assertRegex(run.stdout + run.stderr, "encap=ip: the wire udp is UDP sockets; use encap=udp")


if __name__ == "__main__":
    unittest.main()
