# SPDX-License-Identifier: Apache-2.0
"""What tshark makes of a capture with the generated Wireshark dissector."""

import collections
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import frames

SCRIPT = frames.ROOT / "hw/contract/gen/heddle_uet.lua"
CHECKS = ("-o", "udp.check_checksum:TRUE", "-o", "udp.ignore_ipv6_zero_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
GOOD, NOT_PRESENT = "1", "3"  # Of udp.checksum.status.
FIELD = re.compile(r"heddle_uet\.((?:pds|ses)_\w+|entropy)\.(\w+)")

Packet = collections.namedtuple("Packet", "fields payload crc_status udp_status experts names")


def dissect(pcap, *options, checks=CHECKS):
    """A Packet per frame of a capture."""
    run = subprocess.run(["tshark", "-X", f"lua_script:{SCRIPT}", "-r", str(pcap), "-T", "pdml", *checks, *options],
                         capture_output=True, text=True, timeout=300, check=False)
    complaints = [line for line in run.stderr.splitlines() if "Running as user" not in line]
    if run.returncode or complaints:
        raise AssertionError(f"tshark ended with {run.returncode}: {run.stderr}")
    return [read(packet) for packet in ElementTree.fromstring(run.stdout).iter("packet")]


def read(packet):
    every = list(packet.iter("field"))
    found = collections.defaultdict(list)
    fields = []
    for field in every:
        name, show = field.get("name"), field.get("show")
        found[name].append(field)
        match = FIELD.fullmatch(name)
        if match:
            value = {"True": 1, "False": 0}.get(show)
            fields.append((*match.groups(), int(show, 0) if value is None else value))
    first = lambda name, key: found[name][0].get(key) if found[name] else None  # noqa: E731
    return Packet(fields, first("heddle_uet.payload", "value") or "", first("heddle_uet.crc.status", "show"),
                  first("udp.checksum.status", "show"),
                  [f.get("show") for f in found["_ws.expert.message"]], set(found))
