# SPDX-License-Identifier: Apache-2.0
"""The semantic sublayer: messages that this side starts, and those that it receives."""

import dataclasses
import itertools

from . import pds, ses
from .receiver import Reply
from .sender import Content
from .ses import Answer, Code, Op

MAX_ACK_DATA_BYTES = 16
RESTART = (Code.NO_MATCH, Code.DISABLED_GEN, Code.BAD_GENERATION)


@dataclasses.dataclass(frozen=True)
class Destination:
    """An endpoint, or the memory of one."""
    address: tuple  # Address and UDP port.
    pid_on_fep: int
    resource_index: int


@dataclasses.dataclass
class Operation:
    """A message that this side starts. It has ended when `code` is set: OK, or what the target returned."""
    opcode: int
    destination: Destination
    ordered: bool
    data: bytes | bytearray  # Of a READ, what it has read.
    offset: int = 0
    key: int = 0
    immediate: int | None = None
    message_id: int = 0
    generation: int = 0
    code: int | None = None
    tries: int = 0
    refused: int | None = None
    unacknowledged: int = 0
    unread: int = 0
    deferred: bool = False
    on_end: object = None
    pdc: object = None

    @property
    def deferrable(self):
        return self.opcode == Op.DEFERRABLE_SEND


def pieces(length, mtu):
    """(offset, bytes) of the packets of a message; an empty one has one."""
    return [(at, min(mtu, length - at)) for at in range(0, max(length, 1), mtu)]


class Initiator:
    """Starts messages on PDCs that `peer.pdc_for` provides."""

    def __init__(self, peer):
        self.peer = peer
        self.options = peer.options
        self.ids = itertools.count(peer.options.first_message_id)
        self.active = {}  # By message id.

    def new_id(self):
        while (number := next(self.ids) & 0xFFFF) in self.active:
            pass
        return number

    def start(self, operation):
        operation.message_id = self.new_id()
        self.active[operation.message_id] = operation
        operation.refused, operation.deferred = None, False
        pdc = self.peer.pdc_for(operation)
        length = len(operation.data)
        parts = pieces(length, self.options.payload_mtu)
        operation.unacknowledged = len(parts)
        if operation.opcode == Op.READ:
            operation.unread = length
            pdc.open_reads += length > 0
        operation.pdc = pdc
        for at, count in parts:
            last = at + count == length
            pdc.tx.push(self.content(operation, at, count, last))
        return operation

    def content(self, operation, at, count, last):
        read = operation.opcode == Op.READ
        som = int(at == 0)
        eom = int(last and not (read and som and count and not self.options.read_eom))
        variable = (operation.immediate or 0) if som else ses.Standard.place(count, at)
        offset = operation.message_id << 32 if operation.deferrable else operation.offset
        header = ses.Standard(operation.opcode, self.options.job_id, operation.destination.pid_on_fep,
                              operation.destination.resource_index, len(operation.data), som=som, eom=eom,
                              hd=int(operation.immediate is not None), rel=int(self.options.relative),
                              ri_generation=operation.generation, message_id=operation.message_id,
                              buffer_offset=offset, initiator=self.options.initiator, match_bits=operation.key,
                              variable=variable)
        tries = operation.tries
        payload = b"" if read else bytes(operation.data[at:at + count])
        return Content(pds.Next.REQUEST_STD, header, payload=payload, ar=int(last),
                       done=lambda answer, data: self.answered(operation, tries, answer, data))

    def answered(self, operation, tries, answer, data):
        if tries != operation.tries:
            return
        operation.unacknowledged -= 1
        if isinstance(answer, ses.ResponseData):
            self.take(operation, answer, data)
        elif answer is not None and answer.opcode == Answer.RESPONSE:
            if answer.code != Code.OK and operation.refused is None:
                operation.refused = answer.code
                if answer.code == Code.BAD_GENERATION:
                    operation.generation = answer.ri_generation
                self.stop_reading(operation)
            elif answer.list == ses.List.OVERFLOW and operation.deferrable and not answer.modified_length:
                operation.deferred = True
        self.end_if_done(operation)

    def stop_reading(self, operation):
        if operation.unread:
            operation.unread = 0
            operation.pdc.open_reads -= 1

    def take(self, operation, header, data):
        """A part of what a READ returns."""
        end = header.message_offset + len(data)
        if (operation.opcode != Op.READ or header.payload_length != len(data) or end > len(operation.data)
                or header.modified_length != len(operation.data) or len(data) > operation.unread):
            self.peer.counts["bad_read_data"] += 1
            return False
        operation.data[header.message_offset:end] = data
        operation.unread -= len(data)
        if not operation.unread:
            operation.pdc.open_reads -= 1
        return True

    def returned(self, packet):
        """Data in the return direction; what its ACK answers."""
        header = packet.ses
        by_response = self.options.read_by_response_id
        operation = self.active.get(header.response_message_id if by_response else header.read_message_id)
        if operation is None:
            self.peer.counts["stray_read_data"] += 1
            return Reply(ses.Response(Answer.RESPONSE, Code.UNDELIVERABLE, header.read_message_id,
                                      self.options.job_id, 0))
        self.take(operation, header, packet.payload)
        self.end_if_done(operation)
        return Reply(ses.Response(Answer.DEFAULT, Code.OK, header.read_message_id, self.options.job_id,
                                  len(operation.data)))

    def end_if_done(self, operation):
        if operation.unacknowledged or operation.unread or operation.deferred or operation.code is not None:
            return
        if operation.refused in RESTART and operation.tries < self.options.retries:
            delay = 0 if operation.refused == Code.BAD_GENERATION else 0.05 * 2 ** min(operation.tries, 4)
            self.restart(operation, delay)
            return
        self.finish(operation, Code.OK if operation.refused is None else operation.refused)

    def restart(self, operation, delay_s):
        del self.active[operation.message_id]
        operation.tries += 1
        self.peer.counts["restarted"] += 1
        self.peer.clock.at(self.peer.clock.now + delay_s, lambda: self.start(operation))

    def ready_to_restart(self, header):
        """DEFERRABLE_RTR: the token is in either half, and it is the message id."""
        for token in (header.match_bits >> 32, header.match_bits & 0xFFFFFFFF):
            operation = self.active.get(token)
            if operation is not None and operation.deferred:
                self.restart(operation, 0)
                return True
        return False

    def finish(self, operation, code):
        self.active.pop(operation.message_id, None)
        operation.code = code
        if operation.on_end is not None:
            operation.on_end(operation)

    def pdc_failed(self, pdc):
        for operation in list(self.active.values()):
            if operation.pdc is pdc:
                self.finish(operation, Code.UNDELIVERABLE)


