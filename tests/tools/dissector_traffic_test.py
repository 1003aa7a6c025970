# SPDX-License-Identifier: Apache-2.0
"""The generated Wireshark dissector on traffic between two soft devices."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import frames  # noqa: E402
from dissect import NOT_PRESENT, dissect  # noqa: E402

# Streams of calls on a wire that loses and reorders, with PDCs that close soon.
STREAM = ("--devices", "soft,soft", "--rma", "--unordered", "--operations", "300", "--stream", "300", "--loss", "0.05",
          "--reorder", "0.05", "--set", "FI_HEDDLE_PDC_IDLE_NS=20000000")
MOST_STREAMS = 20
ENUMS = {e["name"]: {v["name"]: v["value"] for v in e["values"]} for e in frames.SPEC["enum"]}
PDS = ENUMS["pds_type"]
OPCODES = ENUMS["ses_opcode"]


class Frame:
    """A frame of the capture, and its dissection by header and field."""

    def __init__(self, raw, packet):
        self.raw, self.packet = raw, packet
        self.end = 14 + int.from_bytes(raw[16:18], "big") - 4  # Before the CRC, and what pads the frame.
        self.headers = {}
        for header, field, value in packet.fields:
            self.headers.setdefault(header, {})[field] = value
        self.payload = bytes.fromhex(packet.payload)

    def get(self, header, field):
        return self.headers.get(header, {}).get(field)

    def expected(self):
        """(header, field, value) of the headers that tshark named, read from the bytes by the contract."""
        at = 14 + 20 + 8  # Ethernet, IPv4, UDP.
        out = []
        for header in self.headers:
            size = sum(entry["bits"] for entry in frames.WIRES[header]["fields"]) // 8
            out += [(header, *pair) for pair in frames.values(header, self.raw[at:at + size]).items()]
            at += size
        return out, at

    def request_is(self, opcode):
        return any(self.get(header, "opcode") == OPCODES[opcode] for header in ("ses_std", "ses_small", "ses_medium"))


# Each kind of packet that the traffic must show.
KINDS = {
    "WRITE": lambda f: f.request_is("write"),
    "READ": lambda f: f.request_is("read"),
    "return data of a READ": lambda f: "pds_request" in f.headers and "ses_response_data" in f.headers,
    "return data in an ACK": lambda f: "pds_ack" in f.headers and "ses_response_data" in f.headers,
    "ACK_CC": lambda f: "pds_ack_cc" in f.headers,
    "ACK_CC with SACK": lambda f: f.get("pds_ack_cc", "sack_bitmap"),
    "ROD request": lambda f: f.get("pds_request", "type") == PDS["rod_req"],
    "RUD request": lambda f: f.get("pds_request", "type") == PDS["rud_req"],
    "NACK": lambda f: "pds_nack" in f.headers,
    "Clear Command": lambda f: f.get("pds_cp", "cp_type") == ENUMS["cp_type"]["clear_command"],
    "Close Command": lambda f: f.get("pds_cp", "cp_type") == ENUMS["cp_type"]["close_command"],
}


@unittest.skipUnless(shutil.which("tshark"), "tshark is not installed")
class DissectorTraffic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Captures streams until each kind was on the wire; what is lost or refused is up to chance and time."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name, "traffic.pcap")
        cls.frames, cls.found = [], {}
        seed = frames.seed() % (1 << 31)
        for number in range(MOST_STREAMS):
            subprocess.run([frames.BUILD / "tests/heddle_differential", *STREAM, "--seed", str(seed + number), "--capture",
                            cls.path], check=True, stdout=subprocess.DEVNULL, timeout=300)
            raw = [frame for _, frame in frames.records(cls.path)[1]]
            cls.frames += map(Frame, raw, dissect(cls.path))
            for kind, fits in KINDS.items():
                cls.found[kind] = [frame for frame in cls.frames if fits(frame)]
            if all(cls.found.values()):
                break

    def test_shows_every_field_and_calls_nothing_wrong(self):
        for number, frame in enumerate(self.frames):
            packet = frame.packet
            with self.subTest(frame=number, fields=packet.fields):
                self.assertEqual(packet.experts, [])
                self.assertNotIn("_ws.malformed", packet.names)
                self.assertNotIn("_ws.lua.error", packet.names)
                self.assertEqual((packet.crc_status, packet.udp_status), ("good", NOT_PRESENT))
                expected, end = frame.expected()
                self.assertEqual(packet.fields, expected)
                self.assertEqual(frame.payload, frame.raw[end:frame.end])

    def test_heddle_decode_finds_nothing_wrong_either(self):
        run = subprocess.run([frames.BUILD / "bin/heddle", "decode", self.path], capture_output=True, text=True, timeout=300)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)

    def test_sees_each_kind_of_packet_with_fields_that_make_sense(self):
        self.assertEqual([kind for kind, found in self.found.items() if not found], [])
        reads = {frame.get("ses_std", "message_id") for frame in self.found["READ"]}
        for kind in ("return data of a READ", "return data in an ACK"):
            for frame in self.found[kind]:
                data = frame.headers["ses_response_data"]
                with self.subTest(data=data):
                    self.assertEqual(data["opcode"], ENUMS["ses_response"]["response_w_data"])
                    self.assertEqual(data["payload_length"], len(frame.payload))
                    self.assertLessEqual(data["message_offset"] + data["payload_length"], data["modified_length"])
                    self.assertIn(data["read_request_message_id"], reads)
        for frame in self.found["ACK_CC with SACK"]:
            ack, cc = frame.headers["pds_ack"], frame.headers["pds_ack_cc"]
            with self.subTest(ack=ack, cc=cc):
                self.assertEqual(ack["type"], PDS["ack_cc"])
                highest = cc["sack_psn_offset"] + cc["sack_bitmap"].bit_length() - 1
                self.assertGreater(highest, 0, "no bit is above CACK")
        for frame in self.found["NACK"]:
            with self.subTest(nack=frame.headers["pds_nack"]):
                self.assertEqual(frame.get("pds_nack", "type"), PDS["nack"])
                self.assertIn(frame.get("pds_nack", "nack_code"), ENUMS["nack_code"].values())
        for kind in ("Clear Command", "Close Command"):
            for frame in self.found[kind]:
                self.assertEqual(frame.get("pds_cp", "type"), PDS["cp"])
                self.assertEqual(frame.payload, b"")


if __name__ == "__main__":
    unittest.main()
