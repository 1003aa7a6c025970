# SPDX-License-Identifier: Apache-2.0
"""Headers of the Semantic Sublayer (UE specification 1.0.3 3.4)."""

import dataclasses
import enum

from .layout import Header


class Op(enum.IntEnum):
    """Opcodes of requests (UE specification 1.0.3 Table 3-17)."""
    NO_OP = 0x00
    WRITE = 0x01
    READ = 0x02
    ATOMIC = 0x03
    FETCHING_ATOMIC = 0x04
    SEND = 0x05
    RENDEZVOUS_SEND = 0x06
    DATAGRAM_SEND = 0x07
    DEFERRABLE_SEND = 0x08
    TAGGED_SEND = 0x09
    RENDEZVOUS_TSEND = 0x0A
    DEFERRABLE_TSEND = 0x0B
    DEFERRABLE_RTR = 0x0C
    TSEND_ATOMIC = 0x0D
    TSEND_FETCH_ATOMIC = 0x0E
    MSG_ERROR = 0x0F


ATOMICS = (Op.ATOMIC, Op.FETCHING_ATOMIC, Op.TSEND_ATOMIC, Op.TSEND_FETCH_ATOMIC)


class Answer(enum.IntEnum):
    """Opcodes of responses (UE specification 1.0.3 Table 3-18)."""
    DEFAULT = 0
    RESPONSE = 1
    RESPONSE_W_DATA = 2
    NO_RESPONSE = 3


class List(enum.IntEnum):
    EXPECTED = 0
    OVERFLOW = 1


class Code(enum.IntEnum):
    """Return codes (UE specification 1.0.3 Table 3-19)."""
    NULL = 0x00
    OK = 0x01
    BAD_GENERATION = 0x02
    DISABLED = 0x03
    DISABLED_GEN = 0x04
    NO_MATCH = 0x05
    UNSUPPORTED_OP = 0x06
    UNSUPPORTED_SIZE = 0x07
    PERM_VIOLATION = 0x17
    OP_VIOLATION = 0x18
    BAD_INDEX = 0x19
    BAD_PID = 0x1A
    BAD_JOB_ID = 0x1B
    BAD_MKEY = 0x1C
    BAD_ADDR = 0x1D
    CANCELLED = 0x1E
    UNDELIVERABLE = 0x1F
    UNCOR = 0x20
    TOO_LONG = 0x22
    INITIATOR_ERROR = 0x23
    DROPPED = 0x24


COMMON = (("", 2), ("opcode", 6), ("ver", 2), ("dc", 1), ("ie", 1), ("rel", 1), ("hd", 1), ("eom", 1), ("som", 1))
ADDRESS = (("ri_generation", 8), ("job_id", 24), ("", 4), ("pid_on_fep", 12), ("", 4), ("resource_index", 12))


@dataclasses.dataclass(frozen=True)
class _Request(Header):
    opcode: int
    job_id: int
    pid_on_fep: int
    resource_index: int
    request_length: int
    som: int = 1
    eom: int = 1
    hd: int = 0
    rel: int = 0
    ie: int = 0
    dc: int = 0
    ver: int = 0
    ri_generation: int = 0


@dataclasses.dataclass(frozen=True)
class Standard(_Request):
    """Standard request (UE specification 1.0.3 3.4.2).

    `variable` is header_data with `som`, else payload_length and message_offset: see `place`. In deferrable sends
    buffer_offset is the two restart tokens, in DEFERRABLE_RTR match_bits is.
    """
    message_id: int = 0
    buffer_offset: int = 0
    initiator: int = 0
    match_bits: int = 0
    variable: int = 0
    LAYOUT = (*COMMON, ("message_id", 16), *ADDRESS, ("buffer_offset", 64), ("initiator", 32), ("match_bits", 64),
              ("variable", 64), ("request_length", 32))

    @property
    def header_data(self):
        return self.variable if self.som else 0

    @property
    def message_offset(self):
        return 0 if self.som else self.variable & 0xFFFFFFFF

    @property
    def payload_length(self):
        """Bytes that the packet carries, or asks for; None where the header does not have it."""
        return None if self.som else self.variable >> 32 & 0x3FFF

    @staticmethod
    def place(payload_length, message_offset):
        """`variable` of a packet that is not the first."""
        return payload_length << 32 | message_offset


@dataclasses.dataclass(frozen=True)
class Medium(_Request):
    """Small message or small RMA request. `variable` is header_data with `hd`, else buffer_offset."""
    variable: int = 0
    initiator: int = 0
    match_bits: int = 0
    LAYOUT = (*COMMON, ("", 2), ("request_length", 14), *ADDRESS, ("variable", 64), ("initiator", 32),
              ("match_bits", 64))


@dataclasses.dataclass(frozen=True)
class Small(_Request):
    """Optimized non-matching request."""
    buffer_offset: int = 0
    LAYOUT = (*COMMON, ("", 2), ("request_length", 14), *ADDRESS, ("buffer_offset", 64))


@dataclasses.dataclass(frozen=True)
class AtomicExtension(Header):
    op: int
    datatype: int
    semantic_control: int = 0x02
    LAYOUT = (("op", 8), ("datatype", 8), ("semantic_control", 8), ("", 8))


@dataclasses.dataclass(frozen=True)
class Response(Header):
    opcode: int
    code: int
    message_id: int
    job_id: int
    modified_length: int
    list: int = List.EXPECTED
    ver: int = 0
    ri_generation: int = 0
    LAYOUT = (("list", 2), ("opcode", 6), ("ver", 2), ("code", 6), ("message_id", 16), ("ri_generation", 8),
              ("job_id", 24), ("modified_length", 32))


@dataclasses.dataclass(frozen=True)
class ResponseData(Header):
    response_message_id: int
    job_id: int
    read_message_id: int
    payload_length: int
    modified_length: int
    message_offset: int
    opcode: int = Answer.RESPONSE_W_DATA
    code: int = Code.OK
    list: int = List.EXPECTED
    ver: int = 0
    LAYOUT = (("list", 2), ("opcode", 6), ("ver", 2), ("code", 6), ("response_message_id", 16), ("", 8),
              ("job_id", 24), ("read_message_id", 16), ("", 2), ("payload_length", 14), ("modified_length", 32),
              ("message_offset", 32))


@dataclasses.dataclass(frozen=True)
class ResponseDataSmall(Header):
    payload_length: int
    job_id: int
    original_request_psn: int
    opcode: int = Answer.RESPONSE_W_DATA
    code: int = Code.OK
    list: int = List.EXPECTED
    ver: int = 0
    LAYOUT = (("list", 2), ("opcode", 6), ("ver", 2), ("code", 6), ("", 2), ("payload_length", 14), ("", 8),
              ("job_id", 24), ("original_request_psn", 32))
