# SPDX-License-Identifier: Apache-2.0
"""A peer: its PDCs, and what finds the one that a packet belongs to. It has no sockets and no clock of its own."""

import collections
import random

from . import pds
from .messages import Destination, Initiator, Operation, Target
from .packet import Packet
from .pdc import Pdc
from .pds import Nack, Type
from .ses import Op

MODES = {Type.RUD_CC_REQ: Type.RUD_REQ, Type.ROD_CC_REQ: Type.ROD_REQ}


class Peer:
    """`wire.transmit(socket, destination, packet)` sends; `clock` has `now` and `at(time, call)`. A path is a socket of
    `wire` and a destination."""

    def __init__(self, options, wire, clock, random_source=None):
        self.options = options
        self.wire = wire
        self.clock = clock
        self.random = random_source or random.Random()
        self.counts = collections.Counter()
        self.pdcs = {}  # By local PDCID.
        self.by_initiator = {}  # Target: by source address and the initiator's PDCID.
        self.by_destination = {}  # Initiator: those that accept messages.
        self.tombstones = {}
        self.errors = []
        self.initiator = Initiator(self)
        self.target = Target(self)

    # ---- operations ----

    def send(self, destination, data, ordered=True):
        large = self.options.defer_from is not None and len(data) >= self.options.defer_from
        opcode = Op.DEFERRABLE_SEND if large and not ordered else Op.SEND
        return self.initiator.start(Operation(opcode, destination, ordered, data))

    def write(self, destination, data, key, offset=0, ordered=True, immediate=None):
        return self.initiator.start(Operation(Op.WRITE, destination, ordered, data, offset, key, immediate))

    def read(self, destination, length, key, offset=0, ordered=True):
        return self.initiator.start(Operation(Op.READ, destination, ordered, bytearray(length), offset, key))

    def close(self):
        """Closes every PDC that this side initiated, when it is idle."""
        for pdc in list(self.pdcs.values()):
            if pdc.initiates:
                pdc.close()

    # ---- PDCs ----

    def new_pdcid(self):
        if self.options.lowest_pdcid:
            return next(number for number in range(1, 1 << 16) if self.is_free(number))
        while not self.is_free(number := self.random.randrange(1, 1 << 16)):
            pass
        return number

    def is_free(self, number):
        return number not in self.pdcs and number not in self.tombstones

    def pdc_for(self, operation):
        mode = Type.ROD_REQ if operation.ordered else Type.RUD_REQ
        destination: Destination = operation.destination
        name = destination.address, mode
        pdc = self.by_destination.get(name)
        if pdc is None or pdc.closing or pdc.ended:
            pdc = Pdc(self, True, mode, self.new_pdcid(), destination.address[0],
                      self.wire.request_path(destination.address), self.random.getrandbits(32))
            self.pdcs[pdc.local] = self.by_destination[name] = pdc
            self.counts["opened"] += 1
        return pdc

    def ended(self, pdc):
        del self.pdcs[pdc.local]
        if not pdc.initiates:
            del self.by_initiator[pdc.address, pdc.remote]
        self.tombstones[pdc.local] = pdc
        self.clock.at(self.clock.now + self.options.close_s, lambda: self.tombstones.pop(pdc.local))
        if pdc.error is not None:
            self.errors.append(pdc.error)
            self.initiator.pdc_failed(pdc)

    # ---- packets ----

    def transmit(self, path, packet):
        self.counts["sent"] += 1
        self.wire.transmit(*path, packet)

    def refuse(self, code, header, reply_to):
        """A NACK of no PDC."""
        self.counts[f"nack_{code.name}"] += 1
        self.transmit(reply_to, Packet(pds.NackPacket(code, header.psn, 0, header.spdcid)))

    def execute(self, pdc, packet, reply_to):
        if pdc.initiates:
            return self.initiator.returned(packet)
        return self.target.execute(pdc, packet, reply_to)

    def arrive(self, packet, reply_to):
        """A packet that came by `reply_to`, on which the answer leaves."""
        self.counts["received"] += 1
        header = packet.pds
        address = reply_to[1][0]
        if isinstance(header, pds.Request) and header.type in MODES:
            packet = Packet(header.replaced(type=MODES[header.type]), packet.ses, packet.extension, packet.payload)
            header = packet.pds
        if not isinstance(header, (pds.Request, pds.Ack, pds.NackPacket, pds.Control)):
            self.counts["ignored"] += 1
        elif getattr(header, "syn", 0):
            self.opened(packet, address, reply_to)
        elif (pdc := self.pdcs.get(header.dpdcid)) is not None:
            self.deliver(pdc, packet, address, reply_to)
        else:
            self.unknown(packet, address, reply_to)

    def opened(self, packet, address, reply_to):
        header = packet.pds
        name = address, header.spdcid
        pdc = self.by_initiator.get(name)
        if pdc is None:
            if any((old.address, old.remote, old.start_psn) == (*name, header.start_psn) and not old.initiates
                   for old in self.tombstones.values()):
                self.refuse(Nack.CLOSING, header, reply_to)
                return
            pdc = Pdc(self, False, header.type, self.new_pdcid(), address, reply_to, header.start_psn, header.spdcid)
            self.pdcs[pdc.local] = self.by_initiator[name] = pdc
            self.counts["accepted"] += 1
        self.deliver(pdc, packet, address, reply_to)

    def deliver(self, pdc, packet, address, reply_to):
        header = packet.pds
        mismatch = address != pdc.address or (not pdc.syn and header.spdcid != pdc.remote)
        answer = isinstance(header, (pds.Ack, pds.NackPacket))
        if mismatch and isinstance(header, pds.NackPacket) and header.spdcid == 0 and address == pdc.address:
            mismatch = False  # It comes of no PDC.
        if mismatch:
            self.counts["mismatches"] += 1
            if not answer:
                self.refuse(Nack.PDC_HDR_MISMATCH, header, reply_to)
        elif isinstance(header, pds.Request) and header.type != pdc.mode:
            self.refuse(Nack.PDC_MODE_MISMATCH, header, reply_to)
        else:
            pdc.arrive(packet, reply_to)

    def unknown(self, packet, address, reply_to):
        header = packet.pds
        if isinstance(header, (pds.Ack, pds.NackPacket)):
            self.counts["stray_answers"] += 1
            return
        old = self.tombstones.get(header.dpdcid)
        if old is not None and (old.address, old.remote) == (address, header.spdcid) and old.error is None:
            if isinstance(header, pds.Control) and header.ctl != pds.Ctl.CLOSE_COMMAND:
                self.counts["late_control"] += 1
            elif pds.distance(header.psn, old.rx.cack) > 0:
                self.refuse(Nack.CLOSING, header, reply_to)
            else:
                old.rx.arrive(packet, reply_to)  # Its ACK was lost.
            return
        self.refuse(Nack.INV_DPDCID, header, reply_to)
