# SPDX-License-Identifier: Apache-2.0
"""Headers of the Packet Delivery Sublayer (UE specification 1.0.3 3.5)."""

import dataclasses
import enum

from .layout import Header, Malformed

PSN_MASK = 0xFFFFFFFF


class Type(enum.IntEnum):
    """Packet types (UE specification 1.0.3 Table 3-32)."""
    TSS = 1
    RUD_REQ = 2
    ROD_REQ = 3
    RUDI_REQ = 4
    RUDI_RESP = 5
    UUD_REQ = 6
    ACK = 7
    ACK_CC = 8
    ACK_CCX = 9
    NACK = 10
    CONTROL = 11
    NACK_CCX = 12
    RUD_CC_REQ = 13
    ROD_CC_REQ = 14


class Next(enum.IntEnum):
    """Which SES header follows (UE specification 1.0.3 Table 3-16)."""
    NONE = 0
    REQUEST_SMALL = 1
    REQUEST_MEDIUM = 2
    REQUEST_STD = 3
    RESPONSE = 4
    RESPONSE_DATA = 5
    RESPONSE_DATA_SMALL = 6


class Ctl(enum.IntEnum):
    NOOP = 0
    ACK_REQUEST = 1
    CLEAR_COMMAND = 2
    CLEAR_REQUEST = 3
    CLOSE_COMMAND = 4
    CLOSE_REQUEST = 5
    PROBE = 6
    CREDIT = 7
    CREDIT_REQUEST = 8
    NEGOTIATION = 9


class Req(enum.IntEnum):
    """What the target requests with an ACK."""
    NONE = 0
    CLEAR = 1
    CLOSE = 2


class Nack(enum.IntEnum):
    """Codes of a NACK (UE specification 1.0.3 Table 3-58)."""
    TRIMMED = 0x01
    TRIMMED_LASTHOP = 0x02
    TRIMMED_ACK = 0x03
    NO_PDC_AVAIL = 0x04
    NO_CCC_AVAIL = 0x05
    NO_BITMAP = 0x06
    NO_PKT_BUFFER = 0x07
    NO_GTD_DEL_AVAIL = 0x08
    NO_SES_MSG_AVAIL = 0x09
    NO_RESOURCE = 0x0A
    PSN_OOR_WINDOW = 0x0B
    ROD_OOO = 0x0D
    INV_DPDCID = 0x0E
    PDC_HDR_MISMATCH = 0x0F
    CLOSING = 0x10
    CLOSING_IN_ERR = 0x11
    PKT_NOT_RCVD = 0x12
    GTD_DEL_RESP_UNAVAIL = 0x13
    ACK_WITH_DATA = 0x14
    INVALID_SYN = 0x15
    PDC_MODE_MISMATCH = 0x16
    NEW_START_PSN = 0x17
    RCVD_SES_PROCG = 0x18
    UNEXP_EVENT = 0x19
    RCVR_INFER_LOSS = 0x1A


RETRANSMIT = frozenset((*range(0x01, 0x0C), Nack.ROD_OOO, Nack.PKT_NOT_RCVD, Nack.ACK_WITH_DATA,
                        Nack.RCVR_INFER_LOSS, 0xFD, 0xFE))
FATAL = frozenset((Nack.INV_DPDCID, Nack.PDC_HDR_MISMATCH, Nack.CLOSING, Nack.CLOSING_IN_ERR,
                   Nack.GTD_DEL_RESP_UNAVAIL, Nack.INVALID_SYN, Nack.PDC_MODE_MISMATCH, Nack.UNEXP_EVENT, 0xFF))


def advance(psn, by):
    return psn + by & PSN_MASK


def distance(to, origin):
    """How far PSN `to` is after `origin`; negative if it is before it."""
    return (to - origin + 0x80000000 & PSN_MASK) - 0x80000000


@dataclasses.dataclass(frozen=True)
class Request(Header):
    """RUD_REQ or ROD_REQ. With `syn`, the last two bytes are pdc_info and psn_offset instead of dpdcid."""
    type: int
    next: int
    psn: int
    spdcid: int
    dpdcid: int = 0
    clear_psn_offset: int = -1
    retx: int = 0
    ar: int = 0
    syn: int = 0
    LAYOUT = (("type", 5), ("next", 4), ("", 2), ("retx", 1), ("ar", 1), ("syn", 1), ("", 2),
              ("clear_psn_offset", -16), ("psn", 32), ("spdcid", 16), ("dpdcid", 16))

    @property
    def psn_offset(self):
        return self.dpdcid & 0xFFF

    @property
    def start_psn(self):
        return advance(self.psn, -self.psn_offset)

    @property
    def clear_psn(self):
        return advance(self.psn, self.clear_psn_offset)


@dataclasses.dataclass(frozen=True)
class RequestCc(Request):
    """RUD_CC_REQ or ROD_CC_REQ: a request with req_cc_state."""
    ccc_id: int = 0
    credit_target: int = 0
    LAYOUT = Request.LAYOUT + (("ccc_id", 8), ("credit_target", 24))


