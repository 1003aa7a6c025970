# SPDX-License-Identifier: Apache-2.0
"""The generated Wireshark dissector, in the distribution's tshark."""

import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import frames  # noqa: E402
from dissect import GOOD, NOT_PRESENT, dissect  # noqa: E402


@unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
class Dissector(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.capture = frames.Capture()
        cls.addClassCleanup(cls.capture.folder.cleanup)
        cls.packets = dissect(cls.capture.path)

    def changed(self, change):
        """Packets of the capture with each frame replaced by change(frame)."""
        head, records = frames.records(self.capture.path)
        path = self.capture.path.with_name("changed.pcap")
        frames.write_records(path, head, [change(frame) for _, frame in records])
        return dissect(path)

    def test_sees_every_header_the_contract_has(self):
        seen = {header for packet in self.packets for header, _, _ in packet.fields}
        ours = {name for name in frames.WIRES if name.startswith(("pds_", "ses_"))}
        self.assertEqual(seen, ours - {"pds_prologue"})

    def test_shows_every_field_of_every_frame(self):
        self.assertEqual(len(self.packets), len(self.capture.manifest))
        for packet, entry in zip(self.packets, self.capture.manifest):
            with self.subTest(frame=entry["name"]):
                self.assertEqual(packet.fields, self.capture.expected(entry))
                self.assertEqual(packet.payload, entry["payload"])

    def test_calls_nothing_malformed_or_wrong(self):
        for packet, entry in zip(self.packets, self.capture.manifest):
            with self.subTest(frame=entry["name"]):
                unknown_type = [e for e in packet.experts if "is not decoded" in e]
                self.assertEqual(packet.experts, unknown_type)
                self.assertNotIn("_ws.malformed", packet.names)
                self.assertNotIn("_ws.lua.error", packet.names)
                self.assertEqual((packet.crc_status, packet.udp_status), ("good", GOOD if entry["udp_checksum"] else NOT_PRESENT))

    def test_sees_a_wrong_bit_by_the_crc(self):
        packets = self.changed(lambda frame: frame[:-5] + bytes([frame[-5] ^ 1]) + frame[-4:])
        self.assertEqual({packet.crc_status for packet in packets}, {"bad"})

    def test_reports_a_packet_that_ends_early(self):
        head, records = frames.records(self.capture.path)
        frame = records[0][1]  # X1, over IPv4 without a tag.
        udp, end = 14 + 20, 14 + 20 + 8
        cut = []
        for size in range(12 + 44):
            body = frame[end:end + size] + bytes(4)
            length = (8 + len(body)).to_bytes(2, "big")
            total = (20 + 8 + len(body)).to_bytes(2, "big")
            cut.append(frame[:16] + total + frame[18:udp + 4] + length + frame[udp + 6:end] + body)
        path = self.capture.path.with_name("cut.pcap")
        frames.write_records(path, head, cut)
        for size, packet in enumerate(dissect(path)):
            with self.subTest(bytes=size):
                self.assertTrue([e for e in packet.experts if "ends before its header" in e], packet)
                self.assertNotIn("_ws.lua.error", packet.names)

    def test_notes_reserved_bits_that_are_set(self):
        # Bit 6 of the flags of X2, an ACK over IPv6.
        head, records = frames.records(self.capture.path)
        at = 14 + 40 + 8
        frame = records[1][1]
        path = self.capture.path.with_name("reserved.pcap")
        frames.write_records(path, head, [frame[:at + 1] + bytes([frame[at + 1] | 0x40]) + frame[at + 2:]])
        self.assertIn("Reserved bits are not zero", dissect(path)[0].experts)

    def test_takes_the_last_bytes_for_payload_when_told_that_there_is_no_crc(self):
        packets = dissect(self.capture.path, "-o", "heddle_uet.crc:FALSE")
        for packet, entry in zip(packets, self.capture.manifest):
            self.assertEqual(len(packet.payload), len(entry["payload"]) + 8)
            self.assertIsNone(packet.crc_status)


@unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
class DissectorWorkedFrames(unittest.TestCase):
    """The worked frames of tests/interop, against what the second implementation reads in them."""

    @classmethod
    def setUpClass(cls):
        cls.capture = frames.WorkedCapture()
        cls.addClassCleanup(cls.capture.folder.cleanup)

    def test_names_every_header_and_its_values(self):
        packets = dissect(self.capture.path)
        self.assertEqual(len(packets), len(self.capture.frames))
        for packet, frame in zip(packets, self.capture.frames):
            with self.subTest(frame.name, title=frame.title):
                self.assertEqual(list(dict.fromkeys(header for header, _, _ in packet.fields)), list(frame.fields))
                found = {(header, field): value for header, field, value in packet.fields}
                stated = self.capture.stated(frame)
                self.assertEqual({key: found.get(key) for key in stated}, stated)
                self.assertEqual(packet.payload, frame.payload.hex())

    def test_calls_none_of_them_malformed_and_each_crc_good(self):
        for packet, frame in zip(dissect(self.capture.path), self.capture.frames):
            with self.subTest(frame.name, title=frame.title):
                self.assertEqual((packet.experts, packet.crc_status), ([], "good"))
                self.assertNotIn("_ws.malformed", packet.names)
                self.assertNotIn("_ws.lua.error", packet.names)

    def test_finds_native_ip_under_the_number_of_its_preference(self):
        path = self.capture.path.with_name("native.pcap")
        self.capture.write_native(path, 99)
        found, = dissect(path, "-o", "heddle_uet.ip_protocol:99")
        self.assertEqual((found.fields[0][:2], found.crc_status), (("entropy", "entropy"), "good"))
        self.assertEqual(dissect(path)[0].fields, [])

    def test_wireshark_calls_their_udp_checksum_illegal_over_ipv6_only(self):
        # A preference of its own (docs/uet.md 1.1).
        for packet, frame in zip(dissect(self.capture.path, checks=()), self.capture.frames):
            with self.subTest(frame.name, title=frame.title):
                illegal = "ipv6" in frame.parts
                self.assertEqual(packet.experts, ["Illegal checksum value (0)"] if illegal else [])


if __name__ == "__main__":
    unittest.main()
