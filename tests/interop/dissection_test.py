# SPDX-License-Identifier: Apache-2.0
"""Wireshark, with the generated dissector, and heddle decode on a session of the independent peer. HEDDLE_BUILD names the
build directory."""

import collections
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]

import frames  # noqa: E402
from dissect import GOOD, NOT_PRESENT, dissect  # noqa: E402
from kinds import LOSS, OWN, PATIENT, TOGETHER, Case  # noqa: E402
from places import TappedWire  # noqa: E402
from uet import frame, packet, pds  # noqa: E402
from uet.options import Options  # noqa: E402

# Magic of time stamps in nanoseconds, version 2.4, whole frames, Ethernet.
PCAP_HEAD = b"".join(number.to_bytes(size, sys.byteorder)
                     for number, size in ((0xA1B23C4D, 4), (2, 2), (4, 2), (0, 4), (0, 4), (65535, 4), (1, 4)))
MESSAGES = 15
# Wireshark knows RFC 8200, by which a checksum of 0 over IPv6 is an error, and not UET, which asks for it (docs/uet.md
# 1.1). dissect.py turns that remark off.
ZERO_OVER_IPV6 = "Illegal checksum value (0)"


@unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
class InteropDissection(Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.pcap = pathlib.Path(folder.name, "session.pcap")
        self.messages = MESSAGES

    def record(self, ip, checksum, native=False):
        """Every kind of traffic, with what a peer may do differently, in one capture; its frames."""
        recorded = []
        for options in (OWN, Options(**PATIENT | TOGETHER)):
            self.place = TappedWire("soft", ip, checksum, recorded.append, native)
            for kind in (self.peer_sends, self.peer_writes, self.peer_reads, self.device_sends, self.device_writes,
                         self.device_reads):
                kind(options, kind.__name__ != "device_sends", LOSS if options is OWN else 0.0)
        frames.write_records(self.pcap, PCAP_HEAD, recorded)
        return recorded

    def test_no_frame_is_malformed_and_each_is_uet(self):
        for ip, checksum, native, status in ((4, "zero", False, NOT_PRESENT), (6, "zero", False, NOT_PRESENT),
                                             (6, "right", False, GOOD), (4, "zero", True, None), (6, "zero", True, None)):
            recorded = self.record(ip, checksum, native)
            dissected = dissect(self.pcap)
            self.assertEqual(len(dissected), len(recorded))
            seen = collections.Counter()
            for number, (raw, shown) in enumerate(zip(recorded, dissected)):
                sent = frame.decode(raw)
                content = packet.decode(sent.packet)
                with self.subTest(frame=number, ip=ip, checksum=checksum, native=native, packet=content):
                    self.assertEqual(shown.experts, [])
                    self.assertNotIn("_ws.malformed", shown.names)
                    self.assertNotIn("_ws.lua.error", shown.names)
                    self.assertEqual(shown.crc_status, "good")
                    from_peer = sent.source == self.place.addresses["peer"]
                    self.assertEqual(shown.udp_status, status if from_peer or native else NOT_PRESENT)
                    self.assertEqual(bytes.fromhex(shown.payload), content.payload)
                    fields = {(header, field): value for header, field, value in shown.fields}
                    header = next(header for header, _, _ in shown.fields if header.startswith("pds_"))
                    self.assertEqual(fields[header, "type"], content.pds.type)
                    seen[from_peer, content.pds.type] += 1
            for from_peer in (True, False):
                for kind in (pds.Type.ROD_REQ, pds.Type.RUD_REQ, pds.Type.ACK, pds.Type.CONTROL):
                    self.assertGreater(seen[from_peer, kind] + (kind == pds.Type.ACK and seen[from_peer, pds.Type.ACK_CC]),
                                       0, (from_peer, kind))
            self.decode()

    def decode(self):
        """heddle decode has nothing to complain of either."""
        run = subprocess.run([frames.BUILD / "bin/heddle", "decode", "-v", self.pcap], capture_output=True, text=True,
                             timeout=300, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout[-1000:])

    def test_wireshark_calls_a_checksum_of_zero_illegal_over_ipv6_alone(self):
        for ip in (4, 6):
            self.messages = 1
            self.place = TappedWire("soft", ip, record=(recorded := []).append)
            self.peer_writes(OWN, True)
            frames.write_records(self.pcap, PCAP_HEAD, recorded)
            remarks = {expert for shown in dissect(self.pcap, "-o", "udp.ignore_ipv6_zero_checksum:FALSE")
                       for expert in shown.experts}
            with self.subTest(ip=ip):
                self.assertEqual(len(remarks), ip == 6, remarks)
                self.assertTrue(all(ZERO_OVER_IPV6 in remark for remark in remarks), remarks)


if __name__ == "__main__":
    unittest.main()
