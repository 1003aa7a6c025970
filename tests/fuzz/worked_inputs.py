# SPDX-License-Identifier: Apache-2.0
"""The worked frames as inputs of the fuzzer `frames` (frames_fuzzer.cc has the form of an input)."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "frames"))

import worked  # noqa: E402

# Forms of the frames: IPv4 on a ROD PDC and on a RUD PDC, IPv6 on a RUD PDC, native IP on a ROD PDC.
ROD, RUD, RUD_IPV6, ROD_NATIVE = 0, 6, 4, 0x81
ROD_REQ = 3
INVENT = 5           # The operation that makes a packet up,
AS_GIVEN = 7         # of bytes that the input gives,
ADOPTED = 0x40       # which become a packet of the PDC.
STEPS = 0x7F         # The operation that lets time pass.
# Requests that no worked frame has: RENDEZVOUS_SEND, RENDEZVOUS_TSEND, DEFERRABLE_TSEND.
OTHERS = (6, 10, 11)


def invented(kind, packet):
    next_psn, own_pdcids = 1, 0
    return bytes((INVENT, kind, len(packet), next_psn, own_pdcids)) + packet


def packet_of(frame):
    return b"".join(data for part, data in frame.parts.items() if part in ("pds", "ses", "extension", "payload"))


def worked_input(frame, packet):
    """The packet as it is, then as one of a PDC that the NIC has."""
    ordered = packet[0] >> 3 == ROD_REQ
    form = ROD_NATIVE if "entropy" in frame.parts else ROD if ordered else RUD_IPV6 if "ipv6" in frame.parts else RUD
    return bytes((form,)) + b"".join(invented(kind, packet) + bytes((STEPS,)) for kind in (AS_GIVEN, AS_GIVEN | ADOPTED))


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for frame in worked.load():
        packet = packet_of(frame)
        (folder / f"{frame.name}.bin").write_bytes(worked_input(frame, packet))
        if frame.name == "F1":
            opcode = len(frame.parts["pds"])
            for other in OTHERS:
                changed = packet[:opcode] + bytes((other,)) + packet[opcode + 1:]
                (folder / f"{frame.name}-{other}.bin").write_bytes(worked_input(frame, changed))
