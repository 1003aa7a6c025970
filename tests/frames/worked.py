# SPDX-License-Identifier: Apache-2.0
"""The worked frames of tests/interop/frames.toml, and what Heddle makes of each.

Their fields have the names of the contract and the values that the second implementation of UET (tests/interop/uet)
decodes, which knows nothing of the contract.
"""

import dataclasses
import pathlib
import sys
import tomllib

TESTS = pathlib.Path(__file__).resolve().parent.parent
SOURCES = (TESTS / "interop/frames.toml", TESTS / "frames/outcomes.toml", *sorted((TESTS / "interop/uet").glob("*.py")))

sys.path.insert(0, str(TESTS / "interop"))

from uet import frame, packet  # noqa: E402

PARTS = ("ethernet", "ipv4", "ipv6", "udp", "entropy", "pds", "ses", "extension", "payload", "crc")
HEADERS = {"Request": "pds_request", "Ack": "pds_ack", "NackPacket": "pds_nack", "Control": "pds_cp",
           "Negotiation": "pds_cp", "Uud": "pds_uud", "Standard": "ses_std", "Medium": "ses_medium",
           "Response": "ses_response", "ResponseData": "ses_response_data", "AtomicExtension": "ses_atomic"}
RENAMED = {"next": "next_hdr", "ctl": "cp_type", "op": "amo_opcode", "datatype": "amo_datatype",
           "read_message_id": "read_request_message_id"}
CSWAP = 0x0D
OUTCOMES = {"received", "request", "sent"}


@dataclasses.dataclass(frozen=True)
class Worked:
    name: str
    title: str
    from_a: bool  # From A to B, else back.
    parts: dict   # Bytes by header, in order.
    fields: dict  # Values by header and field; from the PDS header on, and the entropy header.
    payload: bytes
    entropy: int
    dscp: int
    outcome: dict

    @property
    def data(self):
        return b"".join(self.parts.values())


def number(data):
    return int.from_bytes(data, "big")


def header(decoded):
    """Fields of one header, its unions resolved."""
    fields = {RENAMED.get(name, name): int(getattr(decoded, name)) for name, _ in decoded.LAYOUT if name}
    kind = type(decoded).__name__
    if kind == "NackPacket":
        fields["nack_code"], fields["nack_psn"] = fields.pop("code"), fields.pop("psn")
    elif "code" in fields:
        fields["return_code"] = fields.pop("code")
    if fields.get("syn"):
        destination = fields.pop("dpdcid")
        fields["pdc_info"], fields["psn_offset"] = destination >> 12, destination & 0xFFF
    if kind == "Medium":
        fields["header_data" if decoded.hd else "buffer_offset"] = fields.pop("variable")
    elif kind == "Standard":
        variable = fields.pop("variable")
        fields |= {"header_data": variable} if decoded.som else {"payload_length": decoded.payload_length,
                                                                 "message_offset": decoded.message_offset}
    elif kind == "Negotiation":
        fields["payload"] >>= 32
    return fields


def fields_of(decoded, native, entropy):
    found = {"entropy": {"entropy": entropy}} if native else {}
    for part in (decoded.pds, decoded.ses, decoded.extension):
        if part is not None:
            found[HEADERS[type(part).__name__]] = header(part)
    if type(decoded.pds).__name__ == "Negotiation":
        word = decoded.pds.payload
        found["pds_negotiation"] = {"neg_type": word >> 56, "length": word >> 48 & 0xFF, "features": word & 0xFFFFFFFF}
    opcode = getattr(decoded.ses, "opcode", None) if "ses_std" in found else None
    tokens = {0x08: "buffer_offset", 0x0B: "buffer_offset", 0x0C: "match_bits"}.get(opcode)
    if tokens:
        pair = found["ses_std"][tokens]
        found["ses_tokens"] = {"initiator_restart_token": pair >> 32, "target_restart_token": pair & 0xFFFFFFFF}
    if decoded.extension is not None and decoded.extension.op == CSWAP:
        names = ("compare_hi", "compare_lo", "swap_hi", "swap_lo")
        found["ses_cswap"] = {name: number(decoded.payload[8 * i:8 * i + 8]) for i, name in enumerate(names)}
    return found


def load():
    rows, outcomes = (tomllib.loads(path.read_text()) for path in SOURCES[:2])
    if [row["name"] for row in rows["frame"]] != list(outcomes):
        raise ValueError("outcomes.toml has not each frame once, in the order of frames.toml")
    for row in rows["frame"]:
        parts = {part: bytes.fromhex(row[part]) for part in PARTS if part in row}
        data = b"".join(parts.values())
        outside = frame.decode(data)
        decoded = packet.decode(outside.packet)
        outcome = outcomes[row["name"]]
        if set(outcome) - OUTCOMES or OUTCOMES - set(outcome) - {"request"}:
            raise ValueError(f"outcomes.toml: {row['name']} has {sorted(outcome)}")
        fields = fields_of(decoded, outside.port is None, outside.entropy)
        yield Worked(row["name"], row["title"], row["sender"] == "A", parts, fields,
                     b"" if "ses_cswap" in fields else decoded.payload, outside.entropy, outside.tos >> 2, outcome)


def over_ipv6(row):
    """A worked frame over IPv6 in place of IPv4."""
    around = frame.decode(row.data)
    ends = ("2001:db8::1", "2001:db8::2")
    source, destination = ends if row.from_a else reversed(ends)
    moved = dataclasses.replace(around, source=source, destination=destination)
    return dataclasses.replace(row, name=row.name + " over IPv6", parts={"frame": moved.encode()})
