# SPDX-License-Identifier: Apache-2.0
"""The codec of the independent peer against the worked frames of frames.toml."""

import dataclasses
import pathlib
import random
import sys
import tomllib
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import seed  # noqa: E402
from uet import frame, packet  # noqa: E402
from uet.crc import crc32c  # noqa: E402
from uet.layout import Malformed  # noqa: E402
from uet.packet import Packet  # noqa: E402
from uet.pds import (Ack, AckCc, AckCcx, Control, Ctl, Nack, NackPacket, Negotiation, Next, Req, Request,  # noqa: E402
                     RequestCc, Rudi, Type, Uud)
from uet.ses import (Answer, AtomicExtension, Code, List, Medium, Op, Response, ResponseData,  # noqa: E402
                     ResponseDataSmall, Small, Standard)

HEADERS = ("ethernet", "ipv4", "ipv6", "udp", "entropy", "pds", "ses", "extension", "payload", "crc")
ROD_PSN, RUD_PSN, RTR_PSN = 0x00123456, 0x23456789, 0x3456789A
KEY = 0x0001000000000003
SUM, CSWAP, UINT64 = 2, 0x0D, 7
CONTROL_TOS, CONTROL_ENTROPY = 46 << 2, 0x4242


def rod(psn, **fields):
    return Request(Type.ROD_REQ, Next.REQUEST_STD, psn, 1, **fields)


def rud(after, **fields):
    return Request(Type.RUD_REQ, fields.pop("next", Next.REQUEST_STD), RUD_PSN + after,
                   **{"spdcid": 2, "dpdcid": 8, "ar": 1} | fields)


def standard(opcode, message_id, length, ri=15, **fields):
    return Standard(opcode, 1, 0, ri, length, message_id=message_id, **{"rel": 1, "initiator": 16} | fields)


def ack(cack, semantic=None, payload=b"", spdcid=8, dpdcid=2, **fields):
    following = {Response: Next.RESPONSE, ResponseData: Next.RESPONSE_DATA, type(None): Next.NONE}[type(semantic)]
    return Packet(Ack(following, cack, spdcid, dpdcid, **fields), semantic, payload=payload)


def success(message_id, length):
    return Response(Answer.DEFAULT, Code.OK, message_id, 1, length)


def number(value):
    return value.to_bytes(8, "big")


