# SPDX-License-Identifier: Apache-2.0
"""The capture of every kind of frame, and what a decoder must say of it.

Fields are read here straight from the contract's TOML, by neither of the
generated views that decoders and the writer of the capture use.
"""

import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build"))

sys.path[:0] = [str(ROOT / "hw/contract"), str(ROOT / "tests/frames")]

import worked  # noqa: E402
from generator import model  # noqa: E402

SPEC = model.load(ROOT / "hw/contract/heddle.toml")
WIRES = {w["name"]: w for w in SPEC["wire"]}


def seed():
    """HEDDLE_TEST_SEED, or another one in each run; printed to repeat a failure."""
    value = int(os.environ.get("HEDDLE_TEST_SEED", random.randrange(1 << 32)))
    print(f"HEDDLE_TEST_SEED={value}")
    return value


def number(data, bit, field):
    value = int.from_bytes(data, "big") >> (8 * len(data) - bit - field["bits"]) & (1 << field["bits"]) - 1
    negative = field.get("signed") and value >> field["bits"] - 1
    return value - (1 << field["bits"]) if negative else value


def values(name, data):
    """Fields of a header by name; of a union the case that is chosen."""
    found, bit = {}, 0
    for entry in WIRES[name]["fields"]:
        cases = entry.get("cases", [{"fields": [entry]}])
        for case in cases:
            if "value" in case and found[entry["select"]] != case["value"]:
                continue
            at = bit
            for field in case["fields"]:
                found[field["name"]] = number(data, at, field)
                at += field["bits"]
        bit += entry["bits"]
    return found


class Capture:
    """All frames in `path`; `manifest` describes them."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name, "frames.pcap")
        manifest = pathlib.Path(self.folder.name, "manifest")
        subprocess.run([BUILD / "tests/uet_frames", str(seed()), self.path, manifest], check=True)
        self.manifest = [json.loads(line) for line in manifest.read_text().splitlines()]

    @staticmethod
    def expected(entry):
        """(header, field, value) of each UET field of a frame, in order."""
        return [(name, field, value) for name, data in entry["headers"]
                for field, value in values(name, bytes.fromhex(data)).items()]


def records(pcap):
    """(16-byte record header, frame) of each record of a nanosecond pcap file."""
    data = pathlib.Path(pcap).read_bytes()
    at, out = 24, []
    while at < len(data):
        size = int.from_bytes(data[at + 8:at + 12], sys.byteorder)
        out.append((data[at:at + 16], data[at + 16:at + 16 + size]))
        at += 16 + size
    return data[:24], out


def write_records(pcap, head, frames):
    """A capture of `frames`, whole, under the file header `head`."""
    with open(pcap, "wb") as out:
        out.write(head)
        for i, frame in enumerate(frames):
            size = len(frame).to_bytes(4, sys.byteorder)
            out.write(bytes(4) + i.to_bytes(4, sys.byteorder) + size + size + frame)


class WorkedCapture:
    """The worked frames, and the native one over IPv6, in `path`."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name, "worked.pcap")
        self.frames = list(worked.load())
        self.frames += [worked.over_ipv6(frame) for frame in self.frames if "entropy" in frame.parts]
        head = struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
        write_records(self.path, head, [frame.data for frame in self.frames])

    def write_native(self, path, protocol):
        """The native frame over IPv6 under another protocol number, alone in `path`."""
        data = next(frame.data for frame in self.frames if frame.name == "F26 over IPv6")
        head, _ = records(self.path)
        write_records(path, head, [data[:20] + bytes([protocol]) + data[21:]])

    @staticmethod
    def stated(frame):
        """(header, field) and value of each field that the frame is said to have."""
        return {(header, field): value for header, fields in frame.fields.items() for field, value in fields.items()}
