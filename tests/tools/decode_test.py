# SPDX-License-Identifier: Apache-2.0
"""heddle decode: every kind of frame, damaged ones, files it cannot read."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import frames  # noqa: E402

HEDDLE = frames.BUILD / "bin/heddle"
NAMED = "_name"


def run(*arguments, **options):
    return subprocess.run([HEDDLE, "decode", *map(str, arguments)], capture_output=True, timeout=300, check=False,
                          text=not isinstance(options.get("input"), bytes), **options)


def decode(pcap, *options):
    """Exit code and an object per frame."""
    result = run(pcap, "--json", *options)
    return result.returncode, [json.loads(line) for line in result.stdout.splitlines()]


class Decode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.capture = frames.Capture()
        cls.addClassCleanup(cls.capture.folder.cleanup)
        cls.status, cls.decoded = decode(cls.capture.path)

    def write(self, name, change):
        """A capture with each frame replaced by change(frame)."""
        head, records = frames.records(self.capture.path)
        path = self.capture.path.with_name(name)
        frames.write_records(path, head, [change(frame) for _, frame in records])
        return path

    def test_shows_every_field_of_every_frame(self):
        self.assertEqual(len(self.decoded), len(self.capture.manifest))
        for frame, entry in zip(self.decoded, self.capture.manifest):
            with self.subTest(frame=entry["name"]):
                found = [(h["header"], name, value) for h in frame["headers"]
                         if h["header"].startswith(("pds_", "ses_"))
                         for name, value in h["fields"].items() if not name.endswith(NAMED)]
                self.assertEqual(found, self.capture.expected(entry))
                self.assertEqual(frame["payload"], entry["payload"])

    @staticmethod
    def order(frame, entry):
        """One CRC in 2^16 reads the same in both orders."""
        crc = frame["headers"][-1]["fields"]["crc"].to_bytes(4, "big")
        return "msb_first" if crc == crc[::-1] else entry["crc_order"]

    def test_finds_every_frame_good(self):
        for frame, entry in zip(self.decoded, self.capture.manifest):
            with self.subTest(frame=entry["name"]):
                self.assertEqual(frame["problems"], [])
                self.assertEqual(frame["udp_checksum"], "good" if entry["udp_checksum"] else "none")
                self.assertEqual((frame["crc"], frame["crc_order"]), ("good", self.order(frame, entry)))
                self.assertEqual(frame["ip_checksum"], "none" if entry["ipv6"] else "good")
        self.assertEqual(self.status, 0)

    def test_sees_a_wrong_bit_anywhere_in_the_datagram(self):
        # X1, over IPv4 without a tag: the bytes from the addresses on, but for the
        # UDP ports and length, without which it is another datagram.
        head, records = frames.records(self.capture.path)
        frame = records[0][1]
        places = [i for i in range(26, len(frame)) if not 34 <= i < 40]
        path = self.capture.path.with_name("bits.pcap")
        frames.write_records(path, head, [frame[:i] + bytes([frame[i] ^ 1]) + frame[i + 1:] for i in places])
        status, decoded = decode(path)
        self.assertEqual(status, 1)
        for place, one in zip(places, decoded):
            with self.subTest(byte=place):
                # Nothing depends on the UDP checksum.
                checksum = place in (40, 41)
                self.assertEqual(bool(one["problems"]), not checksum)
                self.assertEqual(one["udp_checksum"], "bad" if checksum else "none")
                self.assertEqual(one["crc"], "good" if checksum else "bad")

    def test_shows_the_udp_checksum_and_calls_none_wrong(self):
        def put(value):
            def change(frame):
                at = 14 + (4 if frame[12:14] == b"\x81\x00" else 0)
                at += 20 if frame[at - 2:at] == b"\x08\x00" else 40
                return frame[:at + 6] + value + frame[at + 8:]
            return change
        for value, shown in ((b"\0\0", {"none"}), (b"\x12\x34", {"bad"})):
            status, decoded = decode(self.write("sum.pcap", put(value)))
            self.assertEqual(status, 0)
            self.assertEqual({frame["udp_checksum"] for frame in decoded}, shown)
            self.assertEqual({frame["crc"] for frame in decoded}, {"good"})

    def test_ends_early_without_a_fault_of_its_own(self):
        head, records = frames.records(self.capture.path)
        for index in (0, 1, 2, 3, 13):
            frame = records[index][1]
            path = self.capture.path.with_name("cut.pcap")
            frames.write_records(path, head, [frame[:size] for size in range(len(frame))])
            status, decoded = decode(path)
            self.assertEqual((status, len(decoded)), (1, len(frame)))
            self.assertEqual([one["number"] for one in decoded if not one["problems"] and one["uet"]], [])

    def test_shows_what_was_captured_of_a_longer_frame(self):
        data = bytearray(self.capture.path.read_bytes())
        size = int.from_bytes(data[32:36], sys.byteorder)
        data[36:40] = (size + 100).to_bytes(4, sys.byteorder)
        path = self.capture.path.with_name("snap.pcap")
        path.write_bytes(data)
        _, decoded = decode(path)
        self.assertEqual((decoded[0]["udp_checksum"], decoded[0]["crc"]), ("none", "not checked"))
        self.assertEqual([h["header"] for h in decoded[0]["headers"]][-2:], ["pds_request", "ses_std"])

    def test_takes_the_last_bytes_for_payload_when_told_that_there_is_no_crc(self):
        _, decoded = decode(self.capture.path, "--no-crc")
        for frame, entry in zip(decoded, self.capture.manifest):
            self.assertEqual(len(frame["payload"]), len(entry["payload"]) + 8)
            self.assertEqual(frame["crc"], "none")

    def test_prints_a_line_per_frame_and_all_fields_when_asked(self):
        short = run(self.capture.path).stdout.splitlines()
        self.assertEqual(len(short), len(self.capture.manifest))
        self.assertIn("10.0.0.1 > 10.0.0.2 rod_req syn psn=74565", short[0])
        self.assertIn("send message_id=1 request_length=8 | payload 8", short[0])
        long = run("-v", self.capture.path).stdout
        self.assertIn("\n    next_hdr                 request_std (3)\n", long)
        self.assertIn("\n    clear_psn_offset         -1\n", long)
        self.assertIn("\n    000000  5545544848454c4c4f"[:20], long)

    def test_lists_other_frames_without_calling_them_bad(self):
        head, _ = frames.records(self.capture.path)
        path = self.capture.path.with_name("arp.pcap")
        frames.write_records(path, head, [bytes(12) + b"\x08\x06" + bytes(46)])
        result = run(path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("not UET", result.stdout)

    def test_reads_standard_input(self):
        result = run("-", input=self.capture.path.read_bytes())
        self.assertEqual((result.returncode, result.stdout.count(b"\n")), (0, len(self.capture.manifest)))

    def test_names_what_it_cannot_read(self):
        text = self.capture.path.with_name("text")
        text.write_text("no capture")
        cut = self.capture.path.with_name("half.pcap")
        cut.write_bytes(self.capture.path.read_bytes()[:-3])
        link = self.capture.path.with_name("raw.pcap")
        data = bytearray(self.capture.path.read_bytes())
        data[20:24] = (101).to_bytes(4, sys.byteorder)
        link.write_bytes(data)
        for path, reason in (("/nowhere/x", "No such file"), (text, "cannot be read"), (cut, "ends after frame"),
                             (link, "link type RAW")):
            with self.subTest(path=path):
                result = run(path)
                self.assertEqual(result.returncode, 1)
                self.assertIn(str(path), result.stderr)
                self.assertIn(reason, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)

    def test_calls_a_wrong_command_line_so(self):
        for arguments in ((), ("--what", "x"), ("a", "b")):
            self.assertEqual(run(*arguments).returncode, 2)
        self.assertEqual(run("--help").returncode, 0)


class DecodeWorkedFrames(unittest.TestCase):
    """The worked frames of tests/interop, against what the second implementation reads in them."""

    @classmethod
    def setUpClass(cls):
        cls.capture = frames.WorkedCapture()
        cls.addClassCleanup(cls.capture.folder.cleanup)
        cls.status, cls.decoded = decode(cls.capture.path)

    def test_names_every_header_and_its_values(self):
        self.assertEqual(len(self.decoded), len(self.capture.frames))
        for one, frame in zip(self.decoded, self.capture.frames):
            with self.subTest(frame.name, title=frame.title):
                ours = [h for h in one["headers"] if h["header"] == "entropy" or h["header"].startswith(("pds_", "ses_"))]
                self.assertEqual([h["header"] for h in ours], list(frame.fields))
                found = {(h["header"], name): value for h in ours for name, value in h["fields"].items()}
                stated = self.capture.stated(frame)
                self.assertEqual({key: found.get(key) for key in stated}, stated)
                self.assertEqual(one["payload"], frame.payload.hex())

    def test_finds_nothing_wrong_and_each_crc_most_significant_byte_first(self):
        self.assertEqual(self.status, 0)
        for one, frame in zip(self.decoded, self.capture.frames):
            with self.subTest(frame.name, title=frame.title):
                self.assertEqual((one["uet"], one["problems"], one["udp_checksum"]), (True, [], "none"))
                self.assertEqual((one["crc"], one["crc_order"]), ("good", "msb_first"))

    def test_finds_native_ip_under_the_number_that_is_given(self):
        path = self.capture.path.with_name("native.pcap")
        self.capture.write_native(path, 99)
        settings = {"FI_HEDDLE_IP_PROTOCOL": "99"}
        for found in (run(path, "--json", "--ip-protocol", 99), run(path, "--json", env=dict(os.environ, **settings))):
            frame = json.loads(found.stdout)
            self.assertEqual((frame["uet"], frame["crc"], found.returncode), (True, "good", 0))
        self.assertFalse(json.loads(run(path, "--json").stdout)["uet"])

    def test_refuses_a_protocol_that_native_ip_cannot_have(self):
        for protocol in (0, 1, 6, 17, 58, 256):
            found = run(self.capture.path, "--ip-protocol", protocol)
            self.assertEqual(found.returncode, 2)
            self.assertIn(f"--ip-protocol={protocol} is not accepted; it takes 2 to 255, but not 6, 17 or 58", found.stderr)

    def test_names_what_distinguishes_them_in_a_line(self):
        lines = run(self.capture.path).stdout.splitlines()
        for name, phrase in (("F10", "fetching_atomic message_id=4 request_length=8 | amo_opcode=sum | payload 8"),
                             ("F13", "| amo_opcode=cswap"), ("F26", "rod_req syn psn=1193046"),
                             ("G4", "| initiator_restart_token=5 target_restart_token=119"),
                             ("G5", "cp cp_type=negotiation psn=0 spdcid=2 dpdcid=8 features=1")):
            index = [frame.name for frame in self.capture.frames].index(name)
            self.assertIn(phrase, lines[index], name)


if __name__ == "__main__":
    unittest.main()