FIRST_SEND = Packet(rod(ROD_PSN, ar=1, syn=1), standard(Op.SEND, 0, 16), payload=b"Heddle ROD SEND!")
FIRST_WRITE = Packet(rud(1), standard(Op.WRITE, 1, 16, buffer_offset=0x100, match_bits=KEY), payload=bytes(range(16)))
ADDITION = AtomicExtension(SUM, UINT64)
RTR = Request(Type.RUD_REQ, Next.REQUEST_STD, RTR_PSN, 9, 3, ar=1)
WORKED = {
    "F1": FIRST_SEND,
    "F2": ack(ROD_PSN, success(0, 16), spdcid=7, dpdcid=1),
    "F3": FIRST_WRITE,
    "F4": ack(RUD_PSN + 1, success(1, 16)),
    "F5": Packet(rud(2), standard(Op.WRITE, 2, 8, buffer_offset=0x110, match_bits=KEY, hd=1,
                                  variable=0x1122334455667788), payload=bytes(range(16, 24))),
    "F6": Packet(rud(3), standard(Op.READ, 3, 64, buffer_offset=0x200, match_bits=KEY, eom=0)),
    "F7": ack(RUD_PSN + 3, success(3, 64)),
    "F8": Packet(rud(0, spdcid=8, dpdcid=2, next=Next.RESPONSE_DATA), ResponseData(3, 1, 3, 64, 64, 0),
                 payload=bytes(range(64))),
    "F9": ack(RUD_PSN, success(3, 64), spdcid=2, dpdcid=8),
    "F10": Packet(rud(4), standard(Op.FETCHING_ATOMIC, 4, 8, buffer_offset=0x40, match_bits=KEY), ADDITION, number(1)),
    "F11": ack(RUD_PSN + 3, ResponseData(4, 1, 4, 8, 8, 0), number(41), ack_psn_offset=1, req=Req.CLEAR),
    "F12": Packet(Control(Ctl.CLEAR_COMMAND, 0, 2, 8, RUD_PSN + 4)),
    "F13": Packet(rud(5), standard(Op.FETCHING_ATOMIC, 5, 32, buffer_offset=0x40, match_bits=KEY),
                  AtomicExtension(CSWAP, UINT64), number(0) + number(42) + number(0) + number(100)),
    "F14": ack(RUD_PSN + 4, ResponseData(5, 1, 5, 8, 32, 0), number(42), ack_psn_offset=1, req=Req.CLEAR),
    "F15": Packet(rud(6), standard(Op.TAGGED_SEND, 6, 8, match_bits=0x0123456789ABCDEF), payload=b"tagged.."),
    "F16": Packet(Uud(Next.REQUEST_STD), standard(Op.SEND, 7, 8), payload=b"datagram"),
    "F17": Packet(NackPacket(Nack.INV_DPDCID, ROD_PSN + 1, 0, 1)),
    "F18": Packet(Control(Ctl.CLOSE_COMMAND, RUD_PSN + 7, 2, 8, ar=1)),
    "F19": ack(RUD_PSN + 7),
    "F20": Packet(rud(7), standard(Op.ATOMIC, 7, 8, buffer_offset=0x40, match_bits=KEY), ADDITION, number(1)),
    "F21": ack(RUD_PSN + 7, success(7, 8)),
    "F22": ack(RUD_PSN + 6, Response(Answer.RESPONSE, Code.BAD_MKEY, 7, 1, 0), ack_psn_offset=1, req=Req.CLEAR),
    "F23": Packet(rud(8, ar=0), standard(Op.DEFERRABLE_SEND, 8, 16384, buffer_offset=5 << 32, eom=0)),
    "F24": ack(RUD_PSN + 7, Response(Answer.RESPONSE, Code.OK, 8, 1, 0, List.OVERFLOW), ack_psn_offset=1,
               req=Req.CLEAR),
    "F25": Packet(RTR, standard(Op.DEFERRABLE_RTR, 0, 0, ri=0, match_bits=5)),
    "F26": FIRST_SEND,
    "F27": FIRST_WRITE,
    "G1": Packet(Uud(Next.REQUEST_MEDIUM), Medium(Op.DATAGRAM_SEND, 1, 0, 15, 8, rel=1, initiator=16),
                 payload=b"datagram"),
    "G2": Packet(NackPacket(Nack.TRIMMED, RUD_PSN + 1, 8, 2)),
    "G3": Packet(rud(9), standard(Op.NO_OP, 9, 0)),
    "G4": Packet(RTR, standard(Op.DEFERRABLE_RTR, 0, 0, ri=0, match_bits=5 << 32 | 0x77)),
    "G5": Packet(Negotiation(Ctl.NEGOTIATION, 0, 2, 8, 0x0102000000000001)),
}


def worked_frames():
    """Each worked frame: its row, and the bytes of its headers by name."""
    with open(pathlib.Path(__file__).with_name("frames.toml"), "rb") as rows:
        for row in tomllib.load(rows)["frame"]:
            yield row, {name: bytes.fromhex(row[name]) for name in HEADERS if name in row}


def built(row):
    """The frame as the codec builds it, of values and not of the row's bytes."""
    ends = [(bytes((2, 0, 0, 0, 0, end)), f"2001:db8::{end}" if "ipv6" in row else f"192.0.2.{end}") for end in (1, 2)]
    source, destination = ends if row["sender"] == "A" else reversed(ends)
    content = WORKED[row["name"]]
    control = content.pds.type in (Type.ACK, Type.NACK, Type.CONTROL)
    close = row["name"] == "F19"  # Returns the entropy of a control packet.
    return frame.Frame(destination[0], source[0], source[1], destination[1],
                       CONTROL_ENTROPY if close or content.pds.type == Type.CONTROL else 0xF25A, content.encode(),
                       port=None if "entropy" in row else frame.PORT, tos=CONTROL_TOS if control else 0)