@dataclasses.dataclass
class Region:
    data: bytearray
    readable: bool = True
    writable: bool = True


@dataclasses.dataclass
class Inbound:
    """A message of which packets have arrived."""
    header: ses.Standard
    data: bytearray
    missing: int
    code: int = Code.OK
    header_data: int | None = None
    packets: int = 0


@dataclasses.dataclass
class Received:
    source: str
    header: ses.Standard
    data: bytes


class Target:
    """Executes requests. `accept` returns whether an endpoint is addressed: None, or the code of the refusal."""

    def __init__(self, peer):
        self.peer = peer
        self.options = peer.options
        self.buffers = 0  # Posted receives.
        self.capacity = 1 << 20
        self.on_receive = lambda received: None
        self.on_immediate = lambda header_data, header: None
        self.regions = {}
        self.inbound = {}
        self.accept = lambda header: None

    def execute(self, pdc, packet, reply_to):
        header = packet.ses
        if not isinstance(header, ses.Standard):
            return self.refuse(header, Code.UNSUPPORTED_OP)
        if header.opcode == Op.NO_OP:
            return self.success(header) if not packet.payload else self.refuse(header, Code.UNSUPPORTED_SIZE)
        if header.opcode == Op.DEFERRABLE_RTR:
            return self.success(header) if self.peer.initiator.ready_to_restart(header) else \
                self.refuse(header, Code.OP_VIOLATION)
        if header.opcode not in (Op.SEND, Op.DEFERRABLE_SEND, Op.WRITE, Op.READ):
            return self.refuse(header, Code.UNSUPPORTED_OP)
        if header.opcode == Op.READ:
            refusal = self.accept(header) or self.check_region(header)
            return self.refuse(header, refusal) if refusal else self.read(pdc, packet, reply_to)
        return self.place(pdc, packet)

    def success(self, header):
        length = 0 if header.opcode == Op.NO_OP else header.request_length
        return Reply(ses.Response(Answer.DEFAULT, Code.OK, header.message_id, header.job_id, length,
                                  ri_generation=header.ri_generation))

    def refuse(self, header, code):
        return Reply(ses.Response(Answer.RESPONSE, code, getattr(header, "message_id", 0), header.job_id, 0),
                     guaranteed=True)

    def check_region(self, header):
        region = self.regions.get(header.match_bits)
        if region is None:
            return Code.BAD_MKEY
        if not (region.readable if header.opcode == Op.READ else region.writable):
            return Code.PERM_VIOLATION
        if header.request_length > len(region.data):
            return Code.UNSUPPORTED_SIZE
        if header.buffer_offset + header.request_length > len(region.data):
            return Code.BAD_ADDR
        return None

    def expected_bytes(self, header):
        return min(self.options.payload_mtu, header.request_length - header.message_offset)

    # ---- SEND and WRITE ----

    def place(self, pdc, packet):
        header = packet.ses
        name = pdc.address, pdc.remote, header.message_id
        message = self.inbound.get(name)
        if message is None:
            message = self.inbound[name] = self.open(header)
        if message.code == Code.OK:
            message.code = self.fill(message, packet)
        message.packets += 1
        if message.packets == len(pieces(message.header.request_length, self.options.payload_mtu)) or \
                header.opcode != message.header.opcode:
            del self.inbound[name]
            if message.code == Code.OK:
                self.complete(pdc, message)
        return self.success(header) if message.code == Code.OK else self.refuse(header, message.code)

    def open(self, header):
        code = self.accept(header)
        if code is None and header.opcode == Op.WRITE:
            code = self.check_region(header)
        elif code is None and not self.buffers:
            code = Code.NO_MATCH
        elif code is None:
            self.buffers -= 1
            code = Code.UNSUPPORTED_SIZE if header.request_length > self.capacity else None
        if code is not None:
            return Inbound(header, bytearray(), 0, code)
        data = bytearray(header.request_length) if header.opcode != Op.WRITE else None
        return Inbound(header, data, header.request_length)

    def fill(self, message, packet):
        header = packet.ses
        at = header.message_offset
        if header.request_length != message.header.request_length or len(packet.payload) != self.expected_bytes(header) \
                or header.payload_length not in (None, len(packet.payload)) or header.ie:
            return Code.INITIATOR_ERROR if header.ie else Code.OP_VIOLATION
        if header.som and header.hd:
            message.header_data = header.header_data
        if message.data is None:
            at += header.buffer_offset
            self.regions[header.match_bits].data[at:at + len(packet.payload)] = packet.payload
        else:
            message.data[at:at + len(packet.payload)] = packet.payload
        message.missing -= len(packet.payload)
        return Code.OK

    def complete(self, pdc, message):
        if message.header.opcode == Op.WRITE:
            if message.header_data is not None:
                self.on_immediate(message.header_data, message.header)
            return
        self.on_receive(Received(pdc.address, message.header, bytes(message.data)))

    # ---- READ ----

    def read(self, pdc, packet, reply_to):
        header = packet.ses
        count = self.expected_bytes(header)
        if count < 0 or header.payload_length not in (None, count) or packet.payload:
            return self.refuse(header, Code.OP_VIOLATION)
        at = header.buffer_offset + header.message_offset
        data = bytes(self.regions[header.match_bits].data[at:at + count])
        answer = ses.ResponseData(header.message_id, header.job_id, header.message_id, count, header.request_length,
                                  header.message_offset)
        if header.request_length == 0:
            return self.success(header)
        if header.request_length <= MAX_ACK_DATA_BYTES:
            return Reply(answer, data, guaranteed=True)
        pdc.path = reply_to
        pdc.tx.push(Content(pds.Next.RESPONSE_DATA, answer, payload=data, ar=1))
        return self.success(header)