@dataclasses.dataclass(frozen=True)
class Ack(Header):
    """ACK. With `p`, `ack_psn_offset` is the probe's opaque value."""
    next: int
    cack_psn: int
    spdcid: int
    dpdcid: int
    ack_psn_offset: int = 0
    m: int = 0
    retx: int = 0
    p: int = 0
    req: int = 0
    type: int = Type.ACK
    LAYOUT = (("type", 5), ("next", 4), ("", 1), ("m", 1), ("retx", 1), ("p", 1), ("req", 2), ("", 1),
              ("ack_psn_offset", -16), ("cack_psn", 32), ("spdcid", 16), ("dpdcid", 16))

    @property
    def ack_psn(self):
        return advance(self.cack_psn, self.ack_psn_offset)


@dataclasses.dataclass(frozen=True)
class AckCc(Ack):
    """ACK_CC with the state of NSCC (cc_type 0) as an integer."""
    cc_type: int = 0
    mpr: int = 0
    sack_psn_offset: int = 0
    sack_bitmap: int = 0
    cc_state: int = 0
    type: int = Type.ACK_CC
    LAYOUT = Ack.LAYOUT + (("cc_type", 4), ("", 4), ("mpr", 8), ("sack_psn_offset", -16), ("sack_bitmap", 64),
                           ("cc_state", 64))

    def sacked(self):
        """The PSNs that the bitmap reports as received."""
        base = advance(self.cack_psn, self.sack_psn_offset)
        return [advance(base, bit) for bit in range(64) if self.sack_bitmap >> bit & 1]


@dataclasses.dataclass(frozen=True)
class AckCcx(AckCc):
    ccx_state: int = 0
    type: int = Type.ACK_CCX
    LAYOUT = AckCc.LAYOUT + (("ccx_state", 64),)


@dataclasses.dataclass(frozen=True)
class NackPacket(Header):
    code: int
    psn: int
    spdcid: int
    dpdcid: int
    payload: int = 0
    vendor_code: int = 0
    m: int = 0
    retx: int = 0
    nt: int = 0
    next: int = Next.NONE
    type: int = Type.NACK
    LAYOUT = (("type", 5), ("next", 4), ("", 1), ("m", 1), ("retx", 1), ("nt", 1), ("", 3), ("code", 8),
              ("vendor_code", 8), ("psn", 32), ("spdcid", 16), ("dpdcid", 16), ("payload", 32))


@dataclasses.dataclass(frozen=True)
class Control(Header):
    """Control packet. With `syn`, `dpdcid` is pdc_info and psn_offset."""
    ctl: int
    psn: int
    spdcid: int
    dpdcid: int
    payload: int = 0
    probe_opaque: int = 0
    isrod: int = 0
    retx: int = 0
    ar: int = 0
    syn: int = 0
    type: int = Type.CONTROL
    next = Next.NONE
    LAYOUT = (("type", 5), ("ctl", 4), ("", 1), ("isrod", 1), ("retx", 1), ("ar", 1), ("syn", 1), ("", 2),
              ("probe_opaque", 16), ("psn", 32), ("spdcid", 16), ("dpdcid", 16), ("payload", 32))


@dataclasses.dataclass(frozen=True)
class Negotiation(Control):
    """The only control packet with a payload of 8 bytes (UE specification 1.0.3 Fig. 3-78)."""
    LAYOUT = Control.LAYOUT[:-1] + (("payload", 64),)


@dataclasses.dataclass(frozen=True)
class Rudi(Header):
    """RUDI_REQ or RUDI_RESP."""
    type: int
    next: int
    pkt_id: int
    m: int = 0
    retx: int = 0
    LAYOUT = (("type", 5), ("next", 4), ("", 1), ("m", 1), ("retx", 1), ("", 4), ("", 16), ("pkt_id", 32))


@dataclasses.dataclass(frozen=True)
class Uud(Header):
    next: int
    type: int = Type.UUD_REQ
    LAYOUT = (("type", 5), ("next", 4), ("", 7), ("", 16))


CLASSES = {
    Type.RUD_REQ: Request, Type.ROD_REQ: Request, Type.RUDI_REQ: Rudi, Type.RUDI_RESP: Rudi, Type.UUD_REQ: Uud,
    Type.ACK: Ack, Type.ACK_CC: AckCc, Type.ACK_CCX: AckCcx, Type.NACK: NackPacket, Type.CONTROL: Control,
    Type.RUD_CC_REQ: RequestCc, Type.ROD_CC_REQ: RequestCc,
}


def decode(data):
    if len(data) < 2:
        raise Malformed(f"{len(data)} bytes hold no prologue")
    kind = data[0] >> 3
    if kind not in CLASSES:
        raise Malformed(f"PDS type {kind}")
    header = CLASSES[kind].decode(data)
    return Negotiation.decode(data) if kind == Type.CONTROL and header.ctl == Ctl.NEGOTIATION else header