class InteropWorkedFrames(unittest.TestCase):
    def test_there_are_32(self):
        self.assertEqual([row["name"] for row, _ in worked_frames()], list(WORKED))
        self.assertEqual(len(WORKED), 32)

    def test_each_is_built_from_values_byte_for_byte(self):
        for row, headers in worked_frames():
            with self.subTest(row["name"], title=row["title"]):
                self.assertEqual(built(row).encode().hex(" ", 2), b"".join(headers.values()).hex(" ", 2))

    def test_each_decodes_to_its_values(self):
        for row, headers in worked_frames():
            with self.subTest(row["name"], title=row["title"]):
                decoded = frame.decode(b"".join(headers.values()))
                self.assertEqual(decoded, built(row))
                self.assertEqual(packet.decode(decoded.packet), WORKED[row["name"]])

    def test_headers_end_where_the_frames_show_it(self):
        for row, headers in worked_frames():
            with self.subTest(row["name"], title=row["title"]):
                parts = WORKED[row["name"]]
                for name in ("pds", "ses", "extension"):
                    part = getattr(parts, name)
                    self.assertEqual(b"" if part is None else part.encode(), headers.get(name, b""), name)

    def test_padding_of_short_frames_is_no_part_of_the_packet(self):
        for row, headers in worked_frames():
            data = b"".join(headers.values())
            self.assertEqual(frame.decode(data.ljust(60, b"\xa5")), frame.decode(data), row["name"])

    def test_each_damaged_byte_that_the_crc_covers_is_found(self):
        for row, headers in worked_frames():
            data = b"".join(headers.values())
            shim = 14 + (40 if "ipv6" in headers else 20)
            ignored = range(shim + 6, shim + 8) if "udp" in headers else ()  # The UDP checksum.
            for at in range(shim - (32 if "ipv6" in headers else 8), len(data)):
                damaged = data[:at] + bytes((data[at] ^ 0x10,)) + data[at + 1:]
                if at not in ignored:
                    with self.subTest(row["name"], at=at), self.assertRaises(Malformed):
                        frame.decode(damaged)

    def test_a_rewritten_udp_checksum_does_not_break_the_crc(self):
        for row, headers in worked_frames():
            if "udp" in headers:
                rewritten = headers | {"udp": headers["udp"][:6] + b"\xab\xcd"}
                self.assertEqual(frame.decode(b"".join(rewritten.values())), built(row), row["name"])


class InteropCrc(unittest.TestCase):
    def test_vectors(self):
        for data, value in ((b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43),
                            (bytes(range(32)), 0x46DD794E)):
            self.assertEqual(crc32c(data), value, data)

    def test_orders_on_the_wire(self):
        ends = ("192.0.2.1", 4660), ("192.0.2.2", 4793)
        sealed = {order: frame.seal_datagram(*ends, b"packet", order) for order in frame.CRC_ORDERS}
        self.assertEqual(sealed["none"], b"packet")
        self.assertEqual(sealed["msb"][-4:], sealed["lsb"][:-5:-1])
        for order, data in sealed.items():
            self.assertEqual(frame.open_datagram(*ends, data, order), b"packet")
        self.assertIsNone(frame.open_datagram(*ends, sealed["lsb"], "msb"))
        self.assertIsNone(frame.open_datagram(*reversed(ends), sealed["msb"], "msb"), "ports and addresses swapped")

    def test_a_datagram_is_sealed_as_its_frame_is(self):
        for row, headers in worked_frames():
            if "udp" in headers:
                whole = built(row)
                sealed = frame.seal_datagram((whole.source, whole.entropy), (whole.destination, whole.port), whole.packet)
                self.assertEqual(sealed, whole.packet + headers["crc"], row["name"])


class InteropHeaders(unittest.TestCase):
    CLASSES = (Request, RequestCc, Ack, AckCc, AckCcx, NackPacket, Control, Negotiation, Rudi, Uud, Standard, Medium,
               Small, AtomicExtension, Response, ResponseData, ResponseDataSmall)
    BYTES = (12, 16, 12, 32, 40, 16, 16, 20, 8, 4, 44, 32, 20, 4, 12, 20, 12)

    def test_sizes(self):
        self.assertEqual(tuple(header.BYTES for header in self.CLASSES), self.BYTES)

    def test_random_fields_survive(self):
        source = random.Random(seed.of_this_run())
        for header in self.CLASSES:
            for _ in range(100):
                fields = {name: source.getrandbits(bits) if bits > 0 else source.randrange(-1 << (-bits - 1), 1 << (-bits - 1))
                          for name, bits in header.LAYOUT if name}
                value = header(**fields)
                self.assertEqual(header.decode(value.encode()), value)
                self.assertEqual(dataclasses.asdict(value), dataclasses.asdict(value) | fields)

    def test_a_value_without_room_is_refused(self):
        for fields in ({"psn": 1 << 32}, {"spdcid": -1}, {"clear_psn_offset": 0x8000}, {"clear_psn_offset": -0x8001}):
            with self.subTest(fields), self.assertRaises(ValueError):
                rud(0).replaced(**fields).encode()

    def test_each_cut_header_is_malformed(self):
        for name, content in WORKED.items():
            data = content.encode()
            for length in range(len(data) - len(content.payload)):
                with self.subTest(name, length=length), self.assertRaises(Malformed):
                    packet.decode(data[:length])

    def test_unknown_types_are_malformed(self):
        for kind in (0, *range(15, 32)):
            with self.assertRaises(Malformed):
                packet.decode(bytes((kind << 3,)) + bytes(63))

    def test_a_negative_clear_offset_is_signed(self):
        request = packet.decode(WORKED["F3"].encode()).pds
        self.assertEqual(request.clear_psn, RUD_PSN)


if __name__ == "__main__":
    unittest.main()
